// Rows of numbers along a path: interpolated, bent at kinks, summed. The units of a layer are the columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/elementary.hpp"
#include "limits.hpp"

namespace gigrad {

// to = from + p (next - from)
GIGRAD_WIDE inline void mix_row(const double* __restrict from, const double* __restrict next, double p, size_t columns,
                                double* __restrict to) {
    for (size_t j = 0; j < columns; ++j) to[j] = from[j] + p * (next[j] - from[j]);
}

// to += factor row
GIGRAD_WIDE inline void add_row(double* __restrict to, double factor, const double* __restrict row, size_t columns) {
    for (size_t j = 0; j < columns; ++j) to[j] += factor * row[j];
}

// The product of two rows. Eight partial sums, added in the same order on any machine.
GIGRAD_WIDE inline double row_product(const double* __restrict a, const double* __restrict b, size_t columns) {
    double parts[8] = {};
    size_t j = 0;
    for (; j + 8 <= columns; j += 8)
        for (size_t i = 0; i < 8; ++i) parts[i] += a[j + i] * b[j + i];
    double total = ((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    for (; j < columns; ++j) total += a[j] * b[j];
    return total;
}

// out (n, columns): linear interpolation between rows[at[i]] and the next one, at `part[i]`.
inline void between_rows(const double* rows, size_t columns, const int64_t* at, const double* part, size_t n,
                         double* out) {
    for (size_t i = 0; i < n; ++i) {
        const double* from = rows + static_cast<size_t>(at[i]) * columns;
        double* to = out + i * columns;
        if (part[i] == 0.0)  // exactly at a row; there may be no next one
            std::copy(from, from + columns, to);
        else
            mix_row(from, from + columns, part[i], columns, to);
    }
}

// A layer over units with kinks, along a line: its values at the points of a coarse grid, `coarse` (coarse points,
// columns), become those at the points of a finer one. Point i lies part[i] of the way from coarse point at[i] to the
// next, at time[i]; a point with part 0 is the coarse one itself. Between coarse points the layer is linear except at
// kinks: at point[k], in order, its slope changes by bend[k] times the row unit[k] of `rows` (units, columns).
inline void bend_rows(const double* coarse, size_t columns, const int64_t* at, const double* time, size_t n,
                      const int64_t* point, const double* bend, const int64_t* unit, size_t kinks, const double* rows,
                      double* out) {
    std::vector<double> slope(columns);
    size_t kink = 0;
    for (size_t first = 0; first < n;) {
        size_t last = first + 1;  // the points inside the piece that begins at `first`
        while (last < n && at[last] == at[first]) ++last;
        const double* from = coarse + static_cast<size_t>(at[first]) * columns;
        std::copy(from, from + columns, out + first * columns);
        if (last - first > 1) {
            const double end = time[last], length = end - time[first];
            for (size_t j = 0; j < columns; ++j) slope[j] = from[columns + j] - from[j];
            size_t stop = kink;
            for (; stop < kinks && point[stop] < static_cast<int64_t>(last); ++stop)
                add_row(slope.data(), -bend[stop] * (end - time[point[stop]]),
                        rows + static_cast<size_t>(unit[stop]) * columns, columns);
            for (size_t j = 0; j < columns; ++j) slope[j] /= length;
            for (size_t i = first + 1; i < last; ++i) {
                double* here = out + i * columns;
                std::copy(here - columns, here, here);
                add_row(here, time[i] - time[i - 1], slope.data(), columns);
                for (; kink < stop && point[kink] == static_cast<int64_t>(i); ++kink)
                    add_row(slope.data(), bend[kink], rows + static_cast<size_t>(unit[kink]) * columns, columns);
            }
        }
        first = last;
    }
}

// out[k]: the row unit[k] of `rows` (units, columns) times the sum of the pieces begin[k] .. end[k]-1 of `sums`
// (pieces, columns). Kinks are sorted by `begin`; those with the same `end` share their sums.
inline void suffix_products(const double* sums, size_t columns, const int64_t* begin, const int64_t* end,
                            const int64_t* unit, size_t kinks, const double* rows, double* out) {
    std::vector<double> sum(columns);
    int64_t done = -1, piece = 0;  // `sum` holds the pieces piece .. done-1
    for (size_t k = kinks; k-- > 0;) {
        if (end[k] != done) {
            std::fill(sum.begin(), sum.end(), 0.0);
            done = piece = end[k];
        }
        for (; piece > begin[k]; --piece)
            add_row(sum.data(), 1.0, sums + static_cast<size_t>(piece - 1) * columns, columns);
        out[k] = row_product(rows + static_cast<size_t>(unit[k]) * columns, sum.data(), columns);
    }
}

// Sums of rows of a matrix (units, columns) over the points of legs, from their ends backwards: at later[k], in order,
// factor[k] times the row row[k] is added. sums[i]: the column unit[i] of what is added after point[i], in order, before
// its leg ends; total (legs, columns): the whole of each leg, whose points are offsets[i] .. offsets[i+1]-1.
inline void later_rows(const int64_t* point, const int64_t* unit, size_t n, const int64_t* later, const int64_t* row,
                       const double* factor, size_t kinks, const int64_t* offsets, size_t legs, const double* rows,
                       size_t columns, double* sums, double* total) {
    std::fill_n(total, legs * columns, 0.0);
    for (size_t leg = legs, i = n, k = kinks; leg-- > 0;) {
        double* sum = total + leg * columns;
        for (; i > 0 && point[i - 1] >= offsets[leg]; --i) {
            for (; k > 0 && later[k - 1] > point[i - 1]; --k)
                add_row(sum, factor[k - 1], rows + static_cast<size_t>(row[k - 1]) * columns, columns);
            sums[i - 1] = sum[unit[i - 1]];
        }
        for (; k > 0 && later[k - 1] >= offsets[leg]; --k)
            add_row(sum, factor[k - 1], rows + static_cast<size_t>(row[k - 1]) * columns, columns);
    }
}

// out[g]: the sum of the rows first[g] .. first[g+1]-1, the last group to the end; no group is empty.
inline void sum_groups(const double* rows, size_t n, size_t columns, const int64_t* first, size_t groups, double* out) {
    for (size_t g = 0; g < groups; ++g) {
        const size_t begin = static_cast<size_t>(first[g]),
                     end = g + 1 < groups ? static_cast<size_t>(first[g + 1]) : n;
        double* to = out + g * columns;
        std::copy(rows + begin * columns, rows + (begin + 1) * columns, to);
        for (size_t i = begin + 1; i < end; ++i) add_row(to, 1.0, rows + i * columns, columns);
    }
}

// table[row[i]] += values[i] (n, columns); rows may be repeated.
inline void add_rows(double* table, const int64_t* row, const double* values, size_t n, size_t columns) {
    for (size_t i = 0; i < n; ++i)
        add_row(table + static_cast<size_t>(row[i]) * columns, 1.0, values + i * columns, columns);
}

// Whether any of eight columns lies on one side of `level` in one row, and on the other side in the next.
GIGRAD_WIDE inline bool any_passes(const double* __restrict a, const double* __restrict b, double level,
                                   size_t columns) {
    bool any = false;
    for (size_t j = 0; j < columns; ++j) any |= ((a[j] < level) & (b[j] > level)) | ((a[j] > level) & (b[j] < level));
    return any;
}

// Where a column passes `level` from row left[i] to the next: all such i, and the columns. Few do, so most blocks of
// columns need one check.
inline void passed_rows(const double* rows, size_t columns, const int64_t* left, size_t n, double level,
                        std::vector<int64_t>& piece, std::vector<int64_t>& column) {
    for (size_t i = 0; i < n; ++i) {
        const double *a = rows + static_cast<size_t>(left[i]) * columns, *b = a + columns;
        for (size_t j = 0; j < columns; j += CHECKED_COLUMNS) {
            const size_t end = std::min(j + CHECKED_COLUMNS, columns);
            if (!any_passes(a + j, b + j, level, end - j)) continue;
            for (size_t k = j; k < end; ++k)
                if ((a[k] < level && b[k] > level) || (a[k] > level && b[k] < level)) {
                    piece.push_back(static_cast<int64_t>(i));
                    column.push_back(static_cast<int64_t>(k));
                }
        }
    }
}

// out[j]: the slope of a unit with a kink at 0, of those below, at and above it, half-way between two rows.
GIGRAD_WIDE inline void middle_slope(const double* __restrict a, const double* __restrict b, double below, double at,
                                     double above, size_t columns, double* __restrict out) {
    for (size_t j = 0; j < columns; ++j) {
        const double middle = a[j] + 0.5 * (b[j] - a[j]);
        out[j] = middle > 0.0 ? above : (middle < 0.0 ? below : at);
    }
}

// The largest change of a column from one row to the next; NaN columns are ignored.
GIGRAD_WIDE inline double largest_step(const double* __restrict a, const double* __restrict b, size_t columns) {
    double parts[8] = {};
    size_t j = 0;
    for (; j + 8 <= columns; j += 8)
        for (size_t i = 0; i < 8; ++i) {
            const double step = std::fabs(b[j + i] - a[j + i]);
            parts[i] = step > parts[i] ? step : parts[i];
        }
    for (; j < columns; ++j) parts[0] = std::max(parts[0], std::fabs(b[j] - a[j]));
    return *std::max_element(parts, parts + 8);
}

}  // namespace gigrad
