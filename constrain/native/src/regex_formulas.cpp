// Formulas over atoms: constructors that simplify, emptiness and derivatives.
#include <algorithm>
#include <iterator>
#include <utility>

#include "constrain/errors.hpp"
#include "regex_terms.hpp"

namespace constrain::regex {

namespace {

// Deeper formulas are rewritten in disjunctive normal form.  Without that, a lookahead inside a
// loop could nest formulas one level deeper with every code point.
constexpr uint8_t kMaxDepth = 8;
constexpr size_t kMaxDisjuncts = 4096;

bool contains(std::span<const Id> sorted, Id id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

void sort_unique(std::vector<Id>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

void erase(std::vector<Id>& ids, Id id) {
  ids.erase(std::remove(ids.begin(), ids.end(), id), ids.end());
}

}  // namespace

Id Terms::find_atom(Id chain) const {
  const uint32_t words[2] = {static_cast<uint32_t>(FormulaKind::kAtom), chain};
  return formula_index_.find(static_cast<uint32_t>(hash_words(words, 2)), [&](Id id) {
    return formulas_[id].kind == FormulaKind::kAtom && formulas_[id].a == chain;
  });
}

Id Terms::atom(Id chain) {
  if (chain == kAll) return kTrue;
  if (chain == kDead) return kFalse;
  return intern_formula(FormulaKind::kAtom, chain, {});
}

Id Terms::intern_formula(FormulaKind kind, uint32_t a, std::span<const Id> list) {
  const bool has_members = kind == FormulaKind::kOr || kind == FormulaKind::kAnd;
  uint32_t hash;
  if (has_members) {
    hash = static_cast<uint32_t>(hash_words(list.data(), list.size(), static_cast<uint64_t>(kind)));
  } else {
    const uint32_t words[2] = {static_cast<uint32_t>(kind), a};
    hash = static_cast<uint32_t>(hash_words(words, 2));
  }
  const Id known = formula_index_.find(hash, [&](Id id) {
    const Formula& f = formulas_[id];
    if (f.kind != kind) return false;
    if (!has_members) return f.a == a;
    const std::span<const Id> other = members(f);
    return std::equal(other.begin(), other.end(), list.begin(), list.end());
  });
  if (known != kInfinity) return known;
  charge();
  Formula f;
  f.kind = kind;
  if (kind == FormulaKind::kAtom) {
    const Chain& cell = chains_[a];
    f.a = a;
    f.plain = !cell.contextual;
    f.live = f.plain;
    f.min_length = cell.min_length;
    f.mask = cell.mask;
  } else if (kind == FormulaKind::kNot) {
    f.a = a;
    f.depth = static_cast<uint8_t>(formulas_[a].depth + 1);
    f.mask = formulas_[a].mask;
  } else {
    f.a = static_cast<uint32_t>(members_.size());
    f.b = static_cast<uint32_t>(list.size());
    f.plain = kind == FormulaKind::kOr;
    f.min_length = kind == FormulaKind::kOr ? kInfinity : 0;
    for (Id id : list) {
      const Formula& m = formulas_[id];
      f.plain = f.plain && m.plain;
      f.live = f.live || (kind == FormulaKind::kOr && m.live);
      f.depth = std::max<uint8_t>(f.depth, static_cast<uint8_t>(m.depth + 1));
      f.mask |= m.mask;
      f.min_length = kind == FormulaKind::kOr ? std::min(f.min_length, m.min_length)
                                              : std::max(f.min_length, m.min_length);
    }
    members_.insert(members_.end(), list.begin(), list.end());
  }
  const Id id = static_cast<Id>(formulas_.size());
  formulas_.push_back(f);
  formula_index_.insert(hash, id);
  return f.depth > kMaxDepth ? flatten(id) : id;
}

Id Terms::make_not(Id id) {
  if (id == kFalse) return kTrue;
  if (id == kTrue) return kFalse;
  if (formulas_[id].kind == FormulaKind::kNot) return formulas_[id].a;
  return intern_formula(FormulaKind::kNot, id, {});
}

Id Terms::conjoin(Id a, Id b) {
  if (a == kFalse || b == kFalse) return kFalse;
  if (a == kTrue || a == b) return b;
  if (b == kTrue) return a;
  return make_and({a, b});
}

// Atoms x{a,b} k and x{c,d} k are one atom if the bounds leave no gap.  True if anything changed.
bool Terms::unite_repeats(std::vector<Id>& list) {
  struct Entry {
    Id part, tail;
    uint32_t low, high;
    Id atom;
  };
  std::vector<Entry> entries;
  for (Id id : list) {
    if (formulas_[id].kind != FormulaKind::kAtom || formulas_[id].a <= kDead) continue;
    const Chain& cell = chains_[formulas_[id].a];
    const Part& p = parts_[cell.part];
    if (p.kind == PartKind::kRepeat) entries.push_back({p.a, cell.tail, p.b, p.c, id});
  }
  if (entries.empty() || list.size() == 1) return false;
  const size_t repeats = entries.size();
  for (size_t i = 0; i < repeats; ++i) {
    // The part once, without a counter, and the tail alone are its repeats {1,1} and {0,0}.
    const Entry e = entries[i];
    const Id once = find_chain(e.part, e.tail);
    const Id once_atom = once == kInfinity ? kInfinity : find_atom(once);
    if (once_atom != kInfinity && contains(list, once_atom)) {
      entries.push_back({e.part, e.tail, 1, 1, once_atom});
    }
    const Id tail_atom = find_atom(e.tail);
    if (e.low <= 1 && tail_atom != kInfinity && contains(list, tail_atom)) {
      entries.push_back({e.part, e.tail, 0, 0, tail_atom});
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
    if (x.part != y.part) return x.part < y.part;
    if (x.tail != y.tail) return x.tail < y.tail;
    return x.low < y.low;
  });
  for (size_t i = 0; i < entries.size();) {
    Entry run = entries[i];
    size_t j = i + 1;
    for (; j < entries.size(); ++j) {
      const Entry& e = entries[j];
      if (e.part != run.part || e.tail != run.tail) break;
      if (run.high != kInfinity && e.low > run.high + 1) break;
      run.high = std::max(run.high, e.high);
    }
    const bool several = std::any_of(entries.begin() + static_cast<ptrdiff_t>(i),
                                     entries.begin() + static_cast<ptrdiff_t>(j),
                                     [&](const Entry& e) { return e.atom != run.atom; });
    if (several) {
      // One union at a time: it may be what another run begins with.
      for (size_t n = i; n < j; ++n) erase(list, entries[n].atom);
      list.push_back(atom(prepend(repeat(run.part, run.low, run.high), run.tail)));
      return true;
    }
    i = j;
  }
  return false;
}

// Same skeleton: each repeat of `narrow` lies within the bounds of its counterpart in `wide`.
bool Terms::covers(Id wide, Id narrow) const {
  const auto bounds = [&](Id id) {
    const Part& p = parts_[chains_[id].part];
    return p.kind == PartKind::kRepeat ? std::pair{p.b, p.c} : std::pair{1u, 1u};
  };
  for (; wide != narrow; wide = chains_[wide].tail, narrow = chains_[narrow].tail) {
    const auto [low, high] = bounds(wide);
    const auto [inner_low, inner_high] = bounds(narrow);
    if (inner_low < low || inner_high > high) return false;
  }
  return true;
}

// Drops atoms that others of a union contain: what is left of an atom without parts that may be
// empty, and atoms that only differ in narrower bounds.  Keeps the order.
void Terms::drop_covered(std::vector<Id>& list) {
  const auto chain_of = [&](Id id) {
    return formulas_[id].kind == FormulaKind::kAtom ? formulas_[id].a : kDead;
  };
  stamps_.resize(chains_.size(), 0);
  ++stamp_;
  bool walked = false;
  for (Id id : list) {
    for (Id rest = chain_of(id); rest > kDead;) {
      if (parts_[chains_[rest].part].nullable != Nullable::kAlways) break;
      rest = chains_[rest].tail;
      if (stamps_[rest] == stamp_) break;
      stamps_[rest] = stamp_;
      walked = true;
    }
  }
  std::vector<std::pair<Id, Id>> groups;  // skeleton, member
  for (Id id : list) {
    const Id chain = chain_of(id);
    if (chain > kDead) groups.emplace_back(chains_[chain].skeleton, id);
  }
  std::sort(groups.begin(), groups.end());
  std::vector<Id> dropped;
  for (size_t i = 0; i < groups.size();) {
    size_t j = i + 1;
    while (j < groups.size() && groups[j].first == groups[i].first) ++j;
    if (j - i > 1) work((j - i) * (j - i));
    for (size_t n = i; n < j && j - i > 1; ++n) {
      for (size_t m = i; m < j; ++m) {
        if (m == n || !covers(chain_of(groups[m].second), chain_of(groups[n].second))) continue;
        dropped.push_back(groups[n].second);
        break;
      }
    }
    i = j;
  }
  std::sort(dropped.begin(), dropped.end());
  if (!walked && dropped.empty()) return;
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](Id id) {
                              return (formulas_[id].kind == FormulaKind::kAtom &&
                                      stamps_[formulas_[id].a] == stamp_) ||
                                     contains(dropped, id);
                            }),
             list.end());
}

