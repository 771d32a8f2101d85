// The jumps of one pair in order of time, from the trace of its way through all trees.
#pragma once

#include "walk/credits.hpp"
#include "walk/key_order.hpp"
#include "walk/trace.hpp"

namespace gigrad {

// A traced pair: the leaves on its path, at an index of a trace; for a swept pair, the trace has only the ambiguous
// ones, and the sweeper has the others.
struct TracedPair {
    const Trace& trace;
    size_t place;
    const Sweeper* swept;
};

// All changes at one split, in any tree, are one entry; a leaf that several variables open or close is another.
class OrderedJumps {
public:
    OrderedJumps(const Forest& forest, const SplitIds& splits)
        : forest_(forest),
          splits_(splits),
          k_(forest.n_outputs()),
          delta_((splits.size() + SWEEP_NONES) * k_, 0.0),
          touched_(splits.size() + 1, 0),
          ids_(splits.size() + 1) {
        touched_[splits.size()] = 1;  // so that "none" is never an entry
    }

    // A pair whose rows are `start` and `end`.
    void read(const TracedPair& pair, const double* start, const double* end) {
        const auto& [trace, place, swept] = pair;
        clear();
        start_ = start, end_ = end, swept_ = swept;
        corners_ = trace.corners();
        numbers_ = trace.begin_corners(place);
        members_ = trace.members();
        sum_jumps(trace, place);
        if (swept) swept->add_split_jumps(delta_.data());
        const size_t n_corners = n_corners_ = trace.n_corners(place);
        by_keys_ = swept && swept->splits_have_codes() && k_ == 1 && n_corners == 0 &&
                   keys_.set(*swept, delta_.data(), [&](int32_t split) { return time_of(split); });
        if (by_keys_) return;
        if (swept) collect_swept(*swept);
        sort_entries(n_corners);
    }

    size_t size() const { return by_keys_ ? keys_.size() : entries_.size(); }
    // A split, or ~index of a corner.
    int32_t index(size_t i) const { return by_keys_ ? keys_.splits()[i] : entries_[i].index; }
    double time(size_t i) const { return by_keys_ ? time_of(keys_.splits()[i]) : entries_[i].time; }
    // Whether no two entries have the same time, and none is a corner.
    bool apart() const { return by_keys_ || apart_; }
    // The change of all trees at a split, (outputs,).
    const double* delta(int32_t split) const { return delta_.data() + static_cast<size_t>(split) * k_; }
    const CornerVisit& corner(int32_t index) const { return corners_[numbers_[~index]]; }
    const int32_t* members(const CornerVisit& corner) const { return members_ + corner.members; }

    // Adds the changes of the trees by single variables, (variables, outputs), and calls corner(visit) for every leaf
    // that several open or close at the same time.
    template <class Corner>
    void add_changes(double* change, Corner corner) const {
        if (swept_ && k_ == 1) {  // the splits of a column are contiguous
            swept_->for_crossed([&](int32_t begin, int32_t end) {
                change[splits_.variable[begin]] +=
                    Sweeper::sum(delta_.data() + begin, static_cast<size_t>(end - begin));
            });
        } else {
            for (size_t i = 0; i < n_ids_; ++i)
                for (size_t o = 0; o < k_; ++o)
                    change[static_cast<size_t>(splits_.variable[ids_[i]]) * k_ + o] += delta(ids_[i])[o];
        }
        for (size_t i = 0; i < n_corners_; ++i) corner(corners_[numbers_[i]]);
    }

    // The variable that all entries of a corner belong to, or -1.
    int32_t lone_variable(size_t begin, size_t stop) const {
        int32_t variable = -1;
        for (size_t i = begin; i < stop; ++i) {
            const int32_t index = this->index(i);
            int32_t mine;
            if (index >= 0) {
                mine = splits_.variable[index];
            } else {
                const CornerVisit& c = corner(index);
                if (c.n_past + c.n_before > 1) return -1;
                mine = members_[c.members];
            }
            if (variable >= 0 && mine != variable) return -1;
            variable = mine;
        }
        return variable;
    }

private:
    struct Entry {
        double time;
        int32_t index;
    };
    const Forest& forest_;
    const SplitIds& splits_;
    const size_t k_;
    std::vector<double> delta_;  // (splits + SWEEP_NONES, outputs): what happens when each split is crossed
    std::vector<char> touched_;
    std::vector<int32_t> ids_;  // the first n_ids_: splits at which something happens
    size_t n_ids_ = 0;
    bool by_keys_ = false;  // the entries are those of keys_: splits, all apart
    KeyOrder keys_;
    std::vector<Entry> entries_, sorted_;
    bool apart_ = true;
    std::vector<uint32_t> buckets_;
    const double *start_ = nullptr, *end_ = nullptr;  // the present pair
    const CornerVisit* corners_ = nullptr;            // by number
    const uint32_t* numbers_ = nullptr;               // of the pair's
    const int32_t* members_ = nullptr;
    const Sweeper* swept_ = nullptr;
    size_t n_corners_ = 0;

