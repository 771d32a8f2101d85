// A pair swept through all trees: when it crosses each test, the leaves on its path, and their contributions.
#pragma once

#include "core/aligned.hpp"
#include "walk/credits_sink.hpp"
#include "lanes/lanes.hpp"
#include "sweep/sweep_rows.hpp"
#include "core/wide.hpp"

namespace gigrad {

// Codes of splits that are crossed on the way from s to e, by their places, which lie between; scale is
// SWEEP_UNITS / (e - s).
GIGRAD_WIDE inline void time_codes(const double* place, size_t n, double s, double scale, int32_t first, int16_t* out) {
    for (size_t i = 0; i < n; ++i)
        out[i] = static_cast<int16_t>(2 * static_cast<int32_t>((place[i] - s) * scale) + first);
}

// The same where places may lie beyond s or e.
GIGRAD_WIDE inline void clipped_codes(const double* place, size_t n, double s, double scale, int32_t first,
                                      int16_t* out) {
    for (size_t i = 0; i < n; ++i) {
        const double time = std::min(std::max((place[i] - s) * scale, 0.0), static_cast<double>(SWEEP_UNITS));
        out[i] = static_cast<int16_t>(2 * static_cast<int32_t>(time) + first);
    }
}

// Codes of category tests, by the sides of the two levels (1: left).
GIGRAD_WIDE inline void level_codes(const uint8_t* s, const uint8_t* e, size_t n, int16_t* out) {
    for (size_t i = 0; i < n; ++i) {
        const auto same = static_cast<int16_t>(s[i] ? SWEEP_NEVER[1] : SWEEP_NEVER[0]);
        out[i] = s[i] == e[i] ? same : static_cast<int16_t>(SWEEP_UNITS / 2 * 2 - SWEEP_ORIGIN + 1 - s[i]);
    }
}

// When they are crossed; way is e - s.
GIGRAD_WIDE inline void plain_times(const double* place, size_t n, double s, double way, double* out) {
    for (size_t i = 0; i < n; ++i) out[i] = rounded_time((place[i] - s) / way);
}

class Sweeper {
public:
    Sweeper(const Forest& forest, const SweepTrees& trees, const LaneKernel& kernel)
        : forest_(forest),
          trees_(trees),
          kernel_(kernel),
          codes_(trees.tests.size() + 1),
          delta_((trees.tests.size() + SWEEP_NONES) * forest.n_outputs(), 0.0) {
        codes_.back() = SWEEP_NEVER[1];
        times_.resize(trees.tests.size() + 1);
        job_.nodes = trees.nodes.data();
        job_.codes = codes_.data();
        job_.roots = trees.roots.data();
        job_.n_trees = trees.roots.size();
        job_.none = static_cast<int32_t>(trees.none());
        // Room for a whole vector after the last part. Every list begins at a cache line, and no two at addresses that agree in
        // their lowest twelve bits: 4K aliasing would make loads from one wait for stores to another.
        constexpr size_t line = 16;
        const size_t lines = (std::max(trees.n_leaves(), trees.roots.size()) + line - 1) / line + 1,
                     room = line * (lines | 1);
        store_.assign(9 * room, 0);
        SweepParts* const lists[] = {&job_.parts, &job_.extra, &job_.leaves};
        for (size_t i = 0; i < 3; ++i) {
            int32_t* const at = store_.data() + 3 * i * room;
            *lists[i] = {at, at + room, at + 2 * room};
        }
    }
    Sweeper(const Sweeper&) = delete;
    Sweeper& operator=(const Sweeper&) = delete;

    // Takes a pair through all trees.
    void sweep(const SweepRows& starts, size_t start, const SweepRows& ends, size_t end) {
        s_ = starts.row(start);
        e_ = ends.row(end);
        set_codes(starts.rank(start), ends.rank(end), starts.level(start), ends.level(end));
        kernel_.sweep(job_);
    }

    // Results for the pair that was swept last:

    // Adds weight * credit to `credit` (columns, outputs).
    void add_credit(double weight, double* credit) {
        add_jumps([](int32_t test) { return static_cast<size_t>(test); }, delta_.data());
        add_columns(weight, credit);
        share_corners(weight, credit);
        settle([&](size_t tree) {
            return CreditSink{forest_, forest_.n_outputs(), forest_.width(tree), forest_.first(tree), credit, 0,
                              &weight};
        });
    }

