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

// Adds n consecutive segments by difference quotients; those of which they are doubtful go to the list.
inline void HeadIntegral::along_line(const Segment* some, size_t n, double fastest, SharedJoints& shared) {
    points_.load_along_line(some, n);
    points_.forward(2 * n);
    const double* joint = points_.machine().value(0);
    std::array<double, 2> pair;
    std::vector<double> many(k_ > 1 ? 2 * k_ : 0);
    double *first = k_ > 1 ? many.data() : pair.data(), *last = first + k_;
    for (size_t i = 0; i < n; ++i) {
        for (size_t o = 0; o < k_; ++o) {
            const double* score = points_.machine().value(program_.output + o);
            first[o] = score[i], last[o] = score[n + i];
            double& tall = out_.tallest[some[i].panel * k_ + o];
            tall = std::max(tall, std::max(std::fabs(first[o]), std::fabs(last[o])));
        }
        write_corners(some[i], first, last, &joint[n + i], shared);
        if (add_chords(some[i], joint[i], joint[n + i], first, last, fastest)) continue;
        list_.push_back(some[i]), from_.push_back(joint[i]), to_.push_back(joint[n + i]);
        first_.insert(first_.end(), first, first + k_), last_.insert(last_.end(), last, last + k_);
    }
}

// Adds the difference quotients of a segment, unless their rounding error is too large; it is counted as error.
// Where the line is slow, contributions of columns cancel, each about as large as the line's largest speed, and
// rounding errors are larger by the same factor.
inline bool HeadIntegral::add_chords(const Segment& s, double from, double to, const double* first, const double* last,
                                     double fastest) {
    const double way = to - from, size = std::max(std::fabs(from), std::fabs(to));
    const double share = std::max(1.0, fastest * s.length() / std::fabs(way));
    const auto noise = [&](size_t o, double chord) {
        return 0.25 * ROUNDING * share * (std::fabs(first[o]) + std::fabs(last[o]) + std::fabs(chord) * size);
    };
    for (size_t o = 0; o < k_; ++o) {
        const double chord = (last[o] - first[o]) / way;
        const double limit = SEEN_NOISE * view_.allowed[s.panel * k_ + o] * std::max(s.length(), 1.0 / 4096.0);
        if (!(noise(o, chord) <= limit)) return false;
    }
    for (size_t o = 0; o < k_; ++o) {
        const double chord = (last[o] - first[o]) / way;
        out_.lines[s.panel * k_ + o] += chord * s.length();
        out_.lost[s.panel * k_ + o] += noise(o, chord);
    }
    return true;
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
