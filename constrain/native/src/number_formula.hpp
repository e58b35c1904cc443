// Hash-consed formulas over number atoms.  Internal to the number languages.
//
// Connectives are AND, exactly-one and NOT only: an OR is the negation of an AND of negations, and
// the negation of a bound is the opposite bound, so that one set of simplifications serves all.
// Children have smaller ids than their parents, so a formula is evaluated by one pass over its
// nodes in ascending order, without recursion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "constrain/numbers.hpp"

namespace constrain {

enum class NumberOp : uint8_t {
  kFalse, kTrue, kMinimum, kMaximum, kMultiple, kLexical, kOneOf, kAnd, kOne, kNot,
};

struct NumberNode {
  NumberOp op = NumberOp::kFalse;
  bool strict = false;   // bounds
  bool lexical = false;  // mentions kLexical
  uint32_t a = 0;        // value (bounds, divisor), child (kNot), offset into args (the others)
  uint32_t count = 0;    // of args: values in ascending order (kOneOf), children (kAnd, kOne)
};

// Is `value` an integer multiple of `divisor` (positive)?  Exact whatever the exponents.
bool is_multiple(const Decimal& value, const Decimal& divisor);

class NumberFormulas {
 public:
  NumberFormulas();

  NumberValue value(const Decimal& decimal);
  const Decimal& decimal(NumberValue value) const { return values_[value]; }

  NumberId bound(NumberOp op, NumberValue value, bool strict);
  NumberId multiple(NumberValue divisor);
  NumberId lexical();
  NumberId one_of(std::vector<NumberValue> values);
  NumberId land(std::span<const NumberId> ids);
  NumberId lor(std::span<const NumberId> ids);
  NumberId lnot(NumberId id);
  NumberId exactly_one(std::span<const NumberId> ids);

  const NumberNode& node(NumberId id) const { return nodes_[id]; }
  std::span<const uint32_t> args(const NumberNode& node) const {
    return {args_.data() + node.a, node.count};
  }
  // The nodes that `id` is made of, itself last, in ascending order.
  std::vector<NumberId> reachable(NumberId id) const;
  // Truth of a formula for one value, written without fraction and exponent or otherwise.
  bool evaluate(NumberId id, const Decimal& value, bool lexical) const;
  size_t size() const { return nodes_.size(); }
  size_t bytes() const;

 private:
  struct Conjunction;
  NumberId intern(NumberOp op, bool strict, uint32_t a, std::span<const uint32_t> args);
  bool less(NumberValue a, NumberValue b) const { return values_[a] < values_[b]; }
  void check_constant(const Decimal& decimal) const;
  bool add(Conjunction& all, NumberId id);
  bool absorb(Conjunction& all);
  bool filter(Conjunction& all);

  std::vector<Decimal> values_;
  std::unordered_multimap<size_t, NumberValue> value_index_;
  std::vector<NumberNode> nodes_;
  std::vector<uint32_t> args_;
  std::unordered_map<std::u32string, NumberId> index_;
  size_t value_bytes_ = 0;
  size_t index_bytes_ = 0;
};

}  // namespace constrain
