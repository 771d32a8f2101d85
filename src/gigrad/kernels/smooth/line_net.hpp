// Layers of units with kinks, such as ReLU, along straight parts of paths: the kinks of units, the values of layers
// there, and the backward pass.
//
// A leg is a part of a path on which all inputs of the first units are linear in time. On a leg every step is linear
// between the points of its own grid: units add a point to the grid of their inputs wherever one of them passes zero; a
// step with several inputs has the points of all of them. A layer over units is multiplied only on the coarser grid; in
// between its slope changes by one row of its matrix at every kink. In the backward pass a unit without a kink passes
// the sum over a whole piece of the coarser grid, and a unit with a kink adds the sum after it.
#pragma once

#include "smooth/line_steps.hpp"

namespace gigrad {

// Traces legs one at a time; the work space of one thread. Its buffers only grow.
class LineTracer {
public:
    explicit LineTracer(const LineNet& net) : net_(net), values_(net.steps.size()), back_(net.steps.size()) {}

    // Evaluates all steps from `from` to `to`, the linear columns at the two ends of a leg.
    void trace(double low, double high, const double* from, const double* to, LegTrace& leg) {
        leg.resize(net_.steps.size());
        for (size_t s = 0; s < net_.steps.size(); ++s) {
            const LineStep& step = net_.steps[s];
            switch (step.operation) {
                case LineOperation::straight:
                    leg[s].time = {low, high};
                    values_[s].assign(from + step.first, from + step.first + step.width);
                    values_[s].insert(values_[s].end(), to + step.first, to + step.first + step.width);
                    break;
                case LineOperation::units:
                    units(step, leg[step.in[0]].time, values_[step.in[0]], leg[s], values_[s]);
                    break;
                case LineOperation::affine:
                    leg[s].time = leg[step.in[0]].time;
                    step.over_units ? bent(step, leg, values_[s]) : affine(step, leg[s].time.size(), values_[s]);
                    break;
                case LineOperation::gather:
                case LineOperation::sum:
                    joined(step, leg, leg[s].time, values_[s]);
                    break;
            }
        }
        finest_.clear();
        for (const size_t end : net_.ends) merge(finest_, leg[end].time);
    }

    // The kinks of any output on the last leg.
    const std::vector<double>& finest() const { return finest_; }

    // The outputs at those times, (points, width).
    void ends(const LegTrace& leg, double* out) {
        size_t first = 0;
        for (const size_t end : net_.ends) {
            lifted(values_[end], net_.steps[end].width, leg[end].time, finest_, out + first, net_.width);
            first += net_.steps[end].width;
        }
    }

    // Pulls cotangents (pieces, width) of the outputs on the pieces of `finest` back to the linear columns.
    void pull_back(const LegTrace& leg, const double* finest, size_t points, const double* cotangent, double* out) {
        for (size_t s = 0; s < net_.steps.size(); ++s)
            if (net_.steps[s].asked) back_[s].assign((leg[s].time.size() - 1) * net_.steps[s].width, 0.0);
        size_t first = 0;
        for (const size_t end : net_.ends) {
            gathered(cotangent + first, net_.width, finest, points, leg[end].time, net_.steps[end].width,
                     back_[end].data());
            first += net_.steps[end].width;
        }
        for (size_t s = net_.steps.size(); s-- > 0;) {
            const LineStep& step = net_.steps[s];
            switch (step.operation) {
                case LineOperation::straight:
                    std::copy(back_[s].begin(), back_[s].end(), out + step.first);
                    break;
                case LineOperation::units:
                    if (step.asked) units_back(step, leg[s], leg[step.in[0]].time, back_[s], back_[step.in[0]]);
                    break;
                case LineOperation::affine:
                    if (step.over_units)
                        unbent(step, leg, back_[s]);
                    else
                        add_matrix_product(back_[s].data(), leg[s].time.size() - 1, step.width, step.weight.data(),
                                           step.rows.data(), net_.steps[step.in[0]].width, back_[step.in[0]].data());
                    break;
                case LineOperation::gather:
                case LineOperation::sum:
                    joined_back(step, leg, leg[s].time, back_[s]);
                    break;
            }
        }
    }

private:
    struct Kink {
        size_t piece, unit;
        double part;
    };

    const LineNet& net_;
    std::vector<std::vector<double>> values_, back_;  // of every step: (points, width), (pieces, width)
    std::vector<double> finest_, slope_, side_, sum_, lift_, units_, merged_;  // `side_` has the signs of units
    std::vector<uint8_t> flags_;
    std::vector<size_t> stops_;  // the bends before each piece
    bool at_zero_ = false;       // whether a unit was exactly zero
    std::vector<Kink> kinks_;

