// Credit of link(sum of trees): the jumps of each pair in order of time, each earning link(after) - link(before).
#pragma once

#include "game.hpp"
#include "ordered.hpp"

namespace gigrad {

class LinkedCredit {
  public:
    LinkedCredit(const Forest& forest, const SplitIds& splits, const Link& link, const GameOptions& options)
        : forest_(forest), splits_(splits), link_(link), game_(link, options), k_(forest.n_outputs()), jumps_(forest, splits) {}

    // Adds weight * credit of a pair; `start`, `end` are its rows, `margin` the trees' outputs at the start.
    void add(const TracedPair& pair, const double* start, const double* end, const double* margin, double weight, uint64_t salt,
             double* credit, double* error) {
        jumps_.read(pair, start, end);
        margins_.resize(std::max(margins_.size(), (jumps_.size() + 1) * k_));
        std::copy(margin, margin + k_, margins_.begin());
        jumpers_.clear();
        if (jumps_.apart())
            follow_alone();
        else
            follow(weight, salt, credit, error);
        link_.apply(margins_, jumpers_.size() + 1);
        const size_t outputs = link_.n_outputs();
        if (outputs == 1 && jumps_.apart()) {
            const double* value = margins_.data();
            for (size_t i = 0; i < jumpers_.size(); ++i) credit[jumpers_[i]] += weight * (value[i + 1] - value[i]);
            return;
        }
        for (size_t i = 0; i < jumpers_.size(); ++i) {
            if (jumpers_[i] < 0) continue;
            double* to = credit + static_cast<size_t>(jumpers_[i]) * outputs;
            const double *before = margins_.data() + i * outputs, *after = before + outputs;
            for (size_t o = 0; o < outputs; ++o) to[o] += weight * (after[o] - before[o]);
        }
    }

  private:
    const Forest& forest_;
    const SplitIds& splits_;
    const Link& link_;
    Game game_;
    const size_t k_;
    OrderedJumps jumps_;
    std::vector<double> margins_;
    std::vector<int32_t> jumpers_;  // the variable of each corner; -1 where there are several

