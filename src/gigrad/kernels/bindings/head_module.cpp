// Python bindings of the head of a model: its program, and its integration over panels.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "core/forest.hpp"
#include "smooth/integral.hpp"
#include "smooth/pieces.hpp"

namespace gigrad {

namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Filled = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Registers = std::vector<size_t>;
// operation, width, first registers and widths of the inputs, two arrays, function, parameter, whether the input may
// have extrema
using StepFields =
    std::tuple<std::string, size_t, Registers, Registers, Vector<double>, Vector<double>, std::string, double, bool>;
// nodes, finer nodes and weights, refine, up_to, ends
using RuleFields = std::tuple<Vector<double>, Vector<double>, Vector<double>, Matrix, Matrix, Matrix>;

const std::vector<std::string> OPERATIONS = {"affine", "function", "knots",  "softmax", "log_softmax",
                                             "sum",    "product",  "gather", "series"};

std::vector<double> copied(const Vector<double>& from) { return {from.data(), from.data() + from.size()}; }

size_t found(const std::vector<std::string>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) refuse("a program has no step named " + name + ".");
    return static_cast<size_t>(at - names.begin());
}

void check_step(const Step& s, size_t registers) {
    const bool gather = s.operation == Operation::gather, affine = s.operation == Operation::affine;
    const size_t parents = s.operation == Operation::product ? 2 : 1;
    bool good = s.in.size() == s.in_width.size() && (gather || s.in.size() >= parents) && s.width > 0;
    for (size_t p = 0; good && p < s.in.size(); ++p) {
        good = s.in[p] + s.in_width[p] <= registers;
        const bool single =
            s.in_width[p] == 1 && (s.operation == Operation::product || s.operation == Operation::series);
        if (!affine && !gather && !single) good = good && s.in_width[p] == s.width;
    }
    for (const size_t r : s.registers) good = good && r < registers;
    if (affine) good = good && s.weight.size() == s.width * s.in_width[0] && s.bias.size() == s.width;
    if (gather) good = good && s.registers.size() == s.width;
    if (s.operation == Operation::series) good = good && s.in_width[0] == 1;
    if (!good) refuse("a step of a program must read what earlier steps give, in arrays that go together.");
}

Step made(const StepFields& fields, size_t registers) {
    const auto& [operation, width, in, in_width, a, b, function, parameter, turns] = fields;
    Step s{static_cast<Operation>(found(OPERATIONS, operation)),
           0,
           width,
           in,
           in_width,
           {},
           {},
           {},
           Function::identity,
           parameter,
           {},
           {},
           turns};
    if (s.operation == Operation::gather) {
        s.registers = in;
        s.in.clear(), s.in_width.clear();
    }
    if (s.operation == Operation::function) s.function = static_cast<Function>(found(function_names(), function));
    if (s.operation == Operation::knots) {
        if (a.size() < 2 || a.size() != b.size()) refuse("knots need two or more x, and as many y.");
        s.knots = Knots(copied(a), copied(b));
    }
    if (s.operation == Operation::affine) s.weight = copied(a), s.bias = copied(b);
    check_step(s, registers);
    if (s.operation == Operation::affine) {
        s.transposed.resize(s.weight.size());
        for (size_t r = 0; r < s.width; ++r)
            for (size_t j = 0; j < s.in_width[0]; ++j) s.transposed[j * s.width + r] = s.weight[r * s.in_width[0] + j];
    }
    return s;
}

void init_program(Program* self, size_t joints, size_t constants, const std::vector<StepFields>& steps, size_t output,
                  size_t outputs) {
    new (self) Program();
    self->joints = joints, self->constants = constants, self->registers = joints + constants;
    for (const StepFields& fields : steps) self->add(made(fields, self->registers));
    if (outputs < 1 || output + outputs > self->registers)
        refuse("the output of a program must be among its registers.");
    self->output = output, self->outputs = outputs;
    self->finish();
}

void check_view(const PanelsView& v, const Program& program, size_t corners, size_t states, size_t points,
                const SeriesTable& table) {
    for (size_t p = 0; p < v.panels; ++p) {
        const int64_t count = v.end[p] - v.begin[p] + 1;
        bool good = v.begin[p] >= 0 && count >= 1 && v.end[p] <= static_cast<int64_t>(corners) && v.state[p] >= 0;
        good = good && (program.constants == 0 || v.state[p] + count <= static_cast<int64_t>(states));
        good = good && (v.lines == 0 || (v.left[p] >= 0 && v.left[p] + 1 < static_cast<int64_t>(points)));
        good = good && v.row[p] >= 0 && (table.rows == 0 || v.row[p] + count <= static_cast<int64_t>(table.rows));
        if (!good)
            refuse("panel " + std::to_string(p) + " lies beyond the corners, states, lines or rows of the table.");
    }
    for (const Step& s : program.steps)
        if (s.operation == Operation::series && (table.rows == 0 || table.width != s.width))
            refuse("the program needs a table of its series.");
}

