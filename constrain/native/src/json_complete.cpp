// Completion of a prefix to a valid text, and descriptions of what may come next.
#include <algorithm>

#include "constrain/json_machine.hpp"

namespace constrain {

bool JsonMachine::feed(Config& c, std::string_view text, std::string& out) {
  Config next = c;
  for (const char b : text)
    if (!step(next, uint8_t(b))) return false;
  c = next;
  out += text;
  return true;
}

// What the rest of the object or array on top of the stack must satisfy.
Formula JsonMachine::frame_formula(const StackNode& n) {
  if (n.kind != Kind::kFastObject) return n.a;
  return theory_.atom(Fop::kTable, n.a, n.b, n.d);
}

// Keys or values that were read in the frame.
uint32_t JsonMachine::frame_seen(const StackNode& n) {
  const bool array = n.kind == Kind::kArray || n.kind == Kind::kArrayItem;
  return array ? (n.c == 0 ? 0 : n.c - 1) : n.c;
}

// Before a value: what it and the rest of its frame cost; the goal becomes what a cheap value
// satisfies.
JsonTheory::Cost JsonMachine::plan_value(Config& c) {
  if (c.w[1] == 0) return theory_.least_value(c.w[2]);
  const StackNode n = node(c.w[1]);
  const bool object = n.kind != Kind::kArrayItem;
  if (c.w[3] == 0) {
    const JsonTheory::Cost value = theory_.least_value(c.w[2]);
    const JsonTheory::Cost rest = theory_.least_rest(object, frame_formula(n), frame_seen(n));
    if (value == JsonTheory::kNoCost || rest == JsonTheory::kNoCost) return JsonTheory::kNoCost;
    return value + rest;
  }
  Formula child = c.w[2];
  const JsonTheory::Cost cost =
      theory_.plan_child(object, n.a, frame_seen(n), c.w[2], child);
  if (cost != JsonTheory::kNoCost) c.w[2] = child;
  return cost;
}

// Behind the opening quote of a key: the key that ends soonest with its value and what is then
// still missing.
bool JsonMachine::feed_key(Config& c, std::string& out) {
  const StackNode n = node(c.w[1]);
  const bool fast = n.kind == Kind::kFastObject;
  const uint32_t decoder = c.w[5];
  // Nothing was read of it: follow the plan.
  const bool between = LexicalPool::between(decoder);
  const std::string behind = key_end(c);
  const bool fresh = between && c.w[6] == 0 &&
                     (!fast || c.w[2] == 0 || theory_.table(n.a).names.empty());
  if (fresh) {
    bool done = false;
    TextId key = 0;
    Formula child = Formulas::kTrue;
    if (theory_.plan_member(frame_formula(n), n.c, done, key, child) && !done) {
      std::string spelled;
      for (const uint32_t x : pool_.text_code_points(key)) LexicalPool::spell_in(spelled, x, decoder);
      Config next = c;
      std::string text;
      if (feed(next, spelled + behind, text)) {
        const Formula wanted = theory_.both(next.w[2], child);
        if (theory_.satisfiable(wanted)) next.w[2] = wanted;
        c = next;
        out += text;
        return true;
      }
    }
  }
  // Names that the text read so far begins, and the shortest of the other keys.
  constexpr size_t kNames = 64;
  std::vector<std::vector<uint32_t>> ends;   // code points that are left of a name
  LexId others;
  if (fast) {
    const ObjectTable& t = theory_.table(n.a);
    const Rules r = rules(t, n);
    others = c.w[3];
    if (c.w[2] != kNoName) {
      size_t depth = 0;
      const auto at = t.trie[c.w[2]];
      for (uint32_t walk = 0; walk != c.w[2]; ++depth) {
        const auto here = t.trie[walk];
        for (uint32_t k = here.first_child; k < here.first_child + here.children; ++k)
          if (t.trie[k].low <= at.low && at.high <= t.trie[k].high) walk = k;
      }
      // A required name comes anyway: it costs nothing to write it now.
      for (const bool required : {true, false}) {
        for (uint32_t i = at.low; i < at.high && ends.size() < kNames; ++i) {
          if (bool(t.required[i]) != required || !name_open(t, n, i, r)) continue;
          const auto name = pool_.text_code_points(t.names[i]);
          // Inside a character: one that the name goes on with.
          if (!between &&
              (name.size() == depth || !LexicalPool::can_become(decoder, name[depth])))
            continue;
          ends.emplace_back(name.begin() + ptrdiff_t(depth), name.end());
        }
        if (!ends.empty()) break;
      }
    }
    const StringSet taken = pool_.sets().unite(c.w[7], c.w[8]);
    if (others != LexicalPool::kNothing)
      others = pool_.both(others, pool_.negate(pool_.strings(taken)));
  } else {
    if (pool_.sets().size(c.w[7]) <= kNames) ends = pool_.sets().members(c.w[7]);
    others = pool_.both(c.w[2], pool_.negate(pool_.strings(c.w[7])));
  }
  std::vector<std::string> choices;
  for (const auto& end : ends) {
    std::string spelled;
    size_t from = 0;
    if (!between) {
      if (end.empty() || !LexicalPool::can_become(decoder, end[0])) continue;
      LexicalPool::spell_rest(decoder, end[0], spelled);
      from = 1;
    }
    for (size_t i = from; i < end.size(); ++i) LexicalPool::spell_in(spelled, end[i], decoder);
    choices.push_back(std::move(spelled));
  }
  std::string other;
  if (pool_.live(others) && pool_.finish(others, decoder, other)) choices.push_back(other);
  uint64_t best = UINT64_MAX;
  Config best_config;
  std::string best_text;
  for (const std::string& choice : choices) {
    Config next = c;
    std::string text;
    if (!feed(next, choice + behind, text)) continue;
    const uint64_t cost = uint64_t{plan_value(next)} + text.size();
    if (cost >= best) continue;
    best = cost;
    best_config = next;
    best_text = std::move(text);
  }
  if (best == UINT64_MAX) return false;
  c = best_config;
  out += best_text;
  return true;
}

// Inside a string: its shortest end, in view of what the rest of the frame then needs.
bool JsonMachine::feed_string_end(Config& c, std::string& out) {
  constexpr size_t kTracked = 4;
  const std::string behind = pool_.terminator(c.w[4]);
  const std::vector<uint32_t> tracked = pool_.list_copy(c.w[3]);
  std::string best;
  uint64_t best_cost = UINT64_MAX;
  if (!tracked.empty() && tracked.size() <= kTracked && c.w[1] != 0) {
    const StackNode n = node(c.w[1]);
    const bool object = n.kind == Kind::kObjectMember;
    const uint32_t variables = object && n.d != 0 ? theory_.lists.get(n.e)[0] : n.e;
    const std::vector<uint32_t> vars = theory_.lists.copy(variables);
    for (uint32_t truth = 0; truth < 1u << tracked.size(); ++truth) {
      LexId language = c.w[2];
      std::unordered_map<Formula, bool> answers;
      for (size_t i = 0; i < tracked.size(); ++i) {
        const bool holds = (truth >> i & 1) != 0;
        language = pool_.both(language, holds ? tracked[i] : pool_.negate(tracked[i]));
        answers[vars[i]] = holds;
      }
      if (!pool_.live(language)) continue;
      const Formula rest = theory_.substitute(n.a, answers);
      const JsonTheory::Cost cost = theory_.least_rest(object, rest, frame_seen(n));
      std::string text;
      if (cost == JsonTheory::kNoCost || !pool_.finish(language, c.w[4], text)) continue;
      if (uint64_t{cost} + text.size() >= best_cost) continue;
      best_cost = uint64_t{cost} + text.size();
      best = std::move(text);
    }
    if (best_cost != UINT64_MAX && feed(c, best + behind, out)) return true;
  }
  best.clear();
  return pool_.finish(c.w[2], c.w[4], best) && feed(c, best + behind, out);
}

// To the start of an item that leads to the end of the array.
bool JsonMachine::feed_item(Config& c, const char* comma, std::string& out) {
  const StackNode n = node(c.w[1]);
  bool done = false;
  Formula child = Formulas::kTrue;
  const bool planned = theory_.plan_item(n.a, frame_seen(n), done, child) && !done;
  Config next = c;
  if (*comma != 0 ? !step(next, uint8_t(*comma)) : !next_item(next)) return false;
  if (planned) {
    const Formula wanted = theory_.both(next.w[2], child);
    if (theory_.satisfiable(wanted)) next.w[2] = wanted;
  }
  c = next;
  if (*comma == 0) c.w[0] |= 1u << kSpaceShift;   // no blank stands before a first item
  out += comma;
  return true;
}

// A value of this type, or its opening bracket.
bool JsonMachine::feed_type(Config& c, Type type, std::string& out) {
  switch (type) {
    case Type::kNull:
    case Type::kTrue:
    case Type::kFalse: return feed(c, kLiterals[uint32_t(type)], out);
    case Type::kNumber: {
      std::string text;
      return theory_.numbers().complete_text(theory_.number_language(c.w[2]), {}, false,
                                             NumberCursor{}, text) &&
             feed(c, text, out);
    }
    case Type::kString: {
      std::string text;
      return pool_.finish(theory_.string_language(c.w[2]), LexicalPool::kJson, text) &&
             feed(c, "\"" + text + "\"", out);
    }
    case Type::kArray: return feed(c, "[", out);
    case Type::kObject: return feed(c, "{", out);
  }
  return false;
}

bool JsonMachine::feed_value(Config& c, std::string& out) {
  plan_value(c);
  Type type;
  if (theory_.cheapest_type(c.w[2], type) && feed_type(c, type, out)) return true;
  // No cost was found: the first byte of a value that nests as little as possible.
  const Formula goal = c.w[2];
  for (const Type t : kTypes)
    if (t != Type::kArray && t != Type::kObject && feed_type(c, t, out)) return true;
  const int height = theory_.height(goal);
  const auto nested = [&](const char* byte, Type t) {
    const Formula kind = theory_.both(goal, theory_.atom(Fop::kType, uint32_t(t)));
    return theory_.height(kind) <= height && feed(c, byte, out);
  };
  if (height != 0)
    return nested("{", Type::kObject) || nested("[", Type::kArray) || feed(c, "{", out) ||
           feed(c, "[", out);
  for (const char* b = "-0123456789\""; *b != 0; ++b)
    if (feed(c, std::string_view(b, 1), out)) return true;
  return feed(c, "{", out) || feed(c, "[", out);
}

// Closes what can be closed; elsewhere follows plans to a near end.
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
  constexpr size_t kPieces = 40'000;
  for (size_t pieces = 0; !accepts(c); ++pieces) {
    if (out.size() > limit || pieces > kPieces) return false;
    if (surface_ && mode(c) != Mode::kString && mode(c) != Mode::kFastKey &&
        mode(c) != Mode::kGeneralKey && mode(c) != Mode::kLiteral) {
      if (!finish_spelled(c, out, limit)) return false;
      continue;
    }
    if (wants_blank(c) && !feed(c, " ", out)) return false;
    switch (mode(c)) {
      case Mode::kLiteral: {
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
        if (!feed_string_end(c, out)) return false;
        break;
      case Mode::kFastKey:
      case Mode::kGeneralKey:
        if (!feed_key(c, out)) return false;
        break;
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
      default: return false;
    }
  }
  return true;
}

std::string JsonMachine::describe(const Config& c) {
  if (surface_) {
    const std::string text = describe_spelled(c);
    if (!text.empty()) return text;
  }
  if (wants_blank(c)) return "a blank";
  switch (mode(c)) {
    case Mode::kLiteral: {
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
      if (surface_ && surface_->bare && is_bare(c))
        return close && more ? "another member or the end" : close ? "the end" : "another member";
      return close && more ? "',' or '}'" : close ? "'}'" : "','";
    }
    case Mode::kArrayNext: {
      Config end = c, next = c;
      const bool close = close_array(end), more = next_item(next);
      return close && more ? "',' or ']'" : close ? "']'" : "','";
    }
    case Mode::kDone: return "the end of the text";
    case Mode::kScript:
    case Mode::kHole:
    case Mode::kTail:
    case Mode::kStringOr:
    case Mode::kReadings:
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
