// The trees in the layout of the walks: packed, owned, and checked once, so that no walk meets an invalid index.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "core/node.hpp"
#include "policy.hpp"
#include "limits.hpp"

namespace gigrad {

// Borrowed arrays in the layout of gigrad.graph.TreeEnsemble; see there for their meaning.
template <class T>
struct Span {
    const T* data;
    size_t size;
    const T& operator[](size_t i) const { return data[i]; }
};

struct ForestArrays {
    int64_t n_columns;
    Span<int32_t> feature;
    Span<double> threshold, equal_low, equal_high;
    Span<bool> single;
    Span<double> place;
    Span<int32_t> left, right;
    Span<bool> missing_left;
    Span<int32_t> category_set, set_start;
    Span<uint32_t> set_words;
    Span<int32_t> value;
    Span<double> values;
    Span<int32_t> roots, tree_output;
    Span<double> base;
    Span<int32_t> variable;  // of each column: the variable that gets its credit; empty: every column is one
};

// The numbers that a library cannot distinguish from the threshold it stores.
struct Interval {
    double low, high;
    bool holds(double x) const { return x >= low && x <= high; }
};

// What determines the time of a crossing, as a sort key: the column, the threshold, the place, and the numbers that the
// library cannot distinguish from the threshold.
inline auto time_key(const Node& n, const std::vector<Interval>& intervals) {
    const Interval within = n.interval() >= 0 ? intervals[n.interval()] : Interval{0.0, 0.0};
    return std::make_tuple(n.feature, n.set >= 0, n.set >= 0 ? 0.0 : n.threshold, n.at_once, n.at_once ? 0.0 : n.place,
                           within.low, within.high);
}

// Splits that are crossed at the same time for every pair.
struct SplitIds {
    SplitIds(const std::vector<Node>& nodes, const std::vector<Interval>& intervals, size_t n_columns)
        : of_node(nodes.size(), -1), of_column(n_columns + 1, 0) {
        std::vector<int32_t> order;
        for (size_t i = 0; i < nodes.size(); ++i)
            if (!nodes[i].is_leaf()) order.push_back(static_cast<int32_t>(i));
        const auto key = [&](int32_t i) { return time_key(nodes[i], intervals); };
        std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
        for (size_t i = 0; i < order.size(); ++i) {
            const Node& node = nodes[order[i]];
            if (i == 0 || key(order[i]) != key(order[i - 1])) {
                feature.push_back(node.feature);
                variable.push_back(node.variable);
                threshold.push_back(node.set >= 0 ? std::numeric_limits<double>::quiet_NaN() : node.threshold);
                place.push_back(node.interval() >= 0 ? std::numeric_limits<double>::quiet_NaN() : node.place);
                first_node.push_back(order[i]);
            }
            of_node[order[i]] = static_cast<int32_t>(feature.size()) - 1;
        }
        for (const int32_t j : feature) ++of_column[static_cast<size_t>(j) + 1];
        for (size_t j = 0; j < n_columns; ++j) of_column[j + 1] += of_column[j];
        n_nodes = order.size();
    }
    size_t size() const { return feature.size(); }
    int32_t none() const { return static_cast<int32_t>(size()); }  // stands for the path's own ends

    // Whether nodes repeat splits so often (as boosting on histograms does) that precomputation for each split pays.
    bool repeat() const { return n_nodes >= 2 * size(); }

    std::vector<int32_t> of_node;  // -1 for leaves
    std::vector<int32_t>
        of_column;   // (columns + 1): where the splits of each begin, thresholds in order, categories last
    size_t n_nodes;  // that are not leaves
    std::vector<int32_t> feature, variable;  // of each split
    std::vector<double> threshold;           // NaN for categories
    std::vector<double> place;               // NaN where the time of a crossing depends on more than the place
    std::vector<int32_t> first_node;         // one of the nodes with this split
};

class SweepTrees;

class Forest {
public:
    explicit Forest(const ForestArrays& a);

    // The numbers of columns of a table, of columns as rows are read (one more for each that is read in two
    // precisions), and of variables that get credit.
    size_t n_inputs() const { return n_inputs_; }
    size_t n_columns() const { return columns.size(); }
    size_t n_variables() const { return n_variables_; }
    size_t n_outputs() const { return base.size(); }
    size_t n_trees() const { return roots.size(); }
    // A tree adds `width` numbers to the outputs, beginning at output `first`.
    size_t width(size_t tree) const { return tree_output[tree] < 0 ? base.size() : 1; }
    size_t first(size_t tree) const { return tree_output[tree] < 0 ? 0 : static_cast<size_t>(tree_output[tree]); }

