// Value formulas specialised to one type, and constants.
#include <algorithm>

#include "constrain/errors.hpp"
#include "constrain/json_theory.hpp"

namespace constrain {

// ------------------------------------------------------------------ one type

bool JsonTheory::literal(Formula f, Type type) {
  Memo memo;
  const auto leaf = [&](Formula a) { return typed_leaf(a, type); };
  return rebuild(f, leaf, memo) == kTrue;
}

// For a type without further structure: atoms of other types hold, the type's own atom decides.
Formula JsonTheory::typed_leaf(Formula a, Type type) {
  const FormulaNode n = (*this)[a];
  switch (n.op) {
    case Fop::kType: return n.a == uint32_t(type) ? kTrue : kFalse;
    case Fop::kRef: {
      const uint64_t key = pack(uint32_t(type), n.a);
      if (!typing_.insert(key).second)
        throw Error("a $ref leads back to itself without consuming anything");
      Memo memo;
      const Formula f = load_ref(n.a);
      const Formula r = type == Type::kArray || type == Type::kObject
                            ? typed(f, type)
                            : rebuild(f, [&](Formula x) { return typed_leaf(x, type); }, memo);
      typing_.erase(key);
      return r;
    }
    case Fop::kInValues: return values_typed(n.a, type);
    case Fop::kObjectIs:
    case Fop::kArrayIs: {
      if ((n.op == Fop::kObjectIs) != (type == Type::kObject)) return kTrue;
      if (type != Type::kObject && type != Type::kArray) return kTrue;
      // Conditions of unevaluated* are value formulas until here.
      Memo memo;
      const auto leaf = [&](Formula b) -> Formula {
        const FormulaNode m = (*this)[b];
        if (m.op != Fop::kUnevP && m.op != Fop::kUnevI) return b;
        std::vector<uint32_t> src = lists.copy(m.b);
        const size_t width = m.op == Fop::kUnevP ? 2 : 3;
        for (size_t i = width - 1; i < src.size(); i += width) src[i] = typed(src[i], type);
        return m.op == Fop::kUnevP ? unevaluated_p(m.a, src) : unevaluated_i(m.a, src);
      };
      return rebuild(n.a, leaf, memo);
    }
    default: return kTrue;
  }
}

Formula JsonTheory::typed(Formula f, Type type) {
  if (f <= kTrue) return f;
  FlatMap& memo_table = typed_memo_[type == Type::kObject];
  const uint32_t known = memo_table.find(f);
  if (known != FlatMap::kMissing) return known;
  Memo memo;
  const Formula r = rebuild(f, [&](Formula a) { return typed_leaf(a, type); }, memo);
  memo_table.set(f, r);
  return r;
}

LexId JsonTheory::string_language(Formula f) {
  if (f <= kTrue) return f == kTrue ? LexicalPool::kAnything : LexicalPool::kNothing;
  const uint32_t known = string_memo_.find(f);
  if (known != FlatMap::kMissing) return known;
  const FormulaNode n = (*this)[f];
  LexId r = LexicalPool::kAnything;
  switch (n.op) {
    case Fop::kNot: r = pool_.negate(string_language(n.a)); break;
    case Fop::kAnd:
    case Fop::kOr:
    case Fop::kOne: {
      std::vector<LexId> parts;
      for (const Formula x : lists.copy(n.a)) parts.push_back(string_language(x));
      r = n.op == Fop::kAnd  ? pool_.all_of(parts)
          : n.op == Fop::kOr ? pool_.any_of(parts)
                             : pool_.exactly_one(parts);
      break;
    }
    case Fop::kType:
      r = n.a == uint32_t(Type::kString) ? LexicalPool::kAnything : LexicalPool::kNothing;
      break;
    case Fop::kRef: {
      const uint64_t key = pack(uint32_t(Type::kString), n.a);
      if (!typing_.insert(key).second)
        throw Error("a $ref leads back to itself without consuming anything");
      r = string_language(load_ref(n.a));
      typing_.erase(key);
      break;
    }
    case Fop::kInValues: {
      std::vector<std::vector<uint32_t>> texts;
      for (const ValueId v : lists.copy(n.a))
        if (v != kUnknownValue && values_[v].kind == ValueKind::kString)
          texts.push_back(pool_.text_code_points(values_[v].a));
      r = pool_.strings(pool_.sets().from(std::move(texts)));
      break;
    }
    case Fop::kStringIn: r = n.a; break;
    default: break;
  }
  string_memo_.set(f, r);
  return r;
}

NumberId JsonTheory::number_language(Formula f) {
  if (f <= kTrue) return f == kTrue ? kAnyNumber : kNoNumber;
  const uint32_t known = number_memo_.find(f);
  if (known != FlatMap::kMissing) return known;
  const FormulaNode n = (*this)[f];
  NumberId r = kAnyNumber;
  switch (n.op) {
    case Fop::kNot: r = numbers_.lnot(number_language(n.a)); break;
    case Fop::kAnd:
    case Fop::kOr:
    case Fop::kOne: {
      std::vector<NumberId> parts;
      for (const Formula x : lists.copy(n.a)) parts.push_back(number_language(x));
      r = n.op == Fop::kAnd  ? numbers_.land(parts)
          : n.op == Fop::kOr ? numbers_.lor(parts)
                             : numbers_.exactly_one(parts);
      break;
    }
    case Fop::kType: r = n.a == uint32_t(Type::kNumber) ? kAnyNumber : kNoNumber; break;
    case Fop::kRef: {
      const uint64_t key = pack(uint32_t(Type::kNumber), n.a);
      if (!typing_.insert(key).second)
        throw Error("a $ref leads back to itself without consuming anything");
      r = number_language(load_ref(n.a));
      typing_.erase(key);
      break;
    }
    case Fop::kInValues: {
      std::vector<NumberValue> numbers;
      for (const ValueId v : lists.copy(n.a))
        if (v != kUnknownValue && values_[v].kind == ValueKind::kNumber)
          numbers.push_back(values_[v].a);
      r = numbers.empty() ? kNoNumber : numbers_.one_of(std::move(numbers));
      break;
    }
    case Fop::kNumberIn: r = n.a; break;
    default: break;
  }
  number_memo_.set(f, r);
  return r;
}

Formula JsonTheory::values_typed(uint32_t list, Type type) {
  std::vector<Formula> options;
  for (const ValueId v : lists.copy(list)) {
    if (v == kUnknownValue) continue;
    const Value value = values_[v];
    if (value.kind <= ValueKind::kFalse) {
      if (uint32_t(value.kind) == uint32_t(type)) return kTrue;
    } else if (value.kind == ValueKind::kArray && type == Type::kArray) {
      const std::vector<uint32_t> items = lists.copy(value.a);
      std::vector<Formula> parts{min_i(uint32_t(items.size())),
                                 atom(Fop::kMaxI, uint32_t(items.size()))};
      for (size_t i = 0; i < items.size(); ++i)
        parts.push_back(at(uint32_t(i), in_values({items[i]})));
      options.push_back(all_of(parts));
    } else if (value.kind == ValueKind::kObject && type == Type::kObject) {
      const std::vector<uint32_t> flat = lists.copy(value.a);
      std::vector<std::pair<TextId, Formula>> properties;
      std::vector<TextId> required;
      for (size_t i = 0; i < flat.size(); i += 2) {
        properties.push_back({flat[i], in_values({flat[i + 1]})});
        required.push_back(flat[i]);
      }
      const uint32_t n = uint32_t(flat.size() / 2);
      options.push_back(table_from(std::move(properties), {}, std::move(required), n, n));
    }
  }
  return any_of(options);
}

// ------------------------------------------------------------------ constants

bool JsonTheory::holds(Formula f, ValueId v) {
  if (f <= kTrue) return f == kTrue;
  if (v == kUnknownValue) return false;
  const uint64_t key = pack(f, v);
  const uint32_t known = holds_memo_.find(key);
  if (known != FlatMap::kMissing) return known;
  const Value value = values_[v];
  bool r = false;
  switch (value.kind) {
    case ValueKind::kNull:
    case ValueKind::kTrue:
    case ValueKind::kFalse: r = literal(f, Type(uint32_t(value.kind))); break;
    case ValueKind::kNumber: r = numbers_.holds(number_language(f), value.a); break;
    case ValueKind::kString: r = pool_.contains(string_language(f), value.a); break;
    case ValueKind::kArray: {
      Formula g = typed(f, Type::kArray);
      std::vector<uint32_t> before;
      for (const ValueId x : lists.copy(value.a)) {
        const Formula p = after_item(g, in_values(before));
        std::unordered_map<Formula, bool> truth;
        for (const Formula y : variables(p)) truth[y] = holds(y, x);
        g = substitute(p, truth);
        before.push_back(x);
      }
      r = done(g);
      break;
    }
    case ValueKind::kObject: {
      Formula g = typed(f, Type::kObject);
      const std::vector<uint32_t> flat = lists.copy(value.a);
      for (size_t i = 0; i < flat.size(); i += 2) {
        const Formula p = after_key(g, {false, flat[i]});
        std::unordered_map<Formula, bool> truth;
        for (const Formula y : variables(p)) truth[y] = holds(y, flat[i + 1]);
        g = substitute(p, truth);
      }
      r = done(g);
      break;
    }
  }
  holds_memo_.set(key, r);
  return r;
}

// A finite superset of the values of f, where a conjunct is an enum or a constant.
std::optional<std::vector<ValueId>> JsonTheory::candidates(Formula f, int depth) {
  const FormulaNode n = (*this)[f];
  if (depth > 20) return std::nullopt;
  switch (n.op) {
    case Fop::kFalse: return std::vector<ValueId>{};
    case Fop::kInValues: return lists.copy(n.a);
    case Fop::kRef: return candidates(load_ref(n.a), depth + 1);
    case Fop::kAnd:
      for (const Formula x : lists.copy(n.a))
        if (auto c = candidates(x, depth + 1)) return c;
      return std::nullopt;
    case Fop::kOr: {
      std::vector<ValueId> all;
      for (const Formula x : lists.copy(n.a)) {
        const auto c = candidates(x, depth + 1);
        if (!c) return std::nullopt;
        all.insert(all.end(), c->begin(), c->end());
      }
      return all;
    }
    default: return std::nullopt;
  }
}

std::optional<std::vector<ValueId>> JsonTheory::enumerate(Formula f, size_t cap) {
  const LimitScope unlimited(*this, kNoHeight);
  // A recursive schema asks about itself; whoever asks again gets no list.
  if (!enumerating_.insert(f).second) return std::nullopt;
  struct Leave {
    std::unordered_set<Formula>& open;
    Formula f;
    ~Leave() { open.erase(f); }
  } leave{enumerating_, f};
  if (enumerating_.size() > kMaxEnumerations) return std::nullopt;
  std::vector<ValueId> out;
  const auto finish = [&]() -> std::optional<std::vector<ValueId>> {
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (out.size() > cap) return std::nullopt;
    return out;
  };
  if (const auto c = candidates(f, 0)) {
    for (const ValueId v : *c)
      if (holds(f, v)) out.push_back(v);
    return finish();
  }
  for (const Type type : kTypes) {
    switch (type) {
      case Type::kNull:
      case Type::kTrue:
      case Type::kFalse:
        if (literal(f, type)) out.push_back(ValueId(type));
        break;
      case Type::kNumber: {
        const NumberId g = number_language(f);
        if (g == kNoNumber) break;
        std::vector<NumberValue> numbers;
        if (g == kAnyNumber || !numbers_.enumerate(g, cap, numbers)) return std::nullopt;
        for (const NumberValue x : numbers) out.push_back(value(ValueKind::kNumber, x));
        break;
      }
      case Type::kString: {
        const LexId g = string_language(f);
        std::vector<std::vector<uint32_t>> texts;
        if (!pool_.enumerate(g, cap, texts)) return std::nullopt;
        for (const auto& t : texts) out.push_back(value(ValueKind::kString, pool_.text(t)));
        break;
      }
      case Type::kArray: {
        const Formula g = typed(f, type);
        if (g == kTrue) return std::nullopt;
        if (!array_open(g, 0)) break;
        const auto arrays = enumerate_arrays(g, cap);
        if (!arrays) return std::nullopt;
        out.insert(out.end(), arrays->begin(), arrays->end());
        break;
      }
      case Type::kObject: {
        const Formula g = typed(f, type);
        if (g == kTrue) return std::nullopt;
        if (!object_open(g, StringSets::kEmpty)) break;
        return std::nullopt;
      }
    }
    if (out.size() > cap) return std::nullopt;
  }
  return finish();
}

std::optional<std::vector<ValueId>> JsonTheory::enumerate_arrays(Formula start, size_t cap) {
  std::vector<ValueId> out;
  std::vector<std::pair<Formula, std::vector<uint32_t>>> stack{{start, {}}};
  size_t steps = 0;
  while (!stack.empty()) {
    auto [g, items] = std::move(stack.back());
    stack.pop_back();
    if (++steps > cap + 50 || g == kTrue) return std::nullopt;
    if (done(g)) out.push_back(value(ValueKind::kArray, lists.intern(items)));
    if (out.size() > cap) return std::nullopt;
    const Formula p = after_item(g, in_values(items));
    std::vector<uint32_t> sorted = items;
    std::sort(sorted.begin(), sorted.end());
    const uint32_t seen = lists.intern(sorted);
    const Formula goal = project(p, [&](Formula q) { return array_open(q, seen); });
    if (goal == kFalse) continue;
    const auto next = enumerate(goal, cap);
    if (!next) return std::nullopt;
    for (const ValueId v : *next) {
      std::unordered_map<Formula, bool> truth;
      for (const Formula y : variables(p)) truth[y] = holds(y, v);
      const Formula q = substitute(p, truth);
      if (q == kFalse) continue;
      auto longer = items;
      longer.push_back(v);
      stack.push_back({q, std::move(longer)});
    }
  }
  return out;
}

const std::optional<std::vector<ValueId>>& JsonTheory::domain(Formula f) {
  const auto it = domain_memo_.find(f);
  if (it != domain_memo_.end()) return it->second;
  auto d = (*this)[f].op == Fop::kInValues
               ? std::optional<std::vector<ValueId>>(lists.copy((*this)[f].a))
               : enumerate(f, 64);
  return domain_memo_[f] = std::move(d);
}

}  // namespace constrain
