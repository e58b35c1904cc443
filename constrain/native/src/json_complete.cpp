// Completion of a prefix to a valid text, and descriptions of what may come next.
#include <algorithm>

#include "constrain/json_machine.hpp"

namespace constrain {

namespace {

void append_json(std::string& out, std::span<const uint32_t> text) {
  constexpr const char* kHex = "0123456789abcdef";
  for (const uint32_t c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += char(c);
    } else if (c < 0x20) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      append_utf8(out, c);
    }
  }
}

}  // namespace

bool JsonMachine::feed(Config& c, std::string_view text, std::string& out) {
  Config next = c;
  for (const char b : text)
    if (!step(next, uint8_t(b))) return false;
  c = next;
  out += text;
  return true;
}

// At the start of a key of a general object: the key that a plan asks for, and what its value
// should be.
bool JsonMachine::feed_planned_key(Config& c, std::string& out) {
  const StackNode n = node(c.w[1]);
  bool done = false;
  TextId key = 0;
  Formula child = Formulas::kTrue;
  if (!theory_.plan_member(n.a, n.c, done, key, child) || done) return false;
  std::string spelled;
  append_json(spelled, pool_.text_code_points(key));
  Config next = c;
  std::string text;
  if (!feed(next, spelled + "\":", text)) return false;
  const Formula wanted = theory_.both(next.w[2], child);
  if (theory_.satisfiable(wanted)) next.w[2] = wanted;
  c = next;
  out += text;
  return true;
}

// To the start of an item that leads to the end of the array.
bool JsonMachine::feed_item(Config& c, const char* comma, std::string& out) {
  const StackNode n = node(c.w[1]);
  bool done = false;
  Formula child = Formulas::kTrue;
  const bool planned = theory_.plan_item(n.a, n.c == 0 ? 0 : n.c - 1, done, child) && !done;
  Config next = c;
  if (*comma != 0 ? !step(next, uint8_t(*comma)) : !next_item(next)) return false;
  if (planned) {
    const Formula wanted = theory_.both(next.w[2], child);
    if (theory_.satisfiable(wanted)) next.w[2] = wanted;
  }
  c = next;
  out += comma;
  return true;
}

// The first byte of a value that nests as little as possible.
bool JsonMachine::feed_value(Config& c, std::string& out) {
  const Formula goal = c.w[2];
  if (feed(c, "0", out) || feed(c, "1", out) || feed(c, "null", out) || feed(c, "\"\"", out) ||
      feed(c, "true", out) || feed(c, "false", out))
    return true;
  const int height = theory_.height(goal);
  const auto nested = [&](const char* byte, Type type) {
    const Formula kind = theory_.both(goal, theory_.atom(Fop::kType, uint32_t(type)));
    return theory_.height(kind) <= height && feed(c, byte, out);
  };
  if (height != 0)
    return nested("{", Type::kObject) || nested("[", Type::kArray) || feed(c, "{", out) ||
           feed(c, "[", out);
  for (const char* b = "-23456789\""; *b != 0; ++b)
    if (feed(c, std::string_view(b, 1), out)) return true;
  return feed(c, "{", out) || feed(c, "[", out);
}

// Closes what can be closed; elsewhere follows plans to a shallow end.
bool JsonMachine::complete(const Config& start, std::string& out, size_t limit) {
  Config c = start;
  std::string text;
  if (!finish(c, text, limit)) return false;
  out += text;
  return true;
}

