// Products of small matrices, with the same order of additions on any machine: for a few points of one path a BLAS call
// would cost more than the product.
#pragma once

#include "smooth/rows.hpp"
#include "limits.hpp"

namespace gigrad {

// out (TILE_ROWS, TILE_COLUMNS of width) += a (TILE_ROWS, inner) times rows (inner, TILE_COLUMNS of width).
GIGRAD_WIDE inline void multiply_tile(const double* __restrict a, size_t inner, const double* __restrict rows,
                                      size_t width, double* __restrict out) {
    double sum[TILE_ROWS][TILE_COLUMNS];
    for (size_t i = 0; i < TILE_ROWS; ++i)
        for (size_t j = 0; j < TILE_COLUMNS; ++j) sum[i][j] = out[i * width + j];
    for (size_t k = 0; k < inner; ++k) {
        const double* row = rows + k * width;
        for (size_t i = 0; i < TILE_ROWS; ++i) {
            const double factor = a[i * inner + k];
            for (size_t j = 0; j < TILE_COLUMNS; ++j) sum[i][j] += factor * row[j];
        }
    }
    for (size_t i = 0; i < TILE_ROWS; ++i)
        for (size_t j = 0; j < TILE_COLUMNS; ++j) out[i * width + j] = sum[i][j];
}

// The same for one row, and as many columns as one tile has numbers.
GIGRAD_WIDE inline void multiply_row(const double* __restrict a, size_t inner, const double* __restrict rows,
                                     size_t width, double* __restrict out) {
    double sum[TILE_ROWS * TILE_COLUMNS];
    for (size_t j = 0; j < TILE_ROWS * TILE_COLUMNS; ++j) sum[j] = out[j];
    for (size_t k = 0; k < inner; ++k) {
        const double factor = a[k], *row = rows + k * width;
        if (factor == 0.0) continue;  // about half of all units are inactive
        for (size_t j = 0; j < TILE_ROWS * TILE_COLUMNS; ++j) sum[j] += factor * row[j];
    }
    for (size_t j = 0; j < TILE_ROWS * TILE_COLUMNS; ++j) out[j] = sum[j];
}

// out (n, width) += a (n, inner) times rows (inner, width); `columns` (width, inner) is the same matrix transposed.
inline void add_matrix_product(const double* a, size_t n, size_t inner, const double* rows, const double* columns,
                               size_t width, double* out) {
    if (width < TILE_COLUMNS) {
        for (size_t i = 0; i < n; ++i)
            for (size_t j = 0; j < width; ++j)
                out[i * width + j] += row_product(a + i * inner, columns + j * inner, inner);
        return;
    }
    size_t i = 0;
    for (; i + TILE_ROWS <= n; i += TILE_ROWS) {
        size_t j = 0;
        for (; j + TILE_COLUMNS <= width; j += TILE_COLUMNS)
            multiply_tile(a + i * inner, inner, rows + j, width, out + i * width + j);
        for (size_t r = i; r < i + TILE_ROWS && j < width; ++r)
            for (size_t k = 0; k < inner; ++k) {
                const double factor = a[r * inner + k];
                for (size_t c = j; c < width; ++c) out[r * width + c] += factor * rows[k * width + c];
            }
    }
    for (; i < n; ++i) {
        size_t j = 0;
        for (; j + TILE_ROWS * TILE_COLUMNS <= width; j += TILE_ROWS * TILE_COLUMNS)
            multiply_row(a + i * inner, inner, rows + j, width, out + i * width + j);
        for (size_t k = 0; k < inner && j < width; ++k) {
            const double factor = a[i * inner + k];
            for (size_t c = j; c < width && factor != 0.0; ++c) out[i * width + c] += factor * rows[k * width + c];
        }
    }
}

}  // namespace gigrad
