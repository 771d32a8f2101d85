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
        const bool decimals = times && std::any_of(columns.begin(), columns.end(), [](const Forest::Column& c) { return c.single; });
        if (columns.size() == forest.n_inputs() && !decimals) return;
        const size_t width = columns.size(), n = given.n_rows;
        store_.resize(n * width);
        for (size_t j = 0; j < width; ++j) {
            const double* from = given.data + columns[j].input;
            double* to = store_.data() + j;
            if (!columns[j].single || !times)
                for (size_t i = 0; i < n; ++i) to[i * width] = from[i * given.n_columns];
            else if (columns[j].folded)
                for (size_t i = 0; i < n; ++i) to[i * width] = decimal_of_float32(from[i * given.n_columns]);
            else
                read_carefully(forest, static_cast<int32_t>(j), from, given, to, width);
        }
        rows_ = {store_.data(), n, width};
    }

    operator const Rows&() const { return rows_; }

  private:
    Rows rows_;
    std::vector<double> store_;

    // Thresholds that a transformer has moved, or that float64 libraries share: a decimal may lie on their other side, and
    // a value that is the stored threshold to the library must stay one.
    static void read_carefully(const Forest& forest, int32_t column, const double* from, const Rows& given, double* to, size_t step) {
        std::vector<double> edges;
        std::vector<Interval> intervals;
        for (const Node& node : forest.nodes) {
            if (node.is_leaf() || node.feature != column || node.set >= 0) continue;
            edges.push_back(node.threshold);
            if (node.interval() >= 0) intervals.push_back(forest.intervals[node.interval()]);
        }
        std::sort(edges.begin(), edges.end());
        std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
        for (size_t i = 0; i < given.n_rows; ++i) to[i * step] = careful_decimal(edges, intervals, from[i * given.n_columns]);
    }

    static double careful_decimal(const std::vector<double>& edges, const std::vector<Interval>& intervals, double x) {
        if (!std::isfinite(x)) return x;
        const auto after = std::upper_bound(intervals.begin(), intervals.end(), x, [](double v, const Interval& w) { return v < w.low; });
        if (after != intervals.begin() && std::prev(after)->holds(x)) return x;
        const double decimal = decimal_of_float32(x);
        const auto edge = std::lower_bound(edges.begin(), edges.end(), x);  // the first that x does not exceed
        if (edge != edges.end() && decimal > *edge) return *edge;
        if (edge != edges.begin() && decimal <= *std::prev(edge))
            return std::nextafter(*std::prev(edge), std::numeric_limits<double>::infinity());
        return decimal;
    }
};

}  // namespace gigrad
