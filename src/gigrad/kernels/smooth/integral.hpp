// The head integrated over the segments of panels: moments of the score's derivatives with respect to the head's
// inputs, and the score on both sides of every corner. The change of the score over a segment is known from its ends,
// so the error of its quadrature is known too: segments with too large an error get more nodes, then are halved.
#pragma once

#include "smooth/first_segments.hpp"

namespace gigrad {

// A Gauss rule on a segment, and the interpolation from its nodes to those of a finer one, which integrates the product
// with the panel's Legendre polynomials exactly.
struct SegmentRule {
    size_t size = 0, finer = 0;
    const double *nodes = nullptr, *finer_nodes = nullptr, *finer_weights = nullptr;
    const double* refine = nullptr;  // (finer, size) values at the finer nodes from those at the nodes
    const double* up_to = nullptr;   // (size, finer) integrals up to the nodes from the terms of the finer nodes
    const double* ends =
        nullptr;  // (4, size) values at both ends, and the last two coefficients, from those at the nodes
};

// The moments for the continuous credit, as in the engine's Moments; all start at zero.
struct HeadMoments {
    double *curves, *lines;        // (panels, order + 2, C, k), (panels, L, k)
    double *lost, *wander, *sway;  // (panels, k), (SIZES, panels, k), (panels, C, k)
    double* off;                   // (2 SIZES, panels, joints, k) errors of interpolated derivatives, for the
                                   // degrees n - 1 and above of what they are multiplied by, then for n and above
    double* tallest;               // (panels, k) the largest |score|
    uint8_t* unsure;               // (panels,)
    double *before, *after;        // (corners, k) the score on either side of corners
};

// The joints at corners of several players.
struct SharedJoints {
    std::vector<int64_t> corner, panel;
    std::vector<double> joints;  // (n, joints)
};

// One thread's work on some panels at a time.
class HeadIntegral {
public:
    HeadIntegral(const Program& program, const SeriesTable& table, const PanelsView& view,
                 const std::array<SegmentRule, SIZES>& rules, const std::array<double, SIZES - 1>& limits,
                 const int64_t* place, const HeadMoments& out)
        : program_(program),
          view_(view),
          rules_(rules),
          limits_(limits),
          place_(place),
          out_(out),
          points_(program, table, view),
          settler_(program, view, points_),
          k_(program.outputs),
          joints_(program.joints),
          degrees_(view.order + 2),
          one_line_(view.curves == 0 && program.joints == 1),
          steady_(std::isinf(limits[0])) {}

    // Adds the moments of the panels begin .. end-1.
    void run(size_t begin, size_t end, SharedJoints& shared) {
        if (one_line_) return run_along_line(begin, end, shared);
        std::vector<Segment> open = first_segments(view_, settler_, begin, end, out_.unsure);
        const size_t most = SEGMENT_GROWTH * (open.size() + (end - begin));
        for (int round = 0; round < SEGMENT_HALVINGS && !open.empty(); ++round) {
            const bool last = round == SEGMENT_HALVINGS - 1 || open.size() > most;
            settle(std::move(open));
            if (round == 0) write_corners(shared);
            quadrature(last);
            open = halves();
        }
    }

private:
    const Program& program_;
    const PanelsView& view_;
    const std::array<SegmentRule, SIZES>& rules_;
    const std::array<double, SIZES - 1>& limits_;
    const int64_t* place_;
    const HeadMoments& out_;
    HeadPoints points_;
    Settler settler_;
    const size_t k_, joints_, degrees_;
    const bool one_line_;
    const bool steady_;  // whether derivatives are constant between kinks: one node suffices for any length

    // The segments without kinks of a round, and the data of each.
    std::vector<Segment> list_;
    std::vector<double> first_, last_;             // (n, k) the score at both ends
    std::vector<double> from_, to_;                // (n, joints) the joints at both ends
    std::vector<double> low_slope_, high_slope_;   // (n, joints, k) derivatives at both ends
    std::vector<double> begin_slope_, end_slope_;  // (n, C, k) derivatives at the first and the last node
    std::vector<uint8_t> number_;                  // (n,) the rule in use; SIZES: none was enough

