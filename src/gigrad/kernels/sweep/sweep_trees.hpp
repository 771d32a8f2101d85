// The trees in the layout of a sweep: small nodes in breadth-first order, and their distinct tests.
#pragma once

#include "core/side.hpp"
#include "sweep/sweep.hpp"
#include "walk/trace.hpp"

namespace gigrad {

class SweepTrees {
public:
    // Null if the trees do not fit, or if the table of tests for each pair would cost more than the walk.
    static std::unique_ptr<const SweepTrees> make(const Forest& forest) {
        if (forest.nodes.size() > MOST_NODES || !forest.split_ids().repeat()) return nullptr;
        std::unique_ptr<SweepTrees> out(new SweepTrees(forest));
        const size_t n = out->tests.size();
        const bool fits = out->fits_ && n <= SWEEP_MAX_TESTS && sweep_pays(n, forest.n_trees());
        return fits ? std::move(out) : nullptr;
    }

    size_t n_leaves() const { return n_leaves_; }
    // Stands for the path's own ends, and for the test of a leaf.
    uint32_t none() const { return static_cast<uint32_t>(tests.size()); }
    // Whether every split has one test only: tests do not differ in the side of missing values or in categories.
    bool tests_are_splits() const { return static_cast<size_t>(split_of[none()]) == tests.size(); }
    // How many of a column's thresholds lie below each of N values: in parallel, since each search is a dependency
    // chain. All take the same number of steps, and no branch depends on a value.
    template <size_t N>
    void thresholds_below(size_t column, const double* x, uint16_t* out) const {
        const double* const begin = threshold.data() + column_begin[column];
        auto n = static_cast<uint32_t>(categories_begin[column] - column_begin[column]);
        uint32_t at[N] = {};
        for (; n > 1; n -= n / 2)
            for (size_t i = 0; i < N; ++i)
                at[i] += n / 2 & (0u - static_cast<uint32_t>(begin[at[i] + n / 2 - 1] < x[i]));
        for (size_t i = 0; i < N; ++i) out[i] = static_cast<uint16_t>(n == 0 ? 0 : at[i] + (begin[at[i]] < x[i]));
    }
    // Of the deepest leaf.
    size_t depth() const { return depth_; }

    // The distinct tests: column, threshold (or categories) and the side of missing values, as one of the nodes of
    // each. Those of a column are contiguous: thresholds in order, then categories.
    std::vector<Node> tests;
    std::vector<double> threshold;     // of each test; NaN for categories
    std::vector<double> place_of;      // of each test; NaN for those that change at one half
    std::vector<char> missing_left;    // of each test
    std::vector<int32_t> variable_of;  // of each test, and of none
    std::vector<int32_t> split_of;     // of each test, and of SWEEP_NONES after them: its number in SplitIds
    std::vector<int32_t> test_of;      // of each split: the first of its tests, which follow one another
    std::vector<int32_t> column_begin, categories_begin;  // of each column, (columns + 1) and (columns)
    std::vector<double>
        least_way;  // of each column: longer ways have plain codes; none has in a column without values between
    std::vector<char> in_order;  // of each column: thresholds in order have places in order

    // The side of each level of a column for its category tests: a lookup table, if there are not too many.
    struct Levels {
        size_t n = 0;  // levels that some set can have; then one for missing values, one for all others
        size_t n_tests = 0;
        std::vector<uint8_t> left;  // (n + 2, tests); empty: too many

        uint16_t of(double x) const {
            if (x != x) return static_cast<uint16_t>(n);
            return x > -1.0 && x < static_cast<double>(n) ? static_cast<uint16_t>(x) : static_cast<uint16_t>(n + 1);
        }
        const uint8_t* sides(size_t level) const { return left.data() + level * n_tests; }
    };
    std::vector<Levels> levels;  // of each column

