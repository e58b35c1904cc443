// Hash-consed formulas over number atoms: construction and simplification.
#include "number_formula.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "constrain/errors.hpp"
#include "number_natural.hpp"

namespace constrain {

bool is_multiple(const Decimal& value, const Decimal& divisor) {
  if (value.is_zero()) return true;
  // Without trailing zeros the digits have no factor ten to spare for a finer exponent.
  const int64_t shift = value.exponent() - divisor.exponent();
  if (shift < 0) return false;
  if (divisor.digits() == "1") return true;
  if (shift + static_cast<int64_t>(value.digits().size()) <= 18 && divisor.digits().size() <= 18) {
    uint64_t v = std::stoull(value.digits());
    for (int64_t i = 0; i < shift; ++i) v *= 10;
    return v % std::stoull(divisor.digits()) == 0;
  }
  // Q divides D * 10^shift if and only if Q / gcd(Q, D) divides 10^shift.
  const Natural q = Natural::from_digits(divisor.digits());
  const Natural d = Natural::from_digits(value.digits());
  Natural rest;
  Natural left = q.divided(Natural::gcd(q, d), rest);
  const int64_t twos = left.strip_factor(2);
  const int64_t fives = left.strip_factor(5);
  return left.is_one() && std::max(twos, fives) <= shift;
}

NumberFormulas::NumberFormulas() {
  nodes_.push_back({NumberOp::kFalse, false, false, 0, 0});
  nodes_.push_back({NumberOp::kTrue, false, false, 0, 0});
}

NumberValue NumberFormulas::value(const Decimal& decimal) {
  const size_t key = decimal.hash();
  const auto [first, last] = value_index_.equal_range(key);
  for (auto it = first; it != last; ++it) {
    if (values_[it->second] == decimal) return it->second;
  }
  const auto id = static_cast<NumberValue>(values_.size());
  values_.push_back(decimal);
  value_index_.emplace(key, id);
  if (decimal.digits().size() > 15) value_bytes_ += decimal.digits().size() + 1;
  return id;
}

void NumberFormulas::check_constant(const Decimal& decimal) const {
  if (decimal.is_zero()) return;
  if (decimal.magnitude() > NumberPool::kMaxConstantMagnitude ||
      decimal.exponent() < -NumberPool::kMaxConstantMagnitude) {
    throw LimitError("a number constant is beyond 10^(+-10^7): " + decimal.to_string(),
                     "number_exponent");
  }
}

NumberId NumberFormulas::intern(NumberOp op, bool strict, uint32_t a,
                                std::span<const uint32_t> args) {
  std::u32string key;
  key.reserve(args.size() + 2);
  key.push_back(static_cast<char32_t>(op) << 1 | (strict ? 1u : 0u));
  if (args.empty()) key.push_back(static_cast<char32_t>(a));
  for (const uint32_t arg : args) key.push_back(static_cast<char32_t>(arg));
  const auto id = static_cast<NumberId>(nodes_.size());
  const auto [it, fresh] = index_.emplace(std::move(key), id);
  if (!fresh) return it->second;
  index_bytes_ += it->first.capacity() * sizeof(char32_t);
  NumberNode node{op, strict, op == NumberOp::kLexical, a, 0};
  if (!args.empty()) {
    node.a = static_cast<uint32_t>(args_.size());
    node.count = static_cast<uint32_t>(args.size());
    args_.insert(args_.end(), args.begin(), args.end());
    if (op == NumberOp::kAnd || op == NumberOp::kOne) {
      for (const NumberId child : args) node.lexical = node.lexical || nodes_[child].lexical;
    }
  } else if (op == NumberOp::kNot) {
    node.lexical = nodes_[a].lexical;
  }
  nodes_.push_back(node);
  return id;
}

NumberId NumberFormulas::bound(NumberOp op, NumberValue value, bool strict) {
  check_constant(values_[value]);
  return intern(op, strict, value, {});
}

NumberId NumberFormulas::multiple(NumberValue divisor) {
  const Decimal absolute = values_[divisor].absolute();
  if (absolute.is_zero()) return kNoNumber;
  if (absolute.exponent() > NumberPool::kMaxDivisorExponent ||
      absolute.exponent() < -NumberPool::kMaxDivisorExponent ||
      static_cast<int64_t>(absolute.digits().size()) > NumberPool::kMaxDivisorDigits) {
    throw UnsupportedFeature("multipleOf " + absolute.to_string().substr(0, 60) +
                             ": a divisor with an exponent beyond 2000 or over 400 digits");
  }
  return intern(NumberOp::kMultiple, false, value(absolute), {});
}

NumberId NumberFormulas::lexical() { return intern(NumberOp::kLexical, false, 0, {}); }

NumberId NumberFormulas::one_of(std::vector<NumberValue> values) {
  for (const NumberValue v : values) check_constant(values_[v]);
  std::sort(values.begin(), values.end(), [&](auto a, auto b) { return less(a, b); });
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.empty()) return kNoNumber;
  return intern(NumberOp::kOneOf, false, 0, values);
}

