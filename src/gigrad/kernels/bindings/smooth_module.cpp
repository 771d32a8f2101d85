// Python bindings of Legendre series and elementary functions.
#include <cmath>

#include "bindings/arrays.hpp"
#include "core/elementary.hpp"
#include "smooth/rows.hpp"
#include "smooth/series.hpp"
#include "smooth/speed_parts.hpp"

namespace gigrad {

namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void check_degrees(size_t degrees) {
    if (degrees < 1 || degrees > MAX_DEGREES)
        refuse("there must be 1.." + std::to_string(MAX_DEGREES) + " degrees; there are " + std::to_string(degrees) +
               ".");
}

Numpy<double> py_series(const Cube& coefficients, const Vector<int64_t>& panel, const Vector<double>& u) {
    if (panel.size() != u.size()) refuse("panel and u must have the same number of points.");
    check_degrees(coefficients.shape(1));
    check_panels(panel.data(), panel.size(), coefficients.shape(0));
    return make<double>({u.size(), coefficients.shape(2)}, [&](double* out) {
        series(coefficients.data(), coefficients.shape(1), coefficients.shape(2), panel.data(), u.data(), u.size(),
               out);
    });
}

Numpy<double> py_point_moments(const Vector<int64_t>& panel, const Vector<double>& u, const Matrix& mass, size_t panels,
                               size_t degrees) {
    if (panel.size() != u.size() || mass.shape(0) != u.size())
        refuse("panel, u and mass must have the same number of points.");
    check_degrees(degrees);
    check_panels(panel.data(), panel.size(), panels);
    const size_t columns = mass.shape(1);
    return make<double>({panels, degrees, columns}, [&](double* out) {
        std::fill(out, out + panels * degrees * columns, 0.0);
        add_points(panel.data(), u.data(), mass.data(), u.size(), degrees, columns, out);
    });
}

Numpy<double> py_segment_moments(const Vector<int64_t>& panel, const Vector<double>& low, const Vector<double>& high,
                                 const Matrix& density, size_t panels, size_t degrees) {
    if (panel.size() != low.size() || low.size() != high.size() || density.shape(0) != low.size())
        refuse("panel, low, high and density must have the same number of segments.");
    check_degrees(degrees);
    check_panels(panel.data(), panel.size(), panels);
    const size_t columns = density.shape(1);
    return make<double>({panels, degrees, columns}, [&](double* out) {
        std::fill(out, out + panels * degrees * columns, 0.0);
        add_segments(panel.data(), low.data(), high.data(), density.data(), low.size(), degrees, columns, out);
    });
}

void check_between(const Matrix& rows, const Vector<int64_t>& at, const Vector<double>& part) {
    if (at.size() != part.size()) refuse("at and part must have the same number of points.");
    const auto n = static_cast<int64_t>(rows.shape(0));
    for (size_t i = 0; i < at.size(); ++i)
        if (at(i) < 0 || at(i) + (part(i) == 0.0 ? 0 : 1) >= n)
            refuse("point " + std::to_string(i) + " lies beyond row " + std::to_string(at(i)) + " of " +
                   std::to_string(n) + ".");
}

Numpy<double> py_between_rows(const Matrix& rows, const Vector<int64_t>& at, const Vector<double>& part) {
    check_between(rows, at, part);
    return make<double>({at.size(), rows.shape(1)}, [&](double* out) {
        between_rows(rows.data(), rows.shape(1), at.data(), part.data(), at.size(), out);
    });
}

void check_below(const Vector<int64_t>& index, size_t limit, const char* name) {
    for (size_t i = 0; i < index.size(); ++i)
        if (index(i) < 0 || static_cast<size_t>(index(i)) >= limit)
            refuse(std::string(name) + " must lie below " + std::to_string(limit) + "; one is " +
                   std::to_string(index(i)) + ".");
}

Numpy<double> py_bend_rows(const Matrix& coarse, const Vector<int64_t>& at, const Vector<double>& part,
                           const Vector<double>& time, const Vector<int64_t>& point, const Vector<double>& bend,
                           const Vector<int64_t>& unit, const Matrix& rows) {
    const size_t n = at.size(), kinks = point.size();
    if (part.size() != n || time.size() != n) refuse("at, part and time must have the same number of points.");
    if (bend.size() != kinks || unit.size() != kinks)
        refuse("point, bend and unit must have the same number of kinks.");
    if (rows.shape(1) != coarse.shape(1)) refuse("coarse and rows must have the same number of columns.");
    check_below(at, coarse.shape(0), "at");
    check_below(point, n, "point");
    check_below(unit, rows.shape(0), "unit");
    for (size_t i = 0; i < n; ++i) {
        const bool inner = part(i) != 0.0, follows = i > 0 && at(i - 1) == at(i);
        if (inner != follows || (inner && (static_cast<size_t>(at(i)) + 1 >= coarse.shape(0) || i + 1 >= n)))
            refuse("point " + std::to_string(i) + " of the finer grid does not lie between two of the coarse one.");
    }
    for (size_t k = 0; k < kinks; ++k)
        if (part(point(k)) == 0.0 || (k > 0 && point(k) < point(k - 1)))
            refuse("kinks must lie at inner points, in order.");
    return make<double>({n, coarse.shape(1)}, [&](double* out) {
        bend_rows(coarse.data(), coarse.shape(1), at.data(), time.data(), n, point.data(), bend.data(), unit.data(),
                  kinks, rows.data(), out);
    });
}

Numpy<double> py_suffix_products(const Matrix& sums, const Vector<int64_t>& begin, const Vector<int64_t>& end,
                                 const Vector<int64_t>& unit, const Matrix& rows) {
    const size_t kinks = begin.size();
    if (end.size() != kinks || unit.size() != kinks) refuse("begin, end and unit must have the same number of kinks.");
    if (rows.shape(1) != sums.shape(1)) refuse("sums and rows must have the same number of columns.");
    check_below(begin, sums.shape(0), "begin");
    check_below(end, sums.shape(0) + 1, "end");
    check_below(unit, rows.shape(0), "unit");
    return make<double>({kinks}, [&](double* out) {
        suffix_products(sums.data(), sums.shape(1), begin.data(), end.data(), unit.data(), kinks, rows.data(), out);
    });
}

Numpy<double> py_sum_groups(const Matrix& rows, const Vector<int64_t>& first) {
    for (size_t g = 0; g < first.size(); ++g)
        if (first(g) < 0 || first(g) >= static_cast<int64_t>(rows.shape(0)) || (g > 0 && first(g) <= first(g - 1)))
            refuse("groups must begin at rows, one after another, and none may be empty.");
    return make<double>({first.size(), rows.shape(1)}, [&](double* out) {
        sum_groups(rows.data(), rows.shape(0), rows.shape(1), first.data(), first.size(), out);
    });
}

void py_add_rows(const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& table,
                 const Vector<int64_t>& row, const Matrix& values) {
    if (values.shape(0) != row.size() || values.shape(1) != table.shape(1))
        refuse("values must have the columns of the table, and a row for each row named.");
    check_below(row, table.shape(0), "row");
    nb::gil_scoped_release released;
    add_rows(table.data(), row.data(), values.data(), row.size(), table.shape(1));
}

void py_add_grouped(const nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>& table,
                    const Vector<int64_t>& first, const Vector<int64_t>& column, const Matrix& values) {
    const size_t groups = table.shape(0), k = values.shape(1), n = column.size();
    bool good =
        first.size() == groups + 1 && first(0) == 0 && first(groups) == static_cast<int64_t>(n) && values.shape(0) == n;
    for (size_t g = 0; good && g < groups; ++g) good = first(g) <= first(g + 1);
    if (!good) refuse("the entries of all rows must be given, in order.");
    check_below(column, k > 0 ? table.shape(1) / k : 0, "column");
    nb::gil_scoped_release released;
    for (size_t g = 0; g < groups; ++g) {
        double* to = table.data() + g * table.shape(1);
        for (auto i = static_cast<size_t>(first(g)); i < static_cast<size_t>(first(g + 1)); ++i)
            for (size_t o = 0; o < k; ++o) to[static_cast<size_t>(column(i)) * k + o] += values.data()[i * k + o];
    }
}

void check_left(const Vector<int64_t>& left, size_t rows) {
    for (size_t i = 0; i < left.size(); ++i)
        if (left(i) < 0 || static_cast<size_t>(left(i)) + 1 >= rows)
            refuse("piece " + std::to_string(i) + " lies beyond the rows.");
}

nb::tuple py_passed_rows(const Matrix& rows, const Vector<int64_t>& left, double level) {
    check_left(left, rows.shape(0));
    std::vector<int64_t> piece, column;
    {
        nb::gil_scoped_release released;
        passed_rows(rows.data(), rows.shape(1), left.data(), left.size(), level, piece, column);
    }
    const auto copied = [](const std::vector<int64_t>& from) {
        return make<int64_t>({from.size()}, [&](int64_t* out) { std::copy(from.begin(), from.end(), out); });
    };
    return nb::make_tuple(copied(piece), copied(column));
}

Numpy<double> py_largest_steps(const Matrix& rows, const Vector<int64_t>& left) {
    check_left(left, rows.shape(0));
    const size_t columns = rows.shape(1);
    return make<double>({left.size()}, [&](double* out) {
        for (size_t i = 0; i < left.size(); ++i) {
            const double* a = rows.data() + static_cast<size_t>(left(i)) * columns;
            out[i] = largest_step(a, a + columns, columns);
        }
    });
}

nb::tuple py_speed_parts(const Cube& rows, const Matrix& to_coefficients) {
    const size_t n = rows.shape(0), nodes = rows.shape(1), columns = rows.shape(2), top = std::min<size_t>(nodes, 4);
    if (to_coefficients.shape(0) != nodes || to_coefficients.shape(1) != nodes)
        refuse("to_coefficients must have a row and a column for each node.");
    SpeedParts parts;
    const auto room = [](std::initializer_list<size_t> shape, double*& to) {
        return make<double>(shape, [&](double* out) { to = out; });
    };
    auto last = room({top, n, columns}, parts.last), first = room({n}, parts.first),
         above = room({nodes, n}, parts.above), total = room({nodes, n}, parts.total);
    {
        nb::gil_scoped_release released;
        speed_parts(rows.data(), n, nodes, columns, to_coefficients.data(), parts);
    }
    return nb::make_tuple(last, first, above, total);
}

Numpy<double> py_tanh(const Vector<double>& x) {
    return make<double>({x.size()}, [&](double* out) { tanh_each(x.data(), x.size(), out); });
}

Numpy<double> py_sigmoid(const Vector<double>& x) {
    return make<double>({x.size()}, [&](double* out) { sigmoid_each(x.data(), x.size(), out); });
}

// std::pow of the C library, in float where `single`: NumPy's own differs from it in the last place where it has AVX-512.
Numpy<double> py_power(const Vector<double>& base, const Vector<double>& exponent, bool single) {
    if (base.size() != exponent.size()) refuse("base and exponent must have the same number of entries.");
    return make<double>({base.size()}, [&](double* out) {
        for (size_t i = 0; i < base.size(); ++i)
            out[i] = single ? std::pow(static_cast<float>(base.data()[i]), static_cast<float>(exponent.data()[i]))
                            : std::pow(base.data()[i], exponent.data()[i]);
    });
}

}  // namespace

void bind_smooth(nb::module_& m) {
    m.def("power", &py_power);
    m.def("tanh", &py_tanh);
    m.def("sigmoid", &py_sigmoid);
    m.def("series", &py_series);
    m.def("point_moments", &py_point_moments);
    m.def("segment_moments", &py_segment_moments);
    m.def("between_rows", &py_between_rows);
    m.def("bend_rows", &py_bend_rows);
    m.def("suffix_products", &py_suffix_products);
    m.def("sum_groups", &py_sum_groups);
    m.def("add_rows", &py_add_rows);
    m.def("add_grouped", &py_add_grouped);
    m.def("passed_rows", &py_passed_rows);
    m.def("largest_steps", &py_largest_steps);
    m.def("speed_parts", &py_speed_parts);
}

}  // namespace gigrad
