// The search core: recursion with in-progress assumptions, cubes, projection onto a child.
#include <algorithm>

#include "constrain/json_theory.hpp"

namespace constrain {

// In recursion a question that is already being asked counts as false (least fixpoint); a false
// answer is kept only if it used no assumption that is still open.
template <class Fn>
bool JsonTheory::guarded(uint64_t key, Fn fn) {
  if (const auto it = sat_memo_.find(key); it != sat_memo_.end()) {
    if (!unproved_.empty() && unproved_.count(key) != 0) give_up();
    return it->second;
  }
  if (in_progress_.empty()) guarded_calls_ = 0;
  poll();
  if (++guarded_calls_ > kGuardedCalls && !in_progress_.empty()) return give_up();
  if (const auto it = in_progress_.find(key); it != in_progress_.end()) {
    low_ = std::min(low_, it->second);
    return false;
  }
  if (depth_ >= kMaxDepth) return give_up();
  const int depth = depth_++;
  in_progress_[key] = depth;
  const int saved = low_;
  low_ = INT32_MAX;
  const size_t given_up = unproved_count_;
  const bool r = fn();
  in_progress_.erase(key);
  --depth_;
  const int low = low_;
  if (r) {
    sat_memo_[key] = true;
    if (unproved_count_ != given_up) unproved_.insert(key);
    low_ = saved;
  } else if (low >= depth) {
    sat_memo_[key] = false;
    low_ = saved;
  } else {
    low_ = std::min(saved, low);
  }
  return r;
}

// Runs a question under a fresh budget unless one is being asked already.
template <class Fn>
bool JsonTheory::top(Fn fn) {
  if (!in_progress_.empty()) return fn();
  ticks_ = 0;
  try {
    return fn();
  } catch (const Spent&) {
    in_progress_.clear();
    low_ = INT32_MAX;
    depth_ = 0;
    return give_up();
  }
}

bool JsonTheory::satisfiable(Formula f) {
  if (f <= kTrue) return f == kTrue;
  const uint32_t tuple[3] = {0, f, uint32_t(limit_)};
  const uint64_t key = tuples_.intern(tuple);
  return top([&] {
    return guarded(key, [&] {
      for (const Type type : kTypes)
        if (satisfiable_typed(f, type)) return true;
      return false;
    });
  });
}

bool JsonTheory::satisfiable_typed(Formula f, Type type) {
  if (limit_ != kNoHeight && (type == Type::kArray || type == Type::kObject)) {
    if (limit_ == 0) return false;
    const LimitScope below(*this, limit_ - 1);
    return type == Type::kArray ? array_open(typed(f, type), 0)
                                : object_open(typed(f, type), StringSets::kEmpty);
  }
  switch (type) {
    case Type::kNull:
    case Type::kTrue:
    case Type::kFalse: return literal(f, type);
    case Type::kNumber: return numbers_.satisfiable(number_language(f));
    case Type::kString: return pool_.live(string_language(f));
    case Type::kArray: return array_open(typed(f, type), 0);
    case Type::kObject: return object_open(typed(f, type), StringSets::kEmpty);
  }
  return false;
}

bool JsonTheory::object_open(Formula f, StringSet seen) {
  if (f <= kTrue) return f == kTrue;
  const Names& n = names(f);
  if (n.matchers.empty()) seen = pool_.sets().intersect(seen, n.names);
  const uint32_t tuple[4] = {1, f, seen, uint32_t(limit_)};
  const uint64_t key = tuples_.intern(tuple);
  return top([&] { return guarded(key, [&] { return object_search(f, seen); }); });
}

bool JsonTheory::array_open(Formula f, uint32_t values) {
  if (f <= kTrue) return f == kTrue;
  if (!(*this)[f].has_uniq) values = 0;
  const uint32_t tuple[4] = {3, f, values, uint32_t(limit_)};
  const uint64_t key = tuples_.intern(tuple);
  return top([&] { return guarded(key, [&] { return array_search(f, values); }); });
}

bool JsonTheory::violation_memo(uint32_t key, const std::function<bool()>& search) {
  return guarded(key, search);
}

// ------------------------------------------------------------------ cubes

Formula JsonTheory::conjunction(const Literals& literals) {
  std::vector<Formula> parts;
  for (const auto& [a, positive] : literals) parts.push_back(positive ? a : negate(a));
  return all_of(parts);
}

namespace {
// Cheap and likely literals first.
int branch_cost(const Formulas& fs, Formula f) {
  const FormulaNode& n = fs[f];
  if (n.op == Fop::kNot) {
    switch (fs.op(n.a)) {
      case Fop::kHas: return 0;
      case Fop::kAllP:
      case Fop::kAllI:
      case Fop::kAt:
      case Fop::kUnevP:
      case Fop::kUnevI: return 5;
      case Fop::kMinP:
      case Fop::kMaxP:
      case Fop::kMinI:
      case Fop::kMaxI:
      case Fop::kCMin: return 2;
      default: return 3;
    }
  }
  if (n.op == Fop::kAnd || n.op == Fop::kOr || n.op == Fop::kOne) return 6;
  return n.op == Fop::kHas ? 4 : 1;
}
}  // namespace

bool JsonTheory::cubes(std::vector<Formula> todo, Literals literals,
                       const std::function<bool(const Literals&)>& check,
                       const std::function<bool(const Literals&)>& visit) {
  tick();
  std::vector<Formula> open;
  while (!todo.empty()) {
    const Formula f = todo.back();
    todo.pop_back();
    const FormulaNode n = (*this)[f];
    if (f == kTrue) continue;
    if (f == kFalse) return false;
    if (n.op == Fop::kAnd) {
      const auto parts = lists.copy(n.a);
      todo.insert(todo.end(), parts.begin(), parts.end());
    } else if (n.op == Fop::kOr || n.op == Fop::kOne) {
      open.push_back(f);
    } else if (n.op == Fop::kNot && op(n.a) == Fop::kTable) {
      open.push_back(f);
    } else if (n.op == Fop::kNot) {
      const Formula g = n.a;
      const FormulaNode m = (*this)[g];
      if (m.op == Fop::kAnd) {
        std::vector<Formula> parts = lists.copy(m.a);
        for (Formula& x : parts) x = negate(x);
        open.push_back(any_of(parts));
      } else if (m.op == Fop::kOr) {
        for (const Formula x : lists.copy(m.a)) todo.push_back(negate(x));
      } else if (m.op == Fop::kOne) {
        open.push_back(f);
      } else {
        const auto [it, fresh] = literals.try_emplace(g, false);
        if (!fresh && it->second) return false;
      }
    } else {
      const auto [it, fresh] = literals.try_emplace(f, true);
      if (!fresh && !it->second) return false;
    }
  }
  if (open.empty()) return (!check || check(literals)) && visit(literals);
  tick(open.size() / kFormulasPerTick);
  // Simplify the disjunctions under the literals.
  Memo memo;
  std::vector<TextId> absent;
  for (const auto& [a, positive] : literals)
    if (!positive && op(a) == Fop::kHas) absent.push_back((*this)[a].a);
  std::vector<Formula> tables;
  for (const auto& [a, positive] : literals)
    if (positive && op(a) == Fop::kTable) tables.push_back(a);
  const auto leaf = [&](Formula a) -> Formula {
    const auto it = literals.find(a);
    if (it != literals.end()) return it->second ? kTrue : kFalse;
    if (op(a) == Fop::kAllP) {
      // A rule for one name that a table has as well.
      for (const Formula t : tables)
        if (table_implies(t, a)) return kTrue;
    }
    if (op(a) == Fop::kTable)
      for (const TextId key : absent)
        if (table_requires(a, key)) return kFalse;
    return a;
  };
  std::vector<Formula> rest;
  bool again = false;
  for (const Formula o : open) {
    const Formula s = rebuild(o, leaf, memo);
    if (s == kFalse) return false;
    if (s == kTrue) continue;
    const FormulaNode n = (*this)[s];
    const bool disjunction =
        n.op == Fop::kOr || n.op == Fop::kOne ||
        (n.op == Fop::kNot && (op(n.a) == Fop::kOne || op(n.a) == Fop::kTable));
    if (!disjunction) again = true;
    rest.push_back(s);
  }
  if (again) return cubes(std::move(rest), std::move(literals), check, visit);
  if (check && !check(literals)) return false;
  if (rest.empty()) return visit(literals);
  const auto width = [&](Formula o) {
    if (op(o) == Fop::kNot) return op((*this)[o].a) == Fop::kTable ? size_t{2} : size_t{99};
    return lists.get((*this)[o].a).size();
  };
  std::stable_sort(rest.begin(), rest.end(),
                   [&](Formula x, Formula y) { return width(x) < width(y); });
  const Formula chosen = rest[0];
  rest.erase(rest.begin());
  const auto branch = [&](std::initializer_list<Formula> more,
                          const std::vector<Formula>& and_also = {}) {
    std::vector<Formula> next = rest;
    next.insert(next.end(), more.begin(), more.end());
    next.insert(next.end(), and_also.begin(), and_also.end());
    return cubes(std::move(next), literals, check, visit);
  };
  const FormulaNode n = (*this)[chosen];
  if (n.op == Fop::kOr) {
    std::vector<Formula> parts = lists.copy(n.a);
    std::stable_sort(parts.begin(), parts.end(), [&](Formula x, Formula y) {
      return branch_cost(*this, x) < branch_cost(*this, y);
    });
    for (const Formula d : parts)
      if (branch({d})) return true;
    return false;
  }
  if (n.op == Fop::kNot && op(n.a) == Fop::kTable) {
    // A table most often fails because a name that it requires stays away; only where that does not
    // work are its other rules looked at.
    const FormulaNode m = (*this)[n.a];
    const ObjectTable& t = table(m.a);
    for (size_t i = 0; i < t.names.size(); ++i)
      if (t.required[i] && !bit(m.b, uint32_t(i)) &&
          branch({negate(atom(Fop::kHas, t.names[i]))}))
        return true;
    return branch({negate(expand_table(n.a))});
  }
  const std::vector<Formula> parts = lists.copy(n.op == Fop::kOne ? n.a : (*this)[n.a].a);
  std::vector<Formula> none;
  for (const Formula x : parts) none.push_back(negate(x));
  if (n.op == Fop::kOne) {
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<Formula> others = none;
      others.erase(others.begin() + ptrdiff_t(i));
      if (branch({parts[i]}, others)) return true;
    }
    return false;
  }
  // Not exactly one: none, or two of them.
  if (branch({}, none)) return true;
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (branch({parts[i], parts[j]})) return true;
  return false;
}

