// The credit of panels through their curves, from the moments of the score's derivatives: weighted sums over nodes, and
// the terms of their errors.
#pragma once

#include <array>

#include "smooth/curves.hpp"

namespace gigrad {

struct CurveMoments {
    size_t panels, order, curves, lines, parts, k, joints;
    const double *gradient, *last, *first, *above, *total;  // as in CurveValues
    const double *doubt, *astray;                           // (panels, curves)
    const double* length;                                   // (panels,)
    const double* to_coefficients;                          // (order, order)
    const double* curve;                                    // (panels, order + 2, curves, k)
    const double* sway;                                     // (panels, curves, k)
    const double* off;                                      // (2 SIZES, panels, joints, k)
    Decay decay;
    double most_opposed;
};

// All added to.
struct CurveCredit {
    double* sums;                       // (k, panels, lines)
    double* error;                      // (panels, k)
    double *largest, *total;            // (panels, k), (order, panels, k)
    double *largest_turn, *total_turn;  // (SIZES, panels, k)
    double* off;                        // (panels, k)
};

// sums (lines,) += gradient (lines, order) times weight
inline void add_weighted(const double* gradient, const double* weight, size_t lines, size_t order, double* sums) {
    for (size_t j = 0; j < lines; ++j, gradient += order) {
        double sum = 0.0;
        for (size_t q = 0; q < order; ++q) sum += weight[q] * gradient[q];
        sums[j] += sum;
    }
}

// high, rate (parts,): the parts of a speed continued; `last` (smaller of `order` and 4, stride) as in Continued.
GIGRAD_WIDE inline void continue_parts(const double* __restrict last, size_t stride, size_t parts, size_t order,
                                       const Decay& decay, double* __restrict high, double* __restrict rate) {
    for (size_t c = 0; c < parts; ++c) {
        const Continued tail(last + c, stride, order, decay);
        high[c] = tail.high, rate[c] = tail.rate;
    }
}

// The largest over all parts of what missing degrees add up to with moments of these sizes (order + 2,): one of degree
// l >= order is missing from the sum, and is aliased to degree 2 order - l. NaN where any is not finite. There are zeros
// behind the last part, up to a multiple of eight.
GIGRAD_WIDE inline double largest_miss(const double* __restrict high, const double* __restrict rate, size_t parts,
                                       const double* size, size_t order) {
    double most[8] = {}, none[8] = {};
    for (size_t c = 0; c < parts; c += 8) {
        double sum[8];
        for (size_t i = 0; i < 8; ++i) sum[i] = size[0];
        for (size_t l = 1; l < order; ++l)
            for (size_t i = 0; i < 8; ++i) sum[i] = sum[i] * rate[c + i] + size[l];
        for (size_t i = 0; i < 8; ++i) {
            const double r = rate[c + i], missing = size[order] + r * size[order + 1];
            const double all = high[c + i] * r * (r * sum[i] + missing);
            most[i] = all > most[i] ? all : most[i];
            none[i] += all - all;
        }
    }
    for (size_t i = 1; i < 8; ++i) most[0] = std::max(most[0], most[i]), none[0] += none[i];
    return most[0] + none[0];
}

class CurveSums {
public:
    CurveSums(const CurveMoments& view, const CurveCredit& out)
        : x_(view), out_(out), high_(view.parts + 7), rate_(view.parts + 7) {}

    // One column of a curve on one panel.
    void add(size_t c, size_t p) {
        const size_t top = std::min<size_t>(x_.order, 4);
        continue_parts(x_.last + (c * top * x_.panels + p) * x_.parts, x_.panels * x_.parts, x_.parts, x_.order,
                       x_.decay, high_.data(), rate_.data());
        measure(c, p);
        for (size_t o = 0; o < x_.k; ++o) add(c, p, o);
    }

private:
    const CurveMoments& x_;
    const CurveCredit& out_;
    std::vector<double> high_, rate_;
    double first_ = 0.0, opposed_ = 0.0;
    std::array<double, SIZES> turn_{}, total_turn_{};
    std::array<double, 2 * SIZES> seen_{};  // as in the engine's SpeedParts

    double at_degree(const double* table, size_t c, size_t d, size_t p) const {
        return table[(c * x_.order + d) * x_.panels + p];
    }

    void measure(size_t c, size_t p) {
        double total_above[POINTS], sum = 0.0;
        for (size_t d = x_.order; d-- > 0;) total_above[d] = sum += std::fabs(at_degree(x_.total, c, d, p));
        for (size_t i = 0; i < SIZES; ++i) {
            const size_t nodes = size_t{1} << i, from = std::min(nodes, x_.order - 1);
            turn_[i] = seen_[SIZES + i] = at_degree(x_.above, c, from, p);
            total_turn_[i] = total_above[from];
            seen_[i] = at_degree(x_.above, c, std::min(nodes, x_.order) - 1, p);
        }
        first_ = x_.first[c * x_.panels + p];
        const double ratio = first_ / std::max(sum, std::numeric_limits<double>::min());
        opposed_ = std::min(std::max(ratio, 1.0), x_.most_opposed);
    }

    void add(size_t c, size_t p, size_t o) {
        double size[POINTS + 2], weight[POINTS] = {};
        double first = 0.0;
        for (size_t l = 0; l < x_.order + 2; ++l) {
            const double moment = x_.curve[((p * (x_.order + 2) + l) * x_.curves + c) * x_.k + o];
            size[l] = std::fabs(moment);
            if (l == 0) first = moment;
            if (l < x_.order)
                for (size_t q = 0; q < x_.order; ++q) weight[q] += moment * x_.to_coefficients[l * x_.order + q];
        }
        add_weighted(x_.gradient + (c * x_.panels + p) * x_.lines * x_.order, weight, x_.lines, x_.order,
                     out_.sums + (o * x_.panels + p) * x_.lines);
        const size_t at = p * x_.k + o, table = x_.panels * x_.k;
        const double both = size[0] + size[1];
        out_.largest[at] += both * first_;
        for (size_t d = 0; d < x_.order; ++d) out_.total[d * table + at] += first * at_degree(x_.total, c, d, p);
        for (size_t i = 0; i < SIZES; ++i) {
            out_.largest_turn[i * table + at] += both * turn_[i];
            out_.total_turn[i * table + at] += both * total_turn_[i];
        }
        for (size_t i = 0; i < 2 * SIZES; ++i)
            out_.off[at] += x_.off[((i * x_.panels + p) * x_.joints + c) * x_.k + o] * seen_[i];
        // An error of the curve moves the times of the head's kinks, by that error over the curve's speed.
        const size_t own = p * x_.curves + c;
        out_.error[at] += largest_miss(high_.data(), rate_.data(), x_.parts, size, x_.order) +
                          x_.doubt[own] * opposed_ * std::sqrt(x_.sway[own * x_.k + o]) +
                          x_.astray[own] / x_.length[p] * size[0];
    }
};

}  // namespace gigrad
