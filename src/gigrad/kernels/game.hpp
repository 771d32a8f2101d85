// The corner where several variables cross together under a link: Shapley's value of link(margin), exactly where the
// variables that matter are few, by sampled orders where they are many.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "link.hpp"

namespace gigrad {

struct GameOptions {
    size_t max_radix;  // corners of up to this many variables are enumerated
    size_t samples;    // antithetic pairs of orders for larger ones
    uint64_t seed;
};

// The margin of a coalition A is a sum of terms: a term's numbers count when all of its variables `past` are in A and
// none of those `before` is. The coalition of nobody gives the margin before the corner.
class Game {
  public:
    Game(const Link& link, const GameOptions& options) : link_(link), options_(options), n_margins_(link.n_inputs()) {}

    void clear() {
        terms_.clear();
        members_.clear();
        numbers_.clear();
        players_.clear();
    }

    // A term that gives `width` numbers, times `factor`, to the margins from `first` on.
    void add(const int32_t* past, size_t n_past, const int32_t* before, size_t n_before, const double* value, double factor,
             size_t first, size_t width) {
        terms_.push_back({members_.size(), n_past, n_before});
        members_.insert(members_.end(), past, past + n_past);
        members_.insert(members_.end(), before, before + n_before);
        numbers_.resize(numbers_.size() + n_margins_, 0.0);
        for (size_t k = 0; k < width; ++k) numbers_[numbers_.size() - n_margins_ + first + k] = factor * value[k];
    }

    // Adds weight * Shapley's value to credit and weight * standard error to error, both (variables, link outputs).
    // Moves `margin` past the corner. `salt` tells corners apart when orders are sampled.
    void solve(double* margin, double weight, uint64_t salt, double* credit, double* error) {
        name_players();
        if (players_.size() > options_.max_radix) simplify();
        if (players_.size() <= options_.max_radix)
            enumerate(margin, weight, credit);
        else
            sample(margin, weight, salt, credit, error);
    }

  private:
    struct Term {
        size_t members;  // where its variables begin: first those past, then those before
        size_t n_past, n_before;
    };
    const Link& link_;
    const GameOptions options_;
    const size_t n_margins_;
    std::vector<Term> terms_;
    std::vector<int32_t> members_;  // variables; after name_players, players
    std::vector<double> numbers_;   // (terms, margins)
    std::vector<int32_t> players_;  // the variable of each player
    std::vector<int32_t> player_of_;  // by variable; -1 outside name_players
    std::vector<double> table_, chance_, value_, mean_, squares_;
    std::vector<uint8_t> sizes_;  // how many players a coalition has

    // Players are in the order of their variables; there are few of them and many members.
    void name_players() {
        players_.clear();
        for (const int32_t variable : members_) {
            if (player_of_.size() <= static_cast<size_t>(variable)) player_of_.resize(static_cast<size_t>(variable) + 1, -1);
            if (player_of_[variable] < 0) player_of_[variable] = 0, players_.push_back(variable);
        }
        std::sort(players_.begin(), players_.end());
        for (size_t i = 0; i < players_.size(); ++i) player_of_[players_[i]] = static_cast<int32_t>(i);
        for (int32_t& member : members_) member = player_of_[member];
        for (const int32_t variable : players_) player_of_[variable] = -1;
    }

    // Calls f(mask, sign) for the products of indicators "in A" that a term is a sum of; the empty one left out.
    template <class F>
    void expand(const Term& term, F f) const {
        uint64_t past = 0;
        const int32_t* m = members_.data() + term.members;
        for (size_t i = 0; i < term.n_past; ++i) past |= uint64_t{1} << m[i];
        m += term.n_past;
        for (uint64_t subset = 0; subset < (uint64_t{1} << term.n_before); ++subset) {
            uint64_t mask = past;
            bool odd = false;
            for (size_t i = 0; i < term.n_before; ++i)
                if (subset >> i & 1) mask |= uint64_t{1} << m[i], odd = !odd;
            if (mask) f(mask, odd ? -1.0 : 1.0);
        }
    }

