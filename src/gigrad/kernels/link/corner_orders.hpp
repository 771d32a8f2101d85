// A corner too large to be enumerated: its weaker players join in random orders, the strongest are enumerated for each.
#pragma once

#include "walk/corner.hpp"
#include "link/large_corners.hpp"
#include "link/weak_cubic.hpp"
#include "walk/credits.hpp"
#include "limits.hpp"

namespace gigrad {

// splitmix64: small, and the same on all platforms, unlike the shuffles of the standard library.
inline uint64_t next_random(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

// The Shapley value of the sum of trees itself, (players, margins), from its leaves.
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

// The effect of each player on the sum of trees, (players,): the mean size over all coalitions of the others, a better
// predictor than the Shapley value of whose orders matter. Enumerating eight by it left 0.75 times the variance.
inline std::vector<double> mean_changes(const CornerTerms& terms) {
    const size_t width = terms.n_margins(), n = terms.players().size();
    std::vector<double> change(n * width, 0.0), out(n, 0.0);
    for (const CornerTerm& t : terms.all()) {
        const uint32_t members = t.n_past + t.n_before;
        const double part = std::ldexp(1.0, 1 - static_cast<int>(members));
        for (uint32_t i = 0; i < members; ++i)
            for (uint32_t o = 0; o < t.width; ++o)
                change[static_cast<size_t>(terms.player(t.members[i])) * width + t.first + o] +=
                    (i < t.n_past ? part : -part) * t.value[o];
    }
    for (size_t c = 0; c < n * width; ++c) out[c / width] += std::abs(change[c]);
    return out;
}

// The slopes (outputs, width) of the least-squares fit of n values (n, outputs) to margins (n, width), with an
// intercept.
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
    for (size_t r = 0; r < width;
         ++r)  // Gauss-Jordan elimination: the matrix is positive definite and needs no pivoting
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

// Random orders of w players in groups of four: one, its halves exchanged, and both reversed. The mean over a group has
// less variance than that over four independent orders.
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

// Estimates from sampled orders of one corner.
//
// The credits of every group of orders add up. A game of known Shapley value serves as control variate; it depends on
// the corner alone: for one margin WeakCubic, for several slopes * margins.
class CornerSample {
public:
    explicit CornerSample(const Link& link) : outputs_(link.n_outputs()), fold_(link) {}

    // `strong` of the players are enumerated from now on; `margin` is that of the empty coalition.
    void set(const CornerTerms& terms, const double* margin, size_t strong) {
        margin_ = margin, strong_ = strong, width_ = terms.n_margins();
        rank_.resize(terms.players().size() - strong);
        begin(terms, margin, strong);
        known_.assign(terms.players().size() * outputs_, 0.0);
        add_known(known_);
    }

    // How many groups of orders to draw, `count` at least, so that those of all corners of a row together have a standard
    // error within `allowed` times the largest credit of its output, or times scale (outputs,), whichever is more, for
    // each corner. The number is proportional to the standard deviation of a group, not to its square: Neyman's rule,
    // the least variance of the row for a number of groups. It is estimated from one group, which is then discarded:
    // later samples depend on it only through their number.
    size_t enough(size_t count, double allowed, const double* scale, uint64_t seed) {
        group_.assign(known_.size(), 0.0);
        OrderGroups orders(rank_.size(), ~seed);
        size_t turn = 0;
        orders.next([&](const std::vector<uint32_t>& joins) {
            follow(joins);
            if (++turn == 2) half_ = group_;
        });
        largest_.assign(scale, scale + outputs_);
        for (size_t c = 0; c < known_.size(); ++c)
            largest_[c % outputs_] = std::max(largest_[c % outputs_], std::abs(known_[c]));
        double most = 0.0;
        for (size_t c = 0; c < known_.size(); ++c) {
            // half of the difference of the means of two orders each: the standard error of both, were they independent
            const double error = std::abs(2.0 * half_[c] - group_[c]), limit = allowed * largest_[c % outputs_];
            if (error > 0.0) most = std::max(most, limit > 0.0 ? error / limit : MOST_GROUPS);
        }
        const double needed = std::ceil(std::min(GROUP_CAUTION * most, MOST_GROUPS));
        return std::max(count, static_cast<size_t>(needed));
    }

    // The coalitions of a group of orders.
    size_t asked() const { return 4 * (rank_.size() + 1) << strong_; }

    // `count` groups of orders from `seed`.
    void draw(size_t count, uint64_t seed) {
        const size_t cells = known_.size();
        mean.assign(cells, 0.0);
        squares.assign(cells, 0.0);
        low_.assign(cells, std::numeric_limits<double>::infinity());
        high_.assign(cells, -std::numeric_limits<double>::infinity());
        OrderGroups orders(rank_.size(), seed);
        for (size_t i = 0; i < count; ++i) {
            check_interrupt();
            group_.assign(cells, 0.0);
            orders.next([&](const std::vector<uint32_t>& joins) { follow(joins); });
            take(i + 1);
        }
        for (size_t c = 0; c < cells; ++c) mean[c] += known_[c];
    }

    // By player and output: the mean, the sum of squared differences from it, and the largest difference of two.
    std::vector<double> mean, squares;
    double range(size_t cell) const { return high_[cell] - low_[cell]; }

private:
    const size_t outputs_;
    const double* margin_ = nullptr;
    size_t strong_ = 0, width_ = 1;
    LinkedFold fold_;
    PrefixMargins prefixes_;
    WeakCubic cubic_;             // for one margin; else a plane
    std::vector<int32_t> order_;  // players, the strongest first
    std::vector<uint32_t> rank_;  // of the others: when each of them joins
    std::vector<double> shares_, slopes_, low_, high_, group_, half_, ends_, known_, largest_;

    // Chooses the strong players and fits the slopes to the coalitions of the strong, with none and with all of the
    // others.
    void begin(const CornerTerms& terms, const double* margin, size_t strong) {
        const size_t n = terms.players().size(), width = terms.n_margins(), cells = (size_t{1} << strong) * width;
        order_.resize(n);
        for (size_t i = 0; i < n; ++i) order_[i] = static_cast<int32_t>(i);
        const std::vector<double> strength = mean_changes(terms);
        std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) { return strength[a] > strength[b]; });
        prefixes_.set(terms, order_, strong);
        fold_.begin(strong, n - strong, margin, width);
        if (width == 1) {
            cubic_.set(prefixes_, outputs_, [&](const double* margins, size_t m) { return fold_.apply(margins, m); });
            return;
        }
        share_margins(terms, shares_);
        ends_.clear();
        prefixes_.follow_ends(
            [&](size_t, const double* margins) { ends_.insert(ends_.end(), margins, margins + cells); });
        const double* const linked = fold_.apply(ends_.data(), 2 * cells / width);
        fit_slopes(ends_.data(), linked, 2 * cells / width, width, outputs_, slopes_);
    }

