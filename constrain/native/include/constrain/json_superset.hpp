// A finite automaton that accepts whatever may follow a string inside some JSON text, under any
// stack and any schema: a superset, used to leave out remainders that can never be allowed.
//
// It knows JSON's punctuation, whitespace, strings, numbers and literals, but counts no brackets
// and tells no keys from values: every byte sequence that continues a valid JSON text behind a
// string (or behind a key) keeps it alive.
#pragma once

#include <cstdint>

namespace constrain {

class JsonSuperset {
 public:
  // Behind the closing quote of a string, which may be a key.
  static constexpr uint8_t kAfterString = 1;
  static constexpr uint8_t kDead = 0;
  // Where blanks may come, behind all of them.
  static constexpr uint8_t kBehindGap = 2;
  // Any bytes: nothing is known.
  static constexpr uint8_t kAnyText = 3;
  static uint8_t step(uint8_t state, uint8_t byte);
};

}  // namespace constrain
