// The pieces of legs between neighbouring kinks of lines, and the corners on them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gigrad {

// Legs with the times at which their lines may have kinks, both ends included, and with the corners of trees.
struct LegPieces {
    size_t legs = 0;
    const int64_t* offsets = nullptr;                // (legs + 1,) leg i has the times offsets[i] .. offsets[i + 1] - 1
    const double* time = nullptr;                    // (points,)
    const int64_t *begin = nullptr, *end = nullptr;  // (legs,) the corners of a leg
    const double* corner_time = nullptr;             // (corners,)

    bool sound(size_t points, size_t corners) const {
        for (size_t i = 0; i < legs; ++i)
            if (offsets[i] < 0 || offsets[i + 1] < offsets[i] + 2 || begin[i] < 0 || begin[i] > end[i] ||
                end[i] > static_cast<int64_t>(corners))
                return false;
        return offsets[legs] <= static_cast<int64_t>(points);
    }

    size_t pieces() const { return static_cast<size_t>(offsets[legs] - offsets[0]) - legs; }

    // Calls each(leg, point at which a piece begins, first corner on it, the one after the last). A corner at an edge
    // belongs to the piece that begins there.
    template <class Each>
    void each_piece(Each each) const {
        for (size_t i = 0; i < legs; ++i) {
            int64_t at = begin[i];
            for (int64_t p = offsets[i]; p + 1 < offsets[i + 1]; ++p) {
                const int64_t first = at;
                if (p + 2 == offsets[i + 1])
                    at = end[i];
                else
                    while (at < end[i] && corner_time[at] < time[p + 1]) ++at;
                each(i, static_cast<size_t>(p), first, at);
            }
        }
    }
};

}  // namespace gigrad
