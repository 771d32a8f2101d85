// Credit of link(sum of trees): the jumps of each pair in order of time, each earning link(after) - link(before).
#pragma once

#include "credits.hpp"
#include "game.hpp"

namespace gigrad {

// Splits that are crossed at the same time whatever the pair: same column and threshold, or same column and categories.
struct SplitIds {
    explicit SplitIds(const Forest& forest) : of_node(forest.nodes.size(), -1) {
        std::vector<int32_t> order;
        for (size_t i = 0; i < forest.nodes.size(); ++i)
            if (!forest.nodes[i].is_leaf()) order.push_back(static_cast<int32_t>(i));
        const auto key = [&](int32_t i) {
            const Node& n = forest.nodes[i];
            return std::make_tuple(n.feature, n.set >= 0, n.set >= 0 ? 0.0 : n.threshold);
        };
        std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
        for (size_t i = 0; i < order.size(); ++i) {
            if (i == 0 || key(order[i]) != key(order[i - 1])) node.push_back(order[i]);
            of_node[order[i]] = static_cast<int32_t>(node.size()) - 1;
        }
    }
    std::vector<int32_t> of_node;  // -1 for leaves
    std::vector<int32_t> node;     // a node of each split
};

// What the walk of a block leaves for each of its pairs.
struct PairEvents {
    struct Crossing {
        int32_t split, value, tree;
        float sign;
    };
    struct Corner {  // a leaf that several variables open (past) or close (before) at one time
        double time;
        int32_t value, tree;
        uint32_t members, n_past, n_before;
    };
    std::vector<Crossing> crossings;
    std::vector<Corner> corners;
    std::vector<int32_t> members;

    void clear() {
        crossings.clear();
        corners.clear();
        members.clear();
    }
};

struct EventSink {
    const SplitIds& splits;
    std::vector<PairEvents>& pairs;
    int32_t tree;

    void crossing(Pair pair, int32_t node, double, double sign, const Node& leaf) const {
        pairs[pair.start].crossings.push_back({splits.of_node[node], leaf.value, tree, static_cast<float>(sign)});
    }

    void corner(Pair pair, const LeafCorner& c, const Node& leaf) const {
        const bool together = !c.past.empty() && !c.before.empty() && c.entered >= c.left - TIE;
        if (together) {
            note(pair, c.entered, leaf, &c.past, &c.before);
        } else {
            if (!c.past.empty()) note(pair, c.entered, leaf, &c.past, nullptr);
            if (!c.before.empty()) note(pair, c.left, leaf, nullptr, &c.before);
        }
    }

    void note(Pair pair, double time, const Node& leaf, const LeafCorner::Variables* past, const LeafCorner::Variables* before) const {
        PairEvents& to = pairs[pair.start];
        to.corners.push_back({time, leaf.value, tree, static_cast<uint32_t>(to.members.size()),
                              static_cast<uint32_t>(past ? past->size() : 0), static_cast<uint32_t>(before ? before->size() : 0)});
        for (const auto* set : {past, before})
            if (set) to.members.insert(to.members.end(), set->begin(), set->end());
    }
};

class LinkedCredit {
  public:
    LinkedCredit(const Forest& forest, const SplitIds& splits, const Link& link, const GameOptions& options)
        : forest_(forest), splits_(splits), link_(link), game_(link, options), delta_(splits.node.size() * forest.n_outputs(), 0.0),
          touched_(splits.node.size(), 0) {}

    // Adds weight * credit of one pair; `start`, `end` are its rows, `margin` the trees' outputs at the start.
    void add(const PairEvents& events, const double* start, const double* end, const double* margin, double weight, uint64_t salt,
             double* credit, double* error) {
        const size_t k = forest_.n_outputs(), outputs = link_.n_outputs();
        collect(events, start, end);
        margins_.assign(margin, margin + k);
        jumpers_.clear();
        for (size_t begin = 0, stop; begin < entries_.size(); begin = stop) {
            for (stop = begin + 1; stop < entries_.size() && entries_[stop].time - entries_[stop - 1].time <= TIE;) ++stop;
            margins_.insert(margins_.end(), margins_.end() - static_cast<std::ptrdiff_t>(k), margins_.end());
            double* now = margins_.data() + margins_.size() - k;
            const int32_t lone = lone_variable(events, begin, stop);
            jumpers_.push_back(lone);
            if (lone >= 0) {
                for (size_t i = begin; i < stop; ++i) jump(events, entries_[i].index, now);
            } else {
                game_.clear();
                for (size_t i = begin; i < stop; ++i) enter(events, entries_[i].index);
                game_.solve(now, weight, salt * 1000003u + jumpers_.size(), credit, error);
            }
        }
        link_.apply(margins_, jumpers_.size() + 1);
        for (size_t i = 0; i < jumpers_.size(); ++i) {
            if (jumpers_[i] < 0) continue;
            double* to = credit + static_cast<size_t>(jumpers_[i]) * outputs;
            for (size_t o = 0; o < outputs; ++o) to[o] += weight * (margins_[(i + 1) * outputs + o] - margins_[i * outputs + o]);
        }
        for (const Entry& entry : entries_) {
            if (entry.index < 0) continue;
            touched_[entry.index] = 0;
            std::fill_n(delta_.begin() + static_cast<std::ptrdiff_t>(entry.index) * static_cast<std::ptrdiff_t>(k), k, 0.0);
        }
    }