    // Derivatives of the score at points of the last run: (joints, k, POINTS), and the score, (k, POINTS).
    std::vector<double> slopes_, scores_, inside_;

    // ------------------------------------------------------------ segments

    // Fills the list with the given segments, cut at every kink of the head, and the score at their ends.
    void settle(std::vector<Segment> open) {
        list_.clear(), first_.clear(), last_.clear(), from_.clear(), to_.clear(), low_slope_.clear(),
            high_slope_.clear();
        while (!open.empty()) {
            std::vector<Passing> found;
            for (size_t begin = 0; begin < open.size(); begin += POINTS / 2) settle_some(open, begin, found);
            if (found.empty()) break;
            settler_.solve(open, found);
            std::vector<Segment> again;
            for (size_t i = 0; i < found.size();) {
                const size_t segment = found[i].segment;
                std::vector<double> times;
                for (; i < found.size() && found[i].segment == segment; ++i) {
                    // a kink at an edge is ignored; by rounding, a steep function may seem to pass it there
                    const bool inside = found[i].root > open[segment].low && found[i].root < open[segment].high;
                    if (inside && (times.empty() || found[i].root > times.back())) times.push_back(found[i].root);
                }
                open[segment].whole = times.empty();
                cut_segment(open[segment], times, again, true);
            }
            open = std::move(again);
        }
        number_.resize(list_.size());
        for (size_t i = 0; i < list_.size(); ++i)
            number_[i] = static_cast<uint8_t>(std::lower_bound(limits_.begin(), limits_.end(), list_[i].length()) -
                                              limits_.begin());
    }

    void settle_some(std::vector<Segment>& open, size_t begin, std::vector<Passing>& found) {
        const size_t n = std::min(POINTS / 2, open.size() - begin), had = found.size();
        for (size_t i = 0; i < n; ++i) {
            points_.set(i, open[begin + i], open[begin + i].low);
            points_.set(n + i, open[begin + i], open[begin + i].high);
        }
        points_.load_ends(n);
        points_.forward(2 * n);
        settler_.find(&open[begin], n, begin, found);
        std::array<bool, POINTS> cut{};
        for (size_t i = had; i < found.size(); ++i) cut[found[i].segment - begin] = true;
        const size_t width = steady_ ? 0 : joints_ * k_;  // zero where slopes at the ends add no information
        slopes_.resize(joints_ * k_ * POINTS);
        if (width > 0) keep_slopes(2 * n);
        std::array<size_t, POINTS> kept;
        size_t m = 0;
        for (size_t i = 0; i < n; ++i)
            if (!cut[i]) kept[m++] = i, list_.push_back(open[begin + i]);
        const auto keep = [&](std::vector<double>& to, size_t columns, size_t shift, auto column) {
            const size_t at = to.size();
            to.resize(at + m * columns);
            for (size_t c = 0; c < columns; ++c) {
                const double* from = column(c) + shift;
                for (size_t i = 0; i < m; ++i) to[at + i * columns + c] = from[kept[i]];
            }
        };
        const auto score = [&](size_t o) { return points_.machine().value(program_.output + o); };
        const auto joint = [&](size_t j) { return points_.machine().value(j); };
        const auto slope = [&](size_t c) { return &slopes_[c * POINTS]; };
        keep(first_, k_, 0, score), keep(last_, k_, n, score);
        keep(from_, joints_, 0, joint), keep(to_, joints_, n, joint);
        keep(low_slope_, width, 0, slope), keep(high_slope_, width, n, slope);
        for (size_t i = 0; i < m; ++i)
            for (size_t o = 0; o < k_; ++o) {
                double& tall = out_.tallest[open[begin + kept[i]].panel * k_ + o];
                tall = std::max(tall, std::max(std::fabs(score(o)[kept[i]]), std::fabs(score(o)[n + kept[i]])));
            }
    }

