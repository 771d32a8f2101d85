// Credit of link(sum of trees): the jumps of each pair in order of time, each with the credit link(after) -
// link(before).
#pragma once

#include "link/corner_policy.hpp"
#include "link/game.hpp"
#include "link/large_corners.hpp"
#include "walk/ordered.hpp"

namespace gigrad {

class LinkedCredit {
public:
    LinkedCredit(const Forest& forest, const SplitIds& splits, const Link& link, const CornerPolicy& policy)
        : forest_(forest),
          splits_(splits),
          link_(link),
          policy_(policy),
          k_(forest.n_outputs()),
          jumps_(forest, splits),
          terms_(k_),
          game_(link) {}

    // Adds weight * credit of a pair; `start`, `end` are its rows, `margin` the trees' outputs at the start. Corners too
    // large to be enumerated are left out: large(time, players, terms, margin), with the margin of the empty coalition. `terms`
    // is null where CornerWalk would not find the same ones in the same order.
    template <class Large>
    void add(const TracedPair& pair, const double* start, const double* end, const double* margin, double weight,
             double* credit, Large large) {
        check_interrupt();
        jumps_.read(pair, start, end);
        swept_ = pair.swept;
        values_.resize(std::max(values_.size(), (jumps_.size() + 1) * k_));
        std::fill_n(values_.begin(), k_, 0.0);
        n_values_ = 1;
        if (jumps_.apart()) {
            follow_alone();
        } else {
            steps_.clear();
            players_.clear();
            follow(margin, weight, credit, large);
        }
        add_margin(margin);  // only now, since changes are smaller than margins and have smaller rounding errors
        link_.apply(values_, n_values_);
        give(weight, credit);
    }

    // Adds the credit that the pair added last has for the sum of trees itself, (variables, outputs of the trees).
    // Credit is linear in the trees, so every leaf is computed separately, at corners of any size.
    void add_sum(double* credit) const {
        jumps_.add_changes(credit, [&](const CornerVisit& leaf) { add_leaf(leaf, credit); });
    }

private:
    // A change of the margins by one variable, to the value numbered `at` from the one before it; or, with `players` of
    // them, a small corner whose coalitions have the values from `at` on.
    struct Step {
        int32_t variable, players;
        size_t at;
    };
    const Forest& forest_;
    const SplitIds& splits_;
    const Link& link_;
    const CornerPolicy policy_;
    const size_t k_;
    OrderedJumps jumps_;
    std::vector<double> values_;  // (n_values_, k): changes of the margins since the start; then the link of them
    size_t n_values_ = 0;
    std::vector<int32_t> jumpers_;  // if all jumps have different times: the variable of each
    std::vector<Step> steps_;       // elsewhere
    std::vector<int32_t> players_;  // variables of all small corners, one after the other
    CornerTerms terms_;
    CornerGame game_;
    CoalitionMargins coalitions_;
    ShapleyFold fold_;
    std::vector<double> before_, after_, margin_;  // the first two: changes of the margins up to a corner
    bool swept_ = false;
    const ShareTable shares_;

    void add_margin(const double* margin) {
        double* const value = values_.data();
        if (k_ == 1) {
            const double m = *margin;
            for (size_t i = 0; i < n_values_; ++i) value[i] += m;
            return;
        }
        for (size_t i = 0; i < n_values_; ++i)
            for (size_t o = 0; o < k_; ++o) value[i * k_ + o] += margin[o];
    }

    // All jumps at different times: the common case.
    void follow_alone() {
        const size_t n = jumps_.size();
        jumpers_.resize(n);
        double* now = values_.data();
        n_values_ = n + 1;
        if (k_ == 1) {
            const double* const delta = jumps_.delta(0);
            const int32_t* const variable = splits_.variable.data();
            int32_t* const jumpers = jumpers_.data();
            double change = 0.0;
            for (size_t i = 0; i < n; ++i) {
                const int32_t id = jumps_.index(i);
                change += delta[id];
                now[i + 1] = change;
                jumpers[i] = variable[id];
            }
            return;
        }
        for (size_t i = 0; i < n; ++i, now += k_) {
            const int32_t id = jumps_.index(i);
            const double* delta = jumps_.delta(id);
            for (size_t o = 0; o < k_; ++o) now[k_ + o] = now[o] + delta[o];
            jumpers_[i] = splits_.variable[id];
        }
    }