    void follow(const std::vector<uint32_t>& joins) {
        const size_t w = joins.size(), strong = strong_, width = width_;
        for (size_t t = 0; t < w; ++t) rank_[joins[t]] = static_cast<uint32_t>(t);
        fold_.begin(strong, w, margin_, width);
        if (width == 1) cubic_.begin();
        prefixes_.follow(rank_.data(), [&](size_t t, const double* margins) {
            fold_.begin_prefix(t);
            if (width == 1) {
                if (t) cubic_.join(joins[t - 1]);
                fold_.add_left(cubic_, margins);
            } else {
                fold_.add(0, size_t{1} << strong, margins, slopes_.data());
            }
            fold_.end_prefix();
        });
        fold_.finish([&](size_t player, size_t output, double value) {
            const auto who = static_cast<size_t>(order_[player < strong ? player : strong + joins[player - strong]]);
            group_[who * outputs_ + output] += 0.25 * value;
        });
    }

    // Adds the Shapley value of the control variate.
    void add_known(std::vector<double>& to) const {
        if (width_ == 1) {
            for (size_t i = 0; i < order_.size(); ++i)
                for (size_t o = 0; o < outputs_; ++o)
                    to[static_cast<size_t>(order_[i]) * outputs_ + o] += cubic_.known(i, o);
            return;
        }
        for (size_t c = 0; c < to.size(); ++c)
            for (size_t m = 0; m < width_; ++m)
                to[c] += slopes_[c % outputs_ * width_ + m] * shares_[c / outputs_ * width_ + m];
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
    const int64_t* count;  // groups of orders, two at least; 0: all coalitions are enumerated
    const uint64_t* seed;
    const double *allowed, *scale;  // of CornerSample::enough, (n,) and (n, outputs); or null: no more than `count`
    const LargeCorner* found = nullptr;  // what a walk found, or null: corner i is number[i] of it
    const int64_t* number = nullptr;
};

// Sums over the corners of a row, each (rows, columns, link outputs): of weight * credit where orders were drawn, and
// where all coalitions were enumerated; of its variance; of the squared variances over their degrees of freedom; and
// the largest weight * range / count. And for each corner, (corners,), the largest variance that a credit has from one
// group of orders to another, and how many groups were drawn. `common` (3, rows, link outputs) has the sums of
// variances and of squared variances and the largest reach as if all columns had those of the one that has most at each
// corner.
struct SampleSums {
    double *credit, *settled, *variance, *squared, *reach, *common, *spread;
    int64_t* count;
};

inline void sample_corners(const Forest& forest, const Link& link, const Rows& starts, const Rows& ends,
                           const SampledCorners& corners, size_t n_rows, size_t n_threads, const SampleSums& out) {
    const size_t outputs = link.n_outputs(), table = forest.n_variables() * outputs;
    // Units of a few corners of one row, added up in order: the same bits for any number of threads, and whichever other rows are
    // explained in the same call.
    std::vector<size_t> begins;
    for (size_t i = 0; i < corners.n; ++i)
        if (i == 0 || corners.row[i] != corners.row[i - 1] || i - begins.back() == SAMPLED_CORNERS) begins.push_back(i);
    begins.push_back(corners.n);
    const size_t n_units = begins.size() - 1;
    std::vector<std::vector<double>> parts(n_units);
    parallel(n_units, n_threads, [&](auto next) {
        CornerTermSource source(forest, SAMPLED_CORNERS);
        CornerTerms terms(forest.n_outputs());
        CornerSample sample(link);
        CornerGame game(link);
        std::vector<double> most;
        for (size_t unit; next(unit);) {
            parts[unit].assign(5 * table + 3 * outputs, 0.0);
            double *const credit = parts[unit].data(), *const settled = credit + table,
                          *const variance = settled + table, *const squared = variance + table,
                          *const reach = squared + table, *const common = reach + table;
            const size_t first = begins[unit], last = begins[unit + 1];
            source.set(
                last - first,
                [&](size_t i) { return corners.found ? corners.found + corners.number[first + i] : nullptr; },
                [&](size_t i) { return starts.row(corners.start[first + i]); },
                [&](size_t i) { return ends.row(corners.end[first + i]); },
                [&](size_t i) { return corners.time[first + i]; });
            for (size_t i = first; i < last; ++i) {
                const double* const nobody = source.take(i - first, terms);
                const size_t n = terms.players().size();
                out.spread[i] = 0.0;
                auto groups = static_cast<size_t>(corners.count[i]);
                if (groups) sample.set(terms, nobody, std::min(strong_players(forest.n_outputs()), n));
                if (groups && corners.allowed) {
                    groups = sample.enough(groups, corners.allowed[i], corners.scale + i * outputs, corners.seed[i]);
                    // a corner with fewer coalitions than its orders would evaluate is enumerated
                    if (n <= MAX_ENUMERATED && size_t{1} << n <= groups * sample.asked()) groups = 0;
                }
                out.count[i] = static_cast<int64_t>(groups);
                if (groups == 0) {
                    if (n > MAX_ENUMERATED)
                        refuse("a corner of " + std::to_string(n) + " variables cannot be enumerated.");
                    game.solve(terms, nobody, corners.weight[i], settled);
                    continue;
                }
                sample.draw(groups, corners.seed[i]);
                const double weight = corners.weight[i], count = static_cast<double>(groups);
                most.assign(2 * outputs, 0.0);
                for (size_t c = 0; c < n * outputs; ++c) {
                    const size_t to = static_cast<size_t>(terms.players()[c / outputs]) * outputs + c % outputs;
                    const double group = sample.squares[c] / (count - 1.0), v = weight * weight * group / count,
                                 far = std::abs(weight) * sample.range(c) / count;
                    out.spread[i] = std::max(out.spread[i], group);
                    credit[to] += weight * sample.mean[c];
                    variance[to] += v;
                    squared[to] += v * v / (count - 1.0);
                    reach[to] = std::max(reach[to], far);
                    most[c % outputs] = std::max(most[c % outputs], v);
                    most[outputs + c % outputs] = std::max(most[outputs + c % outputs], far);
                }
                for (size_t o = 0; o < outputs; ++o) {
                    common[o] += most[o];
                    common[outputs + o] += most[o] * most[o] / (count - 1.0);
                    common[2 * outputs + o] = std::max(common[2 * outputs + o], most[outputs + o]);
                }
            }
        }
    });
    for (double* sums : {out.credit, out.settled, out.variance, out.squared, out.reach})
        std::fill(sums, sums + n_rows * table, 0.0);
    std::fill(out.common, out.common + 3 * n_rows * outputs, 0.0);
    for (size_t unit = 0; unit < n_units; ++unit) {
        const auto row = static_cast<size_t>(corners.row[begins[unit]]);
        const size_t at = row * table;
        for (size_t o = 0; o < outputs; ++o) {
            double* const to = out.common + row * outputs + o;
            const double* const from = parts[unit].data() + 5 * table + o;
            to[0] += from[0];
            to[n_rows * outputs] += from[outputs];
            to[2 * n_rows * outputs] = std::max(to[2 * n_rows * outputs], from[2 * outputs]);
        }
        for (size_t c = 0; c < table; ++c) {
            out.credit[at + c] += parts[unit][c];
            out.settled[at + c] += parts[unit][table + c];
            out.variance[at + c] += parts[unit][2 * table + c];
            out.squared[at + c] += parts[unit][3 * table + c];
            out.reach[at + c] = std::max(out.reach[at + c], parts[unit][4 * table + c]);
        }
    }
}

}  // namespace gigrad
