// The Python module: arrays in, arrays out, with the GIL released during the computation.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "link/corner_credits.hpp"
#include "link/corner_orders.hpp"
#include "core/decimals.hpp"
#include "walk/jumps.hpp"
#include "link/linked.hpp"
#include "core/reading.hpp"
#include "smooth/linear_leaves.hpp"

using namespace gigrad;

namespace {

template <class T>
Span<T> span(const Vector<T>& v) {
    return {v.data(), v.size()};
}

Rows rows(const Matrix& m) { return {m.data(), m.shape(0), m.shape(1)}; }

size_t checked_threads(int64_t n_threads) {
    if (n_threads < 1 || n_threads > 4096)
        refuse("n_threads must lie in 1..4096; it is " + std::to_string(n_threads) + ".");
    return static_cast<size_t>(n_threads);
}

void check_one_weight_each(const Vector<double>& weights, const Matrix& starts) {
    if (weights.size() != starts.shape(0))
        refuse("weights must have one entry for each of the " + std::to_string(starts.shape(0)) + " starts; it has " +
               std::to_string(weights.size()) + ".");
}

Numpy<double> py_predict(const Forest& forest, const Matrix& x) {
    return make<double>({x.shape(0), forest.n_outputs()},
                        [&](double* out) { predict(forest, ReadRows(forest, rows(x), "x", false), out); });
}

Numpy<double> py_credits(const Forest& forest, const Matrix& starts, const Vector<double>& weights, const Matrix& ends,
                         int64_t n_threads) {
    check_one_weight_each(weights, starts);
    const size_t threads = checked_threads(n_threads);
    return make<double>({ends.shape(0), forest.n_variables(), forest.n_outputs()}, [&](double* out) {
        const ReadRows from(forest, rows(starts), "starts"), to(forest, rows(ends), "ends");
        credits(forest, lanes_for(forest), from, weights.data(), to, threads, out);
    });
}

Numpy<double> py_credits_pairs(const Forest& forest, const Matrix& starts, const Matrix& ends, int64_t n_threads) {
    const size_t threads = checked_threads(n_threads);
    return make<double>({ends.shape(0), forest.n_variables(), forest.n_outputs()}, [&](double* out) {
        credits_pairs(forest, lanes_for(forest), ReadRows(forest, rows(starts), "starts"),
                      ReadRows(forest, rows(ends), "ends"), threads, out);
    });
}

nb::tuple py_jumps(const Forest& forest, const Matrix& starts, const Matrix& ends, int64_t n_threads) {
    const size_t threads = checked_threads(n_threads), outputs = forest.n_outputs();
    std::vector<JumpList> lists;
    {
        nb::gil_scoped_release released;
        lists = jumps(forest, lanes_for(forest), ReadRows(forest, rows(starts), "starts"),
                      ReadRows(forest, rows(ends), "ends"), threads);
    }
    size_t entries = 0;
    for (const JumpList& list : lists) entries += list.time.size();
    auto offsets = make<int64_t>({starts.shape(0) + 1}, [&](int64_t* out) {
        *out = 0;
        for (const JumpList& list : lists)
            for (const int64_t n : list.count) out[1] = out[0] + n, ++out;
    });
    auto time = make<double>({entries}, [&](double* out) {
        for (const JumpList& list : lists) out = std::copy(list.time.begin(), list.time.end(), out);
    });
    auto variable = make<int32_t>({entries}, [&](int32_t* out) {
        for (const JumpList& list : lists) out = std::copy(list.variable.begin(), list.variable.end(), out);
    });
    auto delta = make<double>({entries, outputs}, [&](double* out) {
        for (const JumpList& list : lists) out = std::copy(list.delta.begin(), list.delta.end(), out);
    });
    return nb::make_tuple(offsets, time, variable, delta);
}

// Trees with linear leaves: start i with end i where `weights` is empty, else every start with every end.
Numpy<double> py_linear_credits(const Forest& forest, const Matrix& starts, const Vector<double>& weights,
                                const Matrix& ends, const Matrix& from, const Matrix& to, const Vector<int64_t>& column,
                                const Vector<int64_t>& target, const Vector<double>& factor,
                                const Vector<int64_t>& player, size_t outputs, int64_t n_threads) {
    const size_t threads = checked_threads(n_threads), columns = from.shape(1), width = forest.n_outputs();
    bool good = width > 1 && column.size() == width && target.size() == width && factor.size() == width &&
                player.size() == columns;
    good = good && starts.shape(0) == (weights.size() ? weights.size() : ends.shape(0)) &&
           from.shape(0) == starts.shape(0) && to.shape(0) == ends.shape(0) && to.shape(1) == columns;
    for (size_t o = 0; good && o < width; ++o)
        good = column(o) >= -1 && column(o) < static_cast<int64_t>(columns) && target(o) >= 0 &&
               target(o) < static_cast<int64_t>(outputs);
    for (size_t j = 0; good && j < columns; ++j)
        good = player(j) >= 0 && static_cast<size_t>(player(j)) < forest.n_variables();
    if (!good)
        refuse("linear leaves need several outputs of the trees, each with a column or -1, a target and a weight.");
    return make<double>({ends.shape(0), forest.n_variables(), outputs}, [&](double* out) {
        const ReadRows s(forest, rows(starts), "starts"), e(forest, rows(ends), "ends");
        const LeafLines leaves(forest, column.data(), target.data(), factor.data());
        if (weights.size())
            linear_population(forest, lanes_for(forest), leaves, s, weights.data(), e, from.data(), to.data(), columns,
                              player.data(), outputs, threads, out);
        else
            linear_pairs(forest, leaves, s, e, from.data(), to.data(), columns, player.data(), outputs, threads, out);
    });
}

Numpy<double> py_cells(const Forest& forest, const Matrix& starts, const Matrix& ends, const Vector<int64_t>& pair,
                       const Vector<double>& time,
                       const nb::ndarray<const uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& past,
                       int64_t n_threads) {
    const size_t n = pair.size(), threads = checked_threads(n_threads);
    if (time.size() != n || past.shape(0) != n) refuse("pair, time and past must have the same number of queries.");
    if (past.shape(1) != forest.n_variables())
        refuse("past must have the trees' " + std::to_string(forest.n_variables()) + " variables; there are " +
               std::to_string(past.shape(1)) + ".");
    return make<double>({n, forest.n_outputs()}, [&](double* out) {
        cells(forest, ReadRows(forest, rows(starts), "starts"), ReadRows(forest, rows(ends), "ends"), pair.data(),
              time.data(), past.data(), n, threads, out);
    });
}

// The progress callback of this thread, called with the fraction done; null for none.
PyObject*& watcher() {
    static thread_local PyObject* callback = nullptr;
    return callback;
}

using StageArrays = std::tuple<std::string, Vector<double>, Vector<double>>;

Link make_link(const Forest& forest, const std::vector<StageArrays>& stages) {
    Link link(forest.n_outputs());
    for (const auto& [name, a, b] : stages)
        link.add(name, {a.data(), a.data() + a.size()}, {b.data(), b.data() + b.size()});
    return link;
}

template <class T, class Get>
Numpy<T> listed(const std::vector<LargeCorner>& corners, Get get) {
    return make<T>({corners.size()}, [&](T* out) {
        for (const LargeCorner& corner : corners) *out++ = get(corner);
    });
}

// Large corners with what is kept of them.
struct FoundCorners {
    std::vector<LargeCorner> all;