    bool in_set(int32_t set, double code) const {
        const int64_t begin = set_start[set], words = set_start[set + 1] - begin;
        if (!(code > -1.0 && code < 32.0 * static_cast<double>(words))) return false;
        const auto c = static_cast<int64_t>(code);
        if (c >= 32 * words) return false;  // -0.5 becomes code 0, which an empty set does not have
        return (set_words[begin + c / 32] >> (c % 32)) & 1u;
    }

    // Made on first use; safe to call from several threads.
    const SplitIds& split_ids() const {
        std::call_once(split_ids_once_,
                       [this] { split_ids_ = std::make_unique<SplitIds>(nodes, intervals, n_columns()); });
        return *split_ids_;
    }

    // Whether children have several parents so often that there are many more paths to leaves than nodes, as in
    // decision diagrams for conditions on several columns.
    bool tangled() const { return tangled_; }

    // The trees in the layout of a sweep; null where they do not fit, or where it does not pay (sweep_trees.hpp).
    const SweepTrees* sweep_trees() const;

    std::vector<Node> nodes;
    std::vector<int32_t> set_start;
    std::vector<uint32_t> set_words;
    std::vector<double> values;
    std::vector<int32_t> roots, tree_output;
    std::vector<double> base;
    bool at_once = false;  // whether some split has nothing between its values
    std::vector<size_t>
        uses;  // of each column: the number of nodes below its splits, so that a call need not visit every node

    // Values from low to high are read as the place of a split.
    struct Snap {
        double low, high, place;
    };

    // How a column of the table is read.
    struct Column {
        int32_t input;
        int32_t variable;
        bool single = false;     // as shortest decimals of float32
        bool folded = true;      // every threshold is an edge between two float32 numbers, which a decimal never passes
        bool at_once = false;    // some split treats it as nominal: no values in between
        bool intervals = false;  // the library cannot distinguish some values from a stored threshold
        double least_way = LEAST_WAY;  // differences for which times in float32 are accurate enough, intervals included
        double scale = 0.0;            // the largest threshold, by size
        std::vector<Snap> snaps;       // in order; empty for most
        std::vector<double>
            edges;  // the thresholds in order, where reading a value as a decimal might move it past one

