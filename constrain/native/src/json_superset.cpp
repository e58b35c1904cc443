#include "constrain/json_superset.hpp"

#include <array>
#include <string_view>

namespace constrain {
namespace {

enum State : uint8_t {
  kDeadState,
  kAfterString,   // , ] } :
  kBehindGap,     // all of these, value or key
  kAnyText,
  kAfterValue,    // , ] }
  kAfterComma,    // value or key
  kAfterColon,    // value
  kArrayStart,    // value or ]
  kObjectStart,   // key or }
  kString,
  kEscape,
  kHex1, kHex2, kHex3, kHex4,
  kMinus,
  kZero,
  kInteger,
  kPoint,
  kFraction,
  kExponent,
  kExponentSign,
  kExponentDigits,
  kLiteral,       // this and the following: letters of true, false, null that are left
  kStates = kLiteral + 9,
};
constexpr std::array<std::string_view, 9> kLiteralRest = {"rue", "ue",  "e",  "alse", "lse",
                                                          "se",  "ull", "ll", "l"};

bool is_space(uint8_t b) { return b == ' ' || b == '\t' || b == '\n' || b == '\r'; }
bool is_digit(uint8_t b) { return b >= '0' && b <= '9'; }
bool is_hex(uint8_t b) {
  return is_digit(b) || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F');
}

uint8_t literal_state(std::string_view rest) {
  if (rest.empty()) return kAfterValue;
  for (size_t i = 0; i < kLiteralRest.size(); ++i) {
    if (kLiteralRest[i] == rest) return static_cast<uint8_t>(kLiteral + i);
  }
  return kDeadState;
}

uint8_t value_start(uint8_t b) {
  switch (b) {
    case '"': return kString;
    case '-': return kMinus;
    case '0': return kZero;
    case 't': return literal_state("rue");
    case 'f': return literal_state("alse");
    case 'n': return literal_state("ull");
    case '[': return kArrayStart;
    case '{': return kObjectStart;
    default: return is_digit(b) ? kInteger : kDeadState;
  }
}

uint8_t after_value(uint8_t b) {
  if (is_space(b) || b == ']' || b == '}') return kAfterValue;
  return b == ',' ? kAfterComma : kDeadState;
}

uint8_t compute(uint8_t state, uint8_t b) {
  if (state >= kLiteral) {
    const std::string_view rest = kLiteralRest[state - kLiteral];
    return static_cast<uint8_t>(rest[0]) == b ? literal_state(rest.substr(1)) : uint8_t{kDeadState};
  }
  switch (static_cast<State>(state)) {
    case kAfterString:
      if (is_space(b)) return kAfterString;
      return b == ':' ? uint8_t{kAfterColon} : after_value(b);
    case kBehindGap:
      if (is_space(b)) return kDeadState;
      return b == ':' || after_value(b) != kDeadState ? compute(kAfterString, b) : value_start(b);
    case kAnyText: return kAnyText;
    case kAfterValue: return after_value(b);
    case kAfterComma: return is_space(b) ? uint8_t{kAfterComma} : value_start(b);
    case kAfterColon: return is_space(b) ? uint8_t{kAfterColon} : value_start(b);
    case kArrayStart:
      if (is_space(b)) return kArrayStart;
      return b == ']' ? uint8_t{kAfterValue} : value_start(b);
    case kObjectStart:
      if (is_space(b)) return kObjectStart;
      return b == '"' ? kString : b == '}' ? kAfterValue : kDeadState;
    case kString:
      if (b == '"') return kAfterString;
      return b == '\\' ? kEscape : b < 0x20 ? kDeadState : kString;
    case kEscape:
      if (b == 'u') return kHex1;
      return std::string_view("\"\\/bfnrt").find(static_cast<char>(b)) != std::string_view::npos
                 ? kString
                 : kDeadState;
    case kHex1: return is_hex(b) ? kHex2 : kDeadState;
    case kHex2: return is_hex(b) ? kHex3 : kDeadState;
    case kHex3: return is_hex(b) ? kHex4 : kDeadState;
    case kHex4: return is_hex(b) ? kString : kDeadState;
    case kMinus: return b == '0' ? kZero : is_digit(b) ? kInteger : kDeadState;
    case kZero:
    case kInteger:
      if (state == kInteger && is_digit(b)) return kInteger;
      if (b == '.') return kPoint;
      return b == 'e' || b == 'E' ? uint8_t{kExponent} : after_value(b);
    case kPoint: return is_digit(b) ? kFraction : kDeadState;
    case kFraction:
      if (is_digit(b)) return kFraction;
      return b == 'e' || b == 'E' ? uint8_t{kExponent} : after_value(b);
    case kExponent:
      if (b == '+' || b == '-') return kExponentSign;
      return is_digit(b) ? kExponentDigits : kDeadState;
    case kExponentSign: return is_digit(b) ? kExponentDigits : kDeadState;
    case kExponentDigits: return is_digit(b) ? uint8_t{kExponentDigits} : after_value(b);
    default: return kDeadState;
  }
}

}  // namespace

uint8_t JsonSuperset::step(uint8_t state, uint8_t byte) {
  static const auto kTable = [] {
    std::array<std::array<uint8_t, 256>, kStates> table{};
    for (size_t s = 0; s < kStates; ++s) {
      for (size_t b = 0; b < 256; ++b) {
        table[s][b] = compute(static_cast<uint8_t>(s), static_cast<uint8_t>(b));
      }
    }
    return table;
  }();
  static_assert(State::kAfterString == JsonSuperset::kAfterString &&
                State::kBehindGap == JsonSuperset::kBehindGap &&
                State::kAnyText == JsonSuperset::kAnyText);
  return kTable[state][byte];
}

}  // namespace constrain
