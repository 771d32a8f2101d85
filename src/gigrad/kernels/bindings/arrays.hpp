// Shared by the Python bindings: the arrays they take, and the ones they return.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>

namespace nb = nanobind;

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Numpy = nb::ndarray<nb::numpy, T>;

namespace gigrad {

// An array that numpy will own; `fill(data)` runs without the GIL.
template <class T, class Fill>
Numpy<T> make(std::initializer_list<size_t> shape, Fill fill) {
    size_t size = 1;
    for (const size_t n : shape) size *= n;
    std::unique_ptr<T[]> data(new T[size]);
    {
        nb::gil_scoped_release released;
        fill(data.get());
    }
    nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Numpy<T>(data.release(), shape, owner);
}

// Bindings for the smooth parts of a model.
void bind_smooth(nb::module_& m);
// Bindings for the games at corners of the mixed engine.
void bind_corners(nb::module_& m);
void bind_head(nb::module_& m);
void bind_curves(nb::module_& m);
// Bindings for layers of units with kinks along paths.
void bind_lines(nb::module_& m);

}  // namespace gigrad