        bool careful() const { return !snaps.empty() || (single && !folded); }
    };
    std::vector<Column> columns;
    std::vector<Interval> intervals;  // see Node::interval

private:
    size_t n_inputs_, n_variables_;
    bool tangled_ = false;
    mutable std::once_flag split_ids_once_;
    mutable std::unique_ptr<SplitIds> split_ids_;
    mutable std::once_flag sweep_trees_once_;
    mutable std::shared_ptr<const SweepTrees> sweep_trees_;
    void check_sizes(const ForestArrays& a) const;
    void check_sets(const ForestArrays& a) const;
    void check_node(const ForestArrays& a, size_t i) const;
    void check_trees();
    double visits(int32_t root) const;
    void set_columns(const ForestArrays& a);
    void set_place(const ForestArrays& a, size_t i);
};

[[noreturn]] inline void refuse(const std::string& sentence) { throw std::invalid_argument(sentence); }

inline Forest::Forest(const ForestArrays& a) {
    check_sizes(a);
    check_sets(a);
    const size_t n = a.feature.size;
    nodes.resize(n);
    for (size_t i = 0; i < n; ++i) {
        check_node(a, i);
        Node& node = nodes[i];
        node.threshold = a.threshold[i];
        node.feature = node.variable = a.feature[i];
        node.set = node.is_leaf() ? -1 : a.category_set[i];
        node.right = node.is_leaf() ? -1 : a.right[i];
        node.left = node.is_leaf() ? a.value[i] : a.left[i];  // a leaf's value is stored in the same field
        node.missing_left = a.missing_left[i];
        node.at_once = node.set >= 0 || std::isnan(a.place[i]);
        node.place = node.at_once ? std::numeric_limits<double>::quiet_NaN() : a.place[i];
        node.below = 0;
    }
    set_columns(a);
    uses.assign(n_columns(), 0);
    for (size_t i = n; i-- > 0;)
        if (!nodes[i].is_leaf()) {
            nodes[i].below =
                static_cast<uint8_t>(std::min(255, 2 + nodes[nodes[i].left].below + nodes[nodes[i].right].below));
            uses[nodes[i].feature] += nodes[i].below;
            at_once |= nodes[i].at_once;
        }
    set_start.assign(a.set_start.data, a.set_start.data + a.set_start.size);
    set_words.assign(a.set_words.data, a.set_words.data + a.set_words.size);
    values.assign(a.values.data, a.values.data + a.values.size);
    roots.assign(a.roots.data, a.roots.data + a.roots.size);
    tree_output.assign(a.tree_output.data, a.tree_output.data + a.tree_output.size);
    base.assign(a.base.data, a.base.data + a.base.size);
    check_trees();
}

// Columns are read in the precision of their splits; a column with splits of both precisions is read twice.
inline void Forest::set_columns(const ForestArrays& a) {
    n_inputs_ = static_cast<size_t>(a.n_columns);
    n_variables_ = n_inputs_;
    if (a.variable.size) {
        n_variables_ = 0;
        for (size_t j = 0; j < n_inputs_; ++j)
            n_variables_ = std::max(n_variables_, static_cast<size_t>(a.variable[j]) + 1);
    }
    std::vector<char> wide(n_inputs_, 0), single(n_inputs_, 0);
    for (size_t i = 0; i < nodes.size(); ++i)
        if (!nodes[i].is_leaf() && nodes[i].set < 0) (a.single[i] ? single : wide)[nodes[i].feature] = 1;
    columns.resize(n_inputs_);
    std::vector<int32_t> column_of_single(n_inputs_);
    for (size_t j = 0; j < n_inputs_; ++j) {
        const auto input = static_cast<int32_t>(j);
        columns[j].input = input;
        columns[j].variable = a.variable.size ? a.variable[j] : input;
        columns[j].single = single[j] && !wide[j];
        column_of_single[j] = input;
        if (!single[j] || !wide[j]) continue;
        column_of_single[j] = static_cast<int32_t>(columns.size());
        Column again = columns[j];
        again.single = true;
        columns.push_back(again);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
        Node& node = nodes[i];
        if (node.is_leaf()) continue;
        if (node.set < 0 && a.single[i]) node.feature = column_of_single[node.feature];
        Column& column = columns[node.feature];
        node.variable = column.variable;
        if (node.set < 0 && std::abs(node.threshold) < 1e300)
            column.scale = std::max(column.scale, std::abs(node.threshold));
    }
    for (size_t i = 0; i < nodes.size(); ++i)
        if (!nodes[i].is_leaf() && nodes[i].set < 0) set_place(a, i);
    for (const Node& node : nodes)
        if (!node.is_leaf() && node.set < 0 && columns[node.feature].careful())
            columns[node.feature].edges.push_back(node.threshold);
    for (Column& column : columns) {
        std::sort(column.edges.begin(), column.edges.end());
        column.edges.erase(std::unique(column.edges.begin(), column.edges.end()), column.edges.end());
        std::sort(column.snaps.begin(), column.snaps.end(), [](const Snap& x, const Snap& y) { return x.low < y.low; });
    }
}

inline void Forest::set_place(const ForestArrays& a, size_t i) {
    Node& node = nodes[i];
    Column& column = columns[node.feature];
    column.at_once |= node.at_once;
    const double next = std::nextafter(node.threshold, std::numeric_limits<double>::infinity());
    const bool folded = a.single[i] && static_cast<float>(next) != static_cast<float>(node.threshold);
    column.folded &= folded;
    const double low = a.equal_low[i], high = a.equal_high[i];
    // Decimals of float32 are enough where the threshold is an edge of float32 numbers. A place outside of the interval
    // is half-way between two values of a discrete column, and is unrelated to it.
    if (folded || !(low < high) || !(low <= node.place && node.place <= high)) return;
    // A narrow interval, a float32 number behind a scaler, is free if its values are read as the place: the times of
    // other splits of the column change by less than a millionth. Intervals are handled in the walks for flat pieces of
    // transformers, and for intervals with numbers on both sides of the threshold. XGBoost behind a StandardScaler took
    // five times as long with them.
    const bool one_side = low > node.threshold || high <= node.threshold;
    if (one_side && high - low <= column.scale * 0x1p-20) {
        column.snaps.push_back({low, high, node.place});
        return;
    }
    node.set_interval(static_cast<int32_t>(intervals.size()));
    intervals.push_back({low, high});
    column.intervals = true;
    column.least_way =
        std::max(column.least_way, 16384.0 * (high - low));  // it then spans a quarter of a unit of CODE_UNIT
}

}  // namespace gigrad

#include "core/forest_checks.hpp"
