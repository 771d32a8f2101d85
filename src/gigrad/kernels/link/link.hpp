// The functions between a sum of trees and the score: stages applied in sequence.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/elementary.hpp"

namespace gigrad {

class Link {
public:
    using Batch = void (*)(double* x, size_t n, double parameter);

    explicit Link(size_t n_inputs) : width_in_(n_inputs), width_(n_inputs), widest_(n_inputs) {}

    size_t n_inputs() const { return width_in_; }
    size_t n_outputs() const { return width_; }

    // `a` and `b` are the stage's numbers: (weight, bias) of "affine", the knots (x, y) of "piecewise_linear", (parameter)
    // of "leaky_relu" and "elu".
    void add(const std::string& name, std::vector<double> a, std::vector<double> b);

    // In place on `n` vectors of margins; the vectors of the result lie n_outputs() apart.
    void apply(std::vector<double>& x, size_t n) const;

private:
    struct Stage {
        enum Kind { ELEMENTWISE, AFFINE, PIECEWISE_LINEAR, SOFTMAX } kind;
        Batch batch;
        std::vector<double> a, b;
        size_t n_out;
    };
    size_t width_in_, width_, widest_;
    std::vector<Stage> stages_;

    static Batch elementwise(const std::string& name);
    static void affine(const Stage& stage, size_t n_in, std::vector<double>& x, size_t n);
    static void interpolate(const std::vector<double>& x, const std::vector<double>& y, double* at, size_t n);
    static void softmax(double* x, size_t width);
};

// The names of gigrad.graph.functions.FUNCTIONS; `a` is the parameter of those that have one.
struct Scalars {
    static double exp(double x, double) { return std::exp(x); }
    static double log(double x, double) { return std::log(x); }
    static double softplus(double x, double) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
    static double log1p(double x, double) { return std::log1p(x); }
    static double expm1(double x, double) { return std::expm1(x); }
    static double square(double x, double) { return x * x; }
    static double signed_square(double x, double) { return x * std::abs(x); }
    static double tanh(double x, double) { return std::tanh(x); }
    static double identity(double x, double) { return x; }
    static double relu(double x, double) { return x > 0 ? x : 0.0; }
    static double leaky_relu(double x, double a) { return x > 0 ? x : a * x; }
    static double elu(double x, double a) { return x > 0 ? x : a * std::expm1(x); }
    static double gelu(double x, double) { return 0.5 * x * (1.0 + std::erf(x * std::sqrt(0.5))); }
    static double gelu_tanh(double x, double) {
        return 0.5 * x * (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    }
    static double silu(double x, double) { return x * sigmoid_of(x); }
    static double sqrt(double x, double) { return std::sqrt(x); }
    static double reciprocal(double x, double) { return 1.0 / x; }
    static double abs(double x, double) { return std::abs(x); }
    static double box_cox(double x, double a) { return a == 0.0 ? std::log(x) : std::expm1(a * std::log(x)) / a; }
    static double yeo_johnson(double x, double a) {
        const double far = 1.0 + std::abs(x);
        return x >= 0 ? box_cox(far, a) : -box_cox(far, 2.0 - a);
    }
    // The standard normal number whose distribution function is u, held where u leaves [1e-7, 1 - 1e-7]: a tail expansion,
    // then Newton's method on the logarithm of the lower tail, whose steps stay good however small u is.
    static double normal_score(double u, double) {
        if (std::isnan(u)) return u;
        u = std::min(std::max(u, 1e-7), 1.0 - 1e-7);
        if (u > 0.5) return -normal_score(1.0 - u, 0.0);
        const double t = std::sqrt(-2.0 * std::log(u));
        double z = (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481)) - t;
        for (int i = 0; i < 4; ++i) {
            const double tail = 0.5 * std::erfc(-z * std::sqrt(0.5));
            z -= tail * (std::log(tail) - std::log(u)) * 2.5066282746310002 * std::exp(0.5 * z * z);
        }
        return z;
    }
    static double logit(double x, double) { return std::log(x) - std::log1p(-x); }
};

template <double (*F)(double, double)>
void apply_to_each(double* x, size_t n, double a) {
    for (size_t i = 0; i < n; ++i) x[i] = F(x[i], a);
}

struct NamedBatch {
    const char* name;
    Link::Batch batch;
};

inline const NamedBatch LINK_FUNCTIONS[] = {
    {"sigmoid", [](double* x, size_t n, double) { sigmoid_in_place(x, n); }},
    {"exp", apply_to_each<Scalars::exp>},
    {"log", apply_to_each<Scalars::log>},
    {"softplus", apply_to_each<Scalars::softplus>},
    {"log1p", apply_to_each<Scalars::log1p>},
    {"expm1", apply_to_each<Scalars::expm1>},
    {"square", apply_to_each<Scalars::square>},
    {"signed_square", apply_to_each<Scalars::signed_square>},
    {"tanh", apply_to_each<Scalars::tanh>},
    {"identity", apply_to_each<Scalars::identity>},
    {"relu", apply_to_each<Scalars::relu>},
    {"leaky_relu", apply_to_each<Scalars::leaky_relu>},
    {"elu", apply_to_each<Scalars::elu>},
    {"gelu", apply_to_each<Scalars::gelu>},
    {"gelu_tanh", apply_to_each<Scalars::gelu_tanh>},
    {"silu", apply_to_each<Scalars::silu>},
    {"sqrt", apply_to_each<Scalars::sqrt>},
    {"reciprocal", apply_to_each<Scalars::reciprocal>},
    {"abs", apply_to_each<Scalars::abs>},
    {"box_cox", apply_to_each<Scalars::box_cox>},
    {"yeo_johnson", apply_to_each<Scalars::yeo_johnson>},
    {"normal_score", apply_to_each<Scalars::normal_score>},
    {"logit", apply_to_each<Scalars::logit>},
};

inline Link::Batch Link::elementwise(const std::string& name) {
    for (const NamedBatch& function : LINK_FUNCTIONS)
        if (name == function.name) return function.batch;
    return nullptr;
}

inline void Link::add(const std::string& name, std::vector<double> a, std::vector<double> b) {
    Stage stage{Stage::ELEMENTWISE, nullptr, std::move(a), std::move(b), width_};
    if (name == "affine") {
        stage.kind = Stage::AFFINE;
        stage.n_out = stage.b.size();
        if (stage.n_out == 0 || stage.a.size() != stage.n_out * width_)
            throw std::invalid_argument("the weight of an affine stage must have " + std::to_string(stage.n_out) +
                                        " x " + std::to_string(width_) + " numbers; it has " +
                                        std::to_string(stage.a.size()) + ".");
    } else if (name == "piecewise_linear") {
        stage.kind = Stage::PIECEWISE_LINEAR;
        if (stage.a.size() < 2 || stage.a.size() != stage.b.size())
            throw std::invalid_argument("a piecewise_linear stage needs as many x as y, two at least.");
        for (size_t i = 1; i < stage.a.size(); ++i)
            if (!(stage.a[i] > stage.a[i - 1]))
                throw std::invalid_argument("the x of a piecewise_linear stage must increase strictly.");
    } else if (name == "softmax") {
        stage.kind = Stage::SOFTMAX;
    } else {
        stage.batch = elementwise(name);
        if (!stage.batch) throw std::invalid_argument("there is no stage named '" + name + "'.");
    }
    width_ = stage.n_out;
    widest_ = std::max(widest_, width_);
    stages_.push_back(std::move(stage));
}

inline void Link::apply(std::vector<double>& x, size_t n) const {
    x.resize(std::max(x.size(), n * widest_));
    size_t width = width_in_;
    for (const Stage& stage : stages_) {
        double* const begin = x.data();
        double* const end = begin + n * width;
        switch (stage.kind) {
            case Stage::ELEMENTWISE:
                stage.batch(begin, n * width, stage.a.empty() ? 0.0 : stage.a[0]);
                break;
            case Stage::AFFINE:
                affine(stage, width, x, n);
                break;
            case Stage::PIECEWISE_LINEAR:
                interpolate(stage.a, stage.b, begin, n * width);
                break;
            case Stage::SOFTMAX:
                for (double* v = begin; v != end; v += width) softmax(v, width);
                break;
        }
        width = stage.n_out;
    }
}

inline void Link::affine(const Stage& stage, size_t n_in, std::vector<double>& x, size_t n) {
    std::vector<double> out(n * stage.n_out);
    for (size_t i = 0; i < n; ++i)
        for (size_t o = 0; o < stage.n_out; ++o) {
            double sum = stage.b[o];
            for (size_t k = 0; k < n_in; ++k) sum += stage.a[o * n_in + k] * x[i * n_in + k];
            out[i * stage.n_out + o] = sum;
        }
    std::copy(out.begin(), out.end(), x.begin());
}

inline void Link::interpolate(const std::vector<double>& x, const std::vector<double>& y, double* at, size_t n) {
    size_t i = 1;  // the piece of the previous number, on which the next one is likely to be
    for (double* const end = at + n; at != end; ++at) {
        const double v = *at;
        if (!(v > x.front())) {
            *at = std::isnan(v) ? v : y.front();
        } else if (v >= x.back()) {
            *at = y.back();
        } else {
            if (!(v >= x[i - 1] && v < x[i]))
                i = static_cast<size_t>(std::upper_bound(x.begin(), x.end(), v) - x.begin());
            const double slope = (y[i] - y[i - 1]) / (x[i] - x[i - 1]);
            *at = slope * (v - x[i - 1]) + y[i - 1];
        }
    }
}

inline void Link::softmax(double* x, size_t width) {
    const double top = *std::max_element(x, x + width);
    double sum = 0.0;
    for (size_t k = 0; k < width; ++k) sum += x[k] = exp_negative(x[k] - top);
    for (size_t k = 0; k < width; ++k) x[k] /= sum;
}

}  // namespace gigrad
