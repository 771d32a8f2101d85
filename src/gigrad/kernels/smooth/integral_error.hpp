// The error of the quadrature over segments: the methods of HeadIntegral that estimate and record it.
#pragma once

#include "smooth/integral.hpp"

namespace gigrad {

// Whether the error of a segment is small enough; it is then recorded. If not, the next rule is to be tried.
// `point` is its first point of the last run.
inline bool HeadIntegral::accept(size_t at, size_t point, size_t number, const std::vector<double>& rest,
                                 const std::vector<double>& wander, bool final) {
    const Segment& s = list_[at];
    const double length = s.length();
    // whether the derivatives at both ends are one-sided limits from inside, and may differ from those at nodes
    const bool ends = !steady_ && !s.whole && !s.low_kink && !s.high_kink;
    if (ends) miss(at, point, number);
    bool bad = false;
    for (size_t o = 0; o < k_; ++o) {
        const double limit = 0.25 * view_.allowed[s.panel * k_ + o] * std::max(length, 1.0 / 4096.0);
        double most = std::fabs(rest[o]);
        for (size_t j = 0; j < joints_ && ends; ++j)
            most =
                std::max(most, missed_[j * k_ + o].beyond * std::fabs(to_[at * joints_ + j] - from_[at * joints_ + j]));
        if (most > limit && most > ROUNDING * size_of(at, point, number, o)) bad = true;
    }
    if (bad && length > SHORTEST_SEGMENT && !final) {
        number_[at] = static_cast<uint8_t>(number + 1);
        return false;
    }
    const double part = length / view_.length(s.panel);
    double share = part;
    for (size_t power = 0; power < number; ++power) share *= share;  // to the power of the number of nodes: 1, 2, 4, 8
    for (size_t o = 0; o < k_; ++o) {
        out_.lost[s.panel * k_ + o] += std::fabs(rest[o]);
        out_.wander[(number * view_.panels + s.panel) * k_ + o] += wander[o] * share;
    }
    if (ends) add_off(s, number, share, part > 0.0 ? share / part : 1.0);
    return true;
}

// The change of the score does not show errors that cancel between joints, nor between columns that move a joint in
// opposite directions. The derivatives at both ends do: the interpolation error of n nodes is about P_n(u) (a + b
// u), with u from -1 to 1 on the segment, and further coefficients are assumed to decay at the same rate: the
// remainder is of degree 2 n.
inline void HeadIntegral::miss(size_t at, size_t point, size_t number) {
    const SegmentRule& rule = rules_[number];
    const size_t width = joints_ * k_;
    const double sign = rule.size == 1 ? -1.0 : 1.0;
    const double *low = &low_slope_[at * width], *high = &high_slope_[at * width];
    missed_.resize(width);
    for (size_t c = 0; c < width; ++c) {
        const double* slopes = &slopes_[c * POINTS + point];
        const double first = sign * (low[c] - row_product(rule.ends, slopes, rule.size));
        const double last = high[c] - row_product(rule.ends + rule.size, slopes, rule.size);
        Missed& m = missed_[c];
        m = {std::fabs(0.5 * (last + first)), std::fabs(0.5 * (last - first)), 0.0};
        if (number == 0) continue;
        const double here = std::max(m.a, m.b),
                     before = std::max(std::fabs(row_product(rule.ends + 2 * rule.size, slopes, rule.size)),
                                       std::fabs(row_product(rule.ends + 3 * rule.size, slopes, rule.size)));
        const double rate = here < before ? here / before : 1.0;
        m.beyond = 0.5 * here * std::pow(rate, rule.size == 2 ? 2.0 : 0.5 * static_cast<double>(rule.size));
    }
}

// In the product with a column's part of a joint's speed, `a` couples to degree n, and `b` to degrees from n - 1
// on, which on a segment are scaled by its share of the panel to that power. A constant part couples only to the
// remainder.
inline void HeadIntegral::add_off(const Segment& s, size_t number, double share, double less) {
    const size_t width = joints_ * k_;
    const double n = static_cast<double>(rules_[number].size);
    const double even = s.length() * share / (2.0 * n + 1.0),
                 odd = s.length() * less * n / ((2.0 * n + 1.0) * (2.0 * n - 1.0));
    double* off = out_.off + (number * view_.panels + s.panel) * width;
    double* off_even = off + SIZES * view_.panels * width;
    double* beyond = out_.off + s.panel * width;
    for (size_t c = 0; c < width; ++c) {
        off[c] += odd * missed_[c].b;
        off_even[c] += even * missed_[c].a;
        beyond[c] += s.length() * missed_[c].beyond;
    }
}

// The size of the numbers whose small difference is the error of a segment.
inline double HeadIntegral::size_of(size_t at, size_t point, size_t number, size_t o) const {
    double out = std::fabs(first_[at * k_ + o]) + std::fabs(last_[at * k_ + o]);
    for (size_t j = 0; j < joints_; ++j) {
        double steepest = 0.0;
        for (size_t q = 0; q < rules_[number].size; ++q)
            steepest = std::max(steepest, std::fabs(slopes_[(j * k_ + o) * POINTS + point + q]));
        out += std::max(std::fabs(from_[at * joints_ + j]), std::fabs(to_[at * joints_ + j])) * steepest;
    }
    return out;
}

// The variation of the derivatives with respect to curves: within segments, and from one to the next.
inline void HeadIntegral::add_sway() {
    const size_t columns = view_.curves * k_;
    for (size_t i = 0; i < list_.size(); ++i) {
        const Segment& s = list_[i];
        const double middle = 0.5 * (view_.low[s.panel] + view_.high[s.panel]);
        const double u = (s.low - middle) / std::max(0.5 * view_.length(s.panel), 1e-300);
        // the mean square of a Legendre polynomial of high degree is about this
        const double height =
            std::min(1.0, 0.64 / ((static_cast<double>(view_.order) + 0.5) * std::sqrt(std::max(1.0 - u * u, 1e-12))));
        for (size_t c = 0; c < columns; ++c) {
            const double within = end_slope_[i * columns + c] - begin_slope_[i * columns + c];
            double square = within * within;
            if (i > 0 && list_[i - 1].panel == s.panel) {
                const double between = begin_slope_[i * columns + c] - end_slope_[(i - 1) * columns + c];
                square += between * between;
            }
            out_.sway[s.panel * columns + c] += square * height;
        }
    }
}

}  // namespace gigrad
