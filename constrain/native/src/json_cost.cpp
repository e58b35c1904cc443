// Least costs: how many bytes a shortest value, rest of an object or rest of an array takes.
//
// A cost is asked for under a bound that shrinks with every bracket and every name, so that
// recursion ends, also in recursive schemas; bounds are raised from small to large, and what was
// found not to fit a bound is remembered as such.  Costs guide completions.  They are exact where
// formulas are plain tables, lists and alternatives, and estimates where uniqueness or a spent
// budget is in play: what a completion writes is read by the machine in any case.
#include <algorithm>
#include <queue>

#include "constrain/json_theory.hpp"

namespace constrain {

namespace {
constexpr size_t kCostSteps = 6000;       // of one question
constexpr JsonTheory::Cost kLargest = 1u << 24;
constexpr size_t kResiduals = 400;        // of an array looked at
constexpr uint32_t kManyMembers = 2000;
}  // namespace

// Runs `ask(bound)` under rising bounds until it finds something.
template <class Ask>
JsonTheory::Cost JsonTheory::least(Ask ask) {
  cost_steps_ = 0;
  try {
    for (Cost bound = 32; bound <= kLargest; bound *= 4) {
      const Cost cost = ask(bound);
      if (cost != kNoCost) return cost;
    }
  } catch (const Spent&) {
    in_progress_.clear();
    low_ = INT32_MAX;
    depth_ = 0;
  }
  return kNoCost;
}

void JsonTheory::cost_step() {
  if (++cost_steps_ > kCostSteps) throw Spent{};
  if (cost_steps_ % 64 == 0) poll();
  ticks_ = 0;
}

JsonTheory::Cost JsonTheory::text_cost(std::span<const uint32_t> text) {
  std::string spelled;
  for (const uint32_t c : text) LexicalPool::spell(spelled, c, false);
  return Cost(spelled.size()) + 2;
}

JsonTheory::Cost JsonTheory::leaf_cost(Formula f, Type& type) {
  Cost best = kNoCost;
  const auto offer = [&](Cost cost, Type t) {
    if (cost < best) best = cost, type = t;
  };
  std::string text;
  const NumberId number = number_language(f);
  if (number != kNoNumber && numbers_.complete_text(number, {}, false, NumberCursor{}, text))
    offer(Cost(text.size()), Type::kNumber);
  if (best <= 2) return best;
  const LexId string = string_language(f);
  std::vector<uint32_t> shortest;
  if (string != LexicalPool::kNothing && pool_.shortest(string, false, shortest))
    offer(text_cost(shortest), Type::kString);
  if (best <= 4) return best;
  for (const Type t : {Type::kNull, Type::kTrue, Type::kFalse})
    if (literal(f, t)) offer(t == Type::kFalse ? 5 : 4, t);
  return best;
}

JsonTheory::Cheapest& JsonTheory::cheapest(uint32_t what, uint32_t a, uint32_t b) {
  const uint32_t tuple[3] = {10 + what, a, b};
  return cheapest_[tuples_.intern(tuple)];
}

JsonTheory::Cost JsonTheory::value_cost(Formula f, Cost bound) {
  if (f == kFalse) return kNoCost;
  if (f == kTrue) return bound >= 1 ? 1 : kNoCost;
  const Cheapest known = cheapest(0, f, 0);
  if (known.cost != kNoCost) return known.cost <= bound ? known.cost : kNoCost;
  if (known.more_than >= bound) return kNoCost;
  cost_step();
  Cheapest found;
  found.cost = leaf_cost(f, found.type);
  const auto inside = [&](Type type) {
    const Cost limit = std::min(bound, found.cost - 1);
    if (limit < 2) return;
    const Formula g = typed(f, type);
    const Cost cost = type == Type::kArray ? items_cost(g, 0, limit - 2)
                                           : members_cost(g, StringSets::kEmpty, limit - 2);
    if (cost != kNoCost) found.cost = cost + 2, found.type = type;
  };
  inside(Type::kArray);
  inside(Type::kObject);
  Cheapest& kept = cheapest(0, f, 0);
  if (found.cost <= bound) {
    kept.cost = found.cost;
    kept.type = found.type;
    return found.cost;
  }
  kept.more_than = std::max(kept.more_than, bound);
  return kNoCost;
}

// The value itself, where it is no array or object with anything in it.
bool JsonTheory::cheapest_value(Formula f, ValueId& v) {
  if (f == kTrue) {
    v = value(ValueKind::kNumber, numbers_.value(Decimal()));
    return true;
  }
  const Cheapest found = cheapest(0, f, 0);
  if (found.cost == kNoCost) return false;
  switch (found.type) {
    case Type::kNull:
    case Type::kTrue:
    case Type::kFalse: v = ValueId(found.type); return true;
    case Type::kNumber: {
      std::string text;
      if (!numbers_.complete_text(number_language(f), {}, false, NumberCursor{}, text))
        return false;
      v = value(ValueKind::kNumber, numbers_.value(Decimal::parse(text)));
      return true;
    }
    case Type::kString: {
      std::vector<uint32_t> text;
      if (!pool_.shortest(string_language(f), false, text)) return false;
      v = value(ValueKind::kString, pool_.text(text));
      return true;
    }
    case Type::kArray: v = value(ValueKind::kArray, 0); return found.cost == 2;
    case Type::kObject: v = value(ValueKind::kObject, 0); return found.cost == 2;
  }
  return false;
}

// ------------------------------------------------------------------ arrays

JsonTheory::Cost JsonTheory::items_cost(Formula f, uint32_t values, Cost bound) {
  if (f == kFalse) return kNoCost;
  if (done(f)) return 0;
  if (!(*this)[f].has_uniq) values = 0;
  const Cheapest known = cheapest(1, f, values);
  if (known.cost != kNoCost) return known.cost <= bound ? known.cost : kNoCost;
  if (known.more_than >= bound) return kNoCost;
  cost_step();
  Formula first = kTrue;
  const Cost cost = simple_items(f) ? list_cost(f, values, bound, first)
                                    : residuals_cost(f, values, bound, first);
  Cheapest& kept = cheapest(1, f, values);
  if (cost != kNoCost) {
    kept.cost = cost;
    kept.child = first;
  } else {
    kept.more_than = std::max(kept.more_than, bound);
  }
  return cost;
}

bool JsonTheory::simple_items(Formula f) {
  for (const Formula c : conjuncts(f)) {
    const Fop o = op(c);
    if (o != Fop::kMinI && o != Fop::kMaxI && o != Fop::kAllI && o != Fop::kAt && o != Fop::kUniq)
      return false;
  }
  return true;
}

JsonTheory::Cost JsonTheory::list_cost(Formula f, uint32_t values, Cost bound, Formula& first) {
  const std::vector<Formula> parts = conjuncts(f);
  uint32_t least = 0, most = UINT32_MAX, last = 0;
  bool unique = false;
  for (const Formula c : parts) {
    const FormulaNode n = (*this)[c];
    if (n.op == Fop::kMinI) least = std::max(least, n.a);
    if (n.op == Fop::kMaxI) most = std::min(most, n.a);
    if (n.op == Fop::kAllI || n.op == Fop::kAt) last = std::max(last, n.a);
    unique |= n.op == Fop::kUniq;
  }
  if (least > most) return kNoCost;
  std::vector<uint32_t> used = lists.copy(values);
  std::erase(used, kUnknownValue);
  Cost total = 0, same = 0;
  for (uint32_t i = 0; i < least; ++i) {
    if (i > 0) ++total;
    if (!unique && i > last + 1) {   // the others cost as much as the one before
      const uint64_t rest = uint64_t{same} * (least - i) + (least - i - 1);
      return total + rest > bound ? kNoCost : Cost(total + rest);
    }
    std::vector<Formula> goals;
    for (const Formula c : parts) {
      const FormulaNode n = (*this)[c];
      if ((n.op == Fop::kAllI && n.a <= i) || (n.op == Fop::kAt && n.a == i)) goals.push_back(n.b);
    }
    if (unique && !used.empty()) goals.push_back(negate(in_values(used)));
    const Formula goal = all_of(goals);
    if (total > bound) return kNoCost;
    same = value_cost(goal, bound - total);
    if (same == kNoCost) return kNoCost;
    if (i == 0) first = goal;
    ValueId v;
    if (unique && cheapest_value(goal, v)) {
      const auto at = std::lower_bound(used.begin(), used.end(), v);
      if (at == used.end() || *at != v) used.insert(at, v);
    }
    total += same;
  }
  return total > bound ? kNoCost : total;
}

// Cheapest first over residuals.  What is unique is kept apart by the goals of the items.
JsonTheory::Cost JsonTheory::residuals_cost(Formula f, uint32_t values, Cost bound,
                                            Formula& first) {
  struct Reached {
    Cost cost;
    Formula first;
  };
  std::unordered_map<Formula, Reached> reached{{f, {0, kTrue}}};
  using Entry = std::pair<Cost, Formula>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, f});
  for (size_t looked = 0; !queue.empty(); ++looked) {
    const auto [cost, g] = queue.top();
    queue.pop();
    const Reached here = reached[g];
    if (cost > here.cost) continue;
    if (done(g)) {
      first = here.first;
      return cost;
    }
    if (looked > kResiduals) throw Spent{};
    const bool start = g == f;
    const Formula duplicate =
        start && values != 0 ? in_values(lists.copy(values)) : Formula{kFalse};
    const Cost comma = start ? 0 : 1;
    outcomes(after_item(g, duplicate), {}, kTrue, [&](Formula q, Formula c) {
      cost_step();
      if (cost + comma > bound) return true;
      const Cost item = value_cost(c, bound - cost - comma);
      if (item == kNoCost) return false;
      const Cost total = cost + comma + item;
      const Reached next{total, start ? c : here.first};
      const auto [it, fresh] = reached.try_emplace(q, next);
      if (!fresh) {
        if (it->second.cost <= total) return false;
        it->second = next;
      }
      queue.push({total, q});
      return false;
    });
  }
  return kNoCost;
}

