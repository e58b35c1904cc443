#include "constrain/apply.hpp"

#include <algorithm>
#include <limits>

namespace constrain {
namespace {

template <class T>
void apply(T* logits, T minus_infinity, size_t width, const uint32_t* row, size_t words) {
  const size_t whole = std::min(words, width / 32);
  for (size_t i = 0; i < whole; ++i) {
    const uint32_t bits = row[i];
    if (bits == ~0u) continue;
    T* at = logits + i * 32;
    if (bits == 0) {
      std::fill_n(at, 32, minus_infinity);
      continue;
    }
    // Few bits of a mixed word are zero, or few are one; a select per logit suits both.
    for (uint32_t b = 0; b < 32; ++b) at[b] = (bits >> b & 1u) ? at[b] : minus_infinity;
  }
  size_t at = whole * 32;
  if (whole < words) {
    for (uint32_t b = 0; at < width && b < 32; ++b, ++at) {
      if (!(row[whole] >> b & 1u)) logits[at] = minus_infinity;
    }
  }
  std::fill(logits + at, logits + std::max(at, width), minus_infinity);
}

}  // namespace

void apply_row(void* logits, LogitType type, size_t width, const uint32_t* row, size_t words) {
  switch (type) {
    case LogitType::kFloat16:
      apply<uint16_t>(static_cast<uint16_t*>(logits), 0xFC00u, width, row, words);
      break;
    case LogitType::kBfloat16:
      apply<uint16_t>(static_cast<uint16_t*>(logits), 0xFF80u, width, row, words);
      break;
    case LogitType::kFloat32:
      apply(static_cast<float*>(logits), -std::numeric_limits<float>::infinity(), width, row,
            words);
      break;
    case LogitType::kFloat64:
      apply(static_cast<double*>(logits), -std::numeric_limits<double>::infinity(), width, row,
            words);
      break;
  }
}

}  // namespace constrain
