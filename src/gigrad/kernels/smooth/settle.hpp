// Segments cut wherever the head has a kink inside: the levels that the input of a step passes, and when.
#pragma once

#include "smooth/segments.hpp"
#include "limits.hpp"

namespace gigrad {

// Calls found(level) for every level of a step strictly between a and b.
template <class Found>
void passed_levels(const Step& step, double a, double b, Found found) {
    const double low = std::min(a, b), high = std::max(a, b);
    if (step.operation == Operation::knots && step.knots.x().size() > 1) {
        const std::vector<double>& x = step.knots.x();
        const double margin = LEVEL_MARGIN * std::max(-low, high);
        for (auto at = std::upper_bound(x.begin(), x.end(), low + margin); at != x.end() && *at < high - margin; ++at)
            found(*at);
    } else if (low < 0.0 && high > 0.0 && std::min(-low, high) > LEVEL_MARGIN * std::max(-low, high)) {
        found(0.0);  // the kink of a function
    }
}

// A level that an input column of a step passes on a segment.
struct Passing {
    size_t segment, step, column;
    double level, low, high, at_low, at_high, root;
    double noise;  // a value below this counts as zero
    int kept;      // which end has stayed: -1 the lower, 1 the upper
};

// Finds kinks on segments, some at a time.
class Settler {
public:
    Settler(const Program& program, const PanelsView& view, HeadPoints& points)
        : program_(program), view_(view), points_(points) {
        for (size_t s = 0; s < program.steps.size(); ++s)
            if (program.steps[s].kinked()) {
                kinked_.push_back(s);
                turn_ = turn_ || program.steps[s].turns;
            }
    }

    // Whether the input of a step with kinks may have an extremum on a segment.
    bool turn() const { return turn_; }

    // Kinks on segments i of `list`, whose two ends are points i and n + i of the last run, are added to `out`. Only
    // the first step that has a kink on a segment counts: steps above it have a kink there too. A segment with a kink
    // only at one of its ends is not cut; derivatives at that end may be those on the other side.
    void find(Segment* list, size_t n, size_t first, std::vector<Passing>& out) {
        std::array<bool, POINTS> cut{}, touched{};
        size_t seen = out.size();
        for (const size_t s : kinked_) {
            const Step& step = program_.steps[s];
            for (size_t column = 0; column < step.width; ++column) {
                const double* z = points_.machine().value(step.in[0] + column);
                const int32_t* cell = step.operation == Operation::knots ? points_.machine().cells(s, column) : nullptr;
                for (size_t i = 0; i < n; ++i) {
                    if (cut[i] || list[i].whole || (cell && cell[i] == cell[n + i]) ||
                        list[i].length() <= SHORTEST_SEGMENT)
                        continue;
                    touched[i] = touched[i] || cell || (z[i] > 0.0) != (z[n + i] > 0.0);
                    passed_levels(step, z[i], z[n + i], [&](double level) {
                        const double a = z[i] - level, b = z[n + i] - level;
                        const double noise = 1e-13 * std::max(std::fabs(a), std::fabs(b)) + 2e-16 * std::fabs(level);
                        out.push_back({first + i, s, column, level, list[i].low, list[i].high, a, b, 0.0, noise, 0});
                    });
                }
            }
            for (; seen < out.size(); ++seen) cut[out[seen].segment - first] = true;
        }
        for (size_t i = 0; i < n; ++i) list[i].whole = list[i].whole || (touched[i] && !cut[i]);
    }

    // The times at which levels are passed on segments of `list`, and puts them in order.
    void solve(const std::vector<Segment>& list, std::vector<Passing>& found) {
        std::vector<Passing*> open;
        for (const size_t s : kinked_) {
            open.clear();
            for (Passing& p : found)
                if (p.step == s) open.push_back(&p);
            for (Passing* p : open) p->root = p->low + (p->high - p->low) * (p->at_low / (p->at_low - p->at_high));
            for (size_t begin = 0; begin < open.size(); begin += POINTS)
                solve(list, s,
                      {open.begin() + static_cast<std::ptrdiff_t>(begin),
                       open.begin() + static_cast<std::ptrdiff_t>(std::min(begin + POINTS, open.size()))});
        }
        std::sort(found.begin(), found.end(), [](const Passing& a, const Passing& b) {
            return a.segment != b.segment ? a.segment < b.segment : a.root < b.root;
        });
    }

