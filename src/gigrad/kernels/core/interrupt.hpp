// Ctrl-C and progress during a long call. Workers call `check_interrupt()` between small pieces of work; the thread
// that made the call reports progress to the interpreter and checks for signals at most once in POLL, and every worker
// of the call stops after a signal.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>

#include "limits.hpp"

namespace gigrad {

// Thrown by workers of a call that was interrupted; the error is already set in the interpreter.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Takes the fraction of the call that is done and returns whether a signal handler has raised an error: set by the
// bindings, called without the GIL; null without an interpreter.
using SignalCheck = bool (*)(double done);
inline std::atomic<SignalCheck>& signal_check() {
    static std::atomic<SignalCheck> check{nullptr};
    return check;
}

// State shared by the workers of one call.
class CallControl {
public:
    CallControl(const std::atomic<size_t>& handed_out, size_t n_units) : handed_out_(handed_out), n_units_(n_units) {}

    bool stopped() const { return stop_.load(std::memory_order_relaxed); }
    void stop() { stop_.store(true, std::memory_order_relaxed); }

    // Only in the thread that made the call: checks for signals if the last check was long ago.
    void poll() {
        const auto now = std::chrono::steady_clock::now();
        if (now - asked_ < POLL) return;
        asked_ = now;
        const SignalCheck check = signal_check().load(std::memory_order_relaxed);
        const size_t units = std::min(handed_out_.load(std::memory_order_relaxed), n_units_);
        if (check && check(static_cast<double>(units) / static_cast<double>(std::max<size_t>(n_units_, 1)))) {
            interrupted_ = true;
            stop();
        }
    }
    bool interrupted() const { return interrupted_; }

private:
    const std::atomic<size_t>& handed_out_;
    const size_t n_units_;
    std::atomic<bool> stop_{false};
    bool interrupted_ = false;
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

// The call that this thread works for, and whether the thread made it.
struct Working {
    CallControl* control = nullptr;
    bool caller = false;
};
inline Working& working() {
    static thread_local Working now;
    return now;
}

// Between pieces of work that take well under POLL each: about 30 ns.
inline void check_interrupt() {
    const Working& now = working();
    if (!now.control) return;
    if (now.caller) now.control->poll();
    if (now.control->stopped()) throw Interrupted();
}

}  // namespace gigrad