    explicit FoundCorners(std::vector<LargeCorner> corners) : all(std::move(corners)) {}
    FoundCorners(FoundCorners&&) = default;
};

// (values, end, start, time, players, found); `run(values)` runs without the GIL and returns the corners that are left
// out.
template <class Run>
nb::tuple values_and_corners(const Forest& forest, const Link& link, size_t n, Run run) {
    std::vector<LargeCorner> large;
    auto values = make<double>({n, forest.n_variables(), link.n_outputs()}, [&](double* out) { large = run(out); });
    const auto end = listed<int64_t>(large, [](const LargeCorner& c) { return c.end; }),
               start = listed<int64_t>(large, [](const LargeCorner& c) { return c.start; }),
               players = listed<int64_t>(large, [](const LargeCorner& c) { return c.players; });
    const auto time = listed<double>(large, [](const LargeCorner& c) { return c.time; });
    return nb::make_tuple(values, end, start, time, players, FoundCorners(std::move(large)));
}

nb::tuple py_linked_credits(const Forest& forest, const std::vector<StageArrays>& stages, const Matrix& starts,
                            const Vector<double>& weights, const Matrix& ends, double target, int64_t n_threads) {
    check_one_weight_each(weights, starts);
    const Link link = make_link(forest, stages);
    const size_t threads = checked_threads(n_threads);
    return values_and_corners(forest, link, ends.shape(0), [&](double* values) {
        const ReadRows from(forest, rows(starts), "starts"), to(forest, rows(ends), "ends");
        return linked_credits(forest, lanes_for(forest), link, from, weights.data(), to, target, threads, values);
    });
}

nb::tuple py_linked_credits_pairs(const Forest& forest, const std::vector<StageArrays>& stages, const Matrix& starts,
                                  const Matrix& ends, double target, int64_t n_threads) {
    const Link link = make_link(forest, stages);
    const size_t threads = checked_threads(n_threads);
    return values_and_corners(forest, link, ends.shape(0), [&](double* values) {
        const ReadRows from(forest, rows(starts), "starts"), to(forest, rows(ends), "ends");
        return linked_credits_pairs(forest, lanes_for(forest), link, from, to, target, threads, values);
    });
}

// Every start with every end, by itself: the credits for the sum of trees, (pairs, variables, outputs of the trees), and then
// (values, end, start, time, players, found), where ends and starts are numbers of pairs.
nb::tuple py_linked_credits_singly(const Forest& forest, const std::vector<StageArrays>& stages, const Matrix& starts,
                                   const Matrix& ends, double target, int64_t n_threads) {
    const Link link = make_link(forest, stages);
    const size_t threads = checked_threads(n_threads), n = starts.shape(0) * ends.shape(0);
    const auto sums = make<double>({n, forest.n_variables(), forest.n_outputs()}, [](double*) {});
    double* const sum = sums.data();
    return nb::make_tuple(sums, values_and_corners(forest, link, n, [&](double* values) {
                              const ReadRows from(forest, rows(starts), "starts"), to(forest, rows(ends), "ends");
                              return linked_credits_singly(forest, lanes_for(forest), link, from, to, target, threads,
                                                           values, sum);
                          }));
}

bool fits(const Forest& forest, const LargeCorner& found) {
    const auto known = [&](int32_t variable) { return static_cast<size_t>(variable) < forest.n_variables(); };
    return found.margin.size() == forest.n_outputs() &&
           std::all_of(found.terms.players.begin(), found.terms.players.end(), known);
}

void check_corners(const Forest& forest, const SampledCorners& corners, const Matrix& starts, const Matrix& ends,
                   size_t n_rows, const FoundCorners* found) {
    for (size_t i = 0; i < corners.n; ++i) {
        const auto inside = [](int64_t x, size_t n) { return x >= 0 && static_cast<size_t>(x) < n; };
        if (!inside(corners.row[i], n_rows) || !inside(corners.start[i], starts.shape(0)) ||
            !inside(corners.end[i], ends.shape(0)))
            refuse("corner " + std::to_string(i) + " names a row that is not there.");
        if (i > 0 && corners.row[i] < corners.row[i - 1]) refuse("corners must come in order of their rows.");
        if (corners.count[i] < 2 && corners.count[i] != 0)
            refuse("there must be two groups of orders or more for every corner, or none.");
        if (!std::isfinite(corners.time[i]) || !std::isfinite(corners.weight[i]))
            refuse("times and weights must be finite.");
        if (found && !(inside(corners.number[i], found->all.size()) &&
                       fits(forest, found->all[static_cast<size_t>(corners.number[i])])))
            refuse("corner " + std::to_string(i) + " is none of those that were found.");
    }
}

// (credit, variance, squared, reach), each (rows, variables, link outputs); and the spread of each corner.
nb::tuple py_sample_corners(const Forest& forest, const std::vector<StageArrays>& stages, const Matrix& starts,
                            const Matrix& ends, const Vector<int64_t>& row, const Vector<int64_t>& start,
                            const Vector<int64_t>& end, const Vector<double>& time, const Vector<double>& weight,
                            const Vector<int64_t>& count, const Vector<uint64_t>& seed, const Vector<double>& allowed,
                            const Matrix& scale, const FoundCorners* found, const Vector<int64_t>& number,
                            size_t n_rows, int64_t n_threads) {
    const Link link = make_link(forest, stages);
    const size_t threads = checked_threads(n_threads), n = row.size(),
                 each = n_rows * forest.n_variables() * link.n_outputs();
    for (const size_t size : {start.size(), end.size(), time.size(), weight.size(), count.size(), seed.size()})
        if (size != n) refuse("row, start, end, time, weight, count and seed must have the same number of corners.");
    const bool grows = allowed.size() > 0;
    if (grows && (allowed.size() != n || scale.shape(0) != n || scale.shape(1) != link.n_outputs()))
        refuse("allowed and scale must have a number for each corner, the latter for each output.");
    if (found && number.size() != n) refuse("there must be a number for each corner.");
    const SampledCorners corners{n,
                                 row.data(),
                                 start.data(),
                                 end.data(),
                                 time.data(),
                                 weight.data(),
                                 count.data(),
                                 seed.data(),
                                 grows ? allowed.data() : nullptr,
                                 grows ? scale.data() : nullptr,
                                 found ? found->all.data() : nullptr,
                                 number.data()};
    check_corners(forest, corners, starts, ends, n_rows, found);
    std::vector<double> spread(n), common(3 * n_rows * link.n_outputs());
    std::vector<int64_t> drawn(n);
    auto sums = make<double>({5, n_rows, forest.n_variables(), link.n_outputs()}, [&](double* out) {
        const ReadRows from(forest, rows(starts), "starts"), to(forest, rows(ends), "ends");
        sample_corners(forest, link, from, to, corners, n_rows, threads,
                       {out, out + each, out + 2 * each, out + 3 * each, out + 4 * each, common.data(), spread.data(),
                        drawn.data()});
    });
    return nb::make_tuple(
        sums,
        make<double>({3, n_rows, link.n_outputs()}, [&](double* out) { std::copy(common.begin(), common.end(), out); }),
        make<double>({n}, [&](double* out) { std::copy(spread.begin(), spread.end(), out); }),
        make<int64_t>({n}, [&](int64_t* out) { std::copy(drawn.begin(), drawn.end(), out); }));
}

nb::tuple py_corner_credits(const Forest& forest, const std::vector<StageArrays>& stages, const Matrix& starts,
                            const Matrix& ends, const Vector<int64_t>& pair, const Vector<double>& time,
                            int64_t n_threads) {
    if (pair.size() != time.size()) refuse("pair and time must have the same number of queries.");
    const Link link = make_link(forest, stages);
    const size_t threads = checked_threads(n_threads), n = pair.size();
    std::vector<int64_t> found(n);
    auto values = make<double>({n, forest.n_variables(), link.n_outputs()}, [&](double* out) {
        const ReadRows from(forest, rows(starts), "starts"), to(forest, rows(ends), "ends");
        corner_credits(forest, link, from, to, pair.data(), time.data(), n, threads, out, found.data());
    });
    return nb::make_tuple(values,
                          make<int64_t>({n}, [&](int64_t* out) { std::copy(found.begin(), found.end(), out); }));
}

Numpy<double> py_shortest_decimals(const Vector<double>& low, const Vector<double>& high) {
    if (low.size() != high.size()) refuse("low and high must have the same number of entries.");
    return make<double>({low.size()}, [&](double* out) {
        for (size_t i = 0; i < low.size(); ++i) out[i] = shortest_decimal_between(low.data()[i], high.data()[i]);
    });
}

Numpy<double> py_decimals_of_float32(const Vector<double>& x) {
    return make<double>({x.size()}, [&](double* out) {
        for (size_t i = 0; i < x.size(); ++i) out[i] = decimal_of_float32(x.data()[i]);
    });
}

std::vector<std::string> simd_choices() {
    std::vector<std::string> names;
    for (const LaneKernel* kernel : runnable_lanes()) names.push_back(kernel->name);
    names.push_back("portable");
    return names;
}

std::string get_simd() {
    const LaneKernel* kernel = chosen_lanes();
    return kernel ? kernel->name : "portable";
}

void set_simd(const std::string& name) {
    if (name == "portable") {
        chosen_lanes() = nullptr;
        return;
    }
    for (const LaneKernel* kernel : runnable_lanes())
        if (name == kernel->name) {
            chosen_lanes() = kernel;
            return;
        }
    std::string choices;
    for (const std::string& choice : simd_choices()) choices += (choices.empty() ? "" : ", ") + choice;
    refuse("simd must be one of those this processor can run: " + choices + "; it is '" + name + "'.");
}

void bind_forest(nb::module_& m) {
    nb::class_<Forest>(m, "Forest")
        .def("__init__",
             [](Forest* self, int64_t n_columns, Vector<int32_t> feature, Vector<double> threshold,
                Vector<double> equal_low, Vector<double> equal_high, Vector<bool> single, Vector<double> place,
                Vector<int32_t> left, Vector<int32_t> right, Vector<bool> missing_left, Vector<int32_t> category_set,
                Vector<int32_t> set_start, Vector<uint32_t> set_words, Vector<int32_t> value, Vector<double> values,
                Vector<int32_t> roots, Vector<int32_t> tree_output, Vector<double> base, Vector<int32_t> variable) {
                 new (self)
                     Forest(ForestArrays{n_columns, span(feature), span(threshold), span(equal_low), span(equal_high),
                                         span(single), span(place), span(left), span(right), span(missing_left),
                                         span(category_set), span(set_start), span(set_words), span(value),
                                         span(values), span(roots), span(tree_output), span(base), span(variable)});
             })
        .def_prop_ro("n_columns", &Forest::n_inputs)
        .def_prop_ro("n_variables", &Forest::n_variables)
        .def_prop_ro("n_outputs", &Forest::n_outputs)
        .def_prop_ro("n_trees", &Forest::n_trees)
        .def_prop_ro("n_nodes", [](const Forest& f) { return f.nodes.size(); });
}

}  // namespace

