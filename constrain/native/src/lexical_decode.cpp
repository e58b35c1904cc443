// Bytes of JSON strings and raw text above the code point automata.
//
// decoder word of raw text: bit 31; bit 28: inside a character (as 1 below); bits 15-23 and 29-30:
// the position in a stop (see lexical_stops.cpp), 0: the text has no end.
//
// decoder word of strings: bits 22-23 the kind of string (0 JSON, 1 and 2 Python with single and
// double quotes, 3 JSON with plain escapes); bits 28-30 what is in progress; the rest belongs to
// that:
//   0 a character boundary
//   1 UTF-8: bits 26-27 length - 1, bits 24-25 bytes missing, bits 0-20 value so far
//   2 a backslash was read
//   3 \u: bits 24-25 digits read, bits 0-15 value so far
//   4 low half of a surrogate pair: bits 24-26 stage (0 wants a backslash, 1 wants u, 2 + digits
//     read), bits 0-9 high half, bits 10-21 value so far
//   6 \U: bits 24-26 digits read, bits 0-20 value so far
//   7 \x: bit 24 digits read, bits 0-3 value so far
// Between bytes the value of 1 has at most 15 bits.
//
// Plain escapes are those of JSON.stringify: a quote, a backslash and control characters only, with
// the short form where there is one, else with four lowercase digits.
#include <algorithm>

#include "constrain/lexical_pool.hpp"

