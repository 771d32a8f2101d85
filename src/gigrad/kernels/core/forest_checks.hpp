// Checks of trees before they are used: every index in range, no cycle, no tree with too many paths.
#pragma once

#include "core/forest.hpp"

namespace gigrad {

inline void Forest::check_sizes(const ForestArrays& a) const {
    if (a.n_columns < 0 || a.n_columns > INT32_MAX)
        refuse("the number of columns must lie in 0..2147483647; it is " + std::to_string(a.n_columns) + ".");
    const size_t n = a.feature.size;
    if (n > INT32_MAX) refuse("there may be at most 2147483647 nodes; there are " + std::to_string(n) + ".");
    const auto same = [&](const char* name, size_t size) {
        if (size != n)
            refuse(std::string(name) + " must have one entry for each of the " + std::to_string(n) + " nodes; it has " +
                   std::to_string(size) + ".");
    };
    same("threshold", a.threshold.size);
    same("equal_low", a.equal_low.size);
    same("equal_high", a.equal_high.size);
    same("single", a.single.size);
    same("place", a.place.size);
    same("left", a.left.size);
    same("right", a.right.size);
    same("missing_left", a.missing_left.size);
    same("category_set", a.category_set.size);
    same("value", a.value.size);
    if (a.variable.size != 0 && a.variable.size != static_cast<size_t>(a.n_columns))
        refuse("variable must have one entry for each of the " + std::to_string(a.n_columns) +
               " columns, or none; it has " + std::to_string(a.variable.size) + ".");
    for (size_t j = 0; j < a.variable.size; ++j)
        if (a.variable[j] < 0 || a.variable[j] >= a.n_columns)
            refuse("variable must hold numbers from 0 to " + std::to_string(a.n_columns - 1) + "; entry " +
                   std::to_string(j) + " is " + std::to_string(a.variable[j]) + ".");
    if (a.tree_output.size != a.roots.size)
        refuse("tree_output must have one entry for each of the " + std::to_string(a.roots.size) + " trees; it has " +
               std::to_string(a.tree_output.size) + ".");
    if (a.base.size == 0) refuse("base must have one number for each output; it is empty.");
    for (size_t i = 0; i < a.base.size; ++i)
        if (!std::isfinite(a.base[i])) refuse("base must be finite; output " + std::to_string(i) + " is not.");
    for (size_t i = 0; i < a.values.size; ++i)
        if (!std::isfinite(a.values[i])) refuse("leaf values must be finite; number " + std::to_string(i) + " is not.");
}

inline void Forest::check_sets(const ForestArrays& a) const {
    if (a.set_start.size == 0 || a.set_start[0] != 0) refuse("set_start must begin with 0.");
    for (size_t i = 1; i < a.set_start.size; ++i)
        if (a.set_start[i] < a.set_start[i - 1])
            refuse("set_start must not decrease; entry " + std::to_string(i) + " does.");
    if (static_cast<size_t>(a.set_start[a.set_start.size - 1]) != a.set_words.size)
        refuse("set_start must end at the " + std::to_string(a.set_words.size) + " words of set_words; it ends at " +
               std::to_string(a.set_start[a.set_start.size - 1]) + ".");
}

inline void Forest::check_node(const ForestArrays& a, size_t i) const {
    const auto where = [i] { return "node " + std::to_string(i); };  // built only for an error
    const auto n = static_cast<int64_t>(a.feature.size);
    if (a.feature[i] < -1 || a.feature[i] >= a.n_columns)
        refuse(where() + " reads column " + std::to_string(a.feature[i]) + "; there are " +
               std::to_string(a.n_columns) + ".");
    if (a.feature[i] < 0) {
        if (a.value[i] < 0 || static_cast<size_t>(a.value[i]) >= a.values.size)
            refuse(where() + " is a leaf whose value lies at " + std::to_string(a.value[i]) + "; there are " +
                   std::to_string(a.values.size) + " values.");
        return;
    }
    for (const int32_t child : {a.left[i], a.right[i]})
        if (child <= static_cast<int64_t>(i) || child >= n)
            refuse(where() + " has child " + std::to_string(child) +
                   "; a child must come after its parent and before " + std::to_string(n) + ".");
    const int32_t set = a.category_set[i];
    if (set < -1 || set >= static_cast<int64_t>(a.set_start.size) - 1)
        refuse(where() + " tests category set " + std::to_string(set) + "; there are " +
               std::to_string(a.set_start.size - 1) + ".");
    if (set < 0 && std::isnan(a.threshold[i])) refuse(where() + " has a threshold that is not a number.");
}

// Checks that depend on the tree of a node: roots, outputs, vector leaves, the number of paths to leaves.
inline void Forest::check_trees() {
    const auto n = static_cast<int64_t>(nodes.size());
    std::vector<char> vector_leaf(nodes.size(), 0);
    for (size_t t = 0; t < roots.size(); ++t) {
        const std::string where = "tree " + std::to_string(t);
        if (roots[t] < 0 || roots[t] >= n)
            refuse(where + " has root " + std::to_string(roots[t]) + "; there are " + std::to_string(n) + " nodes.");
        if (tree_output[t] < -1 || tree_output[t] >= static_cast<int64_t>(base.size()))
            refuse(where + " adds to output " + std::to_string(tree_output[t]) + "; there are " +
                   std::to_string(base.size()) + ".");
        if (tree_output[t] < 0) vector_leaf[roots[t]] = 1;
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
        if (!vector_leaf[i]) continue;
        if (!nodes[i].is_leaf())
            vector_leaf[nodes[i].left] = vector_leaf[nodes[i].right] = 1;
        else if (nodes[i].value + base.size() > values.size())
            refuse("node " + std::to_string(i) + " is a leaf whose " + std::to_string(base.size()) +
                   " values run past the end of the values.");
    }
    std::vector<double> ways(nodes.size(), 1.0);
    for (size_t i = nodes.size(); i-- > 0;)
        if (!nodes[i].is_leaf()) ways[i] = ways[nodes[i].left] + ways[nodes[i].right];
    double all = 0.0;
    for (size_t t = 0; t < roots.size(); ++t) all += ways[roots[t]];
    tangled_ = is_tangled(all, nodes.size());
    for (size_t t = 0; t < roots.size(); ++t)
        if (ways[roots[t]] > MAX_WAYS && ways[roots[t]] > static_cast<double>(nodes.size()) &&
            visits(roots[t]) > MAX_WAYS)
            refuse("tree " + std::to_string(t) + " shares children so often that walking it would never end.");
}

// A bound on the number of leaves that the path of one pair reaches in the tree. Between two crossings it is in one
// leaf; at a corner every coalition of the variables that cross has its own, and D splits of C variables make at most D
// / C corners of all of them.
inline double Forest::visits(int32_t root) const {
    std::vector<char> seen(nodes.size(), 0);
    std::vector<int32_t> waiting{root};
    std::vector<char> variable(n_variables_, 0);
    std::set<std::pair<int32_t, double>> splits;
    double variables = 0.0;
    while (!waiting.empty()) {
        const Node& node = nodes[waiting.back()];
        waiting.pop_back();
        if (node.is_leaf()) continue;
        if (!variable[node.variable]++) ++variables;
        splits.emplace(node.feature, node.at_once ? std::numeric_limits<double>::infinity() : node.threshold);
        for (const int32_t child : {node.left, node.right})
            if (!seen[child]++) waiting.push_back(child);
    }
    return static_cast<double>(splits.size()) * (1.0 + std::exp2(variables) / std::max(1.0, variables));
}

}  // namespace gigrad