    // Derivatives of all outputs by the joints at the m points of the last run.
    void keep_slopes(size_t m) {
        for (size_t o = 0; o < k_; ++o) {
            points_.backward(o, m);
            for (size_t j = 0; j < joints_; ++j)
                std::copy_n(points_.machine().back(j), m, &slopes_[(j * k_ + o) * POINTS]);
        }
    }

    // The score at both ends of segments, and the joints at their upper ones, for the corners there.
    void write_corners(SharedJoints& shared) const {
        for (size_t i = 0; i < list_.size(); ++i) {
            const Segment& s = list_[i];
            if (s.left >= 0) std::copy_n(&first_[i * k_], k_, out_.after + static_cast<size_t>(s.left) * k_);
            if (s.right < 0) continue;
            std::copy_n(&last_[i * k_], k_, out_.before + static_cast<size_t>(s.right) * k_);
            if (place_[s.right] >= 0) share(s.right, s.panel, &to_[i * joints_], shared);
        }
    }

    void share(int64_t corner, size_t panel, const double* joints, SharedJoints& shared) const {
        shared.corner.push_back(corner);
        shared.panel.push_back(static_cast<int64_t>(panel));
        shared.joints.insert(shared.joints.end(), joints, joints + joints_);
    }

    std::vector<Segment> halves() const {
        std::vector<Segment> out;
        for (size_t i = 0; i < list_.size(); ++i)
            if (number_[i] == SIZES) cut_segment(list_[i], {0.5 * (list_[i].low + list_[i].high)}, out);
        return out;
    }

    // ------------------------------------------------------------ quadrature

    void quadrature(bool last) {
        begin_slope_.assign(list_.size() * view_.curves * k_, 0.0);
        end_slope_ = begin_slope_;
        std::vector<size_t> some;
        for (size_t number = 0; number < SIZES; ++number) {
            some.clear();
            for (size_t i = 0; i < list_.size(); ++i)
                if (number_[i] == number) some.push_back(i);
            const size_t step =
                POINTS / std::max<size_t>(rules_[number].size, 2);  // a segment of one node has two edges
            for (size_t begin = 0; begin < some.size(); begin += step) {
                const size_t n = std::min(step, some.size() - begin);
                ask(&some[begin], n, rules_[number]);
                number == 0 ? steady(&some[begin], n) : bent(&some[begin], n, number, last && number == SIZES - 1);
            }
        }
        if (view_.curves > 0) add_sway();
    }

    // The score and its derivatives at the nodes of a rule on n segments; node q of segment i is point i * size + q.
    void ask(const size_t* some, size_t n, const SegmentRule& rule) {
        const size_t m = n * rule.size;
        for (size_t i = 0; i < n; ++i) {
            const Segment& s = list_[some[i]];
            const double half = 0.5 * s.length();
            for (size_t q = 0; q < rule.size; ++q)
                points_.set(i * rule.size + q, s, (s.low + half) + half * rule.nodes[q]);
        }
        points_.load(m);
        points_.forward(m);
        slopes_.resize(joints_ * k_ * POINTS);
        scores_.resize(k_ * POINTS);
        inside_.resize(joints_ * POINTS);
        for (size_t j = 0; j < joints_; ++j) std::copy_n(points_.machine().value(j), m, &inside_[j * POINTS]);
        for (size_t o = 0; o < k_; ++o)
            std::copy_n(points_.machine().value(program_.output + o), m, &scores_[o * POINTS]);
        keep_slopes(m);
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < view_.curves * k_; ++c) {
                begin_slope_[some[i] * view_.curves * k_ + c] = slopes_[c * POINTS + i * rule.size];
                end_slope_[some[i] * view_.curves * k_ + c] = slopes_[c * POINTS + i * rule.size + rule.size - 1];
            }
    }

    // ------------------------------------------------------------ a head over one line (integral_line.hpp)