    template <class Large>
    void follow(const double* margin, double weight, double* credit, Large& large) {
        const size_t n = jumps_.size();
        for (size_t begin = 0, stop; begin < n; begin = stop) {
            const double time = jumps_.time(begin);
            for (stop = begin + 1; stop < n && jumps_.time(stop) == time;) ++stop;
            const int32_t lone = jumps_.lone_variable(begin, stop);
            if (lone >= 0) {
                double* const now = next_values(1);
                std::copy(now - k_, now, now);
                for (size_t i = begin; i < stop; ++i) jump(jumps_.index(i), now);
                steps_.push_back({lone, 1, n_values_ - 1});
            } else {
                meet(begin, stop, margin, weight, credit, large);
            }
        }
    }

    // Room for `n` values more.
    double* next_values(size_t n) {
        const size_t had = n_values_;
        n_values_ += n;
        if (values_.size() < n_values_ * k_) values_.resize(2 * n_values_ * k_);
        return values_.data() + had * k_;
    }

    // A corner of several variables.
    template <class Large>
    void meet(size_t begin, size_t stop, const double* margin, double weight, double* credit, Large& large) {
        const double* const last = values_.data() + (n_values_ - 1) * k_;
        before_.assign(last, last + k_);
        after_ = before_;
        terms_.clear();
        for (size_t i = begin; i < stop; ++i) {
            enter(jumps_.index(i));
            jump(jumps_.index(i), after_.data());
        }
        size_t n = terms_.name_players();
        if (n <= ShapleyFold::BLOCK_BITS) {
            double* const table = next_values(size_t{1} << n);
            coalitions_.find(terms_, n, 0, table);
            for (size_t a = 0; a < size_t{1} << n; ++a)
                for (size_t o = 0; o < k_; ++o) table[a * k_ + o] += before_[o];
            steps_.push_back({-1, static_cast<int32_t>(n), n_values_ - (size_t{1} << n)});
            players_.insert(players_.end(), terms_.players().begin(), terms_.players().end());
            return;
        }
        std::copy(after_.begin(), after_.end(), next_values(1));
        if (n > ALWAYS_ENUMERATED) n = terms_.drop_players_without_effect();
        margin_.resize(k_);
        for (size_t o = 0; o < k_; ++o) margin_[o] = margin[o] + before_[o];
        if (policy_.enumerates(n, terms_.n_coefficients(true), k_))
            game_.solve(terms_, margin_.data(), weight, credit);
        else
            large(jumps_.time(begin), n, swept_ ? nullptr : &terms_, margin_);
    }

    // Adds the whole change of an entry: in the end all variables are past.
    void jump(int32_t index, double* margin) const {
        if (index >= 0) {
            for (size_t o = 0; o < k_; ++o) margin[o] += jumps_.delta(index)[o];
            return;
        }
        const CornerVisit& c = jumps_.corner(index);
        if (c.n_past && c.n_before) return;  // neither before the corner nor after it
        const double sign = c.n_past ? 1.0 : -1.0;
        for (size_t o = 0; o < forest_.width(c.tree); ++o)
            margin[forest_.first(c.tree) + o] += sign * forest_.values[c.value + o];
    }

    // A leaf that several variables open or close at the same time, without a link.
    void add_leaf(const CornerVisit& c, double* credit) const {
        const bool few = c.n_past < ShareTable::SIDE && c.n_before < ShareTable::SIDE;
        const Shares shares = few ? shares_.at[true][c.n_past][c.n_before] : corner_shares(c.n_past, c.n_before, true);
        const int32_t* const members = jumps_.members(c);
        for (size_t i = 0; i < c.n_past + c.n_before; ++i) {
            double* const to = credit + static_cast<size_t>(members[i]) * k_ + forest_.first(c.tree);
            const double share = i < c.n_past ? shares.past : shares.before;
            for (size_t o = 0; o < forest_.width(c.tree); ++o) to[o] += share * forest_.values[c.value + o];
        }
    }

