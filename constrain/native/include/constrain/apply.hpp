// Applies rows of token bits to logits: what is not allowed becomes minus infinity.
#pragma once

#include <cstddef>
#include <cstdint>

namespace constrain {

enum class LogitType : uint8_t { kFloat16, kBfloat16, kFloat32, kFloat64 };

inline constexpr size_t logit_bytes(LogitType type) {
  return type == LogitType::kFloat64 ? 8 : type == LogitType::kFloat32 ? 4 : 2;
}

// logits[i] = -inf for each i < width whose bit is 0; bits at and behind `words` * 32 count as 0.
// Words of ones are skipped, so a mask that allows nearly everything costs a read of the mask.
void apply_row(void* logits, LogitType type, size_t width, const uint32_t* row, size_t words);

}  // namespace constrain
