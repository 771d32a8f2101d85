// The contributions of the weak players of a sampled corner to the margin, for every coalition of the strong ones.
#pragma once

#include <cmath>

#include "link/prefix_margins.hpp"

namespace gigrad {

// Tables over the coalitions S of the strong players, (2^strong,) each, all minus the margin of the empty coalition.
class WeakTables {
public:
    // Leaves that need as many weak players in, and as many out.
    struct Kind {
        uint32_t n_past, n_before;
        std::vector<double> all;           // their sum
        std::vector<double> past, before;  // (weak, n) or empty: of those that need a player in, or out
    };

    void set(const PrefixMargins& prefixes) {
        q = prefixes.strong(), w = prefixes.weak(), n = size_t{1} << q;
        sizes.resize(n);
        for (size_t s = 1; s < n; ++s) sizes[s] = static_cast<uint8_t>(sizes[s >> 1] + (s & 1));
        n_kinds_ = 0;
        alike = true;
        base = prefixes.base();
        base[0] -= prefixes.nobody();
        kind_of_.clear();
        prefixes.for_needs([&](const uint32_t* weak, uint32_t n_past, uint32_t n_before, auto changes) {
            kind_of_.push_back(static_cast<uint32_t>(number(n_past, n_before)));
            Kind& kind = kinds_[kind_of_.back()];
            alike = alike && !n_before;
            changes([&](uint32_t cell, double value) {
                kind.all[cell] += value;
                for (uint32_t i = 0; i < n_past; ++i) kind.past[weak[i] * n + cell] += value;
                for (uint32_t i = n_past; i < n_past + n_before; ++i) kind.before[weak[i] * n + cell] += value;
            });
        });
        zeta_transform(base.data(), n, 1);
        centre = base;
        weights.assign(w * n, 0.0);
        for (size_t i = 0; i < n_kinds_; ++i) expect(kinds_[i]);
        sum_powers();
    }

    size_t n_kinds() const { return n_kinds_; }
    const Kind& kind(size_t i) const { return kinds_[i]; }
    size_t kind_of_need(size_t need) const { return kind_of_[need]; }
    const double* weight(size_t weak) const { return weights.data() + weak * n; }

    size_t q = 0, w = 0, n = 1;
    bool alike = true;            // no leaf needs a weak player out
    std::vector<uint8_t> sizes;   // of S
    std::vector<double> base;     // of the leaves that need no weak player
    std::vector<double> centre;   // where each weak player is in with a chance of 1/2
    std::vector<double> weights;  // (weak, n): what each adds there
    std::vector<double> powers;   // (3, n): sums of the weights, of their squares and of their cubes

private:
    size_t n_kinds_ = 0;
    std::vector<Kind> kinds_;
    std::vector<uint32_t> kind_of_;

    size_t number(uint32_t n_past, uint32_t n_before) {
        for (size_t i = 0; i < n_kinds_; ++i)
            if (kinds_[i].n_past == n_past && kinds_[i].n_before == n_before) return i;
        if (kinds_.size() == n_kinds_) kinds_.emplace_back();
        Kind& kind = kinds_[n_kinds_];
        kind.n_past = n_past, kind.n_before = n_before;
        kind.all.assign(n, 0.0);
        kind.past.assign(n_past ? w * n : 0, 0.0);
        kind.before.assign(n_before ? w * n : 0, 0.0);
        return n_kinds_++;
    }

    void expect(Kind& kind) {
        zeta_transform(kind.all.data(), n, 1);
        const double half = std::ldexp(1.0, -static_cast<int>(kind.n_past + kind.n_before));
        for (size_t s = 0; s < n; ++s) centre[s] += half * kind.all[s];
        for (std::vector<double>* const tables : {&kind.past, &kind.before}) {
            const double part = tables == &kind.past ? 2.0 * half : -2.0 * half;
            for (size_t at = 0; at < tables->size(); at += n) zeta_transform(tables->data() + at, n, 1);
            for (size_t c = 0; c < tables->size(); ++c) weights[c] += part * (*tables)[c];
        }
    }

    void sum_powers() {
        powers.assign(3 * n, 0.0);
        double *const first = powers.data(), *const second = first + n, *const third = second + n;
        for (size_t j = 0; j < w; ++j) {
            const double* const mine = weight(j);
            for (size_t s = 0; s < n; ++s) {
                const double square = mine[s] * mine[s];
                first[s] += mine[s], second[s] += square, third[s] += square * mine[s];
            }
        }
    }
};

}  // namespace gigrad