    // Adds the change at each split to delta (splits + SWEEP_NONES, outputs), except for ambiguous leaves.
    void add_split_jumps(double* delta) const {
        const int32_t* const split = trees_.split_of.data();
        if (trees_.tests_are_splits())
            add_jumps([](int32_t test) { return static_cast<size_t>(test); }, delta);
        else
            add_jumps([=](int32_t test) { return static_cast<size_t>(split[test]); }, delta);
    }

    // Calls each(begin, end) for ranges of splits that include all crossed ones.
    template <class Each>
    void for_crossed(Each each) const {
        const int32_t* const split = trees_.split_of.data();
        for (const Crossed& crossed : crossed_) each(split[crossed.begin], split[crossed.end - 1] + 1);
    }

    // Whether all tests of a split are crossed at the same time, if at all: they differ only for missing values.
    bool splits_have_codes() const { return trees_.tests_are_splits() || plain_; }
    // Calls each(split, code) for splits that include all crossed ones.
    template <class Each>
    void for_codes(Each each) const {
        const int16_t* const codes = codes_.data();
        const int32_t* const test = trees_.test_of.data();
        if (trees_.tests_are_splits())
            for_crossed([&](int32_t begin, int32_t end) {
                for (int32_t split = begin; split < end; ++split) each(split, codes[split]);
            });
        else
            for_crossed([&](int32_t begin, int32_t end) {
                for (int32_t split = begin; split < end; ++split) each(split, codes[test[split]]);
            });
    }
    // How many splits those are at most.
    size_t n_crossed() const {
        size_t n = 0;
        for (const Crossed& crossed : crossed_) n += static_cast<size_t>(crossed.end - crossed.begin);
        return n;
    }

    // The ambiguous leaves, as the only pair of a trace.
    void trace_unclear(const SplitIds& splits, Trace& trace) {
        trace.clear(1);
        settle([&](size_t tree) { return TraceSink{forest_, splits, trace, 0, static_cast<int32_t>(tree)}; });
    }

    static double sum(const double* x, size_t n) {  // in four independent sums
        double parts[4] = {};
        size_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (size_t part = 0; part < 4; ++part) parts[part] += x[i + part];
        for (; i < n; ++i) parts[0] += x[i];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }

private:
    // A pair's values in one column.
    struct Move {
        double s, e;
        int32_t s_rank, e_rank;  // the first test that sends each left
        int32_t column;
    };
    struct Crossed {
        int32_t begin, end, column;
        bool plain;
    };
    const Forest& forest_;
    const SweepTrees& trees_;
    const LaneKernel& kernel_;
    LeafCorner corner_;
    std::vector<int16_t> codes_;
    Aligned<int32_t> store_;
    std::vector<double> delta_;     // (tests + SWEEP_NONES, outputs): the change when each test is crossed
    std::vector<Crossed> crossed_;  // tests that include all that the pair crosses
    bool plain_ = true;             // all are numeric, and no value is missing
    std::vector<double> times_;     // by test: exact times of those that are crossed
    std::vector<int32_t> odd_;
    const ShareTable shares_;
    SweepJob job_;
    const double *s_ = nullptr, *e_ = nullptr;  // the pair

    // The codes of all tests for the pair, column by column; ranks and levels are those of its values among the thresholds
    // and categories of each column.
    void set_codes(const uint16_t* s_rank, const uint16_t* e_rank, const uint16_t* s_level, const uint16_t* e_level) {
        const double *s = s_, *e = e_;
        crossed_.clear();
        plain_ = true;
        for (size_t j = 0; j < forest_.n_columns(); ++j) {
            const int32_t begin = trees_.column_begin[j], categories = trees_.categories_begin[j],
                          stop = trees_.column_begin[j + 1];
            const Move move{s[j], e[j], begin + s_rank[j], begin + e_rank[j], static_cast<int32_t>(j)};
            const double size = std::abs(e[j] - s[j]);  // not finite where a value is not
            if ((size > trees_.least_way[j] || size == 0.0) && size < LARGEST_WAY)
                plain_codes(begin, categories, move);
            else if (!std::isfinite(s[j]) || !std::isfinite(e[j]))
                jump_codes(begin, categories, move);
            else
                odd_codes(begin, categories, move);
            if (categories < stop) category_codes(categories, stop, move, s_level[j], e_level[j]);
        }
    }