    void clear() {
        for (size_t i = 0; i < n_ids_; ++i) {
            touched_[ids_[i]] = 0;
            std::fill_n(delta_.data() + static_cast<size_t>(ids_[i]) * k_, k_, 0.0);
        }
        if (by_keys_)
            for (size_t i = 0; i < keys_.size(); ++i) delta_[keys_.splits()[i]] = 0.0;
        std::fill_n(delta_.data() + splits_.size() * k_, SWEEP_NONES * k_, 0.0);
    }

    void sum_jumps(const Trace& trace, size_t place) {
        double* const delta = delta_.data();
        if (k_ == 1)
            for_visits(trace, place, [=](const Visit& visit) {
                delta[visit.opens] += visit.gives.number;
                delta[visit.closes] -= visit.gives.number;
            });
        else
            for_visits(trace, place, [=](const Visit& visit) {
                const auto [value, tree] = visit.gives.place;
                const size_t first = forest_.first(tree), width = forest_.width(tree);
                double* opens = delta + static_cast<size_t>(visit.opens) * k_ + first;
                double* closes = delta + static_cast<size_t>(visit.closes) * k_ + first;
                for (size_t o = 0; o < width; ++o) {
                    opens[o] += forest_.values[value + o];
                    closes[o] -= forest_.values[value + o];
                }
            });
    }

    // Collects the splits of all visits. No branch here depends on the pair: "none" is a split like the others, and new
    // ones are counted without a branch.
    template <class Each>
    void for_visits(const Trace& trace, size_t place, Each each) {
        size_t n = 0;
        char* const touched = touched_.data();
        int32_t* const ids = ids_.data();
        const auto touch = [&](int32_t split) {
            ids[n] = split;
            n += !touched[split];
            touched[split] = 1;
        };
        for (const Visit *visit = trace.begin(place), *stop = trace.end(place); visit != stop; ++visit) {
            touch(visit->opens);
            touch(visit->closes);
            each(*visit);
        }
        n_ids_ = n;
    }

    // Splits whose total change is zero are not entries.
    void collect_swept(const Sweeper& swept) {
        size_t n = n_ids_;
        const double* const delta = delta_.data();
        const char* const touched = touched_.data();
        int32_t* const ids = ids_.data();
        swept.for_crossed([&](int32_t begin, int32_t end) {
            if (k_ == 1) {
                for (int32_t split = begin; split < end; ++split) {
                    ids[n] = split;
                    n += (delta[split] != 0.0) & !touched[split];
                }
                return;
            }
            for (int32_t split = begin; split < end; ++split) {
                bool happens = false;
                for (size_t o = 0; o < k_; ++o) happens |= delta[static_cast<size_t>(split) * k_ + o] != 0.0;
                ids[n] = split;
                n += happens & !touched[split];
            }
        });
        n_ids_ = n;
    }

    // The time of a crossing; nodes are scattered in memory, and are read only if the place alone does not determine
    // the time.
    double time_of(int32_t split) const {
        const int32_t j = splits_.feature[split];
        const double s = start_[j], e = end_[j], place = splits_.place[split];
        if (std::isfinite(e - s) && !std::isnan(place)) return rounded_time((place - s) / (e - s));
        return crossing_time(forest_, forest_.nodes[splits_.first_node[split]], s, e);
    }