NumberId NumberFormulas::lnot(NumberId id) {
  if (id <= kAnyNumber) return id ^ 1u;
  const NumberNode node = nodes_[id];
  switch (node.op) {
    case NumberOp::kNot: return node.a;
    case NumberOp::kMinimum: return intern(NumberOp::kMaximum, !node.strict, node.a, {});
    case NumberOp::kMaximum: return intern(NumberOp::kMinimum, !node.strict, node.a, {});
    default: return intern(NumberOp::kNot, false, id, {});
  }
}

NumberId NumberFormulas::lor(std::span<const NumberId> ids) {
  std::vector<NumberId> negated;
  negated.reserve(ids.size());
  for (const NumberId id : ids) negated.push_back(lnot(id));
  return lnot(land(negated));
}

NumberId NumberFormulas::exactly_one(std::span<const NumberId> ids) {
  std::map<NumberId, size_t> counts;
  for (const NumberId id : ids) {
    if (id != kNoNumber) ++counts[id];
  }
  // What occurs twice must not hold; if something always holds, nothing else may.
  std::vector<NumberId> all;
  std::vector<NumberId> once;
  for (const auto& [id, count] : counts) {
    if (id == kAnyNumber) continue;
    if (count > 1) all.push_back(lnot(id));
    else once.push_back(id);
  }
  const auto always = counts.find(kAnyNumber);
  if (always != counts.end()) {
    if (always->second > 1) return kNoNumber;
    for (const NumberId id : once) all.push_back(lnot(id));
    return land(all);
  }
  if (once.empty()) return kNoNumber;
  all.push_back(once.size() == 1 ? once[0] : intern(NumberOp::kOne, false, 0, once));
  return land(all);
}

// A conjunction being simplified: at most one of each mergeable kind, and the rest.
struct NumberFormulas::Conjunction {
  std::optional<NumberNode> low, high;
  std::optional<std::vector<NumberValue>> included;
  std::vector<NumberValue> excluded;
  std::vector<NumberId> multiples;  // kMultiple
  std::vector<NumberId> others;
};

// False: the conjunction is empty.
bool NumberFormulas::add(Conjunction& all, NumberId id) {
  const NumberNode node = nodes_[id];
  const auto by_value = [&](NumberValue a, NumberValue b) { return less(a, b); };
  switch (node.op) {
    case NumberOp::kFalse: return false;
    case NumberOp::kTrue: return true;
    case NumberOp::kMinimum:
      if (!all.low || less(all.low->a, node.a) || (all.low->a == node.a && node.strict)) {
        all.low = node;
      }
      return true;
    case NumberOp::kMaximum:
      if (!all.high || less(node.a, all.high->a) || (all.high->a == node.a && node.strict)) {
        all.high = node;
      }
      return true;
    case NumberOp::kMultiple: all.multiples.push_back(id); return true;
    case NumberOp::kOneOf: {
      const auto values = args(node);
      if (!all.included) {
        all.included.emplace(values.begin(), values.end());
      } else {
        std::vector<NumberValue> both;
        std::set_intersection(all.included->begin(), all.included->end(), values.begin(),
                              values.end(), std::back_inserter(both), by_value);
        all.included = std::move(both);
      }
      return !all.included->empty();
    }
    case NumberOp::kNot:
      if (nodes_[node.a].op == NumberOp::kOneOf) {
        const auto values = args(nodes_[node.a]);
        all.excluded.insert(all.excluded.end(), values.begin(), values.end());
        return true;
      }
      all.others.push_back(id);
      return true;
    default: all.others.push_back(id); return true;
  }
}

