// Masks of many matchers at once.
//
// Matchers of different lanes can be filled at the same time, those of one lane one after the other.
// A large batch is spread over as many lanes as there are threads for it: matchers that have written
// little are moved out of crowded lanes.  The calling thread takes part; a lane that no helper has
// begun with is filled by the caller, so that a helper that is not scheduled costs nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "constrain/session.hpp"

namespace constrain {

struct BatchJob {
  Matcher* matcher = nullptr;
  uint32_t* row = nullptr;
  uint32_t remaining = Matcher::kNoBudget;
  enum class Result : uint8_t { kFilled, kNothing, kOverBudget } result = Result::kFilled;
  uint32_t needed = 0;   // kOverBudget: tokens
};

// Fills the row of every job and sets its result.  No mutex of a lane is held.  `threads`: at most so
// many; 0: as many as the machine has and are worth it.  Throws what a matcher throws.
void fill_batch(std::span<BatchJob> jobs, size_t threads);

}  // namespace constrain