    void enter(int32_t index) {
        if (index >= 0) return terms_.add_change(splits_.variable[index], jumps_.delta(index), k_);
        const CornerVisit& c = jumps_.corner(index);
        terms_.add({jumps_.members(c), c.n_past, c.n_before, &forest_.values[c.value],
                    static_cast<uint32_t>(forest_.first(c.tree)), static_cast<uint32_t>(forest_.width(c.tree))});
    }

    static void give_step(int32_t variable, const double* after, size_t outputs, double weight, double* credit) {
        double* const to = credit + static_cast<size_t>(variable) * outputs;
        const double* const before = after - outputs;
        for (size_t o = 0; o < outputs; ++o) to[o] += weight * (after[o] - before[o]);
    }

    // Distributes the link's values.
    void give(double weight, double* credit) {
        const size_t outputs = link_.n_outputs();
        double* const value = values_.data();
        if (jumps_.apart()) {
            if (outputs == 1) {
                const int32_t* const jumpers = jumpers_.data();
                for (size_t i = 0, n = jumpers_.size(); i < n; ++i)
                    credit[jumpers[i]] += weight * (value[i + 1] - value[i]);
            } else
                for (size_t i = 0; i < jumpers_.size(); ++i)
                    give_step(jumpers_[i], value + (i + 1) * outputs, outputs, weight, credit);
            return;
        }
        const int32_t* players = players_.data();
        for (const Step& step : steps_) {
            if (step.variable >= 0) {
                give_step(step.variable, value + step.at * outputs, outputs, weight, credit);
                continue;
            }
            const auto n = static_cast<size_t>(step.players);
            fold_.solve_small(value + step.at * outputs, n, outputs, [&](size_t player, size_t o, double share) {
                credit[static_cast<size_t>(players[player]) * outputs + o] += weight * share;
            });
            players += n;
        }
    }
};

inline void check_link(const Forest& forest, const Link& link) {
    if (link.n_inputs() != forest.n_outputs())
        refuse("the link takes " + std::to_string(link.n_inputs()) + " numbers; the trees give " +
               std::to_string(forest.n_outputs()) + ".");
}

// A thread's workspace for pairs under a link.
struct LinkedWorker {
    Tracer tracer;
    LinkedCredit credit;

    LinkedWorker(const Forest& f, const LaneKernel* kernel, Route route, const Link& link, const CornerPolicy& policy)
        : tracer(f, kernel, route), credit(f, f.split_ids(), link, policy) {}
};

// Traces every start with every end, and calls take(worker, traced, start, end, weight, sum), where `sum` is the end's
// part of out (ends, table).
template <class Take>
void for_linked(const Forest& forest, const LaneKernel* kernel, const Link& link, const Rows& starts,
                const double* weights, const Rows& ends, const CornerPolicy& policy, size_t n_threads, size_t table,
                double* out, Take take) {
    const LaneKernel& shape = kernel ? *kernel : LANES_PLAIN;
    const Crowd crowd(forest, starts, weights, static_cast<size_t>(shape.lanes));
    const Route route = route_of_linked(forest, kernel, starts.n_rows);
    for_crowd(crowd, shape, START_BLOCK, kernel ? TRACE_VECTORS : 1, ends.n_rows, table, n_threads, out, [&] {
        return [&, worker = std::make_unique<LinkedWorker>(forest, kernel, route, link, policy)](
                   size_t begin, size_t n, size_t row, size_t n_rows, double* sum) {
            const Block block{crowd.columns.data() + begin, crowd.size, ends.row(row), 1, forest.n_columns()};
            worker->tracer.population(block, n, n_rows, [&](size_t i, size_t r, const TracedPair& pair) {
                take(*worker, pair, crowd.order[begin + i], row + r, crowd.weights[begin + i], sum + r * table);
            });
        };
    });
}

// values: (ends, columns, link outputs), the sum over starts of weight * credit, except for the corners that are
// returned.
inline std::vector<LargeCorner> linked_credits(const Forest& forest, const LaneKernel* kernel, const Link& link,
                                               const Rows& starts, const double* weights, const Rows& ends,
                                               double target, size_t n_threads, double* values) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    check_link(forest, link);
    LargeCorners large;
    if (ends.n_rows == 0) return {};
    const size_t k = forest.n_outputs(), table = forest.n_variables() * link.n_outputs();
    std::vector<double> margins(starts.n_rows * k);
    predict(forest, starts, margins.data());
    for_linked(forest, kernel, link, starts, weights, ends, {starts.n_rows, target}, n_threads, table, values,
               [&](LinkedWorker& worker, const TracedPair& pair, size_t start, size_t end, double weight, double* sum) {
                   worker.credit.add(pair, starts.row(start), ends.row(end), &margins[start * k], weight, sum,
                                     large.of(static_cast<int64_t>(end), static_cast<int64_t>(start)));
               });
    return large.in_order();
}

