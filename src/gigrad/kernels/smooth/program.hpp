// The head of a model as a short program: a list of steps over registers, run for up to POINTS points at once, forward
// and backward. The inner loop of every step is over points, so that the compiler can vectorize it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/aligned.hpp"
#include "smooth/functions.hpp"
#include "smooth/point_products.hpp"
#include "limits.hpp"

namespace gigrad {

constexpr size_t SIZES = 4;  // rules for segments of the head, with 1, 2, 4 and 8 nodes

enum class Operation { affine, function, knots, softmax, log_softmax, sum, product, gather, series };

// A function linear between knots (x, y) and constant beyond them. A table over equal steps of x gives the first knot
// to test for a value, so that a look-up takes constant time for any number of knots, unless they are clustered.
class Knots {
public:
    Knots() = default;
    Knots(std::vector<double> x, std::vector<double> y) : x_(std::move(x)), y_(std::move(y)) {
        const size_t n = x_.size();
        cells_.push_back({x_[0], x_[0], y_[0], 0.0});
        for (size_t i = 1; i < n; ++i)
            cells_.push_back({x_[i], x_[i - 1], y_[i - 1], (y_[i] - y_[i - 1]) / (x_[i] - x_[i - 1])});
        cells_.push_back({std::numeric_limits<double>::quiet_NaN(), x_[n - 1], y_[n - 1], 0.0});
        first_.resize(4 * n + 1);
        scale_ = static_cast<double>(4 * n) / (x_[n - 1] - x_[0]);
        if (!std::isfinite(scale_)) scale_ = 0.0;
        size_t cell = 0;
        for (size_t b = 0; b < first_.size(); ++b) {
            // one step early, since rounding may put a value into the next step
            while (cell < n && (x_[cell] - x_[0]) * scale_ < static_cast<double>(b) - 1.0) ++cell;
            first_[b] = static_cast<int32_t>(cell);
        }
    }

    // The function at n values, and how many knots are at most each: found from its step of the table, one knot at a
    // time. The first three comparisons are not branches, which neighbouring values on either side of a jump of the
    // trees would mispredict.
    void values(const double* v, size_t n, int32_t* numbers, double* out) const {
        const Cell* cells = cells_.data();
        const double low = x_.front(), high = x_.back(), scale = scale_;
        for (size_t i = 0; i < n; ++i) {
            const double value = v[i], above = value < low ? low : value, inside = above > high ? high : above;
            const double at = (inside - low) * scale;
            int32_t c = first_[static_cast<size_t>(at > 0.0 ? at : 0.0)];
            for (int turn = 0; turn < 3; ++turn) c += cells[c].end <= value;
            if (cells[c].end <= value) c = cell(value, c);
            numbers[i] = c;
            out[i] = cells[c].slope * (inside - cells[c].x) + cells[c].y;  // NaN stays NaN
        }
    }

    double slope(int32_t cell) const { return cells_[cell].slope; }
    const std::vector<double>& x() const { return x_; }

private:
    // Where c knots are at most a value: the next knot (NaN, which no value reaches, behind the last), and the line.
    struct Cell {
        double end, x, y, slope;
    };

    std::vector<double> x_, y_;
    std::vector<Cell> cells_;
    std::vector<int32_t> first_;
    double scale_ = 0.0;

    // How many knots are at most v: c or more.
    int32_t cell(double v, int32_t c) const {
        const auto n = static_cast<int32_t>(x_.size()), near = std::min<int32_t>(c + 16, n);
        while (c < near && x_[c] <= v) ++c;
        if (c == near) c = static_cast<int32_t>(std::upper_bound(x_.begin() + c, x_.end(), v) - x_.begin());
        return c;
    }
};

// Values of a part of the head, tabulated: for each row a Legendre series in one score.
struct SeriesTable {
    const double* values = nullptr;  // (rows, degrees, width)
    const double* slopes = nullptr;  // by the score
    size_t rows = 0, degrees = 0, width = 0;
    double middle = 0.0, scale = 1.0;
};

struct Step {
    Operation operation;
    size_t out = 0, width = 0;         // the first register of the result, and how many there are
    std::vector<size_t> in, in_width;  // of what it reads
    std::vector<double> weight, bias;  // affine: (width, in_width), (width,)
    std::vector<double> transposed;    // affine: (in_width, width)
    Function function = Function::identity;
    double parameter = 0.0;
    Knots knots;
    std::vector<size_t> registers;  // gather: the register of each column of the result
    bool turns = true;              // whether the input of a step with kinks may be non-monotone between two corners
    bool moving = false;            // whether it reads no output of the trees

