// Threads over units of work. What a unit computes never depends on who does it, so answers are the same for any
// number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace gigrad {

// Calls `worker(next)` on each thread; `next(unit)` hands out the units 0..n-1 and is false when none is left.
// The first exception thrown by a worker stops the others and is thrown here.
template <class Worker>
void parallel(size_t n_units, size_t n_threads, Worker&& worker) {
    std::atomic<size_t> counter{0};
    std::exception_ptr error;
    std::mutex error_lock;
    const auto next = [&](size_t& unit) {
        unit = counter.fetch_add(1, std::memory_order_relaxed);
        return unit < n_units;
    };
    const auto run = [&] {
        try {
            worker(next);
        } catch (...) {
            const std::lock_guard<std::mutex> lock(error_lock);
            if (!error) error = std::current_exception();
            counter.store(n_units, std::memory_order_relaxed);
        }
    };
    std::vector<std::thread> threads;
    const size_t extra = std::min(n_threads, n_units);
    threads.reserve(extra);
    try {
        for (size_t i = 1; i < extra; ++i) threads.emplace_back(run);
    } catch (const std::system_error&) {
        // The system grants no more threads: those there are share the work.
    }
    run();
    for (std::thread& t : threads) t.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace gigrad