// Consecutive panels that are processed together: 0 = first, ..., the number of panels. Without curves whole legs, so
// that the rounding of one does not depend on others.
std::vector<size_t> tasks(const PanelsView& v) {
    std::vector<size_t> edges = {0};
    size_t segments = 0;
    for (size_t p = 0; p < v.panels; ++p) {
        segments += static_cast<size_t>(v.end[p] - v.begin[p] + 1);
        const bool last = p + 1 == v.panels, inside = !last && v.curves == 0 && v.left[p + 1] == v.left[p] + 1;
        if (last || (segments >= TASK && !inside)) edges.push_back(p + 1), segments = 0;
    }
    return edges;
}

template <class T>
Numpy<T> zeros(std::initializer_list<size_t> shape) {
    size_t size = 1;
    for (const size_t n : shape) size *= n;
    return make<T>(shape, [size](T* out) { std::fill(out, out + size, T{}); });
}

std::array<SegmentRule, SIZES> made(const std::vector<RuleFields>& rules) {
    if (rules.size() != SIZES) refuse("segments need a rule of each size.");
    std::array<SegmentRule, SIZES> out;
    for (size_t i = 0; i < SIZES; ++i) {
        const auto& [nodes, finer_nodes, finer_weights, refine, up_to, ends] = rules[i];
        const size_t size = nodes.size(), finer = finer_nodes.size();
        if (size != size_t{1} << i || finer > POINTS || finer_weights.size() != finer || refine.shape(0) != finer ||
            refine.shape(1) != size || up_to.shape(0) != size || up_to.shape(1) != finer || ends.shape(0) != 4 ||
            ends.shape(1) != size)
            refuse("rule " + std::to_string(i) + " of a segment has arrays that do not go together.");
        out[i] = {size,          finer,        nodes.data(), finer_nodes.data(), finer_weights.data(),
                  refine.data(), up_to.data(), ends.data()};
    }
    return out;
}

// A program integrated over panels; writes the score beside corners.
nb::tuple integrated(const Program& program, const SeriesTable& series, const PanelsView& view,
                     const std::vector<RuleFields>& rules, const Vector<double>& limits, const Vector<int64_t>& place,
                     const Filled& before, const Filled& after, size_t n_threads) {
    const std::array<SegmentRule, SIZES> segment_rules = made(rules);
    const size_t panels = view.panels, curves = view.curves, lines = view.lines, k = program.outputs,
                 corners = place.size();
    bool good = limits.size() == SIZES - 1;
    for (const Filled* side : {&before, &after}) good = good && side->shape(0) == corners && side->shape(1) == k;
    if (!good) refuse("the arrays of some panels must go together.");
    const std::array<double, SIZES - 1> lengths = {limits(0), limits(1), limits(2)};
    const size_t degrees = view.order + 2;
    const size_t inner = curves == 0 && program.joints == 1 ? 1 : panels;  // a single line has no errors of its own
    auto curve_moments = zeros<double>({panels, degrees, curves, k}), line_moments = zeros<double>({panels, lines, k});
    auto lost = zeros<double>({panels, k}), wander = zeros<double>({SIZES, inner, k}),
         sway = zeros<double>({panels, curves, k});
    auto off = zeros<double>({2 * SIZES, inner, program.joints, k}), tallest = zeros<double>({panels, k});
    auto unsure = zeros<uint8_t>({panels});
    const HeadMoments out{curve_moments.data(), line_moments.data(), lost.data(),   wander.data(), sway.data(),
                          off.data(),           tallest.data(),      unsure.data(), before.data(), after.data()};
    const std::vector<size_t> edges = tasks(view);
    std::vector<SharedJoints> shared(edges.size() - 1);
    {
        nb::gil_scoped_release released;
        parallel(shared.size(), n_threads, [&](auto next) {
            HeadIntegral integral(program, series, view, segment_rules, lengths, place.data(), out);
            for (size_t task; next(task);) integral.run(edges[task], edges[task + 1], shared[task]);
        });
    }
    SharedJoints all;
    for (const SharedJoints& part : shared) {
        all.corner.insert(all.corner.end(), part.corner.begin(), part.corner.end());
        all.panel.insert(all.panel.end(), part.panel.begin(), part.panel.end());
        all.joints.insert(all.joints.end(), part.joints.begin(), part.joints.end());
    }
    const auto given = [](const auto& from, std::initializer_list<size_t> shape) {
        using T = typename std::decay_t<decltype(from)>::value_type;
        return make<T>(shape, [&](T* to) { std::copy(from.begin(), from.end(), to); });
    };
    return nb::make_tuple(curve_moments, line_moments, lost, wander, sway, off, tallest, unsure,
                          given(all.corner, {all.corner.size()}), given(all.panel, {all.panel.size()}),
                          given(all.joints, {all.corner.size(), program.joints}));
}

