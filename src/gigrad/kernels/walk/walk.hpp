// The node-major walk: for one tree and one block of pairs, the items at a node are split into its children's lists.
// The split is then constant in the inner loop, and each pair costs only the nodes on its path.
#pragma once

#include <limits>

#include "walk/corner.hpp"

namespace gigrad {

// A pair of a block: which start and which end.
struct Pair {
    int32_t start, end;
};

// Starts by column, ends by any steps: s = starts[column * start_step + start],
// e = ends[column * end_column_step + end * end_step].
struct Block {
    const double* starts;
    size_t start_step;
    const double* ends;
    size_t end_column_step, end_step;

    double start(int32_t column, Pair pair) const {
        return starts[static_cast<size_t>(column) * start_step + static_cast<size_t>(pair.start)];
    }
    double end(int32_t column, Pair pair) const {
        return ends[static_cast<size_t>(column) * end_column_step + static_cast<size_t>(pair.end) * end_step];
    }
};

// The part of a pair's path that is inside a node: from `lo`, entered by crossing the split `in`, to `hi`, left by
// crossing the split `out` (node indices; -1: the path's own end). `tied`: several variables may share `lo` or `hi`,
// which is resolved at the leaf.
struct Item {
    double lo, hi;
    Pair pair;
    int32_t in, out;
    bool tied_lo, tied_hi;
};

class Walk {
public:
    explicit Walk(const Forest& forest) : forest_(forest) {}

    // Passes all contributions of the tree's leaves to the sink; a leaf's numbers begin at `forest.values[leaf.value]`.
    // `sink.crossing(pair, node, time, sign, leaf)`: the pair enters (+1) or leaves (-1) the leaf by crossing one
    // split. `sink.corner(pair, corner, leaf)`: several variables open or close it at the same time. Starts
    // 0..n_starts-1, each with the end of the same number, or all with end 0 where `shared_end`.
    template <class Sink>
    void tree(int32_t root, const Block& block, size_t n_starts, bool shared_end, Sink&& sink) {
        items_.resize(std::max(items_.size(), n_starts));
        for (size_t i = 0; i < n_starts; ++i)
            items_[i] = whole(Pair{static_cast<int32_t>(i), shared_end ? 0 : static_cast<int32_t>(i)});
        path_.clear();
        walk(root, block, n_starts, sink);
    }

    // The same for the subtree of `node`, given the path from the root to it, and for some pairs.
    template <class Sink>
    void below(int32_t node, const Turn* path, size_t depth, const Block& block, const Pair* pairs, size_t n,
               Sink&& sink) {
        if (forest_.nodes[node].is_leaf()) {
            for (const Pair* pair = pairs; pair != pairs + n; ++pair)
                exact_leaf(forest_.nodes[node], path, depth, block, *pair, sink);
            return;
        }
        path_.assign(path, path + depth);
        items_.resize(std::max(items_.size(), n));
        size_t count = 0;
        for (const Pair* pair = pairs; pair != pairs + n; ++pair) count += on_the_way(block, *pair, items_[count]);
        if (count) walk(node, block, count, sink);
    }

private:
    struct Frame {
        int32_t node;
        size_t depth;
        Turn turn;  // the last branch on the path
        size_t begin, end;
    };
    const Forest& forest_;
    std::vector<Item> items_;  // a stack of the lists of pending nodes, the next one on top
    std::vector<Item> lefts_;
    std::vector<Frame> frames_;
    std::vector<Turn> path_;
    std::vector<Turn> asked_;  // those of path_ that test the variable of the current node
    LeafCorner corner_;

    static Item whole(Pair pair) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        return Item{-inf, inf, pair, -1, -1, false, false};
    }

    // The part of a pair's path that follows `path_`; false if there is none.
    bool on_the_way(const Block& block, Pair pair, Item& item) const {
        item = whole(pair);
        for (const Turn& turn : path_) {
            const Node& split = forest_.nodes[turn.node];
            const double s = block.start(split.feature, pair), e = block.end(split.feature, pair);
            const bool s_here = goes_left(forest_, split, s) == turn.left,
                       e_here = goes_left(forest_, split, e) == turn.left;
            if (s_here && e_here) continue;
            if (!s_here && !e_here) return false;
            const double time = crossing_time(forest_, split, s, e);
            item = e_here ? after(item, time, turn.node) : before(item, time, turn.node);
            if (!alive(item)) return false;
        }
        return true;
    }

