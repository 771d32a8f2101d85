// A layer of smooth units on panels, pulled back in one pass: the derivatives of a score by what the units read, summed
// over the nodes of every panel, and the sizes of their Legendre coefficients times the speeds of what is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/elementary.hpp"
#include "core/wide.hpp"
#include "smooth/rows.hpp"
#include "limits.hpp"

namespace gigrad {

// to (n, units): the values of units, tanh or sigmoid, that read linear interpolations between rows at[i] and the next.
inline void units_between(const double* rows, size_t units, const int64_t* at, const double* part, size_t n,
                          bool sigmoid, double* to) {
    for (size_t i = 0; i < n; ++i, to += units) {
        const double* from = rows + static_cast<size_t>(at[i]) * units;
        mix_row(from, from + units, part[i], units, to);
        sigmoid ? sigmoid_each(to, units, to) : tanh_each(to, units, to);
    }
}

struct UnitPanels {
    size_t panels, nodes, outputs, units, weights;
    const double* values;  // (panels, nodes, units): of the units; their slopes are c[0] + y (c[1] + y c[2])
    double c[3];
    const double* cotangent;        // (panels, nodes, outputs): by the outputs of the layer above
    const double* matrix;           // (outputs, units): its weights
    const double* ends;             // (points, units): what the units read
    const int64_t* left;            // (panels,): the point that a panel's piece begins at; it ends at the next
    const double* rate;             // (panels,): 1 over the length of that piece
    const double* weight;           // (weights, panels, nodes)
    const double* to_coefficients;  // (nodes, nodes)
};

// The units first .. first + PULLED_UNITS - 1 of panel p: their part of `sums`, and what they add to total[d] and
// squares[d], (nodes, PULLED_UNITS) each. `row` has room for (nodes, PULLED_UNITS).
GIGRAD_WIDE inline void pull_some(const UnitPanels& x, size_t p, size_t first, double* __restrict row,
                                  double* __restrict total, double* __restrict squares, double* __restrict sums) {
    const size_t nodes = x.nodes, units = x.units;
    for (size_t q = 0; q < nodes; ++q) {
        const size_t at = p * nodes + q;
        const double *y = x.values + at * units + first, *by = x.cotangent + at * x.outputs;
        double above[PULLED_UNITS] = {};
        for (size_t o = 0; o < x.outputs; ++o)
            for (size_t j = 0; j < PULLED_UNITS; ++j) above[j] += by[o] * x.matrix[o * units + first + j];
        for (size_t j = 0; j < PULLED_UNITS; ++j)
            row[q * PULLED_UNITS + j] = above[j] * (x.c[0] + y[j] * (x.c[1] + y[j] * x.c[2]));
    }
    for (size_t k = 0; k < x.weights; ++k) {
        const double* weight = x.weight + (k * x.panels + p) * nodes;
        double sum[PULLED_UNITS] = {};
        for (size_t q = 0; q < nodes; ++q)
            for (size_t j = 0; j < PULLED_UNITS; ++j) sum[j] += weight[q] * row[q * PULLED_UNITS + j];
        for (size_t j = 0; j < PULLED_UNITS; ++j) sums[(k * x.panels + p) * units + first + j] = sum[j];
    }
    const double* from = x.ends + static_cast<size_t>(x.left[p]) * units + first;
    double speed[PULLED_UNITS];
    for (size_t j = 0; j < PULLED_UNITS; ++j) speed[j] = x.rate[p] * (from[units + j] - from[j]);
    for (size_t d = 0; d < nodes; ++d) {
        double part[PULLED_UNITS] = {};
        for (size_t q = 0; q < nodes; ++q)
            for (size_t j = 0; j < PULLED_UNITS; ++j)
                part[j] += x.to_coefficients[d * nodes + q] * row[q * PULLED_UNITS + j];
        for (size_t j = 0; j < PULLED_UNITS; ++j) {
            const double moved = part[j] * speed[j];
            total[d * PULLED_UNITS + j] += moved;
            squares[d * PULLED_UNITS + j] += moved * moved;
        }
    }
}

// sums[k, p, unit]: the derivatives by what units read, at the nodes of panel p, times weight[k, p, node]. For the
// Legendre coefficients of these derivatives, times the speed of what is read: total[d, p] is the sum over all units,
// squares[d, p] that of their squares. The number of units must be a multiple of PULLED_UNITS.
inline void pull_units(const UnitPanels& x, double* sums, double* total, double* squares) {
    const size_t size = x.nodes * PULLED_UNITS;
    std::vector<double> row(size), totals(size), all(size);
    for (size_t p = 0; p < x.panels; ++p) {
        std::fill(totals.begin(), totals.end(), 0.0), std::fill(all.begin(), all.end(), 0.0);
        for (size_t first = 0; first < x.units; first += PULLED_UNITS)
            pull_some(x, p, first, row.data(), totals.data(), all.data(), sums);
        for (size_t d = 0; d < x.nodes; ++d) {
            double &sum = total[d * x.panels + p], &square = squares[d * x.panels + p];
            sum = square = 0.0;
            for (size_t j = d * PULLED_UNITS; j < (d + 1) * PULLED_UNITS; ++j) sum += totals[j], square += all[j];
        }
    }
}

}  // namespace gigrad
