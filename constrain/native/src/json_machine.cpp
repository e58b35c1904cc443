#include "constrain/json_machine.hpp"

#include <algorithm>

#include "constrain/errors.hpp"

namespace constrain {

namespace {
constexpr const char* kLiterals[3] = {"null", "true", "false"};
}  // namespace

JsonMachine::JsonMachine(const Program& options, LexicalPool& pool)
    : pool_(pool),
      theory_(options.plain_numbers, pool),
      whitespace_(options.whitespace),
      plain_numbers_(options.plain_numbers),
      declared_order_(options.declared_order),
      string_unit_(options.plain_escapes ? LexicalPool::kPlainJson : LexicalPool::kJson) {
  nodes_.push_back({});  // node 0: the bottom
  any_object_ = theory_.add_table({}, {}, {}, 0, UINT32_MAX);
}

JsonMachine::JsonMachine(std::shared_ptr<const Program> program, LexicalPool& pool)
    : JsonMachine(*program, pool) {
  root_ = add(std::move(program));
  if (root_ == Formulas::kFalse) throw UnsatisfiableConstraint("no value satisfies the schema");
}

Formula JsonMachine::add(std::shared_ptr<const Program> program) {
  const Formula root = theory_.add(std::move(program));
  return theory_.satisfiable(root) ? root : Formulas::kFalse;
}

void JsonMachine::begin_trial() {
  trial_ = true;
  mark_ = theory_.numbers().mark();
}

void JsonMachine::end_trial() {
  trial_ = false;
  trial_nodes_.clear();
  pool_.forget_tried_texts();
  theory_.numbers().release(mark_);
}

uint32_t JsonMachine::push(const StackNode& n) {
  if (trial_) {
    trial_nodes_.push_back(n);
    return uint32_t(trial_nodes_.size() - 1) | kTrialBit;
  }
  const uint32_t words[7] = {n.parent, uint32_t(n.kind), n.a, n.b, n.c, n.d, n.e};
  const uint64_t hash = hash_words(words, 7);
  const uint32_t found = node_set_.find(hash, [&](uint32_t id) {
    const StackNode& m = nodes_[id];
    return m.parent == n.parent && m.kind == n.kind && m.a == n.a && m.b == n.b && m.c == n.c &&
           m.d == n.d && m.e == n.e;
  });
  if (found != IdSet::kMissing) return found;
  const uint32_t id = uint32_t(nodes_.size());
  nodes_.push_back(n);
  node_set_.add(hash, id);
  return id;
}

Config JsonMachine::start_at(Formula goal) {
  Config c;
  set_mode(c, Mode::kValue);
  c.w[2] = goal;
  return c;
}

// Blank space of a gap; its run length is part of the state only under bounded whitespace.
bool JsonMachine::space(Config& c, uint8_t byte) const {
  if (whitespace_ == Whitespace::kCompact) return false;
  if (whitespace_ == Whitespace::kSpaced) {
    if (byte != ' ' || !wants_blank(c)) return false;
    c.w[0] |= 1u << 24;
    return true;
  }
  uint32_t gap = kGap | (c.w[0] & kSpaceMask);
  if (whitespace_ == Whitespace::kAny) gap |= kEndlessGap;
  if (mode(c) == Mode::kDone) gap |= kGapAtEnd;
  if (!step_gap(gap, byte)) return false;
  c.w[0] = (c.w[0] & ~kSpaceMask) | (gap & kSpaceMask);
  return true;
}

// Values behind a bracket, and the whole value, begin without a mode of their own or a frame.
bool JsonMachine::wants_blank(const Config& c) const {
  return whitespace_ == Whitespace::kSpaced && (c.w[0] & kSpaceMask) == 0 &&
         (mode(c) == Mode::kKey || (mode(c) == Mode::kValue && c.w[1] != 0));
}

bool JsonMachine::step(Config& c, uint8_t byte) {
  switch (mode(c)) {
    case Mode::kString: return step_string(c, byte);
    case Mode::kFastKey: return step_fast_key(c, byte);
    case Mode::kGeneralKey: return step_general_key(c, byte);
    case Mode::kNumber: return step_number(c, byte);
    case Mode::kLiteral: return step_literal(c, byte);
    default: break;
  }
  if (is_blank(byte)) return space(c, byte);
  if (wants_blank(c)) return false;
  c.w[0] &= ~kSpaceMask;
  switch (mode(c)) {
    case Mode::kValue: return begin_value(c, byte);
    case Mode::kArrayStart:
      if (byte == ']') return close_array(c);
      return next_item(c) && begin_value(c, byte);
    case Mode::kArrayNext:
      if (byte == ']') return close_array(c);
      return byte == ',' && next_item(c);
    case Mode::kKeyOrEnd:
      if (byte == '}') return close_object(c);
      return byte == '"' && begin_key(c);
    case Mode::kKey: return byte == '"' && begin_key(c);
    case Mode::kColon: {
      if (byte != ':') return false;
      const uint32_t goal = c.w[2], variables = c.w[3], capture = c.w[0] & kCapture;
      set_mode(c, Mode::kValue, capture);
      c.w[2] = goal;
      c.w[3] = variables;
      return true;
    }
    case Mode::kObjectNext:
      if (byte == '}') return close_object(c);
      if (byte != ',' || !more_keys(node(c.w[1]))) return false;
      set_mode(c, Mode::kKey);
      return true;
    default: return false;  // kDone
  }
}

bool JsonMachine::accepts(const Config& c) {
  if (mode(c) == Mode::kDone) return true;
  return mode(c) == Mode::kNumber && c.w[1] == 0 &&
         theory_.numbers().accepts(c.w[2], {c.w[4], c.w[5]});
}

bool JsonMachine::unsure(const Config& c) const { return (c.w[0] & kUnsure) != 0; }

// ------------------------------------------------------------------ values

bool JsonMachine::begin_value(Config& c, uint8_t byte) {
  const Formula goal = c.w[2];
  const uint32_t variables = c.w[3], capture = c.w[0] & kCapture;
  switch (byte) {
    case 'n':
    case 't':
    case 'f': {
      const Type type = byte == 'n' ? Type::kNull : byte == 't' ? Type::kTrue : Type::kFalse;
      if (!theory_.literal(goal, type)) return false;
      set_mode(c, Mode::kLiteral, capture);
      c.w[2] = uint32_t(type) | 1u << 8;
      c.w[3] = variables;
      return true;
    }
    case '"': {
      const LexId language = theory_.string_language(goal);
      if (!pool_.live(language)) return false;
      uint32_t tracked = 0;
      if (variables != 0) {
        std::vector<uint32_t> t = theory_.lists.copy(variables);
        for (uint32_t& x : t) x = theory_.string_language(x);
        tracked = pool_.list(t);
      }
      set_mode(c, Mode::kString, capture);
      c.w[2] = language;
      c.w[3] = tracked;
      c.w[4] = string_unit_;
      return true;
    }
    case '[': return begin_array(c, theory_.typed(goal, Type::kArray), variables, capture != 0);
    case '{': return begin_object(c, theory_.typed(goal, Type::kObject), variables, capture != 0);
    default: break;
  }
  if (byte != '-' && (byte < '0' || byte > '9')) return false;
  const NumberId language = theory_.number_language(goal);
  uint32_t tracked = 0;
  if (variables != 0) {
    std::vector<uint32_t> t = theory_.lists.copy(variables);
    for (uint32_t& x : t) x = theory_.number_language(x);
    tracked = theory_.lists.intern(t);
  }
  NumberCursor cursor;
  if (language == kNoNumber || !theory_.numbers().start(language, theory_.lists.get(tracked),
                                                        capture != 0, byte, cursor))
    return false;
  set_mode(c, Mode::kNumber, capture);
  c.w[2] = language;
  c.w[3] = tracked;
  c.w[4] = cursor.phase;
  c.w[5] = cursor.digits;
  return true;
}

bool JsonMachine::step_literal(Config& c, uint8_t byte) {
  const uint32_t type = c.w[2] & 0xFF, position = c.w[2] >> 8;
  const char* text = kLiterals[type];
  if (byte != uint8_t(text[position])) return false;
  if (text[position + 1] != 0) {
    c.w[2] = type | (position + 1) << 8;
    return true;
  }
  std::vector<uint32_t> truth = theory_.lists.copy(c.w[3]);
  for (uint32_t& f : truth) f = theory_.literal(f, Type(type));
  return end_value(c, truth, (c.w[0] & kCapture) != 0, ValueId(type));
}

bool JsonMachine::step_number(Config& c, uint8_t byte) {
  NumberPool& numbers = theory_.numbers();
  NumberCursor cursor{c.w[4], c.w[5]};
  const bool capture = (c.w[0] & kCapture) != 0;
  const bool numeric = (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' ||
                       byte == '+' || byte == 'e' || byte == 'E';
  if (numeric) {
    if (!numbers.step(c.w[2], theory_.lists.get(c.w[3]), capture, cursor, byte)) return false;
    c.w[4] = cursor.phase;
    c.w[5] = cursor.digits;
    return true;
  }
  if (!is_blank(byte) && byte != ',' && byte != ']' && byte != '}') return false;
  if (!numbers.accepts(c.w[2], cursor)) return false;
  std::vector<uint32_t> truth = theory_.lists.copy(c.w[3]);
  for (uint32_t& n : truth) n = numbers.holds_at_end(n, cursor);
  const ValueId value =
      capture ? theory_.value(ValueKind::kNumber, numbers.captured(cursor)) : 0;
  return end_value(c, truth, capture, value) && step(c, byte);
}

bool JsonMachine::step_string(Config& c, uint8_t byte) {
  LexCursor cursor{c.w[2], c.w[3], c.w[4]};
  uint32_t outcome = 0;
  if ((c.w[0] & kCapture) == 0) {
    switch (pool_.step(cursor, byte, outcome)) {
      case LexStep::kDead: return false;
      case LexStep::kInside:
        c.w[2] = cursor.goal;
        c.w[3] = cursor.tracked;
        c.w[4] = cursor.decoder;
        return true;
      case LexStep::kEnd: break;
    }
    const std::vector<uint32_t> truth = pool_.list_copy(outcome);
    return end_value(c, truth, false, 0);
  }
  uint32_t code_point;
  const LexStep s = LexicalPool::decode(cursor.decoder, byte, code_point);
  if (s == LexStep::kDead) return false;
  if (s == LexStep::kInside) {
    c.w[4] = cursor.decoder;
    if (code_point == LexicalPool::kNone) {
      if (!pool_.admits(c.w[2], cursor.decoder)) return false;
      c.w[2] = pool_.drop_sets(c.w[2], cursor.decoder);
      return true;
    }
    c.w[2] = pool_.advance(c.w[2], code_point);
    c.w[3] = pool_.advance_list(c.w[3], code_point);
    c.w[5] = pool_.text_append(c.w[5], code_point);
    return c.w[2] != LexicalPool::kNothing;
  }
  if (!pool_.accepts(c.w[2])) return false;
  const std::vector<uint32_t> truth = pool_.list_copy(pool_.outcome(c.w[3]));
  return end_value(c, truth, true, theory_.value(ValueKind::kString, c.w[5]));
}

bool JsonMachine::end_value(Config& c, std::span<const uint32_t> truth, bool captured,
                            ValueId value) {
  if (captured && (c.w[0] & kTextUnknown)) c.w[0] |= kUnsure;
  if (c.w[1] == 0) {
    set_mode(c, Mode::kDone);
    return true;
  }
  StackNode n = node(c.w[1]);
  if (n.kind == Kind::kFastObject) {
    set_mode(c, Mode::kObjectNext);
    return true;
  }
  const bool object = n.kind == Kind::kObjectMember;
  uint32_t variables = n.e, key = 0;
  if (object && n.d != 0) {
    const auto pair = theory_.lists.get(n.e);
    variables = pair[0];
    key = pair[1];
  }
  const std::vector<uint32_t> vars = theory_.lists.copy(variables);
  if (!vars.empty()) {
    std::unordered_map<Formula, bool> answers;
    for (size_t i = 0; i < vars.size(); ++i) answers[vars[i]] = truth[i] != 0;
    n.a = theory_.substitute(n.a, answers);
    std::vector<uint32_t> tracked = theory_.lists.copy(n.b);
    for (uint32_t& f : tracked) f = theory_.substitute(f, answers);
    n.b = theory_.lists.intern(tracked);
  }
  if (object) {
    if (!vars.empty() && !theory_.object_open(n.a, n.c)) return false;
    if (n.d != 0) {
      std::vector<uint32_t> members = theory_.lists.copy(n.d - 1);
      size_t at = 0;
      while (at < members.size() && members[at] < key) at += 2;
      members.insert(members.begin() + ptrdiff_t(at), {key, value});
      n.d = theory_.lists.intern(members) + 1;
    }
    n.kind = Kind::kObject;
    n.e = 0;
    c.w[1] = push(n);
    set_mode(c, Mode::kObjectNext);
    return true;
  }
  if (n.c != 0) {
    bool still = theory_[n.a].has_uniq;
    for (const Formula f : theory_.lists.copy(n.b)) still |= theory_[f].has_uniq;
    if (still) {
      std::vector<uint32_t> values = theory_.lists.copy(n.c - 1);
      const auto it = std::lower_bound(values.begin(), values.end(), value);
      if (it == values.end() || *it != value) values.insert(it, value);
      n.c = theory_.lists.intern(values) + 1;
    } else {
      n.c = 0;
    }
  }
  if (!vars.empty() && !theory_.array_open(n.a, n.c == 0 ? 0 : n.c - 1)) return false;
  if (n.d != 0) {
    std::vector<uint32_t> items = theory_.lists.copy(n.d - 1);
    items.push_back(value);
    n.d = theory_.lists.intern(items) + 1;
  }
  n.kind = Kind::kArray;
  n.e = 0;
  c.w[1] = push(n);
  set_mode(c, Mode::kArrayNext);
  return true;
}

// ------------------------------------------------------------------ arrays

bool JsonMachine::begin_array(Config& c, Formula goal, uint32_t variables, bool capture) {
  if (!theory_.array_open(goal, 0)) return false;
  bool unique = theory_[goal].has_uniq;
  std::vector<uint32_t> tracked = theory_.lists.copy(variables);
  for (uint32_t& f : tracked) {
    f = theory_.typed(f, Type::kArray);
    unique |= theory_[f].has_uniq;
  }
  c.w[1] = push({c.w[1], Kind::kArray, goal, theory_.lists.intern(tracked), unique ? 1u : 0u,
                 capture ? 1u : 0u, 0});
  set_mode(c, Mode::kArrayStart);
  return true;
}

bool JsonMachine::next_item(Config& c) {
  StackNode n = node(c.w[1]);
  const Child child = theory_.item(n.a, n.b, n.c == 0 ? 0 : n.c - 1);
  if (!theory_.satisfiable(child.goal)) return false;
  n.kind = Kind::kArrayItem;
  n.a = child.parent;
  n.b = child.tracked;
  n.e = child.variables;
  c.w[1] = push(n);
  set_mode(c, Mode::kValue, n.c != 0 || n.d != 0 ? kCapture : 0);
  c.w[2] = child.goal;
  c.w[3] = child.variables;
  return true;
}

bool JsonMachine::close_array(Config& c) {
  const StackNode n = node(c.w[1]);
  if (!theory_.array_done(n.a)) return false;
  std::vector<uint32_t> truth = theory_.lists.copy(n.b);
  for (uint32_t& f : truth) f = theory_.array_done(f);
  c.w[1] = n.parent;
  const ValueId value = n.d == 0 ? 0 : theory_.value(ValueKind::kArray, n.d - 1);
  return end_value(c, truth, n.d != 0, value);
}

// ------------------------------------------------------------------ trial views

LexicalView JsonMachine::base_view(LexId goal, uint32_t tracked, uint32_t decoder) {
  LexicalView v;
  v.cursor.goal = pool_.without_sets(goal);
  if (v.cursor.goal == LexicalPool::kNothing) return v;
  v.present = true;
  v.exceptional = v.cursor.goal != goal;
  v.cursor.decoder = decoder;
  if (tracked != 0) {
    std::vector<uint32_t> t = pool_.list_copy(tracked);
    for (uint32_t& x : t) {
      const LexId base = pool_.without_sets(x);
      v.exceptional |= base != x;
      x = base;
    }
    v.cursor.tracked = pool_.list(t);
  }
  return v;
}

LexicalView JsonMachine::lexical(const Config& c) {
  switch (mode(c)) {
    case Mode::kString: return base_view(c.w[2], c.w[3], c.w[4]);
    case Mode::kFastKey: {
      LexicalView v = base_view(c.w[3], c.w[4], c.w[5]);
      v.exceptional |= c.w[2] != kNoName || c.w[7] != StringSets::kEmpty;
      return v;
    }
    case Mode::kGeneralKey: {
      LexicalView v = base_view(c.w[2], c.w[3], c.w[5]);
      v.exceptional |= c.w[7] != StringSets::kEmpty;
      return v;
    }
    case Mode::kNumber: {
      // A number that is the whole text ends wherever it likes.
      LexicalView v;
      const NumberCursor at{c.w[4], c.w[5]};
      if (c.w[1] == 0 || c.w[3] != 0 || (c.w[0] & kCapture) != 0) return v;
      NumberPool& numbers = theory_.numbers();
      if (numbers.accepts_digits(c.w[2], at, pool_.digit_run())) {
        v.present = true;
        v.cursor.decoder = LexicalPool::kNumber | LexicalPool::kDigitsOnly;
        v.cursor.tracked = numbers.complete(at) ? 0 : 1;   // a digit must come first
      } else if (NumberPool::is_small(at)) {
        v.present = true;
        v.cursor = {numbers.goal_behind(c.w[2], at), at.digits, LexicalPool::kNumber | at.phase};
        if (plain_numbers_) v.cursor.decoder |= LexicalPool::kPlainNumber;
      }
      return v;
    }
    default: return {};
  }
}

bool JsonMachine::leave(Config& c, uint32_t outcome) {
  if (mode(c) == Mode::kNumber) return end_value(c, {}, false, 0);
  if (mode(c) == Mode::kString) {
    const std::vector<uint32_t> truth = pool_.list_copy(outcome);
    const bool capture = (c.w[0] & kCapture) != 0;
    const bool ok = end_value(c, truth, capture, JsonTheory::kUnknownValue);
    if (capture) c.w[0] |= kTextUnknown;
    return ok;
  }
  const bool general = mode(c) == Mode::kGeneralKey;
  bool ok;
  if (general) {
    // The class of a key outside of all names, as its matchers answered.
    const StackNode n = node(c.w[1]);
    const auto& names = theory_.frame_names(n.a, n.b);
    const std::vector<uint32_t> bits = pool_.list_copy(outcome);
    std::vector<uint32_t> cls;
    for (size_t i = 0; i < names.matchers.size(); ++i)
      cls.insert(cls.end(), {names.matchers[i], bits[i]});
    ok = close_general(c, {true, theory_.lists.intern(cls)}, 0, false);
  } else {
    ok = close_fast_other(c, outcome, 0, false);
  }
  c.w[0] |= kTextUnknown;
  return ok;
}

size_t JsonMachine::bytes() const {
  return theory_.bytes() + nodes_.capacity() * sizeof(StackNode) + node_set_.bytes() +
         others_left_.bytes() + trial_nodes_.capacity() * sizeof(StackNode) +
         (reserves_.size() + table_reserves_.size() + items_reserves_.size() + stack_reserves_.size()) * 40;
}

}  // namespace constrain
