// One node of a tree, as every walk reads it.
#pragma once

#include <cstdint>

namespace gigrad {

struct Node {
    double threshold;  // numeric split: x <= threshold goes left. Determines sides
    double place;      // position of the split on its column. Determines times; NaN: crossed at one half
    int32_t feature;   // column of a split, as rows are read (reading.hpp); -1 marks a leaf
    int32_t variable;  // the variable that gets the credit: the column's own number, or its group's
    union {
        int32_t left;
        int32_t value;  // leaf: offset of its numbers in `values`
    };
    int32_t right;
    int32_t set;        // category split: index of the set that goes left; below 0 for numeric splits, see interval()
    bool missing_left;  // whether NaN goes left
    bool at_once;       // a category, or a nominal column: no values in between
    uint8_t below;      // nodes below this one, at most 255 counted

    bool is_leaf() const { return feature < 0; }
    // Numeric split: the index in Forest of the interval of values that the library cannot distinguish from the
    // threshold; -1: none.
    int32_t interval() const { return set < -1 ? -2 - set : -1; }
    void set_interval(int32_t index) { set = -2 - index; }
};

// Times are multiples of 2^-30 in [0, 1], which float64 represents exactly: equal times are one corner, and no
// tolerance is needed. Adding this to a number of [0, 1] and subtracting it rounds to such a multiple, half to even.
constexpr double TIME_ROUNDER = 6291456.0;  // 1.5 * 2^22, where neighbouring numbers are 2^-30 apart

inline double rounded_time(double share) {
    share = share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
    return (share + TIME_ROUNDER) - TIME_ROUNDER;
}

// The credit of each variable that opens a leaf and of each that closes it, as fractions of its value, with signs.
struct Shares {
    double past, before;
};

// One branch on the path from a root to a leaf.
struct Turn {
    int32_t node;
    bool left;
};

}  // namespace gigrad
