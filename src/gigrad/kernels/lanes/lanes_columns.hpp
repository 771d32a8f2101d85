// The data of a block of pairs for a vector walk, made column by column on first use: ranks of values, and inverses of
// the ways from start to end.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/aligned.hpp"
#include "core/forest.hpp"
#include "lanes/lanes.hpp"
#include "limits.hpp"
#include "walk/walk.hpp"

namespace gigrad {

class LaneColumns {
public:
    LaneColumns(const Forest& forest, size_t lanes)
        : forest_(forest), lanes_(lanes), columns_(forest.n_columns()), store_(forest.n_columns()) {}

    LaneColumn* data() { return columns_.data(); }
    // Places of all starts of a row, in whole vectors.
    size_t padded() const { return padded_; }

    // From here on the places of splits among a column's values are found for all of its splits at once: used where
    // splits are not too many, and have several nodes each.
    void find_splits(const SplitIds& splits) { splits_ = &splits; }

    // Consecutive blocks of rows have the same starts: data that depend only on these are kept.
    void begin(const Block& block, size_t n_starts, size_t n_rows, bool shared) {
        const bool same = shared && shared_ && block.starts == block_.starts && n_starts == n_starts_;
        if (!same)
            for (Store& s : store_) s.has_starts = false;
        block_ = block;
        n_starts_ = n_starts;
        n_rows_ = n_rows;
        shared_ = shared;
        padded_ = (n_starts + lanes_ - 1) / lanes_ * lanes_;
        for (LaneColumn& c : columns_) c.ready = false;
    }

    // Whether a split has no values in between, or a value of the block is not finite. The result for a pair with
    // neither is bit for bit the same.
    bool any_at_once() {
        if (forest_.at_once) return true;
        const auto finite = [](const double* x, size_t n) {
            double sum = 0.0;  // not a number where one of them is not finite
            for (size_t i = 0; i < n; ++i) sum += x[i] - x[i];
            return sum == 0.0;
        };
        for (size_t j = 0; j < forest_.n_columns(); ++j)
            if (!finite(block_.starts + j * block_.start_step, n_starts_)) return true;
        for (size_t r = 0; r < n_rows_; ++r)
            if (!finite(block_.ends + r * block_.end_step, forest_.n_columns())) return true;
        return false;
    }

    // The data of a column, which the walk has met for the first time in this block.
    void make(int32_t feature) {
        Store& store = store_[feature];
        LaneColumn& column = columns_[feature];
        if (!store.has_starts) {
            column = LaneColumn{};
            store.has_starts = shared_;
            order_values(feature, store, column);
        }
        column.ready = true;
        column.rough = false;
        if (shared_)
            shared_inverses(feature, store, column);
        else
            pair_inverses(feature, store, column);
    }

    // The sides of a category split: computed once for each value of the block, and for a missing one.
    void category(const Node& node, int16_t* starts, int16_t* ends) {
        const LaneColumn& column = columns_[node.feature];
        const auto side = [&](double x) { return static_cast<int16_t>(!goes_left(forest_, node, x)); };
        const auto n = static_cast<uint16_t>(column.n_sorted);
        sides_.resize(n + size_t{1});
        for (size_t i = 0; i < n; ++i) sides_[i] = side(column.sorted[i]);
        sides_[n] = !node.missing_left;
        const auto look_up = [&](const int16_t* rank, int16_t* to) {  // the rank of a missing value is above all others
            for (size_t i = 0; i < padded(); ++i) to[i] = sides_[std::min(static_cast<uint16_t>(rank[i]), n)];
        };
        look_up(column.start_rank[0], starts);
        if (shared_)
            for (size_t r = 0; r < n_rows_; ++r) ends[r] = side(end_value(node.feature, r));
        else
            look_up(column.end_rank[0], ends);
    }

private:
    // The arrays of one column.
    struct Store {
        std::vector<double> sorted;
        Aligned<double> ends;
        Aligned<int16_t> rank[2], end_rank[2], jumps;
        Aligned<float> inverse;
        std::vector<int16_t> last_left;
        bool has_starts = false;  // the data that depend only on the starts exist
    };

    const Forest& forest_;
    const size_t lanes_;
    std::vector<LaneColumn> columns_;
    std::vector<Store> store_;
    Block block_;
    size_t n_starts_ = 0, n_rows_ = 0, padded_ = 0;
    bool shared_ = false;
    const SplitIds* splits_ = nullptr;
    std::vector<float> natural_;  // inverses of one row, by start
    std::vector<int16_t> sides_;  // of a category split, by place of the value

    double start_value(int32_t feature, size_t i) const {
        return block_.start(feature, Pair{static_cast<int32_t>(i), 0});
    }
    double end_value(int32_t feature, size_t i) const { return block_.end(feature, Pair{0, static_cast<int32_t>(i)}); }