Id Terms::make_or(std::vector<Id> list) {
  while (true) {
    std::vector<Id> flat;
    flat.reserve(list.size());
    for (Id id : list) {
      if (id == kTrue) return kTrue;
      if (id == kFalse) continue;
      const Formula& f = formulas_[id];
      if (f.kind == FormulaKind::kOr) {
        const std::span<const Id> inner = members(f);
        flat.insert(flat.end(), inner.begin(), inner.end());
      } else {
        flat.push_back(id);
      }
    }
    work(flat.size());
    sort_unique(flat);
    list = std::move(flat);
    if (list.size() <= 1) break;
    drop_covered(list);
    if (list.size() <= 1) break;
    if (unite_repeats(list)) continue;
    // not a or not b = not (a and b)
    std::vector<Id> negated;
    bool conjunctions = false;
    for (Id id : list) {
      if (formulas_[id].kind == FormulaKind::kNot) negated.push_back(id);
      if (formulas_[id].kind == FormulaKind::kAnd) conjunctions = true;
    }
    if (negated.size() > 1) {
      std::vector<Id> inner;
      for (Id id : negated) {
        erase(list, id);
        inner.push_back(formulas_[id].a);
      }
      list.push_back(make_not(make_and(std::move(inner))));
      continue;
    }
    if (negated.size() == 1) {
      const Id inner = formulas_[negated[0]].a;
      if (contains(list, inner)) return kTrue;
      if (formulas_[inner].kind == FormulaKind::kAnd) {
        for (Id id : members(formulas_[inner])) {
          if (contains(list, id)) return kTrue;
        }
      }
    }
    if (conjunctions) {
      // a or (a and b) = a
      std::vector<Id> kept;
      for (Id id : list) {
        bool absorbed = false;
        if (formulas_[id].kind == FormulaKind::kAnd) {
          for (Id m : members(formulas_[id])) absorbed = absorbed || contains(list, m);
        }
        if (!absorbed) kept.push_back(id);
      }
      list = std::move(kept);
    }
    break;
  }
  if (list.empty()) return kFalse;
  if (list.size() == 1) return list[0];
  return intern_formula(FormulaKind::kOr, 0, list);
}

