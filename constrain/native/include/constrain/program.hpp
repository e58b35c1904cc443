// The program format: flat tables that front ends emit.  constrain/program.py documents each
// operator; the numbers here and there must agree (a test compares them).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace constrain {

enum class Op : int32_t {
  kFalse = 0, kTrue = 1, kAnd = 2, kOr = 3, kOne = 4, kNot = 5, kType = 6, kRef = 7, kEnum = 8,
  kRegex = 9, kStrings = 10, kMinLength = 11, kMaxLength = 12, kMinimum = 13, kMaximum = 14,
  kMultipleOf = 15, kInteger = 16, kIntegerLexical = 17,
  kObject = 20, kHas = 21, kUnevaluatedProperties = 22,
  kArray = 25, kContainsMin = 26, kContainsMax = 27, kUnique = 28, kUnevaluatedItems = 29,
};

enum class ValueKind : int32_t { kNull, kTrue, kFalse, kNumber, kString, kArray, kObject };

// kSpaced: one blank behind each colon and comma, none elsewhere.
enum class Whitespace : uint8_t { kBounded, kAny, kCompact, kSpaced };

// How values are written where that is not JSON: constrain/program.py documents each field.
struct Surface {
  enum class Members : uint8_t { kBraces, kRoot, kNested };
  enum class Strings : uint8_t { kJson, kPython, kUntilQuote, kUntilTail, kUnescaped };
  struct Piece {
    enum class Kind : uint8_t { kText, kKey, kType, kString } kind = Kind::kText;
    std::string text;
    bool operator==(const Piece&) const = default;
  };
  Members members = Members::kBraces;
  std::string head, separator, quote;
  std::vector<Piece> between, tail;
  Strings outer = Strings::kJson, inner = Strings::kJson;
  bool python_words = false, cdata = false;
  bool operator==(const Surface&) const = default;
};

struct Program {
  bool text = false;                      // kind "text" (Regex, Choice) rather than "json"
  bool grammar = false;                   // kind "grammar": args is the table, with `parts`
  std::vector<int32_t> nodes;             // 3 per node: op, a, b
  std::vector<int32_t> args;
  std::vector<int32_t> refs;              // node of each REF
  std::vector<int32_t> values;            // 3 per value: kind, a, b
  std::vector<std::vector<int32_t>> regexes;
  std::vector<std::string> strings;       // UTF-8
  int32_t root = 0;
  Whitespace whitespace = Whitespace::kBounded;
  bool plain_numbers = true;
  bool declared_order = false;
  bool plain_escapes = false;             // strings are written in one way only
  std::optional<Surface> surface;         // none: JSON
  std::vector<std::shared_ptr<const Program>> parts;   // of a grammar, by foreign number
};

// One machine can run both: all that is no formula is the same.
inline bool same_options(const Program& a, const Program& b) {
  return a.whitespace == b.whitespace && a.plain_numbers == b.plain_numbers &&
         a.declared_order == b.declared_order && a.plain_escapes == b.plain_escapes &&
         a.surface == b.surface;
}

// All tables are the same; the roots may differ.
inline bool same_nodes(const Program& a, const Program& b) {
  return a.nodes == b.nodes && a.args == b.args && a.refs == b.refs && a.values == b.values &&
         a.regexes == b.regexes && a.strings == b.strings;
}

}  // namespace constrain
