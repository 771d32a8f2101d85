// Walks random and corrupt forests, layers along lines, and heads, under AddressSanitizer and UndefinedBehaviorSanitizer
// (`make sanitize`).
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "link/corner_credits.hpp"
#include "link/corner_leaves.hpp"
#include "link/corner_orders.hpp"
#include "walk/path_corners.hpp"
#include "link/linked.hpp"
#include "core/reading.hpp"
#include "smooth/interval_kinks.hpp"
#include "smooth/line_net.hpp"
#include "smooth/rows.hpp"
#include "smooth/unit_ends.hpp"

#include "forests.hpp"
#include "heads.hpp"

using namespace gigrad;

namespace {

void must(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "sanitize: %s\n", what);
    std::exit(1);
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

// The corners of two sums of the same trees together, and of columns that jump half-way on the first path: after the last
// corner of every path the outputs are those at its end.
void join_some_corners(const Forest& forest, const LaneKernel* kernel, const Rows& starts, const Rows& ends,
                       const std::vector<double>& fs, const std::vector<double>& fe, double scale) {
    const size_t n = starts.n_rows, k = forest.n_outputs(), halves = static_cast<size_t>(below(3));
    const std::vector<JumpList> lists = jumps(forest, kernel, starts, ends, 2);
    size_t most = halves;
    for (const JumpList& list : lists) most += 2 * list.time.size();
    const std::vector<int64_t> path(halves, 0), column(halves, 0);
    std::vector<int64_t> first(n + 1), offsets(most + 1), columns(most);
    std::vector<double> time(most), one((most + n) * k), two((most + n) * k);
    const std::unique_ptr<bool[]> broken(new bool[most]);
    std::vector<JoinedTrees> trees = {{JumpReader(lists), k, fs.data(), one.data()},
                                      {JumpReader(lists), k, fs.data(), two.data()}};
    join_corners(trees, n, path.data(), column.data(), halves,
                 {first.data(), time.data(), offsets.data(), columns.data(), broken.get()});
    for (size_t i = 0; i < n && scale < 1e100; ++i)
        for (size_t o = 0; o < k; ++o) {
            const size_t last = (static_cast<size_t>(first[i + 1]) + i) * k + o;
            must(one[last] == two[last] && std::abs(one[last] - fe[i * k + o]) < 1e-9 * scale, "jumps of joined trees");
        }
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
    split_speeds(s.data(), S.n_rows / 3, 3, p);
    double scale = 1.0;
    for (const double v : forest.values) scale = std::max(scale, std::abs(v));
    for (size_t i = 0; i < n && scale < 1e100; ++i)
        for (size_t o = 0; o < k; ++o) {
            double pair = fs[i * k + o] - fe[i * k + o], row = -fe[i * k + o];
            for (size_t m = 0; m < n; ++m) row += weights[m] * fs[m * k + o];
            for (size_t j = 0; j < p; ++j) pair += credit[(i * p + j) * k + o], row += mean[(i * p + j) * k + o];
            must(std::abs(pair) < 1e-9 * scale && std::abs(row) < 1e-9 * scale, "credits do not add up");
        }
    join_some_corners(forest, kernel, S, E, fs, fe, scale);
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

// Corners whose terms were kept are sampled as those that are walked to again.
void sample_kept(const Forest& forest, const Link& link, const Rows& S, const Rows& E, const std::vector<int64_t>& pair,
                 const std::vector<double>& time, const std::vector<double>& ones, const std::vector<int64_t>& groups,
                 const std::vector<uint64_t>& seeds) {
    const size_t n = S.n_rows, outputs = link.n_outputs(), each = n * forest.n_variables() * outputs;
    std::vector<LargeCorner> found(pair.size());
    std::vector<int64_t> number(pair.size()), drawn(pair.size());
    std::vector<double> spread(pair.size()), common(3 * n * outputs), sums[2];
    CornerWalk walk(forest);
    CornerTerms terms(forest.n_outputs());
    for (size_t i = 0; i < pair.size(); ++i) {
        number[i] = static_cast<int64_t>(i);
        found[i].margin.resize(forest.n_outputs());
        walk.collect(S.row(pair[i]), E.row(pair[i]), time[i], terms, found[i].margin.data());
    }
    for (const bool kept : {false, true}) {
        for (size_t i = 0; kept && i < pair.size(); ++i) {
            std::vector<double> nobody(forest.n_outputs());
            walk.collect(S.row(pair[i]), E.row(pair[i]), time[i], terms, nobody.data());
            terms.name_players();
            terms.drop_players_without_effect();
            found[i].terms = terms.store();
        }
        sums[kept].resize(5 * each);
        double* const to = sums[kept].data();
        sample_corners(
            forest, link, S, E,
            {pair.size(), pair.data(), pair.data(), pair.data(), time.data(), ones.data(), groups.data(), seeds.data(),
             nullptr, nullptr, found.data(), number.data()},
            n, 2,
            {to, to + each, to + 2 * each, to + 3 * each, to + 4 * each, common.data(), spread.data(), drawn.data()});
    }
    must(sums[0] == sums[1], "kept corners are sampled differently");
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
    std::vector<double> single(n * n * p * 2), trees(n * n * p * k);
    must(linked_credits_singly(forest, kernel, link, S, E, 1e-3, 2, single.data(), trees.data()).empty(),
         "a small corner was left out");
    for (size_t i = 0; i < n * p * 2; ++i) {
        double sum = 0.0;
        for (size_t m = 0; m < n; ++m) sum += weights[m] * single[(i / (p * 2) * n + m) * p * 2 + i % (p * 2)];
        must(std::abs(sum - mean[i]) < 1e-9, "single credits do not add up to their mean");
    }
    predict(forest, S, fs.data());
    predict(forest, E, fe.data());
    link.apply(fs, n);
    link.apply(fe, n);
    std::vector<int64_t> pair;
    std::vector<double> time;
    list_corners(forest, kernel, S, E, pair, time);
    std::vector<double> corner(pair.size() * p * 2), summed(n * 2, 0.0), spread(pair.size());
    std::vector<int64_t> large(pair.size()), groups(pair.size(), 3), drawn_groups(pair.size());
    for (size_t i = 0; i < groups.size(); i += 4) groups[i] = 0;  // enumerated
    std::vector<uint64_t> seeds(pair.size(), 5);
    std::vector<double> ones(pair.size(), 1.0);
    corner_credits(forest, link, S, E, pair.data(), time.data(), pair.size(), 2, corner.data(), large.data());
    play_corners(forest, S, E, pair, time);
    const size_t each = n * p * 2;
    std::vector<double> sums(5 * each), common(3 * n * 2), allowed(pair.size(), 1e-6), scale(pair.size() * 2, 1.0);
    for (const bool free : {false, true}) {  // as many groups as told, or as many as a first one calls for
        std::fill(sums.begin(), sums.end(), 0.0);
        sample_corners(forest, link, S, E,
                       {pair.size(), pair.data(), pair.data(), pair.data(), time.data(), ones.data(), groups.data(),
                        seeds.data(), free ? allowed.data() : nullptr, free ? scale.data() : nullptr},
                       n, 2,
                       {sums.data(), sums.data() + each, sums.data() + 2 * each, sums.data() + 3 * each,
                        sums.data() + 4 * each, common.data(), spread.data(), drawn_groups.data()});
        for (size_t i = 0; i < n; ++i)
            for (size_t o = 0; o < 2; ++o) {
                double drawn = fs[i * 2 + o] - fe[i * 2 + o];
                for (size_t j = 0; j < p; ++j) drawn += sums[(i * p + j) * 2 + o] + sums[each + (i * p + j) * 2 + o];
                must(std::abs(drawn) < 1e-9, "sampled corners do not add up");
            }
    }
    sample_kept(forest, link, S, E, pair, time, ones, groups, seeds);
    for (size_t c = 0; c < corner.size(); ++c) summed[static_cast<size_t>(pair[c / (2 * p)]) * 2 + c % 2] += corner[c];
    for (size_t i = 0; i < n; ++i)
        for (size_t o = 0; o < 2; ++o) {
            double rest = fs[i * 2 + o] - fe[i * 2 + o];
            must(std::abs(rest + summed[i * 2 + o]) < 1e-9, "corners do not add up");
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

// Kinks of two layers of units on intervals, the first of which may read anything, and the way back from the second.
void find_interval_kinks() {
    const size_t intervals = 1 + static_cast<size_t>(below(4)), lower = 1 + static_cast<size_t>(below(90)),
                 upper = 1 + static_cast<size_t>(below(90));
    const std::vector<double> first = some_values((intervals + 1) * lower),
                              second = some_values((intervals + 1) * upper), rows = some_values(lower * upper),
                              none_rows, none;
    const std::vector<int64_t> empty(intervals + 1, 0), no_units;
    const KinksBelow nothing{empty.data(), no_units.data(), none.data(), none.data(), none_rows.data()};
    const auto found = [&](const std::vector<double>& values, size_t units, const KinksBelow& below_) {
        IntervalKinks kinks;
        IntervalFinder finder(units, below_);
        for (size_t k = 0; k < intervals; ++k)
            finder.find(k, &values[k * units], &values[(k + 1) * units], static_cast<double>(k),
                        static_cast<double>(k + 1), kinks);
        must(kinks.first.size() == intervals + 1 && kinks.first.back() == static_cast<int64_t>(kinks.unit.size()),
             "kinks by interval");
        for (const double t : kinks.time) must(t >= 0.0 && t <= static_cast<double>(intervals), "times of kinks");
        return kinks;
    };
    const IntervalKinks low = found(first, lower, nothing);
    const IntervalKinks high =
        found(second, upper, {low.first.data(), low.unit.data(), low.time.data(), low.rate.data(), rows.data()});
    std::vector<double> late(low.unit.size());
    late_products(second.data(), intervals, upper, rows.data(),
                  {low.first.data(), low.unit.data(), low.time.data(), low.time.data()},
                  {high.first.data(), high.unit.data(), high.time.data(), high.time.data()}, high.rate.data(),
                  late.data());
}

// Layers along a line: rows of `columns` units on a coarse grid of `points`, bent at a kink in the middle of every piece.
// Arrays are exactly as long as they need to be.
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
    // Kinks on two legs: what is added after the first and before the end of its leg, and in the whole.
    const auto half = static_cast<int64_t>(fine / 2), all = static_cast<int64_t>(fine);
    const std::vector<int64_t> legs{0, half, all}, early{0, half}, later{0, half - 1, all - 1}, rows{0, 1, 2};
    const std::vector<double> factor = some_values(3);
    std::vector<double> added(2), whole(2 * columns), slopes(columns);
    later_rows(early.data(), std::vector<int64_t>(2, 0).data(), 2, later.data(), rows.data(), factor.data(), 3,
               legs.data(), 2, matrix.data(), columns, added.data(), whole.data());
    middle_slope(bent.data(), bent.data() + columns, 0.0, 0.5, 1.0, columns, slopes.data());
    must(slopes[0] == 0.0 || slopes[0] == 0.5 || slopes[0] == 1.0, "slopes half-way");
    add_rows(sums.data(), first.data(), bent.data(), 1, columns);
    std::vector<int64_t> piece, column;
    passed_rows(bent.data(), columns, first.data(), first.size(), 1.0, piece, column);
    must(piece.size() == column.size() && largest_step(bent.data(), bent.data() + columns, columns) >= 0.0,
         "levels passed");
}

// Smooth units over the lines of some points, known at both ends of the panels in between, and pulled back.
void pull_units() {
    const size_t n = 3 + static_cast<size_t>(below(9)), width = PULLED_UNITS * (1 + static_cast<size_t>(below(3)));
    std::vector<double> rows(n * width);
    for (double& x : rows) x = static_cast<double>(below(2001)) / 1000.0 - 1.0;
    const size_t panels = n - 1, weights = 2, outputs = 2;
    std::vector<int64_t> left(panels), high(panels), at(n);
    for (size_t p = 0; p < n; ++p) at[p] = static_cast<int64_t>(p);
    for (size_t p = 0; p < panels; ++p) left[p] = at[p], high[p] = at[p + 1];
    std::vector<double> values(n * width), sums(weights * panels * width), speeds(panels * outputs * END_DATA),
        sizes(speeds.size());
    units_between(rows.data(), width, at.data(), std::vector<double>(n, 0.0).data(), n, below(2) == 1, values.data());
    const std::vector<double> matrix = some_values(outputs * width), half(panels, 0.5), square = some_values(9),
                              weight = some_values(weights * panels * outputs * END_DATA);
    const UnitEnds x{panels,      outputs,     width,       values.data(), {1.0, 0.0, -1.0}, matrix.data(),
                     left.data(), high.data(), rows.data(), left.data(),   half.data()};
    unit_speeds(x, square.data(), square.data(), speeds.data(), sizes.data());
    pull_unit_ends(x, weight.data(), weights, sums.data());
    for (const double size : sizes) must(!(size < 0.0), "sizes");
}

// A net of units with kinks over straight columns: two layers, one of which something else reads too, joined with what is
// straight; traced along legs and pulled back.
void trace_net() {
    const size_t width = 1 + static_cast<size_t>(below(40)), units = 1 + static_cast<size_t>(below(40));
    LineNet net;
    const auto add = [&](LineOperation operation, size_t columns, std::vector<size_t> in) -> LineStep& {
        LineStep step;
        step.operation = operation, step.width = columns, step.in = std::move(in);
        net.steps.push_back(step);
        return net.steps.back();
    };
    const auto layer = [&](size_t in, size_t columns) {
        const size_t read = net.steps[in].width;
        LineStep& step = add(LineOperation::affine, columns, {in});
        step.weight = some_values(columns * read), step.bias = some_values(columns), step.rows.resize(columns * read);
        for (size_t r = 0; r < columns; ++r)
            for (size_t j = 0; j < read; ++j) step.rows[j * columns + r] = step.weight[r * read + j];
    };
    add(LineOperation::straight, width, {});
    net.straight = width;
    add(LineOperation::units, width, {0});
    layer(1, units);
    add(LineOperation::units, units, {2}).below = 0.1;
    layer(3, 1 + static_cast<size_t>(below(9)));
    add(LineOperation::sum, units, {2, 3});
    LineStep& gather = add(LineOperation::gather, 2, {0, 5});
    gather.columns = {{0, width - 1}, {1, units - 1}};
    net.ends = {4, 6};
    net.finish();
    LineTracer tracer(net);
    LegTrace leg;
    for (int i = 0; i < 3; ++i) {
        const std::vector<double> from = some_values(width), to = some_values(width);
        tracer.trace(0.0, 1.0, from.data(), to.data(), leg);
        const std::vector<double> times = tracer.finest();
        std::vector<double> ends(times.size() * net.width), back(width);
        tracer.ends(leg, ends.data());
        const std::vector<double> cotangent = some_values((times.size() - 1) * net.width);
        tracer.pull_back(leg, times.data(), times.size(), cotangent.data(), back.data());
        must(std::is_sorted(times.begin(), times.end()), "times of kinks are in order");
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
        pull_units();
        find_interval_kinks();
        trace_net();
        integrate_head([](size_t n) { return some_values(n); }, below);
        integrate_legs([](size_t n) { return some_values(n); }, below);
        credit_curves([](size_t n) { return some_values(n); }, below);
        must(same_products([](size_t n) { return some_values(n); }, below), "products of every instruction set");
    }
    must(refused > 300, "too few corrupt forests were refused: the test does not test");
    std::printf("sanitize: 500 forests walked, %d of 1500 corrupt ones refused, nothing wrong\n", refused);
}
