// Walks random and corrupt forests, layers along lines, and heads, under AddressSanitizer and UndefinedBehaviorSanitizer
// (`make sanitize`). Values on a coarse grid make ties; huge, tiny, infinite and missing ones try the arithmetic.
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

#include "link/corner_credits.hpp"
#include "link/corner_leaves.hpp"
#include "link/corner_orders.hpp"
#include "walk/jumps.hpp"
#include "link/linked.hpp"
#include "core/reading.hpp"
#include "smooth/units.hpp"

#include "heads.hpp"

using namespace gigrad;

namespace {

std::mt19937_64 rng(7);

int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng); }
double uniform() { return std::uniform_real_distribution<double>(0, 1)(rng); }

void must(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "sanitize: %s\n", what);
    std::exit(1);
}

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
    a.node(leaf ? -1 : below(static_cast<int>(a.n_columns)), some_value(false));
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

const LaneKernel* some_kernel() {
    const auto kernels = runnable_lanes();
    const int choice = below(static_cast<int>(kernels.size()) + 1);
    return choice ? kernels[static_cast<size_t>(choice) - 1] : nullptr;
}

// Every corner of every pair, once.
void list_corners(const Forest& forest, const LaneKernel* kernel, const Rows& starts, const Rows& ends,
                  std::vector<int64_t>& pair, std::vector<double>& time) {
    size_t first = 0;
    for (const JumpList& list : jumps(forest, kernel, starts, ends, 2)) {
        size_t entry = 0;
        for (size_t i = 0; i < list.count.size(); ++i)
            for (int64_t c = 0; c < list.count[i]; ++c, ++entry) {
                if (c > 0 && list.time[entry] == list.time[entry - 1]) continue;
                pair.push_back(static_cast<int64_t>(first + i));
                time.push_back(list.time[entry]);
            }
        first += list.count.size();
    }
    must(first == starts.n_rows, "jumps lost a pair");
}

// Everything a caller can ask of a forest; what must add up is checked on the way.
void walk_everything(const Forest& forest, bool extreme) {
    const size_t p = forest.n_inputs(), k = forest.n_outputs(), n = static_cast<size_t>(1 + below(70));
    const auto s = random_rows(n, p, extreme), e = random_rows(n, p, extreme);
    const ReadRows from(forest, {s.data(), n, p}, "starts"), to(forest, {e.data(), n, p}, "ends");
    const Rows &S = from, &E = to;
    std::vector<double> fs(n * k), fe(n * k), credit(n * p * k), mean(n * p * k),
        weights(n, 1.0 / static_cast<double>(n));
    predict(forest, S, fs.data());
    predict(forest, E, fe.data());
    const LaneKernel* kernel = some_kernel();
    credits_pairs(forest, kernel, S, E, 2, credit.data());
    credits(forest, kernel, S, weights.data(), E, 2, mean.data());
    walk_linear_leaves(forest, kernel, S, E, s.data(), e.data(), p);
    double scale = 1.0;
    for (const double v : forest.values) scale = std::max(scale, std::abs(v));
    for (size_t i = 0; i < n && scale < 1e100; ++i)
        for (size_t o = 0; o < k; ++o) {
            double pair = fs[i * k + o] - fe[i * k + o], row = -fe[i * k + o];
            for (size_t m = 0; m < n; ++m) row += weights[m] * fs[m * k + o];
            for (size_t j = 0; j < p; ++j) pair += credit[(i * p + j) * k + o], row += mean[(i * p + j) * k + o];
            must(std::abs(pair) < 1e-9 * scale && std::abs(row) < 1e-9 * scale, "credits do not add up");
        }
    std::vector<int64_t> pair;
    std::vector<double> time;
    list_corners(forest, kernel, S, E, pair, time);
    std::vector<uint8_t> past(pair.size() * p);
    for (auto& b : past) b = static_cast<uint8_t>(below(2));
    std::vector<double> out(pair.size() * k);
    cells(forest, S, E, pair.data(), time.data(), past.data(), pair.size(), 2, out.data());
}