    // ------------------------------------------------------------ units

    // Finds the kinks of units over z (points of `coarse`, width), and adds them to the grid.
    void units(const LineStep& step, const std::vector<double>& coarse, const std::vector<double>& z, StepTrace& trace,
               std::vector<double>& values) {
        const size_t width = step.width, pieces = coarse.size() - 1;
        trace.time.clear(), trace.bends.clear(), trace.slope.resize(width);
        side_.resize(width), flags_.resize((width + CHECKED_UNITS - 1) / CHECKED_UNITS);
        at_zero_ = false;
        for (size_t j = 0; j < width; ++j) {
            side_[j] = 0.5 * (z[j] + z[width + j]);
            trace.slope[j] = unit_slope(step, side_[j]);
            at_zero_ = at_zero_ || !(side_[j] < 0.0 || side_[j] > 0.0);
        }
        slope_ = trace.slope;
        for (size_t g = 0; g < pieces; ++g) {
            const double *a = &z[g * width], *b = a + width;
            const size_t begin = trace.time.size();
            trace.time.push_back(coarse[g]);
            kinks_.clear();
            other_sides(a, b, side_.data(), width, flags_.data());
            for (size_t i = 0; i < flags_.size(); ++i)
                if (flags_[i] != 0 || at_zero_)
                    for (size_t unit = i * CHECKED_UNITS; unit < std::min((i + 1) * CHECKED_UNITS, width); ++unit)
                        if (!on_one_side(a[unit], b[unit], side_[unit]))
                            judge(step, a[unit], b[unit], g, unit, begin, trace);
            if (!kinks_.empty()) cut(step, a, coarse[g], coarse[g + 1], trace);
        }
        trace.time.push_back(coarse[pieces]);
        if (step.asked) {
            const size_t count = trace.time.size() * width;
            make_room(lift_, count), make_room(values, count);
            lifted(z, width, coarse, trace.time, lift_.data(), width);
            unit_values(lift_.data(), step.below, step.above, count, values.data());
        }
    }

    // One unit from a to b: a kink inside, or a slope that differs from the previous one. The slope of a unit without a
    // kink inside is taken in the middle: a unit that starts or ends on its kink may be on either side of it there, by
    // rounding.
    void judge(const LineStep& step, double a, double b, size_t piece, size_t unit, size_t begin, StepTrace& trace) {
        const bool passes = (a < 0.0 && b > 0.0) || (a > 0.0 && b < 0.0);
        const double part = a / (a - b);
        const bool inside =
            passes && std::min(std::fabs(a), std::fabs(b)) > LEVEL_MARGIN * std::max(std::fabs(a), std::fabs(b)) &&
            part > CLOSEST_KINKS && part < 1.0 - CLOSEST_KINKS;
        const double side = inside ? a : 0.5 * (a + b), slope = unit_slope(step, side);
        side_[unit] = inside ? b : side;
        at_zero_ = at_zero_ || !(side < 0.0 || side > 0.0);
        if (slope != slope_[unit]) {
            if (piece > 0)
                trace.bends.push_back({begin, unit, slope - slope_[unit]});
            else
                trace.slope[unit] = slope;
            slope_[unit] = slope;
        }
        if (inside) kinks_.push_back({piece, unit, part});
    }

    // Cuts a piece at the kinks found on it.
    void cut(const LineStep& step, const double* a, double low, double high, StepTrace& trace) {
        std::sort(kinks_.begin(), kinks_.end(),
                  [](const Kink& x, const Kink& y) { return x.part != y.part ? x.part < y.part : x.unit < y.unit; });
        double last = 0.0;
        for (const Kink& kink : kinks_) {
            const double time = (1.0 - kink.part) * low + kink.part * high;
            if (kink.part - last > CLOSEST_KINKS && time > trace.time.back() && time < high)
                trace.time.push_back(time), last = kink.part;
            const double after = unit_slope(step, -a[kink.unit]);
            trace.bends.push_back({trace.time.size() - 1, kink.unit, after - slope_[kink.unit]});
            slope_[kink.unit] = after;
        }
    }

    void units_back(const LineStep& step, const StepTrace& trace, const std::vector<double>& coarse,
                    const std::vector<double>& from, std::vector<double>& to) {
        const size_t width = step.width;
        slope_ = trace.slope;
        size_t bend = 0, g = 0;
        for (size_t f = 0; f + 1 < trace.time.size(); ++f) {
            if (g + 2 < coarse.size() && trace.time[f] >= coarse[g + 1]) ++g;
            for (; bend < trace.bends.size() && trace.bends[bend].piece == f; ++bend)
                slope_[trace.bends[bend].unit] += trace.bends[bend].step;
            add_products(slope_.data(), &from[f * width], width, &to[g * width]);
        }
    }

