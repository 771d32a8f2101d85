// A corner too large to be enumerated: its weaker players join in random orders, the strongest are enumerated for each.
#pragma once

#include "walk/corner.hpp"
#include "link/corner_policy.hpp"
#include "link/corner_walk.hpp"
#include "walk/credits.hpp"

namespace gigrad {

// splitmix64: small, and the same everywhere, which the shuffles of the standard library are not.
inline uint64_t next_random(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// Shapley's value of the sum of trees itself, (players, margins), from its leaves.
inline void share_margins(const CornerTerms& terms, std::vector<double>& shares) {
    const size_t width = terms.n_margins();
    shares.assign(terms.players().size() * width, 0.0);
    for (const CornerTerm& t : terms.all()) {
        const Shares share = corner_shares(t.n_past, t.n_before, t.n_past && t.n_before);
        for (uint32_t i = 0; i < t.n_past + t.n_before; ++i)
            for (uint32_t o = 0; o < t.width; ++o)
                shares[static_cast<size_t>(terms.player(t.members[i])) * width + t.first + o] +=
                    (i < t.n_past ? share.past : share.before) * t.value[o];
    }
}

// The slopes (outputs, width) of the plane that fits n values (n, outputs) to margins (n, width) best, both with any offset.
inline void fit_slopes(const double* margins, const double* values, size_t n, size_t width, size_t outputs,
                       std::vector<double>& slopes) {
    const size_t columns = width + outputs;
    std::vector<double> mean(columns, 0.0), off(columns), products(width * columns, 0.0);
    const auto number = [&](size_t i, size_t c) {
        return c < width ? margins[i * width + c] : values[i * outputs + c - width];
    };
    for (size_t i = 0; i < n; ++i)
        for (size_t c = 0; c < columns; ++c) mean[c] += number(i, c) / static_cast<double>(n);
    for (size_t i = 0; i < n; ++i) {
        for (size_t c = 0; c < columns; ++c) off[c] = number(i, c) - mean[c];
        for (size_t r = 0; r < width; ++r)
            for (size_t c = 0; c < columns; ++c) products[r * columns + c] += off[r] * off[c];
    }
    double size = 0.0;
    for (size_t r = 0; r < width; ++r) size = std::max(size, products[r * columns + r]);
    for (size_t r = 0; r < width; ++r) products[r * columns + r] += 1e-9 * size + std::numeric_limits<double>::min();
    for (size_t r = 0; r < width; ++r)  // Gauss and Jordan: the matrix is positive definite and needs no pivots
        for (size_t other = 0; other < width; ++other) {
            if (other == r) continue;
            const double factor = products[other * columns + r] / products[r * columns + r];
            for (size_t c = r; c < columns; ++c) products[other * columns + c] -= factor * products[r * columns + c];
        }
    slopes.resize(outputs * width);
    for (size_t o = 0; o < outputs; ++o)
        for (size_t r = 0; r < width; ++r)
            slopes[o * width + r] = products[r * columns + width + o] / products[r * columns + r];
}

// The margins of coalitions of the strong players, prefix by prefix of an order of the others.
class PrefixMargins {
public:
    // `order` lists the players; the first `strong` of them are enumerated.
    void set(const CornerTerms& terms, const std::vector<int32_t>& order, size_t strong) {
        const size_t n = order.size();
        q_ = strong, w_ = n - strong, width_ = terms.n_margins(), cells_ = (size_t{1} << strong) * width_;
        std::vector<int32_t> place(n);
        for (size_t i = 0; i < n; ++i) place[order[i]] = static_cast<int32_t>(i);
        leaves_.clear();
        weak_.clear();
        base_.assign(cells_, 0.0);
        for (const CornerTerm& t : terms.all()) {
            Leaf leaf{0, 0, weak_.size(), 0, 0, &t};
            for (uint32_t i = 0; i < t.n_past + t.n_before; ++i) {
                const auto at = static_cast<size_t>(place[terms.player(t.members[i])]);
                if (at < q_)
                    (i < t.n_past ? leaf.past : leaf.before) |= uint32_t{1} << at;
                else
                    weak_.push_back(static_cast<uint32_t>(at - q_)), ++(i < t.n_past ? leaf.n_past : leaf.n_before);
            }
            if (leaf.n_past + leaf.n_before)
                leaves_.push_back(leaf);
            else
                add_leaf(leaf.past, leaf.before, t.value, t.width, base_.data() + t.first, width_);
        }
        events_.resize(2 * leaves_.size());
        begins_.assign(w_ + 3, 0);
        table_.resize(cells_);
        now_.resize(cells_);
    }

    // `rank` (weak players,): when each joins. Calls each(t, margins) for t = 0 .. w in turn, with what the trees give to
    // coalitions of the strong, (2^strong, margins), less what they give to nobody.
    template <class Each>
    void follow(const uint32_t* rank, Each each) {
        sort_events(rank);
        std::copy(base_.begin(), base_.end(), now_.begin());
        for (size_t t = 0; t <= w_; ++t) {
            for (uint32_t i = begins_[t]; i < begins_[t + 1]; ++i)
                change(leaves_[events_[i] >> 1], events_[i] & 1 ? -1.0 : 1.0);
            give(t, each);
        }
    }

    // The same for none of the weak players and for all of them.
    template <class Each>
    void follow_ends(Each each) {
        std::copy(base_.begin(), base_.end(), now_.begin());
        for (const Leaf& leaf : leaves_)
            if (!leaf.n_past) change(leaf, 1.0);
        give(0, each);
        std::copy(base_.begin(), base_.end(), now_.begin());
        for (const Leaf& leaf : leaves_)
            if (!leaf.n_before) change(leaf, 1.0);
        give(w_, each);
    }

private:
    struct Leaf {
        uint32_t past, before;  // strong players
        size_t weak;            // where its weak players begin: first those past, then those before
        uint32_t n_past, n_before;
        const CornerTerm* term;
    };
    size_t q_ = 0, w_ = 0, width_ = 1, cells_ = 1;
    std::vector<Leaf> leaves_;  // those with weak players
    std::vector<uint32_t> weak_;
    std::vector<double> base_, now_, table_, nobody_;
    std::vector<uint32_t> events_, enters_, leaves_at_, begins_;

    // Leaf i comes in (2 i) when the last of its players past has joined, and goes (2 i + 1) when the first of those before has.
    void sort_events(const uint32_t* rank) {
        const size_t n = leaves_.size();
        enters_.resize(n);
        leaves_at_.resize(n);
        std::fill(begins_.begin(), begins_.end(), 0u);
        const auto never = static_cast<uint32_t>(w_ + 1);
        for (size_t i = 0; i < n; ++i) {
            const Leaf& leaf = leaves_[i];
            uint32_t in = 0, out = never;
            for (uint32_t j = 0; j < leaf.n_past; ++j) in = std::max(in, rank[weak_[leaf.weak + j]] + 1);
            for (uint32_t j = 0; j < leaf.n_before; ++j)
                out = std::min(out, rank[weak_[leaf.weak + leaf.n_past + j]] + 1);
            if (in >= out) in = out = never;
            enters_[i] = in, leaves_at_[i] = out;
            ++begins_[in + 1], ++begins_[out + 1];
        }
        for (size_t t = 0; t + 1 < begins_.size(); ++t) begins_[t + 1] += begins_[t];
        for (size_t i = 0; i < n; ++i) {
            events_[begins_[enters_[i]]++] = static_cast<uint32_t>(2 * i);
            events_[begins_[leaves_at_[i]]++] = static_cast<uint32_t>(2 * i + 1);
        }
        for (size_t t = begins_.size() - 1; t > 0; --t) begins_[t] = begins_[t - 1];
        begins_[0] = 0;
    }

    template <class Each>
    void give(size_t t, Each& each) {
        std::copy(now_.begin(), now_.end(), table_.begin());
        if (t == 0) nobody_.assign(now_.begin(), now_.begin() + static_cast<std::ptrdiff_t>(width_));
        for (size_t o = 0; o < width_; ++o) table_[o] -= nobody_[o];
        zeta_transform(table_.data(), size_t{1} << q_, width_);
        each(t, table_.data());
    }

    void change(const Leaf& leaf, double sign) {
        const CornerTerm& t = *leaf.term;
        signed_.resize(t.width);
        for (uint32_t o = 0; o < t.width; ++o) signed_[o] = sign * t.value[o];
        double* const to = now_.data() + t.first;
        add_leaf(leaf.past, leaf.before, signed_.data(), t.width, to, width_);
    }
    std::vector<double> signed_;
};

// Random orders of w players in groups of four: one, its second half before its first, and both backwards. The mean over
// a group varies less than that over four orders drawn alone.
class OrderGroups {
public:
    OrderGroups(size_t w, uint64_t seed) : joins_(w), seed_(seed) {
        for (size_t i = 0; i < w; ++i) joins_[i] = static_cast<uint32_t>(i);
    }

    // Calls each(players in the order in which they join) for the four orders of the next group.
    template <class Each>
    void next(Each each) {
        const size_t w = joins_.size();
        for (size_t j = w; j-- > 1;) std::swap(joins_[j], joins_[next_random(seed_) % (j + 1)]);
        for (int turn = 0; turn < 4; ++turn) {
            each(joins_);
            std::reverse(joins_.begin(), joins_.end());
            if (turn == 1)
                std::rotate(joins_.begin(), joins_.begin() + static_cast<std::ptrdiff_t>(w / 2), joins_.end());
        }
    }

private:
    std::vector<uint32_t> joins_;
    uint64_t seed_;
};

// What sampled orders of one corner tell.
//
// Every group of orders gives credits that add up. What the margins explain of a group is left out of the mean: the game is link(margin) - slopes * margin, with
// slopes that depend on the corner alone, and Shapley's value of the margins is known.
class CornerSample {
public:
    explicit CornerSample(const Link& link) : outputs_(link.n_outputs()), fold_(link) {}

    // `strong` of the players are enumerated; `margin` is that of nobody; `count` groups of orders from `seed`.
    void draw(const CornerTerms& terms, const double* margin, size_t strong, size_t count, uint64_t seed) {
        const size_t n = terms.players().size(), w = n - strong, cells = n * outputs_;
        begin(terms, margin, strong);
        mean.assign(cells, 0.0);
        squares.assign(cells, 0.0);
        low_.assign(cells, std::numeric_limits<double>::infinity());
        high_.assign(cells, -std::numeric_limits<double>::infinity());
        rank_.resize(w);
        OrderGroups orders(w, seed);
        for (size_t i = 0; i < count; ++i) {
            check_interrupt();
            group_.assign(cells, 0.0);
            orders.next([&](const std::vector<uint32_t>& joins) { follow(joins, margin, strong, terms.n_margins()); });
            take(i + 1);
        }
        for (size_t c = 0; c < cells; ++c)
            for (size_t m = 0; m < terms.n_margins(); ++m)
                mean[c] +=
                    slopes_[c % outputs_ * terms.n_margins() + m] * shares_[c / outputs_ * terms.n_margins() + m];
    }

    // By player and output: the mean, the sum of squared differences from it, and the largest difference of two.
    std::vector<double> mean, squares;
    double range(size_t cell) const { return high_[cell] - low_[cell]; }

private:
    const size_t outputs_;
    LinkedFold fold_;
    PrefixMargins prefixes_;
    std::vector<int32_t> order_;  // players, the strongest first
    std::vector<uint32_t> rank_;  // of the others: when each of them joins
    std::vector<double> shares_, slopes_, low_, high_, group_, ends_, linked_;

    // Who is strong, and the slopes: fitted to the coalitions of the strong, with none and with all of the others.
    void begin(const CornerTerms& terms, const double* margin, size_t strong) {
        const size_t n = terms.players().size(), width = terms.n_margins(), cells = (size_t{1} << strong) * width;
        share_margins(terms, shares_);
        order_.resize(n);
        for (size_t i = 0; i < n; ++i) order_[i] = static_cast<int32_t>(i);
        const auto strength = [&](int32_t i) {
            double sum = 0.0;
            for (size_t m = 0; m < width; ++m) sum += std::abs(shares_[static_cast<size_t>(i) * width + m]);
            return sum;
        };
        std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return strength(a) > strength(b); });
        prefixes_.set(terms, order_, strong);
        ends_.clear();
        prefixes_.follow_ends(
            [&](size_t, const double* margins) { ends_.insert(ends_.end(), margins, margins + cells); });
        fold_.begin(strong, n - strong, margin, width);
        const double* const linked = fold_.apply(ends_.data(), 2 * cells / width);
        fit_slopes(ends_.data(), linked, 2 * cells / width, width, outputs_, slopes_);
    }