// ------------------------------------------------------------------ objects

JsonTheory::Cost JsonTheory::members_cost(Formula f, StringSet seen, Cost bound) {
  if (f == kFalse) return kNoCost;
  if (done(f)) return 0;
  const Names& n = names(f);
  if (n.matchers.empty()) seen = pool_.sets().intersect(seen, n.names);
  const Cheapest known = cheapest(2, f, seen);
  if (known.cost != kNoCost) return known.cost <= bound ? known.cost : kNoCost;
  if (known.more_than >= bound) return kNoCost;
  cost_step();
  Cheapest found;
  if (op(f) == Fop::kTable) {
    found.cost = table_cost(f, seen, bound, found.key, found.child);
  } else {
    ways_cost(f, seen, bound, found);
    try {
      search_members(f, seen, std::min(bound, found.cost - 1), found);
    } catch (const Spent&) {
      in_progress_.clear();
      low_ = INT32_MAX;
      depth_ = 0;
      if (found.cost == kNoCost) throw;
    }
  }
  Cheapest& kept = cheapest(2, f, seen);
  if (found.cost <= bound) {
    kept = found;
    return found.cost;
  }
  kept.more_than = std::max(kept.more_than, bound);
  return kNoCost;
}

// A member's quotes, colon and comma belong to its name.
JsonTheory::Cost JsonTheory::name_cost(TextId key) {
  return text_cost(pool_.text_code_points(key)) + 2;
}

