// Aligned arrays for vector instructions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gigrad {

// An array that begins at a cache line: vectors that straddle two lines would cost the walk half of its speed.
template <class T>
class Aligned {
public:
    explicit Aligned(size_t n = 0) { assign(n, T{}); }

    void assign(size_t n, T value) {
        constexpr size_t line = 64;
        store_.resize(std::max(store_.size(), n + line / sizeof(T)));
        const auto address = reinterpret_cast<std::uintptr_t>(store_.data());
        data_ = store_.data() + ((line - address % line) % line) / sizeof(T);
        std::fill(data_, data_ + n, value);
    }
    T* data() { return data_; }
    T& operator[](size_t i) { return data_[i]; }

private:
    std::vector<T> store_;
    T* data_ = nullptr;
};

}  // namespace gigrad