    // ------------------------------------------------------------ layers

    void affine(const LineStep& step, size_t points, std::vector<double>& values) {
        const std::vector<double>& from = values_[step.in[0]];
        filled(step, points, values);
        add_matrix_product(from.data(), points, net_.steps[step.in[0]].width, step.rows.data(), step.weight.data(),
                           step.width, values.data());
    }

    static void filled(const LineStep& step, size_t points, std::vector<double>& values) {
        make_room(values, points * step.width);
        for (size_t i = 0; i < points; ++i) std::copy(step.bias.begin(), step.bias.end(), &values[i * step.width]);
    }

    // A layer over units: multiplied at the points of the units' inputs, its slope updated from kink to kink.
    void bent(const LineStep& step, const LegTrace& leg, std::vector<double>& values) {
        const LineStep& units = net_.steps[step.in[0]];
        const StepTrace& trace = leg[step.in[0]];
        const std::vector<double>&coarse = leg[units.in[0]].time, &z = values_[units.in[0]];
        const size_t n = units.width, width = step.width;
        make_room(units_, coarse.size() * n);
        unit_values(z.data(), units.below, units.above, coarse.size() * n, units_.data());
        filled(step, coarse.size(), lift_);
        add_matrix_product(units_.data(), coarse.size(), n, step.rows.data(), step.weight.data(), width, lift_.data());
        make_room(values, trace.time.size() * width);
        sum_.resize(width);
        size_t bend = 0;
        for (size_t g = 0, f = 0; g + 1 < coarse.size(); ++g) {
            const double *from = &lift_[g * width], *next = from + width;
            const double low = coarse[g], high = coarse[g + 1], length = high - low;
            std::copy(from, next, &values[f * width]);
            size_t last = f + 1;
            while (trace.time[last] < high) ++last;
            const size_t here = f;
            while (bend < trace.bends.size() && trace.bends[bend].piece <= here) ++bend;  // corrections of slopes
            if (last > f + 1) {
                for (size_t j = 0; j < width; ++j) sum_[j] = (next[j] - from[j]) / length;
                for (size_t k = bend; k < trace.bends.size() && trace.bends[k].piece < last; ++k)
                    add_row(
                        sum_.data(),
                        -turn(trace.bends[k], z, n, g) * ((high - trace.time[trace.bends[k].piece]) / length) / length,
                        step.rows.data() + trace.bends[k].unit * width, width);
                for (size_t i = f + 1; i < last; ++i) {  // every inner point has a kink
                    double* to = &values[i * width];
                    const auto way = [&](const Bend& b) { return turn(b, z, n, g) / length; };
                    const auto row = [&](const Bend& b) { return step.rows.data() + b.unit * width; };
                    const Bend& b = trace.bends[bend++];
                    step_row(to - width, trace.time[i] - trace.time[i - 1], way(b), row(b), width, sum_.data(), to);
                    for (; bend < trace.bends.size() && trace.bends[bend].piece == i; ++bend)
                        add_row(sum_.data(), way(trace.bends[bend]), row(trace.bends[bend]), width);
                }
            }
            f = last;
        }
        const double* last = &lift_[(coarse.size() - 1) * width];
        std::copy(last, last + width, &values[(trace.time.size() - 1) * width]);
    }

    // The change of a unit over its coarse piece due to a kink.
    static double turn(const Bend& bend, const std::vector<double>& z, size_t n, size_t g) {
        return bend.step * (z[(g + 1) * n + bend.unit] - z[g * n + bend.unit]);
    }

    // Pulls a layer's cotangent back through the units below it, to what they read.
    void unbent(const LineStep& step, const LegTrace& leg, const std::vector<double>& from) {
        const LineStep& units = net_.steps[step.in[0]];
        const StepTrace& trace = leg[step.in[0]];
        const std::vector<double>& coarse = leg[units.in[0]].time;
        const size_t n = units.width, width = step.width, pieces = coarse.size() - 1;
        std::vector<double>& to = back_[units.in[0]];
        make_room(lift_, pieces * width), make_room(units_, pieces * n);
        std::fill_n(lift_.begin(), pieces * width, 0.0), std::fill_n(units_.begin(), pieces * n, 0.0);
        stops_.assign(1, 0);
        for (size_t g = 0, f = 0, bend = 0; g < pieces; ++g) {
            double* sum = &lift_[g * width];  // from a time up to the end of the piece: at last of all of it
            size_t last = f + 1, stop = bend;
            while (trace.time[last] < coarse[g + 1]) ++last;
            while (stop < trace.bends.size() && trace.bends[stop].piece < last) ++stop;
            size_t piece = last;
            for (size_t k = stop; k-- > bend;) {
                const Bend& b = trace.bends[k];
                for (; piece > b.piece; --piece) add_row(sum, 1.0, &from[(piece - 1) * width], width);
                to[g * n + b.unit] += b.step * row_product(step.rows.data() + b.unit * width, sum, width);
            }
            for (; piece > f; --piece) add_row(sum, 1.0, &from[(piece - 1) * width], width);
            bend = stop, f = last, stops_.push_back(stop);
        }
        add_matrix_product(lift_.data(), pieces, width, step.weight.data(), step.rows.data(), n, units_.data());
        slope_ = trace.slope;
        for (size_t g = 0; g < pieces; ++g) {
            add_products(slope_.data(), &units_[g * n], n, &to[g * n]);
            for (size_t k = stops_[g]; k < stops_[g + 1]; ++k) slope_[trace.bends[k].unit] += trace.bends[k].step;
        }
    }

