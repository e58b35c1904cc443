// Shared by the binding files.  Nothing but bind/ includes nanobind or holds the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "constrain/errors.hpp"
#include "constrain/poll.hpp"
#include "constrain/program.hpp"
#include "constrain/session.hpp"

namespace nb = nanobind;

namespace constrain::bind {

// Locks with the GIL held, but never waits for the mutex holding the GIL: the owner may be a batch
// that runs without the GIL and takes a while, or wants the GIL to ask for signals.
class Guard {
 public:
  explicit Guard(std::timed_mutex& mutex) : mutex_(mutex) {
    if (mutex_.try_lock()) return;
    nb::gil_scoped_release release;
    lock_or_poll(mutex_);
  }
  ~Guard() { mutex_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  std::timed_mutex& mutex_;
};

// The same for the lane that a matcher is in.
class MatcherGuard {
 public:
  explicit MatcherGuard(const Matcher& matcher) {
    while (true) {
      mutex_ = &matcher.lane().mutex();
      if (!mutex_->try_lock()) {
        nb::gil_scoped_release release;
        lock_or_poll(*mutex_);
      }
      if (mutex_ == &matcher.lane().mutex()) return;
      mutex_->unlock();
    }
  }
  ~MatcherGuard() { mutex_->unlock(); }
  MatcherGuard(const MatcherGuard&) = delete;
  MatcherGuard& operator=(const MatcherGuard&) = delete;

 private:
  std::timed_mutex* mutex_;
};

// Becomes TokenRejectedError.
struct TokenRejected : Error {
  int64_t token;
  bool has_text;
  std::string text;
  std::string expected;
  TokenRejected(int64_t id, std::string_view bytes, std::string wanted);
};

// Becomes UnsatisfiableError with a field `rows`: no token of the vocabulary may come next there.
struct NothingAllowed : Error {
  std::vector<int64_t> rows;
  explicit NothingAllowed(std::vector<int64_t> which);
};

// Becomes LimitExceededError with fields `rows` and `needed`: the text of these rows cannot be
// finished within their budget, but within `needed` tokens (Budget::kNever: not known).
struct BudgetExceeded : Error {
  std::vector<int64_t> rows;
  uint32_t needed;
  BudgetExceeded(std::vector<int64_t> which, uint32_t remaining, uint32_t tokens);
};

// Rows of int32 words of a NumPy array or a torch tensor in CPU memory.
struct Rows {
  uint32_t* data = nullptr;
  size_t count = 0;        // rows
  size_t words = 0;        // words per row
  ptrdiff_t stride = 0;    // words from row to row

  uint32_t* row(size_t i) const { return data + static_cast<ptrdiff_t>(i) * stride; }
};

// The rows of this array, for writing.  Repeated calls with the same array cost next to nothing.
Rows writable_rows(nb::handle array);
// int32 values of any object with a contiguous buffer of 4-byte integers.
std::vector<int32_t> int32_values(nb::handle buffer);

void bind_errors(nb::module_& m);
void bind_vocabulary(nb::module_& m);
void bind_constraint(nb::module_& m);
void bind_logits(nb::module_& m);
void bind_analysis(nb::module_& m);
void bind_signals(nb::module_& m);

struct BoundVocabulary {
  std::shared_ptr<Vocabulary> core;
};
struct BoundProgram {
  std::shared_ptr<const Program> core;
};
struct BoundConstraint {
  std::shared_ptr<Constraint> core;
};

}  // namespace constrain::bind
