// A block of pairs for a vector walk, and the transfer from the vector walk to the exact one.
#pragma once

#include <memory>

#include "walk/credits_sink.hpp"
#include "core/interrupt.hpp"
#include "lanes/lanes_columns.hpp"
#include "lanes/lanes_lines.hpp"
#include "sweep/sweeper.hpp"
#include "walk/trace.hpp"

namespace gigrad {

class LaneBlock {
public:
    LaneBlock(const Forest& forest, const LaneKernel& kernel)
        : forest_(forest),
          kernel_(kernel),
          walk_(forest),
          leaf_(forest, kernel_),
          columns_(forest, lanes()),
          state_((MAX_TURNS + 2) * SLOT_CODES * lanes()),
          first_code_(capacity()),
          unclear_starts_(capacity()) {
        job_.calls = {&ask_column, &ask_category, &ask_exact, &ask_grow, &ask_grow_corners, &ask_corner};
        job_.owner = this;
        job_.nodes = forest.nodes.data();
        job_.columns = columns_.data();
        job_.state = state_.data();
        job_.first_code = first_code_.data();
        job_.values = forest.values.data();
        job_.outputs = forest.n_outputs();
        job_.n_trees = forest.n_trees();
        job_.between_trees = &check_interrupt;
        job_.roots = forest.roots.data();
        job_.tree_output = forest.tree_output.data();
        job_.weight_sums = nullptr;
        job_.weight = 1.0;
        job_.shares = leaf_.shares();
        if (forest.nodes.size() <= MOST_NODES && forest.split_ids().repeat()) {
            columns_.find_splits(forest.split_ids());
            job_.split_ids = forest.split_ids().of_node.data();
        }
    }
    LaneBlock(const LaneBlock&) = delete;
    LaneBlock& operator=(const LaneBlock&) = delete;

    size_t lanes() const { return static_cast<size_t>(kernel_.lanes); }
    // Lanes of a block at most.
    size_t capacity() const { return MAX_VECTORS * lanes(); }

    // All pairs of `n_starts` starts with each of `n_rows` ends (row-major); credit[row] += weight * credit of each pair.
    void population(const Block& block, size_t n_starts, size_t n_rows, const double* weights, double* credit,
                    size_t step) {
        begin(block, n_starts, n_rows, true);
        credit_to(credit, step);
        weights_ = weights;
        weigh(n_starts);
        job_.at_once = columns_.any_at_once();
        kernel_.population(job_);
    }

    // The same for trees with linear leaves, except for the leaves at the ends of paths.
    void population_lines(const Block& block, const LineRows& lines, size_t n_starts, size_t n_rows,
                          const double* weights, double* credit, size_t step) {
        begin(block, n_starts, n_rows, true);
        credit_to(credit, step);
        weights_ = weights;
        lines_ = &lines;
        kernel_.population_lines(job_);
    }

    // The same pairs, each traced: that of start i and row r at place i + r * row_step().
    void trace_population(const Block& block, size_t n_starts, size_t n_rows, const SplitIds& splits, Trace& trace) {
        begin(block, n_starts, n_rows, true);
        trace_to(splits, trace, n_rows * padded());
        job_.at_once = columns_.any_at_once();
        kernel_.population_visits(job_);
    }
    size_t row_step() const { return padded(); }

    // Start i with end i; credit (pairs, columns, outputs) is overwritten.
    void pairs(const Block& block, size_t n, double* credit) {
        const size_t size = forest_.n_variables() * forest_.n_outputs(), step = size + forest_.n_outputs();
        begin(block, n, 1, false);
        table_.assign(n * step, 0.0);
        credit_to(table_.data(), step);
        job_.nobody = size;
        weights_ = nullptr;
        kernel_.pairs(job_);
        for (size_t i = 0; i < n; ++i) std::copy_n(table_.data() + i * step, size, credit + i * size);
    }

    void trace_pairs(const Block& block, size_t n, const SplitIds& splits, Trace& trace) {
        begin(block, n, 1, false);
        trace_to(splits, trace, padded());
        kernel_.pairs_visits(job_);
    }

private:
    const Forest& forest_;
    const LaneKernel kernel_;
    Walk walk_;
    std::vector<Pair> unclear_;  // pairs queued for the exact walk
    SharedLeaf leaf_;
    LaneColumns columns_;
    Aligned<int16_t> state_, first_code_;
    std::vector<int32_t> unclear_starts_;  // of one row, where ends are shared, queued for its leaf
    std::vector<double> weight_sums_, table_;
    LaneWalkJob job_;
    Block block_;
    bool shared_ = false;
    const double* weights_ = nullptr;
    Trace* trace_ = nullptr;
    const LineRows* lines_ = nullptr;
    LineLeaf line_leaf_;
    const SplitIds* splits_ = nullptr;  // of the traces

    void credit_to(double* credit, size_t step) {
        job_.credit = credit;
        job_.credit_step = step;
        trace_ = nullptr;
    }

    void trace_to(const SplitIds& splits, Trace& trace, size_t n) {
        trace.clear(n);
        trace_ = &trace;
        job_.visits = trace.cursors();
        job_.corners = trace.corner_cursors();
        job_.split_ids = splits.of_node.data();
        job_.no_split = splits.none();
        splits_ = &splits;
        columns_.find_splits(splits);
    }

    size_t padded() const { return columns_.padded(); }

    void begin(const Block& block, size_t n_starts, size_t n_rows, bool shared) {
        columns_.begin(block, n_starts, n_rows, shared);
        block_ = block;
        lines_ = nullptr;
        leaf_.set_constant();
        shared_ = shared;
        job_.n_rows = static_cast<int>(n_rows);
        job_.row_vectors = static_cast<int>((n_starts + lanes() - 1) / lanes());
        job_.ends = block.ends;
        job_.end_step = block.end_step;
        for (size_t i = 0; i < padded(); ++i) first_code_[i] = i < n_starts ? CODE_END : CODE_NEVER;
    }

