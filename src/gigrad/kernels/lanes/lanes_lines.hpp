// Linear leaves (smooth/leaf_lines.hpp), for pairs that share their end and many starts.
#pragma once

#include "lanes/lanes_exact.hpp"
#include "smooth/leaf_lines.hpp"

namespace gigrad {

class LineLeaf {
public:
    // Adds the terms of a leaf for one output to the table of credit of a row, for n of its starts. The path to the
    // leaf, and the end, are set in `leaf`.
    void add(SharedLeaf& leaf, const LineRows& rows, const LeafLines::Part* part, const LeafLines::Part* stop,
             size_t row, const int32_t* starts, size_t n, const double* weights, double* table) {
        double* const credit = table + part->output;
        double constant = 0.0;
        columns_.clear();
        players_.clear();
        for (; part != stop; ++part) {
            if (part->column < 0) {
                constant += part->factor;
                continue;
            }
            const auto j = static_cast<size_t>(part->column);
            columns_.push_back({rows.from + j * rows.from_step, rows.to[row * rows.to_step + j], part->factor, {}});
            players_.push_back(static_cast<size_t>(rows.player[j]));
        }
        leaf.set_line(columns_.data(), static_cast<int>(columns_.size()), constant);
        leaf.add(starts, n, weights);
        leaf.flush(
            [&](int32_t variable, double mass) { credit[static_cast<size_t>(variable) * rows.outputs] += mass; });
        for (size_t c = 0; c < columns_.size(); ++c) {
            const double* const mass = columns_[c].mass;
            credit[players_[c] * rows.outputs] += columns_[c].factor * (mass[0] + mass[1] + mass[2] + mass[3]);
        }
    }

private:
    std::vector<LeafColumn> columns_;  // of one leaf
    std::vector<size_t> players_;
};

}  // namespace gigrad
