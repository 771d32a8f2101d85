// Python bindings of curves on panels: a program evaluated and differentiated at the nodes of a rule.
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "core/forest.hpp"
#include "core/parallel.hpp"
#include "smooth/curve_credit.hpp"

namespace gigrad {

namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

void check_curves(const CurvePanels& view, const Program& program, size_t points, size_t paths) {
    bool good = program.constants == 0 && view.order >= 1 && view.order <= POINTS && points >= 2;
    for (const Step& step : program.steps) good = good && step.operation != Operation::series;
    if (!good) refuse("curves must read lines alone, at 1 to " + std::to_string(POINTS) + " nodes.");
    for (size_t p = 0; p < view.panels; ++p)
        if (view.left[p] < 0 || static_cast<size_t>(view.left[p]) + 1 >= points || view.path[p] < 0 ||
            (view.columns > 0 && static_cast<size_t>(view.path[p]) >= paths))
            refuse("panel " + std::to_string(p) + " lies beyond the lines or paths.");
}

nb::tuple py_curve_values(const Program& program, const std::vector<Vector<double>>& times, const Vector<int64_t>& left,
                          const Matrix& rows, const Vector<double>& nodes, const Matrix& to_coefficients,
                          const Matrix& matrix, const Matrix& move, const Vector<int64_t>& path, double least_rate,
                          double slow_decay, size_t n_threads) {
    const size_t n = left.size(), order = nodes.size(), lines = program.joints, curves = program.outputs,
                 columns = matrix.shape(0);
    bool good = times.size() == 4 && rows.shape(1) == lines && path.size() == n && to_coefficients.shape(0) == order &&
                to_coefficients.shape(1) == order &&
                (columns == 0 || (matrix.shape(1) == lines && move.shape(1) == columns));
    for (const auto& t : times) good = good && t.size() == n;
    if (!good) refuse("the arrays of some panels must go together.");
    const CurvePanels view{n,
                           order,
                           lines,
                           curves,
                           nodes.data(),
                           to_coefficients.data(),
                           times[0].data(),
                           times[1].data(),
                           times[2].data(),
                           times[3].data(),
                           left.data(),
                           rows.data(),
                           columns,
                           matrix.data(),
                           move.data(),
                           path.data(),
                           {least_rate, slow_decay}};
    check_curves(view, program, rows.shape(0), move.shape(0));
    CurveValues out{};
    const auto room = [](std::initializer_list<size_t> shape, double*& to) {
        return make<double>(shape, [&](double* data) { to = data; });
    };
    const size_t top = std::min<size_t>(order, 4);
    auto ends = room({n, order, curves}, out.ends), coefficients = room({n, order, curves}, out.coefficients),
         steepness = room({n, order, curves}, out.steepness), doubt = room({n, curves}, out.doubt),
         gradient = room({curves, n, lines, order}, out.gradient),
         last = room({curves, top, n, view.parts()}, out.last), first = room({curves, n}, out.first),
         above = room({curves, order, n}, out.above), total = room({curves, order, n}, out.total);
    const size_t together = panels_together(order), units = (n + together - 1) / together;
    {
        nb::gil_scoped_release released;
        parallel(units, n_threads, [&](auto next) {
            CurvePass pass(program, view, out);
            for (size_t unit; next(unit);) pass.run(unit * together, std::min(together, n - unit * together));
        });
    }
    return nb::make_tuple(ends, coefficients, steepness, doubt, gradient, last, first, above, total);
}

// The sums of derivatives (panels, lines, order) at nodes, weighted.
Numpy<double> py_weigh_nodes(const Cube& gradient, const Cube& weight) {
    const size_t panels = gradient.shape(0), lines = gradient.shape(1), order = gradient.shape(2), k = weight.shape(0);
    if (weight.shape(1) != panels || weight.shape(2) != order) refuse("there must be a weight for each node.");
    return make<double>({k, panels, lines}, [&](double* out) {
        std::fill_n(out, k * panels * lines, 0.0);
        for (size_t row = 0; row < k * panels; ++row)
            add_weighted(gradient.data() + row % panels * lines * order, weight.data() + row * order, lines, order,
                         out + row * lines);
    });
}

nb::tuple py_curve_credit(const Table& gradient, const Table& last, const Matrix& first, const Cube& above,
                          const Cube& total, const Matrix& doubt, const Matrix& astray, const Vector<double>& length,
                          const Matrix& to_coefficients, const Table& moments, const Cube& sway, const Table& off,
                          double least_rate, double slow_decay, double most_opposed) {
    const size_t curves = gradient.shape(0), panels = gradient.shape(1), lines = gradient.shape(2),
                 order = gradient.shape(3), k = moments.shape(3), joints = off.shape(2);
    const auto is = [](const auto& array, std::initializer_list<size_t> shape) {
        size_t i = 0;
        bool same = true;
        for (const size_t n : shape) same = same && array.shape(i++) == n;
        return same;
    };
    const bool good = order >= 1 && order <= POINTS && joints >= curves && is(first, {curves, panels}) &&
                      is(last, {curves, std::min<size_t>(order, 4), panels}) && is(above, {curves, order, panels}) &&
                      is(total, {curves, order, panels}) && is(doubt, {panels, curves}) &&
                      is(astray, {panels, curves}) && is(length, {panels}) && is(to_coefficients, {order, order}) &&
                      is(moments, {panels, order + 2, curves}) && is(sway, {panels, curves, k}) &&
                      is(off, {2 * SIZES, panels, joints, k});
    if (!good) refuse("the arrays of some panels must go together.");
    const CurveMoments view{panels,         order,
                            curves,         lines,
                            last.shape(3),  k,
                            joints,         gradient.data(),
                            last.data(),    first.data(),
                            above.data(),   total.data(),
                            doubt.data(),   astray.data(),
                            length.data(),  to_coefficients.data(),
                            moments.data(), sway.data(),
                            off.data(),     {least_rate, slow_decay},
                            most_opposed};
    CurveCredit out{};
    const auto room = [](std::initializer_list<size_t> shape, double*& to) {
        size_t size = 1;
        for (const size_t n : shape) size *= n;
        return make<double>(shape, [&](double* data) { std::fill_n(to = data, size, 0.0); });
    };
    auto sums = room({k, panels, lines}, out.sums), error = room({panels, k}, out.error),
         largest = room({panels, k}, out.largest), speed = room({order, panels, k}, out.total),
         turn = room({SIZES, panels, k}, out.largest_turn), total_turn = room({SIZES, panels, k}, out.total_turn),
         rest = room({panels, k}, out.off);
    {
        nb::gil_scoped_release released;
        CurveSums sum(view, out);
        for (size_t c = 0; c < curves; ++c)
            for (size_t p = 0; p < panels; ++p) sum.add(c, p);
    }
    return nb::make_tuple(sums, error, largest, speed, turn, total_turn, rest);
}

}  // namespace

void bind_curves(nb::module_& m) {
    m.def("curve_values", &py_curve_values);
    m.def("weigh_nodes", &py_weigh_nodes);
    m.def("curve_credit", &py_curve_credit);
}

}  // namespace gigrad
