// The trees' outputs for coalitions of a few strong players while the others join in an order.
#pragma once

#include <unordered_map>

#include "link/coalitions.hpp"
#include "link/corner_terms.hpp"
#include "limits.hpp"

namespace gigrad {

// The margins of coalitions of the strong players, prefix by prefix of an order of the others.
class PrefixMargins {
public:
    // `order` lists the players; the first `strong` of them are enumerated.
    void set(const CornerTerms& terms, const std::vector<int32_t>& order, size_t strong) {
        const size_t n = order.size();
        q_ = strong, w_ = n - strong, width_ = terms.n_margins(), cells_ = (size_t{1} << strong) * width_;
        std::vector<int32_t> place(n);
        for (size_t i = 0; i < n; ++i) place[order[i]] = static_cast<int32_t>(i);
        base_.assign(cells_, 0.0);
        parts_.clear();
        needs_.clear();
        weak_.clear();
        numbers_.clear();
        for (const CornerTerm& t : terms.all()) {
            Part part{0, 0, 0, 1.0, &t};
            members_.clear();
            uint32_t n_past = 0;
            for (uint32_t i = 0; i < t.n_past + t.n_before; ++i) {
                const auto at = static_cast<size_t>(place[terms.player(t.members[i])]);
                if (at < q_)
                    (i < t.n_past ? part.past : part.before) |= uint32_t{1} << at;
                else
                    members_.push_back(static_cast<uint32_t>(at - q_)), n_past += i < t.n_past;
            }
            if (members_.empty())
                add_leaf(part.past, part.before, t.value, t.width, base_.data() + t.first, width_);
            else
                add_part(part, n_past);
        }
        collect_changes();
        events_.resize(2 * needs_.size());
        begins_.assign(w_ + 3, 0);
        table_.resize(cells_);
        now_.resize(cells_);
    }

    // `rank` (weak players,): when each joins. Calls each(t, margins) for t = 0 .. w in turn, with the trees' outputs
    // for coalitions of the strong, (2^strong, margins), minus those for the empty one.
    template <class Each>
    void follow(const uint32_t* rank, Each each) {
        sort_events(rank);
        std::copy(base_.begin(), base_.end(), now_.begin());
        for (size_t t = 0; t <= w_; ++t) {
            for (uint32_t i = begins_[t]; i < begins_[t + 1]; ++i) change(events_[i] >> 1, events_[i] & 1 ? -1.0 : 1.0);
            give(t, each);
        }
    }

    // The same for none of the weak players and for all of them.
    template <class Each>
    void follow_ends(Each each) {
        std::copy(base_.begin(), base_.end(), now_.begin());
        for (size_t i = 0; i < needs_.size(); ++i)
            if (!needs_[i].n_past) change(i, 1.0);
        give(0, each);
        std::copy(base_.begin(), base_.end(), now_.begin());
        for (size_t i = 0; i < needs_.size(); ++i)
            if (!needs_[i].n_before) change(i, 1.0);
        give(w_, each);
    }

    size_t strong() const { return q_; }
    size_t weak() const { return w_; }

    // Moebius coefficients of the strong from leaves without weak players; and the trees' outputs for the empty
    // coalition, for one margin.
    const std::vector<double>& base() const { return base_; }
    double nobody() const {
        double sum = base_[0];
        for (size_t i = 0; i < needs_.size(); ++i)
            for (uint32_t c = first_change_[i]; !needs_[i].n_past && c < first_change_[i + 1]; ++c)
                if (changes_[c].cell == 0) sum += changes_[c].value;
        return sum;
    }

    // Calls each(weak players, n_past, n_before, changes) for what needs some weak players in and others out; changes(f)
    // calls f(cell, value) for all Moebius coefficients of the strong.
    template <class Each>
    void for_needs(Each each) const {
        for (size_t i = 0; i < needs_.size(); ++i)
            each(weak_.data() + needs_[i].weak, needs_[i].n_past, needs_[i].n_before, [&](auto f) {
                for (uint32_t c = first_change_[i]; c < first_change_[i + 1]; ++c)
                    f(changes_[c].cell, changes_[c].value);
            });
    }

private:
    // Weak players that must be in and out, and the change of the margins of the strong while they are: Moebius
    // coefficients.
    struct Need {
        uint32_t weak;  // where its players begin: first those past, then those before
        uint32_t n_past, n_before;
    };
    struct Change {
        uint32_t cell;
        double value;
    };
    // What a leaf gives to a need.
    struct Part {
        uint32_t need, past, before;  // the latter: strong players
        double sign;
        const CornerTerm* term;
    };
    size_t q_ = 0, w_ = 0, width_ = 1, cells_ = 1;
    std::vector<Need> needs_;
    std::vector<uint32_t> weak_, members_, chosen_;
    std::vector<Part> parts_;
    std::unordered_map<uint64_t, uint32_t> numbers_;  // of needs without players that must be out
    std::vector<Change> changes_;
    std::vector<uint32_t> first_change_, first_part_, touched_;  // (needs + 1,) for the first two
    std::vector<double> base_, now_, table_, nobody_;
    std::vector<uint32_t> events_, enters_, leaves_at_, begins_;

