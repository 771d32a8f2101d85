// Every change of the trees' outputs along a path, in order of time.
#pragma once

#include "walk/corner.hpp"
#include "walk/ordered.hpp"

namespace gigrad {

struct JumpList {
    std::vector<int64_t> count;  // entries of each pair
    std::vector<double> time;
    std::vector<int32_t> variable;
    std::vector<double> delta;  // (entries, outputs)
};

// Lists the jumps of pairs: one corner for those of equal time, one entry for each variable of a corner.
class JumpLister {
public:
    explicit JumpLister(const Forest& forest)
        : forest_(forest), splits_(forest.split_ids()), k_(forest.n_outputs()), jumps_(forest, splits_) {}

    void append(const TracedPair& pair, const double* start, const double* end, JumpList& out) {
        jumps_.read(pair, start, end);
        if (jumps_.apart()) return append_apart(out);
        const size_t had = out.time.size(), n = jumps_.size();
        for (size_t begin = 0, stop; begin < n; begin = stop) {
            const double time = jumps_.time(begin);
            for (stop = begin + 1; stop < n && jumps_.time(stop) == time;) ++stop;
            const int32_t lone = jumps_.lone_variable(begin, stop);
            if (stop == begin + 1 && lone >= 0 && jumps_.index(begin) >= 0)
                append_lone(time, lone, jumps_.delta(jumps_.index(begin)), out);
            else
                append_corner(time, begin, stop, out);
        }
        out.count.push_back(static_cast<int64_t>(out.time.size() - had));
    }

private:
    const Forest& forest_;
    const SplitIds& splits_;
    const size_t k_;
    OrderedJumps jumps_;
    std::vector<int32_t> variables_;
    std::vector<double> sums_;  // (variables, outputs)

    // Where no two jumps share a time, as on nearly all pairs, each has one split and one variable.
    void append_apart(JumpList& out) const {
        const size_t had = out.time.size(), n = jumps_.size();
        out.time.resize(had + n);
        out.variable.resize(had + n);
        out.delta.resize((had + n) * k_);
        size_t at = had;
        for (size_t i = 0; i < n; ++i) {
            const int32_t split = jumps_.index(i);
            const double* delta = jumps_.delta(split);
            out.time[at] = jumps_.time(i);
            out.variable[at] = splits_.variable[split];
            std::copy_n(delta, k_, out.delta.data() + at * k_);
            at += std::any_of(delta, delta + k_, [](double d) { return d != 0.0; });
        }
        out.time.resize(at);
        out.variable.resize(at);
        out.delta.resize(at * k_);
        out.count.push_back(static_cast<int64_t>(at - had));
    }

    // A single variable without effect is not a corner. Among several it is kept: it may matter to a later function.
    void append_lone(double time, int32_t variable, const double* delta, JumpList& out) const {
        if (std::all_of(delta, delta + k_, [](double d) { return d == 0.0; })) return;
        out.time.push_back(time);
        out.variable.push_back(variable);
        out.delta.insert(out.delta.end(), delta, delta + k_);
    }

    void append_corner(double time, size_t begin, size_t stop, JumpList& out) {
        variables_.clear();
        sums_.clear();
        for (size_t i = begin; i < stop; ++i) {
            const int32_t index = jumps_.index(i);
            if (index >= 0) {
                add(splits_.variable[index], 1.0, jumps_.delta(index), 0, k_);
                continue;
            }
            const CornerVisit& c = jumps_.corner(index);
            const Shares shares = corner_shares(c.n_past, c.n_before, c.n_past > 0 && c.n_before > 0);
            const int32_t* members = jumps_.members(c);
            for (size_t m = 0; m < c.n_past + c.n_before; ++m)
                add(members[m], m < c.n_past ? shares.past : shares.before, &forest_.values[c.value],
                    forest_.first(c.tree), forest_.width(c.tree));
        }
        if (variables_.size() == 1) return append_lone(time, variables_[0], sums_.data(), out);
        for (size_t i = 0; i < variables_.size(); ++i) {
            out.time.push_back(time);
            out.variable.push_back(variables_[i]);
            const auto first = sums_.begin() + static_cast<std::ptrdiff_t>(i * k_);
            out.delta.insert(out.delta.end(), first, first + static_cast<std::ptrdiff_t>(k_));
        }
    }

    // Adds `share` of `width` numbers to a variable's sum, kept in order of the variables.
    void add(int32_t variable, double share, const double* value, size_t first, size_t width) {
        const auto at = std::lower_bound(variables_.begin(), variables_.end(), variable) - variables_.begin();
        if (at == static_cast<std::ptrdiff_t>(variables_.size()) || variables_[at] != variable) {
            variables_.insert(variables_.begin() + at, variable);
            sums_.insert(sums_.begin() + at * static_cast<std::ptrdiff_t>(k_), k_, 0.0);
        }
        double* to = sums_.data() + static_cast<size_t>(at) * k_ + first;
        for (size_t o = 0; o < width; ++o) to[o] += share * value[o];
    }
};

// One list for each block of pairs, in order.
inline std::vector<JumpList> jumps(const Forest& forest, const LaneKernel* kernel, const Rows& starts, const Rows& ends,
                                   size_t n_threads) {
    const size_t block_size = Tracer::block_size(kernel, ends.n_rows, n_threads);
    std::vector<JumpList> lists((starts.n_rows + block_size - 1) / block_size);
    const Route route = route_of_pairs(forest, kernel);
    for_blocks(forest, starts, ends, n_threads, block_size, [&] {
        return [&, tracer = std::make_unique<Tracer>(forest, kernel, route), lister = JumpLister(forest)](
                   size_t unit, size_t begin, size_t size, const Block& block) mutable {
            tracer->pairs(block, size, [&](size_t i, const TracedPair& pair) {
                lister.append(pair, starts.row(begin + i), ends.row(begin + i), lists[unit]);
            });
        };
    });
    return lists;
}

}  // namespace gigrad
