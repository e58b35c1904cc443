#include "constrain/bits.hpp"

#include <cstring>

namespace constrain {

#if defined(__GNUC__) && !defined(__clang__)
// Without this the loop below is recognised and replaced by the memcpy that it is there to avoid.
__attribute__((optimize("no-tree-loop-distribute-patterns")))
#endif
void copy_row(uint32_t* to, const uint32_t* from, size_t words) {
  size_t i = 0;
  for (; i + 16 <= words; i += 16) {
    uint64_t block[8];
    std::memcpy(block, from + i, sizeof block);
    std::memcpy(to + i, block, sizeof block);
  }
  for (; i < words; ++i) to[i] = from[i];
}

std::vector<WordBits> pack_tokens(std::vector<uint32_t> tokens) {
  std::sort(tokens.begin(), tokens.end());
  std::vector<WordBits> words;
  for (const uint32_t token : tokens) {
    if (words.empty() || words.back().word != token >> 5) words.push_back({token >> 5, 0});
    words.back().bits |= 1u << (token & 31);
  }
  words.shrink_to_fit();
  return words;
}

bool any_bit(const uint32_t* row, size_t words) {
  for (size_t i = 0; i < words; ++i) {
    if (row[i]) return true;
  }
  return false;
}

}  // namespace constrain
