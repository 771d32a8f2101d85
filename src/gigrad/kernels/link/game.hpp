// The game at a corner under a link: its players, the trees' outputs for each coalition, and the Shapley value of
// link(margin).
#pragma once

#include "link/corner_terms.hpp"
#include "link/link.hpp"
#include "link/shapley_fold.hpp"

namespace gigrad {

// The trees' outputs for coalitions, minus those for the empty one: (coalitions, margins).
class CoalitionMargins {
public:
    // The number of players whose coalitions fit in one table: the first ones.
    static size_t table_bits(size_t players, size_t n_margins) {
        while ((n_margins << players) > TABLE_NUMBERS && players > 0) --players;
        return players;
    }

    // All coalitions of the first `bits` players; of the others, those in `part` are included. Part 0 comes first.
    void find(const CornerTerms& terms, size_t bits, uint32_t part, double* out) {
        const size_t n = size_t{1} << bits, width = terms.n_margins();
        const auto low = static_cast<uint32_t>(n - 1), high = part << bits;
        std::fill(out, out + n * width, 0.0);
        const bool twice = is_deep(terms, n, bits);
        if (twice) from_all_.assign(n * width, 0.0);
        terms.for_masks([&](const CornerTerm& t, uint32_t past, uint32_t before) {
            if ((past & ~low & ~high) | (before & high)) return;
            if (twice && t.n_past < t.n_before)
                add_leaf(before & low, past & low, t.value, t.width, from_all_.data() + t.first, width);
            else
                add_leaf(past & low, before & low, t.value, t.width, out + t.first, width);
        });
        subtract_nobody(part == 0, out, width);  // before anything is added to it
        zeta_transform(out, n, width);
        if (twice) add_from_all(part == 0, n, width, out);
    }

private:
    std::vector<double> from_all_;  // the same for complements of coalitions
    std::vector<double> nobody_, nobody_from_all_;

    // Deep leaves that require many players out and few in would have many coefficients. A second transform for them
    // costs about bits / 8 + 1 for each coalition, in units of a coefficient.
    static bool is_deep(const CornerTerms& terms, size_t n, size_t bits) {
        if (bits <= ShapleyFold::BLOCK_BITS) return false;
        const double saved = terms.n_coefficients(false) - terms.n_coefficients(true);
        return saved > (static_cast<double>(bits) / 8.0 + 1.0) * static_cast<double>(n);
    }

    void subtract_nobody(bool first, double* out, size_t width) {
        if (first) nobody_.assign(out, out + width);
        for (size_t o = 0; o < width; ++o) out[o] -= nobody_[o];
    }

    void add_from_all(bool first, size_t n, size_t width, double* out) {
        zeta_transform(from_all_.data(), n, width);
        const double* const last = from_all_.data() + (n - 1) * width;
        if (first) nobody_from_all_.assign(last, last + width);
        for (size_t a = 0; a < n; ++a)
            for (size_t o = 0; o < width; ++o)
                out[a * width + o] += from_all_[(n - 1 - a) * width + o] - nobody_from_all_[o];
    }
};

// to = from + number
GIGRAD_WIDE inline void add_number(const double* __restrict from, double number, size_t n, double* __restrict to) {
    for (size_t i = 0; i < n; ++i) to[i] = from[i] + number;
}

// Folds the link of tables of margins.
class LinkedFold {
public:
    explicit LinkedFold(const Link& link) : link_(link) {}

    // As of ShapleyFold; `margin` (width,) is that of the empty coalition.
    void begin(size_t q, size_t w, const double* margin, size_t width) {
        q_ = q, width_ = width;
        margin_.assign(margin, margin + width);
        nobody_.assign(margin, margin + width);
        link_.apply(nobody_, 1);
        fold_.begin(q, w, link_.n_outputs());
    }

    // From now on the first t of the others are included.
    void begin_prefix(size_t t) { fold_.begin_prefix(t); }
    void end_prefix() { fold_.end_prefix(); }

