#include "constrain/json_machine.hpp"

#include <algorithm>

#include "constrain/errors.hpp"

namespace constrain {

JsonMachine::JsonMachine(const Program& options, LexicalPool& pool)
    : pool_(pool),
      theory_(options.plain_numbers, pool),
      whitespace_(options.whitespace),
      plain_numbers_(options.plain_numbers),
      declared_order_(options.declared_order),
      string_unit_(options.plain_escapes ? LexicalPool::kPlainJson : LexicalPool::kJson) {
  if (options.surface) {
    if (whitespace_ == Whitespace::kSpaced)
      throw Error("surface: whitespace is bounded, any or compact");
    surface_ = std::make_unique<Writing>(*options.surface, whitespace_, pool);
  }
  nodes_.push_back({});  // node 0: the bottom
  any_object_ = theory_.add_table({}, {}, {}, 0, UINT32_MAX);
}

JsonMachine::JsonMachine(std::shared_ptr<const Program> program, LexicalPool& pool)
    : JsonMachine(*program, pool) {
  root_ = add(std::move(program));
  if (root_ == Formulas::kFalse) throw UnsatisfiableConstraint("no value satisfies the schema");
}

Formula JsonMachine::add(std::shared_ptr<const Program> program) {
  Formula root = theory_.add(std::move(program));
  if (surface_ && surface_->bare)
    root = theory_.both(root, theory_.atom(Fop::kType, uint32_t(Type::kObject)));
  return theory_.satisfiable(root) ? root : Formulas::kFalse;
}

void JsonMachine::begin_trial() {
  trial_ = true;
  theory_.begin_trial();
  mark_ = theory_.numbers().mark();
}

void JsonMachine::end_trial() {
  trial_ = false;
  theory_.end_trial();
  trial_nodes_.clear();
  pool_.forget_tried_texts();
  if (trial_configs_.size() > 1) trial_configs_.resize(1);
  theory_.numbers().release(mark_);
}

uint32_t JsonMachine::push(const StackNode& n) {
  if (trial_) {
    trial_nodes_.push_back(n);
    return uint32_t(trial_nodes_.size() - 1) | kTrialBit;
  }
  const uint32_t words[8] = {n.parent, uint32_t(n.kind), n.a, n.b, n.c, n.d, n.e, n.key};
  const uint64_t hash = hash_words(words, 8);
  const uint32_t found = node_set_.find(hash, [&](uint32_t id) {
    const StackNode& m = nodes_[id];
    return m.parent == n.parent && m.kind == n.kind && m.a == n.a && m.b == n.b && m.c == n.c &&
           m.d == n.d && m.e == n.e && m.key == n.key;
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
  if (surface_ && surface_->bare)
    begin_object(c, theory_.typed(goal, Type::kObject), 0, false);
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
  if (surface_) return step_spelled(c, byte);
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
  return structure(c, byte);
}

bool JsonMachine::accepts(const Config& c) {
  if (surface_ && surface_->bare) return accepts_spelled(c);
  if (mode(c) == Mode::kDone) return true;
  return mode(c) == Mode::kNumber && c.w[1] == 0 &&
         theory_.numbers().accepts(c.w[2], {c.w[4], c.w[5]});
}

bool JsonMachine::unsure(const Config& c) const { return (c.w[0] & kUnsure) != 0; }

// ------------------------------------------------------------------ values

bool JsonMachine::begin_value(Config& c, uint8_t byte) {
  switch (byte) {
    case 'n': return begin_literal(c, uint32_t(Type::kNull));
    case 't': return begin_literal(c, uint32_t(Type::kTrue));
    case 'f': return begin_literal(c, uint32_t(Type::kFalse));
    case '"': return begin_string(c, string_unit_);
    case '[':
      return begin_array(c, theory_.typed(c.w[2], Type::kArray), c.w[3], (c.w[0] & kCapture) != 0);
    case '{':
      return begin_object(c, theory_.typed(c.w[2], Type::kObject), c.w[3],
                          (c.w[0] & kCapture) != 0);
    default: return begin_number(c, byte);
  }
}

// Behind the first byte of a literal; spelling: an index into kLiterals.
bool JsonMachine::begin_literal(Config& c, uint32_t spelling) {
  if (!theory_.literal(c.w[2], Type(spelling % 3))) return false;
  const uint32_t variables = c.w[3];
  set_mode(c, Mode::kLiteral, c.w[0] & kCapture);
  c.w[2] = spelling | 1u << 8;
  c.w[3] = variables;
  return true;
}

bool JsonMachine::begin_string(Config& c, uint32_t unit) {
  const uint32_t variables = c.w[3];
  const LexId language = pool_.until(theory_.string_language(c.w[2]), unit);
  if (!pool_.live(language)) return false;
  uint32_t tracked = 0;
  if (variables != 0) {
    std::vector<uint32_t> t = theory_.lists.copy(variables);
    for (uint32_t& x : t) x = pool_.until(theory_.string_language(x), unit);
    tracked = pool_.list(t);
  }
  set_mode(c, Mode::kString, c.w[0] & kCapture);
  c.w[2] = language;
  c.w[3] = tracked;
  c.w[4] = unit;
  return true;
}

bool JsonMachine::begin_number(Config& c, uint8_t byte) {
  if (byte != '-' && (byte < '0' || byte > '9')) return false;
  const uint32_t variables = c.w[3], capture = c.w[0] & kCapture;
  const NumberId language = theory_.number_language(c.w[2]);
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
  const uint32_t spelling = c.w[2] & 0xFF, position = c.w[2] >> 8;
  const char* text = kLiterals[spelling];
  if (byte != uint8_t(text[position])) return false;
  if (text[position + 1] != 0) {
    c.w[2] = spelling | (position + 1) << 8;
    return true;
  }
  const Type type = Type(spelling % 3);
  std::vector<uint32_t> truth = theory_.lists.copy(c.w[3]);
  for (uint32_t& f : truth) f = theory_.literal(f, type);
  return end_value(c, truth, (c.w[0] & kCapture) != 0, ValueId(type));
}

bool JsonMachine::step_number(Config& c, uint8_t byte) {
  NumberPool& numbers = theory_.numbers();
  const bool numeric = (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' ||
                       byte == '+' || byte == 'e' || byte == 'E';
  if (numeric) {
    NumberCursor cursor{c.w[4], c.w[5]};
    const bool capture = (c.w[0] & kCapture) != 0;
    if (numbers.step(c.w[2], theory_.lists.get(c.w[3]), capture, cursor, byte)) {
      c.w[4] = cursor.phase;
      c.w[5] = cursor.digits;
      return true;
    }
    if (!surface_) return false;
  } else if (!surface_ && !is_blank(byte) && byte != ',' && byte != ']' && byte != '}') {
    return false;
  }
  return end_number(c) && step(c, byte);
}

// A number ends where something else follows.
bool JsonMachine::end_number(Config& c) {
  NumberPool& numbers = theory_.numbers();
  const NumberCursor cursor{c.w[4], c.w[5]};
  const bool capture = (c.w[0] & kCapture) != 0;
  if (!numbers.accepts(c.w[2], cursor)) return false;
  std::vector<uint32_t> truth = theory_.lists.copy(c.w[3]);
  for (uint32_t& n : truth) n = numbers.holds_at_end(n, cursor);
  const ValueId value =
      capture ? theory_.value(ValueKind::kNumber, numbers.captured(cursor)) : 0;
  return end_value(c, truth, capture, value);
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
  const LexStep s = pool_.decode(cursor.decoder, byte, code_point);
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
  const TextId text = pool_.without_stop(c.w[5], c.w[4]);
  return end_value(c, truth, true, theory_.value(ValueKind::kString, text));
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
    if (surface_) after_value(c);
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
    if (surface_) after_value(c);
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
  if (surface_) after_value(c);
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
  if (surface_) n.key = surface_->item;
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
  if (surface_) v.cursor.context = LexCursor::kAnyText;
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
    case Mode::kStringOr: {
      LexicalView v = base_view(c.w[2], c.w[3], c.w[4]);
      v.exceptional = v.present;
      return v;
    }
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
      // A number that is the whole text ends wherever it likes; so does one before a text of a surface.
      LexicalView v;
      const NumberCursor at{c.w[4], c.w[5]};
      if (surface_ || c.w[1] == 0 || c.w[3] != 0 || (c.w[0] & kCapture) != 0) return v;
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
  if (mode(c) == Mode::kString || mode(c) == Mode::kStringOr) {
    const std::vector<uint32_t> truth = pool_.list_copy(outcome);
    const bool capture = (c.w[0] & kCapture) != 0;
    const uint32_t unit = c.w[4];
    bool ok = end_value(c, truth, capture, JsonTheory::kUnknownValue);
    if (surface_) ok = ok && after_string(c, unit);
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
  if (surface_) {
    ok = ok && after_key(c);
    if (surface_->key_again) c.w[0] |= kUnsure;
  }
  return ok;
}

size_t JsonMachine::bytes() const {
  return theory_.bytes() + nodes_.capacity() * sizeof(StackNode) + node_set_.bytes() +
         others_left_.bytes() + trial_nodes_.capacity() * sizeof(StackNode) +
         (configs_.capacity() + trial_configs_.capacity()) * sizeof(Config) + config_set_.bytes() +
         (reserves_.size() + table_reserves_.size() + items_reserves_.size() +
          stack_reserves_.size()) * 40;
}

}  // namespace constrain
