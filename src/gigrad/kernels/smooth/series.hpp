// Legendre series on panels: values at points, and moments of point masses and of densities on segments.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/forest.hpp"
#include "limits.hpp"

namespace gigrad {

// P_(n+1) = up[n] u P_n - down[n] P_(n-1)
struct LegendreTable {
    std::array<double, MAX_DEGREES + 1> up{}, down{};
    LegendreTable() {
        for (size_t n = 0; n <= MAX_DEGREES; ++n) {
            const double k = static_cast<double>(n);
            up[n] = (2.0 * k + 1.0) / (k + 1.0);
            down[n] = k / (k + 1.0);
        }
    }
};

inline const LegendreTable& legendre_table() {
    static const LegendreTable table;
    return table;
}

inline void check_panels(const int64_t* panel, size_t n, size_t panels) {
    for (size_t i = 0; i < n; ++i)
        if (panel[i] < 0 || static_cast<size_t>(panel[i]) >= panels)
            refuse("point " + std::to_string(i) + " lies on panel " + std::to_string(panel[i]) + "; there are " +
                   std::to_string(panels) + ".");
}

// The series of one column of coefficients at SERIES_TOGETHER points of one panel, by Clenshaw's recurrence.
inline void clenshaw(const double* c, size_t degrees, size_t columns, const double* u, double* out) {
    const LegendreTable& t = legendre_table();
    double now[SERIES_TOGETHER] = {}, later[SERIES_TOGETHER] = {};
    for (size_t d = degrees; d-- > 1;)
        for (size_t i = 0; i < SERIES_TOGETHER; ++i) {
            const double next = c[d * columns] + t.up[d] * u[i] * now[i] - t.down[d + 1] * later[i];
            later[i] = now[i];
            now[i] = next;
        }
    for (size_t i = 0; i < SERIES_TOGETHER; ++i) out[i] = c[0] + u[i] * now[i] - t.down[1] * later[i];
}

// out (n, columns): the series of panel[i] at u[i]. coefficients: (panels, degrees, columns).
inline void series(const double* coefficients, size_t degrees, size_t columns, const int64_t* panel, const double* u,
                   size_t n, double* out) {
    double at[SERIES_TOGETHER], value[SERIES_TOGETHER];
    for (size_t i = 0; i < n;) {
        size_t count = 1;
        while (count < SERIES_TOGETHER && i + count < n && panel[i + count] == panel[i]) ++count;
        for (size_t k = 0; k < SERIES_TOGETHER; ++k) at[k] = u[i + (k < count ? k : 0)];
        const double* c = coefficients + static_cast<size_t>(panel[i]) * degrees * columns;
        for (size_t j = 0; j < columns; ++j) {
            clenshaw(c + j, degrees, columns, at, value);
            for (size_t k = 0; k < count; ++k) out[(i + k) * columns + j] = value[k];
        }
        i += count;
    }
}

// basis[d][i] = P_d(u[i])
inline void legendre(const double* u, size_t degrees, double (*basis)[SERIES_TOGETHER]) {
    const LegendreTable& t = legendre_table();
    for (size_t i = 0; i < SERIES_TOGETHER; ++i) basis[0][i] = 1.0, basis[1][i] = u[i];
    for (size_t d = 2; d < degrees; ++d)
        for (size_t i = 0; i < SERIES_TOGETHER; ++i)
            basis[d][i] = t.up[d - 1] * u[i] * basis[d - 1][i] - t.down[d - 1] * basis[d - 2][i];
}

// to (degrees, columns) += sum over `count` lanes of basis times mass (count, columns)
inline void add_lanes(const double (*basis)[SERIES_TOGETHER], const double* mass, size_t count, size_t degrees,
                      size_t columns, double* to) {
    for (size_t d = 0; d < degrees; ++d)
        for (size_t j = 0; j < columns; ++j) {
            double sum = 0.0;
            for (size_t i = 0; i < count; ++i) sum += basis[d][i] * mass[i * columns + j];
            to[d * columns + j] += sum;
        }
}

// out (panels, degrees, columns) += sum over points of P_d(u) times mass (n, columns)
inline void add_points(const int64_t* panel, const double* u, const double* mass, size_t n, size_t degrees,
                       size_t columns, double* out) {
    double at[SERIES_TOGETHER], basis[MAX_DEGREES + 2][SERIES_TOGETHER];
    for (size_t i = 0; i < n;) {
        size_t count = 1;
        while (count < SERIES_TOGETHER && i + count < n && panel[i + count] == panel[i]) ++count;
        for (size_t k = 0; k < SERIES_TOGETHER; ++k) at[k] = u[i + (k < count ? k : 0)];
        legendre(at, degrees, basis);
        add_lanes(basis, mass + i * columns, count, degrees, columns,
                  out + static_cast<size_t>(panel[i]) * degrees * columns);
        i += count;
    }
}

// out (panels, degrees, columns) += sum over segments of density (n, columns) times the integral of P_d from low to high
inline void add_segments(const int64_t* panel, const double* low, const double* high, const double* density, size_t n,
                         size_t degrees, size_t columns, double* out) {
    double at[2][SERIES_TOGETHER], first[MAX_DEGREES + 2][SERIES_TOGETHER], last[MAX_DEGREES + 2][SERIES_TOGETHER];
    for (size_t i = 0; i < n;) {
        size_t count = 1;
        while (count < SERIES_TOGETHER && i + count < n && panel[i + count] == panel[i]) ++count;
        for (size_t k = 0; k < SERIES_TOGETHER; ++k) {
            at[0][k] = low[i + (k < count ? k : 0)];
            at[1][k] = high[i + (k < count ? k : 0)];
        }
        legendre(at[0], degrees + 1, first);
        legendre(at[1], degrees + 1, last);
        for (size_t d = 0; d <= degrees; ++d)
            for (size_t k = 0; k < SERIES_TOGETHER; ++k) last[d][k] -= first[d][k];
        for (size_t k = 0; k < SERIES_TOGETHER; ++k) first[0][k] = last[1][k];
        for (size_t d = 1; d < degrees; ++d) {  // the integral of P_d is (P_(d+1) - P_(d-1)) / (2 d + 1)
            const double scale = 1.0 / static_cast<double>(2 * d + 1);
            for (size_t k = 0; k < SERIES_TOGETHER; ++k) first[d][k] = (last[d + 1][k] - last[d - 1][k]) * scale;
        }
        add_lanes(first, density + i * columns, count, degrees, columns,
                  out + static_cast<size_t>(panel[i]) * degrees * columns);
        i += count;
    }
}

}  // namespace gigrad
