// The data of a block of pairs for a vector walk, made column by column on first use, and the transfer from the vector
// walk to the exact one.
#pragma once

#include <memory>

#include "walk/credits_sink.hpp"
#include "core/interrupt.hpp"
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
          columns_(forest.n_columns()),
          store_(forest.n_columns()),
          state_((MAX_TURNS + 2) * SLOT_CODES * lanes()),
          first_code_(capacity()),
          unclear_starts_(capacity()) {
        job_.calls = {&ask_column, &ask_category, &ask_exact, &ask_grow, &ask_corner};
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
        if (forest.nodes.size() <= MOST_NODES && forest.split_ids().repeat()) splits_ = &forest.split_ids();
        if (splits_) job_.split_ids = splits_->of_node.data();
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
        job_.at_once = any_at_once();
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
        job_.at_once = any_at_once();
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
    const LaneKernel kernel_;
    Walk walk_;
    std::vector<Pair> unclear_;  // pairs queued for the exact walk
    SharedLeaf leaf_;
    std::vector<LaneColumn> columns_;
    std::vector<Store> store_;
    Aligned<int16_t> state_, first_code_;
    std::vector<int32_t> unclear_starts_;  // of one row, where ends are shared, queued for its leaf
    std::vector<double> weight_sums_, table_;
    LaneWalkJob job_;
    Block block_;
    size_t n_starts_ = 0, n_rows_ = 0;
    bool shared_ = false;
    const double* weights_ = nullptr;
    Trace* trace_ = nullptr;
    const LineRows* lines_ = nullptr;
    LineLeaf line_leaf_;
    const SplitIds* splits_ = nullptr;  // null: too many splits, or too few nodes for each
    std::vector<float> natural_;        // inverses of one row, by start
    std::vector<int16_t> sides_;        // of a category split, by place of the value

    void credit_to(double* credit, size_t step) {
        job_.credit = credit;
        job_.credit_step = step;
        trace_ = nullptr;
    }

    void trace_to(const SplitIds& splits, Trace& trace, size_t n) {
        trace.clear(n);
        trace_ = &trace;
        job_.visits = trace.cursors();
        job_.split_ids = splits.of_node.data();
        job_.no_split = splits.none();
        splits_ = &splits;
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

    void begin(const Block& block, size_t n_starts, size_t n_rows, bool shared) {
        // Consecutive blocks of rows have the same starts: data that depend only on these are kept.
        const bool same = shared && shared_ && block.starts == block_.starts && n_starts == n_starts_;
        if (!same)
            for (Store& s : store_) s.has_starts = false;
        block_ = block;
        lines_ = nullptr;
        leaf_.set_constant();
        n_starts_ = n_starts;
        n_rows_ = n_rows;
        shared_ = shared;
        job_.n_rows = static_cast<int>(n_rows);
        job_.row_vectors = static_cast<int>((n_starts + lanes() - 1) / lanes());
        job_.ends = block.ends;
        job_.end_step = block.end_step;
        for (LaneColumn& c : columns_) c.ready = false;
        const size_t padded = static_cast<size_t>(job_.row_vectors) * lanes();
        for (size_t i = 0; i < padded; ++i) first_code_[i] = i < n_starts ? CODE_END : CODE_NEVER;
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
    static void ask_column(LaneWalkJob& job, int32_t feature) { self(job).column(feature); }
    static void ask_category(LaneWalkJob& job, const Node& node, int16_t* starts, int16_t* ends) {
        self(job).category(node, starts, ends);
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
    static void ask_corner(LaneWalkJob& job, size_t lane, int32_t value, const int32_t* members, uint32_t n_past,
                           uint32_t n_before) {
        Trace& trace = *self(job).trace_;
        trace.add_corner(lane, 0.5, value, job.tree, n_past, n_before);
        trace.add_members(lane, members, members + n_past + n_before);
    }

    double start_value(int32_t feature, size_t i) const {
        return block_.start(feature, Pair{static_cast<int32_t>(i), 0});
    }
    double end_value(int32_t feature, size_t i) const { return block_.end(feature, Pair{0, static_cast<int32_t>(i)}); }
    size_t padded() const { return static_cast<size_t>(job_.row_vectors) * lanes(); }

    void column(int32_t feature) {
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

    // Four lanes of the first half of a vector, then four of the second: the order Isa::times wants.
    void write_inverses(const float* natural, float* to) const {
        const size_t half = lanes() / 2;
        for (size_t v = 0; v < padded(); v += lanes())
            for (size_t lane = 0; lane < lanes(); lane += 4)
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

    // Asked once for each value that occurs in the block, and for a missing one.
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