    // Codes of thresholds begin .. stop-1. The side that comes first is the start's: left (0) where the value rises.
    void plain_codes(int32_t begin, int32_t stop, const Move& move) {
        const bool falls = move.e < move.s;
        const int32_t from = std::min(move.s_rank, move.e_rank), to = std::max(move.s_rank, move.e_rank);
        int16_t* const codes = codes_.data();
        std::fill(codes + begin, codes + from, static_cast<int16_t>(SWEEP_NEVER[falls] + falls));
        if (from < to) {
            const double* const place = trees_.place_of.data();
            const double low = falls ? move.e : move.s, high = falls ? move.s : move.e;
            const bool between = trees_.in_order[move.column] && place[from] >= low && place[to - 1] <= high;
            (between ? time_codes : clipped_codes)(place + from, static_cast<size_t>(to - from), move.s,
                                                   SWEEP_UNITS / (move.e - move.s), falls - SWEEP_ORIGIN, codes + from);
            crossed_.push_back({from, to, move.column, !forest_.columns[move.column].intervals});
        }
        std::fill(codes + to, codes + stop, static_cast<int16_t>(SWEEP_NEVER[!falls] + falls));
    }

    // A missing or infinite value: all changes are at one half.
    void jump_codes(int32_t begin, int32_t stop, const Move& move) {
        const bool s_missing = std::isnan(move.s), e_missing = std::isnan(move.e);
        for (int32_t t = begin; t < stop; ++t) {
            const bool missing_left = trees_.missing_left[t];
            const bool s_left = s_missing ? missing_left : t >= move.s_rank,
                       e_left = e_missing ? missing_left : t >= move.e_rank;
            codes_[t] = static_cast<int16_t>(s_left == e_left ? SWEEP_NEVER[s_left]
                                                              : SWEEP_UNITS / 2 * 2 - SWEEP_ORIGIN + !s_left);
        }
        add_odd(begin, stop, move.column);
    }

    // By the general rule for sides and times: categories, nominal columns, and differences too small or too large for
    // the fast methods.
    void odd_codes(int32_t begin, int32_t stop, const Move& move) {
        for (int32_t t = begin; t < stop; ++t) {
            const Node& node = trees_.tests[t];
            const bool s_left = goes_left(forest_, node, move.s), e_left = goes_left(forest_, node, move.e);
            if (s_left == e_left)
                codes_[t] = SWEEP_NEVER[s_left];
            else
                codes_[t] = static_cast<int16_t>(
                    2 * static_cast<int32_t>(crossing_time(forest_, node, move.s, move.e) * SWEEP_UNITS) -
                    SWEEP_ORIGIN + !s_left);
        }
        add_odd(begin, stop, move.column);
    }

    void category_codes(int32_t begin, int32_t stop, const Move& move, size_t s_level, size_t e_level) {
        const SweepTrees::Levels& levels = trees_.levels[move.column];
        if (levels.left.empty()) return odd_codes(begin, stop, move);
        level_codes(levels.sides(s_level), levels.sides(e_level), levels.n_tests, codes_.data() + begin);
        if (s_level != e_level) add_odd(begin, stop, move.column);
    }

    void add_odd(int32_t begin, int32_t stop, int32_t column) {
        if (begin == stop) return;
        crossed_.push_back({begin, stop, column, false});
        plain_ = false;
    }

    // Adds every unambiguous leaf to the jumps of the tests that open and close it.
    template <class Place>
    void add_jumps(Place place, double* delta) const {
        const SweepParts leaves = job_.leaves;
        const VisitValue* const gives = trees_.gives.data();
        const size_t n = job_.n_leaves, k = forest_.n_outputs();
        if (k == 1) {
            const auto one = [&](size_t i) {
                const double value = gives[leaves.place[i]].number;
                delta[place(leaves.lo[i])] += value;
                delta[place(leaves.hi[i])] -= value;
            };
            const size_t part = n / 4;
            for (size_t i = 0; i < part; ++i) one(i), one(i + part), one(i + 2 * part), one(i + 3 * part);
            for (size_t i = 4 * part; i < n; ++i) one(i);
            return;
        }
        for (size_t i = 0; i < n; ++i) {
            const auto [value, tree] = gives[leaves.place[i]].place;
            const size_t first = forest_.first(tree), width = forest_.width(tree);
            double *opens = delta + place(leaves.lo[i]) * k + first, *closes = delta + place(leaves.hi[i]) * k + first;
            for (size_t o = 0; o < width; ++o) {
                opens[o] += forest_.values[value + o];
                closes[o] -= forest_.values[value + o];
            }
        }
    }