    // Every jump on its own: the common case.
    void follow_alone() {
        const size_t n = jumps_.size();
        jumpers_.resize(n);
        double* now = margins_.data();
        if (k_ == 1) {
            const double* const delta = jumps_.delta(0);
            const int32_t* const variable = splits_.variable.data();
            int32_t* const jumpers = jumpers_.data();
            double margin = *now;
            for (size_t i = 0; i < n; ++i) {
                const int32_t id = jumps_.index(i);
                margin += delta[id];
                now[i + 1] = margin;
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

    void follow(double weight, uint64_t salt, double* credit, double* error) {
        for (size_t begin = 0, stop; begin < jumps_.size(); begin = stop) {
            for (stop = begin + 1; stop < jumps_.size() && jumps_.time(stop) == jumps_.time(begin);) ++stop;
            double* now = margins_.data() + (jumpers_.size() + 1) * k_;
            std::copy(now - k_, now, now);
            const int32_t lone = jumps_.lone_variable(begin, stop);
            jumpers_.push_back(lone);
            if (lone >= 0) {
                for (size_t i = begin; i < stop; ++i) jump(jumps_.index(i), now);
            } else {
                game_.clear();
                for (size_t i = begin; i < stop; ++i) enter(jumps_.index(i));
                game_.solve(now, weight, salt * 1000003u + jumpers_.size(), credit, error);
            }
        }
    }

    void jump(int32_t index, double* margin) const {
        if (index >= 0) {
            for (size_t o = 0; o < k_; ++o) margin[o] += jumps_.delta(index)[o];
            return;
        }
        const CornerVisit& c = jumps_.corner(index);
        const double sign = c.n_past ? 1.0 : -1.0;
        for (size_t o = 0; o < forest_.width(c.tree); ++o) margin[forest_.first(c.tree) + o] += sign * forest_.values[c.value + o];
    }

    void enter(int32_t index) {
        if (index >= 0) {
            const double* value = jumps_.delta(index);
            if (std::all_of(value, value + k_, [](double v) { return v == 0.0; })) return;
            game_.add(&splits_.variable[index], 1, nullptr, 0, value, 1.0, 0, k_);
            return;
        }
        const CornerVisit& c = jumps_.corner(index);
        const int32_t* members = jumps_.members(c);
        game_.add(members, c.n_past, members + c.n_past, c.n_before, &forest_.values[c.value], 1.0, forest_.first(c.tree),
                  forest_.width(c.tree));
    }
};

// Largest over the variables, of errors (variables, outputs).
inline void largest_error(const double* errors, size_t n_variables, size_t outputs, double* out) {
    std::fill(out, out + outputs, 0.0);
    for (size_t j = 0; j < n_variables; ++j)
        for (size_t o = 0; o < outputs; ++o) out[o] = std::max(out[o], errors[j * outputs + o]);
}

inline void check_link(const Forest& forest, const Link& link, const GameOptions& options) {
    if (link.n_inputs() != forest.n_outputs())
        refuse("the link takes " + std::to_string(link.n_inputs()) + " numbers; the trees give " + std::to_string(forest.n_outputs()) + ".");
    if (options.max_radix < 1 || options.max_radix > 20)
        refuse("max_radix must lie in 1..20; it is " + std::to_string(options.max_radix) + ".");
    if (options.samples < 2) refuse("samples must be at least 2.");
}

// A thread's means to credit pairs under a link.
struct LinkedWorker {
    Tracer tracer;
    LinkedCredit credit;

    LinkedWorker(const Forest& f, const LaneKernel* kernel, bool alone, const Link& link, const GameOptions& options)
        : tracer(f, kernel, alone), credit(f, f.split_ids(), link, options) {}
};

// values: (ends, columns, link outputs), the sum over starts of weight * credit; error: (ends, link outputs).
inline void linked_credits(const Forest& forest, const LaneKernel* kernel, const Link& link, const GameOptions& options, const Rows& starts,
                           const double* weights, const Rows& ends, size_t n_threads, double* values, double* error) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    check_link(forest, link, options);
    if (ends.n_rows == 0) return;
    const size_t p = forest.n_columns(), k = forest.n_outputs(), outputs = link.n_outputs(), table = forest.n_variables() * outputs;
    std::vector<double> margins(starts.n_rows * k), both(ends.n_rows * 2 * table);  // credits, then their errors, of each end
    predict(forest, starts, margins.data());
    const LaneKernel& shape = kernel ? *kernel : LANES_PLAIN;
    const Crowd crowd(forest, starts, weights, static_cast<size_t>(shape.lanes));
    // What happens at each split of a swept pair is looked for among all of them. With several outputs that is more than
    // lanes cost that are full.
    const bool alone = k == 1 || starts.n_rows <= FEW_STARTS;
    for_crowd(crowd, shape, kernel ? TRACE_VECTORS : 1, ends.n_rows, 2 * table, n_threads, both.data(), [&] {
        return [&, worker = std::make_unique<LinkedWorker>(forest, kernel, alone, link, options)](size_t begin, size_t n, size_t row,
                                                                                                 size_t n_rows, double* sum) {
            const Block block{crowd.columns.data() + begin, crowd.size, ends.row(row), 1, p};
            worker->tracer.population(block, n, n_rows, [&](size_t i, size_t r, const TracedPair& pair) {
                const size_t start = crowd.order[begin + i];
                worker->credit.add(pair, starts.row(start), ends.row(row + r), &margins[start * k], crowd.weights[begin + i], start,
                                   sum + r * 2 * table, sum + r * 2 * table + table);
            });
        };
    });
    for (size_t i = 0; i < ends.n_rows; ++i) {
        const double* mine = both.data() + i * 2 * table;
        std::copy(mine, mine + table, values + i * table);
        largest_error(mine + table, forest.n_variables(), outputs, error + i * outputs);
    }
}

// values: (pairs, columns, link outputs); error: (pairs, link outputs).
inline void linked_credits_pairs(const Forest& forest, const LaneKernel* kernel, const Link& link, const GameOptions& options,
                                 const Rows& starts, const Rows& ends, size_t n_threads, double* values, double* error) {
    check_pairs(forest, starts, ends);
    check_link(forest, link, options);
    const size_t outputs = link.n_outputs(), table = forest.n_variables() * outputs, k = forest.n_outputs();
    const size_t block_size = Tracer::block_size(kernel, ends.n_rows, n_threads);
    std::fill(values, values + ends.n_rows * table, 0.0);
    for_blocks(forest, starts, ends, n_threads, block_size, [&] {
        return [&, worker = std::make_unique<LinkedWorker>(forest, kernel, true, link, options), errors = std::vector<double>(),
                margins = std::vector<double>(block_size * k)](size_t, size_t begin, size_t size, const Block& block) mutable {
            predict(forest, Rows{starts.row(begin), size, starts.n_columns}, margins.data());
            worker->tracer.pairs(block, size, [&](size_t i, const TracedPair& pair) {
                errors.assign(table, 0.0);
                worker->credit.add(pair, starts.row(begin + i), ends.row(begin + i), &margins[i * k], 1.0, 0,
                                   values + (begin + i) * table, errors.data());
                largest_error(errors.data(), forest.n_variables(), outputs, error + (begin + i) * outputs);
            });
        };
    });
}

}  // namespace gigrad