JsonTheory::Cost JsonTheory::table_cost(Formula f, StringSet seen, Cost bound, TextId& key,
                                        Formula& child) {
  const FormulaNode n = (*this)[f];
  const ObjectTable& t = table(n.a);
  uint64_t total = 0;
  uint32_t rank = UINT32_MAX, missing = 0;
  for (uint32_t i = 0; i < t.names.size(); ++i) {
    if (!t.required[i] || bit(n.b, i)) continue;
    if (pool_.sets().contains(seen, pool_.text_code_points(t.names[i]))) return kNoCost;
    total += name_cost(t.names[i]);
    if (total > bound) return kNoCost;
    const Cost cost = value_cost(t.goals[i], Cost(bound - total));
    if (cost == kNoCost) return kNoCost;
    total += cost;
    ++missing;
    if (t.rank[i] >= rank) continue;
    rank = t.rank[i];
    key = t.names[i];
    child = t.goals[i];
  }
  const uint64_t wanted = t.least > n.c ? t.least - n.c : 0;
  if (wanted <= missing) return total > bound ? kNoCost : Cost(total);
  // Members that only count: the cheapest of those that may come.
  uint64_t extra = wanted - missing;
  struct Option {
    uint64_t cost;
    TextId key;
    Formula child;
  };
  std::vector<Option> options;
  for (uint32_t i = 0; i < t.names.size(); ++i) {
    if (t.required[i] || bit(n.b, i)) continue;
    if (pool_.sets().contains(seen, pool_.text_code_points(t.names[i]))) continue;
    const uint64_t name = name_cost(t.names[i]);
    if (total + name > bound) continue;
    const Cost cost = value_cost(t.goals[i], Cost(bound - total - name));
    if (cost != kNoCost) options.push_back({name + cost, t.names[i], t.goals[i]});
  }
  for (const auto& [cls, language] : std::vector(classes(f))) {
    const KeyClass k{true, cls};
    const Formula goal = asked_of(f, k);
    const Cost cost = value_cost(goal, bound);
    if (cost == kNoCost) continue;
    StringSet used = pool_.sets().unite(seen, t.name_set);
    for (uint64_t i = 0; i < std::min<uint64_t>(extra, kManyMembers); ++i) {
      std::vector<uint32_t> text;
      if (!pool_.shortest(minus(language, used), false, text)) break;
      options.push_back({uint64_t{text_cost(text)} + 2 + cost, pool_.text(text), goal});
      used = pool_.sets().add(used, text);
      cost_step();
    }
  }
  std::stable_sort(options.begin(), options.end(),
                   [](const Option& a, const Option& b) { return a.cost < b.cost; });
  if (options.size() < extra && options.size() < kManyMembers) return kNoCost;
  for (const Option& option : options) {
    if (extra-- == 0) break;
    total += option.cost;
  }
  if (missing == 0) {
    key = options[0].key;
    child = options[0].child;
  }
  return total > bound ? kNoCost : Cost(total);
}

