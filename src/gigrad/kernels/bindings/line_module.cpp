// Python bindings of layers of units with kinks along paths.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "core/forest.hpp"
#include "core/parallel.hpp"
#include "smooth/interval_kinks.hpp"
#include "smooth/line_net.hpp"
#include "smooth/slow_rows.hpp"
#include "smooth/unit_pulls.hpp"

namespace gigrad {

namespace {

using Columns = std::vector<std::pair<size_t, size_t>>;
// operation, width, the steps that it reads, weight and bias, slopes of units below, at and above zero, columns gathered
using LineFields =
    std::tuple<std::string, size_t, std::vector<size_t>, Matrix, Vector<double>, std::vector<double>, Columns>;

const std::vector<std::string> OPERATIONS = {"straight", "units", "affine", "gather", "sum"};

// Data of the traced legs for the backward pass.
struct LineTrace {
    const LineNet* net = nullptr;
    std::vector<LegTrace> legs;
    std::vector<size_t> offsets;
    std::vector<double> time;
};

LineStep made(const LineFields& fields, const LineNet& net) {
    const auto& [operation, width, in, weight, bias, slopes, columns] = fields;
    const auto at = std::find(OPERATIONS.begin(), OPERATIONS.end(), operation);
    if (at == OPERATIONS.end()) refuse("a line has no step named " + operation + ".");
    LineStep s;
    s.operation = static_cast<LineOperation>(at - OPERATIONS.begin());
    s.width = width, s.in = in, s.columns = columns;
    bool good = width > 0;
    for (const size_t step : in) good = good && step < net.steps.size();
    const size_t read = good && !in.empty() ? net.steps[in[0]].width : 0;
    switch (s.operation) {
        case LineOperation::straight:
            good = good && in.empty();
            break;
        case LineOperation::units:
            good = good && in.size() == 1 && read == width && slopes.size() == 3;
            if (good) s.below = slopes[0], s.zero = slopes[1], s.above = slopes[2];
            break;
        case LineOperation::affine:
            good =
                good && in.size() == 1 && weight.shape(0) == width && weight.shape(1) == read && bias.size() == width;
            break;
        case LineOperation::gather:
            good = good && columns.size() == width;
            for (const auto& [from, column] : columns)
                good = good && from < in.size() && column < net.steps[in[from]].width;
            break;
        case LineOperation::sum:
            good = good && !in.empty();
            for (const size_t step : in) good = good && net.steps[step].width == width;
            break;
    }
    if (!good) refuse("a step of a line must read what earlier steps give, in arrays that go together.");
    if (s.operation == LineOperation::affine) {
        s.weight.assign(weight.data(), weight.data() + weight.size());
        s.bias.assign(bias.data(), bias.data() + bias.size());
        s.rows.resize(s.weight.size());
        for (size_t r = 0; r < width; ++r)
            for (size_t j = 0; j < read; ++j) s.rows[j * width + r] = s.weight[r * read + j];
    }
    return s;
}

void init_net(LineNet* self, const std::vector<LineFields>& steps, const std::vector<size_t>& ends) {
    new (self) LineNet();
    for (const LineFields& fields : steps) {
        LineStep step = made(fields, *self);
        if (step.operation == LineOperation::straight) step.first = self->straight, self->straight += step.width;
        self->steps.push_back(std::move(step));
    }
    for (const size_t end : ends)
        if (end >= self->steps.size()) refuse("the ends of a line must be among its steps.");
    if (ends.empty()) refuse("a line needs an end.");
    self->ends = ends;
    self->finish();
}

nb::tuple py_trace(const LineNet& net, const Vector<double>& low, const Vector<double>& high, const Matrix& rows,
                   size_t n_threads) {
    const size_t legs = low.size();
    if (high.size() != legs || rows.shape(0) != 2 * legs || rows.shape(1) != net.straight)
        refuse("legs need two times and two rows of all straight columns each.");
    LineTrace trace;
    trace.net = &net;
    trace.legs.resize(legs);
    std::vector<std::vector<double>> times(legs), values(legs);
    {
        nb::gil_scoped_release released;
        parallel(legs, n_threads, [&](auto next) {
            LineTracer tracer(net);
            for (size_t i; next(i);) {
                const double* from = rows.data() + 2 * i * net.straight;
                tracer.trace(low(i), high(i), from, from + net.straight, trace.legs[i]);
                times[i] = tracer.finest();
                values[i].resize(times[i].size() * net.width);
                tracer.ends(trace.legs[i], values[i].data());
            }
        });
        trace.offsets.push_back(0);
        for (const auto& t : times) trace.offsets.push_back(trace.offsets.back() + t.size());
        trace.time.reserve(trace.offsets.back());
        for (const auto& t : times) trace.time.insert(trace.time.end(), t.begin(), t.end());
    }
    auto offsets =
        make<int64_t>({legs + 1}, [&](int64_t* out) { std::copy(trace.offsets.begin(), trace.offsets.end(), out); });
    auto time =
        make<double>({trace.time.size()}, [&](double* out) { std::copy(trace.time.begin(), trace.time.end(), out); });
    auto ends = make<double>({trace.time.size(), net.width}, [&](double* out) {
        for (const auto& v : values) out = std::copy(v.begin(), v.end(), out);
    });
    return nb::make_tuple(nb::cast(std::move(trace)), offsets, time, ends);
}

Numpy<double> py_pull_back(const LineNet& net, const LineTrace& trace, const Matrix& cotangent, size_t n_threads) {
    const size_t legs = trace.legs.size(), straight = net.straight, width = net.width;
    if (trace.net != &net) refuse("legs are pulled back through the lines that they were traced along.");
    if (cotangent.shape(0) + legs != trace.time.size() || cotangent.shape(1) != width)
        refuse("a cotangent needs one row for each piece and the columns of all ends.");
    return make<double>({legs, straight}, [&](double* out) {
        parallel(legs, n_threads, [&](auto next) {
            LineTracer tracer(net);
            for (size_t i; next(i);) {
                const size_t first = trace.offsets[i];
                tracer.pull_back(trace.legs[i], &trace.time[first], trace.offsets[i + 1] - first,
                                 cotangent.data() + (first - i) * width, out + i * straight);
            }
        });
    });
}

// For every piece between two neighbouring times of a leg the corners on it, of those from begin[i] to end[i] of the leg:
// a corner at an edge belongs to the piece that begins there.
nb::tuple py_piece_corners(const Vector<int64_t>& offsets, const Vector<double>& time, const Vector<int64_t>& begin,
                           const Vector<int64_t>& end, const Vector<double>& corner_time) {
    const size_t legs = begin.size();
    bool good = offsets.size() == legs + 1 && end.size() == legs && offsets(0) == 0;
    for (size_t i = 0; good && i < legs; ++i)
        good = offsets(i + 1) >= offsets(i) + 2 && begin(i) >= 0 && begin(i) <= end(i) &&
               end(i) <= static_cast<int64_t>(corner_time.size());
    if (!good || offsets(legs) != static_cast<int64_t>(time.size()))
        refuse("legs need two or more times each, and corners that exist.");
    const size_t pieces = time.size() - legs;
    std::vector<int64_t> first(pieces), last(pieces);
    for (size_t i = 0, piece = 0; i < legs; ++i) {
        int64_t at = begin(i);
        for (int64_t p = offsets(i); p + 1 < offsets(i + 1); ++p, ++piece) {
            first[piece] = at;
            if (p + 2 == offsets(i + 1))
                at = end(i);
            else
                while (at < end(i) && corner_time(at) < time(p + 1)) ++at;
            last[piece] = at;
        }
    }
    const auto given = [&](const std::vector<int64_t>& from) {
        return make<int64_t>({pieces}, [&](int64_t* out) { std::copy(from.begin(), from.end(), out); });
    };
    return nb::make_tuple(given(first), given(last));
}

// The parts of lists of kinks by interval: first (intervals + 1,), and a unit and numbers for each kink.
void check_kinks(const Vector<int64_t>& first, const Vector<int64_t>& unit, size_t intervals, size_t units,
                 std::initializer_list<size_t> sizes) {
    bool good = first.size() == intervals + 1 && first(0) == 0 && first(intervals) == static_cast<int64_t>(unit.size());
    for (size_t k = 0; good && k < intervals; ++k) good = first(k) <= first(k + 1);
    for (size_t i = 0; good && i < unit.size(); ++i) good = unit(i) >= 0 && static_cast<size_t>(unit(i)) < units;
    for (const size_t size : sizes) good = good && size == unit.size();
    if (!good) refuse("kinks must be listed interval by interval, with units that exist.");
}

nb::tuple py_interval_kinks(const Matrix& values, const Vector<int64_t>& left, const Vector<double>& time,
                            const Vector<int64_t>& first, const Vector<int64_t>& unit, const Vector<double>& kink_time,
                            const Vector<double>& bend, const Matrix& rows) {
    const size_t intervals = left.size(), units = values.shape(1);
    if (time.size() != values.shape(0)) refuse("values need one time for each point.");
    for (size_t k = 0; k < intervals; ++k)
        if (left(k) < 0 || static_cast<size_t>(left(k)) + 1 >= time.size())
            refuse("an interval must lie between two points.");
    if (rows.shape(0) && rows.shape(1) != units) refuse("rows and values must have the same number of columns.");
    check_kinks(first, unit, intervals, rows.shape(0), {kink_time.size(), bend.size()});
    IntervalKinks found;
    {
        nb::gil_scoped_release released;
        IntervalFinder finder(units, {first.data(), unit.data(), kink_time.data(), bend.data(), rows.data()});
        for (size_t k = 0; k < intervals; ++k) {
            const auto at = static_cast<size_t>(left(k));
            const double* a = values.data() + at * units;
            finder.find(k, a, a + units, time(at), time(at + 1), found);
        }
    }
    const auto given = [](const auto& from) {
        using T = typename std::decay_t<decltype(from)>::value_type;
        return make<T>({from.size()}, [&](T* out) { std::copy(from.begin(), from.end(), out); });
    };
    return nb::make_tuple(given(found.first), given(found.unit), given(found.time), given(found.rate));
}

Numpy<double> py_late_products(const Matrix& slope, const Matrix& rows, const Vector<int64_t>& first,
                               const Vector<int64_t>& unit, const Vector<double>& time, const Vector<double>& late,
                               const Vector<int64_t>& first_above, const Vector<int64_t>& unit_above,
                               const Vector<double>& time_above, const Vector<double>& late_above,
                               const Vector<double>& step_above) {
    const size_t intervals = slope.shape(0), columns = slope.shape(1);
    if (rows.shape(1) != columns) refuse("slope and rows must have the same columns.");
    check_kinks(first, unit, intervals, rows.shape(0), {time.size(), late.size()});
    check_kinks(first_above, unit_above, intervals, columns, {time_above.size(), late_above.size(), step_above.size()});
    return make<double>({unit.size()}, [&](double* out) {
        late_products(
            slope.data(), intervals, columns, rows.data(), {first.data(), unit.data(), time.data(), late.data()},
            {first_above.data(), unit_above.data(), time_above.data(), late_above.data()}, step_above.data(), out);
    });
}

void check_columns(const Vector<int64_t>& used, size_t columns) {
    for (size_t j = 0; j < used.size(); ++j)
        if (used(j) < 0 || static_cast<size_t>(used(j)) >= columns || (j > 0 && used(j) <= used(j - 1)))
            refuse("columns must lie within their rows, in order.");
}

void check_anchors(const Vector<int64_t>& anchor, size_t rows) {
    bool good = anchor.size() > 0 && rows > 0 && anchor(0) == 0;
    for (size_t k = 0; good && k + 1 < anchor.size(); ++k) good = anchor(k) < anchor(k + 1);
    if (!good || anchor(anchor.size() - 1) + 1 != static_cast<int64_t>(rows))
        refuse("anchors must be rows in order, the first and the last among them.");
}

nb::tuple py_split_rows(const Matrix& rows, const Vector<int64_t>& anchor, const Vector<int64_t>& used,
                        const Vector<double>& probe) {
    const size_t n = rows.shape(0), count = used.size();
    check_anchors(anchor, n);
    check_columns(used, rows.shape(1));
    if (probe.size() != count) refuse("a probe needs a number for each column that is used.");
    double *share = nullptr, *expected = nullptr;
    auto shares = make<double>({n, 2}, [&](double* out) { share = out; });
    auto sums = make<double>({n}, [&](double* out) { expected = out; });
    auto rest = make<float>({n, count}, [&](float* out) {
        split_rows(rows.data(), n, rows.shape(1), anchor.data(), anchor.size(), used.data(), count, probe.data(), share,
                   out, expected);
    });
    return nb::make_tuple(shares, rest, sums);
}

double py_join_rows(const Matrix& product, const Vector<int64_t>& anchor, const Matrix& share,
                    const nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& fine,
                    const Vector<int64_t>& used, const Vector<int64_t>& checked, const Vector<double>& sign,
                    const Vector<double>& expected,
                    const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& out) {
    const size_t n = fine.shape(0), count = used.size(), width = product.shape(1);
    check_anchors(anchor, n);
    check_columns(used, width);
    check_columns(checked, count);
    if (product.shape(0) != anchor.size() || share.shape(0) != n || share.shape(1) != 2 || fine.shape(1) != count ||
        expected.size() != n || sign.size() != checked.size() || out.shape(0) != n || out.shape(1) != width)
        refuse("products of rows need a row for each anchor and each rest.");
    nb::gil_scoped_release released;
    return join_rows(product.data(), n, width, anchor.data(), anchor.size(), share.data(), fine.data(), used.data(),
                     count, checked.data(), sign.data(), checked.size(), expected.data(), out.data());
}

Numpy<double> py_units_between(const Matrix& rows, const Vector<int64_t>& at, const Vector<double>& part,
                               bool sigmoid) {
    if (part.size() != at.size()) refuse("at and part must have the same number of points.");
    for (size_t i = 0; i < at.size(); ++i)
        if (at(i) < 0 || static_cast<size_t>(at(i)) + 1 >= rows.shape(0)) refuse("a point must lie between two rows.");
    return make<double>({at.size(), rows.shape(1)}, [&](double* out) {
        units_between(rows.data(), rows.shape(1), at.data(), part.data(), at.size(), sigmoid, out);
    });
}

nb::tuple py_pull_units(const Matrix& values, const std::tuple<double, double, double>& c, const Matrix& cotangent,
                        const Matrix& matrix, const Matrix& ends, const Vector<int64_t>& left,
                        const Vector<double>& rate,
                        const nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>& weight,
                        const Matrix& to_coefficients) {
    const size_t panels = left.size(), nodes = to_coefficients.shape(0), units = values.shape(1);
    const size_t outputs = matrix.shape(0), weights = weight.shape(0);
    if (units % PULLED_UNITS || to_coefficients.shape(1) != nodes || values.shape(0) != panels * nodes ||
        cotangent.shape(0) != panels * nodes || cotangent.shape(1) != outputs || matrix.shape(1) != units ||
        ends.shape(1) != units || rate.size() != panels || weight.shape(1) != panels || weight.shape(2) != nodes)
        refuse("a layer of units on panels needs arrays that go together.");
    for (size_t p = 0; p < panels; ++p)
        if (left(p) < 0 || static_cast<size_t>(left(p)) + 1 >= ends.shape(0))
            refuse("a panel must lie between two points.");
    UnitPanels x{};
    x.panels = panels, x.nodes = nodes, x.outputs = outputs, x.units = units, x.weights = weights;
    x.values = values.data(), x.cotangent = cotangent.data(), x.matrix = matrix.data(), x.ends = ends.data();
    x.left = left.data(), x.rate = rate.data(), x.weight = weight.data(), x.to_coefficients = to_coefficients.data();
    std::tie(x.c[0], x.c[1], x.c[2]) = c;
    double *total = nullptr, *squares = nullptr;
    auto totals = make<double>({nodes, panels}, [&](double* out) { total = out; });
    auto all = make<double>({nodes, panels}, [&](double* out) { squares = out; });
    auto sums = make<double>({weights, panels, units}, [&](double* out) { pull_units(x, out, total, squares); });
    return nb::make_tuple(sums, totals, all);
}

}  // namespace

void bind_lines(nb::module_& m) {
    nb::class_<LineNet>(m, "LineNet").def("__init__", &init_net);
    nb::class_<LineTrace>(m, "LineTrace");
    m.def("trace_lines", &py_trace);
    m.def("pull_lines_back", &py_pull_back);
    m.def("piece_corners", &py_piece_corners);
    m.def("interval_kinks", &py_interval_kinks);
    m.def("late_products", &py_late_products);
    m.def("split_rows", &py_split_rows);
    m.def("join_rows", &py_join_rows);
    m.def("units_between", &py_units_between);
    m.def("pull_units", &py_pull_units);
}

}  // namespace gigrad