    // Takes the first n items through the tree below `node`; `path_` leads to it.
    template <class Sink>
    void walk(int32_t node_index, const Block& block, size_t n, Sink& sink) {
        const size_t above = path_.size();
        frames_.clear();
        frames_.push_back({node_index, 0, Turn{}, 0, n});
        while (!frames_.empty()) {
            const Frame frame = frames_.back();
            frames_.pop_back();
            path_.resize(above + frame.depth - (frame.depth > 0));
            if (frame.depth > 0) path_.push_back(frame.turn);
            const Node& node = forest_.nodes[frame.node];
            if (node.is_leaf())
                leaf(node, block, frame.begin, frame.end, sink);
            else
                split(node, frame, block);
        }
    }

    // The right list replaces the node's own, the left one follows it, so that dead lists are never kept.
    void split(const Node& node, const Frame& frame, const Block& block) {
        const size_t count = frame.end - frame.begin;
        if (lefts_.size() < count) lefts_.resize(count);
        bool collected = false;
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
            const double time = crossing_time(forest_, node, s, e);
            const Item later = after(*item, time, frame.node), sooner = before(*item, time, frame.node);
            Known known = Known::nothing;
            if (time == item->lo ||
                time == item->hi) {  // only a variable that crosses then can have been tested before
                if (!collected) collect_asked(node.variable);
                collected = true;
                known = known_at(time, block, item->pair);
            }
            if (alive(later) && known != Known::before) *(e_left ? lefts : rights)++ = later;
            if (alive(sooner) && known != Known::past) *(s_left ? lefts : rights)++ = sooner;
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

    void collect_asked(int32_t variable) {
        asked_.clear();
        for (const Turn& turn : path_)
            if (forest_.nodes[turn.node].variable == variable) asked_.push_back(turn);
    }

    // Whether the tested variable was already assumed to be past, or before, its crossing at `time` on this path. Both
    // at once is not a coalition. A leaf would detect this too, but for a category that is tested ten times on a path
    // there would be a thousand leaves instead of two.
    enum class Known : uint8_t { nothing, past, before };
    Known known_at(double time, const Block& block, Pair pair) const {
        for (const Turn& turn : asked_) {
            const Node& split = forest_.nodes[turn.node];
            const double s = block.start(split.feature, pair), e = block.end(split.feature, pair);
            const bool s_here = goes_left(forest_, split, s) == turn.left,
                       e_here = goes_left(forest_, split, e) == turn.left;
            if (s_here != e_here && crossing_time(forest_, split, s, e) == time)
                return e_here ? Known::past : Known::before;
        }
        return Known::nothing;
    }

    static bool alive(const Item& item) { return item.lo <= item.hi; }

    bool same_variable(int32_t a, int32_t b) const { return forest_.nodes[a].variable == forest_.nodes[b].variable; }

    Item after(Item item, double time, int32_t node) const {
        if (time > item.lo) {
            item.in = node;
            item.tied_lo = false;
        } else if (time == item.lo && !same_variable(item.in, node)) {
            item.tied_lo = true;
        }
        item.lo = std::max(item.lo, time);
        return item;
    }

    Item before(Item item, double time, int32_t node) const {
        if (time < item.hi) {
            item.out = node;
            item.tied_hi = false;
        } else if (time == item.hi && !same_variable(item.out, node)) {
            item.tied_hi = true;
        }
        item.hi = std::min(item.hi, time);
        return item;
    }

    template <class Sink>
    void leaf(const Node& node, const Block& block, size_t begin, size_t end, Sink& sink) {
        for (size_t i = begin; i < end; ++i) {
            const Item& item = items_[i];
            if (!item.tied_lo && !item.tied_hi && item.lo < item.hi) {
                if (item.in >= 0) sink.crossing(item.pair, item.in, item.lo, 1.0, node);
                if (item.out >= 0) sink.crossing(item.pair, item.out, item.hi, -1.0, node);
                continue;
            }
            exact_leaf(node, path_.data(), path_.size(), block, item.pair, sink);
        }
    }

    template <class Sink>
    void exact_leaf(const Node& node, const Turn* path, size_t depth, const Block& block, Pair pair, Sink& sink) {
        const auto value_at = [&](int32_t column) {
            return std::make_pair(block.start(column, pair), block.end(column, pair));
        };
        if (corner_.find(forest_, path, depth, value_at)) sink.corner(pair, corner_, node);
    }
};

}  // namespace gigrad