nb::tuple py_head_moments(const Program& program, const std::vector<Vector<double>>& times,
                          const std::vector<Vector<int64_t>>& places, const Cube& coefficients, const Cube& steepness,
                          const Matrix& doubt, const Matrix& line_rows, const Vector<double>& corner_time,
                          const Vector<int64_t>& place, const Matrix& constants, const Matrix& allowed,
                          const std::vector<RuleFields>& rules, const Vector<double>& limits, const Cube& table,
                          const Cube& table_slopes, double middle, double scale, const Filled& before,
                          const Filled& after, size_t n_threads) {
    const size_t panels = coefficients.shape(0), curves = coefficients.shape(2), k = program.outputs,
                 lines = line_rows.shape(1);
    bool good = times.size() == 4 && places.size() == 5 && curves + lines == program.joints;
    for (const auto& t : times) good = good && t.size() == panels;
    for (const auto& t : places) good = good && t.size() == panels;
    good = good && steepness.shape(0) == panels && steepness.shape(1) == coefficients.shape(1) &&
           steepness.shape(2) == curves;
    good = good && doubt.shape(0) == panels && doubt.shape(1) == curves && constants.shape(1) == program.constants;
    good = good && allowed.shape(0) == panels && allowed.shape(1) == k && place.size() == corner_time.size();
    good = good && table.shape(0) == table_slopes.shape(0) && table.shape(1) == table_slopes.shape(1) &&
           table.shape(2) == table_slopes.shape(2);
    if (!good) refuse("the arrays of some panels must go together.");
    const SeriesTable series{table.data(), table_slopes.data(), table.shape(0), table.shape(1), table.shape(2), middle,
                             scale};
    const PanelsView view{panels,
                          coefficients.shape(1),
                          curves,
                          lines,
                          k,
                          times[0].data(),
                          times[1].data(),
                          places[0].data(),
                          places[1].data(),
                          places[2].data(),
                          places[3].data(),
                          coefficients.data(),
                          steepness.data(),
                          doubt.data(),
                          line_rows.data(),
                          places[4].data(),
                          times[2].data(),
                          times[3].data(),
                          corner_time.data(),
                          constants.data(),
                          allowed.data()};
    check_view(view, program, corner_time.size(), constants.shape(0), line_rows.shape(0), series);
    return integrated(program, series, view, rules, limits, place, before, after, n_threads);
}

// A head that reads lines alone, on the pieces of legs: each is a panel without curves.
nb::tuple py_line_moments(const Program& program, const Vector<int64_t>& offsets, const Vector<double>& time,
                          const Matrix& line_rows, const Vector<int64_t>& path, const Vector<int64_t>& begin,
                          const Vector<int64_t>& end, const Vector<double>& corner_time, const Vector<int64_t>& place,
                          const Matrix& constants, const Matrix& allowed, const std::vector<RuleFields>& rules,
                          const Vector<double>& limits, const Filled& before, const Filled& after, size_t n_threads) {
    const size_t legs = path.size(), k = program.outputs;
    const LegPieces pieces{legs, offsets.data(), time.data(), begin.data(), end.data(), corner_time.data()};
    bool good = offsets.size() == legs + 1 && begin.size() == legs && end.size() == legs &&
                pieces.sound(time.size(), corner_time.size()) && line_rows.shape(0) == time.size() &&
                line_rows.shape(1) == program.joints && constants.shape(1) == program.constants &&
                allowed.shape(1) == k && place.size() == corner_time.size();
    for (size_t i = 0; good && i < legs; ++i) good = path(i) >= 0 && path(i) < static_cast<int64_t>(allowed.shape(0));
    if (!good) refuse("legs need two or more times each, corners that exist, and arrays that go together.");
    const size_t panels = pieces.pieces();
    std::vector<double> low, high, length, most;
    std::vector<int64_t> first, last, state, left;
    const std::vector<int64_t> row(panels, 0);
    for (auto* list : {&low, &high, &length}) list->reserve(panels);
    for (auto* list : {&first, &last, &state, &left}) list->reserve(panels);
    most.reserve(panels * k);
    pieces.each_piece([&](size_t leg, size_t point, int64_t from, int64_t to) {
        low.push_back(time(point)), high.push_back(time(point + 1)), length.push_back(time(point + 1) - time(point));
        first.push_back(from), last.push_back(to), state.push_back(from + path(leg));
        left.push_back(static_cast<int64_t>(point));
        const double* limit = allowed.data() + static_cast<size_t>(path(leg)) * k;
        most.insert(most.end(), limit, limit + k);
    });
    PanelsView view;
    view.panels = panels, view.order = 1, view.lines = program.joints, view.outputs = k;
    view.low = low.data(), view.high = high.data(), view.piece_low = low.data(), view.piece_length = length.data();
    view.begin = first.data(), view.end = last.data(), view.state = state.data(), view.row = row.data();
    view.left = left.data(), view.line_rows = line_rows.data(), view.corner_time = corner_time.data();
    view.constants = constants.data(), view.allowed = most.data();
    const SeriesTable none;
    check_view(view, program, corner_time.size(), constants.shape(0), line_rows.shape(0), none);
    return integrated(program, none, view, rules, limits, place, before, after, n_threads);
}

}  // namespace

void bind_head(nb::module_& m) {
    nb::class_<Program>(m, "Program").def("__init__", &init_program);
    m.def("program_functions", [] { return function_names(); });
    m.def("head_moments", &py_head_moments);
    m.def("line_moments", &py_line_moments);
}

}  // namespace gigrad
