// Python bindings of the games at corners of the mixed engine, whose score is more than a link over trees.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.hpp"
#include "link/corner_leaves.hpp"
#include "core/reading.hpp"
#include "walk/path_corners.hpp"

namespace gigrad {
namespace {

using Int32Matrix = nb::ndarray<const int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Int64Matrix = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

Rows as_rows(const Matrix& m) { return {m.data(), m.shape(0), m.shape(1)}; }

void check_players(size_t players) {
    if (players > MAX_ENUMERATED)
        refuse("at most " + std::to_string(MAX_ENUMERATED) + " players can be enumerated; there are " +
               std::to_string(players) + ".");
}

void check_variables(const int32_t* variables, size_t n) {
    for (size_t i = 0; i < n; ++i)
        if (variables[i] < 0 || variables[i] > LAST_PLAYER) refuse("players must be numbers of variables.");
}

Numpy<double> py_coalition_scores(const Forest& forest, const Matrix& starts, const Matrix& ends,
                                  const Vector<int64_t>& pair, const Vector<double>& time, const Int32Matrix& players,
                                  size_t n_threads) {
    const size_t n = pair.size(), k = players.shape(1);
    if (time.size() != n || players.shape(0) != n)
        refuse("pair, time and players must have the same number of corners.");
    check_players(k);
    check_variables(players.data(), n * k);
    return make<double>({n, size_t{1} << k, forest.n_outputs()}, [&](double* out) {
        const ReadRows from(forest, as_rows(starts), "starts"), to(forest, as_rows(ends), "ends");
        coalition_scores(forest, from, to, pair.data(), time.data(), players.data(), n, k,
                         std::max<size_t>(n_threads, 1), out);
    });
}

void init_leaves(CornerLeaves* self, const Forest& forest, const Matrix& start, const Matrix& end, double time) {
    if (start.shape(0) != 1 || end.shape(0) != 1) refuse("start and end must be one row each.");
    const ReadRows from(forest, as_rows(start), "start"), to(forest, as_rows(end), "end");
    const Rows &first = from, &last = to;
    new (self) CornerLeaves(forest, first.row(0), last.row(0), time);
}

void set_players(CornerLeaves& leaves, const Vector<int32_t>& variables) {
    check_variables(variables.data(), variables.size());
    leaves.set_players(variables.data(), variables.size());
}

void set_order(CornerLeaves& leaves, const Vector<int32_t>& order, size_t strong) {
    const size_t n = order.size();
    std::vector<char> seen(n, 0);
    if (n != leaves.n_players() || strong > std::min(n, STRONG_PLAYERS))
        refuse("the order must have all players, and at most eight of them strong.");
    for (size_t i = 0; i < n; ++i) {
        if (order(i) < 0 || static_cast<size_t>(order(i)) >= n || seen[order(i)])
            refuse("the order must have every player once.");
        seen[order(i)] = 1;
    }
    leaves.set_order({order.data(), order.data() + n}, strong);
}

Numpy<double> py_table(CornerLeaves& leaves, size_t bits, uint32_t part) {
    const size_t n = leaves.n_players();
    check_players(n);
    if (bits > n || part >= uint32_t{1} << (n - bits)) refuse("there is no such part.");
    return make<double>({size_t{1} << bits, leaves.n_margins()}, [&](double* out) { leaves.table(bits, part, out); });
}

Numpy<double> py_follow(CornerLeaves& leaves, const Int64Matrix& joins) {
    if (!leaves.orders_ready() || joins.shape(1) != leaves.weak())
        refuse("every order must have all players that are not strong.");
    const size_t orders = joins.shape(0), w = leaves.weak(),
                 table = (w + 1) * (size_t{1} << leaves.strong()) * leaves.n_margins();
    for (size_t i = 0; i < orders * w; ++i)
        if (joins.data()[i] < 0 || static_cast<size_t>(joins.data()[i]) >= w)
            refuse("orders must be of the players that are not strong.");
    return make<double>({orders, w + 1, size_t{1} << leaves.strong(), leaves.n_margins()}, [&](double* out) {
        for (size_t i = 0; i < orders; ++i) leaves.follow(joins.data() + i * w, out + i * table);
    });
}

void py_fold_add(CoalitionFold& fold, const Matrix& values) {
    const size_t n = values.shape(0);
    if (values.shape(1) != fold.outputs() || n % fold.block() || n > fold.left())
        refuse("values must be the next coalitions of the game.");
    nb::gil_scoped_release released;
    fold.add(values.data(), n);
}

Numpy<double> py_fold_orders(const nb::ndarray<const double, nb::ndim<4>, nb::c_contig, nb::device::cpu>& values) {
    const size_t orders = values.shape(0), prefixes = values.shape(1), outputs = values.shape(3);
    size_t q = 0;
    while ((size_t{1} << q) < values.shape(2)) ++q;
    if (prefixes == 0 || size_t{1} << q != values.shape(2) || q > STRONG_PLAYERS)
        refuse("values must have all coalitions of at most eight players, without and with the others.");
    return make<double>({orders, q + prefixes - 1, outputs},
                        [&](double* out) { fold_orders(values.data(), orders, q, prefixes - 1, outputs, out); });
}

Numpy<int64_t> py_order_groups(size_t players, size_t count, uint64_t seed) {
    return make<int64_t>({count, 4, players}, [&](int64_t* out) {
        OrderGroups groups(players, seed);
        for (size_t i = 0; i < count; ++i)
            groups.next([&](const std::vector<uint32_t>& joins) { out = std::copy(joins.begin(), joins.end(), out); });
    });
}

// Room for an array that numpy will own, of which only the first rows may be used in the end.
template <class T>
struct Room {
    std::unique_ptr<T[]> data;
    explicit Room(size_t size) : data(new T[size]) {}
    Numpy<T> used(std::initializer_list<size_t> shape) {
        nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return Numpy<T>(data.release(), shape, owner);
    }
};

nb::tuple py_path_corners(const std::vector<const Forest*>& forests, const std::vector<Matrix>& at_starts,
                          const Matrix& starts, const Matrix& ends, const Vector<int64_t>& half_path,
                          const Vector<int64_t>& half_column, size_t n_threads) {
    const size_t paths = starts.shape(0), halves = half_path.size();
    bool good = at_starts.size() == forests.size() && half_column.size() == halves;
    for (size_t f = 0; good && f < forests.size(); ++f)
        good = at_starts[f].shape(0) == paths && at_starts[f].shape(1) == forests[f]->n_outputs();
    for (size_t i = 0; good && i < halves; ++i)
        good = half_path(i) >= (i ? half_path(i - 1) : 0) && half_path(i) < static_cast<int64_t>(paths);
    if (!good) refuse("corners need the outputs of all trees at all starts, and columns that jump in order of path.");
    std::vector<std::vector<JumpList>> lists;
    size_t most = halves;
    {
        nb::gil_scoped_release released;
        for (const Forest* forest : forests) {
            lists.push_back(jumps(*forest, lanes_for(*forest), ReadRows(*forest, as_rows(starts), "starts"),
                                  ReadRows(*forest, as_rows(ends), "ends"), std::max<size_t>(n_threads, 1)));
            for (const JumpList& list : lists.back()) most += list.time.size();
        }
    }
    Room<int64_t> first(paths + 1), offsets(most + 1), column(most);
    Room<double> time(most);
    Room<bool> broken(most);
    std::vector<Room<double>> states;
    std::vector<JoinedTrees> trees;
    for (size_t f = 0; f < forests.size(); ++f) {
        const size_t width = forests[f]->n_outputs();
        states.emplace_back((most + paths) * width);
        trees.push_back({JumpReader(lists[f]), width, at_starts[f].data(), states[f].data.get()});
    }
    {
        nb::gil_scoped_release released;
        join_corners(trees, paths, half_path.data(), half_column.data(), halves,
                     {first.data.get(), time.data.get(), offsets.data.get(), column.data.get(), broken.data.get()});
    }
    const auto n = static_cast<size_t>(first.data[paths]), entries = static_cast<size_t>(offsets.data[n]);
    nb::list outputs;
    for (size_t f = 0; f < forests.size(); ++f) outputs.append(states[f].used({n + paths, trees[f].width}));
    return nb::make_tuple(first.used({paths + 1}), time.used({n}), offsets.used({n + 1}), column.used({entries}),
                          broken.used({n}), outputs);
}

}  // namespace

void bind_corners(nb::module_& m) {
    nb::class_<CornerLeaves>(m, "CornerLeaves")
        .def("__init__", &init_leaves, nb::keep_alive<1, 2>())
        .def("variables",
             [](const CornerLeaves& leaves) {
                 const auto& from = leaves.variables();
                 return make<int32_t>({from.size()}, [&](int32_t* out) { std::copy(from.begin(), from.end(), out); });
             })
        .def_prop_ro("coefficients", &CornerLeaves::n_coefficients)
        .def("set_players", &set_players)
        .def("table", &py_table)
        .def("set_order", &set_order)
        .def("follow", &py_follow)
        .def("shares", [](const CornerLeaves& leaves) {
            return make<double>({leaves.n_players(), leaves.n_margins()}, [&](double* out) { leaves.shares(out); });
        });
    nb::class_<CoalitionFold>(m, "CoalitionFold")
        .def("__init__",
             [](CoalitionFold* self, size_t players, size_t outputs) {
                 check_players(players);
                 new (self) CoalitionFold(players, outputs);
             })
        .def("add", &py_fold_add)
        .def("finish", [](CoalitionFold& fold) {
            if (fold.left()) refuse("some coalitions have not been added.");
            return make<double>({fold.players(), fold.outputs()}, [&](double* out) { fold.finish(out); });
        });
    m.def("path_corners", &py_path_corners);
    m.def("coalition_scores", &py_coalition_scores);
    m.def("fold_orders", &py_fold_orders);
    m.def("order_groups", &py_order_groups);
    m.def("enumerates", [](size_t players, double coefficients, size_t numbers, size_t references, double target) {
        return CornerPolicy{references, target}.enumerates(players, coefficients, numbers);
    });
    m.attr("MAX_ENUMERATED") = MAX_ENUMERATED;
    m.attr("STRONG_PLAYERS") = STRONG_PLAYERS;
    m.def("strong_players", &strong_players);
    m.attr("TABLE_NUMBERS") = TABLE_NUMBERS;
}

}  // namespace gigrad