    // Joins the terms into one for each product of indicators and drops those that cancel, and with them the variables
    // without effect. Left as it is where that would cost more than it saves.
    void simplify() {
        if (players_.size() > 64) return;
        for (const Term& term : terms_)
            if (term.n_before > 10) return;
        std::unordered_map<uint64_t, size_t> where;
        std::vector<uint64_t> masks;
        std::vector<double> sums, sizes;
        for (size_t t = 0; t < terms_.size(); ++t)
            expand(terms_[t], [&](uint64_t mask, double sign) {
                const auto [at, is_new] = where.emplace(mask, masks.size());
                if (is_new) {
                    masks.push_back(mask);
                    sums.resize(sums.size() + n_margins_, 0.0);
                    sizes.resize(sums.size(), 0.0);
                }
                for (size_t k = 0; k < n_margins_; ++k) {
                    sums[at->second * n_margins_ + k] += sign * numbers_[t * n_margins_ + k];
                    sizes[at->second * n_margins_ + k] += std::abs(numbers_[t * n_margins_ + k]);
                }
            });
        const std::vector<int32_t> variables = players_;
        clear();
        std::vector<int32_t> past;
        for (size_t i = 0; i < masks.size(); ++i) {
            const double *sum = sums.data() + i * n_margins_, *size = sizes.data() + i * n_margins_;
            bool cancels = true;  // all but the rounding of its own terms
            for (size_t k = 0; k < n_margins_; ++k) cancels = cancels && std::abs(sum[k]) <= 1e-14 * size[k];
            if (cancels) continue;
            past.clear();
            for (size_t j = 0; j < variables.size(); ++j)
                if (masks[i] >> j & 1) past.push_back(variables[j]);
            add(past.data(), past.size(), nullptr, 0, sum, 1.0, 0, n_margins_);
        }
        name_players();
    }

    void enumerate(double* margin, double weight, double* credit) {
        const size_t n = players_.size(), subsets = size_t{1} << n, outputs = link_.n_outputs();
        table_.assign(subsets * n_margins_, 0.0);
        std::copy(margin, margin + n_margins_, table_.begin());
        for (size_t t = 0; t < terms_.size(); ++t)
            expand(terms_[t], [&](uint64_t mask, double sign) {
                for (size_t k = 0; k < n_margins_; ++k) table_[mask * n_margins_ + k] += sign * numbers_[t * n_margins_ + k];
            });
        for (size_t i = 0; i < n; ++i)  // sums over subsets, one player at a time
            each_without(i, subsets, [&](size_t a, size_t with) {
                for (size_t k = 0; k < n_margins_; ++k) table_[with * n_margins_ + k] += table_[a * n_margins_ + k];
            });
        std::copy(table_.begin() + static_cast<std::ptrdiff_t>((subsets - 1) * n_margins_),
                  table_.begin() + static_cast<std::ptrdiff_t>(subsets * n_margins_), margin);
        link_.apply(table_, subsets);
        weigh_subsets(n, weight);
        for (size_t i = 0; i < n; ++i) {
            double* to = credit + static_cast<size_t>(players_[i]) * outputs;
            each_without(i, subsets, [&](size_t a, size_t with) {
                for (size_t o = 0; o < outputs; ++o)
                    to[o] += chance_[a] * (table_[with * outputs + o] - table_[a * outputs + o]);
            });
        }
    }

    // Calls f(A, A with player i) for the coalitions A that player i is not in.
    template <class F>
    static void each_without(size_t i, size_t subsets, F f) {
        const size_t player = size_t{1} << i;
        for (size_t first = 0; first < subsets; first += 2 * player)
            for (size_t a = first; a < first + player; ++a) f(a, a + player);
    }

    // weight * |A|! (n-|A|-1)!/n! for every coalition A but the one of all.
    void weigh_subsets(size_t n, double weight) {
        std::vector<double> by_size(n + 1, weight / static_cast<double>(n));
        for (size_t a = 1; a < n; ++a) by_size[a] = by_size[a - 1] * static_cast<double>(a) / static_cast<double>(n - a);
        const size_t subsets = size_t{1} << n;
        sizes_.assign(subsets, 0);
        chance_.resize(subsets);
        for (size_t a = 0; a < subsets; ++a) {
            sizes_[a] = static_cast<uint8_t>(sizes_[a >> 1] + (a & 1));
            chance_[a] = by_size[sizes_[a]];
        }
    }