    std::vector<uint32_t> nodes;  // place 0 is a leaf of no tree
    std::vector<int32_t> roots;
    std::vector<VisitValue> gives;  // of leaves, by place
    std::vector<SweepWay> ways;     // of leaves; empty where some are too deep
    std::vector<int32_t> way_of;    // of leaves, by place
    std::vector<int32_t> tree_of, node_of,
        parent;  // of each place: its tree and node in the forest, the place above; -1 for none

private:
    bool fits_ = true;
    size_t n_leaves_ = 0, depth_ = 0;

    // Places are numbered tree by tree and level by level, so that the two children of a node are neighbours.
    explicit SweepTrees(const Forest& forest) {
        const std::vector<int32_t> test_of_node = find_tests(forest);
        place(-1, -1, -1);
        std::vector<char> seen(forest.nodes.size(), 0);
        for (size_t t = 0; t < forest.n_trees() && fits_; ++t) {
            roots.push_back(static_cast<int32_t>(nodes.size()));
            place(static_cast<int32_t>(t), forest.roots[t], -1);
            for (auto at = static_cast<size_t>(roots.back()); at < nodes.size() && fits_; ++at)
                put(forest, test_of_node, at, seen);
        }
        if (fits_) find_ways();
    }

    // Numbers the distinct splits by column, time of crossing and sides; returns the number of each node's.
    std::vector<int32_t> find_tests(const Forest& forest) {
        const auto& all = forest.nodes;
        std::vector<int32_t> order, of_node(all.size(), -1);
        for (size_t i = 0; i < all.size(); ++i)
            if (!all[i].is_leaf()) order.push_back(static_cast<int32_t>(i));
        const auto key = [&](int32_t i) {
            const Node& n = all[i];
            return std::make_tuple(time_key(n, forest.intervals), std::max(n.set, -1), n.missing_left);
        };
        std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
        for (size_t i = 0; i < order.size(); ++i) {
            const Node& node = all[order[i]];
            if (i == 0 || key(order[i]) != key(order[i - 1])) {
                tests.push_back(node);
                threshold.push_back(node.set >= 0 ? std::numeric_limits<double>::quiet_NaN() : node.threshold);
                place_of.push_back(node.place);
                missing_left.push_back(node.missing_left);
                variable_of.push_back(node.variable);
                split_of.push_back(forest.split_ids().of_node[order[i]]);
            }
            of_node[order[i]] = static_cast<int32_t>(tests.size()) - 1;
        }
        variable_of.push_back(0);
        test_of.assign(forest.split_ids().size(), 0);
        for (size_t t = tests.size(); t-- > 0;) test_of[split_of[t]] = static_cast<int32_t>(t);
        for (int32_t i = 0; i < SWEEP_NONES; ++i) split_of.push_back(forest.split_ids().none() + i);
        column_begin.assign(forest.n_columns() + 1, 0);
        for (const Node& test : tests) ++column_begin[static_cast<size_t>(test.feature) + 1];
        for (size_t j = 0; j < forest.n_columns(); ++j) column_begin[j + 1] += column_begin[j];
        categories_begin.assign(column_begin.begin(), column_begin.end() - 1);
        for (const Node& test : tests) categories_begin[test.feature] += test.set < 0;
        for (size_t j = 0; j < forest.n_columns(); ++j) {
            const Forest::Column& column = forest.columns[j];
            least_way.push_back(column.at_once ? std::numeric_limits<double>::infinity() : 8.0 * column.least_way);
            in_order.push_back(
                std::is_sorted(place_of.data() + column_begin[j], place_of.data() + categories_begin[j]));
        }
        set_levels(forest);
        return of_node;
    }

