#include "constrain/json_formula.hpp"

#include <algorithm>
#include <map>

namespace constrain {

namespace {
bool contains(const std::vector<Formula>& sorted, Formula f) {
  return std::binary_search(sorted.begin(), sorted.end(), f);
}
}  // namespace

Formulas::Formulas() {
  nodes_.push_back({Fop::kFalse});
  nodes_.push_back({Fop::kTrue});
}

Formula Formulas::make(Fop op, uint32_t a, uint32_t b, uint32_t c, bool has_var, bool has_uniq) {
  const uint32_t words[4] = {uint32_t(op), a, b, c};
  const uint64_t hash = hash_words(words, 4);
  const uint32_t found = set_.find(hash, [&](uint32_t id) {
    const FormulaNode& n = nodes_[id];
    return n.op == op && n.a == a && n.b == b && n.c == c;
  });
  if (found != IdSet::kMissing) return found;
  const Formula id = Formula(nodes_.size());
  nodes_.push_back({op, has_var, has_uniq, a, b, c});
  set_.add(hash, id);
  return id;
}

Formula Formulas::atom(Fop op, uint32_t a, uint32_t b, uint32_t c) {
  bool has_var = op == Fop::kVar;
  if (op == Fop::kUnevP || op == Fop::kUnevI) {
    const auto src = lists.get(b);
    const size_t width = op == Fop::kUnevP ? 2 : 3;
    for (size_t i = width - 1; i < src.size(); i += width) has_var |= nodes_[src[i]].has_var;
  }
  return make(op, a, b, c, has_var, op == Fop::kUniq);
}

Formula Formulas::connective(Fop op, std::vector<Formula> parts) {
  bool has_var = false, has_uniq = false;
  for (const Formula p : parts) {
    has_var |= nodes_[p].has_var;
    has_uniq |= nodes_[p].has_uniq;
  }
  return make(op, lists.intern(parts), 0, 0, has_var, has_uniq);
}

std::vector<Formula> Formulas::conjuncts(Formula f) const {
  if (nodes_[f].op == Fop::kAnd) return parts(f);
  return {f};
}

Formula Formulas::both(Formula a, Formula b) {
  const Formula p[2] = {a, b};
  return all_of(p);
}

Formula Formulas::either(Formula a, Formula b) {
  const Formula p[2] = {a, b};
  return any_of(p);
}

Formula Formulas::all_of(std::span<const Formula> given) {
  std::vector<Formula> flat, tables, work(given.begin(), given.end());
  while (!work.empty()) {
    const Formula f = work.back();
    work.pop_back();
    const FormulaNode& n = nodes_[f];
    if (f == kTrue) continue;
    if (f == kFalse) return kFalse;
    if (n.op == Fop::kAnd) {
      const auto inner = lists.get(n.a);
      work.insert(work.end(), inner.begin(), inner.end());
    } else if (n.op == Fop::kTable && n.b == 0 && n.c == 0) {
      tables.push_back(f);
    } else {
      flat.push_back(f);
    }
  }
  if (!tables.empty()) {
    std::sort(tables.begin(), tables.end());
    tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
    const Formula merged = tables.size() == 1 ? tables[0] : merge_tables(tables);
    if (merged == kFalse) return kFalse;
    if (merged != kTrue) flat.push_back(merged);
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const Formula f : flat)
    if (nodes_[f].op == Fop::kNot && contains(flat, nodes_[f].a)) return kFalse;
  if (flat.empty()) return kTrue;
  if (flat.size() == 1) return flat[0];
  return connective(Fop::kAnd, std::move(flat));
}

Formula Formulas::any_of(std::span<const Formula> given) {
  std::vector<Formula> flat, work(given.begin(), given.end());
  while (!work.empty()) {
    const Formula f = work.back();
    work.pop_back();
    if (f == kFalse) continue;
    if (f == kTrue) return kTrue;
    if (nodes_[f].op == Fop::kOr) {
      const auto inner = lists.get(nodes_[f].a);
      work.insert(work.end(), inner.begin(), inner.end());
    } else {
      flat.push_back(f);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const Formula f : flat)
    if (nodes_[f].op == Fop::kNot && contains(flat, nodes_[f].a)) return kTrue;
  if (flat.size() > 1 && flat.size() <= 40) {
    // Absorption: x or (x and y) is x.
    std::vector<Formula> kept;
    for (const Formula f : flat) {
      bool absorbed = false;
      if (nodes_[f].op == Fop::kAnd)
        for (const Formula p : lists.get(nodes_[f].a)) absorbed |= contains(flat, p);
      if (!absorbed) kept.push_back(f);
    }
    flat = std::move(kept);
  }
  if (flat.empty()) return kFalse;
  if (flat.size() == 1) return flat[0];
  return connective(Fop::kOr, std::move(flat));
}

Formula Formulas::negate(Formula f) {
  if (f == kTrue) return kFalse;
  if (f == kFalse) return kTrue;
  if (nodes_[f].op == Fop::kNot) return nodes_[f].a;
  return make(Fop::kNot, f, 0, 0, nodes_[f].has_var, nodes_[f].has_uniq);
}

Formula Formulas::exactly_one(std::span<const Formula> given) {
  std::map<Formula, int> count;
  int certain = 0;
  for (const Formula f : given) {
    if (f == kTrue) ++certain;
    else if (f != kFalse) ++count[f];
  }
  if (certain > 1) return kFalse;
  std::vector<Formula> conj, once;
  for (const auto& [f, n] : count) {
    if (n > 1 || certain) conj.push_back(negate(f));
    else once.push_back(f);
  }
  if (certain) return all_of(conj);
  if (once.empty()) return kFalse;
  conj.push_back(once.size() == 1 ? once[0] : connective(Fop::kOne, once));
  return all_of(conj);
}

Formula Formulas::in_values(std::vector<uint32_t> values) {
  if (values.empty()) return kFalse;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return atom(Fop::kInValues, lists.intern(values));
}

Formula Formulas::unevaluated_p(Formula f, const std::vector<uint32_t>& sources) {
  if (f == kTrue) return kTrue;
  std::vector<uint32_t> kept;
  for (size_t i = 0; i < sources.size(); i += 2) {
    const uint32_t keys = sources[i], condition = sources[i + 1];
    if (condition == kFalse || keys == 0) continue;
    if (condition == kTrue && keys == 1) return kTrue;
    bool known = false;
    for (size_t k = 0; k < kept.size(); k += 2)
      known |= kept[k] == keys && kept[k + 1] == condition;
    if (!known) kept.insert(kept.end(), {keys, condition});
  }
  return atom(Fop::kUnevP, f, lists.intern(kept));
}

Formula Formulas::unevaluated_i(Formula f, const std::vector<uint32_t>& sources) {
  if (f == kTrue) return kTrue;
  std::vector<uint32_t> kept;
  for (size_t i = 0; i < sources.size(); i += 3) {
    const uint32_t kind = sources[i], x = sources[i + 1], condition = sources[i + 2];
    if (condition == kFalse) continue;
    if (condition == kTrue && kind == 1) return kTrue;
    bool known = false;
    for (size_t k = 0; k < kept.size(); k += 3)
      known |= kept[k] == kind && kept[k + 1] == x && kept[k + 2] == condition;
    if (!known) kept.insert(kept.end(), {kind, x, condition});
  }
  return atom(Fop::kUnevI, f, lists.intern(kept));
}

Formula Formulas::substitute(Formula f, const std::unordered_map<Formula, bool>& truth) {
  if (!has_var(f) || truth.empty()) return f;
  Memo memo;
  return substitute(f, truth, memo);
}

Formula Formulas::substitute(Formula f, const std::unordered_map<Formula, bool>& truth,
                             Memo& memo) {
  if (!has_var(f)) return f;
  const auto leaf = [&](Formula a) -> Formula {
    const FormulaNode n = nodes_[a];
    if (n.op == Fop::kVar) {
      const auto it = truth.find(n.a);
      return it == truth.end() ? a : it->second ? kTrue : kFalse;
    }
    if (!n.has_var) return a;
    std::vector<uint32_t> src = lists.copy(n.b);
    const size_t width = n.op == Fop::kUnevP ? 2 : 3;
    for (size_t i = width - 1; i < src.size(); i += width)
      src[i] = substitute(src[i], truth, memo);
    return n.op == Fop::kUnevP ? unevaluated_p(n.a, src) : unevaluated_i(n.a, src);
  };
  return rebuild(f, leaf, memo);
}

std::vector<Formula> Formulas::variables(Formula f) const {
  std::vector<Formula> out;
  if (!has_var(f)) return out;
  for_each_atom(f, [&](Formula a) {
    if (nodes_[a].op == Fop::kVar) out.push_back(nodes_[a].a);
  });
  std::sort(out.begin(), out.end());
  return out;
}

unsigned Formulas::polarity(Formula f, Formula v) const {
  unsigned out = 0;
  std::vector<std::pair<Formula, bool>> stack{{f, true}};
  std::unordered_map<uint64_t, bool> seen;
  while (!stack.empty()) {
    const auto [g, positive] = stack.back();
    stack.pop_back();
    if (!has_var(g) || !seen.try_emplace(pack(g, positive), true).second) continue;
    const FormulaNode& n = nodes_[g];
    switch (n.op) {
      case Fop::kVar:
        if (n.a == v) out |= positive ? 1 : 2;
        break;
      case Fop::kAnd:
      case Fop::kOr:
        for (const Formula x : lists.get(n.a)) stack.push_back({x, positive});
        break;
      case Fop::kOne:
        for (const Formula x : lists.get(n.a)) {
          stack.push_back({x, true});
          stack.push_back({x, false});
        }
        break;
      case Fop::kNot:
        stack.push_back({n.a, !positive});
        break;
      case Fop::kUnevP:
      case Fop::kUnevI: {
        const auto src = lists.get(n.b);
        const size_t width = n.op == Fop::kUnevP ? 2 : 3;
        for (size_t i = width - 1; i < src.size(); i += width) stack.push_back({src[i], positive});
        break;
      }
      default:
        break;
    }
  }
  return out;
}

}  // namespace constrain