    // `members_` are its weak players, the first n_past of which must be in.
    void add_part(Part part, uint32_t n_past) {
        const auto n_before = static_cast<uint32_t>(members_.size()) - n_past;
        if (n_before > TAKEN_APART || w_ > 64) {
            part.need = new_need(members_, n_past);
            parts_.push_back(part);
            return;
        }
        for (uint32_t subset = 0; subset < uint32_t{1} << n_before; ++subset) {
            chosen_.assign(members_.begin(), members_.begin() + n_past);
            part.sign = 1.0;
            for (uint32_t i = 0; i < n_before; ++i)
                if (subset >> i & 1) chosen_.push_back(members_[n_past + i]), part.sign = -part.sign;
            if (chosen_.empty()) {
                add_signed(part);
                continue;
            }
            uint64_t key = 0;
            for (const uint32_t player : chosen_) key |= uint64_t{1} << player;
            const auto found = numbers_.try_emplace(key, static_cast<uint32_t>(needs_.size()));
            part.need = found.second ? new_need(chosen_, static_cast<uint32_t>(chosen_.size())) : found.first->second;
            parts_.push_back(part);
        }
    }

    uint32_t new_need(const std::vector<uint32_t>& players, uint32_t n_past) {
        needs_.push_back({static_cast<uint32_t>(weak_.size()), n_past, static_cast<uint32_t>(players.size()) - n_past});
        weak_.insert(weak_.end(), players.begin(), players.end());
        return static_cast<uint32_t>(needs_.size() - 1);
    }

    void add_signed(const Part& part) {
        const CornerTerm& t = *part.term;
        signed_.resize(t.width);
        for (uint32_t o = 0; o < t.width; ++o) signed_[o] = part.sign * t.value[o];
        add_leaf(part.past, part.before, signed_.data(), t.width, base_.data() + t.first, width_);
    }

    // Sums up the coefficients of each need.
    void collect_changes() {
        first_part_.assign(needs_.size() + 2, 0);
        for (const Part& part : parts_) ++first_part_[part.need + 2];
        for (size_t i = 2; i < first_part_.size(); ++i) first_part_[i] += first_part_[i - 1];
        by_need_.resize(parts_.size());
        for (const Part& part : parts_) by_need_[first_part_[part.need + 1]++] = &part;
        changes_.clear();
        first_change_.assign(1, 0);
        sums_.assign(cells_, 0.0);
        is_touched_.assign(cells_, 0);
        for (size_t i = 0; i < needs_.size(); ++i) {
            touched_.clear();
            for (uint32_t j = first_part_[i]; j < first_part_[i + 1]; ++j) sum_up(*by_need_[j]);
            for (const uint32_t cell : touched_) {
                if (sums_[cell] != 0.0) changes_.push_back({cell, sums_[cell]});
                sums_[cell] = 0.0, is_touched_[cell] = 0;
            }
            first_change_.push_back(static_cast<uint32_t>(changes_.size()));
        }
    }

    void sum_up(const Part& part) {
        const CornerTerm& t = *part.term;
        double sign = part.sign;
        uint32_t subset = 0;
        do {
            for (uint32_t o = 0; o < t.width; ++o) {
                const size_t cell = (part.past | subset) * width_ + t.first + o;
                if (!is_touched_[cell]) is_touched_[cell] = 1, touched_.push_back(static_cast<uint32_t>(cell));
                sums_[cell] += sign * t.value[o];
            }
            subset = (subset - part.before) & part.before;  // the next one; its size is odd or even
            sign = part.sign;
            for (uint32_t rest = subset; rest; rest &= rest - 1) sign = -sign;
        } while (subset);
    }
    std::vector<const Part*> by_need_;
    std::vector<double> sums_, signed_;
    std::vector<char> is_touched_;

    // Condition i becomes true (event 2 i) when the last of its players past has joined, and false (event 2 i + 1) when
    // the first of those before has.
    void sort_events(const uint32_t* rank) {
        const size_t n = needs_.size();
        enters_.resize(n);
        leaves_at_.resize(n);
        std::fill(begins_.begin(), begins_.end(), 0u);
        const auto never = static_cast<uint32_t>(w_ + 1);
        for (size_t i = 0; i < n; ++i) {
            const Need& need = needs_[i];
            const uint32_t* const player = weak_.data() + need.weak;
            uint32_t in = 0, out = never;
            for (uint32_t j = 0; j < need.n_past; ++j) in = std::max(in, rank[player[j]] + 1);
            for (uint32_t j = 0; j < need.n_before; ++j) out = std::min(out, rank[player[need.n_past + j]] + 1);
            if (in >= out) in = out = never;
            enters_[i] = in, leaves_at_[i] = out;
            ++begins_[in + 1], ++begins_[out + 1];
        }
        for (size_t t = 0; t + 1 < begins_.size(); ++t) begins_[t + 1] += begins_[t];
        for (size_t i = 0; i < n; ++i) {
            events_[begins_[enters_[i]]++] = static_cast<uint32_t>(2 * i);
            events_[begins_[leaves_at_[i]]++] = static_cast<uint32_t>(2 * i + 1);
        }
        for (size_t t = begins_.size() - 1; t > 0; --t) begins_[t] = begins_[t - 1];
        begins_[0] = 0;
    }

    template <class Each>
    void give(size_t t, Each& each) {
        std::copy(now_.begin(), now_.end(), table_.begin());
        if (t == 0) nobody_.assign(now_.begin(), now_.begin() + static_cast<std::ptrdiff_t>(width_));
        for (size_t o = 0; o < width_; ++o) table_[o] -= nobody_[o];
        zeta_transform(table_.data(), size_t{1} << q_, width_);
        each(t, table_.data());
    }

    void change(size_t need, double sign) {
        double* const to = now_.data();
        const Change* const end = changes_.data() + first_change_[need + 1];
        for (const Change* c = changes_.data() + first_change_[need]; c != end; ++c) to[c->cell] += sign * c->value;
    }
};

}  // namespace gigrad
