// Completions and descriptions of what is not written as JSON.
#include <algorithm>

#include "constrain/json_machine.hpp"

namespace constrain {

namespace {

// Text for people: special tokens and what is no character are left out.
std::string readable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (uint8_t(text[i]) == 0xFF) i += 3;
    else if (text[i] == '\n') out += "\\n";
    else out += text[i];
  }
  return out.empty() ? "a special token" : "'" + out + "'";
}

}  // namespace

// What ends a key and leads to its value, as far as that belongs to the key.
std::string JsonMachine::key_end(const Config& c) const {
  const std::string end = pool_.terminator(c.w[5]);
  return !surface_ || !(is_bare(c) || surface_->bare_keys) ? end + ":" : end;
}

// A value of this type, or what opens one.
bool JsonMachine::feed_spelled_type(Config& c, Type type, std::string& out) {
  using Strings = Writing::Strings;
  const bool bare = is_bare(c);
  switch (type) {
    case Type::kNull:
    case Type::kTrue:
    case Type::kFalse: {
      const uint32_t spelling = uint32_t(type) + (surface_->python_words ? 3 : 0);
      return feed(c, kLiterals[spelling], out);
    }
    case Type::kNumber: return feed_type(c, type, out);
    case Type::kString: {
      const LexId language = theory_.string_language(c.w[2]);
      std::string text;
      uint32_t unit = LexicalPool::kJson;
      std::string begin = "\"";
      switch (bare ? surface_->outer : surface_->inner) {
        case Strings::kJson: break;
        case Strings::kPython:
          begin = "'";
          unit = LexicalPool::kSingleQuoted;
          break;
        case Strings::kUnescaped: {
          // Whichever quote the text does without.
          Config next = c;
          if (pool_.finish(pool_.until(language, surface_->single_unit), surface_->single_unit, text) &&
              feed(next, "'" + text + "'", out)) {
            c = next;
            return true;
          }
          text.clear();
          unit = surface_->double_unit;
          break;
        }
        case Strings::kUntilQuote:
          begin = surface_->quote;
          unit = surface_->quote_unit;
          break;
        case Strings::kUntilTail: {
          begin.clear();
          unit = surface_->tail_unit;
          LexId raw = pool_.until(language, unit);
          if (surface_->cdata) raw = pool_.both(raw, surface_->raw_texts);
          if (pool_.live(raw) && pool_.finish(raw, unit, text) &&
              feed(c, text + pool_.terminator(unit), out))
            return true;
          if (!surface_->cdata) return false;
          text.clear();
          unit = surface_->cdata_unit;
          begin = surface_->scripts[Writing::kCdata][0].text;
          break;
        }
      }
      return pool_.finish(pool_.until(language, unit), unit, text) &&
             feed(c, begin + text + pool_.terminator(unit), out);
    }
    case Type::kArray:
      if (!surface_->nested) return feed(c, "[", out);
      return feed(c, surface_->opening(Writing::kWholeTail), out) ||
             feed(c, surface_->opening(Writing::kItem), out);
    case Type::kObject:
      if (!surface_->nested) return feed(c, "{", out);
      return feed(c, surface_->opening(Writing::kWholeTail), out) ||
             feed(c, surface_->opening(Writing::kHead), out);
  }
  return false;
}

bool JsonMachine::feed_spelled_value(Config& c, std::string& out) {
  plan_value(c);
  Type type;
  if (theory_.cheapest_type(c.w[2], type) && (type != Type::kString || (c.w[0] & kNoString) == 0) &&
      feed_spelled_type(c, type, out))
    return true;
  const int height = theory_.height(c.w[2]);
  for (const bool shallow : {true, false}) {
    for (const Type t : kTypes) {
      if (t == Type::kString && (c.w[0] & kNoString) != 0) continue;
      const bool nests = t == Type::kArray || t == Type::kObject;
      if (nests && shallow) {
        const Formula kind = theory_.both(c.w[2], theory_.atom(Fop::kType, uint32_t(t)));
        if (height == 0 || theory_.height(kind) > height) continue;
      }
      if (feed_spelled_type(c, t, out)) return true;
    }
  }
  return false;
}

