// The leaves at a corner: the players, and the conditions of each leaf on them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <iterator>
#include <vector>

#include "limits.hpp"

namespace gigrad {

// A leaf at a corner: its values count in coalitions that contain all of its variables `past` and none of those
// `before`.
struct CornerTerm {
    const int32_t* members;  // variables: first those past, then those before
    uint32_t n_past, n_before;
    const double* value;  // `width` numbers for the margins from `first` on
    uint32_t first, width;
};

// Terms that outlive the walk that found them: they point into this object, which may be moved.
struct StoredTerms {
    std::vector<int32_t> players, members;
    std::vector<double> values;
    std::vector<CornerTerm> terms;

    StoredTerms() = default;
    StoredTerms(StoredTerms&&) = default;
    StoredTerms& operator=(StoredTerms&&) = default;

    bool empty() const { return terms.empty(); }
};

// The terms of one corner. The empty coalition has the margin before the corner, independently of the terms.
class CornerTerms {
public:
    explicit CornerTerms(size_t n_margins) : n_margins_(n_margins) {}

    void clear() {
        terms_.clear();
        forget_players();
    }

    void add(const CornerTerm& term) {
        terms_.push_back(term);
        note_all(term);
    }

    // The change of all `width` margins that variable makes by itself; `variable` and `value` must outlive this.
    void add_change(const int32_t& variable, const double* value, size_t width) {
        if (std::all_of(value, value + width, [](double v) { return v == 0.0; })) return;
        add({&variable, 1, 0, value, 0, static_cast<uint32_t>(width)});
    }

    // Numbers the players in the order of their variables; after all terms were added.
    size_t name_players() {
        std::sort(players_.begin(), players_.end());
        for (size_t i = 0; i < players_.size(); ++i) player_of_[players_[i]] = static_cast<int32_t>(i);
        return players_.size();
    }

    // Numbers the given variables in their order, whether they occur in a term or not. All others stay before the
    // corner.
    void set_players(const int32_t* variables, size_t n) {
        std::vector<char> is_out(player_of_.size(), 0);
        for (const int32_t variable : players_) is_out[static_cast<size_t>(variable)] = 1;
        forget_players();
        for (size_t i = 0; i < n; ++i) {
            note(variables[i]);
            player_of_[variables[i]] = static_cast<int32_t>(i);
            if (static_cast<size_t>(variables[i]) < is_out.size()) is_out[static_cast<size_t>(variables[i])] = 0;
        }
        if (std::any_of(is_out.begin(), is_out.end(), [](char out) { return out; })) leave_out(is_out);
    }

    // How many bytes `store` needs, about.
    size_t stored_bytes() const {
        size_t bytes = players_.size() * sizeof(int32_t) + terms_.size() * sizeof(CornerTerm);
        for (const CornerTerm& t : terms_)
            bytes += (t.n_past + t.n_before) * sizeof(int32_t) + t.width * sizeof(double);
        return bytes;
    }

    // The terms with their players; `restore` gives them back.
    StoredTerms store() const {
        StoredTerms out;
        size_t n_members = 0, n_values = 0;
        for (const CornerTerm& t : terms_) n_members += t.n_past + t.n_before, n_values += t.width;
        out.players = players_;
        out.members.reserve(n_members);
        out.values.reserve(n_values);
        out.terms = terms_;
        for (CornerTerm& t : out.terms) {
            const int32_t* const members = t.members;
            const double* const value = t.value;
            t.members = out.members.data() + out.members.size();
            t.value = out.values.data() + out.values.size();
            out.members.insert(out.members.end(), members, members + t.n_past + t.n_before);
            out.values.insert(out.values.end(), value, value + t.width);
        }
        return out;
    }
    void restore(const StoredTerms& stored) {
        forget_players();
        terms_ = stored.terms;
        for (const int32_t variable : stored.players) note(variable);
        for (size_t i = 0; i < players_.size(); ++i) player_of_[players_[i]] = static_cast<int32_t>(i);
    }

    const std::vector<int32_t>& players() const { return players_; }  // the variable of each
    const std::vector<CornerTerm>& all() const { return terms_; }
    size_t n_margins() const { return n_margins_; }
    int32_t player(int32_t variable) const { return player_of_[variable]; }

