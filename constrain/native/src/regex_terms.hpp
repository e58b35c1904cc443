// Terms of regular expressions: pattern parts, atoms and formulas, hash-consed, and their
// derivatives.  Internal to RegexDfa.
//
// Three sorts of term, each a table of nodes with ids:
//   part     a piece of the pattern: it matches from one position to another
//   chain    a list of parts that must match from here to the end of the text: an atom
//   formula  a boolean combination of atoms, about the rest of the text
// Constructors simplify, so that many equal languages get equal ids: nested repeats are multiplied
// out where that is exact, neighbouring repeats of one part are added up, repeats that differ in
// their bounds only are united or the narrower dropped, and "anything" absorbs what is optional
// before it.
//
// The rules of derivation (c is the next code point, k a chain, D the derivative, E(p) the
// condition under which p matches nothing here, itself about what follows c):
//   D(p k)        = N(p, k)  or  E(p) and D(k)          N: p takes c
//   N(set, k)     = k if c is in the set
//   N(p q, k)     = N(p, q k)  or  E(p) and N(q, k)
//   N(p | q, k)   = N(p, k) or N(q, k)
//   N(state, k)   = target k, for the edge whose set has c
//   N(p{l,h}, k)  = N(p, p{l-1,h-1} k)  or  E(p) and N(p, p{0,h-1} k)
//   E(lookahead p) = D(p anything), E(negative lookahead p) = not D(p anything)
// In the second part of the rule for repeats, one empty round stands for all that `l` demands.
//
// Recursion follows the nesting of the pattern, which the loader bounds, and the depth of formulas,
// which is bounded by falling back to disjunctive normal form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "constrain/util.hpp"

