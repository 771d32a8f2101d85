// Curves on panels in one pass: their values at the nodes of a rule, their derivatives by the lines that they read, and
// the contributions of the columns of the rows to their speeds. A few panels at a time, so that the registers of the
// curves' program stay in a cache.
#pragma once

#include "smooth/program.hpp"
#include "smooth/speed_parts.hpp"

namespace gigrad {

// How fast coefficients fall: see `engine.quadrature.tails`.
struct Decay {
    double least_rate, slow;
};

// What coefficients beyond the highest degrees may amount to: those are continued from `high` at `rate` for each degree.
// `last` (smaller of `order` and 4, stride) are the sizes of the highest.
struct Continued {
    double high = 0.0, rate = 0.0;

    GIGRAD_INLINED static double larger(double a, double b) { return a > b ? a : b; }
    GIGRAD_INLINED Continued(const double* last, size_t stride, size_t order, const Decay& decay) {
        const size_t top = std::min<size_t>(order, 4), pair = order >= 4 ? 2 : 1;
        if (order < 2) return;
        double low = last[0];
        for (size_t i = 1; i < top - pair; ++i) low = larger(low, last[i * stride]);
        for (size_t i = top - pair; i < top; ++i) high = larger(high, last[i * stride]);
        const double share = high < low ? high / low : 1.0;
        rate = order > 2 ? std::sqrt(share) : share;
        rate = rate > decay.slow ? 1.0 : larger(rate, decay.least_rate);
    }
};

// Panels with `order` nodes each, on lines that are given at points of time.
struct CurvePanels {
    size_t panels, order, lines, curves;  // the program's joints and outputs
    const double *nodes, *to_coefficients;
    const double *low, *high, *start,
        *length;           // when panels begin and end, when their pieces begin, how long those are
    const int64_t* left;   // the point that a panel's piece begins at; it ends at the next
    const double* rows;    // (points, lines)
    size_t columns;        // of the rows; 0 where lines have kinks
    const double* matrix;  // (columns, lines): the derivatives of the lines by the columns
    const double* move;    // (paths, columns): how far columns move
    const int64_t* path;   // (panels,)
    Decay decay;

    // How many parts of a speed are told apart: where lines have kinks, these are the speed itself, and the root of the
    // sum of squares of the lines' parts.
    size_t parts() const { return columns > 0 ? columns : 2; }
};

struct CurveValues {
    double* ends;                      // (panels, order, curves): at the nodes
    double *coefficients, *steepness;  // the same as Legendre coefficients, and those of the slopes by time
    double* doubt;                     // (panels, curves): what two coefficients more may amount to
    double* gradient;                  // (curves, panels, lines, order)
    double* last;  // (curves, top, panels, parts), first (curves, panels), ...: SpeedParts of each curve
    double *first, *above, *total;
};

// The most panels that are evaluated together.
inline size_t panels_together(size_t order) { return POINTS / order; }

// sum += values, squares += their squares
GIGRAD_WIDE inline void add_moments(const double* values, size_t n, double* sum, double* squares) {
    double a[8] = {}, b[8] = {};
    for (size_t i = 0; i < n; i += 8)
        for (size_t j = 0; j < 8; ++j) a[j] += values[i + j], b[j] += values[i + j] * values[i + j];
    for (size_t j = 0; j < 8; ++j) *sum += a[j], *squares += b[j];
}

class CurvePass {
public:
    CurvePass(const Program& program, const CurvePanels& view, const CurveValues& out)
        : view_(view),
          out_(out),
          machine_(program, no_table()),
          steps_(program.steps.size()),
          output_(program.output),
          top_(std::min<size_t>(view.order, 4)),
          moved_(view.columns * POINTS),
          nodes_(view.order * POINTS),
          coefficients_(view.order * POINTS) {}

