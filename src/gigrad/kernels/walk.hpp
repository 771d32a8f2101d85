// The node-major walk: for one tree and one block of pairs, the items at a node are split into its children's lists.
// The split is then a constant of the inner loop, and each pair costs only the nodes that its path really meets.
#pragma once

#include <limits>

#include "corner.hpp"

namespace gigrad {

// Pairs (s, e) by column: pair i has s = starts[column * start_step + i] and e = ends[column * end_step + i * end_next].
// With end_next = 0 all pairs share one end.
struct Block {
    const double* starts;
    size_t start_step;
    const double* ends;
    size_t end_step;
    size_t end_next;
    size_t size;

    double start(int32_t column, size_t pair) const { return starts[static_cast<size_t>(column) * start_step + pair]; }
    double end(int32_t column, size_t pair) const { return ends[static_cast<size_t>(column) * end_step + pair * end_next]; }
};

// The part of a pair's path that is inside a node: from `lo`, entered by crossing the split `in`, to `hi`, left by
// crossing the split `out` (node indices; -1: the path's own end). `tied`: several variables may share `lo` or `hi`,
// and the leaf has to sort it out.
struct Item {
    double lo, hi;
    int32_t pair;
    int32_t in, out;
    bool tied_lo, tied_hi;
};

class Walk {
  public:
    explicit Walk(const Forest& forest) : forest_(forest) {}

    // Tells the sink all that the tree's leaves give; a leaf's numbers begin at `forest.values[leaf.value]`.
    // `sink.crossing(pair, node, time, sign, leaf)`: the pair enters (+1) or leaves (-1) the leaf by crossing one split.
    // `sink.corner(pair, corner, leaf)`: several variables open or close it together.
    template <class Sink>
    void tree(int32_t root, const Block& block, Sink&& sink) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        items_.resize(std::max(items_.size(), block.size));
        for (size_t i = 0; i < block.size; ++i)
            items_[i] = Item{-inf, inf, static_cast<int32_t>(i), -1, -1, false, false};
        frames_.clear();
        frames_.push_back({root, 0, Turn{}, 0, block.size});
        while (!frames_.empty()) {
            const Frame frame = frames_.back();
            frames_.pop_back();
            if (frame.depth > 0) {
                path_.resize(frame.depth - 1);
                path_.push_back(frame.turn);
            } else {
                path_.clear();
            }
            const Node& node = forest_.nodes[frame.node];
            if (node.is_leaf())
                leaf(node, block, frame.begin, frame.end, sink);
            else
                split(node, frame, block);
        }
    }

  private:
    struct Frame {
        int32_t node;
        size_t depth;
        Turn turn;  // the last turn on the way here
        size_t begin, end;
    };
    const Forest& forest_;
    std::vector<Item> items_;  // a stack: the lists of the nodes that wait, the next one on top
    std::vector<Item> lefts_;
    std::vector<Frame> frames_;
    std::vector<Turn> path_;
    LeafCorner corner_;

    // The right list replaces the node's own, the left one follows it, so that dead lists are never kept.
    void split(const Node& node, const Frame& frame, const Block& block) {
        const size_t count = frame.end - frame.begin;
        if (lefts_.size() < count) lefts_.resize(count);
        Item* lefts = lefts_.data();
        Item* rights = items_.data() + frame.begin;
        const Item* item = rights;
        for (size_t i = 0; i < count; ++i, ++item) {
            const double s = block.start(node.feature, item->pair), e = block.end(node.feature, item->pair);
            const bool s_left = goes_left(forest_, node, s), e_left = goes_left(forest_, node, e);
            if (s_left == e_left) {
                *(s_left ? lefts : rights)++ = *item;
                continue;
            }
            const double time = crossing_time(node, s, e);
            const Item later = after(*item, time, frame.node), sooner = before(*item, time, frame.node);
            if (alive(later)) *(e_left ? lefts : rights)++ = later;
            if (alive(sooner)) *(s_left ? lefts : rights)++ = sooner;
        }
        const size_t middle = static_cast<size_t>(rights - items_.data());
        const size_t n_left = static_cast<size_t>(lefts - lefts_.data());
        if (items_.size() < middle + n_left) items_.resize(middle + n_left + count);
        std::copy(lefts_.begin(), lefts_.begin() + static_cast<std::ptrdiff_t>(n_left),
                  items_.begin() + static_cast<std::ptrdiff_t>(middle));
        if (middle > frame.begin)
            frames_.push_back({node.right, frame.depth + 1, Turn{frame.node, false}, frame.begin, middle});
        if (n_left) frames_.push_back({node.left, frame.depth + 1, Turn{frame.node, true}, middle, middle + n_left});
    }

    static bool alive(const Item& item) { return item.lo <= item.hi + TIE; }

    bool same_variable(int32_t a, int32_t b) const { return forest_.nodes[a].feature == forest_.nodes[b].feature; }

    Item after(Item item, double time, int32_t node) const {
        if (time > item.lo + TIE) {
            item.in = node;
            item.tied_lo = false;
        } else if (time >= item.lo - TIE && !same_variable(item.in, node)) {
            item.tied_lo = true;
        }
        item.lo = std::max(item.lo, time);
        return item;
    }

    Item before(Item item, double time, int32_t node) const {
        if (time < item.hi - TIE) {
            item.out = node;
            item.tied_hi = false;
        } else if (time <= item.hi + TIE && !same_variable(item.out, node)) {
            item.tied_hi = true;
        }
        item.hi = std::min(item.hi, time);
        return item;
    }

    template <class Sink>
    void leaf(const Node& node, const Block& block, size_t begin, size_t end, Sink& sink) {
        for (size_t i = begin; i < end; ++i) {
            const Item& item = items_[i];
            if (!item.tied_lo && !item.tied_hi && item.lo < item.hi - TIE) {
                if (item.in >= 0) sink.crossing(item.pair, item.in, item.lo, 1.0, node);
                if (item.out >= 0) sink.crossing(item.pair, item.out, item.hi, -1.0, node);
                continue;
            }
            const auto value_at = [&](int32_t column) {
                return std::make_pair(block.start(column, item.pair), block.end(column, item.pair));
            };
            if (corner_.find(forest_, path_, value_at)) sink.corner(item.pair, corner_, node);
        }
    }
};

}  // namespace gigrad