// The next piece of a completion, where that is not as in JSON.
bool JsonMachine::finish_spelled(Config& c, std::string& out, size_t limit) {
  const Writing& s = *surface_;
  const bool bare = is_bare(c);
  const auto key = [&] {
    if (!bare && !s.bare_keys)
      return feed(c, s.inner == Writing::Strings::kPython ? "'" : "\"", out);
    return begin_key(c, s.key_unit);
  };
  const auto any = [&](std::initializer_list<std::string_view> texts) {
    return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
      return !text.empty() && feed(c, text, out);
    });
  };
  switch (mode(c)) {
    case Mode::kScript: return feed(c, std::string(script_text(c)).substr(c.w[5]), out);
    case Mode::kHole: {
      for (int b = 'a'; b <= 'z'; ++b) {
        const char letter = char(b);
        Config next = c;
        std::string text;
        if (!feed(next, {&letter, 1}, text)) continue;
        // The goal may be narrower than it was when the names were chosen.
        if (!theory_.satisfiable(next.w[2])) continue;
        c = next;
        out += text;
        return true;
      }
      return false;
    }
    case Mode::kTail:
      return feed(c, s.lead.substr(c.w[2]) + std::string(s.first(Writing::kWholeTail)), out);
    case Mode::kNumber: {
      std::string text;
      const NumberCursor cursor{c.w[4], c.w[5]};
      NumberPool& numbers = theory_.numbers();
      if (!numbers.accepts(c.w[2], cursor)) {
        const std::vector<uint32_t> tracked = theory_.lists.copy(c.w[3]);
        return numbers.complete_text(c.w[2], tracked, (c.w[0] & kCapture) != 0, cursor, text) &&
               !text.empty() && feed(c, text, out);
      }
      return end_number(c);
    }
    case Mode::kValue: return feed_spelled_value(c, out);
    case Mode::kKeyOrEnd:
      if (!bare) return any({"}"}) || key();
      return any({s.opening(Writing::kWholeTail), s.opening(Writing::kHead)}) ||
             (s.scripts[Writing::kHead].empty() && key());
    case Mode::kKey:
      if (bare && !s.scripts[Writing::kHead].empty()) return any({s.opening(Writing::kHead)});
      return key();
    case Mode::kObjectNext: {
      if (!bare) return any({"}", ","});
      const bool separated = !s.scripts[Writing::kSeparator].empty();
      const Writing::Script next = separated ? Writing::kSeparator : Writing::kHead;
      return any({s.opening(Writing::kWholeTail), s.opening(next)}) ||
             (s.scripts[next].empty() && key());
    }
    case Mode::kArrayStart:
    case Mode::kArrayNext:
      if (bare) return any({s.opening(Writing::kWholeTail), s.opening(Writing::kItem)});
      return feed(c, "]", out) || feed_item(c, mode(c) == Mode::kArrayStart ? "" : ",", out);
    case Mode::kColon: return any({":"});
    case Mode::kStringOr:
    case Mode::kReadings: {
      // The shortest of all; where that comes up again on the way, the first that is found.
      constexpr uint32_t kDeepest = 64;
      if (reading_depth_ >= kDeepest) return false;
      struct Deeper {
        uint32_t& depth;
        explicit Deeper(uint32_t& d) : depth(d) { ++depth; }
        ~Deeper() { --depth; }
      };
      const bool any_will_do = reading_depth_ != 0;
      const Deeper deeper(reading_depth_);
      std::vector<Config> all;
      readings(c, all);
      std::reverse(all.begin(), all.end());   // a string may need more to be no other value
      bool found = false;
      Config best;
      std::string best_text;
      for (Config one : all) {
        std::string text;
        if (!finish(one, text, limit) || (found && text.size() >= best_text.size())) continue;
        found = true;
        best = one;
        best_text = std::move(text);
        if (any_will_do) break;
      }
      if (!found) return false;
      c = best;
      out += best_text;
      return true;
    }
    default: return false;
  }
}

// What may come next, where that is not as in JSON; empty: as in JSON.
std::string JsonMachine::describe_spelled(const Config& c) {
  const auto first = [&](Writing::Script script) {
    const auto& pieces = surface_->scripts[script];
    return pieces.empty() ? std::string("a key") : readable(pieces[0].text);
  };
  switch (mode(c)) {
    case Mode::kScript: return "the rest of " + readable(script_text(c).substr(c.w[5]));
    case Mode::kHole: return "the type of the value";
    case Mode::kTail: return first(Writing::kWholeTail);
    case Mode::kString:
      if ((c.w[4] & LexicalPool::kRaw) == 0) return "";
      return pool_.accepts(c.w[2]) ? "more of the text or its end" : "more of the text";
    case Mode::kKeyOrEnd:
      if (is_bare(c)) return first(Writing::kHead) + " or the end";
      return surface_->bare_keys ? "a key or '}'" : "";
    case Mode::kKey: return is_bare(c) ? first(Writing::kHead) : "";
    case Mode::kStringOr:
    case Mode::kReadings: {
      std::vector<Config> all;
      readings(c, all);
      std::string out;
      for (const Config& one : all) {
        if (!out.empty()) out += ", or ";
        out += describe(one);
      }
      return out;
    }
    default: return "";
  }
}

}  // namespace constrain