Id Terms::make_and(std::vector<Id> list) {
  while (true) {
    std::vector<Id> flat;
    flat.reserve(list.size());
    for (Id id : list) {
      if (id == kFalse) return kFalse;
      if (id == kTrue) continue;
      const Formula& f = formulas_[id];
      if (f.kind == FormulaKind::kAnd) {
        const std::span<const Id> inner = members(f);
        flat.insert(flat.end(), inner.begin(), inner.end());
      } else {
        flat.push_back(id);
      }
    }
    sort_unique(flat);
    list = std::move(flat);
    if (list.size() <= 1) break;
    // not a and not b = not (a or b)
    std::vector<Id> negated;
    bool unions = false;
    for (Id id : list) {
      if (formulas_[id].kind == FormulaKind::kNot) negated.push_back(id);
      if (formulas_[id].kind == FormulaKind::kOr) unions = true;
    }
    if (negated.size() > 1) {
      std::vector<Id> inner;
      for (Id id : negated) {
        erase(list, id);
        inner.push_back(formulas_[id].a);
      }
      list.push_back(make_not(make_or(std::move(inner))));
      continue;
    }
    if (negated.size() == 1) {
      const Id inner = formulas_[negated[0]].a;
      if (contains(list, inner)) return kFalse;
      if (formulas_[inner].kind == FormulaKind::kOr) {
        for (Id id : members(formulas_[inner])) {
          if (contains(list, id)) return kFalse;
        }
      }
    }
    if (unions) {
      // a and (a or b) = a;  a and ((a and b) or c) = a and (b or c)
      bool changed = false;
      std::vector<Id> next;
      for (Id id : list) {
        if (formulas_[id].kind != FormulaKind::kOr) {
          next.push_back(id);
          continue;
        }
        const std::span<const Id> view = members(formulas_[id]);
        const std::vector<Id> alternatives(view.begin(), view.end());
        std::vector<Id> rebuilt;
        bool absorbed = false;
        bool stripped = false;
        for (Id m : alternatives) {
          if (contains(list, m)) absorbed = true;
          if (absorbed) break;
          if (formulas_[m].kind != FormulaKind::kAnd) {
            rebuilt.push_back(m);
            continue;
          }
          std::vector<Id> rest;
          for (Id c : members(formulas_[m])) {
            if (!contains(list, c)) rest.push_back(c);
          }
          if (rest.size() == formulas_[m].b) {
            rebuilt.push_back(m);
          } else {
            stripped = true;
            rebuilt.push_back(make_and(std::move(rest)));
          }
        }
        if (absorbed) {
          changed = true;
        } else if (stripped) {
          changed = true;
          next.push_back(make_or(std::move(rebuilt)));
        } else {
          next.push_back(id);
        }
      }
      if (changed) {
        list = std::move(next);
        continue;
      }
    }
    // Together with the empty text, everything is decided that does not look around.
    const Id nil = find_atom(kNil);
    if (nil != kInfinity && contains(list, nil)) {
      std::vector<Id> kept;
      for (Id id : list) {
        const Formula& f = formulas_[id];
        if (id == nil) {
          kept.push_back(id);
        } else if (f.min_length > 0) {
          return kFalse;
        } else if (f.kind == FormulaKind::kNot && formulas_[f.a].min_length > 0) {
          continue;
        } else if (f.plain) {
          if (!null(id, 0)) return kFalse;
        } else if (f.kind == FormulaKind::kNot && formulas_[f.a].plain) {
          if (null(f.a, 0)) return kFalse;
        } else {
          kept.push_back(id);
        }
      }
      list = std::move(kept);
    }
    break;
  }
  if (list.empty()) return kTrue;
  if (list.size() == 1) return list[0];
  return intern_formula(FormulaKind::kAnd, 0, list);
}

