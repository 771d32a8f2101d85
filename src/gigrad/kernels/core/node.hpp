// One node of a tree, as every walk reads it.
#pragma once

#include <cstdint>

namespace gigrad {

struct Node {
    double threshold;  // numeric split: x <= threshold goes left. It decides sides
    double place;      // where the split stands on its column. It decides times; NaN: changes at one half
    int32_t feature;   // column of a split, as rows are read (reading.hpp); -1 marks a leaf
    int32_t variable;  // who earns what happens here: the column's own number, or its group's
    union {
        int32_t left;
        int32_t value;  // leaf: where its numbers begin in `values`
    };
    int32_t right;
    int32_t set;        // category split: index of the set that goes left; below 0 for numeric splits, see interval()
    bool missing_left;  // the side that NaN takes
    bool at_once;       // a category, or a nominal column: there is nothing between two values
    uint8_t below;      // nodes below this one, at most 255 counted

    bool is_leaf() const { return feature < 0; }
    // Numeric split: values of an interval are the stored threshold to the library, by its number in Forest; -1: none.
    int32_t interval() const { return set < -1 ? -2 - set : -1; }
    void set_interval(int32_t index) { set = -2 - index; }
};

// Times are multiples of 2^-30 in [0, 1], which float64 holds exactly: equal times are one corner, and no tolerance is
// needed. Added to a number of [0, 1] and taken off again, this rounds it to such a multiple, half to even.
constexpr double TIME_ROUNDER = 6291456.0;  // 1.5 * 2^22, where neighbouring numbers are 2^-30 apart

inline double rounded_time(double share) {
    share = share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
    return (share + TIME_ROUNDER) - TIME_ROUNDER;
}

// What a leaf gives to each of the variables that open it and of those that close it, as parts of its value, with signs.
struct Shares {
    double past, before;
};

// One turn on the way from a root to a leaf.
struct Turn {
    int32_t node;
    bool left;
};

}  // namespace gigrad
