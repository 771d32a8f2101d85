// One node of a tree, as every walk reads it.
#pragma once

#include <cstdint>

namespace gigrad {

struct Node {
    double threshold;   // numeric split: x <= threshold goes left
    int32_t feature;    // column of a split; -1 marks a leaf
    int32_t left;
    int32_t right;
    int32_t set;        // category split: index of the set that goes left; -1 for numeric splits
    int32_t value;      // leaf: where its numbers begin in `values`
    bool missing_left;  // the side that NaN takes
    uint8_t below;      // nodes below this one, at most 255 counted

    bool is_leaf() const { return feature < 0; }
};

// Crossings closer than this in path time are one corner.
constexpr double TIE = 1e-9;

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