    // The panels first .. first + count - 1, at most `panels_together`.
    void run(size_t first, size_t count) {
        const size_t n = count * view_.order;
        for (size_t p = 0; p < count; ++p) place_lines(first + p, p * view_.order);
        machine_.forward(n, nullptr, steps_);
        for (size_t p = 0; p < count; ++p)
            for (size_t c = 0; c < view_.curves; ++c)
                keep_curve(c, first + p, machine_.value(output_ + c) + p * view_.order);
        for (size_t c = 0; c < view_.curves; ++c) {
            machine_.backward(c, n, nullptr);
            keep_gradient(c, first, count);
            if (view_.columns > 0) {
                std::fill_n(moved_.data(), view_.columns * POINTS, 0.0);
                add_products(view_.matrix, view_.columns, view_.lines, machine_.back(0), n, moved_.data());
            }
            for (size_t p = 0; p < count; ++p)
                view_.columns > 0 ? parts_by_column(c, first + p, p * view_.order)
                                  : parts_by_line(c, first + p, p * view_.order);
        }
    }

private:
    const CurvePanels& view_;
    const CurveValues& out_;
    Machine machine_;
    const size_t steps_, output_, top_;
    Aligned<double> moved_;                 // (columns, POINTS) derivatives by the columns of the rows
    Aligned<double> nodes_, coefficients_;  // (order, POINTS) of up to POINTS columns on one panel

    static const SeriesTable& no_table() {
        static const SeriesTable none;
        return none;
    }

    // The lines at the nodes of a panel, into registers from point `at` on.
    void place_lines(size_t panel, size_t at) {
        const double middle = 0.5 * (view_.low[panel] + view_.high[panel]),
                     half = 0.5 * (view_.high[panel] - view_.low[panel]);
        double part[POINTS];
        for (size_t q = 0; q < view_.order; ++q)
            part[q] = (middle + half * view_.nodes[q] - view_.start[panel]) / view_.length[panel];
        const double* from = view_.rows + static_cast<size_t>(view_.left[panel]) * view_.lines;
        for (size_t j = 0; j < view_.lines; ++j) {
            const double value = from[j], step = from[view_.lines + j] - value;
            double* to = machine_.value(j) + at;
            for (size_t q = 0; q < view_.order; ++q) to[q] = value + part[q] * step;
        }
    }

    void keep_curve(size_t curve, size_t panel, const double* values) {
        const size_t at = panel * view_.order * view_.curves + curve;
        double highest[4] = {};
        for (size_t d = 0; d < view_.order; ++d) {
            double sum = 0.0;
            for (size_t q = 0; q < view_.order; ++q) sum += view_.to_coefficients[d * view_.order + q] * values[q];
            out_.ends[at + d * view_.curves] = values[d];
            out_.coefficients[at + d * view_.curves] = sum;
            if (d + top_ >= view_.order) highest[d + top_ - view_.order] = std::fabs(sum);
        }
        // the derivative of a series: of each degree 2 d + 1 times all higher ones of the other parity
        const double scale = 1.0 / std::max(0.5 * (view_.high[panel] - view_.low[panel]), 1e-300);
        double above[2] = {};
        for (size_t d = view_.order; d-- > 0;) {
            out_.steepness[at + d * view_.curves] = static_cast<double>(2 * d + 1) * above[(d + 1) % 2] * scale;
            above[d % 2] += out_.coefficients[at + d * view_.curves];
        }
        const Continued tail(highest, 1, view_.order, view_.decay);
        out_.doubt[panel * view_.curves + curve] = tail.high * tail.rate + tail.high * tail.rate * tail.rate;
    }

    void keep_gradient(size_t curve, size_t first, size_t count) {
        double* to = out_.gradient + (curve * view_.panels + first) * view_.lines * view_.order;
        for (size_t p = 0; p < count; ++p)
            for (size_t j = 0; j < view_.lines; ++j, to += view_.order)
                std::copy_n(machine_.back(j) + p * view_.order, view_.order, to);
    }

