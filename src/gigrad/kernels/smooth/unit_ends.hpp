// A layer of smooth units over lines, known at the ends of panels: its values there, and the two derivatives that follow
// from them, determine a polynomial of degree 5 on the panel. Neighbouring panels share an end, so that a unit is
// evaluated once for each kink of the lines.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/elementary.hpp"
#include "core/wide.hpp"
#include "smooth/rows.hpp"
#include "limits.hpp"

namespace gigrad {

constexpr size_t END_DATA = 6;  // a value, a slope and a curvature at either end of a panel

// to (n, units): the values of units, tanh or sigmoid, that read linear interpolations between rows at[i] and the next.
inline void units_between(const double* rows, size_t units, const int64_t* at, const double* part, size_t n,
                          bool sigmoid, double* to) {
    between_rows(rows, units, at, part, n, to);
    for (size_t i = 0; i < n; ++i, to += units) sigmoid ? sigmoid_each(to, units, to) : tanh_each(to, units, to);
}

struct UnitEnds {
    size_t panels, outputs, units;
    const double* values;                   // (rows, units): of the units
    double c[3];                            // a unit's slope is c[0] + y (c[1] + y c[2]) at its value y
    const double* matrix;                   // (outputs, units): the weights of the layer above
    const int64_t *low_value, *high_value;  // (panels,): the rows of `values` at a panel's two ends
    const double* lines;                    // (points, units): what the units read
    const int64_t* left;                    // (panels,): the point that a panel's piece begins at; it ends at the next
    const double* part;                     // (panels,): half of the panel's length, as a part of that of the piece
};

#if defined(__GNUC__)
typedef double Eight __attribute__((vector_size(64)));
#endif

inline __attribute__((always_inline)) void load_eight(const double* from, Eight& to) {
    std::memcpy(&to, from, sizeof to);
}

// The slopes of eight units by what they read, at the two ends of a panel, and their first two derivatives by the panel's
// own coordinate, in which what is read moves by `move`.
inline __attribute__((always_inline)) void slopes_at_ends(const double* c, const Eight& a, const Eight& b,
                                                          const Eight& move, Eight* data) {
    const double twice = 2.0 * c[2];
    const Eight ga = c[1] + twice * a, gb = c[1] + twice * b;
    data[0] = c[0] + a * (c[1] + a * c[2]);
    data[1] = c[0] + b * (c[1] + b * c[2]);
    data[2] = ga * data[0] * move;
    data[3] = gb * data[1] * move;
    const Eight square = move * move;
    data[4] = (twice * data[0] + ga * ga) * data[0] * square;
    data[5] = (twice * data[1] + gb * gb) * data[1] * square;
}

inline __attribute__((always_inline)) void unit_data(const UnitEnds& x, size_t p, size_t first, Eight& move,
                                                     Eight* data) {
    Eight a, b, from, next;
    load_eight(x.values + static_cast<size_t>(x.low_value[p]) * x.units + first, a);
    load_eight(x.values + static_cast<size_t>(x.high_value[p]) * x.units + first, b);
    const double* line = x.lines + static_cast<size_t>(x.left[p]) * x.units + first;
    load_eight(line, from), load_eight(line + x.units, next);
    move = x.part[p] * (next - from);
    slopes_at_ends(x.c, a, b, move, data);
}

inline __attribute__((always_inline)) double sum_of_eight(const Eight& x) {
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

// For panel p and one output of the layer above: the speed of the output at both ends and its first two derivatives, by
// the panel's own coordinate, as sums over the units; and for each degree the root of the sum of squares of the Legendre
// coefficients of single units. `even` and `odd` (3, 3): the coefficients of degrees 0, 2, 4 and 1, 3, 5 from sums and
// differences of what is known at both ends.
GIGRAD_WIDE inline void speeds_of(const UnitEnds& x, size_t p, size_t output, const double* even, const double* odd,
                                  double* speed, double* size) {
    Eight total[END_DATA] = {}, squares[END_DATA] = {};
    const double* matrix = x.matrix + output * x.units;
    for (size_t first = 0; first < x.units; first += PULLED_UNITS) {
        Eight move, weight, data[END_DATA];
        unit_data(x, p, first, move, data);
        load_eight(matrix + first, weight);
        weight *= move;
        for (size_t f = 0; f < END_DATA; ++f) data[f] *= weight, total[f] += data[f];
        const Eight same[3] = {data[1] + data[0], data[3] - data[2], data[5] + data[4]};
        const Eight opposite[3] = {data[1] - data[0], data[3] + data[2], data[5] - data[4]};
        for (size_t d = 0; d < 3; ++d) {
            const Eight one = even[3 * d] * same[0] + even[3 * d + 1] * same[1] + even[3 * d + 2] * same[2];
            const Eight other = odd[3 * d] * opposite[0] + odd[3 * d + 1] * opposite[1] + odd[3 * d + 2] * opposite[2];
            squares[2 * d] += one * one;
            squares[2 * d + 1] += other * other;
        }
    }
    for (size_t f = 0; f < END_DATA; ++f) speed[f] = sum_of_eight(total[f]);
    for (size_t d = 0; d < END_DATA; ++d) size[d] = std::sqrt(sum_of_eight(squares[d]));
}

// speeds, sizes (panels, outputs, END_DATA): see speeds_of. The number of units must be a multiple of PULLED_UNITS.
inline void unit_speeds(const UnitEnds& x, const double* even, const double* odd, double* speeds, double* sizes) {
    for (size_t p = 0; p < x.panels; ++p)
        for (size_t o = 0; o < x.outputs; ++o) {
            const size_t at = (p * x.outputs + o) * END_DATA;
            speeds_of(x, p, o, even, odd, speeds + at, sizes + at);
        }
}

// sums (units,) of panel p: what is known of the units' slopes at both ends, times `weight` (outputs, END_DATA), pulled
// back through the layer above.
GIGRAD_WIDE inline void pull_panel(const UnitEnds& x, size_t p, const double* weight, double* sums) {
    for (size_t first = 0; first < x.units; first += PULLED_UNITS) {
        Eight move, row, data[END_DATA], sum = {};
        unit_data(x, p, first, move, data);
        for (size_t o = 0; o < x.outputs; ++o) {
            const double* w = weight + o * END_DATA;
            load_eight(x.matrix + o * x.units + first, row);
            sum += row * ((w[0] * data[0] + w[1] * data[1]) + (w[2] * data[2] + w[3] * data[3]) +
                          (w[4] * data[4] + w[5] * data[5]));
        }
        std::memcpy(sums + first, &sum, sizeof sum);
    }
}

// sums (count, panels, units): the same for weights (count, panels, outputs, END_DATA).
inline void pull_unit_ends(const UnitEnds& x, const double* weights, size_t count, double* sums) {
    for (size_t at = 0; at < count * x.panels; ++at)
        pull_panel(x, at % x.panels, weights + at * x.outputs * END_DATA, sums + at * x.units);
}

}  // namespace gigrad
