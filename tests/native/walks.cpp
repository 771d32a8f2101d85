// Every walk that this machine can run, on the same forests.
//
//   walks          compares them: the vector walks of sixteen lanes must give the same bits, all others the same credits
//                  to 1e-12; prints a digest of the bits, which is the same on every machine
//   walks NAME     one walk on trees as boosting makes them, for counting instructions ("none": all but the walk)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "link/linked.hpp"
#include "core/reading.hpp"

#include "forests.hpp"

namespace {

// What one walk says: credits against a population, credits of pairs, and both under a sigmoid.
std::vector<double> credits_by(const LaneKernel* kernel, const Forest& forest, const Rows& S, const Rows& E,
                               const std::vector<double>& weights) {
    const size_t each = S.n_rows * forest.n_inputs() * forest.n_outputs();
    std::vector<double> out(4 * each);
    credits(forest, kernel, S, weights.data(), E, 1, out.data());
    credits_pairs(forest, kernel, S, E, 1, out.data() + each);
    Link link(forest.n_outputs());
    link.add("sigmoid", {}, {});
    linked_credits(forest, kernel, link, S, weights.data(), E, 1e-3, 1, out.data() + 2 * each);
    linked_credits_pairs(forest, kernel, link, S, E, 1e-3, 1, out.data() + 3 * each);
    return out;
}

// FNV-1a over the bits; zeros of either sign are one number.
uint64_t digest(const std::vector<double>& values, uint64_t hash) {
    for (const double value : values) {
        const double v = value + 0.0;
        unsigned char bytes[sizeof v];
        std::memcpy(bytes, &v, sizeof v);
        for (const unsigned char b : bytes) hash = (hash ^ b) * 0x100000001b3u;
    }
    return hash;
}

int compare() {
    constexpr uint64_t EMPTY = 0xcbf29ce484222325u;
    const auto lanes = runnable_lanes();
    std::vector<const LaneKernel*> walks(lanes.begin(), lanes.end());
    walks.push_back(nullptr);  // the portable one
    std::vector<uint64_t> hashes(walks.size(), EMPTY);
    double apart = 0.0;
    for (int i = 0; i < 60; ++i) {
        const Forest forest = random_arrays().forest();
        const size_t n = static_cast<size_t>(1 + below(90)), p = forest.n_inputs();
        auto s = random_rows(n, p, i % 2), e = random_rows(n, p, i % 2);
        if (i % 4 > 1)  // without ties
            for (double& v : s) v += uniform();
        const ReadRows from(forest, {s.data(), n, p}, "starts"), to(forest, {e.data(), n, p}, "ends");
        std::vector<double> weights(n, 1.0 / static_cast<double>(n));
        if (i % 3 == 0)
            for (double& w : weights) w = 2.0 * uniform() / static_cast<double>(n);
        const auto portable = credits_by(nullptr, forest, from, to, weights);
        for (size_t w = 0; w < walks.size(); ++w) {
            const auto found = credits_by(walks[w], forest, from, to, weights);
            hashes[w] = digest(found, hashes[w]);
            for (size_t c = 0; c < found.size(); ++c) apart = std::max(apart, std::fabs(found[c] - portable[c]));
        }
    }
    bool same = apart < 1e-12;
    uint64_t sixteen = 0;
    for (size_t w = 0; w < walks.size(); ++w) {
        const char* name = walks[w] ? walks[w]->name : "portable";
        std::printf("%-8s %016llx\n", name, static_cast<unsigned long long>(hashes[w]));
        if (!walks[w] || walks[w]->lanes != 16) continue;
        same = same && (sixteen == 0 || sixteen == hashes[w]);
        sixteen = hashes[w];
    }
    std::printf("walks: at most %.1e apart; those of sixteen lanes %s\n", apart, same ? "agree to the bit" : "DIFFER");
    return same ? 0 : 1;
}

// 100 trees of depth 6 on 30 columns that hardly tie, 20 rows against 100 references.
int one_walk(const std::string& name) {
    Arrays a;
    a.n_columns = 30;
    a.base = {0.0};
    for (int t = 0; t < 100; ++t) {
        a.roots.push_back(static_cast<int32_t>(a.feature.size()));
        a.output.push_back(0);
        grow(a, 6);
    }
    for (size_t i = 0; i < a.threshold.size(); ++i) {
        a.threshold[i] = a.low[i] = a.high[i] = a.place[i] = uniform();
        a.set[i] = -1;
    }
    const Forest forest = a.forest();
    constexpr size_t STARTS = 100, ENDS = 20;
    std::vector<double> s(STARTS * 30), e(ENDS * 30), weights(STARTS, 1.0 / STARTS), out(STARTS * 30);
    for (double& v : s) v = uniform();
    for (double& v : e) v = uniform();
    const ReadRows from(forest, {s.data(), STARTS, 30}, "starts"), to(forest, {e.data(), ENDS, 30}, "ends");
    if (name == "none") return 0;
    const LaneKernel* kernel = nullptr;
    for (const LaneKernel* lanes : runnable_lanes())
        if (name == lanes->name) kernel = lanes;
    if (!kernel && name != "portable") {
        std::fprintf(stderr, "walks: this machine has no walk %s\n", name.c_str());
        return 1;
    }
    credits(forest, kernel, from, weights.data(), to, 1, out.data());
    std::printf("%s: %.17g\n", name.c_str(), out[0]);
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc > 1 ? one_walk(argv[1]) : compare(); }
