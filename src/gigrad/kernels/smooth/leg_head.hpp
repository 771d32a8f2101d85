// Heads that read lines alone, one leg of a path at a time. Lines are exact, so that nothing has to be refined: a leg is
// integrated from kink to kink, and what is needed of it can be summed up while it is in the cache.
#pragma once

#include <limits>

#include "smooth/integral.hpp"

namespace gigrad {

// What all legs share, and where their results go to; k outputs, L lines.
struct LegHeads {
    const Program* program = nullptr;
    std::array<SegmentRule, SIZES> rules;
    std::array<double, SIZES - 1> lengths;
    size_t legs = 0;
    const int64_t *path = nullptr, *begin = nullptr, *end = nullptr;  // (legs,) of a leg; its corners
    const double* corner_time = nullptr;                              // (corners,)
    const int64_t* place = nullptr;                                   // (corners,) the row of `joints`, or -1
    const double *constants = nullptr, *allowed = nullptr;            // (states, constants), (paths, k)
    const double* parts = nullptr;  // (legs, L) how fast one column moves a line at most; negative: as fast as all
    double slowest = 0.0;           // the least speed that is assumed, as a share of its parts
    double *before = nullptr, *after = nullptr, *joints = nullptr;  // (corners, k), (corners, k), (rows, L)
    double *lost = nullptr, *moved = nullptr, *tallest = nullptr;   // (legs, k)
};

// The work of one thread.
class LegHead {
public:
    explicit LegHead(const LegHeads& all)
        : all_(all),
          k_(all.program->outputs),
          lines_(all.program->joints),
          view_(lines_alone(all)),
          integral_(*all.program, none_, view_, all.rules, all.lengths, all.place, out_) {}

    // Integrates a leg whose lines have kinks at `time` (points,), and there the values `rows` (points, L).
    void run(size_t leg, const double* time, const double* rows, size_t points) {
        fill(leg, time, rows, points - 1);
        shared_.corner.clear(), shared_.panel.clear(), shared_.joints.clear();
        integral_.run(0, points - 1, shared_);
        for (size_t i = 0; i < shared_.corner.size(); ++i)
            std::copy_n(&shared_.joints[i * lines_], lines_,
                        all_.joints + static_cast<size_t>(all_.place[shared_.corner[i]]) * lines_);
        for (size_t o = 0; o < k_; ++o) sum(leg, o);
    }

    // Integrals of the score's derivatives by the lines over the pieces of the last leg, (pieces, L, k).
    const std::vector<double>& moments() const { return moments_; }

private:
    const LegHeads& all_;
    const size_t k_, lines_;
    const SeriesTable none_;
    PanelsView view_;
    HeadMoments out_{};
    HeadIntegral integral_;
    SharedJoints shared_;
    std::vector<int64_t> first_, last_, state_, left_, row_;
    std::vector<double> length_, allowed_, moments_, lost_, wander_, off_, tallest_;
    std::vector<uint8_t> unsure_;

    static PanelsView lines_alone(const LegHeads& all) {
        PanelsView view;
        view.order = 1, view.lines = all.program->joints, view.outputs = all.program->outputs;
        view.corner_time = all.corner_time, view.constants = all.constants;
        return view;
    }

    // The pieces of a leg as panels. A corner at an edge belongs to the piece that begins there.
    void fill(size_t leg, const double* time, const double* rows, size_t pieces) {
        for (auto* list : {&first_, &last_, &state_, &left_}) list->resize(pieces);
        length_.resize(pieces), allowed_.resize(pieces * k_), row_.assign(pieces, 0);
        int64_t at = all_.begin[leg];
        const int64_t end = all_.end[leg], path = all_.path[leg];
        for (size_t p = 0; p < pieces; ++p) {
            first_[p] = at, state_[p] = at + path, left_[p] = static_cast<int64_t>(p);
            if (p + 1 == pieces) at = end;
            while (at < end && all_.corner_time[at] < time[p + 1]) ++at;
            last_[p] = at, length_[p] = time[p + 1] - time[p];
            std::copy_n(all_.allowed + static_cast<size_t>(path) * k_, k_, &allowed_[p * k_]);
        }
        view_.panels = pieces, view_.low = view_.piece_low = time, view_.high = time + 1, view_.line_rows = rows;
        view_.piece_length = length_.data(), view_.begin = first_.data(), view_.end = last_.data();
        view_.state = state_.data(), view_.left = left_.data(), view_.row = row_.data();
        view_.allowed = allowed_.data();
        view_.part = lines_ == 1 ? all_.parts[leg] : -1.0;
        moments_.assign(pieces * lines_ * k_, 0.0);
        lost_.assign(pieces * k_, 0.0), tallest_.assign(pieces * k_, 0.0), unsure_.assign(pieces, 0);
        if (lines_ > 1) wander_.assign(SIZES * pieces * k_, 0.0), off_.assign(2 * SIZES * pieces * lines_ * k_, 0.0);
        out_ = {nullptr,     moments_.data(), lost_.data(),   wander_.data(), nullptr,
                off_.data(), tallest_.data(), unsure_.data(), all_.before,    all_.after};
    }

    // The bound on the error of one column's credit, as the engine's ErrorTerms have it, the way of the score, and its
    // largest value, for one output.
    void sum(size_t leg, size_t o) {
        double lost = 0.0, moved = 0.0, tallest = 0.0;
        for (size_t p = 0; p < view_.panels; ++p) {
            double largest = 0.0, total = 0.0, off = 0.0;
            for (size_t w = 0; w < lines_; ++w) {
                const double* from = view_.line_rows + p * lines_ + w;
                const double speed = (from[lines_] - from[0]) / length_[p], part = all_.parts[leg * lines_ + w];
                const double most = part < 0.0 ? std::fabs(speed) : part, moment = moments_[(p * lines_ + w) * k_ + o];
                largest += std::fabs(moment) * most;
                total += moment * speed;
                if (lines_ > 1) off += off_[(p * lines_ + w) * k_ + o] * most;
            }
            const double least = std::numeric_limits<double>::min() + all_.slowest * largest;
            const double share = std::max(1.0, largest / std::max(std::fabs(total), least)), miss = lost_[p * k_ + o];
            lost += std::max(std::min(miss * share, miss + largest), off);
            moved += std::fabs(total);
            tallest = std::max(tallest, tallest_[p * k_ + o]);
        }
        all_.lost[leg * k_ + o] = lost, all_.moved[leg * k_ + o] = moved, all_.tallest[leg * k_ + o] = tallest;
    }
};

}  // namespace gigrad