    // Times are spread over [0, 1]: a bucket sort, finished by insertion.
    void sort_entries(size_t n_corners) {
        entries_.resize(n_ids_ + n_corners);
        for (size_t i = 0; i < n_ids_; ++i) entries_[i] = {time_of(ids_[i]), ids_[i]};
        for (size_t i = 0; i < n_corners; ++i)
            entries_[n_ids_ + i] = {corners_[numbers_[i]].time, ~static_cast<int32_t>(i)};
        const size_t n = entries_.size();
        const double scale = static_cast<double>(n);
        const auto bucket = [&](double time) { return static_cast<size_t>(static_cast<int64_t>(time * scale)); };
        buckets_.assign(n + 2, 0);
        for (const Entry& e : entries_) ++buckets_[bucket(e.time) + 1];
        for (size_t b = 1; b <= n + 1; ++b) buckets_[b] += buckets_[b - 1];
        sorted_.resize(n);
        for (const Entry& e : entries_) sorted_[buckets_[bucket(e.time)]++] = e;
        for (size_t i = 1; i < n; ++i) {
            const Entry e = sorted_[i];
            size_t at = i;
            for (; at > 0 && sorted_[at - 1].time > e.time; --at) sorted_[at] = sorted_[at - 1];
            sorted_[at] = e;
        }
        double least = 1.0;
        for (size_t i = 1; i < n; ++i) least = std::min(least, sorted_[i].time - sorted_[i - 1].time);
        apart_ = least > 0.0 && n_corners == 0;
        entries_.swap(sorted_);
    }
};

// A thread's tracer of pairs: by sweeps, by vectors of lanes, or by the portable walk.
class Tracer {
public:
    Tracer(const Forest& forest, const LaneKernel* kernel, Route route)
        : forest_(forest), splits_(forest.split_ids()), walk_(forest) {
        if (route == Route::sweep)
            sweeper_ = std::make_unique<Sweeper>(forest, *forest.sweep_trees(), *kernel);
        else if (route == Route::lanes)
            lanes_ = std::make_unique<LaneBlock>(forest, *kernel);
    }

    static size_t block_size(const LaneKernel* kernel, size_t n_pairs, size_t n_threads) {
        return kernel ? pair_block(*kernel, TRACE_VECTORS, n_pairs, n_threads) : TRACE_PAIRS;
    }

    // Traces every start with every row, and calls each(start, row, traced).
    template <class Each>
    void population(const Block& block, size_t n, size_t n_rows, Each each) {
        if (sweeper_) {
            set_rows(block, n, n_rows);
            for (size_t r = 0; r < n_rows; ++r)
                for (size_t i = 0; i < n; ++i) each(i, r, swept(i, r));
            return;
        }
        size_t step = 0;
        if (lanes_) {
            lanes_->trace_population(block, n, n_rows, splits_, trace_);
            step = lanes_->row_step();
        } else {
            portably(block, n, true);  // for_crowd gives a single row then
        }
        for (size_t r = 0; r < n_rows; ++r)
            for (size_t i = 0; i < n; ++i) each(i, r, TracedPair{trace_, r * step + i, nullptr});
    }

    // Start i with end i; calls each(pair, traced).
    template <class Each>
    void pairs(const Block& block, size_t n, Each each) {
        if (sweeper_) {
            set_rows(block, n, n);
            for (size_t i = 0; i < n; ++i) each(i, swept(i, i));
            return;
        }
        if (lanes_)
            lanes_->trace_pairs(block, n, splits_, trace_);
        else
            portably(block, n, false);
        for (size_t i = 0; i < n; ++i) each(i, TracedPair{trace_, i, nullptr});
    }

private:
    const Forest& forest_;
    const SplitIds& splits_;
    Trace trace_;
    Walk walk_;
    std::unique_ptr<LaneBlock> lanes_;
    std::unique_ptr<Sweeper> sweeper_;
    SweepRows starts_, ends_;

    TracedPair swept(size_t start, size_t end) {
        sweeper_->sweep(starts_, start, ends_, end);
        sweeper_->trace_unclear(splits_, trace_);
        return {trace_, 0, sweeper_.get()};
    }

    void set_rows(const Block& block, size_t n_starts, size_t n_ends) {
        const SweepTrees& trees = *forest_.sweep_trees();
        const auto at = [](size_t i) { return Pair{static_cast<int32_t>(i), static_cast<int32_t>(i)}; };
        starts_.set(trees, n_starts, forest_.n_columns(),
                    [&](size_t j, size_t i) { return block.start(static_cast<int32_t>(j), at(i)); });
        ends_.set(trees, n_ends, forest_.n_columns(),
                  [&](size_t j, size_t i) { return block.end(static_cast<int32_t>(j), at(i)); });
    }

    void portably(const Block& block, size_t n, bool shared_end) {
        trace_.clear(n);
        for (size_t t = 0; t < forest_.n_trees(); ++t)
            walk_.tree(forest_.roots[t], block, n, shared_end,
                       TraceSink{forest_, splits_, trace_, 0, static_cast<int32_t>(t)});
    }
};

}  // namespace gigrad
