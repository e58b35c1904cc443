// Long work asks from time to time whether it should go on.
//
// Loops that may take long call poll() every few thousand steps.  It looks at the clock, and every
// few milliseconds asks the host (Python: whether a signal wants to raise), the batch that a helper
// thread works for, and the deadline of the thread.  Whatever says stop does so by an exception, so
// a loop that polls must be in work that can be thrown away: see Lane::discard_after_exception.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace constrain {

// The host or the batch wants the work to stop.  No Error: nothing is wrong with the constraint.
struct Interrupted {};

// Throws Interrupted or DeadlineError.
void poll();

// For loops with a counter of their own.
inline void poll_sometimes(uint64_t& count) {
  if ((++count & 0x3FF) == 0) poll();
}

// What a thread without a batch asks; it may throw, and is called with locks held.
void set_host_poll(void (*ask)());

// For as long as it lives, poll() on this thread asks this flag and not the host.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>& cancelled);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* before_;
};

// For as long as it lives, poll() on this thread throws DeadlineError after so long a time.  A shorter one that is set already stays.
class DeadlineScope {
 public:
  explicit DeadlineScope(double seconds);   // infinity: none
  ~DeadlineScope();
  DeadlineScope(const DeadlineScope&) = delete;
  DeadlineScope& operator=(const DeadlineScope&) = delete;

 private:
  int64_t before_;
};

// Locks; polls while it waits.  Throws Error where this thread itself holds the mutex, which happens
// only where what the host does in poll() calls the core again.
void lock_or_poll(std::timed_mutex& mutex);

}  // namespace constrain