// Upper bounds from ways that need no search.
void JsonTheory::ways_cost(Formula f, StringSet seen, Cost bound, Cheapest& best) {
  for (const Way& way : easy_ways(f, seen)) {
    uint64_t total = 0;
    Formula child = kTrue;
    for (const TextId& key : way.required) {
      std::vector<Formula> parts;
      for (const Formula t : way.tables) parts.push_back(asked_of(t, {false, key}));
      if (way.told_by != kTrue && key == way.told_apart) parts.push_back(way.told_by);
      const Formula goal = all_of(parts);
      total += name_cost(key);
      const Cost limit = std::min(bound, best.cost - 1);
      const Cost cost = total > limit ? kNoCost : value_cost(goal, Cost(limit - total));
      if (cost == kNoCost) {
        total = kNoCost;
        break;
      }
      total += cost;
      if (&key == &way.required[0]) child = goal;
    }
    if (total > bound || total >= best.cost || way.required.empty()) continue;
    best.cost = Cost(total);
    best.key = way.required[0];
    best.child = child;
  }
}

void JsonTheory::search_members(Formula f, StringSet seen, Cost bound, Cheapest& best) {
  cubes(
      {f}, {},
      [&](const Literals& l) {
        cost_step();
        return cube_possible(l, seen);
      },
      [&](const Literals& l) {
        const Formula g = conjunction(l);
        if (g == kFalse) return false;
        if (done(g)) {
          best = Cheapest{};
          best.cost = 0;
          return true;
        }
        const StringSet excluded = counts(l, seen).forbidden;
        for (const auto& [choice, language] : next_keys(g, l, seen)) {
          cost_step();
          std::vector<uint32_t> code_points;
          TextId text = choice.id;
          if (choice.is_class) {
            if (!pool_.shortest(minus(language, excluded), false, code_points)) continue;
            text = pool_.text(code_points);
          }
          const Cost name = name_cost(text);
          if (name > bound) continue;
          const StringSet now = pool_.sets().add(seen, pool_.text_code_points(text));
          const Formula p = after_key(g, choice);
          if (p == kFalse) continue;
          outcomes(p, {}, kTrue, [&](Formula q, Formula c) {
            if (name > bound) return true;
            const Cost value = value_cost(c, bound - name);
            if (value == kNoCost) return false;
            const Cost rest = members_cost(q, now, bound - name - value);
            if (rest == kNoCost) return false;
            best = Cheapest{};
            best.cost = name + value + rest;
            best.key = text;
            best.child = c;
            bound = best.cost - 1;
            return false;
          });
        }
        return false;
      });
}