  private:
    struct Entry {
        double time;
        int32_t index;  // of a split, or ~index of a corner
    };
    const Forest& forest_;
    const SplitIds& splits_;
    const Link& link_;
    Game game_;
    std::vector<double> delta_;  // (splits, outputs)
    std::vector<char> touched_;
    std::vector<Entry> entries_, sorted_;
    std::vector<uint32_t> buckets_;
    std::vector<double> margins_;
    std::vector<int32_t> jumpers_;  // the variable of each corner; -1 where there are several

    void collect(const PairEvents& events, const double* start, const double* end) {
        const size_t k = forest_.n_outputs();
        entries_.clear();
        for (const auto& c : events.crossings) {
            if (!touched_[c.split]) {
                touched_[c.split] = 1;
                const Node& node = forest_.nodes[splits_.node[c.split]];
                entries_.push_back({crossing_time(node, start[node.feature], end[node.feature]), c.split});
            }
            double* to = delta_.data() + static_cast<size_t>(c.split) * k + forest_.first(c.tree);
            for (size_t o = 0; o < forest_.width(c.tree); ++o) to[o] += static_cast<double>(c.sign) * forest_.values[c.value + o];
        }
        for (size_t i = 0; i < events.corners.size(); ++i) entries_.push_back({events.corners[i].time, ~static_cast<int32_t>(i)});
        sort_entries();
    }

    // Times are spread over [0, 1]: buckets put nearly all in place, insertion does the rest.
    void sort_entries() {
        const size_t n = entries_.size(), n_buckets = n + 1;
        const auto bucket = [&](double time) { return static_cast<size_t>(time * static_cast<double>(n)); };
        buckets_.assign(n_buckets + 1, 0);
        for (const Entry& e : entries_) ++buckets_[bucket(e.time) + 1];
        for (size_t b = 1; b <= n_buckets; ++b) buckets_[b] += buckets_[b - 1];
        sorted_.resize(n);
        for (const Entry& e : entries_) sorted_[buckets_[bucket(e.time)]++] = e;
        size_t begin = 0;
        for (size_t b = 0; b < n_buckets; ++b) {  // buckets_[b] is now the end of bucket b
            const auto first = sorted_.begin() + static_cast<std::ptrdiff_t>(begin);
            const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(buckets_[b]);
            if (last - first > 1) std::stable_sort(first, last, [](const Entry& x, const Entry& y) { return x.time < y.time; });
            begin = buckets_[b];
        }
        entries_.swap(sorted_);
    }

    // The variable that all entries of a corner belong to, or -1.
    int32_t lone_variable(const PairEvents& events, size_t begin, size_t stop) const {
        int32_t variable = -1;
        for (size_t i = begin; i < stop; ++i) {
            const int32_t index = entries_[i].index;
            int32_t mine;
            if (index >= 0) {
                mine = forest_.nodes[splits_.node[index]].feature;
            } else {
                const auto& c = events.corners[~index];
                if (c.n_past + c.n_before > 1) return -1;
                mine = events.members[c.members];
            }
            if (variable >= 0 && mine != variable) return -1;
            variable = mine;
        }
        return variable;
    }

    void jump(const PairEvents& events, int32_t index, double* margin) const {
        const size_t k = forest_.n_outputs();
        if (index >= 0) {
            for (size_t o = 0; o < k; ++o) margin[o] += delta_[static_cast<size_t>(index) * k + o];
            return;
        }
        const auto& c = events.corners[~index];
        const double sign = c.n_past ? 1.0 : -1.0;
        for (size_t o = 0; o < forest_.width(c.tree); ++o) margin[forest_.first(c.tree) + o] += sign * forest_.values[c.value + o];
    }