// values: (ends, starts, columns, link outputs), each start's credit separately, except for the corners that are
// returned, whose start and end are both the number of their pair. sums: (ends, starts, columns, outputs of the trees),
// the credits for the sum of trees itself, from the same walk.
inline std::vector<LargeCorner> linked_credits_singly(const Forest& forest, const LaneKernel* kernel, const Link& link,
                                                      const Rows& starts, const Rows& ends, double target,
                                                      size_t n_threads, double* values, double* sums) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_link(forest, link);
    LargeCorners large;
    const size_t k = forest.n_outputs(), pairs = starts.n_rows * ends.n_rows;
    const size_t table = forest.n_variables() * link.n_outputs(), sum_table = forest.n_variables() * k;
    if (pairs == 0) return {};
    std::vector<double> margins(starts.n_rows * k), ones(starts.n_rows, 1.0), unused(ends.n_rows);
    predict(forest, starts, margins.data());
    for_linked(forest, kernel, link, starts, ones.data(), ends, {1, target}, n_threads, 1, unused.data(),
               [&](LinkedWorker& worker, const TracedPair& traced, size_t start, size_t end, double weight, double*) {
                   const size_t pair = end * starts.n_rows + start;
                   std::fill_n(values + pair * table, table, 0.0);
                   std::fill_n(sums + pair * sum_table, sum_table, 0.0);
                   worker.credit.add(traced, starts.row(start), ends.row(end), &margins[start * k], weight,
                                     values + pair * table,
                                     large.of(static_cast<int64_t>(pair), static_cast<int64_t>(pair)));
                   worker.credit.add_sum(sums + pair * sum_table);
               });
    return large.in_order();
}

// values: (pairs, columns, link outputs), except for the corners that are returned.
inline std::vector<LargeCorner> linked_credits_pairs(const Forest& forest, const LaneKernel* kernel, const Link& link,
                                                     const Rows& starts, const Rows& ends, double target,
                                                     size_t n_threads, double* values) {
    check_pairs(forest, starts, ends);
    check_link(forest, link);
    LargeCorners large;
    const size_t table = forest.n_variables() * link.n_outputs(), k = forest.n_outputs();
    const size_t block_size = Tracer::block_size(kernel, ends.n_rows, n_threads);
    std::fill(values, values + ends.n_rows * table, 0.0);
    const Route route = route_of_pairs(forest, kernel);
    for_blocks(forest, starts, ends, n_threads, block_size, [&] {
        return [&, worker = std::make_unique<LinkedWorker>(forest, kernel, route, link, CornerPolicy{1, target}),
                margins = std::vector<double>(block_size * k)](size_t, size_t begin, size_t size,
                                                               const Block& block) mutable {
            predict(forest, Rows{starts.row(begin), size, starts.n_columns}, margins.data());
            worker->tracer.pairs(block, size, [&](size_t i, const TracedPair& pair) {
                const auto row = static_cast<int64_t>(begin + i);
                worker->credit.add(pair, starts.row(begin + i), ends.row(begin + i), &margins[i * k], 1.0,
                                   values + (begin + i) * table, large.of(row, row));
            });
        };
    });
    return large.in_order();
}

}  // namespace gigrad
