// Kinks of units with a kink at zero, on intervals of paths at whose ends only the layers of a net are evaluated. The
// inputs of the units bend at the kinks of the layer below; for the few units that may pass zero inside an interval,
// the input is traced from kink to kink, so that times are exact without a product with the layer's matrix.
#pragma once

#include "smooth/rows.hpp"
#include "limits.hpp"

namespace gigrad {

// Kinks of a layer, in order of interval and time: those of interval k are first[k] .. first[k+1]-1.
struct IntervalKinks {
    std::vector<int64_t> first{0}, unit;
    std::vector<double> time, rate;  // when a unit passes zero, and the rate of change of its input there
};

// A layer below: `bend` is the change of the time derivatives of its units at its kinks, `rows` (units below, units)
// are the weights of the layer above it.
struct KinksBelow {
    const int64_t *first, *unit;
    const double *time, *bend, *rows;
};

// to += factor |row|
GIGRAD_WIDE inline void add_sizes(double* __restrict to, double factor, const double* __restrict row, size_t columns) {
    for (size_t j = 0; j < columns; ++j) to[j] += factor * std::fabs(row[j]);
}

// Whether a column changes its sign from a to b, or comes as close to zero at one end as `reach`: then it may pass zero.
GIGRAD_WIDE inline bool any_near(const double* __restrict a, const double* __restrict b, const double* __restrict reach,
                                 size_t columns) {
    bool any = false;
    for (size_t j = 0; j < columns; ++j)
        any |= (a[j] * b[j] <= 0.0) | (std::fabs(a[j]) < reach[j]) | (std::fabs(b[j]) < reach[j]);
    return any;
}

class IntervalFinder {
public:
    IntervalFinder(size_t units, const KinksBelow& below) : units_(units), below_(below), reach_(units) {}

    // The kinks of interval `k` from `low` to `high`, where the units read a and b at its ends.
    void find(size_t k, const double* a, const double* b, double low, double high, IntervalKinks& found) {
        const size_t begin = static_cast<size_t>(below_.first[k]), end = static_cast<size_t>(below_.first[k + 1]);
        const double length = high - low;
        std::fill(reach_.begin(), reach_.end(), 0.0);
        for (size_t i = begin; i < end; ++i) {  // how far a kink moves the units from the chord between a and b
            const double part = (below_.time[i] - low) * (high - below_.time[i]) / length;
            add_sizes(reach_.data(), part * std::fabs(below_.bend[i]), row(i), units_);
        }
        passed_.clear();
        for (size_t j = 0; j < units_; j += CHECKED_COLUMNS) {
            const size_t stop = std::min(j + CHECKED_COLUMNS, units_);
            if (!any_near(a + j, b + j, reach_.data() + j, stop - j)) continue;
            for (size_t u = j; u < stop; ++u)
                if (any_near(a + u, b + u, reach_.data() + u, 1)) follow(u, a[u], b[u], low, high, begin, end);
        }
        std::stable_sort(passed_.begin(), passed_.end(),
                         [](const Passed& x, const Passed& y) { return x.time < y.time; });
        for (const Passed& p : passed_) {
            found.unit.push_back(static_cast<int64_t>(p.unit));
            found.time.push_back(p.time);
            found.rate.push_back(p.rate);
        }
        found.first.push_back(static_cast<int64_t>(found.unit.size()));
    }

private:
    struct Passed {
        size_t unit;
        double time, rate;
    };

    const double* row(size_t kink) const { return below_.rows + static_cast<size_t>(below_.unit[kink]) * units_; }

    void follow(size_t unit, double a, double b, double low, double high, size_t begin, size_t end) {
        double slope = b - a;
        for (size_t i = begin; i < end; ++i) slope -= row(i)[unit] * below_.bend[i] * (high - below_.time[i]);
        slope /= high - low;
        bool above = a > 0.0 || (a == 0.0 && b > 0.0);  // the same convention as where the kinks are used
        double from = a, time = low;
        for (size_t i = begin; i <= end; ++i) {
            const double next = i < end ? below_.time[i] : high;
            const double to = i < end ? from + slope * (next - time) : b;
            if (above ? to < 0.0 : to > 0.0) {
                const double part = from / (from - to);  // NaN if a net overflows
                const double at = part > 0.0 ? std::min(part, 1.0) : 0.0;
                passed_.push_back({unit, time + at * (next - time), slope});
                above = !above;
            }
            if (i < end) slope += row(i)[unit] * below_.bend[i];
            from = to, time = next;
        }
    }

    size_t units_;
    KinksBelow below_;
    std::vector<double> reach_;
    std::vector<Passed> passed_;
};

// out[i]: for kink i of a layer, in interval k, the product of its unit's row of `rows` (units, columns) with the integral
// from the kink to the end of the interval of what the columns above pass: `slope` (intervals, columns) where the interval
// begins, and `step` more from each kink above on. `late` is how much is left of the interval after a kink.
struct LateKinks {
    const int64_t *first, *unit;
    const double *time, *late;
};

inline void late_products(const double* slope, size_t intervals, size_t columns, const double* rows,
                          const LateKinks& kinks, const LateKinks& above, const double* step, double* out) {
    for (size_t k = 0; k < intervals; ++k)
        for (int64_t i = kinks.first[k]; i < kinks.first[k + 1]; ++i) {
            const double* row = rows + static_cast<size_t>(kinks.unit[i]) * columns;
            double sum = kinks.late[i] * row_product(slope + k * columns, row, columns);
            for (int64_t j = above.first[k]; j < above.first[k + 1]; ++j)
                sum += row[above.unit[j]] * step[j] * (above.time[j] > kinks.time[i] ? above.late[j] : kinks.late[i]);
            out[i] = sum;
        }
}

}  // namespace gigrad