    // Sum over the terms of 2^(players before), or of 2^(players past) where those are fewer.
    double n_coefficients(bool fewer) const {
        double sum = 0.0;
        for (const CornerTerm& t : terms_) {
            const uint32_t n = fewer ? std::min(t.n_past, t.n_before) : t.n_before;
            sum += n < 63 ? static_cast<double>(uint64_t{1} << n) : std::ldexp(1.0, static_cast<int>(n));
        }
        return sum;
    }

    // Calls each(term, past, before) with the players of each term as bits.
    template <class Each>
    void for_masks(Each each) const {
        for (const CornerTerm& t : terms_) {
            uint32_t past = 0, before = 0;
            for (uint32_t i = 0; i < t.n_past; ++i) past |= bit(t.members[i]);
            for (uint32_t i = t.n_past; i < t.n_past + t.n_before; ++i) before |= bit(t.members[i]);
            each(t, past, before);
        }
    }

    // Removes the players without effect in any coalition, renumbers the rest and returns their number. Costs about as
    // much as the walk that found the terms.
    size_t drop_players_without_effect() {
        const size_t n = players_.size();
        if (n > 64) return n;
        const std::vector<double> least = least_visible();
        std::vector<char> idle = seem_idle(least);
        bool any = false;
        for (size_t i = 0; i < n; ++i) any |= idle[i] = idle[i] && is_idle(static_cast<int32_t>(i), least);
        if (!any) return n;
        std::vector<char> is_out(player_of_.size(), 0);
        for (size_t i = 0; i < n; ++i) is_out[static_cast<size_t>(players_[i])] = idle[i];
        forget_players();
        leave_out(is_out);
        for (const CornerTerm& t : terms_) note_all(t);
        return name_players();
    }

private:
    const size_t n_margins_;
    std::vector<CornerTerm> terms_;
    std::vector<int32_t> players_;
    std::vector<int32_t> player_of_;  // by variable; -1 for those that do not play
    std::vector<int32_t> members_;    // of terms that lost some

    void forget_players() {
        for (const int32_t variable : players_) player_of_[variable] = -1;
        players_.clear();
    }

    // Removes the terms that require one of some variables past the corner, and these variables from all other terms.
    void leave_out(const std::vector<char>& is_out) {
        std::vector<CornerTerm> kept;
        std::vector<int32_t> members;
        size_t room = 0;
        for (const CornerTerm& t : terms_) room += t.n_past + t.n_before;
        members.reserve(room);  // terms point into it
        const auto stays = [&](int32_t variable) { return !is_out[static_cast<size_t>(variable)]; };
        for (CornerTerm t : terms_) {
            const int32_t *const from = t.members, *const middle = from + t.n_past, *const end = middle + t.n_before;
            if (!std::all_of(from, middle, stays)) continue;
            t.members = members.data() + members.size();
            members.insert(members.end(), from, middle);
            std::copy_if(middle, end, std::back_inserter(members), stays);
            t.n_before = static_cast<uint32_t>(members.data() + members.size() - t.members) - t.n_past;
            if (t.n_past + t.n_before) kept.push_back(t);
        }
        terms_.swap(kept);
        members_.swap(members);
    }

    // For each margin what the sum of its terms rounds away: a change of one variable may already be a sum of leaves of
    // many trees that cancel.
    std::vector<double> least_visible() const {
        std::vector<double> out(n_margins_, 0.0);
        for (const CornerTerm& t : terms_)
            for (uint32_t o = 0; o < t.width; ++o)
                out[t.first + o] += 0.5 * std::numeric_limits<double>::epsilon() * std::abs(t.value[o]);
        return out;
    }

