// The one routing rule: which side of a split a value lies on, and when a path crosses it.
#pragma once

#include "core/forest.hpp"

namespace gigrad {

inline bool goes_left(const Forest& forest, const Node& node, double x) {
    if (node.set < 0)
        return (x <= node.threshold) | ((x != x) & node.missing_left);  // no branch: it would be unpredictable
    return std::isnan(x) ? node.missing_left : forest.in_set(node.set, x);
}

// When the path from s to e passes the split; only called if they lie on different sides of it. Values that are not
// finite, and categories, have no values in between: they change at one half, all at once. A value that the library
// cannot distinguish from the threshold crosses at its own position.
inline double crossing_time(const Forest& forest, const Node& node, double s, double e) {
    if (node.at_once || !std::isfinite(s) || !std::isfinite(e)) return 0.5;
    if (node.interval() >= 0) {
        const Interval within = forest.intervals[node.interval()];
        if (within.holds(s)) return within.holds(e) ? 0.5 : 0.0;  // no values in between: one half is symmetric
        if (within.holds(e)) return 1.0;
    }
    double way = e - s, part = node.place - s;
    if (!std::isfinite(way)) {
        way = 0.5 * e - 0.5 * s;  // only the difference overflows
        part = 0.5 * node.place - 0.5 * s;
    }
    return rounded_time(part / way);
}

}  // namespace gigrad