    // The distinct values of the starts (of both sides where ends are not shared), and each one's place.
    void order_values(int32_t feature, Store& store, LaneColumn& column) {
        store.sorted.clear();
        bool missing = false, jumping = false;
        const auto note = [&](double x) { std::isnan(x) ? void(missing = true) : store.sorted.push_back(x); };
        for (size_t i = 0; i < n_starts_; ++i) note(start_value(feature, i));
        if (!shared_)
            for (size_t i = 0; i < n_starts_; ++i) note(end_value(feature, i));
        std::sort(store.sorted.begin(), store.sorted.end());
        store.sorted.erase(std::unique(store.sorted.begin(), store.sorted.end()), store.sorted.end());
        column.sorted = store.sorted.data();
        column.n_sorted = static_cast<int32_t>(store.sorted.size());
        rank(store, store.rank, missing, [&](size_t i) { return start_value(feature, i); }, column.start_rank);
        if (!shared_)
            rank(store, store.end_rank, missing, [&](size_t i) { return end_value(feature, i); }, column.end_rank);
        if (splits_) place_splits(feature, store, column);
        store.jumps.assign(padded(), 0);
        for (size_t i = 0; i < n_starts_; ++i)
            if (!std::isfinite(start_value(feature, i)) || (!shared_ && !std::isfinite(end_value(feature, i))))
                jumping = true, store.jumps[i] = -1;
        column.jumps = jumping ? store.jumps.data() : nullptr;
    }

    // The last value that goes left, for all splits of the column at once: both are in order.
    void place_splits(int32_t feature, Store& store, LaneColumn& column) const {
        const auto first = static_cast<size_t>(splits_->of_column[feature]),
                   stop = static_cast<size_t>(splits_->of_column[feature + 1]);
        store.last_left.resize(stop - first);
        size_t n = 0;
        for (size_t split = first; split < stop; ++split) {
            while (n < store.sorted.size() && store.sorted[n] <= splits_->threshold[split]) ++n;
            store.last_left[split - first] = static_cast<int16_t>(static_cast<int>(n) - 1);
        }
        column.last_left = store.last_left.data() - first;
    }

    template <class Value>
    void rank(const Store& store, Aligned<int16_t>* ranks, bool missing, Value value, const int16_t** out) const {
        for (int missing_left = 0; missing_left < 2; ++missing_left) {
            if (missing_left && !missing) {
                out[1] = out[0];
                return;
            }
            Aligned<int16_t>& to = ranks[missing_left];
            to.assign(padded(), 0);
            for (size_t i = 0; i < n_starts_; ++i) {
                const double x = value(i);
                if (std::isnan(x))
                    to[i] = missing_left ? INT16_MIN : INT16_MAX;
                else
                    to[i] = static_cast<int16_t>(std::lower_bound(store.sorted.begin(), store.sorted.end(), x) -
                                                 store.sorted.begin());
            }
            out[missing_left] = to.data();
        }
    }

    // CODE_UNIT / (e - s), 0 for lanes that do not move; adds to `rough` where float32 cannot hold it.
    static float inverse(double s, double e, double least_way, bool& rough) {
        const double way = e - s, size = std::abs(way);
        const bool moves = way != 0.0;
        rough |= moves & !((size > least_way) & (size < LARGEST_WAY));
        const double inverse = static_cast<double>(CODE_UNIT) / (moves ? way : 1.0);
        return moves ? static_cast<float>(inverse) : 0.0f;
    }

    // Four lanes of the first half of a vector, then four of the second: the order that Isa::times takes.
    void write_inverses(const float* natural, float* to) const {
        const size_t half = lanes_ / 2;
        for (size_t v = 0; v < padded(); v += lanes_)
            for (size_t lane = 0; lane < lanes_; lane += 4)
                std::copy_n(natural + v + lane, 4, to + v + (lane / 4 % 2) * half + lane / 8 * 4);
    }

    void shared_inverses(int32_t feature, Store& store, LaneColumn& column) {
        store.inverse.assign(n_rows_ * padded(), 0.0f);
        natural_.assign(padded(), 0.0f);
        const double* const starts = block_.starts + static_cast<size_t>(feature) * block_.start_step;
        float* const natural = natural_.data();
        const double least_way = forest_.columns[feature].least_way;
        for (size_t r = 0; r < n_rows_; ++r) {
            const double e = end_value(feature, r);
            bool rough = false;
            if (!std::isfinite(e))
                std::fill_n(natural, n_starts_, CODE_UNIT);  // the walk takes one half of it
            else if (column.jumps)
                for (size_t i = 0; i < n_starts_; ++i)
                    natural[i] = store.jumps[i] ? 0.0f : inverse(starts[i], e, least_way, rough);
            else
                for (size_t i = 0; i < n_starts_; ++i) natural[i] = inverse(starts[i], e, least_way, rough);
            column.rough |= rough;
            write_inverses(natural, store.inverse.data() + r * padded());
        }
        column.inverse = store.inverse.data();
    }

    void pair_inverses(int32_t feature, Store& store, LaneColumn& column) {
        store.ends.assign(padded(), 0.0);
        store.inverse.assign(padded(), 0.0f);
        natural_.assign(padded(), 0.0f);
        for (size_t i = 0; i < n_starts_; ++i) {
            if (store.jumps[i]) continue;
            store.ends[i] = end_value(feature, i);
            natural_[i] =
                inverse(start_value(feature, i), store.ends[i], forest_.columns[feature].least_way, column.rough);
        }
        write_inverses(natural_.data(), store.inverse.data());
        column.ends = store.ends.data();
        column.inverse = store.inverse.data();
    }
};

}  // namespace gigrad
