// The one routing rule: which side of a split a value lies on, and when a path crosses it.
#pragma once

#include "core/forest.hpp"

namespace gigrad {

inline bool goes_left(const Forest& forest, const Node& node, double x) {
    if (node.set < 0)
        return (x <= node.threshold) | ((x != x) & node.missing_left);  // no branch: nobody can foretell it
    return std::isnan(x) ? node.missing_left : forest.in_set(node.set, x);
}

// When the path from s to e passes the split; only asked when they lie on different sides of it. A value that is not
// finite has nothing in between, and neither has a category: they change at one half, all at once. A value that the
// library takes for the stored threshold itself crosses where it stands.
inline double crossing_time(const Forest& forest, const Node& node, double s, double e) {
    if (node.at_once || !std::isfinite(s) || !std::isfinite(e)) return 0.5;
    if (node.interval() >= 0) {
        const Interval within = forest.intervals[node.interval()];
        if (within.holds(s)) return within.holds(e) ? 0.5 : 0.0;  // nothing in between: one half is the same both ways
        if (within.holds(e)) return 1.0;
    }
    double way = e - s, part = node.place - s;
    if (!std::isfinite(way)) {
        way = 0.5 * e - 0.5 * s;  // only the difference is too large to be written
        part = 0.5 * node.place - 0.5 * s;
    }
    return rounded_time(part / way);
}

}  // namespace gigrad