    // Times at which the input of a step may have an extremum on a long segment, so that a level is passed in both
    // directions: the vertex of a parabola through both ends and the middle. Marks panels whose curves are not accurate
    // enough to decide.
    template <class Turn>
    void turns(const std::vector<Segment>& list, uint8_t* unsure, Turn turn) {
        std::vector<size_t> some;
        for (size_t i = 0; i < list.size(); ++i)
            if (list[i].length() > TURNING_SHARE * view_.length(list[i].panel)) some.push_back(i);
        for (size_t begin = 0; begin < some.size(); begin += POINTS / 4) {
            const size_t n = std::min(POINTS / 4, some.size() - begin);
            for (size_t i = 0; i < n; ++i) {
                const Segment& s = list[some[begin + i]];
                const double middle = 0.5 * (s.low + s.high);
                points_.set(i, s, s.low);
                points_.set(n + i, s, middle);
                points_.set(2 * n + i, s, s.high);
                points_.set(3 * n + i, s, middle);
            }
            points_.load(4 * n, 3 * n);
            points_.forward(4 * n);
            for (const size_t s : kinked_)
                if (program_.steps[s].turns)
                    for (size_t column = 0; column < program_.steps[s].width; ++column)
                        turns_of(program_.steps[s], points_.machine().value(program_.steps[s].in[0] + column), n, list,
                                 &some[begin], unsure, turn);
        }
    }

private:
    const Program& program_;
    const PanelsView& view_;
    HeadPoints& points_;
    std::vector<size_t> kinked_;
    bool turn_ = false;

    template <class Turn>
    void turns_of(const Step& step, const double* z, size_t n, const std::vector<Segment>& list, const size_t* some,
                  uint8_t* unsure, Turn turn) {
        for (size_t i = 0; i < n; ++i) {
            const double a = z[i], b = z[n + i], c = z[2 * n + i], off = std::fabs(z[3 * n + i] - b);
            const double least = std::min({a, b, c}), most = std::max({a, b, c});
            const Segment& s = list[some[i]];
            const auto mark = [&](double) { unsure[s.panel] = 1; };
            passed_levels(step, least - off, least, mark);
            passed_levels(step, most, most + off, mark);
            const double bend = a - 2.0 * b + c, at = 0.5 * (a - c) / bend;
            if (!(std::fabs(at) < 1.0)) continue;
            const double top = b - 1.2 * ((c - a) * (c - a) / (8.0 * bend)) - 0.1 * bend;
            bool any = false;
            passed_levels(step, a, top, [&](double) { any = true; });
            passed_levels(step, c, top, [&](double) { any = true; });
            if (any) turn(some[i], s.low + 0.5 * (1.0 + at) * s.length());
        }
    }

    // Secant steps that stay inside their brackets (Illinois), for up to POINTS levels of one step at once.
    void solve(const std::vector<Segment>& list, size_t step, std::vector<Passing*> open) {
        for (int turn = 0; turn < 60 && !open.empty(); ++turn) {
            for (size_t i = 0; i < open.size(); ++i) points_.set(i, list[open[i]->segment], open[i]->root);
            points_.load(open.size());
            points_.forward(open.size(), step);
            size_t left = 0;
            for (size_t i = 0; i < open.size(); ++i) {
                Passing& p = *open[i];
                const double value = points_.machine().value(program_.steps[step].in[0] + p.column)[i] - p.level;
                if (refine(p, value, turn)) open[left++] = &p;
            }
            open.resize(left);
        }
    }

    // Narrows a bracket by the value at its root; returns whether that is not yet a root.
    static bool refine(Passing& p, double value, int turn) {
        if (!(std::fabs(value) > p.noise) || !(p.high - p.low > 1e-15)) return false;
        if ((value > 0.0) == (p.at_low > 0.0)) {
            if (p.kept == 1) p.at_high *= 0.5;  // Illinois: halve the value at an end that is kept twice
            p.at_low = value;
            p.low = p.root;
            p.kept = 1;
        } else {
            if (p.kept == -1) p.at_low *= 0.5;
            p.at_high = value;
            p.high = p.root;
            p.kept = -1;
        }
        const double guess = p.low + (p.high - p.low) * (p.at_low / (p.at_low - p.at_high));
        p.root = guess > p.low && guess < p.high && turn % 8 != 7 ? guess : 0.5 * (p.low + p.high);
        return true;
    }
};

}  // namespace gigrad
