// The jumps of one pair in order of time, from the trace of its way through all trees.
#pragma once

#include "credits.hpp"
#include "trace.hpp"

namespace gigrad {

// All that happens at one split, in any tree, is one entry; a leaf that several variables open or close is another.
class OrderedJumps {
  public:
    struct Entry {
        double time;
        int32_t index;  // of a split, or ~index of a corner
    };

    OrderedJumps(const Forest& forest, const SplitIds& splits)
        : forest_(forest), splits_(splits), k_(forest.n_outputs()), delta_((splits.size() + 1) * k_, 0.0),
          touched_(splits.size() + 1, 0), ids_(splits.size() + 1), way_(forest.n_columns()) {
        touched_[splits.size()] = 1;  // so that "none" is never an entry
    }

    // The pair at a place of the trace, whose rows are `start` and `end`.
    void read(const Trace& trace, size_t place, const double* start, const double* end) {
        for (size_t i = 0; i < n_ids_; ++i) {
            touched_[ids_[i]] = 0;
            std::fill_n(delta_.data() + static_cast<size_t>(ids_[i]) * k_, k_, 0.0);
        }
        std::fill_n(delta_.data() + splits_.size() * k_, k_, 0.0);
        corners_ = trace.corners(place).data();
        members_ = trace.members(place);
        sum_jumps(trace, place);
        time_entries(trace.corners(place).size(), start, end);
        sort_entries();
    }

    size_t size() const { return entries_.size(); }
    const Entry& operator[](size_t i) const { return entries_[i]; }
    // Whether no two entries lie within TIE, and none is a corner.
    bool apart() const { return apart_; }
    // What all trees change by at a split, (outputs,).
    const double* delta(int32_t split) const { return delta_.data() + static_cast<size_t>(split) * k_; }
    const CornerVisit& corner(int32_t index) const { return corners_[~index]; }
    const int32_t* members(const CornerVisit& corner) const { return members_ + corner.members; }

    // The variable that all entries of a corner belong to, or -1.
    int32_t lone_variable(size_t begin, size_t stop) const {
        int32_t variable = -1;
        for (size_t i = begin; i < stop; ++i) {
            const int32_t index = entries_[i].index;
            int32_t mine;
            if (index >= 0) {
                mine = splits_.feature[index];
            } else {
                const CornerVisit& c = corners_[~index];
                if (c.n_past + c.n_before > 1) return -1;
                mine = members_[c.members];
            }
            if (variable >= 0 && mine != variable) return -1;
            variable = mine;
        }
        return variable;
    }