    // Tabulates the sides of category splits by code, for columns whose tables stay small.
    void set_levels(const Forest& forest) {
        levels.resize(forest.n_columns());
        for (size_t j = 0; j < levels.size(); ++j) {
            Levels& mine = levels[j];
            const auto begin = static_cast<size_t>(categories_begin[j]),
                       stop = static_cast<size_t>(column_begin[j + 1]);
            mine.n_tests = stop - begin;
            for (size_t t = begin; t < stop; ++t)
                mine.n = std::max(mine.n, 32 * static_cast<size_t>(forest.set_start[tests[t].set + 1] -
                                                                   forest.set_start[tests[t].set]));
            if (mine.n > MOST_LEVELS || (mine.n + 2) * mine.n_tests > MOST_SIDES) {
                mine.n = 0;
                continue;
            }
            mine.left.resize((mine.n + 2) * mine.n_tests);
            constexpr double nan = std::numeric_limits<double>::quiet_NaN();
            for (size_t level = 0; level < mine.n + 2; ++level)
                for (size_t t = begin; t < stop; ++t)
                    mine.left[level * mine.n_tests + t - begin] = goes_left(forest, tests[t],
                                                                            level < mine.n ? static_cast<double>(level)
                                                                            : level == mine.n ? nan
                                                                                              : -1.0);
        }
    }

    // The tests and sides on the path from each leaf to its root, where all leaves are shallow enough.
    void find_ways() {
        if (depth_ > SWEEP_CORNER_DEPTH) return;
        ways.reserve(n_leaves_);
        way_of.assign(nodes.size(), 0);
        for (size_t leaf = 1; leaf < nodes.size(); ++leaf) {
            if ((nodes[leaf] & SWEEP_TEST) != none()) continue;
            SweepWay way{};
            std::fill(std::begin(way.test), std::end(way.test), static_cast<uint16_t>(none()));
            size_t d = 0;
            for (auto at = static_cast<int32_t>(leaf), above = parent[at]; above >= 0;
                 at = above, above = parent[at], ++d) {
                way.test[d] = static_cast<uint16_t>(nodes[above] & SWEEP_TEST);
                const bool left =
                    static_cast<uint32_t>(at - above) == (nodes[above] >> SWEEP_OFFSET_SHIFT & SWEEP_MAX_OFFSET);
                way.left = static_cast<uint16_t>(way.left | left << d);
            }
            way_of[leaf] = static_cast<int32_t>(ways.size());
            ways.push_back(way);
        }
    }

    void place(int32_t tree, int32_t index, int32_t above) {
        nodes.push_back(none() | SWEEP_LEFT_LEAF | SWEEP_RIGHT_LEAF);  // a leaf, until it is put there
        tree_of.push_back(tree);
        node_of.push_back(index);
        parent.push_back(above);
        gives.push_back(VisitValue{});
    }

    // Completes the node at a place, and adds its children after all that are there.
    void put(const Forest& forest, const std::vector<int32_t>& test_of_node, size_t at, std::vector<char>& seen) {
        const int32_t index = node_of[at], tree = tree_of[at];
        const Node& node = forest.nodes[index];
        if (seen[index]++) fits_ = false;  // a child with two parents has no single path from the root
        if (node.is_leaf()) {
            ++n_leaves_;
            size_t depth = 0;
            for (int32_t above = parent[at]; above >= 0; above = parent[above]) ++depth;
            depth_ = std::max(depth_, depth);
            if (forest.n_outputs() == 1)
                gives[at].number = forest.values[node.value];
            else
                gives[at].place = {node.value, tree};
            return;
        }
        const size_t offset = nodes.size() - at;
        if (offset > SWEEP_MAX_OFFSET) fits_ = false;
        const auto is_leaf = [&](int32_t child) { return static_cast<uint32_t>(forest.nodes[child].is_leaf()); };
        nodes[at] = static_cast<uint32_t>(test_of_node[index]) | static_cast<uint32_t>(offset) << SWEEP_OFFSET_SHIFT |
                    is_leaf(node.left) * SWEEP_LEFT_LEAF | is_leaf(node.right) * SWEEP_RIGHT_LEAF;
        for (const int32_t child : {node.left, node.right}) place(tree, child, static_cast<int32_t>(at));
    }
};

// Made on first use; safe to call from several threads.
inline const SweepTrees* Forest::sweep_trees() const {
    std::call_once(sweep_trees_once_, [this] { sweep_trees_ = SweepTrees::make(*this); });
    return sweep_trees_.get();
}

}  // namespace gigrad
