// The splits that a swept pair crosses, in order of time.
#pragma once

#include "sweep/sweeper.hpp"

namespace gigrad {

// Keys sort nearly all splits; exact times are computed only where two keys are too close.
class KeyOrder {
public:
    // Sorts the crossed splits at which delta is not zero. `time(split)` is the exact time. Returns false if two times
    // are equal.
    template <class Time>
    bool set(const Sweeper& swept, const double* delta, Time time) {
        collect(swept, delta);
        sort();
        if (!settle_close(time)) return false;
        for (size_t i = 0; i < n_; ++i) keys_[i] = split_of(sorted_[i]);
        return true;
    }

    size_t size() const { return n_; }
    const int32_t* splits() const { return keys_.data(); }

private:
    std::vector<int32_t> keys_, sorted_;  // the first n_
    size_t n_ = 0;
    std::vector<uint32_t> begins_;  // of buckets
    std::vector<double> times_;     // of keys that are close

    void collect(const Sweeper& swept, const double* delta) {
        const size_t most = swept.n_crossed();
        if (keys_.size() < most + 1) {  // one more is written than there may be
            keys_.resize(most + 1);
            sorted_.resize(most + 1);
        }
        int32_t* const keys = keys_.data();
        size_t n = 0;
        swept.for_codes([&](int32_t split, int16_t code) {
            keys[n] = sweep_key(code, split);
            n += delta[split] != 0.0;
        });
        n_ = n;
    }

    // Times are spread over the path: a bucket sort with about as many buckets as keys, finished by insertion.
    void sort() {
        int bits = 6;
        while (bits < 20 && (size_t{1} << bits) < 2 * n_) ++bits;
        const int shift = 32 - bits;
        const auto bucket = [&](int32_t key) { return (static_cast<uint32_t>(key) ^ 0x80000000u) >> shift; };
        const size_t n_buckets = size_t{1} << bits;
        begins_.assign(n_buckets, 0);
        uint32_t* const begins = begins_.data();
        for (size_t i = 0; i < n_; ++i) ++begins[bucket(keys_[i])];
        for (uint32_t b = 0, n = 0; b < n_buckets; ++b) {
            const uint32_t mine = begins[b];
            begins[b] = n;
            n += mine;
        }
        for (size_t i = 0; i < n_; ++i) sorted_[begins[bucket(keys_[i])]++] = keys_[i];
        for (size_t i = 1; i < n_; ++i) {
            const int32_t key = sorted_[i];
            size_t at = i;
            for (; at > 0 && sorted_[at - 1] > key; --at) sorted_[at] = sorted_[at - 1];
            sorted_[at] = key;
        }
    }

    static int32_t split_of(int32_t key) { return key & static_cast<int32_t>(SWEEP_TEST); }
    bool is_close(size_t i) const {
        return static_cast<uint32_t>(sorted_[i]) - static_cast<uint32_t>(sorted_[i - 1]) <
               static_cast<uint32_t>(SWEEP_DOUBT);
    }

    template <class Time>
    bool settle_close(Time time) {
        for (size_t i = 1; i < n_; ++i) {
            if (!is_close(i)) continue;
            const size_t begin = i - 1;
            times_.assign(1, time(split_of(sorted_[begin])));
            for (; i < n_ && is_close(i); ++i) insert(begin, i, time(split_of(sorted_[i])));
            for (size_t t = 1; t < times_.size(); ++t)
                if (times_[t] == times_[t - 1]) return false;
        }
        return true;
    }

    // Puts key i, and its time, among those of `begin` and after.
    void insert(size_t begin, size_t i, double time) {
        const int32_t key = sorted_[i];
        times_.push_back(time);
        size_t at = times_.size() - 1;
        for (; at > 0 && times_[at - 1] > time; --at) {
            times_[at] = times_[at - 1];
            sorted_[begin + at] = sorted_[begin + at - 1];
        }
        times_[at] = time;
        sorted_[begin + at] = key;
    }
};

}  // namespace gigrad
