// A head over one line, integrated by difference quotients: the methods of HeadIntegral for it.
#pragma once

#include "smooth/integral.hpp"

namespace gigrad {

// A head over one line: the credit of every column is proportional to its part of the line's change, whatever the
// head is in between, even with kinks. The difference quotient is exact, unless it is a small difference of large
// numbers.
inline void HeadIntegral::run_along_line(size_t begin, size_t end, SharedJoints& shared) {
    list_.clear(), first_.clear(), last_.clear(), from_.clear(), to_.clear();  // of doubtful segments
    const auto apart = [&](size_t p) {
        return view_.left[p] != view_.left[p - 1] + 1 || view_.low[p] != view_.high[p - 1];
    };
    Stretches some;
    const auto start = [&](double line, double time, int64_t corner) {
        some.line[some.n] = line, some.time[some.n] = time, some.corner[some.n] = corner;
    };
    double fastest = 0.0;  // on the leg
    const auto add = [&](size_t p, int64_t state, bool gap, double line, double time, int64_t corner) {
        some.panel[some.n] = p, some.state[some.n] = state, some.apart[some.n] = gap, some.fastest[some.n] = fastest;
        ++some.n;
        start(line, time, corner);
        if (some.n < some.panel.size()) return;
        along_line(some, shared);
        some.n = 0;
        start(line, time, corner);
    };
    for (size_t p = begin; p < end; ++p) {
        const double *from = view_.line_rows + view_.left[p], low = view_.low[p], high = view_.high[p];
        const double piece = view_.piece_low[p], rate = (from[1] - from[0]) / view_.piece_length[p];
        const auto line = [&](double time) { return from[0] + (time - piece) * rate; };
        if (p == begin || apart(p)) {
            p == begin ? start(line(low), low, -1) : add(p, view_.state[p], true, line(low), low, -1);
            fastest = std::max(std::fabs(rate), view_.part);
            for (size_t q = p + 1; q < end && !apart(q); ++q) {
                const double* next = view_.line_rows + view_.left[q];
                fastest = std::max(fastest, std::fabs(next[1] - next[0]) / view_.piece_length[q]);
            }
        }
        for (int64_t c = view_.begin[p]; c < view_.end[p]; ++c) {
            const double time = std::min(std::max(view_.corner_time[c], low), high);
            add(p, view_.state[p] + (c - view_.begin[p]), false, line(time), time, c);
        }
        const bool whole = high == piece + view_.piece_length[p];
        add(p, view_.state[p] + (view_.end[p] - view_.begin[p]), false, whole ? from[1] : line(high), high, -1);
    }
    if (some.n > 0) along_line(some, shared);
    std::vector<size_t> doubtful(list_.size());
    for (size_t at = 0; at < doubtful.size(); ++at) doubtful[at] = at;
    for (size_t at = 0; at < doubtful.size(); at += POINTS / 2)
        add_slopes(&doubtful[at], std::min(POINTS / 2, doubtful.size() - at));
}

// The difference quotients of n segments, and their rounding errors. Where the line is slow, contributions of columns
// cancel, each as fast as `fastest`: about the line's largest speed, where the largest contribution is not known.
// Rounding errors of credits are larger by the same factor.
GIGRAD_WIDE inline void chords(const double* __restrict from, const double* __restrict to,
                               const double* __restrict first, const double* __restrict last,
                               const double* __restrict length, const double* __restrict fastest, size_t n,
                               double* __restrict chord, double* __restrict noise) {
    for (size_t i = 0; i < n; ++i) {
        const double way = to[i] - from[i], a = std::fabs(from[i]), b = std::fabs(to[i]), size = a < b ? b : a;
        const double ratio = fastest[i] * length[i] / std::fabs(way), share = ratio > 1.0 ? ratio : 1.0;
        chord[i] = (last[i] - first[i]) / way;
        noise[i] = 0.25 * ROUNDING * share * (std::fabs(first[i]) + std::fabs(last[i]) + std::fabs(chord[i]) * size);
    }
}

// Adds stretches by difference quotients, whose rounding error is counted as error; those for which it is too large go to
// the list of doubtful segments.
inline void HeadIntegral::along_line(const Stretches& some, SharedJoints& shared) {
    const size_t n = some.n, room = some.panel.size();
    points_.forward_along_line(some.line.data(), some.panel.data(), some.state.data(), n);
    chord_.resize(k_ * room), noise_.resize(k_ * room);
    std::array<double, POINTS / 2> length;
    std::array<bool, POINTS / 2> good;
    for (size_t i = 0; i < n; ++i) length[i] = some.time[i + 1] - some.time[i], good[i] = !some.apart[i];
    const auto score = [&](size_t o) { return points_.machine().value(program_.output + o); };
    for (size_t o = 0; o < k_; ++o) {
        const double *first = score(o), *last = first + n, *noise = &noise_[o * room];
        chords(some.line.data(), some.line.data() + 1, first, last, length.data(), some.fastest.data(), n,
               &chord_[o * room], &noise_[o * room]);
        for (size_t i = 0; i < n; ++i) {
            if (some.apart[i]) continue;
            const size_t at = some.panel[i] * k_ + o;
            out_.tallest[at] = std::max(out_.tallest[at], std::max(std::fabs(first[i]), std::fabs(last[i])));
            if (some.corner[i] >= 0) out_.after[static_cast<size_t>(some.corner[i]) * k_ + o] = first[i];
            if (some.corner[i + 1] >= 0) out_.before[static_cast<size_t>(some.corner[i + 1]) * k_ + o] = last[i];
            good[i] = good[i] && noise[i] <= SEEN_NOISE * view_.allowed[at] * std::max(length[i], 1.0 / 4096.0);
        }
    }
    for (size_t i = 0; i < n; ++i) {
        if (some.apart[i]) continue;
        const int64_t corner = some.corner[i + 1];
        if (corner >= 0 && place_[corner] >= 0) share(corner, some.panel[i], &some.line[i + 1], shared);
        for (size_t o = 0; o < k_ && good[i]; ++o) {
            out_.lines[some.panel[i] * k_ + o] += chord_[o * room + i] * length[i];
            out_.lost[some.panel[i] * k_ + o] += noise_[o * room + i];
        }
        if (good[i]) continue;
        list_.push_back({some.panel[i], some.state[i], some.time[i], some.time[i + 1], some.corner[i], corner});
        from_.push_back(some.line[i]), to_.push_back(some.line[i + 1]);
        for (size_t o = 0; o < k_; ++o) first_.push_back(score(o)[i]), last_.push_back(score(o)[n + i]);
    }
}

// Adds n segments whose lines may hardly move: by the mean of two slopes, where it agrees with the difference quotient up
// to rounding. What they leave of the score's change bounds their error; it is rounding where the line moves by rounding
// alone, and there the two differ by as much as they may be off.
inline void HeadIntegral::add_slopes(const size_t* some, size_t n) {
    ask(some, n, rules_[1]);
    for (size_t i = 0; i < n; ++i)
        for (size_t o = 0; o < k_; ++o) {
            const size_t at = some[i];
            const double way = to_[at] - from_[at], rise = last_[at * k_ + o] - first_[at * k_ + o];
            const double *two = &slopes_[o * POINTS + 2 * i], slope = 0.5 * (two[0] + two[1]), chord = rise / way;
            const double rest = std::fabs(rise - way * slope),
                         size = std::max(std::fabs(from_[at]), std::fabs(to_[at]));
            const bool better = rest > ROUNDING * size_of(at, 2 * i, 1, o) && std::isfinite(chord);
            const bool still = std::fabs(way) <= ROUNDING * size;
            out_.lines[list_[at].panel * k_ + o] += (better ? chord : slope) * list_[at].length();
            if (!better) out_.lost[list_[at].panel * k_ + o] += still ? std::fabs(way * (two[1] - two[0])) : rest;
        }
}

}  // namespace gigrad
