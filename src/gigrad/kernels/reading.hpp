// Rows as the trees read them: what sides and times are computed from.
//
// A library that reads float32 sees the same number in 0.2 and in 0.2f, so times are computed from the shortest decimal
// with that float32 form. Sides stay those of the given value, to the last bit: a decimal that would pass a threshold
// stops short of it.
#pragma once

#include "decimals.hpp"
#include "predict.hpp"

namespace gigrad {

class ReadRows {
  public:
    // `times`: whether times will be asked for; sides alone need no decimals.
    ReadRows(const Forest& forest, const Rows& given, const char* name, bool times = true) : rows_(given) {
        if (given.n_columns != forest.n_inputs())
            refuse(std::string(name) + " must have the trees' " + std::to_string(forest.n_inputs()) + " columns; there are " +
                   std::to_string(given.n_columns) + ".");
        const auto& columns = forest.columns;
        const auto changes = [](const Forest::Column& c) { return c.single || c.careful(); };
        if (columns.size() == forest.n_inputs() && !(times && std::any_of(columns.begin(), columns.end(), changes))) return;
        const size_t width = columns.size(), n = given.n_rows;
        store_.resize(n * width);
        for (size_t j = 0; j < width; ++j) {
            const double* from = given.data + columns[j].input;
            double* to = store_.data() + j;
            if (times && columns[j].careful())
                for (size_t i = 0; i < n; ++i) to[i * width] = careful_value(forest, columns[j], from[i * given.n_columns]);
            else if (times && columns[j].single)
                for (size_t i = 0; i < n; ++i) {
                    const double x = from[i * given.n_columns];
                    const bool again = i > 0 && x == from[(i - 1) * given.n_columns];  // a row in many pairs is read once
                    to[i * width] = again ? to[(i - 1) * width] : decimal_of_float32(x);
                }
            else
                for (size_t i = 0; i < n; ++i) to[i * width] = from[i * given.n_columns];
        }
        rows_ = {store_.data(), n, width};
    }

    operator const Rows&() const { return rows_; }

  private:
    Rows rows_;
    std::vector<double> store_;

    // Thresholds that a transformer has moved: a value may be one to the library, and a decimal may lie on the other side.
    static double careful_value(const Forest& forest, const Forest::Column& column, double x) {
        if (!std::isfinite(x)) return x;
        const auto& snaps = column.snaps;
        const auto after = std::upper_bound(snaps.begin(), snaps.end(), x, [](double v, const Forest::Snap& s) { return v < s.low; });
        double read = x;
        if (after != snaps.begin() && x <= std::prev(after)->high)
            read = std::prev(after)->place;
        else if (column.single && !is_stored(forest, column, x))
            read = decimal_of_float32(x);
        const auto edge = std::lower_bound(column.edges.begin(), column.edges.end(), x);  // the first that x does not exceed
        if (edge != column.edges.end() && read > *edge) return *edge;
        if (edge != column.edges.begin() && read <= *std::prev(edge))
            return std::nextafter(*std::prev(edge), std::numeric_limits<double>::infinity());
        return read;
    }

    // Whether x lies on a flat piece that is the threshold of some split: it must stay there.
    static bool is_stored(const Forest& forest, const Forest::Column& column, double x) {
        return column.intervals && std::any_of(forest.intervals.begin(), forest.intervals.end(), [=](const Interval& w) { return w.holds(x); });
    }
};

}  // namespace gigrad
