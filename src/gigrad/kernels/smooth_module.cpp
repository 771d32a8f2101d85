// The doors from Python to Legendre series and elementary functions.
#include "arrays.hpp"
#include "elementary.hpp"
#include "series.hpp"

namespace gigrad {

namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void check_degrees(size_t degrees) {
    if (degrees < 1 || degrees > MAX_DEGREES)
        refuse("there must be 1.." + std::to_string(MAX_DEGREES) + " degrees; there are " + std::to_string(degrees) + ".");
}

Numpy<double> py_series(const Cube& coefficients, const Vector<int64_t>& panel, const Vector<double>& u) {
    if (panel.size() != u.size()) refuse("panel and u must have the same number of points.");
    check_degrees(coefficients.shape(1));
    check_panels(panel.data(), panel.size(), coefficients.shape(0));
    return make<double>({u.size(), coefficients.shape(2)}, [&](double* out) {
        series(coefficients.data(), coefficients.shape(1), coefficients.shape(2), panel.data(), u.data(), u.size(), out);
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

Numpy<double> py_tanh(const Vector<double>& x) {
    return make<double>({x.size()}, [&](double* out) { tanh_each(x.data(), x.size(), out); });
}

Numpy<double> py_sigmoid(const Vector<double>& x) {
    return make<double>({x.size()}, [&](double* out) { sigmoid_each(x.data(), x.size(), out); });
}

}  // namespace

void bind_smooth(nb::module_& m) {
    m.def("tanh", &py_tanh);
    m.def("sigmoid", &py_sigmoid);
    m.def("series", &py_series);
    m.def("point_moments", &py_point_moments);
    m.def("segment_moments", &py_segment_moments);
}

}  // namespace gigrad