// ------------------------------------------------------------------ children

bool JsonTheory::implied(const std::vector<Formula>& goal, Formula f) {
  for (const Formula c : conjuncts(f))
    if (!std::binary_search(goal.begin(), goal.end(), c)) return false;
  return true;
}

Child JsonTheory::child(Formula parent, uint32_t tracked, uint64_t context,
                        const std::function<bool(Formula)>& open) {
  const uint32_t tuple[5] = {4, parent, tracked, uint32_t(context >> 32), uint32_t(context)};
  const uint32_t key = tuples_.intern(tuple);
  if (const auto it = child_memo_.find(key); it != child_memo_.end()) return it->second;
  const bool keep = in_progress_.empty();
  Child r;
  r.goal = project(parent, open);
  std::vector<Formula> t = lists.copy(tracked);
  std::vector<Formula> vars = variables(parent);
  for (const Formula x : t) {
    const auto more = variables(x);
    vars.insert(vars.end(), more.begin(), more.end());
  }
  std::sort(vars.begin(), vars.end());
  vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
  std::unordered_map<Formula, bool> truth;
  std::vector<Formula> goal = conjuncts(r.goal);
  std::sort(goal.begin(), goal.end());
  for (const Formula v : vars) {
    if (implied(goal, v)) truth[v] = true;
    else if (implied(goal, negate(v))) truth[v] = false;
  }
  r.parent = substitute(parent, truth);
  for (Formula& x : t) x = substitute(x, truth);
  r.tracked = lists.intern(t);
  vars = variables(r.parent);
  for (const Formula x : t) {
    const auto more = variables(x);
    vars.insert(vars.end(), more.begin(), more.end());
  }
  std::sort(vars.begin(), vars.end());
  vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
  r.variables = lists.intern(vars);
  if (keep) child_memo_[key] = r;
  return r;
}