    void follow(const std::vector<uint32_t>& joins, const double* margin, size_t strong, size_t width) {
        const size_t w = joins.size();
        for (size_t t = 0; t < w; ++t) rank_[joins[t]] = static_cast<uint32_t>(t);
        fold_.begin(strong, w, margin, width);
        prefixes_.follow(rank_.data(), [&](size_t t, const double* margins) {
            fold_.begin_prefix(t);
            fold_.add(0, size_t{1} << strong, margins, slopes_.data());
            fold_.end_prefix();
        });
        fold_.finish([&](size_t player, size_t output, double value) {
            const auto who = static_cast<size_t>(order_[player < strong ? player : strong + joins[player - strong]]);
            group_[who * outputs_ + output] += 0.25 * value;
        });
    }

    void take(size_t n) {
        for (size_t c = 0; c < group_.size(); ++c) {  // Welford's: exact zero where all orders agree
            const double off = group_[c] - mean[c];
            mean[c] += off / static_cast<double>(n);
            squares[c] += off * (group_[c] - mean[c]);
            low_[c] = std::min(low_[c], group_[c]);
            high_[c] = std::max(high_[c], group_[c]);
        }
    }
};

// Corners to be sampled, those of a row one after the other.
struct SampledCorners {
    size_t n;
    const int64_t *row, *start, *end;  // row: where the credit goes; start, end: the pair
    const double *time, *weight;
    const int64_t* count;  // groups of orders, two at least
    const uint64_t* seed;
};