NB_MODULE(_native, m) {
    // An Explainer in a global or in a fixture is alive when Python ends, which nanobind would report as a leak.
    nb::set_leak_warnings(false);
    signal_check().store([](double done) -> bool {
        nb::gil_scoped_acquire held;
        if (PyErr_CheckSignals() != 0) return true;
        if (!watcher()) return false;
        PyObject* const said = PyObject_CallFunction(watcher(), "d", done);
        Py_XDECREF(said);
        return said == nullptr;
    });
    m.def(
        "watch",
        [](nb::handle callback) {
            Py_XDECREF(watcher());
            watcher() = callback.is_none() ? nullptr : callback.inc_ref().ptr();
        },
        nb::arg("callback").none());
    nb::register_exception_translator([](const std::exception_ptr& error, void*) {
        try {
            std::rethrow_exception(error);
        } catch (const Interrupted&) {  // the error of the signal's handler is already set
            if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
        }
    });
    bind_forest(m);
    bind_smooth(m);
    bind_corners(m);
    bind_head(m);
    bind_curves(m);
    bind_lines(m);
    m.def("predict", &py_predict);
    m.def("credits", &py_credits);
    m.def("credits_pairs", &py_credits_pairs);
    m.def("jumps", &py_jumps);
    m.def("linear_credits", &py_linear_credits);
    m.def("cells", &py_cells);
    m.def("linked_credits", &py_linked_credits);
    m.def("linked_credits_pairs", &py_linked_credits_pairs);
    m.def("linked_credits_singly", &py_linked_credits_singly);
    m.def("corner_credits", &py_corner_credits);
    nb::class_<FoundCorners>(m, "FoundCorners").def("forget", [](FoundCorners& found) {  // as if there were no room
        for (LargeCorner& corner : found.all) corner.terms = StoredTerms();
    });
    m.def("sample_corners", &py_sample_corners, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("found").none(),
          nb::arg(), nb::arg(), nb::arg());
    m.def("link_functions", [] {
        std::vector<std::string> names;
        for (const NamedBatch& function : LINK_FUNCTIONS) names.push_back(function.name);
        return names;
    });
    m.def("shortest_decimals", &py_shortest_decimals);
    m.def("decimals_of_float32", &py_decimals_of_float32);
    m.def("simd_choices", &simd_choices);
    m.def("get_simd", &get_simd);
    m.def("set_simd", &set_simd);
    m.attr("DEFAULT_TARGET") = DEFAULT_TARGET;
}
