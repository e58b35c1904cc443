// Sets of bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace constrain {

using ByteSet = std::array<uint64_t, 4>;   // bit b % 64 of word b / 64: byte b is in the set

inline bool has_byte(const ByteSet& set, uint8_t byte) { return set[byte >> 6] >> (byte & 63) & 1u; }
inline void add_byte(ByteSet& set, uint8_t byte) { set[byte >> 6] |= uint64_t{1} << (byte & 63); }
inline void remove_byte(ByteSet& set, uint8_t byte) {
  set[byte >> 6] &= ~(uint64_t{1} << (byte & 63));
}
inline void add_bytes(ByteSet& set, std::string_view bytes) {
  for (const char byte : bytes) add_byte(set, static_cast<uint8_t>(byte));
}
// The byte that the UTF-8 of this code point begins with.
inline void add_first_byte(ByteSet& set, uint32_t code_point) {
  uint32_t byte = code_point;
  if (code_point >= 0x10000) byte = 0xF0 | code_point >> 18;
  else if (code_point >= 0x800) byte = 0xE0 | code_point >> 12;
  else if (code_point >= 0x80) byte = 0xC0 | code_point >> 6;
  add_byte(set, static_cast<uint8_t>(byte));
}

}  // namespace constrain