bool JsonMachine::finish(Config& c, std::string& out, size_t limit) {
  NumberPool& numbers = theory_.numbers();
  // Each turn writes a piece; texts that need thousands of pieces are not what greed finds.
  constexpr size_t kPieces = 4000;
  for (size_t pieces = 0; !accepts(c); ++pieces) {
    if (out.size() > limit || pieces > kPieces) return false;
    switch (mode(c)) {
      case Mode::kLiteral: {
        constexpr const char* kLiterals[3] = {"null", "true", "false"};
        if (!feed(c, kLiterals[c.w[2] & 0xFF] + (c.w[2] >> 8), out)) return false;
        break;
      }
      case Mode::kNumber: {
        std::string text;
        const NumberCursor cursor{c.w[4], c.w[5]};
        if (!numbers.accepts(c.w[2], cursor)) {
          const std::vector<uint32_t> tracked = theory_.lists.copy(c.w[3]);
          if (!numbers.complete_text(c.w[2], tracked, (c.w[0] & kCapture) != 0, cursor, text))
            return false;
        }
        if (!text.empty()) {
          if (!feed(c, text, out)) return false;
          break;
        }
        // The number ends where its container goes on.
        if (!feed(c, "}", out) && !feed(c, "]", out) && !feed(c, ",", out)) return false;
        break;
      }
      case Mode::kString:
      case Mode::kFastKey:
      case Mode::kGeneralKey: {
        const bool key = mode(c) != Mode::kString;
        const uint32_t decoder = key ? c.w[5] : c.w[4];
        if (decoder != LexicalPool::kJson) {  // finish the character
          bool moved = false;
          for (const char* b = "\"\\/bnrtf0123456789abcdefu"; *b != 0 && !moved; ++b)
            moved = feed(c, std::string_view(b, 1), out);
          for (int b = 0x80; b < 0xC0 && !moved; ++b) {
            const char byte = char(b);
            moved = feed(c, std::string_view(&byte, 1), out);
          }
          if (!moved) return false;
          break;
        }
        if (feed(c, "\"", out)) break;
        std::vector<uint32_t> text;
        std::string spelled;
        if (mode(c) == Mode::kFastKey && c.w[2] != kNoName) {
          const StackNode n = node(c.w[1]);
          const ObjectTable& t = theory_.table(n.a);
          const Rules r = rules(t, n);
          const auto& at = t.trie[c.w[2]];
          size_t depth = 0;  // characters read so far: the depth of the trie node
          uint32_t best = kNoName;
          std::vector<uint32_t> best_text;
          for (uint32_t i = at.low; i < at.high; ++i) {
            if (!name_open(t, n, i, r)) continue;
            const bool better = best == kNoName || (t.required[i] && !t.required[best]);
            if (!better) continue;
            best = i;
            best_text = pool_.text_code_points(t.names[i]);
          }
          if (best != kNoName) {
            uint32_t walk = 0;
            while (walk != c.w[2]) {
              const auto& here = t.trie[walk];
              for (uint32_t k = here.first_child; k < here.first_child + here.children; ++k)
                if (t.trie[k].low <= best && best < t.trie[k].high) walk = k;
              ++depth;
            }
            append_json(spelled, std::span(best_text).subspan(depth));
            if (feed(c, spelled + "\"", out)) break;
            spelled.clear();
          }
        }
        if (mode(c) == Mode::kGeneralKey && c.w[6] == 0 && feed_planned_key(c, out)) break;
        LexId language = mode(c) == Mode::kFastKey ? c.w[3] : c.w[2];
        if (mode(c) == Mode::kFastKey)
          language = pool_.both(language, pool_.negate(pool_.strings(c.w[7])));
        if (!pool_.witness(language, text)) return false;
        append_json(spelled, text);
        if (!feed(c, spelled + "\"", out)) {
          // A witness may collide with a name that is taken: make it longer where possible.
          if (!feed(c, spelled + "a\"", out) && !feed(c, spelled + "_0\"", out)) return false;
        }
        break;
      }
      case Mode::kKeyOrEnd:
        if (!feed(c, "}", out) && !feed(c, "\"", out)) return false;
        break;
      case Mode::kKey:
        if (!feed(c, "\"", out)) return false;
        break;
      case Mode::kColon:
        if (!feed(c, ":", out)) return false;
        break;
      case Mode::kObjectNext:
        if (!feed(c, "}", out) && !feed(c, ",", out)) return false;
        break;
      case Mode::kArrayNext:
        if (!feed(c, "]", out) && !feed_item(c, ",", out)) return false;
        break;
      case Mode::kArrayStart:
        if (!feed(c, "]", out) && !feed_item(c, "", out)) return false;
        break;
      case Mode::kValue:
        if (!feed_value(c, out)) return false;
        break;
      case Mode::kDone: return true;
    }
  }
  return true;
}

std::string JsonMachine::describe(const Config& c) {
  switch (mode(c)) {
    case Mode::kLiteral: {
      constexpr const char* kLiterals[3] = {"null", "true", "false"};
      return std::string("the rest of ") + kLiterals[c.w[2] & 0xFF];
    }
    case Mode::kNumber: return "a number that satisfies the schema";
    case Mode::kString:
      return pool_.accepts(c.w[2]) ? "more of the string or its closing quote"
                                   : "more of the string, which may not end here";
    case Mode::kFastKey:
    case Mode::kGeneralKey: return "a property name that the schema allows here";
    case Mode::kKeyOrEnd: return "a property name or '}'";
    case Mode::kKey: return "a property name";
    case Mode::kColon: return "':'";
    case Mode::kObjectNext: {
      const StackNode n = node(c.w[1]);
      Config end = c;
      const bool close = close_object(end), more = more_keys(n);
      return close && more ? "',' or '}'" : close ? "'}'" : "','";
    }
    case Mode::kArrayNext: {
      Config end = c, next = c;
      const bool close = close_array(end), more = next_item(next);
      return close && more ? "',' or ']'" : close ? "']'" : "','";
    }
    case Mode::kDone: return "the end of the text";
    case Mode::kArrayStart:
    case Mode::kValue: break;
  }
  std::string out;
  const auto add = [&](const char* name) {
    if (!out.empty()) out += ", ";
    out += name;
  };
  const Formula goal = mode(c) == Mode::kValue ? c.w[2] : uint32_t(Formulas::kTrue);
  if (mode(c) == Mode::kArrayStart) {
    Config next = c;
    if (close_array(next)) add("']'");
    next = c;
    if (!next_item(next)) return out;
    return out + (out.empty() ? "" : " or ") + describe(next);
  }
  for (const Type t : kTypes) {
    constexpr const char* kNames[7] = {"null",     "true",     "false",    "a number",
                                       "a string", "an array", "an object"};
    bool possible = false;
    switch (t) {
      case Type::kNull:
      case Type::kTrue:
      case Type::kFalse: possible = theory_.literal(goal, t); break;
      case Type::kNumber: possible = theory_.numbers().satisfiable(theory_.number_language(goal)); break;
      case Type::kString: possible = pool_.live(theory_.string_language(goal)); break;
      case Type::kArray: possible = theory_.array_open(theory_.typed(goal, t), 0); break;
      case Type::kObject:
        possible = theory_.object_open(theory_.typed(goal, t), StringSets::kEmpty);
        break;
    }
    if (possible) add(kNames[uint32_t(t)]);
  }
  return out;
}

}  // namespace constrain