// Sums over the corners of a row, each (rows, columns, link outputs): of weight * credit; of its variance; of the squared
// variances over their degrees of freedom; and the largest weight * range / count.
struct SampleSums {
    double *credit, *variance, *squared, *reach;
};

inline void sample_corners(const Forest& forest, const Link& link, const Rows& starts, const Rows& ends,
                           const SampledCorners& corners, size_t n_rows, size_t n_threads, const SampleSums& out) {
    const size_t outputs = link.n_outputs(), table = forest.n_variables() * outputs;
    // Units of a few corners of one row, added up in order: the same for any number of threads and any company.
    constexpr size_t unit_size = 8;
    std::vector<size_t> begins;
    for (size_t i = 0; i < corners.n; ++i)
        if (i == 0 || corners.row[i] != corners.row[i - 1] || i - begins.back() == unit_size) begins.push_back(i);
    begins.push_back(corners.n);
    const size_t n_units = begins.size() - 1;
    std::vector<std::vector<double>> parts(n_units);
    parallel(n_units, n_threads, [&](auto next) {
        CornerWalk walk(forest);
        CornerTerms terms(forest.n_outputs());
        CornerSample sample(link);
        std::vector<double> nobody(forest.n_outputs());
        for (size_t unit; next(unit);) {
            parts[unit].assign(4 * table, 0.0);
            double *const credit = parts[unit].data(), *const variance = credit + table,
                          *const squared = variance + table, *const reach = squared + table;
            for (size_t i = begins[unit]; i < begins[unit + 1]; ++i) {
                walk.collect(starts.row(corners.start[i]), ends.row(corners.end[i]), corners.time[i], terms,
                             nobody.data());
                terms.name_players();
                const size_t n = terms.drop_players_without_effect();
                sample.draw(terms, nobody.data(), std::min(STRONG_PLAYERS, n), static_cast<size_t>(corners.count[i]),
                            corners.seed[i]);
                const double weight = corners.weight[i], count = static_cast<double>(corners.count[i]);
                for (size_t c = 0; c < n * outputs; ++c) {
                    const size_t to = static_cast<size_t>(terms.players()[c / outputs]) * outputs + c % outputs;
                    const double v = weight * weight * sample.squares[c] / (count * (count - 1.0));
                    credit[to] += weight * sample.mean[c];
                    variance[to] += v;
                    squared[to] += v * v / (count - 1.0);
                    reach[to] = std::max(reach[to], std::abs(weight) * sample.range(c) / count);
                }
            }
        }
    });
    for (double* sums : {out.credit, out.variance, out.squared, out.reach}) std::fill(sums, sums + n_rows * table, 0.0);
    for (size_t unit = 0; unit < n_units; ++unit) {
        const size_t at = static_cast<size_t>(corners.row[begins[unit]]) * table;
        for (size_t c = 0; c < table; ++c) {
            out.credit[at + c] += parts[unit][c];
            out.variance[at + c] += parts[unit][table + c];
            out.squared[at + c] += parts[unit][2 * table + c];
            out.reach[at + c] = std::max(out.reach[at + c], parts[unit][3 * table + c]);
        }
    }
}

}  // namespace gigrad