    // Coefficients of up to POINTS columns, whose values at the nodes are from[column * POINTS + node] times factor.
    // Whole vectors: the last columns are zero.
    void transform(const double* from, const double* factor, size_t columns) {
        const size_t whole = (columns + 7) / 8 * 8;
        for (size_t c = 0; c < columns; ++c)
            for (size_t q = 0; q < view_.order; ++q) nodes_[q * POINTS + c] = from[c * POINTS + q] * factor[c];
        for (size_t q = 0; q < view_.order; ++q) {
            std::fill_n(&nodes_[q * POINTS + columns], whole - columns, 0.0);
            std::fill_n(&coefficients_[q * POINTS], whole, 0.0);
        }
        add_products(view_.to_coefficients, view_.order, view_.order, nodes_.data(), columns, coefficients_.data());
    }

    void parts_by_column(size_t curve, size_t panel, size_t at) {
        const double* move = view_.move + static_cast<size_t>(view_.path[panel]) * view_.columns;
        double &first = out_.first[curve * view_.panels + panel], unused = 0.0, sizes[POINTS];
        double *above = out_.above + curve * view_.order * view_.panels + panel,
               *total = out_.total + curve * view_.order * view_.panels + panel;
        first = 0.0;
        for (size_t d = 0; d < view_.order; ++d) above[d * view_.panels] = total[d * view_.panels] = 0.0;
        for (size_t begin = 0; begin < view_.columns; begin += POINTS) {
            const size_t columns = std::min(POINTS, view_.columns - begin), whole = (columns + 7) / 8 * 8;
            transform(moved_.data() + begin * POINTS + at, move + begin, columns);
            std::fill_n(sizes, whole, 0.0);
            for (size_t d = view_.order; d-- > 0;) {
                const double* one = coefficients_.data() + d * POINTS;
                double& most = above[d * view_.panels];
                most = std::max(most, add_sizes(one, whole, sizes));
                add_moments(one, whole, total + d * view_.panels, &unused);
                if (d + top_ < view_.order) continue;
                double* last = out_.last +
                               ((curve * top_ + d + top_ - view_.order) * view_.panels + panel) * view_.columns + begin;
                for (size_t c = 0; c < columns; ++c) last[c] = std::fabs(one[c]);
            }
            for (size_t c = 0; c < columns; ++c) first = std::max(first, std::fabs(coefficients_[c]));
        }
    }

    void parts_by_line(size_t curve, size_t panel, size_t at) {
        const double* from = view_.rows + static_cast<size_t>(view_.left[panel]) * view_.lines;
        double total[POINTS] = {}, squares[POINTS] = {}, speed[POINTS];
        for (size_t begin = 0; begin < view_.lines; begin += POINTS) {
            const size_t columns = std::min(POINTS, view_.lines - begin);
            for (size_t j = 0; j < columns; ++j)
                speed[j] = (from[view_.lines + begin + j] - from[begin + j]) / view_.length[panel];
            transform(machine_.back(begin) + at, speed, columns);
            for (size_t d = 0; d < view_.order; ++d)
                add_moments(coefficients_.data() + d * POINTS, (columns + 7) / 8 * 8, total + d, squares + d);
        }
        double sums[2] = {};
        for (size_t d = view_.order; d-- > 0;) {
            const double sizes[2] = {std::fabs(total[d]), std::sqrt(squares[d])};
            sums[0] += sizes[0], sums[1] += sizes[1];
            const size_t at_degree = (curve * view_.order + d) * view_.panels + panel;
            out_.above[at_degree] = std::max(sums[0], sums[1]);
            out_.total[at_degree] = total[d];
            if (d + top_ >= view_.order)
                std::copy_n(sizes, 2, out_.last + ((curve * top_ + d + top_ - view_.order) * view_.panels + panel) * 2);
            if (d == 0) out_.first[curve * view_.panels + panel] = std::max(sizes[0], sizes[1]);
        }
    }
};

}  // namespace gigrad
