// Credit of link(sum of trees): the jumps of each pair in order of time, each earning link(after) - link(before).
#pragma once

#include "credits.hpp"
#include "game.hpp"
#include "trace.hpp"

namespace gigrad {

class LinkedCredit {
  public:
    LinkedCredit(const Forest& forest, const SplitIds& splits, const Link& link, const GameOptions& options)
        : forest_(forest), splits_(splits), link_(link), game_(link, options), k_(forest.n_outputs()),
          delta_((splits.size() + 1) * k_, 0.0), touched_(splits.size() + 1, 0), ids_(splits.size() + 1), way_(forest.n_columns()) {
        touched_[splits.size()] = 1;  // so that "none" is never an entry
    }

    // Adds weight * credit of the pair at a place of the trace; `start`, `end` are its rows, `margin` the trees' outputs at
    // the start.
    void add(const Trace& trace, size_t place, const double* start, const double* end, const double* margin, double weight,
             uint64_t salt, double* credit, double* error) {
        corners_ = trace.corners(place).data();
        members_ = trace.members(place);
        sum_jumps(trace, place);
        time_entries(trace.corners(place).size(), start, end);
        sort_entries();
        margins_.resize(std::max(margins_.size(), (entries_.size() + 1) * k_));
        std::copy(margin, margin + k_, margins_.begin());
        jumpers_.clear();
        if (k_ == 1 && apart_)
            follow_alone();
        else
            follow(weight, salt, credit, error);
        link_.apply(margins_, jumpers_.size() + 1);
        const size_t outputs = link_.n_outputs();
        for (size_t i = 0; i < jumpers_.size(); ++i) {
            if (jumpers_[i] < 0) continue;
            double* to = credit + static_cast<size_t>(jumpers_[i]) * outputs;
            const double *before = margins_.data() + i * outputs, *after = before + outputs;
            for (size_t o = 0; o < outputs; ++o) to[o] += weight * (after[o] - before[o]);
        }
        for (size_t i = 0; i < n_ids_; ++i) {
            touched_[ids_[i]] = 0;
            std::fill_n(delta_.data() + static_cast<size_t>(ids_[i]) * k_, k_, 0.0);
        }
        std::fill_n(delta_.data() + splits_.size() * k_, k_, 0.0);
    }

  private:
    struct Entry {
        double time;
        int32_t index;  // of a split, or ~index of a corner
    };
    struct Way {
        double start, length;
        bool jumps;
    };
    const Forest& forest_;
    const SplitIds& splits_;
    const Link& link_;
    Game game_;
    const size_t k_;
    std::vector<double> delta_;  // (splits + 1, margins): what happens when each split is crossed
    std::vector<char> touched_;
    std::vector<int32_t> ids_;   // the first n_ids_: splits at which something happens
    size_t n_ids_ = 0;
    std::vector<Way> way_;       // of each column
    std::vector<Entry> entries_, sorted_;
    bool apart_ = true;          // no two entries within TIE
    std::vector<uint32_t> buckets_;
    std::vector<double> margins_;
    std::vector<int32_t> jumpers_;  // the variable of each corner; -1 where there are several
    const CornerVisit* corners_ = nullptr;  // of the present pair
    const int32_t* members_ = nullptr;

