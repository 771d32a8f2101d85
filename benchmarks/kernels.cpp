// The native core on trees as boosting makes them, to measure its constants: kernel_limits.py builds it with GIGRAD_TUNED.
//
//   kernels NAME    the least processor time of several runs of a workload, in milliseconds
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "core/reading.hpp"
#include "link/linked.hpp"

#include "../tests/native/forests.hpp"

namespace {

// 200 trees of depth 6 on 30 columns that hardly tie, or of depth 5 on 20 flags.
Forest boosted(bool flags, size_t outputs) {
    Arrays a;
    a.n_columns = flags ? 20 : 30;
    a.base.assign(outputs, 0.0);
    for (int t = 0; t < (flags ? 60 : 200); ++t) {
        a.roots.push_back(static_cast<int32_t>(a.feature.size()));
        a.output.push_back(t % static_cast<int>(outputs));
        grow(a, flags ? 5 : 6);
    }
    for (size_t i = 0; i < a.threshold.size(); ++i) {
        a.threshold[i] = a.low[i] = a.high[i] = a.place[i] = flags ? 0.5 : uniform();
        a.set[i] = -1, a.single[i] = 0;
    }
    return a.forest();
}

struct Table {
    size_t rows, columns;
    std::vector<double> numbers;
    Table(size_t n, const Forest& forest) : rows(n), columns(forest.n_inputs()), numbers(n * columns) {
        for (double& v : numbers) v = uniform();
    }
    Rows given() const { return {numbers.data(), rows, columns}; }
};

double milliseconds() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Runs `work` for about half a second of processor time, five times at least.
template <class Work>
int timed(Work work) {
    double least = 1e300;
    const double stop = milliseconds() + 500.0;
    for (int i = 0; i < 5 || milliseconds() < stop; ++i) {
        const double began = milliseconds();
        work();
        least = std::min(least, milliseconds() - began);
    }
    std::printf("%.6f\n", least);
    return 0;
}

int run(const std::string& name) {
    const bool flags = name == "corners";
    const size_t outputs = name == "classes" ? 3 : 1;
    const Forest forest = boosted(flags, outputs);
    const auto walks = runnable_lanes();
    const LaneKernel* kernel = nullptr;  // of sixteen lanes, which every machine has
    for (const LaneKernel* lanes : walks)
        if (lanes->lanes == 16 && (!kernel || std::strcmp(lanes->name, "lanes") != 0)) kernel = lanes;
    if (name.rfind("portable", 0) == 0) kernel = nullptr;
    const size_t starts = name == "few" ? 8 : flags ? 1 : 2500, ends = name == "pairs" ? 2500 : flags ? 1 : 4;
    Table s(starts, forest), e(ends, forest);
    if (flags) s.numbers.assign(20, 0.0), e.numbers.assign(20, 1.0);  // one corner of all flags
    const ReadRows from(forest, s.given(), "starts"), to(forest, e.given(), "ends");
    const std::vector<double> weights(starts, 1.0 / static_cast<double>(starts));
    std::vector<double> out(starts * forest.n_inputs() * outputs + ends * forest.n_inputs() * outputs);
    Link link(outputs);
    link.add(outputs == 1 ? "sigmoid" : "softmax", {}, {});
    if (name == "population" || name == "few" || name == "portable population")
        return timed([&] { credits(forest, kernel, from, weights.data(), to, 1, out.data()); });
    if (name == "pairs") return timed([&] { credits_pairs(forest, kernel, from, to, 1, out.data()); });
    if (name == "predict") return timed([&] { predict(forest, s.given(), out.data()); });
    return timed([&] {  // "linked", "classes", "portable linked", "corners"
        linked_credits(forest, kernel, link, from, weights.data(), to, flags ? 0.0 : 1e-3, 1, out.data());
    });
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? run(argv[1]) : 1; }
