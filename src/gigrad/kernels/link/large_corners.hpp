// Corners that were not enumerated, from the walk that met them until they are sampled.
#pragma once

#include <atomic>
#include <mutex>
#include <tuple>

#include "link/corner_walk.hpp"
#include "limits.hpp"

namespace gigrad {

// A corner whose jump is not yet in any credit.
struct LargeCorner {
    int64_t end, start;  // the rows of its pair
    double time;
    int64_t players;
    std::vector<double> margin;  // of the empty coalition
    StoredTerms terms;           // empty where they are to be found by another walk, with the same result
};

// The results of threads, in an order that does not depend on them.
class LargeCorners {
public:
    // Takes the corners of one pair: (time, players, terms, margin). The terms are kept while there is room, unless null.
    auto of(int64_t end, int64_t start) {
        return [this, end, start](double time, size_t players, const CornerTerms* terms,
                                  const std::vector<double>& margin) {
            LargeCorner corner{end, start, time, static_cast<int64_t>(players), margin, {}};
            if (terms && bytes_.fetch_add(terms->stored_bytes(), std::memory_order_relaxed) < STORED_BYTES)
                corner.terms = terms->store();
            const std::lock_guard<std::mutex> lock(lock_);
            all_.push_back(std::move(corner));
        };
    }
    std::vector<LargeCorner> in_order() {
        const auto key = [](const LargeCorner& c) { return std::make_tuple(c.end, c.start, c.time); };
        std::sort(all_.begin(), all_.end(),
                  [&](const LargeCorner& a, const LargeCorner& b) { return key(a) < key(b); });
        return std::move(all_);
    }

private:
    std::mutex lock_;
    std::atomic<size_t> bytes_{0};
    std::vector<LargeCorner> all_;
};

// The terms of a few corners at a time, for their samples: as they were kept, or by another walk.
class CornerTermSource {
public:
    CornerTermSource(const Forest& forest, size_t most)
        : forest_(forest), walks_(most, CornerWalk(forest)), nobodies_(most * forest.n_outputs()), found_(most) {}

    // The corners 0..n-1 from now on: that at time(i) of the path from start(i) to end(i), which was found as found(i), or
    // null.
    template <class Found, class Start, class End, class Time>
    void set(size_t n, Found found, Start start, End end, Time time) {
        for (size_t i = 0; i < n; ++i) {
            found_[i] = found(i);
            if (!is_kept(i)) walks_[i].begin(start(i), end(i), time(i), nobody(i));
        }
        for (size_t tree = 0; tree < forest_.n_trees(); ++tree)
            for (size_t i = 0; i < n; ++i)
                if (!is_kept(i)) walks_[i].add_tree(tree, nobody(i));
    }

    // Fills `terms` with those of corner i, all of whose players have an effect; returns the margin of the empty coalition.
    const double* take(size_t i, CornerTerms& terms) {
        if (is_kept(i)) {
            terms.restore(found_[i]->terms);
        } else {
            walks_[i].finish(terms);
            terms.name_players();
            terms.drop_players_without_effect();
        }
        return found_[i] ? found_[i]->margin.data() : nobody(i);
    }

private:
    const Forest& forest_;
    std::vector<CornerWalk> walks_;
    std::vector<double> nobodies_;
    std::vector<const LargeCorner*> found_;

    bool is_kept(size_t i) const { return found_[i] && !found_[i]->terms.empty(); }
    double* nobody(size_t i) { return nobodies_.data() + i * forest_.n_outputs(); }
};

}  // namespace gigrad
