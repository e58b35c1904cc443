// Objects: derivatives by a member, satisfiability of what is left, keys that may come next.
#include <algorithm>

#include "constrain/json_theory.hpp"

namespace constrain {

// ------------------------------------------------------------------ derivatives

bool JsonTheory::matches(LexId keys, KeyClass key) {
  if (keys <= LexicalPool::kAnything) return keys == LexicalPool::kAnything;
  if (!key.is_class) return pool_.contains(keys, key.id);
  const LexId base = pool_.without_sets(keys);
  if (base <= LexicalPool::kAnything) return base == LexicalPool::kAnything;
  const auto flat = lists.get(key.id);
  for (size_t i = 0; i < flat.size(); i += 2)
    if (flat[i] == base) return flat[i + 1] != 0;
  return false;
}

Formula JsonTheory::after_key(Formula f, KeyClass key) {
  if (f <= kTrue) return f;
  const uint64_t memo_key = pack(f, key.id << 1 | uint32_t(key.is_class));
  const uint32_t known = key_memo_.find(memo_key);
  if (known != FlatMap::kMissing) return known;
  Memo memo;
  const std::function<Formula(Formula)> leaf = [&](Formula a) -> Formula {
    const FormulaNode n = (*this)[a];
    switch (n.op) {
      case Fop::kHas: return !key.is_class && n.a == key.id ? kTrue : a;
      case Fop::kAllP: {
        if (!matches(n.a, key)) return a;
        // An atom about this key alone is settled by it.
        StringSet set;
        const bool only =
            !key.is_class && pool_.as_set(n.a, set) && pool_.sets().size(set) == 1;
        return both(var(n.b), only ? kTrue : a);
      }
      case Fop::kMinP: return min_p(n.a - 1);
      case Fop::kMaxP: return n.a == 0 ? kFalse : atom(Fop::kMaxP, n.a - 1);
      case Fop::kTable: {
        ObjectTable& t = table(n.a);
        if (n.c >= t.most) return kFalse;
        const uint32_t count = count_after(t, n.c);
        if (!key.is_class) {
          const auto it = t.index.find(key.id);
          if (it != t.index.end())
            return both(var(t.goals[it->second]),
                        atom(Fop::kTable, n.a, bit_set(n.b, it->second), count));
        }
        std::vector<Formula> goal;
        for (const auto& [keys, g] : t.generics)
          if (matches(keys, key)) goal.push_back(g);
        // A table that has seen nothing it knows is still not a fresh one: a count that never
        // matters would make it equal to one, and merging would then be wrong for no reason.
        return both(var(all_of(goal)), atom(Fop::kTable, n.a, n.b, count));
      }
      case Fop::kUnevP: {
        std::vector<uint32_t> src = lists.copy(n.b);
        std::vector<Formula> here{var(n.a)};
        for (size_t i = 0; i < src.size(); i += 2) {
          src[i + 1] = rebuild(src[i + 1], leaf, memo);
          if (matches(src[i], key)) here.push_back(src[i + 1]);
        }
        return both(any_of(here), unevaluated_p(n.a, src));
      }
      default: return a;
    }
  };
  const Formula r = rebuild(f, leaf, memo);
  key_memo_.set(memo_key, r);
  return r;
}

bool JsonTheory::done(Formula f) {
  if (f <= kTrue) return f == kTrue;
  const uint32_t known = done_memo_.find(f);
  if (known != FlatMap::kMissing) return known;
  Memo memo;
  const auto leaf = [&](Formula a) -> Formula {
    const FormulaNode n = (*this)[a];
    switch (n.op) {
      case Fop::kHas:
      case Fop::kMinP:
      case Fop::kMinI:
      case Fop::kCMin: return kFalse;
      case Fop::kTable: {
        const ObjectTable& t = table(n.a);
        return n.c >= t.least && required_missing(t, n.b) == 0 ? kTrue : kFalse;
      }
      default: return kTrue;
    }
  };
  const bool r = rebuild(f, leaf, memo) == kTrue;
  done_memo_.set(f, r);
  return r;
}

Formula JsonTheory::expand_table(Formula f) {
  const uint32_t known = expanded_.find(f);
  if (known != FlatMap::kMissing) return known;
  const FormulaNode n = (*this)[f];
  const ObjectTable& t = table(n.a);
  std::vector<Formula> parts;
  const LexId names = pool_.strings(t.name_set);
  for (size_t i = 0; i < t.names.size(); ++i) {
    if (bit(n.b, uint32_t(i))) continue;
    if (t.required[i]) parts.push_back(atom(Fop::kHas, t.names[i]));
    const auto text = pool_.text_code_points(t.names[i]);
    parts.push_back(all_p(pool_.strings(pool_.sets().add(StringSets::kEmpty, text)), t.goals[i]));
  }
  for (const auto& [keys, g] : t.generics)
    parts.push_back(all_p(pool_.both(pool_.without_sets(keys), pool_.negate(names)), g));
  if (t.least > n.c) parts.push_back(min_p(t.least - n.c));
  if (t.most != UINT32_MAX) parts.push_back(atom(Fop::kMaxP, t.most - n.c));
  const Formula r = all_of(parts);
  expanded_.set(f, r);
  return r;
}

// ------------------------------------------------------------------ names and classes of keys

const JsonTheory::Names& JsonTheory::names(Formula f) {
  const auto it = names_memo_.find(f);
  if (it != names_memo_.end()) return it->second;
  Names r;
  StringSets& sets = pool_.sets();
  const auto matcher = [&](LexId keys) {
    if (pool_.has_sets(keys)) r.names = sets.unite(r.names, pool_.union_of_sets(keys));
    const LexId base = pool_.without_sets(keys);
    if (base > LexicalPool::kAnything) r.matchers.push_back(base);
  };
  for_each_atom(f, [&](Formula a) {
    const FormulaNode n = (*this)[a];
    if (n.op == Fop::kHas) {
      r.names = sets.add(r.names, pool_.text_code_points(n.a));
    } else if (n.op == Fop::kAllP) {
      matcher(n.a);
    } else if (n.op == Fop::kUnevP) {
      const std::vector<uint32_t> src = lists.copy(n.b);
      for (size_t i = 0; i < src.size(); i += 2) matcher(src[i]);
    } else if (n.op == Fop::kTable) {
      const ObjectTable& t = table(n.a);
      r.names = sets.unite(r.names, t.name_set);
      for (const auto& [keys, g] : t.generics) matcher(keys);
    }
  });
  std::sort(r.matchers.begin(), r.matchers.end());
  r.matchers.erase(std::unique(r.matchers.begin(), r.matchers.end()), r.matchers.end());
  return names_memo_[f] = std::move(r);
}

const JsonTheory::Names& JsonTheory::frame_names(Formula f, uint32_t tracked) {
  if (tracked == 0) return names(f);
  const uint64_t key = pack(f, tracked);
  const auto it = frame_names_memo_.find(key);
  if (it != frame_names_memo_.end()) return it->second;
  Names r = names(f);
  for (const Formula x : lists.copy(tracked)) {
    const Names& n = names(x);
    r.names = pool_.sets().unite(r.names, n.names);
    r.matchers.insert(r.matchers.end(), n.matchers.begin(), n.matchers.end());
  }
  std::sort(r.matchers.begin(), r.matchers.end());
  r.matchers.erase(std::unique(r.matchers.begin(), r.matchers.end()), r.matchers.end());
  return frame_names_memo_[key] = std::move(r);
}

const std::vector<std::pair<uint32_t, LexId>>& JsonTheory::classes(Formula f) {
  const auto it = class_memo_.find(f);
  if (it != class_memo_.end()) return it->second;
  return class_memo_[f] = classes(Names(names(f)));
}

std::vector<std::pair<uint32_t, LexId>> JsonTheory::classes(const Names& n) {
  std::vector<std::pair<std::vector<uint32_t>, LexId>> open;
  const LexId outside = pool_.negate(pool_.strings(n.names));
  open.push_back({{}, outside});
  uint64_t searched = pool_.search_work();
  for (const LexId m : n.matchers) {
    std::vector<std::pair<std::vector<uint32_t>, LexId>> next;
    for (auto& [signs, language] : open) {
      tick(1 + (pool_.search_work() - searched) / kDerivativesPerTick);
      searched = pool_.search_work();
      for (const uint32_t member : {0u, 1u}) {
        const LexId part = pool_.both(language, member ? m : pool_.negate(m));
        if (!pool_.live(part)) continue;
        auto longer = signs;
        longer.insert(longer.end(), {m, member});
        next.push_back({std::move(longer), part});
      }
    }
    open = std::move(next);
  }
  std::vector<std::pair<uint32_t, LexId>> r;
  for (const auto& [signs, language] : open) r.push_back({lists.intern(signs), language});
  return r;
}

bool JsonTheory::has_few_keys(Formula f, uint32_t tracked) {
  const uint64_t key = pack(f, tracked);
  if (const uint32_t known = few_keys_memo_.find(key); known != FlatMap::kMissing) return known;
  bool few = true;   // where there are too many classes to look at
  try {
    ticks_ = 0;
    const auto all = classes(Names(frame_names(f, tracked)));
    few = std::any_of(all.begin(), all.end(), [&](const auto& c) {
      return pool_.count(c.second, kFewKeys) < kFewKeys;
    });
  } catch (const Spent&) {
  }
  few_keys_memo_.set(key, few);
  return few;
}

LexId JsonTheory::minus(LexId language, StringSet seen) {
  if (seen == StringSets::kEmpty) return language;
  const LexId r = pool_.both(language, pool_.negate(pool_.strings(seen)));
  return pool_.live(r) ? r : LexicalPool::kNothing;
}

// After a member of a small finite class one representative is used up; large ones never run out.
StringSet JsonTheory::use_class(LexId language, StringSet seen) {
  if (pool_.count(language, kFewKeys) >= kFewKeys) return seen;
  std::vector<uint32_t> text;
  if (!pool_.witness(minus(language, seen), text)) return seen;
  return pool_.sets().add(seen, text);
}

// ------------------------------------------------------------------ satisfiability

// The common case: one conjunctive table.
bool JsonTheory::table_search(Formula f, StringSet seen) {
  const FormulaNode n = (*this)[f];
  const ObjectTable& t = table(n.a);
  const uint32_t missing = required_missing(t, n.b);
  if (n.c > t.most) return false;
  const uint64_t room = t.most == UINT32_MAX ? UINT64_MAX : t.most - n.c;
  const uint64_t need = std::max<uint64_t>(missing, t.least > n.c ? t.least - n.c : 0);
  if (need > room) return false;
  for (size_t i = 0; i < t.names.size(); ++i) {
    if (!t.required[i] || bit(n.b, uint32_t(i))) continue;
    const auto text = pool_.text_code_points(t.names[i]);
    if (pool_.sets().contains(seen, text)) return false;
    if (!satisfiable(t.goals[i])) return false;
  }
  uint64_t extra = need - missing;
  if (extra == 0) return true;
  for (size_t i = 0; i < t.names.size(); ++i) {
    if (t.required[i] || bit(n.b, uint32_t(i))) continue;
    if (pool_.sets().contains(seen, pool_.text_code_points(t.names[i]))) continue;
    if (satisfiable(t.goals[i]) && --extra == 0) return true;
  }
  for (const auto& [cls, language] : std::vector(classes(f))) {
    std::vector<Formula> goal;
    for (const auto& [keys, g] : t.generics)
      if (matches(keys, {true, cls})) goal.push_back(g);
    if (!satisfiable(all_of(goal))) continue;
    const size_t count = pool_.count(minus(language, seen), size_t(std::min<uint64_t>(extra, 2000)));
    if (count >= extra) return true;
    if (extra > 2000 && count >= 2000) return true;
    extra -= count;
  }
  return false;
}

bool JsonTheory::table_requires(Formula f, TextId key) {
  const FormulaNode n = (*this)[f];
  const ObjectTable& t = table(n.a);
  const auto it = t.index.find(key);
  return it != t.index.end() && t.required[it->second] && !bit(n.b, it->second);
}

Formula JsonTheory::asked_of(Formula literal, KeyClass key) {
  const FormulaNode n = (*this)[literal];
  if (n.op == Fop::kAllP) return matches(n.a, key) ? n.b : kTrue;
  if (n.op != Fop::kTable) return kTrue;
  const ObjectTable& t = table(n.a);
  if (!key.is_class) {
    const auto it = t.index.find(key.id);
    if (it != t.index.end()) return t.goals[it->second];
  }
  std::vector<Formula> parts;
  for (const auto& [keys, f] : t.generics)
    if (matches(keys, key)) parts.push_back(f);
  return all_of(parts);
}

bool JsonTheory::table_implies(Formula f, Formula rule) {
  const FormulaNode r = (*this)[rule];
  StringSet set;
  if (!pool_.as_set(r.a, set) || pool_.sets().size(set) != 1) return false;
  const TextId key = pool_.text(pool_.sets().members(set)[0]);
  std::vector<Formula> asked = conjuncts(asked_of(f, {false, key}));
  std::sort(asked.begin(), asked.end());
  return asked[0] == kFalse || implied(asked, r.b);
}

std::vector<TextId> JsonTheory::required_by(const Literals& literals) {
  std::vector<TextId> keys;
  for (const auto& [a, positive] : literals) {
    if (!positive) continue;
    const FormulaNode n = (*this)[a];
    if (n.op == Fop::kHas) keys.push_back(n.a);
    if (n.op != Fop::kTable) continue;
    const ObjectTable& t = table(n.a);
    if (t.count_required == 0) continue;
    for (size_t i = 0; i < t.names.size(); ++i)
      if (t.required[i] && !bit(n.b, uint32_t(i))) keys.push_back(t.names[i]);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

bool JsonTheory::object_search(Formula f, StringSet seen) {
  if (done(f)) return true;
  const FormulaNode n = (*this)[f];
  if (n.op == Fop::kTable) return table_search(f, seen);
  if (!easy_ways(f, seen, 1).empty()) return true;
  for (const Formula c : conjuncts(f))
    if (op(c) == Fop::kHas && pool_.sets().contains(seen, pool_.text_code_points((*this)[c].a)))
      return false;
  return cubes(
      {f}, {}, [&](const Literals& l) { return cube_possible(l, seen); },
      [&](const Literals& l) {
        const Formula g = conjunction(l);
        if (g == kFalse) return false;
        if (done(g)) return true;
        bool simple = true;
        for (const auto& [a, positive] : l) {
          const Fop o = op(a);
          const bool counts = o == Fop::kHas || o == Fop::kMinP || o == Fop::kMaxP;
          simple &= counts || (positive && (o == Fop::kAllP || o == Fop::kTable));
        }
        return simple ? simple_object(g, l, seen) : search_object(g, l, seen);
      });
}

// Bounds on the members that are still to come, and the keys that may not.
JsonTheory::Counts JsonTheory::counts(const Literals& literals, StringSet seen) {
  Counts r;
  r.forbidden = seen;
  for (const auto& [a, positive] : literals) {
    const FormulaNode n = (*this)[a];
    if (n.op == Fop::kHas && !positive) {
      r.forbidden = pool_.sets().add(r.forbidden, pool_.text_code_points(n.a));
    } else if (n.op == Fop::kMaxP) {
      if (positive) r.most = std::min<uint64_t>(r.most, n.a);
      else r.least = std::max<uint64_t>(r.least, uint64_t(n.a) + 1);
    } else if (n.op == Fop::kMinP) {
      if (positive) r.least = std::max<uint64_t>(r.least, n.a);
      else r.most = std::min<uint64_t>(r.most, n.a - 1);
    } else if (n.op == Fop::kTable) {
      const ObjectTable& t = table(n.a);
      if (t.least > n.c) r.least = std::max<uint64_t>(r.least, t.least - n.c);
      if (t.most != UINT32_MAX) r.most = std::min<uint64_t>(r.most, t.most - n.c);
    }
  }
  return r;
}

bool JsonTheory::cube_possible(const Literals& literals, StringSet seen) {
  const Counts n = counts(literals, seen);
  const std::vector<TextId> required = required_by(literals);
  if (required.size() > n.most || n.least > n.most) return false;
  if (n.forbidden != StringSets::kEmpty)
    for (const TextId key : required)
      if (pool_.sets().contains(n.forbidden, pool_.text_code_points(key))) return false;
  // Each "some member violates this" must be possible on its own.
  for (const auto& [a, positive] : literals)
    if (!positive && op(a) == Fop::kAllP && !violation_possible(a, literals, n.forbidden))
      return false;
  return true;
}

bool JsonTheory::violation_possible(Formula violated, const Literals& literals,
                                    StringSet forbidden) {
  std::vector<uint32_t> positive;
  for (const auto& [a, p] : literals)
    if (p && (op(a) == Fop::kAllP || op(a) == Fop::kTable)) positive.push_back(a);
  std::vector<uint32_t> tuple{2, violated, forbidden, uint32_t(limit_)};
  tuple.insert(tuple.end(), positive.begin(), positive.end());
  return violation_memo(tuples_.intern(tuple),
                        [&] { return violation_search(violated, positive, forbidden); });
}

bool JsonTheory::violation_search(Formula violated, const std::vector<Formula>& positive,
                                  StringSet forbidden) {
  const FormulaNode v = (*this)[violated];
  // Tables are kept apart here: a conjunction would merge them.
  Names together = names(violated);
  for (const Formula a : positive) {
    const Names& n = names(a);
    together.names = pool_.sets().unite(together.names, n.names);
    together.matchers.insert(together.matchers.end(), n.matchers.begin(), n.matchers.end());
  }
  std::sort(together.matchers.begin(), together.matchers.end());
  together.matchers.erase(std::unique(together.matchers.begin(), together.matchers.end()),
                          together.matchers.end());
  const auto goal = [&](KeyClass k) {
    std::vector<Formula> parts{negate(v.b)};
    for (const Formula a : positive) parts.push_back(asked_of(a, k));
    return all_of(parts);
  };
  const auto possible = [&](KeyClass k) {
    return matches(v.a, k) && satisfiable(goal(k));
  };
  for (const auto& text : pool_.sets().members(pool_.sets().subtract(together.names, forbidden)))
    if (possible({false, pool_.text(text)})) return true;
  for (const auto& [cls, language] : classes(together))
    if (minus(language, forbidden) != LexicalPool::kNothing && possible({true, cls})) return true;
  return false;
}

bool JsonTheory::simple_object(Formula g, const Literals& literals, StringSet seen) {
  const Counts bounds = counts(literals, seen);
  const std::vector<TextId> required = required_by(literals);
  if (required.size() > bounds.most || bounds.least > bounds.most) return false;
  const auto goal = [&](KeyClass k) {
    std::vector<Formula> parts;
    for (const auto& [a, positive] : literals)
      if (positive) parts.push_back(asked_of(a, k));
    return all_of(parts);
  };
  StringSet excluded = bounds.forbidden;
  for (const TextId key : required) {
    const auto text = pool_.text_code_points(key);
    if (pool_.sets().contains(bounds.forbidden, text)) return false;
    if (!satisfiable(goal({false, key}))) return false;
    excluded = pool_.sets().add(excluded, text);
  }
  uint64_t n = required.size();
  if (n >= bounds.least) return true;
  const StringSet all_names = names(g).names;
  for (const auto& text : pool_.sets().members(pool_.sets().subtract(all_names, excluded)))
    if (satisfiable(goal({false, pool_.text(text)})) && ++n >= bounds.least) return true;
  for (const auto& [cls, language] : std::vector(classes(g))) {
    if (!satisfiable(goal({true, cls}))) continue;
    const uint64_t want = std::min<uint64_t>(bounds.least - n, 2000);
    const size_t count = pool_.count(minus(language, seen), size_t(want));
    n += count;
    if (n >= bounds.least || count >= 2000) return true;
  }
  return false;
}

// The keys that can meet one unmet obligation of a cube: a required key, a rule to break, else any.
std::vector<std::pair<KeyClass, LexId>> JsonTheory::next_keys(Formula g, const Literals& literals,
                                                              StringSet seen) {
  std::vector<std::pair<KeyClass, LexId>> choices;
  const std::vector<TextId> required = required_by(literals);
  if (!required.empty()) {
    choices.push_back({{false, required[0]}, 0});
    return choices;
  }
  const StringSet excluded = counts(literals, seen).forbidden;
  const StringSet all_names = names(g).names;
  for (const auto& text : pool_.sets().members(pool_.sets().subtract(all_names, excluded)))
    choices.push_back({{false, pool_.text(text)}, 0});
  for (const auto& [cls, language] : std::vector(classes(g)))
    if (minus(language, excluded) != LexicalPool::kNothing)
      choices.push_back({{true, cls}, language});
  for (const auto& [a, positive] : literals) {
    if (positive || op(a) != Fop::kAllP) continue;
    std::erase_if(choices, [&](const auto& c) { return !matches((*this)[a].a, c.first); });
    break;
  }
  return choices;
}

bool JsonTheory::search_object(Formula g, const Literals& literals, StringSet seen) {
  for (const auto& [key, language] : next_keys(g, literals, seen)) {
    const Formula p = after_key(g, key);
    if (p == kFalse) continue;
    const StringSet now = key.is_class
                              ? use_class(language, seen)
                              : pool_.sets().add(seen, pool_.text_code_points(key.id));
    if (outcomes(p, {}, kTrue, [&](Formula q, Formula) { return object_open(q, now); }))
      return true;
  }
  return false;
}

// ------------------------------------------------------------------ children and keys

Child JsonTheory::member(Formula f, uint32_t tracked, KeyClass key, StringSet now) {
  const Formula p = after_key(f, key);
  std::vector<uint32_t> t = lists.copy(tracked);
  for (uint32_t& x : t) x = after_key(x, key);
  StringSet relevant = now;
  if (names(p).matchers.empty()) relevant = pool_.sets().intersect(now, names(p).names);
  return child(p, lists.intern(t), pack(1, relevant),
               [&](Formula q) { return object_open(q, now); });
}

LexId JsonTheory::keys(Formula f, StringSet seen) {
  if (f == kFalse) return LexicalPool::kNothing;
  const LexId not_seen = pool_.negate(pool_.strings(seen));
  if (f == kTrue) return not_seen;
  const Names n = names(f);
  const StringSet relevant = n.matchers.empty() ? pool_.sets().intersect(seen, n.names) : seen;
  const uint64_t memo_key = pack(f, relevant);
  auto it = keys_memo_.find(memo_key);
  if (it == keys_memo_.end()) {
    LexId r;
    try {
      ticks_ = 0;
      r = keys_uncached(f, n.names, relevant);
    } catch (const Spent&) {
      // Too many classes of keys: any unseen key, checked when its quote closes.
      in_progress_.clear();
      low_ = INT32_MAX;
      depth_ = 0;
      r = pool_.negate(pool_.strings(relevant));
    }
    it = keys_memo_.emplace(memo_key, r).first;
  }
  const LexId r = pool_.both(it->second, not_seen);
  return pool_.live(r) ? r : LexicalPool::kNothing;
}

// Whether some value of the member leaves an object that can be completed: the goal of that member
// is satisfiable, without computing the goal.
bool JsonTheory::key_possible(Formula parent, StringSet now) {
  if (parent == kFalse) return false;
  // Most keys that are possible are so without a search, if not under the first assignment.
  size_t tried = 0;
  bool easy = false;
  outcomes(parent, {}, kTrue, [&](Formula q, Formula) {
    easy = done(q) || !easy_ways(q, now, 1).empty();
    return easy || ++tried > 32;
  });
  if (easy) return true;
  return outcomes(parent, {}, kTrue, [&](Formula q, Formula) { return object_open(q, now); });
}

LexId JsonTheory::keys_uncached(Formula f, StringSet all_names, StringSet seen) {
  std::vector<std::vector<uint32_t>> named;
  const std::vector<Way> ways = easy_ways(f, seen);
  for (auto& text : pool_.sets().members(pool_.sets().subtract(all_names, seen))) {
    const StringSet now = pool_.sets().add(seen, text);
    const KeyClass key{false, pool_.text(text)};
    const bool easy = std::any_of(ways.begin(), ways.end(), [&](const Way& w) {
      return fits(w, key) && !pool_.sets().contains(w.avoid, text);
    });
    if (easy || key_possible(after_key(f, {false, pool_.text(text)}), now))
      named.push_back(std::move(text));
  }
  std::vector<LexId> parts{pool_.strings(pool_.sets().from(std::move(named)))};
  LexId all_others = pool_.negate(pool_.strings(all_names));
  bool every = true;
  std::vector<LexId> others;
  for (const auto& [cls, language] : std::vector(classes(f))) {
    const bool easy = std::any_of(ways.begin(), ways.end(),
                                  [&](const Way& w) { return fits(w, {true, cls}); });
    if (minus(language, seen) != LexicalPool::kNothing &&
        (easy || key_possible(after_key(f, {true, cls}), use_class(language, seen))))
      others.push_back(language);
    else every = false;
  }
  if (every && !others.empty()) parts.push_back(all_others);
  else parts.push_back(pool_.any_of(others));
  return pool_.any_of(parts);
}

}  // namespace constrain