namespace constrain::regex {

using Id = uint32_t;

inline constexpr uint32_t kInfinity = 0xFFFFFFFFu;
inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

enum class PartKind : uint8_t {
  kFail,      // matches nothing
  kEmpty,     // matches the empty text
  kSet,       // a: set
  kSequence,  // a: first part, b: the rest
  kChoice,    // a: offset in choices, b: count
  kRepeat,    // a: part, b: least, c: most or kInfinity
  kLook,      // a: part, b: 1 if negative
  kBehind,    // a: bit of the context
  kEnd,       // end of text
  kState,     // a: state of an automaton: the texts that lead from it to a final state
};

enum class Nullable : uint8_t { kNever, kAlways, kDepends };  // depends on what is around

struct Part {
  PartKind kind = PartKind::kFail;
  Nullable nullable = Nullable::kNever;
  bool contextual = false;  // contains kLook, kBehind or kEnd
  uint32_t a = 0, b = 0, c = 0;
  uint32_t min_length = 0;  // code points; a lower bound if contextual
  uint32_t mask = 0;        // bits of the context that matter before the first code point
};

// A state of a deterministic automaton, and its edges.
struct AutomatonState {
  uint32_t first_edge = 0;
  uint32_t num_edges = 0;
};

struct AutomatonEdge {
  Id set = 0;
  Id part = 0;  // the target
};

struct Chain {
  Id part = 0;
  Id tail = 0;
  Id skeleton = 0;  // equal for chains that differ in the bounds of repeats only
  Nullable nullable = Nullable::kNever;
  bool contextual = false;
  uint32_t min_length = 0;
  uint32_t mask = 0;
};

enum class FormulaKind : uint8_t { kFalse, kTrue, kAtom, kNot, kOr, kAnd };

struct Formula {
  FormulaKind kind = FormulaKind::kFalse;
  bool plain = false;   // a union of atoms without context: live, and min_length is exact
  bool live = false;    // some text is accepted, which its form shows
  uint8_t depth = 0;
  uint32_t a = 0;       // kAtom: chain; kNot: formula; kOr, kAnd: offset in members
  uint32_t b = 0;       // kOr, kAnd: count
  uint32_t min_length = 0;
  uint32_t mask = 0;
};

inline constexpr Id kFailPart = 0;
inline constexpr Id kEmptyPart = 1;
inline constexpr Id kNil = 0;   // chain: the text ends here
inline constexpr Id kAll = 1;   // chain: anything follows
inline constexpr Id kDead = 2;  // chain: nothing matches
inline constexpr Id kFalse = 0;
inline constexpr Id kTrue = 1;

// Open addressing from hashes to ids; the caller compares.
class HashIndex {
 public:
  template <class Equal>
  Id find(uint32_t hash, Equal&& equal) const {
    if (slots_.empty()) return kInfinity;
    const size_t limit = slots_.size() - 1;
    for (size_t i = hash & limit;; i = (i + 1) & limit) {
      if (slots_[i].id == kInfinity) return kInfinity;
      if (slots_[i].hash == hash && equal(slots_[i].id)) return slots_[i].id;
    }
  }
  void insert(uint32_t hash, Id id);
  size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    uint32_t hash = 0;
    Id id = kInfinity;
  };
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class Terms {
 public:
  explicit Terms(size_t num_classes);

  // Sets of classes, one bit per class.
  Id intern_set(std::span<const uint64_t> bits);
  bool set_has(Id set, uint32_t cls) const {
    return (set_bits_[size_t{set} * set_words_ + (cls >> 6)] >> (cls & 63) & 1) != 0;
  }
  size_t set_words() const { return set_words_; }
  void set_class_context(std::vector<uint32_t> contexts) { class_context_ = std::move(contexts); }
  uint32_t class_context(uint32_t cls) const { return class_context_[cls]; }

  Id set_part(Id set);
  Id sequence(std::vector<Id> parts);
  Id choice(std::vector<Id> parts);
  Id repeat(Id part, uint32_t least, uint32_t most);
  Id look(Id part, bool negative);
  Id behind(uint32_t bit);
  Id end();
  // States of a deterministic automaton: whether each is final, and its edges (set, state), whose
  // sets are disjoint.  The part of the first state.
  struct AutomatonRow {
    bool final = false;
    std::vector<std::pair<Id, uint32_t>> edges;
  };
  Id automaton(std::span<const AutomatonRow> rows);

  Id chain(Id part, Id tail);
  Id atom(Id chain);

  // Terms that may be made from now on before LimitError("max_states").
  void set_budget(size_t terms);
  // One transition may not take more than a fixed number of steps: LimitError("max_states").
  void begin_work() { work_ = 0; }

  bool null(Id formula, uint32_t context) const;
  Id derive(Id formula, uint32_t cls, uint32_t context);
  const Formula& formula(Id id) const { return formulas_[id]; }
  // Of a union with a member that begins with "anything" and needs nothing of what is around: that
  // member stays, whatever is read.  False means nothing.
  bool lasting(Id formula) const;
  // The same of a part: "anything", and then what some text matches, is one of its alternatives.
  bool part_lasts(Id part) const;
  // Some text matches the part, or the chain, whatever is around.
  bool matches_anywhere(Id part) const;
  bool chain_matches_anywhere(Id chain) const;
  size_t bytes() const;

 private:
  using Lits = std::vector<uint32_t>;  // atom formula * 2 + negated, sorted

  Id intern_part(const Part& part);
  bool add_up(Id first, Id second, Id& sum);
  Id prepend(Id part, Id tail);
  Id intern_formula(FormulaKind kind, uint32_t a, std::span<const Id> members);
  Id make_not(Id formula);
  Id make_or(std::vector<Id> members);
  Id make_and(std::vector<Id> members);
  Id conjoin(Id a, Id b);
  bool unite_repeats(std::vector<Id>& members);
  void drop_covered(std::vector<Id>& members);
  bool covers(Id wide, Id narrow) const;
  Id find_chain(Id part, Id tail) const;
  Id find_atom(Id chain) const;
  Id flatten(Id formula);
  std::vector<Lits> disjuncts(Id formula, bool positive);

  bool null_part(Id part, uint32_t context) const;
  bool null_chain(Id chain, uint32_t context) const;
  Id derive_chain(Id chain, uint32_t cls, uint32_t context);
  void derive_part(Id part, Id tail, uint32_t cls, uint32_t context, std::vector<Id>& out);
  Id empty_condition(Id part, uint32_t cls, uint32_t context);
  bool may_take(Id part, uint32_t cls) const;
  void charge();
  void work(size_t steps);

  std::span<const Id> members(const Formula& f) const { return {members_.data() + f.a, f.b}; }
  std::span<const Id> choices(const Part& p) const { return {choices_.data() + p.a, p.b}; }
  std::span<const AutomatonEdge> edges(const Part& p) const {
    const AutomatonState& state = automaton_states_[p.a];
    return {automaton_edges_.data() + state.first_edge, state.num_edges};
  }

  size_t num_classes_;
  size_t set_words_;
  Id anything_ = kFailPart;  // part: any code points
  size_t budget_ = SIZE_MAX;
  std::vector<uint64_t> set_bits_;
  std::vector<uint32_t> class_context_;
  std::vector<Part> parts_;
  std::vector<Id> choices_;
  std::vector<AutomatonState> automaton_states_;
  std::vector<AutomatonEdge> automaton_edges_;
  std::vector<Chain> chains_;
  std::vector<Formula> formulas_;
  std::vector<Id> members_;
  HashIndex set_index_, part_index_, chain_index_, formula_index_;
  FlatMap skeletons_;
  uint32_t num_skeletons_ = 3;
  std::vector<uint32_t> stamps_;  // by chain, scratch of drop_covered
  uint32_t stamp_ = 0;
  size_t work_ = 0;
  size_t memo_entries_ = 0;
  FlatMap memo_;  // derivatives of chains whose context does not matter
};

// What a program says, before states.
struct Loaded {
  std::vector<uint32_t> interval_starts;
  std::vector<uint32_t> interval_classes;
  std::vector<uint32_t> representatives;
  uint32_t start_context = 0;
  Id root = kFalse;  // formula
};

// Reads a program; Error if it is malformed.
std::unique_ptr<Terms> load(std::span<const int32_t> program, Loaded& loaded);

}  // namespace constrain::regex
