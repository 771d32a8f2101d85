// Every change of the trees' outputs along a path, in order of time.
#pragma once

#include "credits.hpp"

namespace gigrad {

struct JumpList {
    std::vector<int64_t> count;  // entries of each pair
    std::vector<double> time;
    std::vector<int32_t> variable;
    std::vector<double> delta;  // (entries, outputs)
};

// What one leaf gives to one variable: `share` of the numbers at `value`, added to outputs `first`...
struct JumpEvent {
    double time, share;
    int32_t variable, value;
    uint32_t first, width;
};

struct JumpSink {
    const Forest& forest;
    std::vector<std::vector<JumpEvent>>& events;  // of each pair of the block
    uint32_t first, width;

    void crossing(Pair pair, int32_t node, double time, double sign, const Node& leaf) const {
        events[pair.start].push_back({time, sign, forest.nodes[node].feature, leaf.value, first, width});
    }

    void corner(Pair pair, const LeafCorner& corner, const Node& leaf) const {
        for (const int32_t j : corner.past) events[pair.start].push_back({corner.entered, corner.past_share, j, leaf.value, first, width});
        for (const int32_t j : corner.before) events[pair.start].push_back({corner.left, corner.before_share, j, leaf.value, first, width});
    }
};

// Sorts the events of one pair, makes one corner of those that follow within TIE, and appends one entry for each
// variable of a corner.
inline void append_pair(const Forest& forest, std::vector<JumpEvent>& events, JumpList& out) {
    const size_t outputs = forest.n_outputs(), had = out.time.size();
    std::stable_sort(events.begin(), events.end(), [](const JumpEvent& a, const JumpEvent& b) { return a.time < b.time; });
    for (size_t begin = 0, end; begin < events.size(); begin = end) {
        for (end = begin + 1; end < events.size() && events[end].time - events[end - 1].time <= TIE;) ++end;
        const double time = 0.5 * (events[begin].time + events[end - 1].time);
        const size_t corner = out.time.size();
        const auto first = events.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = events.begin() + static_cast<std::ptrdiff_t>(end);
        std::stable_sort(first, last, [](const JumpEvent& a, const JumpEvent& b) { return a.variable < b.variable; });
        for (auto event = first; event != last; ++event) {
            if (out.time.size() == corner || out.variable.back() != event->variable) {
                out.time.push_back(time);
                out.variable.push_back(event->variable);
                out.delta.resize(out.delta.size() + outputs, 0.0);
            }
            double* to = out.delta.data() + out.delta.size() - outputs + event->first;
            for (size_t k = 0; k < event->width; ++k) to[k] += event->share * forest.values[event->value + k];
        }
        // A lone variable that changes nothing is no corner. In company it stays: it may matter to a later function.
        const bool lone = out.time.size() == corner + 1;
        if (lone && std::all_of(out.delta.end() - static_cast<std::ptrdiff_t>(outputs), out.delta.end(), [](double d) { return d == 0.0; })) {
            out.time.pop_back();
            out.variable.pop_back();
            out.delta.resize(out.delta.size() - outputs);
        }
    }
    out.count.push_back(static_cast<int64_t>(out.time.size() - had));
}

// One list for each block of pairs, in order.
inline std::vector<JumpList> jumps(const Forest& forest, const Rows& starts, const Rows& ends, size_t n_threads) {
    constexpr size_t block_size = 64;  // the events of a block are all kept at once
    std::vector<JumpList> lists((starts.n_rows + block_size - 1) / block_size);
    for_blocks(forest, starts, ends, n_threads, block_size, [&] {
        return [&, walk = Walk(forest), events = std::vector<std::vector<JumpEvent>>(block_size)](
                   size_t unit, size_t, size_t size, const Block& block) mutable {
            for (auto& e : events) e.clear();
            for (size_t t = 0; t < forest.n_trees(); ++t) {
                const auto first = static_cast<uint32_t>(forest.first(t)), width = static_cast<uint32_t>(forest.width(t));
                walk.tree(forest.roots[t], block, size, false, JumpSink{forest, events, first, width});
            }
            for (size_t i = 0; i < size; ++i) append_pair(forest, events[i], lists[unit]);
        };
    });
    return lists;
}

}  // namespace gigrad
