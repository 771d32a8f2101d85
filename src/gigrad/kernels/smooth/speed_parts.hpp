// The contributions of the columns of the rows to the speed of a curve on panels: their Legendre coefficients and
// sizes.
#pragma once

#include "smooth/rows.hpp"

namespace gigrad {

// Results of `speed_parts`, for panels (n) of `nodes` nodes each; `top` is the smaller of `nodes` and 4.
struct SpeedParts {
    double* last;   // (top, n, columns): sizes of the highest coefficients of every part
    double* first;  // (n,): the largest of all parts' coefficients of degree 0
    double* above;  // (nodes, n): for each degree, the largest part's sum of sizes from that degree on
    double* total;  // (nodes, n): the coefficients of the sum of all parts
};

// sizes[c] += |coefficients[c]|; the largest of them.
GIGRAD_WIDE inline double add_sizes(const double* __restrict coefficients, size_t columns, double* __restrict sizes) {
    for (size_t c = 0; c < columns; ++c) sizes[c] += std::fabs(coefficients[c]);
    double most = 0.0;
    for (size_t c = 0; c < columns; ++c) most = sizes[c] > most ? sizes[c] : most;
    return most;
}

// `rows` (n, nodes, columns) are the parts at the nodes, `to_coefficients` (nodes, nodes) maps values there to
// coefficients.
inline void speed_parts(const double* rows, size_t n, size_t nodes, size_t columns, const double* to_coefficients,
                        const SpeedParts& out) {
    const size_t top = std::min<size_t>(nodes, 4);
    std::vector<double> one(columns), sizes(columns);
    for (size_t p = 0; p < n; ++p) {
        const double* at = rows + p * nodes * columns;
        std::fill(sizes.begin(), sizes.end(), 0.0);
        for (size_t d = nodes; d-- > 0;) {
            std::fill(one.begin(), one.end(), 0.0);
            for (size_t q = 0; q < nodes; ++q)
                add_row(one.data(), to_coefficients[d * nodes + q], at + q * columns, columns);
            out.above[d * n + p] = add_sizes(one.data(), columns, sizes.data());
            double sum = 0.0, most = 0.0;
            for (const double c : one) sum += c;
            out.total[d * n + p] = sum;
            if (d + top >= nodes) {
                double* to = out.last + ((d + top - nodes) * n + p) * columns;
                for (size_t c = 0; c < columns; ++c) to[c] = std::fabs(one[c]);
            }
            if (d == 0) {
                for (const double c : one) most = std::max(most, std::fabs(c));
                out.first[p] = most;
            }
        }
    }
}

}  // namespace gigrad
