// Scalar functions of the graph's Elementwise nodes over arrays: values and slopes. Formulas as in graph/functions.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/elementary.hpp"

namespace gigrad {

enum class Function {
    identity,
    relu,
    leaky_relu,
    elu,
    tanh,
    sigmoid,
    softplus,
    silu,
    exp,
    log,
    log1p,
    expm1,
    sqrt,
    square,
    reciprocal,
    abs,
    logit
};

// Their names in Python, in the order of the enumeration.
inline const std::vector<std::string>& function_names() {
    static const std::vector<std::string> names = {"identity", "relu",   "leaky_relu", "elu", "tanh",  "sigmoid",
                                                   "softplus", "silu",   "exp",        "log", "log1p", "expm1",
                                                   "sqrt",     "square", "reciprocal", "abs", "logit"};
    return names;
}

inline bool has_kink(Function f) {
    return f == Function::relu || f == Function::leaky_relu || f == Function::elu || f == Function::abs;
}

template <class One>
void each(const double* x, size_t n, double* out, One one) {
    for (size_t i = 0; i < n; ++i) out[i] = one(x[i]);
}

inline void function_values(Function f, double a, const double* x, size_t n, double* y) {
    switch (f) {
        case Function::identity:
            std::copy(x, x + n, y);
            break;
        case Function::relu:
            each(x, n, y, [](double v) { return v > 0.0 ? v : (v == v ? 0.0 : v); });
            break;
        case Function::leaky_relu:
            each(x, n, y, [a](double v) { return v > 0.0 ? v : a * v; });
            break;
        case Function::elu:
            each(x, n, y, [a](double v) { return v > 0.0 ? v : a * std::expm1(v); });
            break;
        case Function::tanh:
            tanh_each(x, n, y);
            break;
        case Function::sigmoid:
            sigmoid_each(x, n, y);
            break;
        case Function::softplus:
            each(x, n, y, [](double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v))); });
            break;
        case Function::silu:
            each(x, n, y, [](double v) { return v * sigmoid_of(v); });
            break;
        case Function::exp:
            each(x, n, y, [](double v) { return std::exp(v); });
            break;
        case Function::log:
            each(x, n, y, [](double v) { return std::log(v); });
            break;
        case Function::log1p:
            each(x, n, y, [](double v) { return std::log1p(v); });
            break;
        case Function::expm1:
            each(x, n, y, [](double v) { return std::expm1(v); });
            break;
        case Function::sqrt:
            each(x, n, y, [](double v) { return std::sqrt(v); });
            break;
        case Function::square:
            each(x, n, y, [](double v) { return v * v; });
            break;
        case Function::reciprocal:
            each(x, n, y, [](double v) { return 1.0 / v; });
            break;
        case Function::abs:
            each(x, n, y, [](double v) { return std::fabs(v); });
            break;
        case Function::logit:
            each(x, n, y, [](double v) { return std::log(v) - std::log1p(-v); });
            break;
    }
}

// slope[i]: the derivative at x[i], where the function has the value y[i].
inline void function_slopes(Function f, double a, const double* x, const double* y, size_t n, double* slope) {
    switch (f) {
        case Function::identity:
            std::fill(slope, slope + n, 1.0);
            break;
        case Function::relu:
            each(x, n, slope, [](double v) { return v > 0.0 ? 1.0 : 0.0; });
            break;
        case Function::leaky_relu:
            each(x, n, slope, [a](double v) { return v > 0.0 ? 1.0 : a; });
            break;
        case Function::elu:
            each(x, n, slope, [a](double v) { return v > 0.0 ? 1.0 : a * std::exp(v); });
            break;
        case Function::tanh:
            each(y, n, slope, [](double v) { return 1.0 - v * v; });
            break;
        case Function::sigmoid:
            each(y, n, slope, [](double v) { return v * (1.0 - v); });
            break;
        case Function::softplus:
            sigmoid_each(x, n, slope);
            break;
        case Function::silu:
            each(x, n, slope, [](double v) {
                const double s = sigmoid_of(v);
                return s * (1.0 + v * (1.0 - s));
            });
            break;
        case Function::exp:
            std::copy(y, y + n, slope);
            break;
        case Function::log:
            each(x, n, slope, [](double v) { return 1.0 / v; });
            break;
        case Function::log1p:
            each(x, n, slope, [](double v) { return 1.0 / (1.0 + v); });
            break;
        case Function::expm1:
            each(x, n, slope, [](double v) { return std::exp(v); });
            break;
        case Function::sqrt:
            each(y, n, slope, [](double v) { return 0.5 / v; });
            break;
        case Function::square:
            each(x, n, slope, [](double v) { return 2.0 * v; });
            break;
        case Function::reciprocal:
            each(y, n, slope, [](double v) { return -v * v; });
            break;
        case Function::abs:
            each(x, n, slope, [](double v) { return v > 0.0 ? 1.0 : (v < 0.0 ? -1.0 : 0.0); });
            break;
        case Function::logit:
            each(x, n, slope, [](double v) { return 1.0 / (v * (1.0 - v)); });
            break;
    }
}

}  // namespace gigrad
