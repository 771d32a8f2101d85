// A layer of smooth units on panels, pulled back in one pass: the derivatives of a score by what the units read, summed
// over the nodes of every panel, and the sizes of their Legendre coefficients times the speeds of what is read.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/wide.hpp"
#include "smooth/rows.hpp"

namespace gigrad {

struct UnitPanels {
    size_t panels, nodes, outputs, units, weights;
    const double* slope;            // (panels, nodes, units): of the units
    const double* cotangent;        // (panels, nodes, outputs): by the outputs of the layer above
    const double* matrix;           // (outputs, units): its weights
    const double* ends;             // (points, units): what the units read
    const int64_t* left;            // (panels,): the point that a panel's piece begins at; it ends at the next
    const double* rate;             // (panels,): 1 over the length of that piece
    const double* weight;           // (weights, panels, nodes)
    const double* to_coefficients;  // (nodes, nodes)
};

// to = factor row
GIGRAD_WIDE inline void scaled_row(double* __restrict to, double factor, const double* __restrict row, size_t columns) {
    for (size_t j = 0; j < columns; ++j) to[j] = factor * row[j];
}

// to *= row
GIGRAD_WIDE inline void multiply_row(double* __restrict to, const double* __restrict row, size_t columns) {
    for (size_t j = 0; j < columns; ++j) to[j] *= row[j];
}

// to = rate (next - from)
GIGRAD_WIDE inline void speed_row(const double* __restrict from, const double* __restrict next, double rate,
                                  size_t columns, double* __restrict to) {
    for (size_t j = 0; j < columns; ++j) to[j] = rate * (next[j] - from[j]);
}

// sums[k, p, unit]: the derivatives by what units read, at the nodes of panel p, times weight[k, p, node]. For the
// Legendre coefficients of these derivatives, times the speed of what is read: total[d, p] is the sum over all units,
// squares[d, p] that of their squares.
inline void pull_units(const UnitPanels& x, double* sums, double* total, double* squares) {
    const size_t nodes = x.nodes, units = x.units;
    std::vector<double> rows(nodes * units), speed(units), part(units);
    for (size_t p = 0; p < x.panels; ++p) {
        for (size_t q = 0; q < nodes; ++q) {
            const size_t at = p * nodes + q;
            double* row = &rows[q * units];
            scaled_row(row, x.cotangent[at * x.outputs], x.matrix, units);
            for (size_t o = 1; o < x.outputs; ++o)
                add_row(row, x.cotangent[at * x.outputs + o], x.matrix + o * units, units);
            multiply_row(row, x.slope + at * units, units);
        }
        for (size_t k = 0; k < x.weights; ++k) {
            const double* weight = x.weight + (k * x.panels + p) * nodes;
            double* to = sums + (k * x.panels + p) * units;
            scaled_row(to, weight[0], rows.data(), units);
            for (size_t q = 1; q < nodes; ++q) add_row(to, weight[q], &rows[q * units], units);
        }
        const double* from = x.ends + static_cast<size_t>(x.left[p]) * units;
        speed_row(from, from + units, x.rate[p], units, speed.data());
        for (size_t d = 0; d < nodes; ++d) {
            const double* factor = x.to_coefficients + d * nodes;
            scaled_row(part.data(), factor[0], rows.data(), units);
            for (size_t q = 1; q < nodes; ++q) add_row(part.data(), factor[q], &rows[q * units], units);
            total[d * x.panels + p] = row_product(part.data(), speed.data(), units);
            multiply_row(part.data(), speed.data(), units);
            squares[d * x.panels + p] = row_product(part.data(), part.data(), units);
        }
    }
}

}  // namespace gigrad
