// Number languages: boolean combinations of bounds, divisibility and enumerations, read byte by
// byte with exact viability.
//
// What it is for.  A JSON Schema asks of a number that it lies in a set of values.  The pool
// hash-conses such sets as formulas (NumberId) and reads the text of a number incrementally
// (NumberCursor): a prefix is alive if and only if some completion of it is in the goal.
//
// How.  A language is compiled once: its bounds and enumerated values cut the number line into
// pieces, on each of which only divisibility is left to decide, as a truth table over the divisors.
// A prefix stands for windows [n*10^k, (n+1)*10^k), so viability is: does some window hold a point
// of some piece.  All arithmetic is exact, on decimals of any length.
//
// What may be written.  The grammar is JSON's.  With plain = false every spelling of a value of the
// goal is admissible (1.0 and 10e-1 are the integer 1).  With plain = true, of the goal as a whole:
//   - every number: every spelling;
//   - every value an integer: no fraction, no exponent, no "-0";
//   - anything else: no exponent.
// A restriction is lifted where it would make something unwritable: exponents are admissible if a
// single value of the goal, or every value of it, needs more than Decimal::kPlainDigits digits when
// written out; fractions are admissible if no text without one is in the goal (an integer that is
// not written as one).  So a goal that has values always has texts.
//
// Limits.  Constants have |magnitude| <= kMaxConstantMagnitude (LimitError); divisors at most
// kMaxDivisorDigits digits and |exponent| <= kMaxDivisorExponent (UnsupportedFeature).  Formulas
// with more than kMaxDivisors different divisors (1 counts always), and divisibility of numbers of
// more than kMaxAlignedDigits digits, are not analysed ahead: there a prefix counts as viable, what
// is written is judged exactly at its end, and complete_text finds nothing.  Exponents have any
// size (those beyond kExponentSaturation are all alike to any goal), unless the value is captured:
// then at most kMaxCapturedExponent.
//
// Cost.  A step is a few nanoseconds for goals decided by the sign or the first digits and for
// integer ranges, and otherwise one hash lookup, or at the first visit microseconds.  Languages are
// compiled at first use, also in microseconds.  What the pool holds only grows (see bytes), but for
// the memo, which is bounded, and long prefixes, which can be released.  Not thread-safe: reading
// memoises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "constrain/decimal.hpp"

namespace constrain {

using NumberId = uint32_t;     // 0 = no number, 1 = every number
using NumberValue = uint32_t;  // an interned Decimal
inline constexpr NumberId kNoNumber = 0;
inline constexpr NumberId kAnyNumber = 1;

// A position inside a number.  A plain value: copy it freely.  Equal cursors have equal futures.
// phase 0 = nothing read.  `phase` is a bit field and `digits` data that belongs to the pool (see
// number_cursor.hpp); digits is 0 when nothing needs remembering.
struct NumberCursor {
  uint32_t phase = 0;
  uint32_t digits = 0;
  bool operator==(const NumberCursor&) const = default;
};

class NumberPool {
 public:
  static constexpr int64_t kMaxConstantMagnitude = 10'000'000;
  static constexpr int64_t kMaxDivisorExponent = 2'000;
  static constexpr int64_t kMaxDivisorDigits = 400;
  static constexpr size_t kMaxDivisors = 10;
  static constexpr int64_t kMaxAlignedDigits = 30'000;
  static constexpr int64_t kExponentSaturation = 100'000'000;
  static constexpr int64_t kMaxCapturedExponent = 9'000'000;

  explicit NumberPool(bool plain);
  ~NumberPool();
  NumberPool(const NumberPool&) = delete;
  NumberPool& operator=(const NumberPool&) = delete;

  // ---- values
  NumberValue value(const Decimal& decimal);
  const Decimal& decimal(NumberValue value) const;

  // ---- formulas; all simplify, and equal formulas have equal ids
  NumberId minimum(NumberValue bound, bool strict);
  NumberId maximum(NumberValue bound, bool strict);
  NumberId multiple_of(NumberValue divisor);  // of zero: nothing; of a negative: of its absolute
  NumberId integer();                         // mathematically, however it is written
  NumberId integer_lexical();                 // written without fraction and exponent
  NumberId one_of(std::vector<NumberValue> values);
  NumberId land(std::span<const NumberId> ids);
  NumberId lor(std::span<const NumberId> ids);
  NumberId lnot(NumberId id);
  NumberId exactly_one(std::span<const NumberId> ids);

  // ---- reading.  `tracked`: further languages whose truth is wanted at the end; `capture`: the
  // value is wanted at the end.  All calls for one number pass the same goal, tracked and capture.
  // Digits are kept only while an answer depends on them.
  //
  // First byte.  False: no number in the goal starts so (the cursor is then unspecified).
  bool start(NumberId goal, std::span<const NumberId> tracked, bool capture, uint8_t byte,
             NumberCursor& cursor);
  // Next byte.  False: no number in the goal continues so (the cursor is then unspecified).
  bool step(NumberId goal, std::span<const NumberId> tracked, bool capture, NumberCursor& cursor,
            uint8_t byte);
  // Lexically a whole JSON number.
  bool complete(const NumberCursor& cursor) const;
  // The cursor remembers one digit at most, in fewer than kSmallPhaseBits bits of its phase: there
  // are few such cursors for a goal.
  static constexpr uint32_t kSmallPhaseBits = 14;
  static bool is_small(const NumberCursor& cursor);
  // In the goal, where it is complete, and so it is with up to so many further digits.  False also
  // where that is not known.
  bool accepts_digits(NumberId goal, const NumberCursor& cursor, uint32_t more);
  // A goal that cannot be told from this one behind the cursor: kAnyNumber where all that follows
  // is in it.
  NumberId goal_behind(NumberId goal, const NumberCursor& cursor);
  // Complete and in the goal that the cursor was read under.
  bool accepts(NumberId goal, const NumberCursor& cursor);
  // The truth of a tracked language for a complete number that the goal accepts.  Throws Error if
  // the language was not among those tracked and is not known.
  bool holds_at_end(NumberId id, const NumberCursor& cursor);
  // The value of a complete number read with capture.  Throws Error if it was not kept.
  NumberValue captured(const NumberCursor& cursor);
  // Appends a short text that completes the cursor to a number in the goal; false (nothing
  // appended) if there is none.  A cursor with phase 0 has read nothing.
  bool complete_text(NumberId goal, std::span<const NumberId> tracked, bool capture,
                     const NumberCursor& cursor, std::string& out);

  // A bound on the characters that complete_text appends to any number of the goal that has begun;
  // 0xFFFFFFFF: none is known.
  uint32_t longest_end(NumberId goal);

  // ---- questions about languages
  // Some admissible text is in the language.
  bool satisfiable(NumberId id);
  // The value is in the language; INTEGER_LEXICAL counts as written canonically.
  bool holds(NumberId id, NumberValue value);
  // The values of a finite language in ascending order; false: infinite, more than `cap`, or not
  // known (then `out` is left as it was).
  bool enumerate(NumberId id, size_t cap, std::vector<NumberValue>& out);

  // ---- memory
  // Bytes held by everything that grows.
  size_t bytes() const;
  // Long prefixes are interned.  A caller that only tried some (a mask walk) may forget those made
  // since the mark, if it keeps no cursor made since.
  struct Mark {
    uint32_t longs = 0;
    uint32_t blocks = 0;
  };
  Mark mark() const;
  void release(const Mark& mark);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace constrain
