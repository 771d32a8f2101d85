// The head of a model on panels: its inputs at given times, and segments between jumps and kinks.
#pragma once

#include "core/parallel.hpp"
#include "smooth/rows.hpp"
#include "smooth/program.hpp"

namespace gigrad {

// Panels with the curves on them, as in the engine's PanelCurves. C columns of curves, L of lines, k outputs.
struct PanelsView {
    size_t panels = 0, order = 0, curves = 0, lines = 0, outputs = 0;
    const double *low = nullptr, *high = nullptr;    // (panels,) times
    const int64_t *begin = nullptr, *end = nullptr;  // (panels,) the corners on a panel
    const int64_t *state = nullptr, *row = nullptr;  // (panels,) the first state of the trees, its row in the table
    const double *coefficients = nullptr,
                 *steepness = nullptr;  // (panels, order, C) of the curves, of their slopes by time
    const double* doubt = nullptr;      // (panels, C) bounds on the error of the curves
    const double* line_rows = nullptr;  // (points, L)
    const int64_t* left = nullptr;      // (panels,) the point at which a panel's piece begins
    const double *piece_low = nullptr, *piece_length = nullptr;  // (panels,)
    const double* corner_time = nullptr;                         // (corners,)
    const double* constants = nullptr;                           // (states, constants) the trees' outputs
    const double* allowed = nullptr;                             // (panels, k)
    double part = -1.0;  // how fast one column moves the only line, at most; negative: not known

    double length(size_t p) const { return high[p] - low[p]; }
};

// A part of a panel between two corners or kinks; left and right are the corners at its ends, or -1.
struct Segment {
    size_t panel;
    int64_t state;
    double low, high;
    int64_t left, right;
    bool low_kink = false,
         high_kink = false;  // whether the slopes at its ends may be those of the neighbouring segment
    bool whole = false;      // no kink was found inside, though one seemed to be passed

    double length() const { return high - low; }
};

// Loads the head's inputs at up to POINTS times into the registers of a machine, and runs it.
class HeadPoints {
public:
    HeadPoints(const Program& program, const SeriesTable& table, const PanelsView& view)
        : program_(program), view_(view), machine_(program, table), basis_((view.order + 4) * POINTS) {}

    Machine& machine() { return machine_; }
    const double* u() const { return u_.data(); }
    const size_t* panels() const { return panel_.data(); }

    void set(size_t i, const Segment& s, double time) {
        panel_[i] = s.panel;
        state_[i] = s.state;
        time_[i] = time;
    }

    // Sets the input registers of the head; at `doubtful` points the curves are shifted by the bound on their error.
    void load(size_t n, size_t doubtful = POINTS) {
        joints(n, doubtful);
        constants(n);
    }

    void joints(size_t n, size_t doubtful) {
        if (view_.curves > 0) locate(n);
        series(view_.coefficients, n, [&](size_t c) { return machine_.value(c); });
        for (size_t i = doubtful; i < n; ++i)
            for (size_t c = 0; c < view_.curves; ++c) machine_.value(c)[i] += view_.doubt[panel_[i] * view_.curves + c];
        for (size_t i = 0; i < n && view_.lines > 0; ++i) {
            const size_t p = panel_[i];
            const double part = (time_[i] - view_.piece_low[p]) / view_.piece_length[p];
            const double *from = view_.line_rows + static_cast<size_t>(view_.left[p]) * view_.lines,
                         *next = from + view_.lines;
            for (size_t w = 0; w < view_.lines; ++w)
                machine_.value(view_.curves + w)[i] = part == 0.0 ? from[w] : from[w] + part * (next[w] - from[w]);
        }
    }

    void constants(size_t n) {
        for (size_t i = 0; i < n; ++i) {
            const double* from = view_.constants + static_cast<size_t>(state_[i]) * program_.constants;
            for (size_t s = 0; s < program_.constants; ++s) machine_.value(program_.joints + s)[i] = from[s];
            row_[i] = view_.row[panel_[i]] + (state_[i] - view_.state[panel_[i]]);
        }
    }

    // Runs a head over one line on n stretches between neighbours of n + 1 points, at which the line has the given
    // values; `state` are those of the trees in between. Both ends of stretch i are points i and n + i.
    void forward_along_line(const double* line, const size_t* panel, const int64_t* state, size_t n) {
        std::copy_n(line, n + 1, machine_.value(0));
        for (size_t i = 0; i < n; ++i) {
            const double* from = view_.constants + static_cast<size_t>(state[i]) * program_.constants;
            for (size_t s = 0; s < program_.constants; ++s) {
                double* to = machine_.value(program_.joints + s);
                to[i] = to[n + i] = from[s];
            }
            row_[i] = row_[n + i] = view_.row[panel[i]] + (state[i] - view_.state[panel[i]]);
        }
        machine_.forward_between(n, row_.data());
    }

