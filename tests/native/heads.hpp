// Heads as random programs, integrated over random panels, for `make sanitize`. Arrays are exactly as long as they need
// to be; coefficients and what the trees give may be huge, tiny, infinite or missing.
#pragma once

#include "smooth/curve_credit.hpp"
#include "smooth/leg_head.hpp"
#include "smooth/linear_leaves.hpp"
#include "smooth/speed_parts.hpp"

namespace gigrad {

// A program over `joints` and `constants` registers with a step of every kind.
template <class Values>
Program every_step(size_t joints, size_t constants, size_t degrees, Values values) {
    Program program;
    program.joints = joints, program.constants = constants, program.registers = joints + constants;
    const size_t width = joints + constants;
    const auto add = [&](Operation operation, size_t columns, std::vector<size_t> in,
                         std::vector<size_t> widths) -> Step& {
        Step step{operation, 0,  columns, std::move(in), std::move(widths), {}, {}, {}, Function::identity,
                  0.1,       {}, {},      true};
        program.add(std::move(step));
        return program.steps.back();
    };
    const auto affine = [&](size_t columns, size_t in, size_t in_width) {
        Step& step = add(Operation::affine, columns, {in}, {in_width});
        step.weight = values(columns * in_width), step.transposed = step.weight, step.bias = values(columns);
        return step.out;
    };
    size_t last = affine(2, 0, width);
    for (size_t f = 0; f < function_names().size(); ++f) {
        Step& step = add(Operation::function, 2, {last}, {2});
        step.function = static_cast<Function>(f);
        last = affine(2, step.out, 2);
    }
    const size_t parts[] = {
        add(Operation::softmax, 2, {last}, {2}).out, add(Operation::log_softmax, 2, {last}, {2}).out,
        add(Operation::sum, 2, {last, last}, {2, 2}).out, add(Operation::product, 2, {last, 0}, {2, 1}).out};
    Step& gather = add(Operation::gather, 5, {}, {});
    gather.registers = {parts[0], parts[1], parts[2], parts[3] + 1, last};
    last = affine(1, gather.out, 5);
    if (degrees > 0) last = add(Operation::series, 1, {0}, {1}).out;
    add(Operation::knots, 1, {last}, {1}).knots = Knots({-1.0, 0.0, 0.5, 3.0}, {0.0, 0.2, 0.9, 1.0});
    program.output = program.steps.back().out, program.outputs = 1;
    program.finish();
    return program;
}

// Rules of segments that are exactly as long as they need to be; `numbers` holds their arrays.
inline std::array<SegmentRule, SIZES> some_rules(std::vector<std::vector<double>>& numbers) {
    const size_t finer = 3;
    std::array<SegmentRule, SIZES> rules;
    for (size_t i = 0; i < SIZES; ++i) {
        const size_t size = size_t{1} << i;
        for (const size_t n : {size, finer, finer, finer * size, size * finer, 4 * size}) numbers.emplace_back(n, 0.1);
        const auto* at = &numbers[numbers.size() - 6];
        rules[i] = {size, finer, at[0].data(), at[1].data(), at[2].data(), at[3].data(), at[4].data(), at[5].data()};
        // the vectors' own buffers stay where they are when `numbers` grows
    }
    return rules;
}

// Integrates such a program over lines alone on two legs of a path, with corners on the pieces and at their edges.
template <class Values, class Below>
void integrate_legs(Values values, Below below) {
    const size_t lines = 1 + static_cast<size_t>(below(2)), points = 2 + static_cast<size_t>(below(60)),
                 corners = static_cast<size_t>(below(90)), rows = 2;
    const Program program = every_step(lines, 1, 0, values);
    std::vector<double> time(points), corner_time;
    for (size_t i = 0; i < points; ++i) time[i] = static_cast<double>(i) / static_cast<double>(points - 1);
    for (size_t c = 0; c < corners; ++c) corner_time.push_back(static_cast<double>(below(200)) / 199.0);
    std::sort(corner_time.begin(), corner_time.end());
    const std::vector<int64_t> path = {0, 1}, begin = {0, static_cast<int64_t>(corners / 2)},
                               end = {begin[1], static_cast<int64_t>(corners)};
    std::vector<int64_t> place(corners, -1);
    for (size_t c = 0; c < std::min(rows, corners); ++c) place[c] = static_cast<int64_t>(c);
    const std::vector<double> constants = values(corners + 2), allowed(2, 1e-6), parts = values(2 * lines),
                              read = values(points * lines);
    std::vector<double> before(corners), after(corners), joints(rows * lines), lost(2), moved(2), tallest(2);
    std::vector<std::vector<double>> numbers;
    LegHeads all;
    all.program = &program, all.rules = some_rules(numbers), all.lengths = {0.02, 0.1, 0.3}, all.legs = 2;
    all.path = path.data(), all.begin = begin.data(), all.end = end.data(), all.corner_time = corner_time.data();
    all.place = place.data(), all.constants = constants.data(), all.allowed = allowed.data();
    all.parts = parts.data(), all.slowest = 1e-3, all.before = before.data(), all.after = after.data();
    all.joints = joints.data(), all.lost = lost.data(), all.moved = moved.data(), all.tallest = tallest.data();
    LegHead head(all);
    for (size_t leg = 0; leg < 2; ++leg) {
        head.run(leg, time.data(), read.data(), points);
        if (head.moments().size() != (points - 1) * lines) std::abort();
    }
}

// Integrates such a program over `panels` panels of one path, two corners on each.
template <class Values, class Below>
void integrate_head(Values values, Below below) {
    const size_t panels = 1 + static_cast<size_t>(below(3)), order = 1 + static_cast<size_t>(below(12)),
                 curves = static_cast<size_t>(below(3)), lines = 1 + static_cast<size_t>(below(2)),
                 joints = curves + lines, constants = 1 + static_cast<size_t>(below(2));
    const size_t states = 2 * panels + 1, corners = 2 * panels, degrees = static_cast<size_t>(below(2)) * 5;
    const Program program = every_step(joints, constants, degrees, values);
    std::vector<double> low, high, start, length, time;
    std::vector<int64_t> begin, end, state, left, place(corners, 0);
    for (size_t p = 0; p < panels; ++p) {
        const double step = 1.0 / static_cast<double>(panels), from = step * static_cast<double>(p);
        low.push_back(from), high.push_back(from + step), start.push_back(from), length.push_back(step);
        time.push_back(from + 0.25 * step), time.push_back(below(2) ? from + step : from + 0.25 * step);
        begin.push_back(static_cast<int64_t>(2 * p)), end.push_back(static_cast<int64_t>(2 * p + 2)),
            left.push_back(static_cast<int64_t>(p));
    }
    state = begin;
    const std::vector<double> series = values(panels * order * curves), steep = values(panels * order * curves),
                              doubt = values(panels * curves), rows = values((panels + 1) * lines),
                              given = values(states * constants), allowed(panels, 1e-6),
                              table = values(states * degrees), slopes = values(states * degrees);
    const SeriesTable tabulated{table.data(), slopes.data(), degrees ? states : 0, degrees, 1, 0.0, 0.5};
    const PanelsView view{panels,        order,         curves,        lines,        1,
                          low.data(),    high.data(),   begin.data(),  end.data(),   state.data(),
                          state.data(),  series.data(), steep.data(),  doubt.data(), rows.data(),
                          left.data(),   start.data(),  length.data(), time.data(),  given.data(),
                          allowed.data()};
    std::vector<std::vector<double>> numbers;
    const std::array<SegmentRule, SIZES> rules = some_rules(numbers);
    std::vector<double> curve_moments(panels * (order + 2) * curves), line_moments(panels * lines), lost(panels),
        wander(SIZES * panels), sway(panels * curves), off(2 * SIZES * panels * joints), tallest(panels),
        before(corners), after(corners);
    std::vector<uint8_t> unsure(panels);
    const HeadMoments out{curve_moments.data(), line_moments.data(), lost.data(),   wander.data(), sway.data(),
                          off.data(),           tallest.data(),      unsure.data(), before.data(), after.data()};
    SharedJoints shared;
    HeadIntegral(program, tabulated, view, rules, {0.02, 0.1, 0.3}, place.data(), out).run(0, panels, shared);
    if (shared.joints.size() != shared.corner.size() * joints) std::abort();
}

// The curves of such a program on panels of one path, and the credit of their moments; by columns or by lines.
template <class Values, class Below>
void credit_curves(Values values, Below below) {
    const size_t panels = 1 + static_cast<size_t>(below(9)), order = 1 + static_cast<size_t>(below(12)),
                 lines = 1 + static_cast<size_t>(below(70)), columns = static_cast<size_t>(below(70)), k = 2;
    const Program program = every_step(lines, 0, 0, values);
    std::vector<double> low, high, start(panels, 0.0), length(panels, 1.0);
    std::vector<int64_t> left(panels, 0), path(panels, 0);
    for (size_t p = 0; p < panels; ++p)
        low.push_back(static_cast<double>(p) / static_cast<double>(panels)),
            high.push_back(static_cast<double>(p + 1) / static_cast<double>(panels));
    const std::vector<double> nodes(order, 0.25), rule(order * order, 0.5),
        rows = values(2 * lines), matrix = values(columns * lines), move = values(columns);
    const CurvePanels view{
        panels,      order,        lines,         1,           nodes.data(), rule.data(), low.data(),
        high.data(), start.data(), length.data(), left.data(), rows.data(),  columns,     matrix.data(),
        move.data(), path.data(),  {0.0, 0.7}};
    const size_t top = std::min<size_t>(order, 4), parts = view.parts();
    std::vector<double> ends(panels * order), coefficients(panels * order), steepness(panels * order), doubt(panels),
        gradient(panels * lines * order), last(top * panels * parts), first(panels), above(order * panels),
        total(order * panels);
    const CurveValues found{ends.data(), coefficients.data(), steepness.data(), doubt.data(), gradient.data(),
                            last.data(), first.data(),        above.data(),     total.data()};
    CurvePass pass(program, view, found);
    const size_t together = panels_together(order);
    for (size_t p = 0; p < panels; p += together) pass.run(p, std::min(together, panels - p));

    const size_t joints = 1 + static_cast<size_t>(below(2));
    const std::vector<double> moments = values(panels * (order + 2) * k), sway(panels * k, 0.1),
                              off(2 * SIZES * panels * joints * k, 0.1);
    const CurveMoments given{panels,       order,           1,
                             lines,        parts,           k,
                             joints,       gradient.data(), last.data(),
                             first.data(), above.data(),    total.data(),
                             doubt.data(), doubt.data(),    length.data(),
                             rule.data(),  moments.data(),  sway.data(),
                             off.data(),   {0.0, 0.7},      1e3};
    std::vector<double> sums(k * panels * lines), error(panels * k), largest(panels * k), speed(order * panels * k),
        turn(SIZES * panels * k), total_turn(SIZES * panels * k), rest(panels * k);
    const CurveCredit out{sums.data(), error.data(),      largest.data(), speed.data(),
                          turn.data(), total_turn.data(), rest.data()};
    CurveSums sum(given, out);
    for (size_t p = 0; p < panels; ++p) sum.add(0, p);
}

// The same products by every instruction set, bit for bit, and those of a loop over points.
template <class Values, class Below>
bool same_products(Values values, Below below) {
    const size_t rows = 1 + static_cast<size_t>(below(9)), inner = static_cast<size_t>(below(9)),
                 points = 1 + static_cast<size_t>(below(static_cast<int>(POINTS)));
    const std::vector<double> matrix = values(rows * inner), from = values(inner * POINTS), to = values(rows * POINTS);
    std::vector<double> expected = to, found = to;
    for (size_t r = 0; r < rows; ++r)
        for (size_t j = 0; j < inner; ++j)
            for (size_t i = 0; i < points; ++i)
                expected[r * POINTS + i] += matrix[r * inner + j] * from[j * POINTS + i];
    const auto agree = [&] {
        bool same = true;
        for (size_t r = 0; r < rows; ++r)
            for (size_t i = 0; i < points; ++i) {
                const double a = found[r * POINTS + i], b = expected[r * POINTS + i];
                same = same && (a == b || (a != a && b != b));
            }
        found = to;
        return same;
    };
    products_loop<Point2, 2>(matrix.data(), rows, inner, from.data(), points, found.data());
    bool same = agree();
#ifdef GIGRAD_X86
    if (this_processor().avx2) {
        add_products_avx2(matrix.data(), rows, inner, from.data(), points, found.data());
        same = agree() && same;
    }
    if (this_processor().avx512) {
        add_products_avx512(matrix.data(), rows, inner, from.data(), points, found.data());
        same = agree() && same;
    }
#endif
    return same;
}

// The parts of speeds on some panels; none where there are no columns.
inline void split_speeds(const double* rows, size_t n, size_t nodes, size_t columns) {
    const std::vector<double> rule(nodes * nodes, 0.5);
    const size_t top = nodes < 4 ? nodes : 4;
    std::vector<double> last(top * n * columns), first(n), above(nodes * n), total(nodes * n);
    speed_parts(rows, n, nodes, columns, rule.data(), {last.data(), first.data(), above.data(), total.data()});
}

// The credit of pairs for a forest whose leaves count for two outputs, every other number times a column.
inline void walk_linear_leaves(const Forest& forest, const LaneKernel* kernel, const Rows& starts, const Rows& ends,
                               const double* from, const double* to, size_t columns) {
    if (forest.n_outputs() < 2) return;
    std::vector<int64_t> column(forest.n_outputs()), target(column.size()), player(columns, 0);
    for (size_t o = 0; o < column.size(); ++o)
        column[o] = o % 2 ? static_cast<int64_t>(o % columns) : -1, target[o] = static_cast<int64_t>(o % 2);
    const std::vector<double> weight(column.size(), 1.0);
    const LeafLines leaves(forest, column.data(), target.data(), weight.data());
    std::vector<double> out(ends.n_rows * forest.n_variables() * 2), weights(starts.n_rows, 0.5);
    linear_pairs(forest, leaves, starts, ends, from, to, columns, player.data(), 2, 2, out.data());
    linear_population(forest, kernel, leaves, starts, weights.data(), ends, from, to, columns, player.data(), 2, 2,
                      out.data());
}

}  // namespace gigrad
