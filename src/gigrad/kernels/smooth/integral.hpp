// The head integrated over the segments of panels: moments of the score's derivatives with respect to the head's
// inputs, and the score on both sides of every corner. The change of the score over a segment is known from its ends,
// so the error of its quadrature is known too: segments with too large an error get more nodes, then are halved.
#pragma once

#include "smooth/first_segments.hpp"

namespace gigrad {

constexpr size_t SIZES = 4;                                // rules with 1, 2, 4 and 8 nodes
constexpr int ROUNDS = 40;                                 // how often segments are halved
constexpr size_t MOST_SEGMENTS = 16;                       // times the first number of them
constexpr double ROUNDING = 16.0 * 2.220446049250313e-16;  // errors below this share of their terms are rounding
constexpr double SEEN_NOISE = 2.5e-4;  // rounding errors above this share of the allowed error are avoided
constexpr size_t TASK = 512;           // segments that are processed together, about

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
        const size_t most = MOST_SEGMENTS * (open.size() + (end - begin));
        for (int round = 0; round < ROUNDS && !open.empty(); ++round) {
            const bool last = round == ROUNDS - 1 || open.size() > most;
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

    void write_corners(SharedJoints& shared) const {
        for (size_t i = 0; i < list_.size(); ++i)
            write_corners(list_[i], &first_[i * k_], &last_[i * k_], &to_[i * joints_], shared);
    }

    // The score at both ends of a segment, and the joints at its upper one, for the corners there.
    void write_corners(const Segment& s, const double* first, const double* last, const double* to,
                       SharedJoints& shared) const {
        if (s.left >= 0) std::copy_n(first, k_, out_.after + static_cast<size_t>(s.left) * k_);
        if (s.right < 0) return;
        std::copy_n(last, k_, out_.before + static_cast<size_t>(s.right) * k_);
        if (place_[s.right] < 0) return;
        shared.corner.push_back(s.right);
        shared.panel.push_back(static_cast<int64_t>(s.panel));
        shared.joints.insert(shared.joints.end(), to, to + joints_);
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

    // A head over one line: the credit of every column is proportional to its part of the line's change, whatever the
    // head is in between, even with kinks. The difference quotient is exact, unless it is a small difference of large
    // numbers.
    void run_along_line(size_t begin, size_t end, SharedJoints& shared) {
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
    void along_line(const Segment* some, size_t n, double fastest, SharedJoints& shared) {
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
    bool add_chords(const Segment& s, double from, double to, const double* first, const double* last, double fastest) {
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
    void add_slopes(const size_t* some, size_t n) {
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

    // Whether the error of a segment is small enough; it is then recorded. If not, the next rule is to be tried.
    // `point` is its first point of the last run.
    bool accept(size_t at, size_t point, size_t number, const std::vector<double>& rest,
                const std::vector<double>& wander, bool final) {
        const Segment& s = list_[at];
        const double length = s.length();
        // whether the derivatives at both ends are one-sided limits from inside, and may differ from those at nodes
        const bool ends = !steady_ && !s.whole && !s.low_kink && !s.high_kink;
        if (ends) miss(at, point, number);
        bool bad = false;
        for (size_t o = 0; o < k_; ++o) {
            const double limit = 0.25 * view_.allowed[s.panel * k_ + o] * std::max(length, 1.0 / 4096.0);
            double most = std::fabs(rest[o]);
            for (size_t j = 0; j < joints_ && ends; ++j)
                most = std::max(
                    most, missed_[j * k_ + o].beyond * std::fabs(to_[at * joints_ + j] - from_[at * joints_ + j]));
            if (most > limit && most > ROUNDING * size_of(at, point, number, o)) bad = true;
        }
        if (bad && length > SHORTEST && !final) {
            number_[at] = static_cast<uint8_t>(number + 1);
            return false;
        }
        const double part = length / view_.length(s.panel);
        double share = part;
        for (size_t power = 0; power < number; ++power)
            share *= share;  // to the power of the number of nodes: 1, 2, 4, 8
        for (size_t o = 0; o < k_; ++o) {
            out_.lost[s.panel * k_ + o] += std::fabs(rest[o]);
            out_.wander[(number * view_.panels + s.panel) * k_ + o] += wander[o] * share;
        }
        if (ends) add_off(s, number, share, part > 0.0 ? share / part : 1.0);
        return true;
    }

    // The change of the score does not show errors that cancel between joints, nor between columns that move a joint in
    // opposite directions. The derivatives at both ends do: the interpolation error of n nodes is about P_n(u) (a + b
    // u), with u from -1 to 1 on the segment, and further coefficients are assumed to decay at the same rate: the
    // remainder is of degree 2 n.
    struct Missed {
        double a, b, beyond;
    };

    void miss(size_t at, size_t point, size_t number) {
        const SegmentRule& rule = rules_[number];
        const size_t width = joints_ * k_;
        const double sign = rule.size == 1 ? -1.0 : 1.0;
        const double *low = &low_slope_[at * width], *high = &high_slope_[at * width];
        missed_.resize(width);
        for (size_t c = 0; c < width; ++c) {
            const double* slopes = &slopes_[c * POINTS + point];
            const double first = sign * (low[c] - row_product(rule.ends, slopes, rule.size));
            const double last = high[c] - row_product(rule.ends + rule.size, slopes, rule.size);
            Missed& m = missed_[c];
            m = {std::fabs(0.5 * (last + first)), std::fabs(0.5 * (last - first)), 0.0};
            if (number == 0) continue;
            const double here = std::max(m.a, m.b),
                         before = std::max(std::fabs(row_product(rule.ends + 2 * rule.size, slopes, rule.size)),
                                           std::fabs(row_product(rule.ends + 3 * rule.size, slopes, rule.size)));
            const double rate = here < before ? here / before : 1.0;
            m.beyond = 0.5 * here * std::pow(rate, rule.size == 2 ? 2.0 : 0.5 * static_cast<double>(rule.size));
        }
    }

    // In the product with a column's part of a joint's speed, `a` couples to degree n, and `b` to degrees from n - 1
    // on, which on a segment are scaled by its share of the panel to that power. A constant part couples only to the
    // remainder.
    void add_off(const Segment& s, size_t number, double share, double less) {
        const size_t width = joints_ * k_;
        const double n = static_cast<double>(rules_[number].size);
        const double even = s.length() * share / (2.0 * n + 1.0),
                     odd = s.length() * less * n / ((2.0 * n + 1.0) * (2.0 * n - 1.0));
        double* off = out_.off + (number * view_.panels + s.panel) * width;
        double* off_even = off + SIZES * view_.panels * width;
        double* beyond = out_.off + s.panel * width;
        for (size_t c = 0; c < width; ++c) {
            off[c] += odd * missed_[c].b;
            off_even[c] += even * missed_[c].a;
            beyond[c] += s.length() * missed_[c].beyond;
        }
    }

    // The size of the numbers whose small difference is the error of a segment.
    double size_of(size_t at, size_t point, size_t number, size_t o) const {
        double out = std::fabs(first_[at * k_ + o]) + std::fabs(last_[at * k_ + o]);
        for (size_t j = 0; j < joints_; ++j) {
            double steepest = 0.0;
            for (size_t q = 0; q < rules_[number].size; ++q)
                steepest = std::max(steepest, std::fabs(slopes_[(j * k_ + o) * POINTS + point + q]));
            out += std::max(std::fabs(from_[at * joints_ + j]), std::fabs(to_[at * joints_ + j])) * steepest;
        }
        return out;
    }

    // The variation of the derivatives with respect to curves: within segments, and from one to the next.
    void add_sway() {
        const size_t columns = view_.curves * k_;
        for (size_t i = 0; i < list_.size(); ++i) {
            const Segment& s = list_[i];
            const double middle = 0.5 * (view_.low[s.panel] + view_.high[s.panel]);
            const double u = (s.low - middle) / std::max(0.5 * view_.length(s.panel), 1e-300);
            // the mean square of a Legendre polynomial of high degree is about this
            const double height = std::min(
                1.0, 0.64 / ((static_cast<double>(view_.order) + 0.5) * std::sqrt(std::max(1.0 - u * u, 1e-12))));
            for (size_t c = 0; c < columns; ++c) {
                const double within = end_slope_[i * columns + c] - begin_slope_[i * columns + c];
                double square = within * within;
                if (i > 0 && list_[i - 1].panel == s.panel) {
                    const double between = begin_slope_[i * columns + c] - end_slope_[(i - 1) * columns + c];
                    square += between * between;
                }
                out_.sway[s.panel * columns + c] += square * height;
            }
        }
    }

    std::vector<double> integrals_, change_;  // (POINTS,), (C, k, POINTS)
    std::vector<Missed> missed_;              // (joints, k)
};

}  // namespace gigrad