namespace constrain {

namespace {

constexpr uint32_t kUtf8 = 1u << 28, kEscape = 2u << 28, kHex = 3u << 28, kLow = 4u << 28;
constexpr uint32_t kWide = 6u << 28, kByte = 7u << 28;
constexpr uint32_t kQuotes = 3u << 22;   // the kind of string
constexpr uint32_t kKindMask = 7u << 28;
// What plain escapes write with digits.
constexpr CodePointRange kPlainDigits[3] = {{0, 7}, {0xB, 0xB}, {0xE, 0x1F}};

int hex_value(uint8_t b) {
  if (b >= '0' && b <= '9') return b - '0';
  if (b >= 'a' && b <= 'f') return b - 'a' + 10;
  if (b >= 'A' && b <= 'F') return b - 'A' + 10;
  return -1;
}

// Code points that the decoder can still become; up to three ranges.
size_t ranges_of(uint32_t decoder, CodePointRange out[3]) {
  size_t n = 0;
  const auto add = [&](uint32_t low, uint32_t high) {
    if (low <= high) out[n++] = {low, high};
  };
  const uint32_t kind = decoder & (decoder & LexicalPool::kRaw ? kUtf8 : kKindMask);
  const bool plain = (decoder & (LexicalPool::kRaw | kQuotes)) == LexicalPool::kPlainJson;
  if (plain && kind == kEscape) {
    add('"', '"');
    add('\\', '\\');
    add(0, 0x1F);
  } else if (plain && kind == kHex) {
    const uint32_t shift = 4 * (4 - (decoder >> 24 & 3));
    const uint32_t low = (decoder & 0xFFFF) << shift, high = low | ((1u << shift) - 1);
    for (const CodePointRange& r : kPlainDigits) add(std::max(low, r.low), std::min(high, r.high));
  } else if (kind == kUtf8) {
    const uint32_t length = (decoder >> 26 & 3) + 1, missing = decoder >> 24 & 3;
    const uint32_t value = decoder & (missing != 0 ? 0x7FFF : 0x1FFFFF);
    uint32_t low = value << (6 * missing), high = low | ((1u << (6 * missing)) - 1);
    low = std::max(low, length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u);
    high = std::min(high, 0x10FFFFu);
    if (low <= high) {
      if (low < 0xD800) add(low, std::min(high, 0xD7FFu));
      add(std::max(low, 0xE000u), high);
    }
  } else if (kind == kEscape) {
    add(0, 0xD7FF);
    add(0xE000, 0x10FFFF);
  } else if (kind == kHex) {
    const uint32_t shift = 4 * (4 - (decoder >> 24 & 3));
    const uint32_t low = (decoder & 0xFFFF) << shift, high = low | ((1u << shift) - 1);
    if (low < 0xD800) add(low, std::min(high, 0xD7FFu));
    add(std::max(low, 0xE000u), high);
    const uint32_t a = std::max(low, 0xD800u), b = std::min(high, 0xDBFFu);
    if (a <= b) add(0x10000 + ((a - 0xD800) << 10), 0x10000 + ((b - 0xD800) << 10) + 0x3FF);
  } else if (kind == kLow) {
    const uint32_t stage = decoder >> 24 & 7, digits = stage < 2 ? 0 : stage - 2;
    const uint32_t shift = 4 * (4 - digits);
    uint32_t low = (decoder >> 10 & 0xFFF) << shift, high = low | ((1u << shift) - 1);
    low = std::max(low, 0xDC00u);
    high = std::min(high, 0xDFFFu);
    const uint32_t base = 0x10000 + ((decoder & 0x3FF) << 10);
    if (low <= high) add(base + low - 0xDC00, base + high - 0xDC00);
  } else if (kind == kWide) {
    const uint32_t left = 8 - (decoder >> 24 & 7);
    const uint64_t first = uint64_t{decoder & 0x1FFFFF} << (4 * left);
    const uint64_t last = std::min<uint64_t>(first | ((uint64_t{1} << (4 * left)) - 1), 0x10FFFF);
    if (first > last) return n;
    if (first < 0xD800) add(uint32_t(first), uint32_t(std::min<uint64_t>(last, 0xD7FF)));
    add(uint32_t(std::max<uint64_t>(first, 0xE000)), uint32_t(last));
  } else if (kind == kByte) {
    const uint32_t left = 2 - (decoder >> 24 & 1);
    const uint32_t low = (decoder & 0xF) << (4 * left);
    add(low, low | ((1u << (4 * left)) - 1));
  }
  return n;
}

}  // namespace

bool LexicalPool::some_live(LexId id, uint32_t low, uint32_t high) {
  if (id <= kAnything) return id == kAnything;
  if (nodes_[id].uniform) return advance(id, low) != kNothing;
  std::vector<StringSet> sets;
  collect_sets(id, sets);
  for (const StringSet s : sets) {
    const auto kids = sets_.children(s);
    auto it = std::lower_bound(kids.begin(), kids.end(), low,
                               [](const auto& e, uint32_t c) { return e.first < c; });
    for (size_t i = size_t(it - kids.begin()); i < sets_.children(s).size(); ++i) {
      const uint32_t c = sets_.children(s)[i].first;
      if (c > high) break;
      if (advance(id, c) != kNothing) return true;
    }
  }
  // Outside of the sets' next characters a language behaves by classes of its regexes.
  const CharClasses& p = partition(dfas_of(id));
  std::vector<bool> tried(p.representatives.size(), false);
  size_t i = size_t(std::upper_bound(p.starts.begin(), p.starts.end(), low) - p.starts.begin()) - 1;
  for (; i < p.starts.size() && p.starts[i] <= high; ++i) {
    if (tried[p.classes[i]]) continue;
    const uint32_t from = std::max(low, p.starts[i]);
    const uint32_t end = std::min(high, i + 1 < p.starts.size() ? p.starts[i + 1] - 1 : 0x10FFFF);
    for (uint32_t c = from; c <= end; ++c) {
      bool in_set = false;
      for (const StringSet s : sets) in_set |= sets_.child(s, c) != StringSets::kEmpty;
      if (in_set) continue;
      if (advance(id, c) != kNothing) return true;
      tried[p.classes[i]] = true;
      break;
    }
  }
  return false;
}

bool LexicalPool::admits(LexId goal, uint32_t decoder) {
  CodePointRange ranges[3];
  const size_t n = ranges_of(decoder, ranges);
  if (n == 0) return false;
  if (goal == kAnything) return true;
  for (size_t i = 0; i < n; ++i)
    if (some_live(goal, ranges[i].low, ranges[i].high)) return true;
  return false;
}

bool LexicalPool::can_become(uint32_t decoder, uint32_t code_point) {
  CodePointRange ranges[3];
  const size_t n = ranges_of(decoder, ranges);
  for (size_t i = 0; i < n; ++i)
    if (ranges[i].low <= code_point && code_point <= ranges[i].high) return true;
  return false;
}

bool LexicalPool::can_begin(StringSet set, uint32_t decoder) const {
  CodePointRange ranges[3];
  const size_t n = ranges_of(decoder, ranges);
  const auto kids = sets_.children(set);
  for (size_t i = 0; i < n; ++i) {
    const auto it = std::lower_bound(kids.begin(), kids.end(), ranges[i].low,
                                     [](const auto& e, uint32_t c) { return e.first < c; });
    if (it != kids.end() && it->first <= ranges[i].high) return true;
  }
  return false;
}

LexId LexicalPool::drop_sets(LexId goal, uint32_t decoder) {
  if (!nodes_[goal].has_sets || can_begin(union_of_sets(goal), decoder)) return goal;
  return without_sets(goal);
}

uint32_t LexicalPool::outcome(uint32_t tracked) {
  if (tracked == 0) return 0;
  std::vector<uint32_t> bits = lists_.copy(tracked);
  for (uint32_t& p : bits) p = accepts(p);
  return lists_.intern(bits);
}

uint32_t LexicalPool::advance_list(uint32_t tracked, uint32_t code_point) {
  if (tracked == 0) return 0;
  std::vector<uint32_t> parts = lists_.copy(tracked);
  for (uint32_t& p : parts) p = advance(p, code_point);
  return lists_.intern(parts);
}

size_t LexicalPool::reachable(uint32_t decoder, CodePointRange out[3]) const {
  return ranges_of(decoder, out);
}

bool LexicalPool::take(LexCursor& cursor, uint32_t code_point) {
  cursor.goal = advance(cursor.goal, code_point);
  if (cursor.goal == kNothing) return false;
  if (cursor.tracked != 0) cursor.tracked = advance_list(cursor.tracked, code_point);
  return true;
}

bool LexicalPool::ends(const LexCursor& cursor, uint32_t& outcome_id) {
  if (!accepts(cursor.goal)) return false;
  outcome_id = outcome(cursor.tracked);
  return true;
}

LexStep LexicalPool::step(LexCursor& cursor, uint8_t b, uint32_t& outcome_id) {
  uint32_t code_point;
  // Most bytes are ASCII at a character boundary.
  const bool json = cursor.decoder == kJson || cursor.decoder == kPlainJson;
  if (b >= 0x80 || (json ? needs_escape(b) : cursor.decoder != kRaw)) {
    const LexStep s = decode(cursor.decoder, b, code_point);
    if (s == LexStep::kDead) return s;
    if (s == LexStep::kEnd) {
      if (!accepts(cursor.goal)) return LexStep::kDead;
      outcome_id = outcome(cursor.tracked);
      return s;
    }
    if (code_point == kNone) {
      if (!admits(cursor.goal, cursor.decoder)) return LexStep::kDead;
      // Most characters begin no member of a finite set: back to a language with a table.
      cursor.goal = drop_sets(cursor.goal, cursor.decoder);
      if (cursor.tracked != 0) {
        std::vector<uint32_t> parts = lists_.copy(cursor.tracked);
        for (uint32_t& p : parts) p = drop_sets(p, cursor.decoder);
        cursor.tracked = lists_.intern(parts);
      }
      return LexStep::kInside;
    }
  } else {
    code_point = b;
  }
  cursor.goal = advance(cursor.goal, code_point);
  if (cursor.goal == kNothing) return LexStep::kDead;
  if (cursor.tracked != 0) cursor.tracked = advance_list(cursor.tracked, code_point);
  return LexStep::kInside;
}

LexStep LexicalPool::decode(uint32_t& decoder, uint8_t b, uint32_t& code_point) const {
  code_point = kNone;
  const uint32_t raw = decoder & kRaw;
  if (raw && position_of(decoder) != 0) return decode_raw(decoder, b, code_point);
  const uint32_t quotes = raw ? 0 : decoder & kQuotes;
  const bool plain = quotes == kPlainJson;
  if (quotes != 0 && !plain) {
    const uint32_t kind = decoder & kKindMask;
    if ((kind == 0 && b < 0x80) || kind == kEscape || kind == kWide || kind == kByte)
      return decode_python(decoder, b, code_point);
  }
  const auto enter = [&](uint32_t next) {
    decoder = raw | quotes | next;
    CodePointRange ranges[3];
    return ranges_of(decoder, ranges) != 0 ? LexStep::kInside : LexStep::kDead;
  };
  const auto take = [&](uint32_t c) {
    decoder = raw | quotes;
    code_point = c;
    return LexStep::kInside;
  };
  switch (decoder & kKindMask) {
    case 0: {
      if (!raw) {
        if (b == '"') return LexStep::kEnd;
        if (b < 0x20) return LexStep::kDead;
        if (b == '\\') return enter(kEscape);
      }
      if (b < 0x80) return take(b);
      if (b >= 0xC2 && b <= 0xDF) return enter(kUtf8 | 1u << 26 | 1u << 24 | (b & 0x1F));
      if (b >= 0xE0 && b <= 0xEF) return enter(kUtf8 | 2u << 26 | 2u << 24 | (b & 0x0F));
      if (b >= 0xF0 && b <= 0xF4) return enter(kUtf8 | 3u << 26 | 3u << 24 | (b & 0x07));
      return LexStep::kDead;
    }
    case kUtf8: {
      if ((b & 0xC0) != 0x80) return LexStep::kDead;
      const uint32_t missing = (decoder >> 24 & 3) - 1;
      const uint32_t value = (decoder & 0x7FFF) << 6 | (b & 0x3F);
      const LexStep s =
          enter(kUtf8 | (decoder & 3u << 26) | missing << 24 | (value & 0x1FFFFF));
      return s == LexStep::kInside && missing == 0 ? take(value) : s;
    }
    case kEscape:
      switch (b) {
        case '"': case '\\': return take(b);
        case '/': return plain ? LexStep::kDead : take(b);
        case 'b': return take(8);
        case 'f': return take(12);
        case 'n': return take(10);
        case 'r': return take(13);
        case 't': return take(9);
        case 'u': return enter(kHex);
        default: return LexStep::kDead;
      }
    case kHex: {
      const int digit = hex_value(b);
      if (digit < 0 || (plain && b >= 'A' && b <= 'F')) return LexStep::kDead;
      const uint32_t digits = (decoder >> 24 & 3) + 1;
      const uint32_t value = (decoder & 0xFFFF) << 4 | uint32_t(digit);
      if (digits < 4) return enter(kHex | digits << 24 | value);
      if (plain) {
        for (const CodePointRange& r : kPlainDigits)
          if (r.low <= value && value <= r.high) return take(value);
        return LexStep::kDead;
      }
      if (value >= 0xDC00 && value <= 0xDFFF) return LexStep::kDead;
      if (value >= 0xD800 && value <= 0xDBFF) return enter(kLow | (value - 0xD800));
      return take(value);
    }
    default: {
      const uint32_t stage = decoder >> 24 & 7, high = decoder & 0x3FF;
      if (stage == 0) return b == '\\' ? enter(kLow | 1u << 24 | high) : LexStep::kDead;
      if (stage == 1) return b == 'u' ? enter(kLow | 2u << 24 | high) : LexStep::kDead;
      const int digit = hex_value(b);
      if (digit < 0) return LexStep::kDead;
      const uint32_t digits = stage - 1;
      const uint32_t value = (decoder >> 10 & 0xFFF) << 4 | uint32_t(digit);
      if (digits < 4) return enter(kLow | (2 + digits) << 24 | value << 10 | high);
      if (value < 0xDC00 || value > 0xDFFF) return LexStep::kDead;
      return take(0x10000 + (high << 10) + (value - 0xDC00));
    }
  }
}

// Strings of Python, as far as they differ from JSON's: quotes, and the escapes that Python and its
// literal readers agree about.
LexStep LexicalPool::decode_python(uint32_t& decoder, uint8_t b, uint32_t& code_point) const {
  const uint32_t quotes = decoder & kQuotes;
  const auto take = [&](uint32_t c) {
    decoder = quotes;
    code_point = c;
    return LexStep::kInside;
  };
  const auto enter = [&](uint32_t next) {
    decoder = quotes | next;
    CodePointRange ranges[3];
    return ranges_of(decoder, ranges) != 0 ? LexStep::kInside : LexStep::kDead;
  };
  switch (decoder & kKindMask) {
    case 0:
      if (b == (quotes == kSingleQuoted ? '\'' : '"')) return LexStep::kEnd;
      if (b == '\n' || b == '\r' || b == 0) return LexStep::kDead;
      return b == '\\' ? enter(kEscape) : take(b);
    case kEscape:
      switch (b) {
        case '\'': case '"': case '\\': return take(b);
        case 'a': return take(7);
        case 'b': return take(8);
        case 't': return take(9);
        case 'n': return take(10);
        case 'v': return take(11);
        case 'f': return take(12);
        case 'r': return take(13);
        case 'x': return enter(kByte);
        case 'u': return enter(kHex);
        case 'U': return enter(kWide);
        default: return LexStep::kDead;
      }
    default: {
      const int digit = hex_value(b);
      if (digit < 0) return LexStep::kDead;
      const bool wide = (decoder & kKindMask) == kWide;
      const uint32_t digits = (decoder >> 24 & 7) + 1;
      const uint32_t value = (decoder & 0x1FFFFF) << 4 | uint32_t(digit);
      if (value > 0x10FFFF) return LexStep::kDead;
      if (digits < (wide ? 8u : 2u)) return enter((wide ? kWide : kByte) | digits << 24 | value);
      return value >= 0xD800 && value <= 0xDFFF ? LexStep::kDead : take(value);
    }
  }
}

}  // namespace constrain
