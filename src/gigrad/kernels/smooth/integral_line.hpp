// A head over one line, integrated by difference quotients: the methods of HeadIntegral for it.
#pragma once

#include "smooth/integral.hpp"

namespace gigrad {

// A head over one line: the credit of every column is proportional to its part of the line's change, whatever the
// head is in between, even with kinks. The difference quotient is exact, unless it is a small difference of large
// numbers.
inline void HeadIntegral::run_along_line(size_t begin, size_t end, SharedJoints& shared) {
    list_.clear(), first_.clear(), last_.clear(), from_.clear(), to_.clear();  // of doubtful segments
    double fastest = 0.0;
    for (size_t p = begin; p < end; ++p) {
        const double* from = view_.line_rows + view_.left[p];
        fastest = std::max(fastest, std::fabs(from[1] - from[0]) / view_.piece_length[p]);
    }
    std::array<Segment, POINTS / 2> some;
    size_t n = 0;
    for (size_t p = begin; p < end; ++p)
        each_segment(view_, p, [&](const Segment& s) {
            some[n++] = s;
            if (n == some.size()) along_line(some.data(), n, fastest, shared), n = 0;
        });
    along_line(some.data(), n, fastest, shared);
    std::vector<size_t> doubtful(list_.size());
    for (size_t at = 0; at < doubtful.size(); ++at) doubtful[at] = at;
    for (size_t at = 0; at < doubtful.size(); at += POINTS)
        add_slopes(&doubtful[at], std::min(POINTS, doubtful.size() - at));
}

// The difference quotients of n segments, and their rounding errors. Where the line is slow, contributions of columns
// cancel, each about as large as the line's largest speed, and rounding errors are larger by the same factor.
GIGRAD_WIDE inline void chords(const double* __restrict from, const double* __restrict to,
                               const double* __restrict first, const double* __restrict last,
                               const double* __restrict length, double fastest, size_t n, double* __restrict chord,
                               double* __restrict noise) {
    for (size_t i = 0; i < n; ++i) {
        const double way = to[i] - from[i], a = std::fabs(from[i]), b = std::fabs(to[i]), size = a < b ? b : a;
        const double ratio = fastest * length[i] / std::fabs(way), share = ratio > 1.0 ? ratio : 1.0;
        chord[i] = (last[i] - first[i]) / way;
        noise[i] = 0.25 * ROUNDING * share * (std::fabs(first[i]) + std::fabs(last[i]) + std::fabs(chord[i]) * size);
    }
}

// Adds n consecutive segments by difference quotients, whose rounding error is counted as error; those for which it is
// too large go to the list.
inline void HeadIntegral::along_line(const Segment* some, size_t n, double fastest, SharedJoints& shared) {
    points_.load_along_line(some, n);
    points_.forward(2 * n);
    const double* joint = points_.machine().value(0);
    const size_t half = POINTS / 2;
    chord_.resize(k_ * half), noise_.resize(k_ * half), low_score_.resize(n * k_), high_score_.resize(n * k_);
    std::array<double, POINTS / 2> length;
    std::array<bool, POINTS / 2> good;
    for (size_t i = 0; i < n; ++i) length[i] = some[i].length(), good[i] = true;
    for (size_t o = 0; o < k_; ++o) {
        const double* score = points_.machine().value(program_.output + o);
        chords(joint, joint + n, score, score + n, length.data(), fastest, n, &chord_[o * half], &noise_[o * half]);
        for (size_t i = 0; i < n; ++i) {
            double& tall = out_.tallest[some[i].panel * k_ + o];
            tall = std::max(tall, std::max(std::fabs(score[i]), std::fabs(score[n + i])));
            low_score_[i * k_ + o] = score[i], high_score_[i * k_ + o] = score[n + i];
            const double limit = SEEN_NOISE * view_.allowed[some[i].panel * k_ + o] * std::max(length[i], 1.0 / 4096.0);
            good[i] = good[i] && noise_[o * half + i] <= limit;
        }
    }
    for (size_t i = 0; i < n; ++i) {
        const double *first = &low_score_[i * k_], *last = &high_score_[i * k_];
        write_corners(some[i], first, last, &joint[n + i], shared);
        if (!good[i]) {
            list_.push_back(some[i]), from_.push_back(joint[i]), to_.push_back(joint[n + i]);
            first_.insert(first_.end(), first, first + k_), last_.insert(last_.end(), last, last + k_);
            continue;
        }
        for (size_t o = 0; o < k_; ++o) {
            out_.lines[some[i].panel * k_ + o] += chord_[o * half + i] * length[i];
            out_.lost[some[i].panel * k_ + o] += noise_[o * half + i];
        }
    }
}

// Adds n segments whose lines may hardly move: by the slope in the middle, where it agrees with the difference
// quotient up to rounding.
inline void HeadIntegral::add_slopes(const size_t* some, size_t n) {
    ask(some, n, rules_[0]);
    for (size_t i = 0; i < n; ++i)
        for (size_t o = 0; o < k_; ++o) {
            const size_t at = some[i];
            const double way = to_[at] - from_[at], rise = last_[at * k_ + o] - first_[at * k_ + o];
            const double slope = slopes_[o * POINTS + i], rest = rise - way * slope, chord = rise / way;
            const bool better = std::fabs(rest) > ROUNDING * size_of(at, i, 0, o) && std::isfinite(chord);
            out_.lines[list_[at].panel * k_ + o] += (better ? chord : slope) * list_[at].length();
            if (!better) out_.lost[list_[at].panel * k_ + o] += std::fabs(rest);
        }
}

}  // namespace gigrad