// The same corners as games of their own: tables, folds and orders tell the same.
void play_corners(const Forest& forest, const Rows& S, const Rows& E, const std::vector<int64_t>& pair,
                  const std::vector<double>& time) {
    const size_t width = forest.n_outputs();
    for (size_t i = 0; i < pair.size(); ++i) {
        CornerLeaves leaves(forest, S.row(pair[i]), E.row(pair[i]), time[i]);
        std::vector<int32_t> players = leaves.variables();
        players.push_back(static_cast<int32_t>(forest.n_variables()) + 3);  // one who plays elsewhere
        const size_t n = players.size(), cells = (size_t{1} << n) * width, strong = n / 2, weak = n - strong;
        leaves.set_players(players.data(), n);
        std::vector<double> table(cells), batch(cells), shares(n * width), folded(n * width);
        for (uint32_t part = 0; part < 2; ++part) leaves.table(n - 1, part, table.data() + part * cells / 2);
        coalition_scores(forest, S, E, &pair[i], &time[i], players.data(), 1, n, 1, batch.data());
        for (size_t c = 0; c < cells; ++c)
            must(std::abs(table[c] - batch[c]) < 1e-9, "parts of a table differ from the whole");
        CoalitionFold fold(n, width);
        fold.add(table.data(), size_t{1} << n);
        fold.finish(folded.data());
        leaves.shares(shares.data());
        for (size_t c = 0; c < n * width; ++c)
            must(std::abs(folded[c] - shares[c]) < 1e-9, "a fold differs from the shares of leaves");
        std::vector<int32_t> order(n);
        std::vector<int64_t> joins(weak);
        for (size_t j = 0; j < n; ++j) order[j] = static_cast<int32_t>(n - 1 - j);
        for (size_t j = 0; j < weak; ++j) joins[j] = static_cast<int64_t>(weak - 1 - j);
        leaves.set_order(order, strong);
        const size_t each = (size_t{1} << strong) * width;
        std::vector<double> prefixes((weak + 1) * each), gains(n * width);
        leaves.follow(joins.data(), prefixes.data());
        for (size_t c = 0; c < width; ++c)
            must(std::abs(prefixes[weak * each + each - width + c] - table[cells - width + c]) < 1e-9,
                 "all players differ by their order");
        const std::vector<double> nobody(prefixes.begin(), prefixes.begin() + static_cast<std::ptrdiff_t>(width));
        for (size_t c = 0; c < prefixes.size(); ++c) prefixes[c] -= nobody[c % width];
        fold_orders(prefixes.data(), 1, strong, weak, width, gains.data());
        for (size_t c = 0; c < width; ++c) {
            double left = prefixes[weak * each + each - width + c];
            for (size_t j = 0; j < n; ++j) left -= gains[j * width + c];
            must(std::abs(left) < 1e-9, "a drawn order does not add up");
        }
    }
}

// Under a link, with corners enumerated and sampled: still everything adds up.
void walk_linked(const Forest& forest) {
    const size_t p = forest.n_inputs(), k = forest.n_outputs(), n = static_cast<size_t>(1 + below(70));
    const auto s = random_rows(n, p, true), e = random_rows(n, p, true);
    const ReadRows from(forest, {s.data(), n, p}, "starts"), to(forest, {e.data(), n, p}, "ends");
    const Rows &S = from, &E = to;
    Link link(k);
    if (below(2)) link.add("softmax", {}, {});
    link.add("affine", std::vector<double>(2 * k, 0.5), {0.1, -0.1});
    link.add(below(2) ? "sigmoid" : "piecewise_linear", {-1.0, 0.0, 1.5}, {0.0, 0.75, 1.0});
    const LaneKernel* kernel = some_kernel();
    std::vector<double> fs(n * k), fe(n * k), credit(n * p * 2), mean(n * p * 2),
        weights(n, 1.0 / static_cast<double>(n));
    must(linked_credits_pairs(forest, kernel, link, S, E, 1e-3, 2, credit.data()).empty(),
         "a small corner was left out");
    must(linked_credits(forest, kernel, link, S, weights.data(), E, 1e-3, 2, mean.data()).empty(),
         "a small corner was left out");
    predict(forest, S, fs.data());
    predict(forest, E, fe.data());
    link.apply(fs, n);
    link.apply(fe, n);
    std::vector<int64_t> pair;
    std::vector<double> time;
    list_corners(forest, kernel, S, E, pair, time);
    std::vector<double> corner(pair.size() * p * 2), summed(n * 2, 0.0), sums(4 * n * p * 2);
    std::vector<int64_t> large(pair.size()), groups(pair.size(), 3);
    std::vector<uint64_t> seeds(pair.size(), 5);
    std::vector<double> ones(pair.size(), 1.0);
    corner_credits(forest, link, S, E, pair.data(), time.data(), pair.size(), 2, corner.data(), large.data());
    play_corners(forest, S, E, pair, time);
    const size_t each = n * p * 2;
    sample_corners(
        forest, link, S, E,
        {pair.size(), pair.data(), pair.data(), pair.data(), time.data(), ones.data(), groups.data(), seeds.data()}, n,
        2, {sums.data(), sums.data() + each, sums.data() + 2 * each, sums.data() + 3 * each});
    for (size_t c = 0; c < corner.size(); ++c) summed[static_cast<size_t>(pair[c / (2 * p)]) * 2 + c % 2] += corner[c];
    for (size_t i = 0; i < n; ++i)
        for (size_t o = 0; o < 2; ++o) {
            double rest = fs[i * 2 + o] - fe[i * 2 + o];
            must(std::abs(rest + summed[i * 2 + o]) < 1e-9, "corners do not add up");
            double drawn = rest;
            for (size_t j = 0; j < p; ++j) drawn += sums[(i * p + j) * 2 + o];
            must(std::abs(drawn) < 1e-9, "sampled corners do not add up");
            for (size_t j = 0; j < p; ++j) rest += credit[(i * p + j) * 2 + o];
            must(std::abs(rest) < 1e-9, "linked credits do not add up");
        }
}

