// Arrays: derivatives by an item, satisfiability of what is left, uniqueness.
#include <algorithm>

#include "constrain/json_theory.hpp"

namespace constrain {

// `duplicate`: the value formula "equals an earlier item".
Formula JsonTheory::after_item(Formula f, Formula duplicate) {
  if (f <= kTrue) return f;
  const uint64_t memo_key = pack(f, duplicate);
  const uint32_t known = item_memo_.find(memo_key);
  if (known != FlatMap::kMissing) return known;
  Memo memo;
  const std::function<Formula(Formula)> leaf = [&](Formula a) -> Formula {
    const FormulaNode n = (*this)[a];
    switch (n.op) {
      case Fop::kAllI: return n.a > 0 ? all_i(n.a - 1, n.b) : both(var(n.b), a);
      case Fop::kAt: return n.a > 0 ? at(n.a - 1, n.b) : var(n.b);
      case Fop::kMinI: return min_i(n.a - 1);
      case Fop::kMaxI: return n.a == 0 ? kFalse : atom(Fop::kMaxI, n.a - 1);
      case Fop::kCMin: {
        const Formula v = var(n.a);
        if (n.b == 1) return either(v, a);
        return either(both(v, contains_min(n.a, n.b - 1)), both(negate(v), a));
      }
      case Fop::kCMax: {
        const Formula v = var(n.a);
        if (n.b == 0) return both(negate(v), a);
        return both(either(negate(v), contains_max(n.a, n.b - 1)), a);
      }
      case Fop::kUniq: return both(negate(var(duplicate)), a);
      case Fop::kUnevI: {
        const std::vector<uint32_t> src = lists.copy(n.b);
        std::vector<uint32_t> next;
        std::vector<Formula> here{var(n.a)};
        for (size_t i = 0; i < src.size(); i += 3) {
          const Formula condition = rebuild(src[i + 2], leaf, memo);
          if (src[i] == 0) {
            if (src[i + 1] > 0) here.push_back(condition);
            if (src[i + 1] > 1) next.insert(next.end(), {0, src[i + 1] - 1, condition});
          } else {
            here.push_back(src[i] == 1 ? condition : both(condition, var(src[i + 1])));
            next.insert(next.end(), {src[i], src[i + 1], condition});
          }
        }
        return both(any_of(here), unevaluated_i(n.a, next));
      }
      default: return a;
    }
  };
  const Formula r = rebuild(f, leaf, memo);
  item_memo_.set(memo_key, r);
  return r;
}

bool JsonTheory::array_search(Formula f, uint32_t values) {
  if (done(f)) return true;
  const bool unique = (*this)[f].has_uniq;
  if (unique && !unique_possible(f, values)) return false;
  const std::vector<Formula> parts = conjuncts(f);
  bool simple = true;
  for (const Formula c : parts) {
    const Fop o = op(c);
    simple &= o == Fop::kMinI || o == Fop::kMaxI || o == Fop::kAllI || o == Fop::kAt ||
              o == Fop::kUniq;
  }
  if (simple) {
    uint32_t least = 0, most = UINT32_MAX, last = 0;
    for (const Formula c : parts) {
      const FormulaNode n = (*this)[c];
      if (n.op == Fop::kMinI) least = std::max(least, n.a);
      if (n.op == Fop::kMaxI) most = std::min(most, n.a);
      if (n.op == Fop::kAllI || n.op == Fop::kAt) last = std::max(last, n.a);
    }
    if (least > most) return false;
    for (uint32_t i = 0; i < least && i < last + 2; ++i) {
      std::vector<Formula> goal;
      for (const Formula c : parts) {
        const FormulaNode n = (*this)[c];
        if ((n.op == Fop::kAllI && n.a <= i) || (n.op == Fop::kAt && n.a == i))
          goal.push_back(n.b);
      }
      if (!satisfiable(all_of(goal))) return false;
    }
    return true;
  }
  const Fop o = op(f);
  if (unique && (o == Fop::kOr || o == Fop::kOne || o == Fop::kAnd || o == Fop::kNot)) {
    return cubes({f}, {}, nullptr, [&](const Literals& l) {
      const Formula g = conjunction(l);
      return g != kFalse && unique_possible(g, values) && explore_array(g, values);
    });
  }
  return explore_array(f, values);
}

// Explicit search over residuals.  While uniqueness is undecided a node also holds the values known
// to be present and formulas known of the items whose values were left open.
bool JsonTheory::explore_array(Formula f, uint32_t values) {
  constexpr size_t kNodes = 1500;
  if (done(f)) return true;
  struct Node {
    Formula f;
    uint32_t values, known;
    bool operator<(const Node& o) const {
      return std::tie(f, values, known) < std::tie(o.f, o.values, o.known);
    }
  };
  std::vector<uint32_t> first = lists.copy(values);
  const bool unknown = std::find(first.begin(), first.end(), kUnknownValue) != first.end();
  std::erase(first, kUnknownValue);
  const uint32_t known_true[1] = {kTrue};
  const Node root{f, lists.intern(first), unknown ? lists.intern(known_true) : 0};
  std::map<Node, bool> seen{{root, true}};
  std::vector<Node> stack{root};
  size_t steps = 0;
  while (!stack.empty()) {
    const Node at_node = stack.back();
    stack.pop_back();
    tick();
    if (++steps > kNodes) return give_up();
    const Formula g = at_node.f;
    const bool unique = (*this)[g].has_uniq;
    const std::vector<uint32_t> present = lists.copy(at_node.values);
    const std::vector<Formula> known = lists.copy(at_node.known);
    const bool any = !present.empty() || !known.empty();
    const Formula p = after_item(g, unique && any ? free_ : kFalse);
    std::vector<Formula> equal_to = known;
    if (!present.empty()) equal_to.push_back(in_values(present));
    std::vector<Node> next;
    outcomes(p, equal_to, kTrue, [&](Formula q, Formula c) {
      const bool still = (*this)[q].has_uniq;
      if (!still && !unique) {
        next.push_back({q, 0, 0});
        return false;
      }
      const auto domain = enumerate(c, 12);
      if (!domain) {
        if (!still) {
          next.push_back({q, 0, 0});
          return false;
        }
        std::vector<uint32_t> more = known;
        more.push_back(c);
        std::sort(more.begin(), more.end());
        more.erase(std::unique(more.begin(), more.end()), more.end());
        next.push_back({q, at_node.values, lists.intern(more)});
        return false;
      }
      for (const ValueId v : *domain) {  // small domain: follow the values themselves
        std::unordered_map<Formula, bool> truth;
        for (const Formula x : variables(p))
          if (x != free_) truth[x] = holds(x, v);
        const bool is_present = std::binary_search(present.begin(), present.end(), v);
        if (is_present) {
          const Formula again = after_item(g, free_);
          for (const Formula x : variables(again))
            if (x != free_) truth[x] = holds(x, v);
          truth[free_] = true;
          next.push_back({substitute(again, truth), at_node.values, at_node.known});
          continue;
        }
        std::vector<uint32_t> more = present;
        more.insert(std::lower_bound(more.begin(), more.end(), v), v);
        const uint32_t with = lists.intern(more);
        truth[free_] = false;
        next.push_back({substitute(p, truth), with, at_node.known});
        for (const Formula x : known) {
          if (!satisfiable(both(x, in_values({v})))) continue;
          truth[free_] = true;
          next.push_back({substitute(p, truth), with, at_node.known});
          break;
        }
      }
      return false;
    });
    for (size_t i = next.size(); i-- > 0;) {
      const Node& node = next[i];
      if (node.f == kFalse || !seen.try_emplace(node, true).second) continue;
      if (done(node.f)) return true;
      stack.push_back(node);
    }
  }
  return false;
}

// uniqueItems in a conjunction with minItems: are there enough distinct values?  Positions are
// matched to values; a position with many values always finds one.
bool JsonTheory::unique_possible(Formula f, uint32_t values) {
  const std::vector<Formula> parts = conjuncts(f);
  bool unique = false;
  uint32_t least = 0;
  for (const Formula c : parts) {
    if (op(c) == Fop::kUniq) unique = true;
    if (op(c) == Fop::kMinI) least = std::max(least, (*this)[c].a);
  }
  if (!unique || least == 0 || least > 200) return true;
  const std::vector<uint32_t> used = lists.copy(values);
  std::vector<std::optional<std::vector<ValueId>>> domains;
  for (uint32_t i = 0; i < least; ++i) {
    std::vector<Formula> goal;
    for (const Formula c : parts) {
      const FormulaNode n = (*this)[c];
      if ((n.op == Fop::kAllI && n.a <= i) || (n.op == Fop::kAt && n.a == i)) goal.push_back(n.b);
    }
    auto d = enumerate(all_of(goal), least + used.size());
    if (d) std::erase_if(*d, [&](ValueId v) {
      return std::find(used.begin(), used.end(), v) != used.end();
    });
    domains.push_back(std::move(d));
  }
  std::unordered_map<ValueId, uint32_t> owner;
  const std::function<bool(uint32_t, std::unordered_map<ValueId, bool>&)> augment =
      [&](uint32_t i, std::unordered_map<ValueId, bool>& visited) {
        for (const ValueId v : *domains[i]) {
          if (!visited.try_emplace(v, true).second) continue;
          const auto it = owner.find(v);
          if (it == owner.end() || augment(it->second, visited)) {
            owner[v] = i;
            return true;
          }
        }
        return false;
      };
  for (uint32_t i = 0; i < least; ++i) {
    std::unordered_map<ValueId, bool> visited;
    if (domains[i] && !augment(i, visited)) return false;
  }
  return true;
}

// A finite item domain under uniqueItems: without the values that leave too few for later items.
Formula JsonTheory::unique_filter(Formula goal, Formula parent, uint32_t values, Formula f) {
  if (!(*this)[f].has_uniq) return goal;
  const auto domain = enumerate(goal, 64);
  if (!domain) return goal;
  std::vector<ValueId> good;
  for (const ValueId v : *domain) {
    std::unordered_map<Formula, bool> truth;
    for (const Formula x : variables(parent)) truth[x] = holds(x, v);
    std::vector<uint32_t> more = lists.copy(values);
    const auto it = std::lower_bound(more.begin(), more.end(), v);
    if (it == more.end() || *it != v) more.insert(it, v);
    if (array_open(substitute(parent, truth), lists.intern(more))) good.push_back(v);
  }
  return good.size() == domain->size() ? goal : both(goal, in_values(good));
}

Child JsonTheory::item(Formula f, uint32_t tracked, uint32_t values) {
  const bool unique = (*this)[f].has_uniq;
  const Formula duplicate = values == 0 ? kFalse : in_values(lists.copy(values));
  const Formula p = after_item(f, duplicate);
  std::vector<uint32_t> t = lists.copy(tracked);
  bool any_unique = unique;
  for (uint32_t& x : t) {
    any_unique |= (*this)[x].has_uniq;
    x = after_item(x, duplicate);
  }
  uint32_t later = 0;
  if (any_unique) {
    std::vector<uint32_t> with = lists.copy(values);
    const auto it = std::lower_bound(with.begin(), with.end(), kUnknownValue);
    if (it == with.end() || *it != kUnknownValue) with.insert(it, kUnknownValue);
    later = lists.intern(with);
  }
  Child r = child(p, lists.intern(t), pack(2, later),
                  [&](Formula q) { return array_open(q, later); });
  if (unique && !(*this)[f].has_var) r.goal = unique_filter(r.goal, r.parent, values, f);
  return r;
}

}  // namespace constrain
