// Random forests, and rows for them: values on a coarse grid make ties; huge, tiny, infinite and missing ones try the
// arithmetic.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/forest.hpp"

using namespace gigrad;

namespace {

std::mt19937_64 rng(7);

// Not the library's distributions, which differ between libraries: the same numbers on every machine.
int below(int n) { return static_cast<int>(rng() % static_cast<uint64_t>(n)); }
double uniform() { return static_cast<double>(rng() >> 11) * 0x1p-53; }

double some_value(bool extreme) {
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const double odd[] = {inf, -inf, nan, 1.7e308, -1.7e308, 5e-324, -5e-324, 1e300, -0.0};
    return extreme && below(4) == 0 ? odd[below(9)] : below(9) / 2.0;
}

struct Arrays {
    int64_t n_columns = 0;
    std::vector<int32_t> feature, left, right, set, set_start{0}, value, roots, output, variable;
    std::vector<double> threshold, low, high, place, values, base;
    std::vector<uint32_t> words;
    std::vector<char> missing, single;

    void node(int f, double t) {
        feature.push_back(f), threshold.push_back(t), left.push_back(-1), right.push_back(-1), set.push_back(-1);
        // Places anywhere: at the threshold, half-way, beyond it, nowhere; intervals of stored thresholds of any width.
        const double places[] = {t, std::floor(t) + 0.5, t + 3.0, t - 0.25, std::numeric_limits<double>::quiet_NaN()};
        place.push_back(places[below(8) == 0 ? below(5) : below(2)]);
        low.push_back(below(4) ? t : t - 0.5 * below(3)), high.push_back(below(4) ? t : t + 0.5 * below(3));
        single.push_back(static_cast<char>(below(2)));
        value.push_back(-1), missing.push_back(static_cast<char>(below(2)));
    }

    Forest forest() const {
        const auto span = [](const auto& v) {
            return Span<typename std::decay_t<decltype(v)>::value_type>{v.data(), v.size()};
        };
        static_assert(sizeof(bool) == sizeof(char));
        return Forest(ForestArrays{n_columns,
                                   span(feature),
                                   span(threshold),
                                   span(low),
                                   span(high),
                                   {reinterpret_cast<const bool*>(single.data()), single.size()},
                                   span(place),
                                   span(left),
                                   span(right),
                                   {reinterpret_cast<const bool*>(missing.data()), missing.size()},
                                   span(set),
                                   span(set_start),
                                   span(words),
                                   span(value),
                                   span(values),
                                   span(roots),
                                   span(output),
                                   span(base),
                                   span(variable)});
    }
};

void grow(Arrays& a, int depth) {
    const size_t me = a.feature.size();
    const bool leaf = depth == 0 || below(8) == 0;
    const int column = leaf ? -1 : below(static_cast<int>(a.n_columns));  // before the threshold, on every machine
    a.node(column, some_value(false));
    if (leaf) {
        a.value[me] = static_cast<int32_t>(a.values.size());
        for (size_t k = 0; k < (a.output.back() < 0 ? a.base.size() : 1); ++k) a.values.push_back(uniform() - 0.5);
        return;
    }
    if (below(20) == 0) a.threshold[me] = std::numeric_limits<double>::infinity();
    if (below(4) == 0) {
        a.set[me] = static_cast<int32_t>(a.set_start.size()) - 1;
        for (int w = below(3); w > 0; --w) a.words.push_back(static_cast<uint32_t>(rng()));
        a.set_start.push_back(static_cast<int32_t>(a.words.size()));
    }
    a.left[me] = static_cast<int32_t>(a.feature.size());
    grow(a, depth - 1);
    a.right[me] = static_cast<int32_t>(a.feature.size());
    grow(a, depth - 1);
}

Arrays random_arrays() {
    Arrays a;
    a.n_columns = 1 + below(6);
    a.base.assign(static_cast<size_t>(1 + below(3)), 0.25);
    for (int t = below(8); t > 0; --t) {
        a.roots.push_back(static_cast<int32_t>(a.feature.size()));
        a.output.push_back(below(3) == 0 ? -1 : below(static_cast<int>(a.base.size())));
        grow(a, below(8));
    }
    return a;
}

std::vector<double> random_rows(size_t n, size_t columns, bool extreme) {
    std::vector<double> x(n * columns);
    for (double& v : x) v = some_value(extreme);
    return x;
}

}  // namespace