    // Equal weights are counted. Others are summed by bytes of lane bits: a look-up for eight lanes.
    void weigh(size_t n_starts) {
        job_.weight = weights_[0];
        job_.weight_sums = nullptr;
        if (std::all_of(weights_, weights_ + n_starts, [&](double w) { return w == weights_[0]; })) return;
        const size_t bytes = static_cast<size_t>(job_.row_vectors) * lanes() / 8;
        weight_sums_.assign(bytes * 256, 0.0);
        for (size_t b = 0; b < bytes; ++b)
            for (size_t bits = 1; bits < 256; ++bits)
                for (size_t i = 0; i < 8; ++i)
                    if (bits >> i & 1 && 8 * b + i < n_starts) weight_sums_[b * 256 + bits] += weights_[8 * b + i];
        job_.weight_sums = weight_sums_.data();
    }

    static LaneBlock& self(LaneWalkJob& job) { return *static_cast<LaneBlock*>(job.owner); }
    static void ask_column(LaneWalkJob& job, int32_t feature) { self(job).columns_.make(feature); }
    static void ask_category(LaneWalkJob& job, const Node& node, int16_t* starts, int16_t* ends) {
        self(job).columns_.category(node, starts, ends);
    }
    static void ask_exact(LaneWalkJob& job, int32_t node, int depth, const LaneSet* sets, int n_sets) {
        LaneBlock& me = self(job);
        if (me.trace_)
            me.exact(node, depth, sets, n_sets,
                     TraceSink{me.forest_, *me.splits_, *me.trace_, me.shared_ ? me.padded() : 0, job.tree});
        else if (me.lines_ && job.nodes[node].is_leaf())
            me.exact_line(node, depth, sets, n_sets);
        else if (me.lines_)
            me.exact(node, depth, sets, n_sets,
                     LineSink{me.forest_, *me.lines_, job.credit, job.credit_step, me.weights_});
        else if (me.shared_ && job.nodes[node].is_leaf())
            me.exact_shared_leaf(node, depth, sets, n_sets);
        else
            me.exact(
                node, depth, sets, n_sets,
                CreditSink{me.forest_, job.outputs, job.width, job.first, job.credit, job.credit_step, me.weights_});
    }
    static void ask_grow(LaneWalkJob& job, size_t lane) { self(job).trace_->grow(lane); }
    static void ask_grow_corners(LaneWalkJob& job, size_t lane) { self(job).trace_->grow_corners(lane); }
    static uint32_t ask_corner(LaneWalkJob& job, int32_t value, const int32_t* members, uint32_t n_past,
                               uint32_t n_before) {
        Trace& trace = *self(job).trace_;
        const uint32_t number = trace.new_corner(0.5, value, job.tree, n_past, n_before);
        trace.add_members(members, members + n_past + n_before);
        return number;
    }

    template <class Sink>
    void exact(int32_t node, int depth, const LaneSet* sets, int n_sets, const Sink& sink) {
        unclear_.clear();
        for (const LaneSet* set = sets; set != sets + n_sets; ++set) {
            const int row = shared_ ? set->vector / job_.row_vectors : 0;
            const int32_t first = (set->vector - row * job_.row_vectors) * kernel_.lanes;
            for (uint32_t bits = set->lanes; bits; bits &= bits - 1) {
                const int32_t start = first + __builtin_ctz(bits);
                unclear_.push_back(Pair{start, shared_ ? row : start});
            }
        }
        walk_.below(node, job_.path, static_cast<size_t>(depth), block_, unclear_.data(), unclear_.size(), sink);
    }

    // Rows with lanes for which a leaf is ambiguous, with the starts of each: each(row).
    template <class Each>
    void for_rows(int depth, const LaneSet* sets, int n_sets, Each each) {
        leaf_.set_way(job_.path, depth, block_, columns_.data());
        for (const LaneSet *set = sets, *stop = sets + n_sets; set != stop;) {
            const int row = set->vector / job_.row_vectors;
            leaf_.set_end(static_cast<size_t>(row) * block_.end_step);
            size_t n = 0;
            for (; set != stop && set->vector < (row + 1) * job_.row_vectors; ++set) {
                const int32_t first = (set->vector - row * job_.row_vectors) * kernel_.lanes;
                for (uint32_t bits = set->lanes; bits; bits &= bits - 1)
                    unclear_starts_[n++] = first + __builtin_ctz(bits);
            }
            each(static_cast<size_t>(row), n);
        }
    }

    void exact_shared_leaf(int32_t node, int depth, const LaneSet* sets, int n_sets) {
        const double* value = job_.values + job_.nodes[node].value;
        for_rows(depth, sets, n_sets, [&](size_t row, size_t n) {
            leaf_.add(unclear_starts_.data(), n, weights_);
            double* credit = job_.credit + row * job_.credit_step + job_.first;
            leaf_.flush([&](int32_t variable, double mass) {
                for (size_t k = 0; k < job_.width; ++k)
                    credit[static_cast<size_t>(variable) * job_.outputs + k] += mass * value[k];
            });
        });
    }

    void exact_line(int32_t node, int depth, const LaneSet* sets, int n_sets) {
        for_rows(depth, sets, n_sets, [&](size_t row, size_t n) {
            lines_->leaves->for_outputs(node, [&](const LeafLines::Part* part, const LeafLines::Part* stop) {
                line_leaf_.add(leaf_, *lines_, part, stop, row, unclear_starts_.data(), n, weights_,
                               job_.credit + row * job_.credit_step);
            });
        });
    }
};

}  // namespace gigrad
