// A layer of smooth units over a line, read by a few sums: asked at the nodes of panels, and pulled back to the line. One
// row of units at a time stays in the cache, from the line's values to the sums and back.
#pragma once

#include "smooth/rows.hpp"

namespace gigrad {

enum class Unit { tanh, sigmoid };

// units (n, columns): the function of the line's row at[i] and the next one, mixed `part[i]` of the way. sums (n, width):
// the units' products with the rows of `weight` (width, columns).
inline void units_at(Unit unit, const double* rows, size_t columns, const int64_t* at, const double* part, size_t n,
                     const double* weight, size_t width, double* units, double* sums) {
    std::vector<double> z(columns);
    for (size_t i = 0; i < n; ++i) {
        double* to = units + i * columns;
        between_rows(rows, columns, at + i, part + i, 1, z.data());
        unit == Unit::tanh ? tanh_each(z.data(), columns, to) : sigmoid_each(z.data(), columns, to);
        for (size_t k = 0; k < width; ++k) sums[i * width + k] = row_product(to, weight + k * columns, columns);
    }
}

// What panels need to know of d score / d line, for a score with the derivatives cotangent (panels * nodes, width) by the
// sums that `units_at` gives, at `nodes` nodes of each panel.
struct Pulled {
    double* line;           // (panels, columns): the sum over nodes, each times its weight
    double *sum, *squares;  // (degrees, panels): of its highest coefficients, times the line's moves, over all columns
};

// The highest coefficients that are looked at, at most.
constexpr size_t MAX_TOPS = 4;

// Columns are worked on four at a time, so that what belongs to them stays in registers over all nodes; the last few alone.
typedef double Four __attribute__((vector_size(4 * sizeof(double))));

template <class Lanes>
[[gnu::always_inline]] inline void load(const double* from, Lanes& to) {
    std::memcpy(&to, from, sizeof to);
}

// Some columns, from j on, of one panel: units (nodes, columns), cotangent (nodes, width), factors (1 + degrees, nodes) with
// the weights of the nodes first. Gives the line's sums, and adds to sum and squares (degrees,).
template <class Lanes, Unit unit, size_t degrees>
[[gnu::always_inline]] inline void pull_columns(const double* units, size_t columns, size_t j, size_t nodes,
                                                const double* cotangent, const double* weight, size_t width,
                                                const double* factors, const double* from, double share, double* line,
                                                Lanes* sum, Lanes* squares) {
    Lanes total[1 + degrees] = {};
    for (size_t q = 0; q < nodes; ++q) {
        Lanes g{}, w, y;
        for (size_t k = 0; k < width; ++k) {
            load(weight + k * columns + j, w);
            g += cotangent[q * width + k] * w;
        }
        load(units + q * columns + j, y);
        g *= unit == Unit::tanh ? 1.0 - y * y : y * (1.0 - y);
        for (size_t d = 0; d <= degrees; ++d) total[d] += factors[d * nodes + q] * g;
    }
    std::memcpy(line + j, total, sizeof(Lanes));
    Lanes here, there;
    load(from + j, here);
    load(from + columns + j, there);
    const Lanes move = share * (there - here);
    for (size_t d = 0; d < degrees; ++d) {
        const Lanes part = total[1 + d] * move;
        sum[d] += part;
        squares[d] += part * part;
    }
}

// All columns of one panel; sum and squares (degrees,) are `step` numbers apart.
template <Unit unit, size_t degrees>
[[gnu::always_inline]] inline void pull_panel(const double* units, size_t columns, size_t nodes,
                                              const double* cotangent, const double* weight, size_t width,
                                              const double* factors, const double* from, double share, double* line,
                                              double* sum, double* squares, size_t step) {
    Four sums[degrees] = {}, all_squares[degrees] = {};
    double last_sums[degrees] = {}, last_squares[degrees] = {};
    size_t j = 0;
    for (; j + 4 <= columns; j += 4)
        pull_columns<Four, unit, degrees>(units, columns, j, nodes, cotangent, weight, width, factors, from, share,
                                          line, sums, all_squares);
    for (; j < columns; ++j)
        pull_columns<double, unit, degrees>(units, columns, j, nodes, cotangent, weight, width, factors, from, share,
                                            line, last_sums, last_squares);
    for (size_t d = 0; d < degrees; ++d) {
        const Four a = sums[d], b = all_squares[d];
        sum[d * step] = ((a[0] + a[1]) + (a[2] + a[3])) + last_sums[d];
        squares[d * step] = ((b[0] + b[1]) + (b[2] + b[3])) + last_squares[d];
    }
}

template <Unit unit>
[[gnu::always_inline]] inline void pull_panels(const double* units, size_t columns, size_t panels, size_t nodes,
                                               const double* cotangent, const double* weight, size_t width,
                                               const double* node_weight, const double* top, size_t degrees,
                                               const double* rows, const int64_t* at, const double* share,
                                               const Pulled& out) {
    std::vector<double> factors((1 + degrees) * nodes);
    std::copy(top, top + degrees * nodes, factors.begin() + static_cast<std::ptrdiff_t>(nodes));
    for (size_t p = 0; p < panels; ++p) {
        const double *y = units + p * nodes * columns, *c = cotangent + p * nodes * width,
                     *from = rows + static_cast<size_t>(at[p]) * columns;
        std::copy(node_weight + p * nodes, node_weight + (p + 1) * nodes, factors.begin());
        double *line = out.line + p * columns, *sum = out.sum + p, *squares = out.squares + p, *f = factors.data();
        switch (degrees) {
            case 1:
                pull_panel<unit, 1>(y, columns, nodes, c, weight, width, f, from, share[p], line, sum, squares, panels);
                break;
            case 2:
                pull_panel<unit, 2>(y, columns, nodes, c, weight, width, f, from, share[p], line, sum, squares, panels);
                break;
            case 3:
                pull_panel<unit, 3>(y, columns, nodes, c, weight, width, f, from, share[p], line, sum, squares, panels);
                break;
            default:
                pull_panel<unit, 4>(y, columns, nodes, c, weight, width, f, from, share[p], line, sum, squares, panels);
        }
    }
}

// For 1 .. MAX_TOPS degrees.
GIGRAD_WIDE inline void units_back(Unit unit, const double* units, size_t columns, size_t panels, size_t nodes,
                                   const double* cotangent, const double* weight, size_t width,
                                   const double* node_weight, const double* top, size_t degrees, const double* rows,
                                   const int64_t* at, const double* share, const Pulled& out) {
    if (unit == Unit::tanh)
        pull_panels<Unit::tanh>(units, columns, panels, nodes, cotangent, weight, width, node_weight, top, degrees,
                                rows, at, share, out);
    else
        pull_panels<Unit::sigmoid>(units, columns, panels, nodes, cotangent, weight, width, node_weight, top, degrees,
                                   rows, at, share, out);
}

}  // namespace gigrad