std::vector<Terms::Lits> Terms::disjuncts(Id id, bool positive) {
  const Formula f = formulas_[id];
  switch (f.kind) {
    case FormulaKind::kFalse:
    case FormulaKind::kTrue:
      if ((f.kind == FormulaKind::kTrue) == positive) return {Lits{}};
      return {};
    case FormulaKind::kAtom:
      return {{id * 2 + (positive ? 0u : 1u)}};
    case FormulaKind::kNot:
      return disjuncts(f.a, !positive);
    default:
      break;
  }
  const std::span<const Id> view = members(f);
  const std::vector<Id> list(view.begin(), view.end());
  std::vector<Lits> result;
  const auto check = [&] {
    if (result.size() > kMaxDisjuncts) {
      throw LimitError("lookahead inside a loop combines too many conditions", "max_states");
    }
  };
  if ((f.kind == FormulaKind::kOr) == positive) {
    for (Id m : list) {
      for (Lits& lits : disjuncts(m, positive)) result.push_back(std::move(lits));
      check();
    }
  } else {
    result.push_back({});
    for (Id m : list) {
      const std::vector<Lits> right = disjuncts(m, positive);
      std::vector<Lits> product;
      std::swap(product, result);
      for (const Lits& a : product) {
        for (const Lits& b : right) {
          Lits both;
          std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
          bool possible = true;
          for (size_t i = 1; i < both.size(); ++i) {
            possible = possible && both[i] != (both[i - 1] ^ 1);
          }
          if (possible) result.push_back(std::move(both));
        }
        check();
      }
    }
  }
  // Drop what a shorter conjunction implies.
  std::sort(result.begin(), result.end(), [](const Lits& a, const Lits& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  std::vector<Lits> kept;
  for (Lits& lits : result) {
    const bool implied = std::any_of(kept.begin(), kept.end(), [&](const Lits& other) {
      return std::includes(lits.begin(), lits.end(), other.begin(), other.end());
    });
    if (!implied) kept.push_back(std::move(lits));
  }
  return kept;
}

Id Terms::flatten(Id id) {
  std::vector<Id> any;
  for (const Lits& lits : disjuncts(id, true)) {
    std::vector<Id> all;
    for (uint32_t lit : lits) all.push_back((lit & 1) != 0 ? make_not(lit >> 1) : lit >> 1);
    any.push_back(make_and(std::move(all)));
  }
  return make_or(std::move(any));
}

bool Terms::null(Id id, uint32_t context) const {
  const Formula& f = formulas_[id];
  switch (f.kind) {
    case FormulaKind::kFalse:
      return false;
    case FormulaKind::kTrue:
      return true;
    case FormulaKind::kAtom:
      return null_chain(f.a, context);
    case FormulaKind::kNot:
      return !null(f.a, context);
    case FormulaKind::kOr:
    case FormulaKind::kAnd:
      break;
  }
  const bool any = f.kind == FormulaKind::kOr;
  for (Id m : members(f)) {
    if (null(m, context) == any) return any;
  }
  return !any;
}

Id Terms::derive(Id id, uint32_t cls, uint32_t context) {
  const Formula f = formulas_[id];
  switch (f.kind) {
    case FormulaKind::kFalse:
    case FormulaKind::kTrue:
      return id;
    case FormulaKind::kAtom:
      return derive_chain(f.a, cls, context);
    case FormulaKind::kNot:
      return make_not(derive(f.a, cls, context));
    case FormulaKind::kOr:
    case FormulaKind::kAnd:
      break;
  }
  const Id absorbing = f.kind == FormulaKind::kOr ? kTrue : kFalse;
  std::vector<Id> derived;
  derived.reserve(f.b);
  for (uint32_t i = 0; i < f.b; ++i) {
    const Id d = derive(members_[f.a + i], cls, context);
    if (d == absorbing) return absorbing;
    derived.push_back(d);
  }
  return f.kind == FormulaKind::kOr ? make_or(std::move(derived)) : make_and(std::move(derived));
}

}  // namespace constrain::regex