// One number of the arrays is overwritten: the forest must be refused, or be safe to walk.
bool corrupt(Arrays a) {
    const auto hit = [&](auto& v, auto x) {
        if (!v.empty()) v[static_cast<size_t>(below(static_cast<int>(v.size())))] = x;
    };
    const int32_t wild[] = {-1, -2, 0, 1, 7, 1 << 20, INT32_MAX, INT32_MIN};
    const int32_t x = wild[below(8)];
    switch (below(12)) {
        case 0:
            hit(a.feature, x);
            break;
        case 1:
            hit(a.left, x);
            break;
        case 2:
            hit(a.right, x);
            break;
        case 3:
            hit(a.set, x);
            break;
        case 4:
            hit(a.set_start, x);
            break;
        case 5:
            hit(a.value, x);
            break;
        case 6:
            hit(a.roots, x);
            break;
        case 7:
            hit(a.output, x);
            break;
        case 8:
            hit(a.threshold, some_value(true));
            break;
        case 9:
            hit(a.place, some_value(true));
            break;
        case 10:
            hit(below(2) ? a.low : a.high, some_value(true));
            break;
        default:
            hit(a.values, some_value(true));
            break;
    }
    try {
        walk_everything(a.forest(), true);
    } catch (const std::invalid_argument&) { return true; }
    return false;
}

std::vector<double> some_values(size_t n) {
    std::vector<double> out(n);
    for (double& x : out) x = some_value(true);
    return out;
}

// Layers along a line: rows of `columns` units on a coarse grid of `points`, bent at a kink in the middle of every piece,
// asked at nodes and pulled back. Arrays are exactly as long as they need to be.
void follow_layers() {
    const size_t points = 2 + static_cast<size_t>(below(4)), columns = 1 + static_cast<size_t>(below(20)),
                 fine = 2 * points - 1;
    const std::vector<double> coarse = some_values(points * columns), matrix = some_values(3 * columns),
                              bends = some_values(points - 1);
    std::vector<int64_t> at(fine), kink, unit, first;
    std::vector<double> time(fine), bent(fine * columns), late(points - 1), sums((points - 1) * columns);
    for (size_t i = 0; i < fine; ++i) at[i] = static_cast<int64_t>(i / 2), time[i] = static_cast<double>(i);
    for (size_t i = 1; i < fine; i += 2) kink.push_back(static_cast<int64_t>(i)), unit.push_back(below(3));
    bend_rows(coarse.data(), columns, at.data(), time.data(), fine, kink.data(), bends.data(), unit.data(), kink.size(),
              matrix.data(), bent.data());
    std::vector<int64_t> end;
    for (size_t i = 0; i + 1 < points; ++i)
        first.push_back(static_cast<int64_t>(2 * i)), end.push_back(static_cast<int64_t>(2 * i + 2));
    suffix_products(bent.data(), columns, kink.data(), end.data(), unit.data(), kink.size(), matrix.data(),
                    late.data());
    sum_groups(bent.data(), fine - 1, columns, first.data(), first.size(), sums.data());
    add_rows(sums.data(), first.data(), bent.data(), 1, columns);
    std::vector<int64_t> piece, column;
    passed_rows(bent.data(), columns, first.data(), first.size(), 1.0, piece, column);
    must(piece.size() == column.size() && largest_step(bent.data(), bent.data() + columns, columns) >= 0.0,
         "levels passed");

    const size_t panels = fine - 1, nodes = 1 + static_cast<size_t>(below(5)),
                 width = 1 + static_cast<size_t>(below(3));
    const size_t degrees = std::min(nodes, MAX_TOPS), n = panels * nodes;
    std::vector<int64_t> left(n), begin(panels);
    std::vector<double> part(n), units(n * columns), out(n * width), line(panels * columns), total(degrees * panels),
        squares(degrees * panels);
    for (size_t p = 0; p < panels; ++p) begin[p] = static_cast<int64_t>(p);
    for (size_t i = 0; i < n; ++i) left[i] = begin[i / nodes], part[i] = uniform();
    const std::vector<double> weight = some_values(width * columns), node_weight = some_values(n),
                              top = some_values(degrees * nodes), share = some_values(panels);
    for (const Unit kind : {Unit::tanh, Unit::sigmoid}) {
        units_at(kind, bent.data(), columns, left.data(), part.data(), n, weight.data(), width, units.data(),
                 out.data());
        units_back(kind, units.data(), columns, panels, nodes, out.data(), weight.data(), width, node_weight.data(),
                   top.data(), degrees, bent.data(), begin.data(), share.data(),
                   {line.data(), total.data(), squares.data()});
    }
}

}  // namespace

int main() {
    int refused = 0;
    for (int i = 0; i < 250; ++i) {
        const Arrays a = random_arrays();
        walk_everything(a.forest(), false);
        walk_everything(a.forest(), true);
        walk_linked(a.forest());
        for (int c = 0; c < 6; ++c) refused += corrupt(a);
        follow_layers();
        integrate_head([](size_t n) { return some_values(n); }, below);
    }
    must(refused > 300, "too few corrupt forests were refused: the test does not test");
    std::printf("sanitize: 500 forests walked, %d of 1500 corrupt ones refused, nothing wrong\n", refused);
}