    // No branch here depends on the pair: "none" is a split like the others, and whether one is new is added up.
    void sum_jumps(const Trace& trace, size_t place) {
        size_t n = 0;
        const double* values = forest_.values.data();
        const auto touch = [&](int32_t split) {
            ids_[n] = split;
            n += !touched_[split];
            touched_[split] = 1;
        };
        for (const Visit *visit = trace.begin(place), *stop = trace.end(place); visit != stop; ++visit) {
            touch(visit->opens);
            touch(visit->closes);
            const double* value = values + visit->value;
            if (k_ == 1) {
                delta_[visit->opens] += *value;
                delta_[visit->closes] -= *value;
                continue;
            }
            const size_t first = forest_.first(visit->tree), width = forest_.width(visit->tree);
            double *opens = delta_.data() + static_cast<size_t>(visit->opens) * k_ + first;
            double *closes = delta_.data() + static_cast<size_t>(visit->closes) * k_ + first;
            for (size_t o = 0; o < width; ++o) {
                opens[o] += value[o];
                closes[o] -= value[o];
            }
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

    // Every jump on its own, one margin: the common case.
    void follow_alone() {
        const size_t n = entries_.size();
        jumpers_.resize(n);
        double margin = margins_[0];
        for (size_t i = 0; i < n; ++i) {
            const int32_t id = entries_[i].index;
            margin += delta_[id];
            margins_[i + 1] = margin;
            jumpers_[i] = splits_.feature[id];
        }
    }

    void follow(double weight, uint64_t salt, double* credit, double* error) {
        for (size_t begin = 0, stop; begin < entries_.size(); begin = stop) {
            for (stop = begin + 1; stop < entries_.size() && entries_[stop].time - entries_[stop - 1].time <= TIE;) ++stop;
            double* now = margins_.data() + (jumpers_.size() + 1) * k_;
            std::copy(now - k_, now, now);
            const int32_t lone = lone_variable(begin, stop);
            jumpers_.push_back(lone);
            if (lone >= 0) {
                for (size_t i = begin; i < stop; ++i) jump(entries_[i].index, now);
            } else {
                game_.clear();
                for (size_t i = begin; i < stop; ++i) enter(entries_[i].index);
                game_.solve(now, weight, salt * 1000003u + jumpers_.size(), credit, error);
            }
        }
    }

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

    void jump(int32_t index, double* margin) const {
        if (index >= 0) {
            for (size_t o = 0; o < k_; ++o) margin[o] += delta_[static_cast<size_t>(index) * k_ + o];
            return;
        }
        const CornerVisit& c = corners_[~index];
        const double sign = c.n_past ? 1.0 : -1.0;
        for (size_t o = 0; o < forest_.width(c.tree); ++o) margin[forest_.first(c.tree) + o] += sign * forest_.values[c.value + o];
    }

    void enter(int32_t index) {
        if (index >= 0) {
            const double* value = delta_.data() + static_cast<size_t>(index) * k_;
            if (std::all_of(value, value + k_, [](double v) { return v == 0.0; })) return;
            game_.add(&splits_.feature[index], 1, nullptr, 0, value, 1.0, 0, k_);
            return;
        }
        const CornerVisit& c = corners_[~index];
        const int32_t* members = members_ + c.members;
        game_.add(members, c.n_past, members + c.n_past, c.n_before, &forest_.values[c.value], 1.0, forest_.first(c.tree),
                  forest_.width(c.tree));
    }
};

// Vectors whose traces are kept at once, and pairs without vectors: some twenty kilobytes for each pair.
constexpr size_t TRACE_VECTORS = 32, TRACE_PAIRS = 64;

// Largest over the variables, of errors (variables, outputs).
inline void largest_error(const double* errors, size_t n_columns, size_t outputs, double* out) {
    std::fill(out, out + outputs, 0.0);
    for (size_t j = 0; j < n_columns; ++j)
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
    const Forest& forest;
    const SplitIds& splits;
    Trace trace;
    LinkedCredit credit;
    Walk walk;
    std::unique_ptr<LaneBlock> lanes;  // null for the portable walk

    LinkedWorker(const Forest& f, const LaneKernel* kernel, const SplitIds& s, const Link& link, const GameOptions& options)
        : forest(f), splits(s), credit(f, s, link, options), walk(f), lanes(kernel ? new LaneBlock(f, *kernel) : nullptr) {}

    // Traces n starts, each with the end of the same number, or all with end 0.
    void trace_portably(const Block& block, size_t n, bool shared_end) {
        trace.clear(n);
        for (size_t t = 0; t < forest.n_trees(); ++t)
            walk.tree(forest.roots[t], block, n, shared_end, TraceSink{splits, trace, 0, static_cast<int32_t>(t)});
    }
};

// values: (ends, columns, link outputs), the sum over starts of weight * credit; error: (ends, link outputs).
inline void linked_credits(const Forest& forest, const LaneKernel* kernel, const Link& link, const GameOptions& options, const Rows& starts,
                           const double* weights, const Rows& ends, size_t n_threads, double* values, double* error) {
    check_columns(forest, starts, "starts");
    check_columns(forest, ends, "ends");
    check_weights(starts, weights);
    check_link(forest, link, options);
    if (ends.n_rows == 0) return;
    const size_t p = forest.n_columns(), k = forest.n_outputs(), outputs = link.n_outputs(), table = p * outputs;
    const SplitIds& splits = forest.split_ids();
    std::vector<double> margins(starts.n_rows * k), both(ends.n_rows * 2 * table);  // credits, then their errors, of each end
    predict(forest, starts, margins.data());
    const LaneKernel& shape = kernel ? *kernel : LANES_PLAIN;
    const Crowd crowd(forest, starts, weights, static_cast<size_t>(shape.lanes));
    for_crowd(crowd, shape, kernel ? TRACE_VECTORS : 1, ends.n_rows, 2 * table, n_threads, both.data(), [&] {
        return [&, worker = std::make_unique<LinkedWorker>(forest, kernel, splits, link, options)](size_t begin, size_t n, size_t row,
                                                                                                 size_t n_rows, double* sum) {
            const Block block{crowd.columns.data() + begin, crowd.size, ends.row(row), 1, p};
            size_t step = 0;
            if (kernel) {
                worker->lanes->trace_population(block, n, n_rows, splits, worker->trace);
                step = worker->lanes->row_step();
            } else {
                worker->trace_portably(block, n, true);  // for_crowd gives a single row then
            }
            for (size_t r = 0; r < n_rows; ++r)
                for (size_t i = 0; i < n; ++i) {
                    const size_t start = crowd.order[begin + i];
                    worker->credit.add(worker->trace, r * step + i, starts.row(start), ends.row(row + r), &margins[start * k],
                                       crowd.weights[begin + i], start, sum + r * 2 * table, sum + r * 2 * table + table);
                }
        };
    });
    for (size_t i = 0; i < ends.n_rows; ++i) {
        const double* mine = both.data() + i * 2 * table;
        std::copy(mine, mine + table, values + i * table);
        largest_error(mine + table, p, outputs, error + i * outputs);
    }
}

// values: (pairs, columns, link outputs); error: (pairs, link outputs).
inline void linked_credits_pairs(const Forest& forest, const LaneKernel* kernel, const Link& link, const GameOptions& options,
                                 const Rows& starts, const Rows& ends, size_t n_threads, double* values, double* error) {
    check_pairs(forest, starts, ends);
    check_link(forest, link, options);
    const size_t outputs = link.n_outputs(), table = forest.n_columns() * outputs, k = forest.n_outputs();
    const size_t block_size = kernel ? TRACE_VECTORS * static_cast<size_t>(kernel->lanes) : TRACE_PAIRS;
    const SplitIds& splits = forest.split_ids();
    std::fill(values, values + ends.n_rows * table, 0.0);
    for_blocks(forest, starts, ends, n_threads, block_size, [&] {
        return [&, worker = std::make_unique<LinkedWorker>(forest, kernel, splits, link, options), errors = std::vector<double>(),
                margins = std::vector<double>(block_size * k)](size_t, size_t begin, size_t size, const Block& block) mutable {
            if (kernel)
                worker->lanes->trace_pairs(block, size, splits, worker->trace);
            else
                worker->trace_portably(block, size, false);
            predict(forest, Rows{starts.row(begin), size, starts.n_columns}, margins.data());
            for (size_t i = 0; i < size; ++i) {
                errors.assign(table, 0.0);
                worker->credit.add(worker->trace, i, starts.row(begin + i), ends.row(begin + i), &margins[i * k], 1.0, 0,
                                   values + (begin + i) * table, errors.data());
                largest_error(errors.data(), forest.n_columns(), outputs, error + (begin + i) * outputs);
            }
        };
    });
}

}  // namespace gigrad
