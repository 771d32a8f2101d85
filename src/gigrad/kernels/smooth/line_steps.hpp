// The steps of layers with kinks along straight parts of paths, what is kept of a leg for the backward pass, and the
// loops over units that both passes share; line_net.hpp says how they work together.
#pragma once

#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "smooth/functions.hpp"
#include "smooth/products.hpp"
#include "limits.hpp"

namespace gigrad {

enum class LineOperation { straight, units, affine, gather, sum };

struct LineStep {
    LineOperation operation = LineOperation::straight;
    size_t width = 0;
    std::vector<size_t> in;                          // earlier steps
    std::vector<double> weight, rows, bias;          // affine: (width, read), (read, width), (width,)
    double below = 0.0, above = 1.0, zero = 0.0;     // units: the slopes on either side of zero, and there
    std::vector<std::pair<size_t, size_t>> columns;  // gather: which of `in`, and its column
    size_t first = 0;                                // straight: its first column among all straight ones
    bool over_units = false;                         // affine: whether its input are units
    bool asked = true;                               // units: whether they are inputs of anything but layers
};

class LineNet {
public:
    std::vector<LineStep> steps;
    std::vector<size_t> ends;        // the output steps, concatenated
    size_t straight = 0, width = 0;  // columns of all straight steps, of all ends

    void finish() {
        for (LineStep& s : steps)
            if (s.operation == LineOperation::units) s.asked = false;
        for (LineStep& s : steps) {
            s.over_units = s.operation == LineOperation::affine && steps[s.in[0]].operation == LineOperation::units;
            if (!s.over_units)
                for (const size_t in : s.in) steps[in].asked = true;
        }
        for (const size_t end : ends) steps[end].asked = true, width += steps[end].width;
    }
};

// A change of one unit's slope at the beginning of a piece of the units' own grid.
struct Bend {
    size_t piece, unit;
    double step;
};

// Data of one step on one leg for the backward pass.
struct StepTrace {
    std::vector<double> time;   // its grid
    std::vector<double> slope;  // units: their slopes at the beginning
    std::vector<Bend> bends;    // units, in order of time
};

using LegTrace = std::vector<StepTrace>;

inline double unit_slope(const LineStep& s, double z) { return z > 0.0 ? s.above : (z < 0.0 ? s.below : s.zero); }

// flags[i]: whether any of the i-th CHECKED_UNITS units has another sign at a or at b than `side`.
GIGRAD_WIDE inline void other_sides(const double* __restrict a, const double* __restrict b,
                                    const double* __restrict side, size_t n, uint8_t* __restrict flags) {
    const auto bits = [](const double* x, size_t j) {
        int64_t out;
        std::memcpy(&out, x + j, sizeof out);
        return out;
    };
    size_t begin = 0;
    for (; begin + CHECKED_UNITS <= n; begin += CHECKED_UNITS) {
        int64_t any = 0;
        for (size_t j = begin; j < begin + CHECKED_UNITS; ++j) {
            const int64_t s = bits(side, j);
            any |= (bits(a, j) ^ s) | (bits(b, j) ^ s);
        }
        flags[begin / CHECKED_UNITS] = any < 0;
    }
    int64_t any = 0;
    for (size_t j = begin; j < n; ++j) any |= (bits(a, j) ^ bits(side, j)) | (bits(b, j) ^ bits(side, j));
    if (begin < n) flags[begin / CHECKED_UNITS] = any < 0;
}

// Whether both ends of a unit's input, and the unit before, are strictly on the same side of zero. Without branches,
// which would be mispredicted for every other unit: the search for kinks took 1.5 times as long with them.
inline bool on_one_side(double a, double b, double side) {
    return (static_cast<unsigned>(a * side > 0.0) & static_cast<unsigned>(b * side > 0.0)) != 0;
}

// to = from + time slope; then the slope turns by a multiple of a row.
GIGRAD_WIDE inline void step_row(const double* __restrict from, double time, double factor,
                                 const double* __restrict row, size_t n, double* __restrict slope,
                                 double* __restrict to) {
    for (size_t j = 0; j < n; ++j) {
        to[j] = from[j] + time * slope[j];
        slope[j] += factor * row[j];
    }
}

// to += a b
GIGRAD_WIDE inline void add_products(const double* __restrict a, const double* __restrict b, size_t n,
                                     double* __restrict to) {
    for (size_t j = 0; j < n; ++j) to[j] += a[j] * b[j];
}

GIGRAD_WIDE inline void unit_values(const double* __restrict z, double below, double above, size_t n,
                                    double* __restrict out) {
    for (size_t j = 0; j < n; ++j) out[j] = z[j] > 0.0 ? above * z[j] : (z[j] == z[j] ? below * z[j] : z[j]);
}

// Grows to n numbers; existing ones are not changed.
inline void make_room(std::vector<double>& buffer, size_t n) {
    if (buffer.size() < n) buffer.resize(n);
}

}  // namespace gigrad
