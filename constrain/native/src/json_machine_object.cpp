// Objects of the JSON machine: keys, members, ends.
#include <algorithm>

#include "constrain/json_machine.hpp"

namespace constrain {

bool JsonMachine::begin_object(Config& c, Formula goal, uint32_t variables, bool capture) {
  if (!theory_.object_open(goal, StringSets::kEmpty)) return false;
  const FormulaNode g = theory_[goal];
  if (variables == 0 && !capture && (goal == Formulas::kTrue || g.op == Fop::kTable)) {
    const uint32_t table = goal == Formulas::kTrue ? any_object_ : g.a;
    theory_.prepare(theory_.table(table));
    c.w[1] = push({c.w[1], Kind::kFastObject, table, 0, StringSets::kEmpty, 0, 0});
  } else {
    std::vector<uint32_t> tracked = theory_.lists.copy(variables);
    for (uint32_t& f : tracked) f = theory_.typed(f, Type::kObject);
    c.w[1] = push({c.w[1], Kind::kObject, goal, theory_.lists.intern(tracked), StringSets::kEmpty,
                   capture ? 1u : 0u, 0});
  }
  set_mode(c, Mode::kKeyOrEnd);
  return true;
}

bool JsonMachine::close_object(Config& c) {
  const StackNode n = node(c.w[1]);
  if (n.kind == Kind::kFastObject) {
    const ObjectTable& t = theory_.table(n.a);
    if (n.d < t.least || theory_.required_missing(t, n.b) != 0) return false;
    c.w[1] = n.parent;
    return end_value(c, {}, false, 0);
  }
  if (!theory_.object_done(n.a)) return false;
  std::vector<uint32_t> truth = theory_.lists.copy(n.b);
  for (uint32_t& f : truth) f = theory_.object_done(f);
  c.w[1] = n.parent;
  const ValueId value = n.d == 0 ? 0 : theory_.value(ValueKind::kObject, n.d - 1);
  return end_value(c, truth, n.d != 0, value);
}

// ------------------------------------------------------------------ which names may come

JsonMachine::Rules JsonMachine::rules(const ObjectTable& t, const StackNode& n) const {
  Rules r;
  r.only_required =
      t.most != UINT32_MAX && uint64_t(n.d) + theory_.required_missing(t, n.b) >= t.most;
  if (!declared_order_) return r;
  // A required name must not be skipped, and enough names must be left for the least count.
  r.first = n.e;
  for (size_t i = 0; i < t.names.size(); ++i) {
    if (!t.required[i] || theory_.bit(n.b, uint32_t(i))) continue;
    r.last = std::min(r.last, t.rank[i]);
    r.others = false;
  }
  const size_t supply = t.others == LexicalPool::kNothing ? 0 : t.others_count;
  if (t.least > n.d + 1 && supply < kFewKeys) {
    std::vector<uint32_t> left;
    for (size_t i = 0; i < t.names.size(); ++i)
      if (t.allowed[i] && t.rank[i] >= n.e) left.push_back(t.rank[i]);
    std::sort(left.begin(), left.end());
    const uint32_t after = t.least - n.d - 1;  // members needed behind the next one
    const size_t names = after > supply ? after - supply : 0;
    if (names > 0)
      r.last = std::min(r.last, left.size() > names ? left[left.size() - names - 1] : 0);
  }
  return r;
}

bool JsonMachine::name_open(const ObjectTable& t, const StackNode& n, uint32_t i,
                            const Rules& r) const {
  return t.allowed[i] && (!r.only_required || t.required[i]) && t.rank[i] >= r.first &&
         t.rank[i] <= r.last && !theory_.bit(n.b, i);
}

bool JsonMachine::range_open(const ObjectTable& t, const StackNode& n, uint32_t low, uint32_t high,
                             const Rules& r) const {
  for (uint32_t i = low; i < high; ++i)
    if (name_open(t, n, i, r)) return true;
  return false;
}

LexId JsonMachine::fast_others(ObjectTable& t, const StackNode& n, const Rules& r) {
  if (t.others == LexicalPool::kNothing || t.others_count == 0 || r.only_required || !r.others)
    return LexicalPool::kNothing;
  if (t.others_count >= kFewKeys) return t.others;
  // Few other keys: those seen are taken out of the language itself.
  const StringSet used = pool_.sets().unite(t.name_set, n.c);
  const LexId left = pool_.both(t.others, pool_.negate(pool_.strings(used)));
  return pool_.live(left) ? left : LexicalPool::kNothing;
}

LexId JsonMachine::general_keys(const StackNode& n) {
  const LexId keys = theory_.keys(n.a, n.c);
  if (!declared_order_ || keys == LexicalPool::kNothing) return keys;
  // The earliest rank class that is open wins: names before other keys, and of the names those
  // behind the last one seen, if any is left.
  std::vector<std::pair<uint32_t, TextId>> ranked;
  theory_.for_each_atom(n.a, [&](Formula a) {
    const FormulaNode f = theory_[a];
    if (f.op != Fop::kTable) return;
    const ObjectTable& t = theory_.table(f.a);
    for (size_t i = 0; i < t.names.size(); ++i) ranked.push_back({t.rank[i], t.names[i]});
  });
  uint32_t next = 0;
  for (const auto& [rank, name] : ranked)
    if (pool_.sets().contains(n.c, pool_.text_code_points(name))) next = std::max(next, rank + 1);
  std::vector<std::vector<uint32_t>> later;
  for (const auto& [rank, name] : ranked)
    if (rank >= next) later.push_back(pool_.text_code_points(name));
  const LexId ordered = pool_.both(keys, pool_.strings(pool_.sets().from(std::move(later))));
  return pool_.live(ordered) ? ordered : keys;
}

bool JsonMachine::more_keys(const StackNode& n) {
  if (n.kind != Kind::kFastObject)
    return pool_.live(theory_.keys(n.a, n.c));
  ObjectTable& t = theory_.table(n.a);
  const Rules r = rules(t, n);
  return range_open(t, n, 0, uint32_t(t.names.size()), r) ||
         fast_others(t, n, r) != LexicalPool::kNothing;
}

// ------------------------------------------------------------------ keys

bool JsonMachine::begin_key(Config& c, uint32_t unit) {
  const StackNode n = node(c.w[1]);
  if (n.kind == Kind::kFastObject) {
    ObjectTable& t = theory_.table(n.a);
    const Rules r = rules(t, n);
    const bool names = range_open(t, n, 0, uint32_t(t.names.size()), r);
    const LexId others = fast_others(t, n, r);
    if (!names && others == LexicalPool::kNothing) return false;
    set_mode(c, Mode::kFastKey);
    c.w[2] = t.names.empty() ? kNoName : 0;
    c.w[3] = others;
    c.w[4] = others == LexicalPool::kNothing ? 0 : t.tracked;
    c.w[5] = unit;
    c.w[7] = others == LexicalPool::kNothing ? StringSets::kEmpty : n.c;
    c.w[8] = others == LexicalPool::kNothing ? StringSets::kEmpty : t.name_set;
    return true;
  }
  const LexId keys = general_keys(n);
  if (!pool_.live(keys)) return false;
  const auto& names = theory_.frame_names(n.a, n.b);
  set_mode(c, Mode::kGeneralKey);
  c.w[2] = keys;
  c.w[3] = names.matchers.empty() ? 0 : pool_.list(names.matchers);
  c.w[5] = unit;
  c.w[7] = pool_.sets().unite(names.names, n.c);
  return true;
}

bool JsonMachine::name_admitted(const ObjectTable& t, const StackNode& n, uint32_t trie_node,
                                uint32_t decoder, const Rules& r) const {
  const auto& at = t.trie[trie_node];
  for (uint32_t k = at.first_child; k < at.first_child + at.children; ++k)
    if (LexicalPool::can_become(decoder, t.trie[k].code_point) &&
        range_open(t, n, t.trie[k].low, t.trie[k].high, r))
      return true;
  return false;
}

bool JsonMachine::name_begins(const ObjectTable& t, uint32_t trie_node, uint32_t decoder) const {
  const auto& at = t.trie[trie_node];
  for (uint32_t k = at.first_child; k < at.first_child + at.children; ++k)
    if (LexicalPool::can_become(decoder, t.trie[k].code_point)) return true;
  return false;
}

// Where other keys are bounded (in length, say), those seen and the names may use them up.
LexId JsonMachine::others_left(const Config& c) {
  if (c.w[3] <= LexicalPool::kAnything || (c.w[7] == 0 && c.w[8] == 0)) return c.w[3];
  const uint32_t tuple[3] = {c.w[3], c.w[7], c.w[8]};
  const uint64_t key = theory_.lists.intern(tuple);
  const uint32_t known = others_left_.find(key);
  if (known != FlatMap::kMissing) return known;
  const StringSet used = pool_.sets().unite(c.w[7], c.w[8]);
  LexId left = pool_.both(c.w[3], pool_.negate(pool_.strings(used)));
  if (!pool_.live(left)) left = LexicalPool::kNothing;
  others_left_.set(key, left);
  return left;
}

bool JsonMachine::step_fast_key(Config& c, uint8_t byte) {
  StackNode n = node(c.w[1]);
  ObjectTable& t = theory_.table(n.a);
  const Rules r = rules(t, n);
  uint32_t code_point;
  const LexStep s = pool_.decode(c.w[5], byte, code_point);
  if (s == LexStep::kDead) return false;
  if (s == LexStep::kInside) {
    if (code_point == LexicalPool::kNone) {
      // Most characters begin no name: from here on the key is like any other one.
      if (c.w[2] != kNoName && !name_begins(t, c.w[2], c.w[5])) c.w[2] = kNoName, c.w[8] = 0;
      if (c.w[7] != StringSets::kEmpty && !pool_.can_begin(c.w[7], c.w[5])) c.w[7] = 0;
      const LexId others = others_left(c);
      return (others != LexicalPool::kNothing && pool_.admits(others, c.w[5])) ||
             (c.w[2] != kNoName && name_admitted(t, n, c.w[2], c.w[5], r));
    }
    bool named = false;
    if (c.w[2] != kNoName) {
      const auto& at = t.trie[c.w[2]];
      uint32_t next = kNoName;
      for (uint32_t k = at.first_child; k < at.first_child + at.children; ++k) {
        if (t.trie[k].code_point < code_point) continue;
        if (t.trie[k].code_point == code_point) next = k;
        break;
      }
      c.w[2] = next;
      named = next != kNoName && range_open(t, n, t.trie[next].low, t.trie[next].high, r);
    }
    if (c.w[3] != LexicalPool::kNothing) {
      c.w[3] = pool_.advance(c.w[3], code_point);
      c.w[4] = pool_.advance_list(c.w[4], code_point);
      // Where a mask is made, most keys are never finished.
      c.w[6] = trial_ ? pool_.try_text(c.w[6], code_point)
                      : pool_.text_append(c.w[6], code_point);
      c.w[7] = pool_.sets().child(c.w[7], code_point);
      c.w[8] = pool_.sets().child(c.w[8], code_point);
      if (others_left(c) == LexicalPool::kNothing)
        c.w[3] = LexicalPool::kNothing, c.w[4] = c.w[6] = c.w[7] = c.w[8] = 0;
    }
    return named || c.w[3] != LexicalPool::kNothing;
  }
  // The closing quote.
  if (c.w[2] != kNoName && t.trie[c.w[2]].name != kNoName) {
    const uint32_t i = t.trie[c.w[2]].name;
    if (!name_open(t, n, i, r)) return false;
    if (declared_order_) n.e = t.rank[i] + 1;
    n.b = theory_.bit_set(n.b, i);
    n.d = theory_.count_after(t, n.d);
    if (surface_ && surface_->key_again) n.key = t.names[i];
    c.w[1] = push(n);
    set_mode(c, Mode::kColon);
    c.w[2] = t.goals[i];
    return true;
  }
  if (c.w[3] == LexicalPool::kNothing || !pool_.accepts(c.w[3])) return false;
  if (pool_.sets().has_empty(c.w[7])) return false;
  return close_fast_other(c, pool_.outcome(c.w[4]), c.w[6], true);
}

bool JsonMachine::close_fast_other(Config& c, uint32_t outcome, TextId text, bool text_known) {
  StackNode n = node(c.w[1]);
  ObjectTable& t = theory_.table(n.a);
  const Formula goal = theory_.others_goal(t, outcome);
  if (!theory_.satisfiable(goal)) return false;
  if (c.w[0] & kTextUnknown) c.w[0] |= kUnsure;
  if (text_known) n.c = pool_.sets().add(n.c, pool_.text_code_points(text));
  n.d = theory_.count_after(t, n.d);
  if (declared_order_) n.e = UINT32_MAX;  // other keys come last
  if (surface_ && surface_->key_again) n.key = text;
  c.w[1] = push(n);
  set_mode(c, Mode::kColon);
  c.w[2] = goal;
  return true;
}

bool JsonMachine::step_general_key(Config& c, uint8_t byte) {
  uint32_t code_point;
  const LexStep s = pool_.decode(c.w[5], byte, code_point);
  if (s == LexStep::kDead) return false;
  if (s == LexStep::kInside) {
    if (code_point == LexicalPool::kNone) {
      if (!pool_.admits(c.w[2], c.w[5])) return false;
      c.w[2] = pool_.drop_sets(c.w[2], c.w[5]);
      if (c.w[7] != StringSets::kEmpty && !pool_.can_begin(c.w[7], c.w[5])) c.w[7] = 0;
      return true;
    }
    c.w[2] = pool_.advance(c.w[2], code_point);
    c.w[3] = pool_.advance_list(c.w[3], code_point);
    c.w[6] = pool_.text_append(c.w[6], code_point);
    c.w[7] = pool_.sets().child(c.w[7], code_point);
    return c.w[2] != LexicalPool::kNothing;
  }
  if (!pool_.accepts(c.w[2])) return false;
  const StackNode n = node(c.w[1]);
  const auto& names = theory_.frame_names(n.a, n.b);
  const TextId text = c.w[6];
  if (pool_.sets().contains(names.names, pool_.text_code_points(text)))
    return close_general(c, {false, text}, text, true);
  // Any other key behaves as its class does.
  const std::vector<uint32_t> bits = pool_.list_copy(pool_.outcome(c.w[3]));
  std::vector<uint32_t> cls;
  for (size_t i = 0; i < names.matchers.size(); ++i)
    cls.insert(cls.end(), {names.matchers[i], bits[i]});
  return close_general(c, {true, theory_.lists.intern(cls)}, text, true);
}

bool JsonMachine::close_general(Config& c, KeyClass key, TextId text, bool text_known) {
  StackNode n = node(c.w[1]);
  // An unknown key before this one was no name.
  if ((c.w[0] & kTextUnknown) && (key.is_class || theory_.has_few_keys(n.a, n.b)))
    c.w[0] |= kUnsure;
  if (text_known) n.c = pool_.sets().add(n.c, pool_.text_code_points(text));
  const Child child = theory_.member(n.a, n.b, key, n.c);
  if (!theory_.satisfiable(child.goal)) return false;
  n.kind = Kind::kObjectMember;
  n.a = child.parent;
  n.b = child.tracked;
  n.e = child.variables;
  const bool capture = n.d != 0;
  if (capture) {
    const uint32_t pair[2] = {child.variables, text};
    n.e = theory_.lists.intern(pair);
  }
  if (surface_ && surface_->key_again) n.key = text;
  c.w[1] = push(n);
  set_mode(c, Mode::kColon, capture ? kCapture : 0);
  c.w[2] = child.goal;
  c.w[3] = child.variables;
  return true;
}

}  // namespace constrain