// The weakest value formula G such that a child of G keeps f possible; `open` decides residuals
// without variables.
Formula JsonTheory::project(Formula f, const std::function<bool(Formula)>& open) {
  size_t steps = 0;
  const bool outermost = in_progress_.empty();
  if (outermost) ticks_ = 0;
  try {
    return project_step(f, kTrue, open, steps);
  } catch (const TooBroad&) {
    give_up();
    return relax(f, true);
  } catch (const Spent&) {
    if (!outermost) throw;
    give_up();
    in_progress_.clear();
    low_ = INT32_MAX;
    depth_ = 0;
    return relax(f, true);
  }
}

Formula JsonTheory::project_step(Formula f, Formula context,
                                 const std::function<bool(Formula)>& open, size_t& steps) {
  constexpr size_t kProjectionSteps = 600;
  if (f == kFalse) return kFalse;
  tick();
  if (++steps > kProjectionSteps) throw TooBroad{};
  const std::vector<Formula> vars = variables(f);
  if (vars.empty()) return open(f) ? kTrue : kFalse;
  std::unordered_map<Formula, bool> forced;
  std::vector<Formula> forced_parts;
  for (const Formula c : conjuncts(f)) {
    const FormulaNode n = (*this)[c];
    if (n.op == Fop::kVar) {
      forced[n.a] = true;
      forced_parts.push_back(n.a);
    } else if (n.op == Fop::kNot && op(n.a) == Fop::kVar) {
      forced[(*this)[n.a].a] = false;
      forced_parts.push_back(negate((*this)[n.a].a));
    }
  }
  if (!forced.empty()) {
    const Formula here = all_of(forced_parts);
    if (here == kFalse) return kFalse;
    return both(here, project_step(substitute(f, forced), both(context, here), open, steps));
  }
  if (vars.size() > 2 && context != kTrue && !satisfiable(context)) return kFalse;
  // Finite domains go value by value instead of truth by truth.
  std::vector<Formula> finite;
  std::vector<ValueId> values;
  for (const Formula v : vars) {
    const auto& d = domain(v);
    if (!d) continue;
    finite.push_back(v);
    values.insert(values.end(), d->begin(), d->end());
  }
  if (finite.size() > 1 && values.size() <= 2000) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    std::vector<ValueId> good;
    for (const ValueId x : values) {
      std::unordered_map<Formula, bool> truth;
      for (const Formula v : vars) truth[v] = holds(v, x);
      const Formula q = substitute(f, truth);
      if (q != kFalse && open(q)) good.push_back(x);
    }
    std::unordered_map<Formula, bool> none;
    for (const Formula v : finite) none[v] = false;
    const Formula outside = negate(in_values(values));
    const Formula rest = project_step(substitute(f, none), both(context, outside), open, steps);
    return either(in_values(good), both(outside, rest));
  }
  const Formula v = vars[0];
  const unsigned signs = polarity(f, v);
  const Formula if_true = substitute(f, {{v, true}}), if_false = substitute(f, {{v, false}});
  if (signs == 1) {
    const Formula without = project_step(if_false, context, open, steps);
    if (without == kTrue) return kTrue;
    return either(without, both(v, project_step(if_true, both(context, v), open, steps)));
  }
  if (signs == 2) {
    const Formula with = project_step(if_true, context, open, steps);
    if (with == kTrue) return kTrue;
    const Formula no = negate(v);
    return either(with, both(no, project_step(if_false, both(context, no), open, steps)));
  }
  const Formula no = negate(v);
  const Formula yes_part = both(v, project_step(if_true, both(context, v), open, steps));
  return either(yes_part, both(no, project_step(if_false, both(context, no), open, steps)));
}

