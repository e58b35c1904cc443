// Hash-consed boolean formulas over one JSON value: the registers of the JSON machine.
//
// Two levels.  A value formula speaks of a value of any type; a typed formula speaks of an object
// or of an array that is being read, and every event (a member, an item) rewrites it.  Equal
// formulas have equal ids, and constructors simplify, so that what can no longer matter vanishes.
//
// A variable kVar(F) stands for "the child being read satisfies F" until the child ends.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "constrain/util.hpp"

namespace constrain {

using Formula = uint32_t;

enum class Type : uint32_t { kNull, kTrue, kFalse, kNumber, kString, kArray, kObject };
inline constexpr Type kTypes[7] = {Type::kNull,   Type::kTrue,  Type::kFalse, Type::kNumber,
                                   Type::kString, Type::kArray, Type::kObject};

enum class Fop : uint8_t {
  kFalse, kTrue, kAnd, kOr, kOne, kNot,
  kVar,        // a: value formula
  // value level
  kType,       // a: Type
  kRef,        // a: index into the refs of all programs
  kInValues,   // a: list of values, sorted
  kStringIn,   // a: LexId; true of what is not a string
  kNumberIn,   // a: NumberId; true of what is not a number
  kObjectIs,   // a: typed formula; true of what is not an object
  kArrayIs,    // a: typed formula; true of what is not an array
  // objects
  kHas,        // a: TextId
  kAllP,       // a: LexId of keys, b: value formula
  kMinP, kMaxP,  // a: n
  kUnevP,      // a: value formula, b: list of (LexId, condition)
  kTable,      // a: object table, b: list of seen names (bits), c: members seen
  // arrays
  kAllI,       // a: from index, b: value formula
  kAt,         // a: index, b: value formula
  kMinI, kMaxI,  // a: n
  kCMin, kCMax,  // a: value formula, b: n
  kUniq,
  kUnevI,      // a: value formula, b: list of (kind, x, condition)
};

struct FormulaNode {
  Fop op;
  bool has_var = false;
  bool has_uniq = false;
  uint32_t a = 0, b = 0, c = 0;  // connectives: a is a list id
};

class Formulas {
 public:
  static constexpr Formula kFalse = 0, kTrue = 1;

  Formulas();

  const FormulaNode& operator[](Formula f) const { return nodes_[f]; }
  Fop op(Formula f) const { return nodes_[f].op; }
  bool has_var(Formula f) const { return nodes_[f].has_var; }
  std::vector<Formula> parts(Formula f) const { return lists.copy(nodes_[f].a); }
  // The conjuncts of a formula (itself if it is no conjunction).
  std::vector<Formula> conjuncts(Formula f) const;

  Formula atom(Fop op, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0);
  Formula all_of(std::span<const Formula> parts);
  Formula any_of(std::span<const Formula> parts);
  Formula exactly_one(std::span<const Formula> parts);
  Formula negate(Formula f);
  Formula both(Formula a, Formula b);
  Formula either(Formula a, Formula b);

  // Smart constructors of atoms with trivial cases.
  Formula var(Formula f) { return f <= kTrue ? f : atom(Fop::kVar, f); }
  Formula in_values(std::vector<uint32_t> values);
  Formula all_p(uint32_t keys, Formula f) {
    return f == kTrue || keys == 0 ? kTrue : atom(Fop::kAllP, keys, f);
  }
  Formula min_p(uint32_t n) { return n == 0 ? kTrue : atom(Fop::kMinP, n); }
  Formula min_i(uint32_t n) { return n == 0 ? kTrue : atom(Fop::kMinI, n); }
  Formula at(uint32_t i, Formula f) { return f == kTrue ? kTrue : atom(Fop::kAt, i, f); }
  Formula all_i(uint32_t i, Formula f) { return f == kTrue ? kTrue : atom(Fop::kAllI, i, f); }
  Formula contains_min(Formula f, uint32_t n) {
    return n == 0 ? kTrue : f == kFalse ? kFalse : atom(Fop::kCMin, f, n);
  }
  Formula contains_max(Formula f, uint32_t n) {
    return f == kFalse ? kTrue : atom(Fop::kCMax, f, n);
  }
  // `sources` as flat pairs (keys, condition) or triples (kind, x, condition).
  Formula unevaluated_p(Formula f, const std::vector<uint32_t>& sources);
  Formula unevaluated_i(Formula f, const std::vector<uint32_t>& sources);

  using Memo = std::unordered_map<Formula, Formula>;
  // Rewrites every atom by `leaf` and simplifies.
  template <class Leaf>
  Formula rebuild(Formula f, Leaf&& leaf, Memo& memo) {
    if (f <= kTrue) return f;
    const FormulaNode n = nodes_[f];
    if (n.op > Fop::kNot) {
      const auto it = memo.find(f);
      if (it != memo.end()) return it->second;
      const Formula r = leaf(f);
      memo[f] = r;
      return r;
    }
    if (const auto it = memo.find(f); it != memo.end()) return it->second;
    Formula r;
    if (n.op == Fop::kNot) {
      r = negate(rebuild(n.a, leaf, memo));
    } else {
      std::vector<Formula> items = lists.copy(n.a);
      for (Formula& x : items) x = rebuild(x, leaf, memo);
      r = n.op == Fop::kAnd ? all_of(items) : n.op == Fop::kOr ? any_of(items) : exactly_one(items);
    }
    memo[f] = r;
    return r;
  }

  // Calls visit(atom) once for every atom, those inside unevaluated conditions included.
  template <class Visit>
  void for_each_atom(Formula f, Visit&& visit) const {
    std::vector<Formula> stack{f};
    std::unordered_map<Formula, bool> seen;
    while (!stack.empty()) {
      const Formula g = stack.back();
      stack.pop_back();
      if (g <= kTrue || !seen.try_emplace(g, true).second) continue;
      const FormulaNode& n = nodes_[g];
      if (n.op == Fop::kNot) {
        stack.push_back(n.a);
      } else if (n.op < Fop::kNot) {
        for (const Formula x : lists.get(n.a)) stack.push_back(x);
      } else {
        visit(g);
        if (n.op == Fop::kUnevP || n.op == Fop::kUnevI) {
          const auto src = lists.copy(nodes_[g].b);
          const size_t width = nodes_[g].op == Fop::kUnevP ? 2 : 3;
          for (size_t i = width - 1; i < src.size(); i += width) stack.push_back(src[i]);
        }
      }
    }
  }

  // Replaces kVar(F) by truth[F] where present.
  Formula substitute(Formula f, const std::unordered_map<Formula, bool>& truth);
  // The formulas F of the variables kVar(F) in f, ascending.
  std::vector<Formula> variables(Formula f) const;
  // Whether kVar(v) occurs positively (bit 0) or negatively (bit 1) in f.
  unsigned polarity(Formula f, Formula v) const;

  ListInterner lists;
  size_t bytes() const { return nodes_.capacity() * sizeof(FormulaNode) + set_.bytes() + lists.bytes(); }

  // Joins the conjunctive object tables of one conjunction; set by the owner of the tables.
  virtual Formula merge_tables(const std::vector<Formula>& tables) = 0;
  virtual ~Formulas() = default;

 private:
  Formula make(Fop op, uint32_t a, uint32_t b, uint32_t c, bool has_var, bool has_uniq);
  Formula connective(Fop op, std::vector<Formula> parts);
  Formula substitute(Formula f, const std::unordered_map<Formula, bool>& truth, Memo& memo);

  std::vector<FormulaNode> nodes_;
  IdSet set_;
};

}  // namespace constrain
