// Threads over units of work. What a unit computes does not depend on the thread, so results are the same for any
// number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/interrupt.hpp"

namespace gigrad {

// Calls `worker(next)` on each thread; `next(unit)` assigns the units 0..n-1 and returns false when none is left. The
// first exception thrown by a worker stops the others and is thrown here; so does a signal, as Interrupted.
template <class Worker>
void parallel(size_t n_units, size_t n_threads, Worker&& worker) {
    std::atomic<size_t> counter{0};
    CallControl control(counter, n_units);
    std::exception_ptr error;
    std::mutex lock;
    std::condition_variable done;
    size_t running = 0;
    const auto next = [&](size_t& unit) {
        check_interrupt();
        unit = counter.fetch_add(1, std::memory_order_relaxed);
        return unit < n_units;
    };
    const auto run = [&](bool caller) {
        const Working outer = working();  // a worker of one call may make another
        working() = {&control, caller};
        try {
            worker(next);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            if (!error) error = std::current_exception();
            control.stop();
        }
        working() = outer;
    };
    std::vector<std::thread> threads;
    const size_t extra = std::min(n_threads, n_units);
    threads.reserve(extra);
    try {
        for (size_t i = 1; i < extra; ++i) {
            threads.emplace_back([&] {
                run(false);
                const std::lock_guard<std::mutex> guard(lock);
                --running;
                done.notify_one();
            });
            const std::lock_guard<std::mutex> guard(lock);
            ++running;
        }
    } catch (const std::system_error&) {
        // The system has no more threads: the existing ones share the work.
    }
    run(true);
    for (std::unique_lock<std::mutex> guard(lock); running != 0;) {
        done.wait_for(guard, POLL);
        guard.unlock();
        control.poll();
        guard.lock();
    }
    for (std::thread& t : threads) t.join();
    if (control.interrupted()) throw Interrupted();
    if (error) std::rethrow_exception(error);
}

}  // namespace gigrad