bool JsonTheory::list_goals(Formula f, std::vector<Formula>& goals, uint32_t& least) {
  constexpr uint32_t kPositions = 2000;
  goals.clear();
  least = 0;
  if (f == kTrue) {
    goals.push_back(kTrue);
    return true;
  }
  if (!simple_items(f) || (*this)[f].has_uniq) return false;
  const std::vector<Formula> parts = conjuncts(f);
  uint32_t last = 0;
  for (const Formula c : parts) {
    const FormulaNode n = (*this)[c];
    if (n.op == Fop::kMinI) least = std::max(least, n.a);
    if (n.op == Fop::kAllI) last = std::max(last, n.a);
    if (n.op == Fop::kAt) last = std::max(last, n.a + 1);
  }
  if (last > kPositions) return false;
  for (uint32_t i = 0; i <= last; ++i) {
    std::vector<Formula> here;
    for (const Formula c : parts) {
      const FormulaNode n = (*this)[c];
      if ((n.op == Fop::kAllI && n.a <= i) || (n.op == Fop::kAt && n.a == i)) here.push_back(n.b);
    }
    goals.push_back(all_of(here));
  }
  return true;
}

std::vector<Formula> JsonTheory::goals_of_others(uint32_t id) {
  std::vector<Formula> goals;
  const Formula f = atom(Fop::kTable, id, 0, 0);
  for (const auto& [cls, language] : std::vector(classes(f))) goals.push_back(asked_of(f, {true, cls}));
  return goals;
}

// ------------------------------------------------------------------ what to write next

bool JsonTheory::cheapest_type(Formula f, Type& type) {
  if (f == kTrue) {
    type = Type::kNumber;
    return true;
  }
  if (least([&](Cost bound) { return value_cost(f, bound); }) == kNoCost) return false;
  type = cheapest(0, f, 0).type;
  return true;
}

bool JsonTheory::plan_member(Formula f, StringSet seen, bool& done_here, TextId& key,
                             Formula& child) {
  done_here = done(f);
  if (done_here) return true;
  if (least([&](Cost bound) { return members_cost(f, seen, bound); }) == kNoCost)
    return shallow_member(f, seen, key, child);
  const Names& n = names(f);
  if (n.matchers.empty()) seen = pool_.sets().intersect(seen, n.names);
  const Cheapest found = cheapest(2, f, seen);
  key = found.key;
  child = found.child;
  return true;
}

bool JsonTheory::plan_item(Formula f, uint32_t values, bool& done_here, Formula& child) {
  done_here = done(f);
  if (done_here) return true;
  if (least([&](Cost bound) { return items_cost(f, values, bound); }) == kNoCost)
    return shallow_item(f, values, child);
  if (!(*this)[f].has_uniq) values = 0;
  child = cheapest(1, f, values).child;
  return true;
}

JsonTheory::Cost JsonTheory::least_value(Formula f) {
  return least([&](Cost bound) { return value_cost(f, bound); });
}

JsonTheory::Cost JsonTheory::least_rest(bool object, Formula f, uint32_t seen) {
  return least([&](Cost bound) { return rest_cost(object, f, seen, bound); });
}

JsonTheory::Cost JsonTheory::plan_child(bool object, Formula parent, uint32_t seen, Formula goal,
                                        Formula& child) {
  Formula best = goal;
  const Cost cost = least([&](Cost bound) {
    Cost found = kNoCost;
    outcomes(parent, {}, goal, [&](Formula q, Formula c) {
      cost_step();
      const Cost limit = std::min(bound, found - 1);
      const Cost value = value_cost(c, limit);
      if (value == kNoCost) return false;
      const Cost rest = rest_cost(object, q, seen, limit - value);
      if (rest == kNoCost) return false;
      found = value + rest;
      best = c;
      return found == 0;
    });
    return found;
  });
  child = best;
  return cost;
}

}  // namespace constrain
