// Rows that turn slowly, such as the units of a layer along a path, times a matrix. A row is a combination of the two
// anchors around it, rows that are multiplied in float64, and of a rest so small that float32 suffices for its product.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/wide.hpp"
#include "smooth/rows.hpp"
#include "limits.hpp"

namespace gigrad {

// to = row - x a - y b
GIGRAD_WIDE inline void take_off(const double* __restrict row, const double* __restrict a, double x,
                                 const double* __restrict b, double y, size_t columns, double* __restrict to) {
    for (size_t j = 0; j < columns; ++j) to[j] = row[j] - x * a[j] - y * b[j];
}

// to = x a + y b
GIGRAD_WIDE inline void combine(const double* __restrict a, double x, const double* __restrict b, double y,
                                size_t columns, double* __restrict to) {
    for (size_t j = 0; j < columns; ++j) to[j] = x * a[j] + y * b[j];
}

// The least squares of row - x a - y b; y is 0 where a and b are parallel.
inline void nearest(const double* row, const double* a, const double* b, double aa, double ab, double bb,
                    size_t columns, double& x, double& y) {
    const double ra = row_product(row, a, columns), rb = row_product(row, b, columns), det = aa * bb - ab * ab;
    if (det > PARALLEL_ROWS * aa * bb)
        x = (ra * bb - rb * ab) / det, y = (rb * aa - ra * ab) / det;
    else
        x = aa > 0.0 ? ra / aa : 0.0, y = 0.0;
}

// For each of the rows (n, columns) its coefficients of the anchors around it, share[2 i] and share[2 i + 1]; the rest of
// its columns `used` in float32, (n, count); and expected[i], the product of that rest with `probe` (count,), in float64.
// Anchors are numbers of rows, in order; the first and the last row are among them. Their own rest is 0.
inline void split_rows(const double* rows, size_t n, size_t columns, const int64_t* anchor, size_t anchors,
                       const int64_t* used, size_t count, const double* probe, double* share, float* rest,
                       double* expected) {
    std::vector<double> left(columns), some(count);
    for (size_t k = 0; k < anchors; ++k) {
        const auto first = static_cast<size_t>(anchor[k]);
        const size_t last = k + 1 < anchors ? static_cast<size_t>(anchor[k + 1]) : n;
        const double *a = rows + first * columns, *b = k + 1 < anchors ? rows + last * columns : a;
        const bool inner = last > first + 1;
        const double aa = inner ? row_product(a, a, columns) : 0.0, ab = inner ? row_product(a, b, columns) : 0.0,
                     bb = inner ? row_product(b, b, columns) : 0.0;
        share[2 * first] = 1.0, share[2 * first + 1] = 0.0, expected[first] = 0.0;
        std::fill_n(rest + first * count, count, 0.0f);
        for (size_t i = first + 1; i < last; ++i) {
            const double* row = rows + i * columns;
            double &x = share[2 * i], &y = share[2 * i + 1];
            nearest(row, a, b, aa, ab, bb, columns, x, y);
            take_off(row, a, x, b, y, columns, left.data());
            for (size_t j = 0; j < count; ++j) some[j] = left[static_cast<size_t>(used[j])];
            for (size_t j = 0; j < count; ++j) rest[i * count + j] = static_cast<float>(some[j]);
            expected[i] = row_product(some.data(), probe, count);
        }
    }
}

// The products of all rows with a matrix, out (n, width): from those of the anchors, (anchors, width), and of the rests,
// `fine` (n, count), which has the columns `used`; the others are 0. Gives the sum of squares by which sums of the
// columns checked[c] of `fine`, with signs, differ from what is expected.
inline double join_rows(const double* product, size_t n, size_t width, const int64_t* anchor, size_t anchors,
                        const double* share, const float* fine, const int64_t* used, size_t count,
                        const int64_t* checked, const double* sign, size_t checks, const double* expected,
                        double* out) {
    std::vector<double> whole(width);
    double off = 0.0;
    for (size_t k = 0; k < anchors; ++k) {
        const auto first = static_cast<size_t>(anchor[k]);
        const size_t last = k + 1 < anchors ? static_cast<size_t>(anchor[k + 1]) : n;
        const double *a = product + k * width, *b = k + 1 < anchors ? a + width : a;
        for (size_t i = first; i < last; ++i) {
            const float* row = fine + i * count;
            double* to = out + i * width;
            if (count == width) {
                combine(a, share[2 * i], b, share[2 * i + 1], width, to);
                for (size_t j = 0; j < width; ++j) to[j] += static_cast<double>(row[j]);
            } else {
                combine(a, share[2 * i], b, share[2 * i + 1], width, whole.data());
                std::fill_n(to, width, 0.0);
                for (size_t j = 0; j < count; ++j) {
                    const auto at = static_cast<size_t>(used[j]);
                    to[at] = whole[at] + static_cast<double>(row[j]);
                }
            }
            double sum = -expected[i];
            for (size_t c = 0; c < checks; ++c) sum += sign[c] * static_cast<double>(row[checked[c]]);
            off += sum * sum;
        }
    }
    return off;
}

}  // namespace gigrad