// Over-approximation of a goal: every open atom takes the value that helps.
Formula JsonTheory::relax(Formula f, bool positive) {
  const FormulaNode n = (*this)[f];
  switch (n.op) {
    case Fop::kFalse:
    case Fop::kTrue: return f;
    case Fop::kVar: return n.a;
    case Fop::kNot: return negate(relax(n.a, !positive));
    case Fop::kAnd:
    case Fop::kOr: {
      std::vector<Formula> parts = lists.copy(n.a);
      for (Formula& x : parts) x = relax(x, positive);
      return n.op == Fop::kAnd ? all_of(parts) : any_of(parts);
    }
    case Fop::kOne: {
      if (!positive) return kFalse;
      std::vector<Formula> parts = lists.copy(n.a);
      for (Formula& x : parts) x = relax(x, true);
      return any_of(parts);
    }
    default: return positive ? kTrue : kFalse;
  }
}

// Calls visit(residual, item formula) for every satisfiable assignment of the variables of f.
bool JsonTheory::outcomes(Formula f, const std::vector<Formula>& known, Formula context,
                          const std::function<bool(Formula, Formula)>& visit) {
  const std::vector<Formula> vars = variables(f);
  if (vars.empty()) return f != kFalse && visit(f, context);
  Formula v = free_;
  for (const Formula x : vars) {
    if (x != free_) {
      v = x;
      break;
    }
  }
  const bool positive_first = polarity(f, v) & 1;
  for (const bool truth : {positive_first, !positive_first}) {
    const Formula q = substitute(f, {{v, truth}});
    if (q == kFalse) continue;
    Formula c = context;
    if (v == free_) {
      if (truth) c = both(context, any_of(known));
    } else {
      c = both(context, truth ? v : negate(v));
    }
    if (satisfiable(c) && outcomes(q, known, c, visit)) return true;
  }
  return false;
}

}  // namespace constrain
