// Rows in the form from which sides and times are computed.
//
// A library that reads float32 cannot distinguish 0.2 from 0.2f, so times are computed from the shortest decimal that
// rounds to that float32 number. Sides remain those of the given value: a decimal on the other side of a threshold is
// moved back.
#pragma once

#include "core/decimals.hpp"
#include "core/predict.hpp"
#include "limits.hpp"

namespace gigrad {

class ReadRows {
public:
    // `times`: whether times are needed; sides alone need no decimals.
    ReadRows(const Forest& forest, const Rows& given, const char* name, bool times = true) : rows_(given) {
        if (given.n_columns != forest.n_inputs())
            refuse(std::string(name) + " must have the trees' " + std::to_string(forest.n_inputs()) +
                   " columns; there are " + std::to_string(given.n_columns) + ".");
        const auto& columns = forest.columns;
        const auto changes = [](const Forest::Column& c) { return c.single || c.careful(); };
        if (columns.size() == forest.n_inputs() && !(times && std::any_of(columns.begin(), columns.end(), changes)))
            return;
        const size_t width = columns.size(), n = given.n_rows;
        store_.resize(n * width);
        for (size_t begin = 0; begin < n; begin += READ_TOGETHER)
            for (size_t j = 0; j < width; ++j)
                read(forest, columns[j], times, given.data + begin * given.n_columns + columns[j].input,
                     given.n_columns, std::min(READ_TOGETHER, n - begin), store_.data() + begin * width + j, width);
        rows_ = {store_.data(), n, width};
    }

    operator const Rows&() const { return rows_; }

private:
    Rows rows_;
    std::vector<double> store_;

    // n values of one column.
    static void read(const Forest& forest, const Forest::Column& column, bool times, const double* from,
                     size_t from_step, size_t n, double* to, size_t to_step) {
        if (times && column.careful())
            for (size_t i = 0; i < n; ++i) to[i * to_step] = careful_value(forest, column, from[i * from_step]);
        else if (times && column.single)
            for (size_t i = 0; i < n; ++i) {
                const double x = from[i * from_step];
                const bool again =
                    i > 0 && x == from[(i - 1) * from_step];  // a row that is repeated in many pairs is read once
                to[i * to_step] = again ? to[(i - 1) * to_step] : decimal_of_float32(x);
            }
        else
            for (size_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
    }

    // Thresholds changed by a transformer: a value may be equal to one for the library, and its decimal may lie on the
    // other side.
    static double careful_value(const Forest& forest, const Forest::Column& column, double x) {
        if (!std::isfinite(x)) return x;
        const auto& snaps = column.snaps;
        const auto after =
            std::upper_bound(snaps.begin(), snaps.end(), x, [](double v, const Forest::Snap& s) { return v < s.low; });
        double read = x;
        if (after != snaps.begin() && x <= std::prev(after)->high)
            read = std::prev(after)->place;
        else if (column.single && !is_stored(forest, column, x))
            read = decimal_of_float32(x);
        const auto edge =
            std::lower_bound(column.edges.begin(), column.edges.end(), x);  // the first that is at least x
        if (edge != column.edges.end() && read > *edge) return *edge;
        if (edge != column.edges.begin() && read <= *std::prev(edge))
            return std::nextafter(*std::prev(edge), std::numeric_limits<double>::infinity());
        return read;
    }

    // Whether x lies on a flat piece that equals the threshold of some split, and must not be moved off it.
    static bool is_stored(const Forest& forest, const Forest::Column& column, double x) {
        return column.intervals && std::any_of(forest.intervals.begin(), forest.intervals.end(),
                                               [=](const Interval& w) { return w.holds(x); });
    }
};

}  // namespace gigrad