    // The margins of n coalitions of the q, from number `first` on, (n, width), minus those of the empty one. `slopes`
    // (outputs, width), or null: the game is link(margin) - slopes * margin.
    void add(size_t first, size_t n, const double* margins, const double* slopes) {
        const size_t size = ShapleyFold::block_size(q_), outputs = link_.n_outputs();
        values_.resize(size);
        for (size_t block = first / size; block < (first + n) / size; ++block, margins += size * width_) {
            double* linked = apply(margins, size);
            for (size_t o = 0; o < outputs; ++o) {
                const double* const mine = slopes ? slopes + o * width_ : nullptr;
                if (outputs > 1 || width_ > 1) {
                    for (size_t i = 0; i < size; ++i) values_[i] = buffer_[i * outputs + o];
                    for (size_t m = 0; mine && m < width_; ++m)
                        for (size_t i = 0; i < size; ++i) values_[i] -= mine[m] * margins[i * width_ + m];
                    linked = values_.data();
                }
                fold_.add(block, o, linked, nobody_[o], margins, mine && width_ == 1 && outputs == 1 ? mine[0] : 0.0);
            }
        }
    }

    // All coalitions of the q, for one margin: the link minus a game of known Shapley value.
    template <class Known>
    void add_left(const Known& known, const double* margins) {
        const size_t n = size_t{1} << q_, outputs = link_.n_outputs();
        values_.resize(n);
        const double* linked = apply(margins, n);
        for (size_t o = 0; o < outputs; ++o) {
            if (outputs > 1) {
                column_.resize(n);
                for (size_t i = 0; i < n; ++i) column_[i] = buffer_[i * outputs + o];
                linked = column_.data();
            }
            known.leave(linked, margins, o, values_.data());
            fold_.add(0, o, values_.data(), 0.0, values_.data(), 0.0);
        }
    }

    template <class Give>
    void finish(Give give) {
        fold_.finish(give);
    }

    // The link of n vectors of margins, (n, outputs).
    double* apply(const double* margins, size_t n) {
        buffer_.resize(std::max(buffer_.size(), n * width_));
        double* const to = buffer_.data();
        if (width_ == 1)
            add_number(margins, margin_[0], n, to);
        else
            for (size_t i = 0; i < n; ++i)
                for (size_t o = 0; o < width_; ++o) to[i * width_ + o] = margin_[o] + margins[i * width_ + o];
        link_.apply(buffer_, n);
        return buffer_.data();
    }

private:
    const Link& link_;
    ShapleyFold fold_;
    size_t q_ = 0, width_ = 1;
    std::vector<double> margin_, nobody_, buffer_, values_, column_;
};

// Exact games, by enumeration of all coalitions.
class CornerGame {
public:
    explicit CornerGame(const Link& link) : outputs_(link.n_outputs()), fold_(link) {}

    // Adds weight * Shapley value to credit (variables, link outputs); `margin` is the one before the corner. At most
    // MAX_ENUMERATED players.
    void solve(const CornerTerms& terms, const double* margin, double weight, double* credit) {
        const size_t k = terms.players().size(), width = terms.n_margins(),
                     bits = CoalitionMargins::table_bits(k, width);
        const size_t n = size_t{1} << bits;
        table_.resize(std::max(table_.size(), n * width));
        fold_.begin(k, 0, margin, width);
        fold_.begin_prefix(0);
        for (size_t part = 0; part < size_t{1} << (k - bits); ++part) {
            margins_.find(terms, bits, static_cast<uint32_t>(part), table_.data());
            fold_.add(part * n, n, table_.data(), nullptr);
        }
        fold_.end_prefix();
        fold_.finish([&](size_t player, size_t output, double value) {
            credit[static_cast<size_t>(terms.players()[player]) * outputs_ + output] += weight * value;
        });
    }

private:
    const size_t outputs_;
    CoalitionMargins margins_;
    LinkedFold fold_;
    std::vector<double> table_;
};

}  // namespace gigrad