    // Points of a line in order of time, and the stretches between neighbours.
    struct Stretches {
        size_t n = 0;
        std::array<double, POINTS / 2 + 1> line, time;
        std::array<int64_t, POINTS / 2 + 1> corner;  // -1 for none
        std::array<size_t, POINTS / 2> panel;
        std::array<int64_t, POINTS / 2> state;
        std::array<bool, POINTS / 2> apart;      // between two points that do not follow each other
        std::array<double, POINTS / 2> fastest;  // the line's largest speed on the leg
    };

    void run_along_line(size_t begin, size_t end, SharedJoints& shared);
    void along_line(const Stretches& some, SharedJoints& shared);
    void add_slopes(const size_t* some, size_t n);

    std::vector<double> chord_, noise_;  // (k, POINTS / 2)

    // ------------------------------------------------------------ moments

    // Short segments: derivatives are taken as constant, the polynomials are integrated exactly.
    void steady(const size_t* some, size_t n) {
        std::array<bool, POINTS> good{};
        std::vector<double> rest(k_), wander(k_);
        for (size_t i = 0; i < n; ++i) {
            const double *first = &first_[some[i] * k_], *last = &last_[some[i] * k_];
            const double *from = &from_[some[i] * joints_], *to = &to_[some[i] * joints_];
            for (size_t o = 0; o < k_; ++o) {
                rest[o] = last[o] - first[o];
                wander[o] = scores_[o * POINTS + i] - first[o];
                for (size_t j = 0; j < joints_; ++j) {
                    const double slope = slopes_[(j * k_ + o) * POINTS + i];
                    rest[o] -= (to[j] - from[j]) * slope;
                    wander[o] -= (inside_[j * POINTS + i] - from[j]) * slope;
                }
                wander[o] = std::fabs(wander[o]);
            }
            good[i] = accept(some[i], i, 0, rest, wander, false);
        }
        for (size_t i = 0; i < n; ++i)
            for (size_t c = 0; c < joints_ * k_; ++c) slopes_[c * POINTS + i] = good[i] ? slopes_[c * POINTS + i] : 0.0;
        add_steady(some, n);
    }

    // Adds derivatives that are constant on segments, one point each.
    void add_steady(const size_t* some, size_t n) {
        for (size_t i = 0; i < n && view_.lines > 0; ++i) {
            double* to = out_.lines + list_[some[i]].panel * view_.lines * k_;
            for (size_t w = 0; w < view_.lines * k_; ++w)
                to[w] += slopes_[(view_.curves * k_ + w) * POINTS + i] * list_[some[i]].length();
        }
        if (view_.curves == 0) return;
        // Summation by parts: an edge between two segments has the difference of their derivatives as weight, times the
        // integral of P_d up to there, (P_(d+1) - P_(d-1)) / (2 d + 1).
        const size_t columns = view_.curves * k_;
        change_.assign(columns * POINTS, 0.0);
        std::array<size_t, POINTS> panel;
        size_t edges = 0;
        for (size_t i = 0; i < n; ++i) {
            const Segment& s = list_[some[i]];
            const bool follows = i > 0 && list_[some[i - 1]].panel == s.panel && list_[some[i - 1]].high == s.low;
            if (!follows) points_.set(edges, s, s.low), panel[edges++] = s.panel;
            points_.set(edges, s, s.high), panel[edges++] = s.panel;
            for (size_t c = 0; c < columns; ++c) {
                change_[c * POINTS + edges - 2] -= slopes_[c * POINTS + i];
                change_[c * POINTS + edges - 1] += slopes_[c * POINTS + i];
            }
        }
        const double* basis = points_.legendre(edges, degrees_ + 1);
        integrals_.resize(POINTS);
        for (size_t begin = 0, end; begin < edges; begin = end) {
            for (end = begin + 1; end < edges && panel[end] == panel[begin];) ++end;
            const double half = 0.5 * view_.length(panel[begin]);
            double* to = out_.curves + panel[begin] * degrees_ * columns;
            for (size_t d = 0; d < degrees_; ++d) {
                std::fill_n(integrals_.begin(), end - begin, 0.0);
                add_scaled(half / static_cast<double>(2 * d + 1), basis + (d + 1) * POINTS + begin, end - begin,
                           integrals_.data());
                if (d > 0)
                    add_scaled(-half / static_cast<double>(2 * d + 1), basis + (d - 1) * POINTS + begin, end - begin,
                               integrals_.data());
                for (size_t c = 0; c < columns; ++c)
                    to[d * columns + c] += row_product(integrals_.data(), &change_[c * POINTS + begin], end - begin);
            }
        }
    }

