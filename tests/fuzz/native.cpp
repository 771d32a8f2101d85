// Coverage-guided fuzzing of the native core by libFuzzer, under AddressSanitizer and UndefinedBehaviorSanitizer
// (`make fuzz`): bytes become the arrays of a forest, a link and rows, as a loader would hand them over. The constructor must
// refuse them, or everything that a caller can ask must be safe.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "link/corner_credits.hpp"
#include "link/linked.hpp"
#include "core/reading.hpp"
#include "walk/jumps.hpp"

#include "native/heads.hpp"

using namespace gigrad;

namespace {

// Numbers out of the input, then zeros.
class Bytes {
public:
    Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

    template <class T>
    T take() {
        T out{};
        const size_t n = std::min(sizeof out, static_cast<size_t>(end_ - at_));
        if (n) std::memcpy(&out, at_, n);
        at_ += n;
        return out;
    }
    int below(int n) { return n > 0 ? take<uint8_t>() % n : 0; }
    bool done() const { return at_ == end_; }

    // Small numbers mostly, and any bits at times.
    int32_t index() {
        const uint8_t kind = take<uint8_t>();
        return kind < 240 ? kind % 24 - 1 : take<int32_t>();
    }
    double value() {
        const uint8_t kind = take<uint8_t>();
        return kind < 200 ? kind % 16 / 2.0 - 1.0 : take<double>();
    }
    template <class Each>
    auto list(size_t n, Each each) {
        std::vector<decltype(each())> out(n);
        for (auto& x : out) x = each();
        return out;
    }

private:
    const uint8_t *at_, *end_;
};

template <class T>
Span<T> span(const std::vector<T>& v) {
    return {v.data(), v.size()};
}

void walk_forest(Bytes& in) {
    const size_t columns = static_cast<size_t>(in.below(6)), nodes = static_cast<size_t>(in.below(40)),
                 trees = static_cast<size_t>(in.below(5)), outputs = static_cast<size_t>(in.below(3)),
                 sets = static_cast<size_t>(in.below(4)), words = static_cast<size_t>(in.below(8)),
                 values = static_cast<size_t>(in.below(40));
    const auto index = [&] { return in.index(); };
    const auto value = [&] { return in.value(); };
    const auto feature = in.list(nodes, index), left = in.list(nodes, index), right = in.list(nodes, index),
               set = in.list(nodes, index), leaf = in.list(nodes, index), set_start = in.list(sets, index),
               roots = in.list(trees, index), output = in.list(trees, index),
               variable = in.list(in.below(2) ? columns : 0, index);
    const auto threshold = in.list(nodes, value), low = in.list(nodes, value), high = in.list(nodes, value),
               place = in.list(nodes, value), numbers = in.list(values, value), base = in.list(outputs, value);
    const auto set_words = in.list(words, [&] { return in.take<uint32_t>(); });
    bool flags[2][64];
    for (auto& list : flags)
        for (bool& flag : list) flag = in.below(2) != 0;
    const Forest forest(ForestArrays{static_cast<int64_t>(columns),
                                     span(feature),
                                     span(threshold),
                                     span(low),
                                     span(high),
                                     {flags[0], nodes},
                                     span(place),
                                     span(left),
                                     span(right),
                                     {flags[1], nodes},
                                     span(set),
                                     span(set_start),
                                     span(set_words),
                                     span(leaf),
                                     span(numbers),
                                     span(roots),
                                     span(output),
                                     span(base),
                                     span(variable)});
    const size_t n = 1 + static_cast<size_t>(in.below(20)), p = forest.n_inputs(), k = forest.n_outputs();
    const auto s = in.list(n * p, value), e = in.list(n * p, value);
    const ReadRows from(forest, {s.data(), n, p}, "starts"), to(forest, {e.data(), n, p}, "ends");
    const std::vector<double> weights(n, 1.0 / static_cast<double>(n));
    std::vector<double> scores(n * k), credit(n * forest.n_variables() * k);
    const auto kernels = runnable_lanes();
    const size_t choice = static_cast<size_t>(in.below(static_cast<int>(kernels.size()) + 1));
    const LaneKernel* kernel = choice && !forest.tangled() ? kernels[choice - 1] : nullptr;  // as lanes_for
    predict(forest, from, scores.data());
    credits_pairs(forest, kernel, from, to, 1, credit.data());
    credits(forest, kernel, from, weights.data(), to, 1, credit.data());
    Link link(k);
    const char* const functions[] = {"sigmoid", "softmax", "affine", "piecewise_linear", "exp", "nonsense"};
    const size_t terms = static_cast<size_t>(in.below(8));
    link.add(functions[in.below(6)], in.list(terms, value), in.list(static_cast<size_t>(in.below(4)), value));
    std::vector<double> linked(n * forest.n_variables() * link.n_outputs());
    linked_credits(forest, kernel, link, from, weights.data(), to, 1e-3, 1, linked.data());
    linked_credits_pairs(forest, kernel, link, from, to, 1e-3, 1, linked.data());
    std::vector<double> single(n * linked.size()), sums(n * credit.size());
    linked_credits_singly(forest, kernel, link, from, to, 1e-3, 1, single.data(), sums.data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Bytes in(data, size);
    try {
        if (in.below(4)) {
            walk_forest(in);
        } else {
            integrate_head([&](size_t n) { return in.list(n, [&] { return in.value(); }); },
                           [&](int n) { return in.below(n); });
        }
    } catch (const std::invalid_argument&) { return 0; }
    return 0;
}