    bool kinked() const {
        return operation == Operation::knots || (operation == Operation::function && has_kink(function));
    }
};

class Program {
public:
    // Registers 0 .. joints-1 hold the moving inputs, the next `constants` ones the trees' outputs; results follow.
    size_t joints = 0, constants = 0, output = 0, outputs = 0, registers = 0;
    std::vector<Step> steps;

    std::vector<size_t> spread;  // registers of moving values that other steps read, or that are the output

    void add(Step step) {
        step.out = registers;
        registers += step.width;
        steps.push_back(std::move(step));
    }

    // To be called when all steps have been added.
    void finish() {
        std::vector<bool> moves(registers, true), read(registers, false);
        std::fill_n(moves.begin() + static_cast<std::ptrdiff_t>(joints), constants, false);
        std::fill_n(read.begin() + static_cast<std::ptrdiff_t>(output), outputs, true);
        for (Step& s : steps) {
            s.moving = s.operation != Operation::series;
            each_read(s, [&](size_t r) { s.moving = s.moving && moves[r]; });
            std::fill_n(moves.begin() + static_cast<std::ptrdiff_t>(s.out), s.width, s.moving);
            if (!s.moving) each_read(s, [&](size_t r) { read[r] = true; });
        }
        for (size_t r = 0; r < registers; ++r)
            if (read[r] && moves[r]) spread.push_back(r);
    }

private:
    template <class Each>
    static void each_read(const Step& s, Each each) {
        for (const size_t r : s.registers) each(r);
        for (size_t p = 0; p < s.in.size(); ++p)
            for (size_t j = 0; j < s.in_width[p]; ++j) each(s.in[p] + j);
    }
};

// to += factor * from
GIGRAD_WIDE inline void add_scaled(double factor, const double* __restrict from, size_t n, double* __restrict to) {
    for (size_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

GIGRAD_WIDE inline void add_product(const double* __restrict a, const double* __restrict b, size_t n,
                                    double* __restrict to) {
    for (size_t i = 0; i < n; ++i) to[i] += a[i] * b[i];
}

// basis[d * POINTS + i] = P_d(u[i]) for d < degrees
GIGRAD_WIDE inline void legendre_basis(const double* u, size_t n, size_t degrees, double* basis) {
    for (size_t i = 0; i < n; ++i) basis[i] = 1.0;
    if (degrees > 1) std::copy(u, u + n, basis + POINTS);
    for (size_t d = 2; d < degrees; ++d) {
        const double k = static_cast<double>(d), up = (2.0 * k - 1.0) / k, down = (k - 1.0) / k;
        const double *one = basis + (d - 1) * POINTS, *two = basis + (d - 2) * POINTS;
        double* to = basis + d * POINTS;
        for (size_t i = 0; i < n; ++i) to[i] = up * u[i] * one[i] - down * two[i];
    }
}

// The registers of one thread.
class Machine {
public:
    explicit Machine(const Program& program, const SeriesTable& table)
        : program_(program),
          table_(table),
          values_(program.registers * POINTS),
          back_(program.registers * POINTS),
          basis_(std::max<size_t>(table.degrees, 1) * POINTS) {
        cells_.resize(program.steps.size());
        for (size_t s = 0; s < program.steps.size(); ++s)
            if (program.steps[s].operation == Operation::knots) cells_[s].resize(program.steps[s].width * POINTS);
    }

    double* value(size_t r) { return values_.data() + r * POINTS; }
    const double* back(size_t r) { return back_.data() + r * POINTS; }
    const int32_t* cells(size_t step, size_t column) const { return cells_[step].data() + column * POINTS; }

    // Runs the steps before `stop` for n points; rows[i] is the row of the table at point i.
    void forward(size_t n, const int64_t* rows, size_t stop) {
        for (size_t s = 0; s < stop; ++s) forward(program_.steps[s], s, n, rows);
    }

    // Runs the steps that read no output of the trees at n + 1 points, and all others for both ends of the n stretches
    // between neighbours, points i and n + i.
    void forward_between(size_t n, const int64_t* rows) {
        for (size_t s = 0; s < program_.steps.size(); ++s)
            if (program_.steps[s].moving) forward(program_.steps[s], s, n + 1, rows);
        for (const size_t r : program_.spread) std::memmove(value(r) + n, value(r) + 1, n * sizeof(double));
        for (size_t s = 0; s < program_.steps.size(); ++s)
            if (!program_.steps[s].moving) forward(program_.steps[s], s, 2 * n, rows);
    }

    // Derivatives of output k by all registers, for the points of the last full run.
    void backward(size_t k, size_t n, const int64_t* rows) {
        for (size_t r = 0; r < program_.registers; ++r) std::fill_n(to_back(r), whole(n), 0.0);
        double* one = to_back(program_.output + k);
        std::fill(one, one + n, 1.0);
        for (size_t s = program_.steps.size(); s-- > 0;) backward(program_.steps[s], s, n, rows);
    }

private:
    const Program& program_;
    const SeriesTable& table_;
    Aligned<double> values_, back_;
    std::vector<double> basis_;
    std::vector<std::vector<int32_t>> cells_;
    std::array<double, POINTS> slope_{}, total_{};

    // Products may write so many points: whole vectors.
    static size_t whole(size_t n) { return (n + 7) / 8 * 8; }
    double* to_back(size_t r) { return back_.data() + r * POINTS; }
    bool constant(size_t r) const { return r >= program_.joints && r < program_.joints + program_.constants; }

    void forward(const Step& step, size_t number, size_t n, const int64_t* rows) {
        switch (step.operation) {
            case Operation::affine:
                for (size_t r = 0; r < step.width; ++r) std::fill_n(value(step.out + r), whole(n), step.bias[r]);
                add_products(step.weight.data(), step.width, step.in_width[0], value(step.in[0]), n, value(step.out));
                break;
            case Operation::function:
                for (size_t r = 0; r < step.width; ++r)
                    function_values(step.function, step.parameter, value(step.in[0] + r), n, value(step.out + r));
                break;
            case Operation::knots:
                for (size_t r = 0; r < step.width; ++r)
                    step.knots.values(value(step.in[0] + r), n, cells_[number].data() + r * POINTS,
                                      value(step.out + r));
                break;
            case Operation::softmax:
            case Operation::log_softmax:
                softmax(step, n);
                break;
            case Operation::sum:
                for (size_t r = 0; r < step.width; ++r) {
                    double* to = value(step.out + r);
                    std::copy(value(step.in[0] + r), value(step.in[0] + r) + n, to);
                    for (size_t p = 1; p < step.in.size(); ++p) add_scaled(1.0, value(step.in[p] + r), n, to);
                }
                break;
            case Operation::product:
                for (size_t r = 0; r < step.width; ++r) {
                    double* to = value(step.out + r);
                    std::fill(to, to + n, 0.0);
                    add_product(value(side(step, 0, r)), value(side(step, 1, r)), n, to);
                }
                break;
            case Operation::gather:
                for (size_t r = 0; r < step.width; ++r)
                    std::copy(value(step.registers[r]), value(step.registers[r]) + n, value(step.out + r));
                break;
            case Operation::series:
                series(step, n, rows, table_.values, value(step.out), false);
                break;
        }
    }

    void backward(const Step& step, size_t number, size_t n, const int64_t* rows) {
        switch (step.operation) {
            case Operation::affine:
                if (constant(step.in[0])) break;  // it reads one node: all or none of its inputs are
                add_products(step.transposed.data(), step.in_width[0], step.width, back(step.out), n,
                             to_back(step.in[0]));
                break;
            case Operation::function:
                for (size_t r = 0; r < step.width; ++r) {
                    function_slopes(step.function, step.parameter, value(step.in[0] + r), value(step.out + r), n,
                                    slope_.data());
                    add_product(slope_.data(), back(step.out + r), n, to_back(step.in[0] + r));
                }
                break;
            case Operation::knots:
                for (size_t r = 0; r < step.width; ++r) {
                    const int32_t* cell = cells(number, r);
                    for (size_t i = 0; i < n; ++i) slope_[i] = step.knots.slope(cell[i]);
                    add_product(slope_.data(), back(step.out + r), n, to_back(step.in[0] + r));
                }
                break;
            case Operation::softmax:
            case Operation::log_softmax:
                softmax_back(step, n);
                break;
            case Operation::sum:
                for (const size_t in : step.in)
                    for (size_t r = 0; r < step.width; ++r) add_scaled(1.0, back(step.out + r), n, to_back(in + r));
                break;
            case Operation::product:
                for (size_t r = 0; r < step.width; ++r)
                    for (size_t p = 0; p < 2; ++p)
                        add_product(back(step.out + r), value(side(step, 1 - p, r)), n, to_back(side(step, p, r)));
                break;
            case Operation::gather:
                for (size_t r = 0; r < step.width; ++r)
                    add_scaled(1.0, back(step.out + r), n, to_back(step.registers[r]));
                break;
            case Operation::series:
                series(step, n, rows, table_.slopes, to_back(step.in[0]), true);
                break;
        }
    }

    // One column is broadcast over all columns of the other factor.
    static size_t side(const Step& step, size_t p, size_t r) { return step.in[p] + (step.in_width[p] == 1 ? 0 : r); }

    void softmax(const Step& step, size_t n) {
        double *most = slope_.data(), *total = total_.data();
        std::copy(value(step.in[0]), value(step.in[0]) + n, most);
        for (size_t r = 1; r < step.width; ++r)
            for (size_t i = 0; i < n; ++i) most[i] = std::max(most[i], value(step.in[0] + r)[i]);
        std::fill(total, total + n, 0.0);
        for (size_t r = 0; r < step.width; ++r) {
            const double* x = value(step.in[0] + r);
            double* y = value(step.out + r);
            for (size_t i = 0; i < n; ++i) y[i] = x[i] - most[i];
            for (size_t i = 0; i < n; ++i) total[i] += std::exp(y[i]);
        }
        for (size_t r = 0; r < step.width; ++r) {
            double* y = value(step.out + r);
            for (size_t i = 0; i < n; ++i)
                y[i] = step.operation == Operation::softmax ? std::exp(y[i]) / total[i] : y[i] - std::log(total[i]);
        }
    }

    void softmax_back(const Step& step, size_t n) {
        const bool logarithm = step.operation == Operation::log_softmax;
        std::fill(total_.begin(), total_.end(), 0.0);
        for (size_t r = 0; r < step.width; ++r)
            for (size_t i = 0; i < n; ++i)
                total_[i] += back(step.out + r)[i] * (logarithm ? 1.0 : value(step.out + r)[i]);
        for (size_t r = 0; r < step.width; ++r) {
            const double *y = value(step.out + r), *c = back(step.out + r);
            double* to = to_back(step.in[0] + r);
            for (size_t i = 0; i < n; ++i)
                to[i] += logarithm ? c[i] - std::exp(y[i]) * total_[i] : y[i] * (c[i] - total_[i]);
        }
    }

    // The table's series at every point; as derivatives, times what comes back, summed into the score's register.
    void series(const Step& step, size_t n, const int64_t* rows, const double* coefficients, double* to,
                bool derivative) {
        const double* score = value(step.in[0]);
        for (size_t i = 0; i < n; ++i) slope_[i] = (score[i] - table_.middle) * table_.scale;
        legendre_basis(slope_.data(), n, table_.degrees, basis_.data());
        for (size_t i = 0; i < n; ++i)
            for (size_t r = 0; r < table_.width; ++r) {
                const double* c = coefficients + static_cast<size_t>(rows[i]) * table_.degrees * table_.width + r;
                double sum = 0.0;
                for (size_t d = table_.degrees; d-- > 0;) sum += c[d * table_.width] * basis_[d * POINTS + i];
                if (derivative)
                    to[i] += sum * back(step.out + r)[i];
                else
                    to[r * POINTS + i] = sum;
            }
    }
};

}  // namespace gigrad
