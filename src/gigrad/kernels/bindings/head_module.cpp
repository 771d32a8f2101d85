// Python bindings of the head of a model: its program, and its integration over panels.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "core/forest.hpp"
#include "smooth/leg_head.hpp"
#include "smooth/line_net.hpp"

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

// Consecutive panels that are processed together: 0 = first, ..., the number of panels.
std::vector<size_t> tasks(const PanelsView& v) {
    std::vector<size_t> edges = {0};
    size_t segments = 0;
    for (size_t p = 0; p < v.panels; ++p) {
        segments += static_cast<size_t>(v.end[p] - v.begin[p] + 1);
        if (segments >= TASK || p + 1 == v.panels) edges.push_back(p + 1), segments = 0;
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
    good = good && allowed.shape(0) == panels && allowed.shape(1) == k && limits.size() == SIZES - 1 &&
           place.size() == corner_time.size();
    for (const Filled* side : {&before, &after})
        good = good && side->shape(0) == corner_time.size() && side->shape(1) == k;
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
    const std::array<SegmentRule, SIZES> segment_rules = made(rules);
    const std::array<double, SIZES - 1> lengths = {limits(0), limits(1), limits(2)};
    const size_t degrees = view.order + 2;
    auto curve_moments = zeros<double>({panels, degrees, curves, k}), line_moments = zeros<double>({panels, lines, k});
    auto lost = zeros<double>({panels, k}), wander = zeros<double>({SIZES, panels, k}),
         sway = zeros<double>({panels, curves, k});
    auto off = zeros<double>({2 * SIZES, panels, program.joints, k}), tallest = zeros<double>({panels, k});
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

// path, first corner and the one behind the last (legs,); time and place (corners,); constants, allowed, parts; slowest;
// rules and lengths of segments; before, after, joints
using LegFields = std::tuple<Vector<int64_t>, Vector<int64_t>, Vector<int64_t>, Vector<double>, Vector<int64_t>, Matrix,
                             Matrix, Matrix, double, std::vector<RuleFields>, Vector<double>, Filled, Filled, Filled>;

LegHeads made(const Program& program, const LegFields& fields) {
    const auto& [path, begin, end, time, place, constants, allowed, parts, slowest, rules, lengths, before, after,
                 joints] = fields;
    const size_t legs = path.size(), k = program.outputs, corners = time.size(), states = constants.shape(0);
    bool good = begin.size() == legs && end.size() == legs && place.size() == corners && allowed.shape(1) == k &&
                constants.shape(1) == program.constants && parts.shape(0) == legs && parts.shape(1) == program.joints &&
                lengths.size() == SIZES - 1 && joints.shape(1) == program.joints;
    for (const Filled* side : {&before, &after}) good = good && side->shape(0) == corners && side->shape(1) == k;
    for (size_t i = 0; good && i < legs; ++i) {
        good = path(i) >= 0 && static_cast<size_t>(path(i)) < allowed.shape(0) && begin(i) >= 0 && begin(i) <= end(i) &&
               end(i) <= static_cast<int64_t>(corners);
        good = good && (program.constants == 0 || static_cast<size_t>(end(i) + path(i)) < states);
    }
    for (size_t c = 0; good && c < corners; ++c) good = place(c) < static_cast<int64_t>(joints.shape(0));
    for (const Step& s : program.steps) good = good && s.operation != Operation::series;
    if (!good) refuse("legs need corners and states that exist, and arrays that go together.");
    LegHeads out;
    out.program = &program, out.rules = made(rules), out.lengths = {lengths(0), lengths(1), lengths(2)};
    out.legs = legs, out.path = path.data(), out.begin = begin.data(), out.end = end.data();
    out.corner_time = time.data(), out.place = place.data(), out.constants = constants.data();
    out.allowed = allowed.data(), out.parts = parts.data(), out.slowest = slowest;
    out.before = before.data(), out.after = after.data(), out.joints = joints.data();
    return out;
}

// Calls work(head, leg) for all legs; gives what work has filled, and what is lost, the way and the largest score.
template <class Start>
nb::tuple each_leg(LegHeads& all, const Numpy<double>& filled, size_t n_threads, Start start) {
    const size_t k = all.program->outputs;
    auto lost = zeros<double>({all.legs, k}), moved = zeros<double>({all.legs, k}),
         tallest = zeros<double>({all.legs, k});
    all.lost = lost.data(), all.moved = moved.data(), all.tallest = tallest.data();
    {
        nb::gil_scoped_release released;
        parallel(all.legs, n_threads, [&](auto next) {
            LegHead head(all);
            auto work = start();
            for (size_t leg; next(leg);) work(head, leg);
        });
    }
    return nb::make_tuple(filled, lost, moved, tallest);
}

nb::tuple py_head_along_lines(const Program& program, const Vector<int64_t>& offsets, const Vector<double>& time,
                              const Matrix& lines, const LegFields& fields, size_t n_threads) {
    LegHeads all = made(program, fields);
    bool good = offsets.size() == all.legs + 1 && offsets(0) == 0 && lines.shape(0) == time.size() &&
                lines.shape(1) == program.joints && offsets(all.legs) == static_cast<int64_t>(time.size());
    for (size_t i = 0; good && i < all.legs; ++i) good = offsets(i + 1) >= offsets(i) + 2;
    if (!good) refuse("legs need two or more times each, with the values of all lines there.");
    const size_t width = program.joints, k = program.outputs, pieces = time.size() - all.legs;
    auto sums = zeros<double>({k, pieces, width});
    return each_leg(all, sums, n_threads, [&] {
        return [&](LegHead& head, size_t leg) {
            const auto first = static_cast<size_t>(offsets(leg)),
                       points = static_cast<size_t>(offsets(leg + 1)) - first;
            head.run(leg, &time(first), lines.data() + first * width, points);
            for (size_t o = 0; o < k; ++o)
                for (size_t i = 0; i < (points - 1) * width; ++i)
                    sums.data()[(o * pieces + first - leg) * width + i] = head.moments()[i * k + o];
        };
    });
}

nb::tuple py_head_along_net(const Program& program, const LineNet& net, const Vector<double>& low,
                            const Vector<double>& high, const Matrix& rows, const LegFields& fields, size_t n_threads) {
    LegHeads all = made(program, fields);
    const size_t legs = all.legs, straight = net.straight, width = net.width, k = program.outputs;
    if (low.size() != legs || high.size() != legs || rows.shape(0) != 2 * legs || rows.shape(1) != straight ||
        width != program.joints)
        refuse("legs need two times and two rows of all straight columns each, and a head that reads the net alone.");
    auto back = zeros<double>({k, legs, straight});
    return each_leg(all, back, n_threads, [&] {
        return [&, tracer = LineTracer(net), trace = LegTrace(), values = std::vector<double>(),
                cotangent = std::vector<double>()](LegHead& head, size_t leg) mutable {
            const double* from = rows.data() + 2 * leg * straight;
            tracer.trace(low(leg), high(leg), from, from + straight, trace);
            const std::vector<double>& time = tracer.finest();
            make_room(values, time.size() * width), make_room(cotangent, time.size() * width);
            tracer.ends(trace, values.data());
            head.run(leg, time.data(), values.data(), time.size());
            for (size_t o = 0; o < k; ++o) {
                for (size_t i = 0; i < (time.size() - 1) * width; ++i) cotangent[i] = head.moments()[i * k + o];
                tracer.pull_back(trace, time.data(), time.size(), cotangent.data(),
                                 back.data() + (o * legs + leg) * straight);
            }
        };
    });
}

}  // namespace

void bind_head(nb::module_& m) {
    nb::class_<Program>(m, "Program").def("__init__", &init_program);
    m.def("program_functions", [] { return function_names(); });
    m.def("head_moments", &py_head_moments);
    m.def("head_along_lines", &py_head_along_lines);
    m.def("head_along_net", &py_head_along_net);
}

}  // namespace gigrad
