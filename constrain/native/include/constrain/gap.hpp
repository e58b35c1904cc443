// Blank space between the parts of a JSON text.
//
// A gap says which blanks may still come, as a number: bit 0 of a gap that is one, bit 1 where any
// blanks may come, bit 2 behind the end of the text; newlines so far in bits 16 to 23, other blanks
// since the last newline or, without one, since the beginning in bits 24 to 31.
#pragma once

#include <cstdint>

namespace constrain {

inline constexpr uint32_t kNoGap = 0;
inline constexpr uint32_t kGap = 1, kEndlessGap = 2, kGapAtEnd = 4;
inline constexpr uint32_t kGapCounts = 0xFFFF0000u;

inline bool is_blank(uint8_t b) { return b == ' ' || b == '\n' || b == '\r' || b == '\t'; }

// Reads one blank; false: it may not come here.
inline bool step_gap(uint32_t& gap, uint8_t byte) {
  // What a bounded gap may hold.  Any indentation of any depth fits; a model that got stuck in
  // blanks does not.
  constexpr uint32_t kMaxNewlines = 2;        // an empty line at most
  constexpr uint32_t kMaxBlanks = 8;          // before a newline, or without one
  constexpr uint32_t kMaxIndentation = 120;   // in all, once there is a newline
  if ((gap & kEndlessGap) != 0) return true;
  uint32_t newlines = gap >> 16 & 0xFF, blanks = gap >> 24;
  // Behind the text a final newline, nothing else.
  const bool end = (gap & kGapAtEnd) != 0;
  if (byte == '\n') {
    if (++newlines > (end ? 1 : kMaxNewlines)) return false;
  } else if (++blanks > (end ? 0 : newlines > 0 ? kMaxIndentation : kMaxBlanks)) {
    return false;
  }
  gap = (gap & ~kGapCounts) | newlines << 16 | blanks << 24;
  return true;
}

}  // namespace constrain