  private:
    struct Way {
        double start, length;
        bool jumps;
    };
    const Forest& forest_;
    const SplitIds& splits_;
    const size_t k_;
    std::vector<double> delta_;  // (splits + 1, outputs): what happens when each split is crossed
    std::vector<char> touched_;
    std::vector<int32_t> ids_;   // the first n_ids_: splits at which something happens
    size_t n_ids_ = 0;
    std::vector<Way> way_;       // of each column
    std::vector<Entry> entries_, sorted_;
    bool apart_ = true;          // no two entries within TIE
    std::vector<uint32_t> buckets_;
    const CornerVisit* corners_ = nullptr;  // of the present pair
    const int32_t* members_ = nullptr;

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
                double *opens = delta + static_cast<size_t>(visit.opens) * k_ + first;
                double *closes = delta + static_cast<size_t>(visit.closes) * k_ + first;
                for (size_t o = 0; o < width; ++o) {
                    opens[o] += forest_.values[value + o];
                    closes[o] -= forest_.values[value + o];
                }
            });
    }

    // Notes the splits of all visits on the way. No branch here depends on the pair: "none" is a split like the others,
    // and whether one is new is added up.
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

    void time_entries(size_t n_corners, const double* start, const double* end) {
        for (size_t j = 0; j < way_.size(); ++j) {
            way_[j] = {start[j], end[j] - start[j], false};
            way_[j].jumps = !std::isfinite(way_[j].length);
        }
        entries_.resize(n_ids_ + n_corners);
        for (size_t i = 0; i < n_ids_; ++i) {
            const int32_t id = ids_[i], j = splits_.feature[id];
            const Way& way = way_[j];
            const double threshold = splits_.threshold[id], time = (threshold - way.start) / way.length;
            // NaN for categories; what is not finite is left to the one rule for it
            const bool plain = !way.jumps && time >= 0.0 && time <= 1.0;
            entries_[i] = {plain ? time : odd_time(threshold, start[j], end[j]), id};
        }
        for (size_t i = 0; i < n_corners; ++i) entries_[n_ids_ + i] = {corners_[i].time, ~static_cast<int32_t>(i)};
    }

    static double odd_time(double threshold, double s, double e) {
        Node node{};
        node.threshold = threshold;
        node.set = std::isnan(threshold) ? 0 : -1;
        return crossing_time(node, s, e);
    }

    // Times are spread over [0, 1]: buckets put nearly all in place, insertion does the rest.
    void sort_entries() {
        const size_t n = entries_.size();
        const double scale = static_cast<double>(n);
        const auto bucket = [&](double time) { return static_cast<size_t>(static_cast<int64_t>(time * scale)); };
        buckets_.assign(n + 2, 0);
        for (const Entry& e : entries_) ++buckets_[bucket(e.time) + 1];
        for (size_t b = 1; b <= n + 1; ++b) buckets_[b] += buckets_[b - 1];
        sorted_.resize(n);
        for (const Entry& e : entries_) sorted_[buckets_[bucket(e.time)]++] = e;
        apart_ = true;
        for (size_t i = 1; i < n; ++i) {
            const Entry e = sorted_[i];
            size_t at = i;
            for (; at > 0 && sorted_[at - 1].time > e.time; --at) sorted_[at] = sorted_[at - 1];
            sorted_[at] = e;
        }
        double least = 1.0;
        for (size_t i = 1; i < n; ++i) least = std::min(least, sorted_[i].time - sorted_[i - 1].time);
        apart_ = least > TIE && (n == 0 || entries_.size() == n_ids_);
        entries_.swap(sorted_);
    }
};

// Vectors whose traces are kept at once, and pairs without vectors: some twenty kilobytes for each pair.
constexpr size_t TRACE_VECTORS = 32, TRACE_PAIRS = 64;

// A thread's means to trace pairs.
struct Tracer {
    const Forest& forest;
    const SplitIds& splits;
    Trace trace;
    Walk walk;
    std::unique_ptr<LaneBlock> lanes;  // null for the portable walk

    Tracer(const Forest& f, const LaneKernel* kernel)
        : forest(f), splits(f.split_ids()), walk(f), lanes(kernel ? new LaneBlock(f, *kernel) : nullptr) {}

    static size_t block_size(const LaneKernel* kernel, size_t n_pairs, size_t n_threads) {
        return kernel ? pair_block(*kernel, TRACE_VECTORS, n_pairs, n_threads) : TRACE_PAIRS;
    }

    // Every start with every row; that of start i and row r is at place i + r * (what is returned).
    size_t population(const Block& block, size_t n, size_t n_rows) {
        if (lanes) {
            lanes->trace_population(block, n, n_rows, splits, trace);
            return lanes->row_step();
        }
        portably(block, n, true);  // for_crowd gives a single row then
        return 0;
    }

    // Start i with end i.
    void pairs(const Block& block, size_t n) {
        if (lanes)
            lanes->trace_pairs(block, n, splits, trace);
        else
            portably(block, n, false);
    }

  private:
    void portably(const Block& block, size_t n, bool shared_end) {
        trace.clear(n);
        for (size_t t = 0; t < forest.n_trees(); ++t)
            walk.tree(forest.roots[t], block, n, shared_end, TraceSink{forest, splits, trace, 0, static_cast<int32_t>(t)});
    }
};

}  // namespace gigrad