    void enter(const PairEvents& events, int32_t index) {
        const size_t k = forest_.n_outputs();
        if (index >= 0) {
            const double* value = delta_.data() + static_cast<size_t>(index) * k;
            if (std::all_of(value, value + k, [](double v) { return v == 0.0; })) return;
            game_.add(&forest_.nodes[splits_.node[index]].feature, 1, nullptr, 0, value, 1.0, 0, k);
            return;
        }
        const auto& c = events.corners[~index];
        const int32_t* members = events.members.data() + c.members;
        game_.add(members, c.n_past, members + c.n_past, c.n_before, &forest_.values[c.value], 1.0, forest_.first(c.tree),
                  forest_.width(c.tree));
    }
};

// Pairs whose events are kept at once.
constexpr size_t LINKED_BLOCK = 64;

// Largest over the variables, of errors (variables, outputs).
inline void largest_error(const std::vector<double>& errors, size_t n_columns, size_t outputs, double* out) {
    std::fill(out, out + outputs, 0.0);
    for (size_t j = 0; j < n_columns; ++j)
        for (size_t o = 0; o < outputs; ++o) out[o] = std::max(out[o], errors[j * outputs + o]);
}

inline void check_link(const Forest& forest, const Link& link, const GameOptions& options) {
    if (link.n_inputs() != forest.n_outputs())
        refuse("the link takes " + std::to_string(link.n_inputs()) + " numbers; the trees give " + std::to_string(forest.n_outputs()) + ".");
    if (options.max_radix < 1 || options.max_radix > 20)
        refuse("max_radix must lie in 1..20; it is " + std::to_string(options.max_radix) + ".");
    if (options.samples < 2) refuse("samples must be at least 2.");
}

inline void walk_events(const Forest& forest, const SplitIds& splits, Walk& walk, const Block& block, size_t n_starts, bool shared_end,
                        std::vector<PairEvents>& events) {
    for (PairEvents& e : events) e.clear();
    for (size_t t = 0; t < forest.n_trees(); ++t)
        walk.tree(forest.roots[t], block, n_starts, shared_end, EventSink{splits, events, static_cast<int32_t>(t)});
}

// values: (ends, columns, link outputs), the sum over starts of weight * credit; error: (ends, link outputs).
inline void linked_credits(const Forest& forest, const Link& link, const GameOptions& options, const Rows& starts, const double* weights,
                           const Rows& ends, size_t n_threads, double* values, double* error) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    check_link(forest, link, options);
    const size_t outputs = link.n_outputs(), table = forest.n_columns() * outputs;
    const SplitIds splits(forest);
    std::vector<double> columns, margins(starts.n_rows * forest.n_outputs());
    transpose(starts, 0, starts.n_rows, starts.n_rows, columns);
    predict(forest, starts, margins.data());
    std::fill(values, values + ends.n_rows * table, 0.0);
    parallel(ends.n_rows, n_threads, [&](auto next) {
        Walk walk(forest);
        LinkedCredit linked(forest, splits, link, options);
        std::vector<PairEvents> events(LINKED_BLOCK);
        std::vector<double> errors;
        for (size_t row; next(row);) {
            errors.assign(table, 0.0);
            for (size_t begin = 0; begin < starts.n_rows; begin += LINKED_BLOCK) {
                const size_t size = std::min(LINKED_BLOCK, starts.n_rows - begin);
                walk_events(forest, splits, walk, Block{columns.data() + begin, starts.n_rows, ends.row(row), 1, 0}, size, true, events);
                for (size_t i = 0; i < size; ++i)
                    linked.add(events[i], starts.row(begin + i), ends.row(row), &margins[(begin + i) * forest.n_outputs()],
                               weights[begin + i], begin + i, values + row * table, errors.data());
            }
            largest_error(errors, forest.n_columns(), outputs, error + row * outputs);
        }
    });
}

// values: (pairs, columns, link outputs); error: (pairs, link outputs).
inline void linked_credits_pairs(const Forest& forest, const Link& link, const GameOptions& options, const Rows& starts, const Rows& ends,
                                 size_t n_threads, double* values, double* error) {
    check_pairs(forest, starts, ends);
    check_link(forest, link, options);
    const size_t outputs = link.n_outputs(), table = forest.n_columns() * outputs, k = forest.n_outputs();
    const SplitIds splits(forest);
    std::fill(values, values + ends.n_rows * table, 0.0);
    for_blocks(forest, starts, ends, n_threads, LINKED_BLOCK, [&] {
        return [&, walk = Walk(forest), linked = LinkedCredit(forest, splits, link, options), events = std::vector<PairEvents>(LINKED_BLOCK),
                errors = std::vector<double>(), margins = std::vector<double>(LINKED_BLOCK * k)](size_t, size_t begin, size_t size,
                                                                                                const Block& block) mutable {
            walk_events(forest, splits, walk, block, size, false, events);
            predict(forest, Rows{starts.row(begin), size, starts.n_columns}, margins.data());
            for (size_t i = 0; i < size; ++i) {
                errors.assign(table, 0.0);
                linked.add(events[i], starts.row(begin + i), ends.row(begin + i), &margins[i * k], 1.0, 0, values + (begin + i) * table,
                           errors.data());
                largest_error(errors, forest.n_columns(), outputs, error + (begin + i) * outputs);
            }
        };
    });
}

}  // namespace gigrad