// Drops what follows from the rest; false: contradictory.
bool NumberFormulas::absorb(Conjunction& all) {
  auto& multiples = all.multiples;
  std::vector<NumberId> kept;
  for (size_t i = 0; i < multiples.size(); ++i) {
    const Decimal& mine = values_[nodes_[multiples[i]].a];
    const bool follows = std::any_of(multiples.begin(), multiples.end(), [&](NumberId other) {
      return other != multiples[i] && is_multiple(values_[nodes_[other].a], mine);
    });
    if (!follows) kept.push_back(multiples[i]);
  }
  multiples = std::move(kept);
  std::vector<NumberId> direct = all.others;
  direct.insert(direct.end(), multiples.begin(), multiples.end());
  std::sort(direct.begin(), direct.end());
  const auto present = [&](NumberId id) {
    return std::binary_search(direct.begin(), direct.end(), id);
  };
  std::vector<NumberId> others;
  for (const NumberId id : all.others) {
    const NumberNode node = nodes_[id];
    if (present(lnot(id))) return false;
    if (node.op != NumberOp::kNot) {
      others.push_back(id);
      continue;
    }
    const NumberNode inner = nodes_[node.a];
    if (inner.op == NumberOp::kMultiple) {
      const bool contradicts = std::any_of(multiples.begin(), multiples.end(), [&](NumberId m) {
        return is_multiple(values_[nodes_[m].a], values_[inner.a]);
      });
      if (contradicts) return false;
    }
    if (inner.op == NumberOp::kAnd) {  // not (x and y), where not x is present, follows
      const auto children = args(inner);
      const bool follows = std::any_of(children.begin(), children.end(), [&](NumberId child) {
        const NumberNode& c = nodes_[child];
        // Only an existing negation can be present.
        if (c.op == NumberOp::kNot) return present(c.a);
        const auto it = index_.find(std::u32string{
            static_cast<char32_t>(NumberOp::kNot) << 1, static_cast<char32_t>(child)});
        return it != index_.end() && present(it->second);
      });
      if (follows) continue;
    }
    others.push_back(id);
  }
  all.others = std::move(others);
  return true;
}

// With an enumeration, everything that is not about spelling is decided value by value.
bool NumberFormulas::filter(Conjunction& all) {
  std::vector<NumberId> tests = all.multiples;
  std::vector<NumberId> others;
  for (const NumberId id : all.others) (nodes_[id].lexical ? others : tests).push_back(id);
  const auto low = all.low;
  const auto high = all.high;
  std::vector<NumberValue> kept;
  for (const NumberValue v : *all.included) {
    if (low && (less(v, low->a) || (v == low->a && low->strict))) continue;
    if (high && (less(high->a, v) || (v == high->a && high->strict))) continue;
    if (std::find(all.excluded.begin(), all.excluded.end(), v) != all.excluded.end()) continue;
    const bool passes = std::all_of(tests.begin(), tests.end(), [&](NumberId id) {
      return evaluate(id, values_[v], false);
    });
    if (passes) kept.push_back(v);
  }
  Conjunction out;
  out.included = std::move(kept);
  out.others = std::move(others);
  all = std::move(out);
  return !all.included->empty();
}