    // Credit by column from the changes at its tests, which are reset to zero.
    void add_columns(double weight, double* credit) {
        const size_t k = forest_.n_outputs();
        for (const Crossed& crossed : crossed_) {
            double* const begin = delta_.data() + static_cast<size_t>(crossed.begin) * k;
            const auto n = static_cast<size_t>(crossed.end - crossed.begin) * k;
            double* const to = credit + static_cast<size_t>(forest_.columns[crossed.column].variable) * k;
            if (k == 1)
                *to += weight * sum(begin, n);
            else
                for (size_t i = 0; i < n; ++i) to[i % k] += weight * begin[i];
            std::fill_n(begin, n, 0.0);
        }
        std::fill_n(delta_.data() + static_cast<size_t>(job_.none) * k, SWEEP_NONES * k, 0.0);
    }

    // Adds the contributions of the ambiguous leaves, except the odd ones among them, which remain.
    void share_corners(double weight, double* credit) {
        if (job_.n_unclear == 0 || forest_.n_outputs() > 1 || trees_.ways.empty()) return;
        find_times();
        odd_.resize(std::max(odd_.size(), job_.n_unclear + 1));
        SweepCorners corners{job_.extra.place,
                             job_.n_unclear,
                             trees_.ways.data(),
                             trees_.way_of.data(),
                             job_.codes,
                             times_.data(),
                             trees_.variable_of.data(),
                             trees_.gives.data(),
                             trees_.depth(),
                             shares_.at[0][0],
                             weight,
                             credit,
                             odd_.data(),
                             0};
        kernel_.sweep_corners(corners);
        std::copy_n(odd_.data(), corners.n_odd, job_.extra.place);
        job_.n_unclear = corners.n_odd;
    }

    // The exact times of all tests that the pair may cross.
    void find_times() {
        for (const Crossed& crossed : crossed_) {
            const double s = s_[crossed.column], e = e_[crossed.column];
            if (crossed.plain)
                plain_times(trees_.place_of.data() + crossed.begin, static_cast<size_t>(crossed.end - crossed.begin), s,
                            e - s, times_.data() + crossed.begin);
            else
                for (int32_t t = crossed.begin; t < crossed.end; ++t)
                    times_[t] = crossing_time(forest_, trees_.tests[t], s, e);
        }
    }

    // Passes the contributions of the ambiguous leaves to the sink of each tree, by exact times.
    template <class SinkOf>
    void settle(SinkOf sink_of) {
        // Many leaves need the time of the same test.
        if (job_.n_unclear * trees_.depth() > n_crossed()) {
            find_times();
            settle_by(sink_of, [&](uint32_t test) { return times_[test]; });
        } else {
            settle_by(sink_of, [&](uint32_t test) {
                const Node& split = trees_.tests[test];
                return crossing_time(forest_, split, s_[split.feature], e_[split.feature]);
            });
        }
    }

    template <class SinkOf, class TimeOf>
    void settle_by(SinkOf sink_of, TimeOf time_of) {
        for (size_t i = 0; i < job_.n_unclear; ++i) {
            const int32_t place = job_.extra.place[i];
            if (find_corner(place, time_of))
                sink_of(static_cast<size_t>(trees_.tree_of[place]))
                    .corner(Pair{0, 0}, corner_, forest_.nodes[trees_.node_of[place]]);
        }
    }

    // All crossings on the way to a leaf, from there up to its root. Splits that are not crossed were decided
    // unambiguously.
    template <class TimeOf>
    bool find_corner(int32_t leaf, TimeOf time_of) {
        corner_.begin(trees_.depth());
        for (int32_t at = leaf, above; (above = trees_.parent[at]) >= 0; at = above) {
            const uint32_t node = trees_.nodes[above], test = node & SWEEP_TEST;
            const int16_t code = codes_[test];
            if (code < SWEEP_FIRST || code > SWEEP_LAST) continue;
            const bool is_left = static_cast<uint32_t>(at - above) == (node >> SWEEP_OFFSET_SHIFT & SWEEP_MAX_OFFSET);
            const bool start_left = (code & 1) == 0;
            corner_.add(time_of(test), trees_.variable_of[test], trees_.node_of[above], is_left != start_left);
        }
        return corner_.settle();
    }
};

}  // namespace gigrad
