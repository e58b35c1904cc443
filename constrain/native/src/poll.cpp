#include "constrain/poll.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "constrain/errors.hpp"

namespace constrain {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kBetweenLooks = 5'000'000;   // nanoseconds
constexpr std::chrono::milliseconds kWait{20};

struct Thread {
  int64_t next_look = 0;
  int64_t deadline = kNever;
  const std::atomic<bool>* cancelled = nullptr;
  bool asking = false;
};
thread_local Thread thread;

std::atomic<void (*)()> host{nullptr};

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void ask_host() {
  const auto ask = host.load(std::memory_order_acquire);
  if (!ask || thread.asking) return;
  struct Asking {
    Asking() { thread.asking = true; }
    ~Asking() { thread.asking = false; }
  } asking;
  ask();
}

}  // namespace

void poll() {
  const int64_t time = now();
  if (time < thread.next_look) return;
  thread.next_look = time + kBetweenLooks;
  if (time >= thread.deadline) {
    throw DeadlineError("compiling took longer than its limit", "max_seconds");
  }
  if (thread.cancelled) {
    if (thread.cancelled->load(std::memory_order_relaxed)) throw Interrupted{};
    return;
  }
  ask_host();
}

void set_host_poll(void (*ask)()) { host.store(ask, std::memory_order_release); }

CancelScope::CancelScope(const std::atomic<bool>& cancelled) : before_(thread.cancelled) {
  thread.cancelled = &cancelled;
}
CancelScope::~CancelScope() { thread.cancelled = before_; }

DeadlineScope::DeadlineScope(double seconds) : before_(thread.deadline) {
  constexpr double kMost = 1e9;
  if (std::isnan(seconds) || seconds > kMost) return;
  const int64_t time = now() + static_cast<int64_t>(std::max(seconds, 0.0) * 1e9);
  thread.deadline = std::min(thread.deadline, time);
  thread.next_look = 0;
}
DeadlineScope::~DeadlineScope() { thread.deadline = before_; }

void lock_or_poll(std::timed_mutex& mutex) {
  if (mutex.try_lock()) return;
  if (thread.asking) {
    throw Error("this vocabulary is in use by the call that the signal handler interrupted");
  }
#if defined(__SANITIZE_THREAD__)
  // The sanitizers of older compilers do not know of locks with a time.
  while (!mutex.try_lock()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    poll();
  }
#else
  while (!mutex.try_lock_for(kWait)) poll();
#endif
}

}  // namespace constrain