NumberId NumberFormulas::land(std::span<const NumberId> ids) {
  if (ids.size() == 1) return ids[0];
  std::vector<NumberId> flat;
  for (const NumberId id : ids) {
    if (id == kNoNumber) return kNoNumber;
    const NumberNode node = nodes_[id];
    if (node.op == NumberOp::kAnd) {
      const auto children = args(node);
      flat.insert(flat.end(), children.begin(), children.end());
    } else if (id != kAnyNumber) {
      flat.push_back(id);
    }
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.empty()) return kAnyNumber;
  if (flat.size() == 1) return flat[0];

  Conjunction all;
  for (const NumberId id : flat) {
    if (!add(all, id)) return kNoNumber;
  }
  if (!absorb(all)) return kNoNumber;
  if (!all.included && all.low && all.high) {
    const NumberValue a = all.low->a;
    const NumberValue b = all.high->a;
    if (less(b, a) || (a == b && (all.low->strict || all.high->strict))) return kNoNumber;
    if (a == b) all.included.emplace({a});
  }
  if (all.included && !filter(all)) return kNoNumber;

  std::vector<NumberId> out = all.others;
  out.insert(out.end(), all.multiples.begin(), all.multiples.end());
  if (all.low) out.push_back(bound(NumberOp::kMinimum, all.low->a, all.low->strict));
  if (all.high) out.push_back(bound(NumberOp::kMaximum, all.high->a, all.high->strict));
  if (all.included) out.push_back(one_of(*all.included));
  if (!all.excluded.empty()) {
    // Excluding what the bounds exclude anyway would only make formulas differ.
    std::erase_if(all.excluded, [&](NumberValue v) {
      return (all.low && (less(v, all.low->a) || (v == all.low->a && all.low->strict))) ||
             (all.high && (less(all.high->a, v) || (v == all.high->a && all.high->strict)));
    });
    if (!all.excluded.empty()) out.push_back(lnot(one_of(all.excluded)));
  }
  std::sort(out.begin(), out.end());
  if (out.empty()) return kAnyNumber;
  if (out.size() == 1) return out[0];
  return intern(NumberOp::kAnd, false, 0, out);
}

std::vector<NumberId> NumberFormulas::reachable(NumberId id) const {
  std::vector<NumberId> seen{id};
  std::vector<NumberId> todo{id};
  std::unordered_map<NumberId, bool> known{{id, true}};
  const auto visit = [&](NumberId child) {
    if (!known.emplace(child, true).second) return;
    seen.push_back(child);
    todo.push_back(child);
  };
  while (!todo.empty()) {
    const NumberNode& node = nodes_[todo.back()];
    todo.pop_back();
    if (node.op == NumberOp::kNot) visit(node.a);
    if (node.op == NumberOp::kAnd || node.op == NumberOp::kOne) {
      for (const NumberId child : args(node)) visit(child);
    }
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

bool NumberFormulas::evaluate(NumberId id, const Decimal& value, bool lexical) const {
  const std::vector<NumberId> order = reachable(id);
  std::unordered_map<NumberId, bool> truth;
  for (const NumberId at : order) {
    const NumberNode& node = nodes_[at];
    bool t = false;
    switch (node.op) {
      case NumberOp::kFalse: break;
      case NumberOp::kTrue: t = true; break;
      case NumberOp::kMinimum: {
        const int order_of = value.compare(values_[node.a]);
        t = order_of > 0 || (order_of == 0 && !node.strict);
        break;
      }
      case NumberOp::kMaximum: {
        const int order_of = value.compare(values_[node.a]);
        t = order_of < 0 || (order_of == 0 && !node.strict);
        break;
      }
      case NumberOp::kMultiple: t = is_multiple(value, values_[node.a]); break;
      case NumberOp::kLexical: t = lexical; break;
      case NumberOp::kOneOf: {
        const auto values = args(node);
        const auto it = std::lower_bound(
            values.begin(), values.end(), value,
            [&](NumberValue v, const Decimal& d) { return values_[v] < d; });
        t = it != values.end() && values_[*it] == value;
        break;
      }
      case NumberOp::kAnd:
        t = true;
        for (const NumberId child : args(node)) t = t && truth[child];
        break;
      case NumberOp::kOne: {
        size_t count = 0;
        for (const NumberId child : args(node)) count += truth[child] ? 1 : 0;
        t = count == 1;
        break;
      }
      case NumberOp::kNot: t = !truth[node.a]; break;
    }
    truth[at] = t;
  }
  return truth[id];
}

size_t NumberFormulas::bytes() const {
  constexpr size_t kNode = 48;
  return values_.capacity() * sizeof(Decimal) + value_bytes_ +
         nodes_.capacity() * sizeof(NumberNode) + args_.capacity() * sizeof(uint32_t) +
         index_bytes_ + (index_.size() + value_index_.size()) * kNode +
         (index_.bucket_count() + value_index_.bucket_count()) * sizeof(void*);
}

}  // namespace constrain