    // Longer segments: derivatives are interpolated from the nodes, the product is integrated exactly.
    void bent(const size_t* some, size_t n, size_t number, bool final) {
        const SegmentRule& rule = rules_[number];
        std::vector<double> rest(k_), wander(k_), mass(joints_ * k_ * rule.finer), gained(rule.finer * k_),
            speed(joints_ * POINTS);
        for (size_t i = 0; i < n; ++i) {
            const Segment& s = list_[some[i]];
            const double half = 0.5 * s.length();
            for (size_t q = 0; q < rule.finer; ++q) points_.set(q, s, (s.low + half) + half * rule.finer_nodes[q]);
            points_.speeds(rule.finer, speed.data());
            std::fill(gained.begin(), gained.end(), 0.0);
            for (size_t c = 0; c < joints_ * k_; ++c)
                for (size_t q = 0; q < rule.finer; ++q) {
                    const double at =
                        row_product(rule.refine + q * rule.size, &slopes_[c * POINTS + i * rule.size], rule.size);
                    mass[c * rule.finer + q] = at * half * rule.finer_weights[q];
                    gained[q * k_ + c % k_] += speed[(c / k_) * POINTS + q] * mass[c * rule.finer + q];
                }
            for (size_t o = 0; o < k_; ++o) {
                const double first = first_[some[i] * k_ + o];
                rest[o] = last_[some[i] * k_ + o] - first;
                wander[o] = 0.0;
                for (size_t q = 0; q < rule.finer; ++q) rest[o] -= gained[q * k_ + o];
                for (size_t q = 0; q < rule.size; ++q) {
                    double off = scores_[o * POINTS + i * rule.size + q] - first;
                    for (size_t r = 0; r < rule.finer; ++r) off -= rule.up_to[q * rule.finer + r] * gained[r * k_ + o];
                    wander[o] = std::max(wander[o], std::fabs(off));
                }
            }
            if (accept(some[i], i * rule.size, number, rest, wander, final)) add_bent(s, rule.finer, mass);
        }
    }

    // Adds masses of derivatives, (joints, k, n), at the n points that were set last, all on one segment.
    void add_bent(const Segment& s, size_t n, const std::vector<double>& mass) {
        const size_t columns = view_.curves * k_;
        double* lines = out_.lines + s.panel * view_.lines * k_;
        for (size_t w = 0; w < view_.lines * k_; ++w)
            for (size_t q = 0; q < n; ++q) lines[w] += mass[(columns + w) * n + q];
        if (columns == 0) return;
        const double* basis = points_.legendre(n, degrees_);
        double* to = out_.curves + s.panel * degrees_ * columns;
        for (size_t d = 0; d < degrees_; ++d)
            for (size_t c = 0; c < columns; ++c)
                to[d * columns + c] += row_product(basis + d * POINTS, &mass[c * n], n);
    }

    // ------------------------------------------------------------ errors (integral_error.hpp)

    // What the interpolation of a derivative on a segment misses; see miss().
    struct Missed {
        double a, b, beyond;
    };
    bool accept(size_t at, size_t point, size_t number, const std::vector<double>& rest,
                const std::vector<double>& wander, bool final);
    void miss(size_t at, size_t point, size_t number);
    void add_off(const Segment& s, size_t number, double share, double less);
    double size_of(size_t at, size_t point, size_t number, size_t o) const;
    void add_sway();

    std::vector<double> integrals_, change_;  // (POINTS,), (C, k, POINTS)
    std::vector<Missed> missed_;              // (joints, k)
};

}  // namespace gigrad

#include "smooth/integral_error.hpp"
#include "smooth/integral_line.hpp"