    // Sets the input registers for the two ends of n segments, points i and n + i: where one begins at the end of the one before, the
    // moving inputs are computed once.
    void load_ends(size_t n) {
        if (view_.curves == 0) return load(2 * n);  // evaluating lines costs less than looking for duplicates
        std::array<size_t, POINTS> same, from;
        same[0] = 0;
        for (size_t i = 1; i < n; ++i)
            same[i] = panel_[i] == panel_[n + i - 1] && time_[i] == time_[n + i - 1] ? n + i - 1 : 0;
        size_t alone = 0;  // first points without a duplicate; they are moved behind the others and back
        const auto panel = panel_;
        const auto time = time_;
        for (size_t i = 0; i < n; ++i)
            if (same[i] == 0) from[alone++] = i;
        for (size_t i = 0; i < alone + n; ++i) {
            const size_t at = i < alone ? from[i] : n + i - alone;
            panel_[i] = panel[at], time_[i] = time[at];
        }
        joints(alone + n, POINTS);
        for (size_t j = 0; j < program_.joints; ++j) {
            double* value = machine_.value(j);
            std::array<double, POINTS> found;
            std::copy_n(value, alone + n, found.begin());
            std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(alone), n, value + n);
            for (size_t i = 0; i < alone; ++i) value[from[i]] = found[i];
            for (size_t i = 1; i < n; ++i)
                if (same[i] != 0) value[i] = value[same[i]];
        }
        panel_ = panel, time_ = time;
        constants(2 * n);
    }

    void forward(size_t n, size_t stop) { machine_.forward(n, row_.data(), stop); }
    void forward(size_t n) { forward(n, program_.steps.size()); }
    void backward(size_t k, size_t n) { machine_.backward(k, n, row_.data()); }

    // speeds (joints, POINTS): the time derivatives of the head's inputs.
    void speeds(size_t n, double* out) {
        locate(n);
        series(view_.steepness, n, [&](size_t c) { return out + c * POINTS; });
        for (size_t i = 0; i < n && view_.lines > 0; ++i) {
            const size_t p = panel_[i];
            const double *from = view_.line_rows + static_cast<size_t>(view_.left[p]) * view_.lines,
                         *next = from + view_.lines;
            for (size_t w = 0; w < view_.lines; ++w)
                out[(view_.curves + w) * POINTS + i] = (next[w] - from[w]) / view_.piece_length[p];
        }
    }

    // Legendre polynomials at the points that were set last.
    const double* legendre(size_t n, size_t degrees) {
        locate(n);
        legendre_basis(u_.data(), n, degrees, basis_.data());
        return basis_.data();
    }

private:
    const Program& program_;
    const PanelsView& view_;
    Machine machine_;
    std::vector<double> basis_;
    std::array<size_t, POINTS> panel_{};
    std::array<int64_t, POINTS> state_{}, row_{};
    std::array<double, POINTS> time_{}, u_{};

    // Times in the panels' own coordinate, -1 to 1.
    void locate(size_t n) {
        for (size_t i = 0; i < n; ++i) {
            const double low = view_.low[panel_[i]], high = view_.high[panel_[i]];
            u_[i] = (time_[i] - 0.5 * (low + high)) / std::max(0.5 * (high - low), 1e-300);
        }
    }

    template <class To>
    void series(const double* coefficients, size_t n, To to) {
        const size_t columns = view_.curves, order = view_.order;
        if (columns == 0) return;
        legendre_basis(u_.data(), n, order, basis_.data());
        for (size_t begin = 0, end; begin < n; begin = end) {  // points of one panel share their coefficients
            for (end = begin + 1; end < n && panel_[end] == panel_[begin];) ++end;
            const double* c = coefficients + panel_[begin] * order * columns;
            for (size_t j = 0; j < columns; ++j) {
                double* out = to(j) + begin;
                std::fill(out, out + (end - begin), 0.0);
                for (size_t d = order; d-- > 0;)
                    add_scaled(c[d * columns + j], basis_.data() + d * POINTS + begin, end - begin, out);
            }
        }
    }
};

}  // namespace gigrad