    // Players with no effect when they join first and when they join last: few players with an effect are among them.
    std::vector<char> seem_idle(const std::vector<double>& least) const {
        const size_t n = players_.size();
        std::vector<double> first(n * n_margins_, 0.0), last(n * n_margins_, 0.0), size(n * n_margins_, 0.0);
        const auto add = [&](std::vector<double>& to, int32_t variable, const CornerTerm& t, double sign) {
            const size_t at = static_cast<size_t>(player_of_[variable]) * n_margins_ + t.first;
            for (uint32_t o = 0; o < t.width; ++o) {
                to[at + o] += sign * t.value[o];
                size[at + o] += std::abs(t.value[o]);
            }
        };
        for (const CornerTerm& t : terms_) {
            const int32_t *const before = t.members + t.n_past, *const end = before + t.n_before;
            if (t.n_past == 1) add(first, t.members[0], t, 1.0);
            if (t.n_before == 1) add(last, *before, t, -1.0);
            if (t.n_past == 0)
                for (const int32_t* j = before; j != end; ++j) add(first, *j, t, -1.0);
            if (t.n_before == 0)
                for (const int32_t* j = t.members; j != before; ++j) add(last, *j, t, 1.0);
        }
        std::vector<char> idle(n, 1);
        for (size_t c = 0; c < first.size(); ++c)
            if (std::max(std::abs(first[c]), std::abs(last[c])) >
                std::max(TERM_ROUNDING * size[c], least[c % n_margins_]))
                idle[c / n_margins_] = 0;
        return idle;
    }

    // Whether all Moebius coefficients of coalitions with the player cancel, up to rounding.
    bool is_idle(int32_t player, const std::vector<double>& least) const {
        struct Coefficient {
            uint64_t coalition;
            uint32_t margin;
            double value;
        };
        std::vector<Coefficient> all;
        for (const CornerTerm& t : terms_) {
            uint64_t past = 0, before = 0;
            for (uint32_t i = 0; i < t.n_past; ++i) past |= uint64_t{1} << player_of_[t.members[i]];
            for (uint32_t i = t.n_past; i < t.n_past + t.n_before; ++i)
                before |= uint64_t{1} << player_of_[t.members[i]];
            const uint64_t me = uint64_t{1} << player;
            if (!((past | before) & me)) continue;
            if (all.size() + (static_cast<size_t>(t.width) << std::min(t.n_before, 20u)) > COMPARED_COEFFICIENTS)
                return false;
            uint64_t subset = 0;
            do {  // all subsets of `before`
                bool odd = false;
                for (uint64_t rest = subset; rest; rest &= rest - 1) odd = !odd;
                if ((past | subset) & me)
                    for (uint32_t o = 0; o < t.width; ++o)
                        all.push_back({past | subset, t.first + o, odd ? -t.value[o] : t.value[o]});
                subset = (subset - before) & before;
            } while (subset);
        }
        const auto key = [](const Coefficient& c) { return std::make_pair(c.coalition, c.margin); };
        std::stable_sort(all.begin(), all.end(),
                         [&](const Coefficient& a, const Coefficient& b) { return key(a) < key(b); });
        for (size_t begin = 0, end; begin < all.size(); begin = end) {
            double sum = 0.0, size = 0.0;
            for (end = begin; end < all.size() && key(all[end]) == key(all[begin]); ++end)
                sum += all[end].value, size += std::abs(all[end].value);
            if (std::abs(sum) > std::max(TERM_ROUNDING * size, least[all[begin].margin])) return false;
        }
        return true;
    }

    void note_all(const CornerTerm& term) {
        const int32_t* const player_of = player_of_.data();
        const size_t known = player_of_.size();
        for (uint32_t i = 0; i < term.n_past + term.n_before; ++i) {
            const auto variable = static_cast<size_t>(term.members[i]);
            if (variable >= known || player_of[variable] < 0) return note_from(term, i);
        }
    }
    void note_from(const CornerTerm& term, uint32_t i) {  // rarely: most terms have players that others had before
        for (; i < term.n_past + term.n_before; ++i) note(term.members[i]);
    }

    void note(int32_t variable) {
        if (player_of_.size() <= static_cast<size_t>(variable))
            player_of_.resize(static_cast<size_t>(variable) + 1, -1);
        if (player_of_[variable] < 0) player_of_[variable] = 0, players_.push_back(variable);
    }
    uint32_t bit(int32_t variable) const { return uint32_t{1} << player_of_[variable]; }
};

}  // namespace gigrad
