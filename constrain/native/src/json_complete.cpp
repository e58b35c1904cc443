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

// At the start of a key of a general object: a key that some part of the formula still asks for.
bool JsonMachine::feed_wanted_key(Config& c, std::string& out) {
  const StackNode n = node(c.w[1]);
  std::vector<TextId> wanted;
  theory_.for_each_atom(n.a, [&](Formula a) {
    const FormulaNode f = theory_[a];
    if (f.op == Fop::kHas) wanted.push_back(f.a);
    if (f.op != Fop::kTable) return;
    const ObjectTable& t = theory_.table(f.a);
    for (uint32_t i = 0; i < t.names.size(); ++i)
      if (t.required[i] && !theory_.bit(f.b, i)) wanted.push_back(t.names[i]);
  });
  for (const TextId key : wanted) {
    std::string spelled;
    append_json(spelled, pool_.text_code_points(key));
    if (feed(c, spelled + "\"", out)) return true;
  }
  return false;
}

// Greedy: closes what can be closed and prefers short values.  Where containers nest without a
// short way out in that order, another order of preference is tried.
bool JsonMachine::complete(const Config& start, std::string& out, size_t limit) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    Config c = start;
    std::string text;
    if (!shortest_value(c, text, limit, attempt)) continue;
    out += text;
    return true;
  }
  return false;
}

bool JsonMachine::shortest_value(Config& c, std::string& out, size_t limit, int attempt) {
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
        if (mode(c) == Mode::kGeneralKey && c.w[6] == 0 && feed_wanted_key(c, out)) break;
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
        if (!feed(c, "]", out) && !feed(c, ",", out)) return false;
        break;
      case Mode::kArrayStart:
        if (feed(c, "]", out)) break;
        [[fallthrough]];
      case Mode::kValue: {
        Config inside = c;
        const bool empty_array = mode(c) == Mode::kValue && step(inside, '[') && step(inside, ']');
        inside = c;
        const bool empty_object = step(inside, '{') && step(inside, '}');
        bool moved = feed(c, "0", out) || feed(c, "1", out) || feed(c, "null", out) ||
                     feed(c, "\"\"", out) || (empty_object && feed(c, "{}", out)) ||
                     (empty_array && feed(c, "[]", out)) || feed(c, "true", out) ||
                     feed(c, "false", out);
        constexpr const char* kOrders[4] = {"-23456789\"{[", "-23456789\"[{", "{[-23456789\"",
                                            "[{-23456789\""};
        for (const char* b = kOrders[attempt]; *b != 0 && !moved; ++b)
          moved = feed(c, std::string_view(b, 1), out);
        if (!moved) return false;
        break;
      }
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
