// What a number cursor holds: the layout of its bits, and the store of long prefixes.  Internal.
//
// A prefix is (phase, sign, significant digits S without leading zeros, count of digits behind the
// point, exponent so far).  Most fit the cursor itself: `digits` and the high bits of `phase` are a
// 50-bit mantissa (15 digits), or, behind an 'e', a 32-bit mantissa and an 18-bit exponent.  What
// does not fit is a Long: full blocks of 15 digits, linked and interned, and a tail, so that a
// number of n digits takes O(n) memory over all its prefixes.  Which of the forms a prefix takes
// depends on the prefix alone, so equal prefixes are equal cursors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "constrain/numbers.hpp"

namespace constrain {

enum class NumberPhase : uint32_t {
  kNone, kMinus, kZero, kInt, kPoint, kFraction, kE, kExponentSign, kExponent,
};

// What `digits` of a cursor means.
enum class NumberStore : uint32_t {
  kDecided,  // id of a record of answers that no longer depend on what follows
  kInline,   // low bits of the mantissa
  kLong,     // id of a Long
};

// What a cursor that still remembers its digits stands for.
struct NumberPrefix {
  NumberPhase phase = NumberPhase::kNone;
  bool negative = false;
  bool exponent_negative = false;
  std::string digits;     // significant ones; empty: only zeros so far
  int64_t fraction = 0;   // digits behind the point
  int64_t exponent = 0;   // absolute value of what is written behind the 'e'

  // The value read as if the text ended here.
  Decimal value() const {
    return Decimal(negative, digits, (exponent_negative ? -exponent : exponent) - fraction);
  }
};

namespace cursor_bits {

inline constexpr uint32_t kNegative = 1u << 4;
inline constexpr uint32_t kExponentNegative = 1u << 5;
inline constexpr uint32_t kStoreShift = 6;
inline constexpr uint32_t kFractionShift = 8;
inline constexpr uint32_t kMaxFraction = 63;
inline constexpr uint32_t kHighShift = 14;
inline constexpr uint32_t kMaxExponent = (1u << 18) - 1;
inline constexpr uint64_t kMaxMantissa = 1'000'000'000'000'000;  // exclusive
inline constexpr uint32_t kHeadMask = (1u << kStoreShift) - 1;   // phase and signs

inline NumberPhase phase(const NumberCursor& c) { return static_cast<NumberPhase>(c.phase & 15u); }
inline bool negative(const NumberCursor& c) { return (c.phase & kNegative) != 0; }
inline NumberStore store(const NumberCursor& c) {
  return static_cast<NumberStore>((c.phase >> kStoreShift) & 3u);
}
inline uint32_t fraction(const NumberCursor& c) {
  return (c.phase >> kFractionShift) & kMaxFraction;
}
inline uint32_t high(const NumberCursor& c) { return c.phase >> kHighShift; }
inline uint64_t mantissa(const NumberCursor& c) {
  return static_cast<uint64_t>(high(c)) << 32 | c.digits;
}
inline bool in_exponent(NumberPhase p) { return p >= NumberPhase::kE; }
inline bool is_complete(NumberPhase p) {
  return p == NumberPhase::kZero || p == NumberPhase::kInt || p == NumberPhase::kFraction ||
         p == NumberPhase::kExponent;
}
// Still written without fraction and exponent.
inline bool is_lexical(NumberPhase p) {
  return p == NumberPhase::kMinus || p == NumberPhase::kZero || p == NumberPhase::kInt;
}

}  // namespace cursor_bits

// Steps cursors and keeps the prefixes that do not fit them.
class NumberPrefixes {
 public:
  // The phase after `byte`; kNone: no number continues so.
  static NumberPhase next_phase(NumberPhase phase, uint8_t byte);
  // One byte on a cursor that keeps its digits; `next` is next_phase of it.  The first byte is
  // stepped from a cursor of phase 0.  Exponents beyond kExponentSaturation stay there, and set
  // `saturated`.
  void step(NumberCursor& cursor, NumberPhase next, uint8_t byte, bool& saturated);
  NumberPrefix decode(const NumberCursor& cursor) const;

  size_t bytes() const;
  NumberPool::Mark mark() const;
  // True if anything was dropped.
  bool release(const NumberPool::Mark& mark);

 private:
  struct Block {
    uint32_t parent;  // index + 1, 0: none
    uint64_t digits;  // exactly 15
    bool operator==(const Block&) const = default;
  };
  struct Long {
    uint32_t block = 0;  // index + 1 of the last full block, 0: none
    uint32_t tail_size = 0;
    uint64_t tail = 0;
    uint32_t fraction = 0;
    uint32_t exponent = 0;
    bool operator==(const Long&) const = default;
  };
  static uint64_t hash(const Block& block);
  static uint64_t hash(const Long& prefix);
  Long expand(const NumberCursor& cursor) const;
  void assign(NumberCursor& cursor, NumberPhase phase, const Long& prefix);
  template <typename T>
  static uint32_t intern(const T& item, std::vector<T>& items,
                         std::unordered_multimap<uint64_t, uint32_t>& index);
  template <typename T>
  static void truncate(size_t size, std::vector<T>& items,
                       std::unordered_multimap<uint64_t, uint32_t>& index);

  std::vector<Block> blocks_;
  std::vector<Long> longs_;
  std::unordered_multimap<uint64_t, uint32_t> block_index_;
  std::unordered_multimap<uint64_t, uint32_t> long_index_;
};

}  // namespace constrain