    // splitmix64: small, and the same everywhere, which the shuffles of the standard library are not.
    static uint64_t random(uint64_t& state) {
        uint64_t z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }

    // Orders in pairs, each with its reverse. Every order gives credits that add up, so their mean does.
    void sample(double* margin, double weight, uint64_t salt, double* credit, double* error) {
        const size_t n = players_.size(), outputs = link_.n_outputs(), cells = n * outputs;
        std::vector<std::vector<uint32_t>> entering(n), leaving(n);  // the terms of each player
        for (uint32_t t = 0; t < terms_.size(); ++t)
            for (size_t i = 0; i < terms_[t].n_past + terms_[t].n_before; ++i)
                (i < terms_[t].n_past ? entering : leaving)[members_[terms_[t].members + i]].push_back(t);
        std::vector<size_t> order(n);
        for (size_t i = 0; i < n; ++i) order[i] = i;
        uint64_t state = options_.seed * 0x2545f4914f6cdd1du + salt;
        mean_.assign(cells, 0.0);
        squares_.assign(cells, 0.0);
        std::vector<double> both(cells);
        for (size_t s = 0; s < options_.samples; ++s) {
            for (size_t i = n - 1; i > 0; --i) std::swap(order[i], order[random(state) % (i + 1)]);
            std::fill(both.begin(), both.end(), 0.0);
            for (int turn = 0; turn < 2; ++turn) {
                follow(order, entering, leaving, margin, both);
                std::reverse(order.begin(), order.end());
            }
            for (size_t c = 0; c < cells; ++c) {  // Welford's: exact zero where all orders agree
                const double off = both[c] - mean_[c];
                mean_[c] += off / static_cast<double>(s + 1);
                squares_[c] += off * (both[c] - mean_[c]);
            }
        }
        const double count = static_cast<double>(options_.samples);
        for (size_t c = 0; c < cells; ++c) {
            const size_t to = static_cast<size_t>(players_[c / outputs]) * outputs + c % outputs;
            credit[to] += weight * mean_[c];
            error[to] += std::abs(weight) * std::sqrt(squares_[c] / (count * (count - 1.0)));
        }
        std::copy(value_end_.begin(), value_end_.end(), margin);
    }

    std::vector<double> value_end_;  // the margin past the corner, as the last order found it

    // Lets the players in, one after the other, and adds half of what each one changes to `both`.
    void follow(const std::vector<size_t>& order, const std::vector<std::vector<uint32_t>>& entering,
                const std::vector<std::vector<uint32_t>>& leaving, const double* margin, std::vector<double>& both) {
        const size_t n = order.size(), outputs = link_.n_outputs();
        std::vector<size_t> waits(terms_.size());
        std::vector<char> shut(terms_.size(), 0);
        for (size_t t = 0; t < terms_.size(); ++t) waits[t] = terms_[t].n_past;
        value_.resize(std::max(value_.size(), (n + 1) * n_margins_));
        std::copy(margin, margin + n_margins_, value_.begin());
        for (size_t i = 0; i < n; ++i) {
            double* now = value_.data() + (i + 1) * n_margins_;
            std::copy(now - n_margins_, now, now);
            const auto change = [&](uint32_t t, double sign) {
                for (size_t k = 0; k < n_margins_; ++k) now[k] += sign * numbers_[t * n_margins_ + k];
            };
            for (const uint32_t t : entering[order[i]])
                if (--waits[t] == 0 && !shut[t]) change(t, 1.0);
            for (const uint32_t t : leaving[order[i]]) {
                if (waits[t] == 0 && !shut[t]) change(t, -1.0);
                shut[t] = 1;
            }
        }
        value_end_.assign(value_.begin() + static_cast<std::ptrdiff_t>(n * n_margins_),
                          value_.begin() + static_cast<std::ptrdiff_t>((n + 1) * n_margins_));
        link_.apply(value_, n + 1);
        for (size_t i = 0; i < n; ++i)
            for (size_t o = 0; o < outputs; ++o)
                both[order[i] * outputs + o] += 0.5 * (value_[(i + 1) * outputs + o] - value_[i * outputs + o]);
    }
};

}  // namespace gigrad
