// The one routing rule: which side of a split a value lies on, and when a path crosses it.
#pragma once

#include "forest.hpp"

namespace gigrad {

// Differences e - s that float32 can hold the inverse of, with room to spare.
constexpr double LEAST_WAY = 1e-33, LARGEST_WAY = 1e33;

inline bool goes_left(const Forest& forest, const Node& node, double x) {
    if (node.set < 0) return (x <= node.threshold) | ((x != x) & node.missing_left);  // no branch: nobody can foretell it
    return std::isnan(x) ? node.missing_left : forest.in_set(node.set, x);
}

// When the path from s to e passes the split; only asked when they lie on different sides of it. A value that is not
// finite has nothing in between, and neither has a category: they change at one half, all at once.
inline double crossing_time(const Node& node, double s, double e) {
    if (node.set >= 0) return 0.5;
    double way = e - s, part = node.threshold - s;
    if (!std::isfinite(way)) {
        if (!std::isfinite(s) || !std::isfinite(e)) return 0.5;
        way = 0.5 * e - 0.5 * s;  // only the difference is too large to be written
        part = 0.5 * node.threshold - 0.5 * s;
    }
    const double time = part / way;
    return time > 0.0 ? (time < 1.0 ? time : 1.0) : 0.0;
}

}  // namespace gigrad