    // ------------------------------------------------------------ several at once

    void joined(const LineStep& step, const LegTrace& leg, std::vector<double>& time, std::vector<double>& values) {
        time.clear();
        for (const size_t in : step.in) merge(time, leg[in].time);
        make_room(values, time.size() * step.width);
        std::fill_n(values.begin(), time.size() * step.width, 0.0);
        for (size_t p = 0; p < step.in.size(); ++p) {
            const size_t width = net_.steps[step.in[p]].width;
            make_room(lift_, time.size() * width);
            lifted(values_[step.in[p]], width, leg[step.in[p]].time, time, lift_.data(), width);
            each_column(step, p, [&](size_t to, size_t from) {
                for (size_t i = 0; i < time.size(); ++i) values[i * step.width + to] += lift_[i * width + from];
            });
        }
    }

    void joined_back(const LineStep& step, const LegTrace& leg, const std::vector<double>& time,
                     const std::vector<double>& from) {
        const size_t pieces = time.size() - 1;
        for (size_t p = 0; p < step.in.size(); ++p) {
            const size_t width = net_.steps[step.in[p]].width;
            lift_.assign(pieces * width, 0.0);
            each_column(step, p, [&](size_t to, size_t column) {
                for (size_t i = 0; i < pieces; ++i) lift_[i * width + column] += from[i * step.width + to];
            });
            units_.assign(back_[step.in[p]].size(), 0.0);
            gathered(lift_.data(), width, time.data(), time.size(), leg[step.in[p]].time, width, units_.data());
            add_row(back_[step.in[p]].data(), 1.0, units_.data(), units_.size());
        }
    }

    // Calls each(column of the result, column of the p-th step that is read).
    template <class Each>
    static void each_column(const LineStep& step, size_t p, Each each) {
        if (step.operation == LineOperation::sum)
            for (size_t c = 0; c < step.width; ++c) each(c, c);
        else
            for (size_t c = 0; c < step.width; ++c)
                if (step.columns[c].first == p) each(c, step.columns[c].second);
    }

    // ------------------------------------------------------------ grids

    // Adds the times of another grid.
    void merge(std::vector<double>& time, const std::vector<double>& other) {
        if (time.empty()) {
            time = other;
            return;
        }
        merged_.clear();
        std::set_union(time.begin(), time.end(), other.begin(), other.end(), std::back_inserter(merged_));
        time.swap(merged_);
    }

    // Values (points of a grid, width) at the points of a finer one; a row of `out` has `stride` numbers.
    static void lifted(const std::vector<double>& values, size_t width, const std::vector<double>& coarse,
                       const std::vector<double>& fine, double* out, size_t stride) {
        size_t g = 0;
        for (size_t i = 0; i < fine.size(); ++i) {
            while (g + 1 < coarse.size() && coarse[g + 1] <= fine[i]) ++g;
            const double* from = &values[g * width];
            if (fine[i] == coarse[g])
                std::copy(from, from + width, out + i * stride);
            else
                mix_row(from, from + width, (fine[i] - coarse[g]) / (coarse[g + 1] - coarse[g]), width,
                        out + i * stride);
        }
    }

    // Sums of what belongs to the pieces of a fine grid, rows of `stride` numbers, by the pieces of a coarser one.
    static void gathered(const double* from, size_t stride, const double* fine, size_t points,
                         const std::vector<double>& coarse, size_t width, double* to) {
        std::fill_n(to, (coarse.size() - 1) * width, 0.0);
        size_t g = 0;
        for (size_t f = 0; f + 1 < points; ++f) {
            while (g + 2 < coarse.size() && coarse[g + 1] <= fine[f]) ++g;
            add_row(to + g * width, 1.0, from + f * stride, width);
        }
    }
};

}  // namespace gigrad
