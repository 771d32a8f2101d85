// The trees' outputs for the coalitions at one corner, for games with more than a link above the trees.
#pragma once

#include "link/corner_orders.hpp"

namespace gigrad {

// The leaves at the corner at `time` of one pair. The players are set by the caller, which combines the trees with
// other parts: `variables` are those with an effect on the trees, `set_players` sets the players and their order.
class CornerLeaves {
public:
    CornerLeaves(const Forest& forest, const double* s, const double* e, double time)
        : walk_(forest), terms_(forest.n_outputs()), nobody_(forest.n_outputs()) {
        walk_.collect(s, e, time, terms_, nobody_.data());
        terms_.name_players();
        terms_.drop_players_without_effect();
        variables_ = terms_.players();
        n_coefficients_ = terms_.n_coefficients(true);
    }

    const std::vector<int32_t>& variables() const { return variables_; }
    double n_coefficients() const { return n_coefficients_; }
    size_t n_margins() const { return terms_.n_margins(); }
    size_t n_players() const { return n_players_; }

    void set_players(const int32_t* variables, size_t n) {
        terms_.set_players(variables, n);
        n_players_ = n;
        next_part_ = 0;
        orders_ready_ = false;
    }

    // Scores of all coalitions of the first `bits` players, (2^bits, margins); of the others those in `part` are
    // included. Parts must be requested in order, from 0 on.
    void table(size_t bits, uint32_t part, double* out) {
        if (part != 0 && part != next_part_) refuse("parts of a corner must be asked for in order.");
        next_part_ = part + 1;
        margins_.find(terms_, bits, part, out);
        add_nobody(size_t{1} << bits, out);
    }

    // The players by strength; the first `strong` of them are enumerated from now on.
    void set_order(const std::vector<int32_t>& order, size_t strong) {
        prefixes_.set(terms_, order, strong);
        strong_ = strong, weak_ = order.size() - strong, orders_ready_ = true;
        rank_.resize(weak_);
    }

    bool orders_ready() const { return orders_ready_; }
    size_t strong() const { return strong_; }
    size_t weak() const { return weak_; }

    // Scores of all coalitions of the strong with none, one, ... all of the others, who join as in `joins` (weak,), by place
    // in the order of `set_order` after the strong: (weak + 1, 2^strong, margins).
    void follow(const int64_t* joins, double* out) {
        for (size_t t = 0; t < weak_; ++t) rank_[static_cast<size_t>(joins[t])] = static_cast<uint32_t>(t);
        const size_t cells = (size_t{1} << strong_) * n_margins();
        prefixes_.follow(rank_.data(), [&](size_t t, const double* margins) {
            std::copy(margins, margins + cells, out + t * cells);
            add_nobody(size_t{1} << strong_, out + t * cells);
        });
    }

    // The Shapley value of the sum of trees, (players, margins).
    void shares(double* out) const {
        std::vector<double> found;
        share_margins(terms_, found);
        std::copy(found.begin(), found.end(), out);
    }

private:
    CornerWalk walk_;
    CornerTerms terms_;
    std::vector<double> nobody_;
    std::vector<int32_t> variables_;
    double n_coefficients_ = 0.0;
    size_t n_players_ = 0, strong_ = 0, weak_ = 0;
    uint32_t next_part_ = 0;
    bool orders_ready_ = false;
    CoalitionMargins margins_;
    PrefixMargins prefixes_;
    std::vector<uint32_t> rank_;

    void add_nobody(size_t n, double* out) const {
        const size_t width = n_margins();
        for (size_t i = 0; i < n; ++i)
            for (size_t o = 0; o < width; ++o) out[i * width + o] += nobody_[o];
    }
};

// Scores of all coalitions of the k players (n, k) of each of n corners, (n, 2^k, outputs): bit i is player i of the corner.
inline void coalition_scores(const Forest& forest, const Rows& starts, const Rows& ends, const int64_t* pair,
                             const double* time, const int32_t* players, size_t n, size_t k, size_t n_threads,
                             double* out) {
    check_pairs(forest, starts, ends);
    check_queries(starts, pair, time, n);
    const size_t width = forest.n_outputs(), cells = (size_t{1} << k) * width;
    parallel((n + SOLVED_CORNERS - 1) / SOLVED_CORNERS, n_threads, [&](auto next) {
        CornerWalk walk(forest);
        CornerTerms terms(width);
        CoalitionMargins margins;
        std::vector<double> nobody(width);
        for (size_t unit; next(unit);)
            for (size_t i = unit * SOLVED_CORNERS; i < std::min(n, (unit + 1) * SOLVED_CORNERS); ++i) {
                walk.collect(starts.row(pair[i]), ends.row(pair[i]), time[i], terms, nobody.data());
                terms.set_players(players + i * k, k);
                double* const to = out + i * cells;
                margins.find(terms, k, 0, to);
                for (size_t c = 0; c < cells; ++c) to[c] += nobody[c % width];
            }
    });
}

// The Shapley value from the values of all coalitions, which are added in blocks.
class CoalitionFold {
public:
    CoalitionFold(size_t players, size_t outputs) : players_(players), outputs_(outputs), total_(size_t{1} << players) {
        fold_.begin(players, 0, outputs);
        fold_.begin_prefix(0);
    }

    size_t outputs() const { return outputs_; }
    size_t players() const { return players_; }
    size_t left() const { return total_ - done_; }
    size_t block() const { return ShapleyFold::block_size(players_); }

    // The next n coalitions, (n, outputs), a multiple of block().
    void add(const double* values, size_t n) {
        if (done_ == 0) nobody_.assign(values, values + outputs_);
        const size_t size = block();
        column_.resize(size);
        for (size_t i = 0; i < n; i += size, values += size * outputs_, done_ += size)
            for (size_t o = 0; o < outputs_; ++o) {
                for (size_t j = 0; j < size; ++j) column_[j] = values[j * outputs_ + o];
                fold_.add(done_ / size, o, column_.data(), nobody_[o], column_.data(), 0.0);
            }
    }

    // (players, outputs), after all coalitions were added; to be called once.
    void finish(double* out) {
        fold_.end_prefix();
        fold_.finish([&](size_t player, size_t output, double value) { out[player * outputs_ + output] = value; });
    }

private:
    const size_t players_, outputs_, total_;
    size_t done_ = 0;
    ShapleyFold fold_;
    std::vector<double> nobody_, column_;
};

// The mean marginal contribution of each player over all orders that keep that of the w who join one after the other:
// (orders, q + w, outputs), from values minus that of the empty one, (orders, w + 1, 2^q, outputs). At most eight are
// enumerated.
inline void fold_orders(const double* values, size_t orders, size_t q, size_t w, size_t outputs, double* out) {
    ShapleyFold fold;
    const size_t n = size_t{1} << q;
    std::vector<double> column(n);
    for (size_t i = 0; i < orders; ++i, out += (q + w) * outputs) {
        fold.begin(q, w, outputs);
        for (size_t t = 0; t <= w; ++t, values += n * outputs) {
            fold.begin_prefix(t);
            for (size_t o = 0; o < outputs; ++o) {
                for (size_t j = 0; j < n; ++j) column[j] = values[j * outputs + o];
                fold.add(0, o, column.data(), 0.0, column.data(), 0.0);
            }
            fold.end_prefix();
        }
        fold.finish([&](size_t player, size_t output, double value) { out[player * outputs + output] = value; });
    }
}

}  // namespace gigrad
