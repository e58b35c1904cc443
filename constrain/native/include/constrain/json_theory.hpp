// What JSON Schema formulas mean: specialisation to a type, derivatives by members and items,
// satisfiability, and the goal that a child must meet.
//
// Satisfiability decides whether a prefix can be finished.  It runs in layers from cheap to
// complete under step budgets; a spent budget answers "yes", so that a dead end becomes possible
// but never an invalid text: a value closes only where its formula is true of it.
//
// Not thread-safe; owned by one machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "constrain/json_formula.hpp"
#include "constrain/lexical_pool.hpp"
#include "constrain/numbers.hpp"
#include "constrain/poll.hpp"
#include "constrain/program.hpp"

namespace constrain {

using ValueId = uint32_t;

// Canonical constants.  Two equal JSON values have one id.
struct Value {
  ValueKind kind;
  uint32_t a;  // number: NumberValue; string: TextId; array: list of values; object: list of pairs
};

// Conjunctive object keywords: what each named key must satisfy, what other keys must, and counts.
// Every string that a matcher singles out is a name, so other keys behave by regexes alone.
struct ObjectTable {
  std::vector<TextId> names;              // sorted by code points
  std::vector<Formula> goals;             // per name, everything that applies to it
  std::vector<uint8_t> required;          // per name
  std::vector<uint32_t> rank;             // per name, its place in declaration order
  std::vector<std::pair<LexId, Formula>> generics;
  uint32_t count_required = 0;
  uint32_t least = 0, most = UINT32_MAX;  // members
  StringSet name_set = StringSets::kEmpty;
  std::unordered_map<TextId, uint32_t> index;

  // Prepared on first use.
  bool prepared = false;
  bool possible = true;                   // every required name has a satisfiable goal
  std::vector<uint8_t> allowed;           // per name: its goal is satisfiable
  LexId others = 0;                       // other keys whose goal is satisfiable
  uint32_t tracked = 0;                   // pool list of languages that decide an other key's goal
  Formula others_always = 1;
  std::vector<Formula> others_when;       // per tracked language
  std::unordered_map<uint32_t, Formula> others_goal;  // by outcome
  size_t others_count = 0;                // number of other keys, at most kFewKeys

  // The names as a static trie over code points; leaves know ranges of names.
  struct TrieNode {
    uint32_t code_point, first_child, children, low, high, name;
  };
  std::vector<TrieNode> trie;
};

inline constexpr uint32_t kNoName = 0xFFFFFFFFu;
inline constexpr size_t kFewKeys = 6;

// A key as seen by derivatives: a text, or a class of texts outside of all names (a list of
// (language, member?) pairs).
struct KeyClass {
  bool is_class = false;
  uint32_t id = 0;
  bool operator==(const KeyClass&) const = default;
};

struct Child {
  Formula goal = 0;       // what the child must satisfy
  Formula parent = 0;     // the parent's formula over the variables that remain
  uint32_t tracked = 0;   // list of the parent's tracked formulas, rewritten alike
  uint32_t variables = 0; // list of value formulas whose truth the child must report
};

class JsonTheory final : public Formulas {
 public:
  JsonTheory(bool plain_numbers, LexicalPool& pool);

  // The formula of a program's root.  Several programs share formulas, tables and memos; equal ones
  // are one.
  Formula add(std::shared_ptr<const Program> program);
  // A node of the first program.
  Formula node(int32_t n) { return load_in(0, n); }

  // ---- one type of a value formula
  bool literal(Formula f, Type type);  // type: null, true or false
  LexId string_language(Formula f);
  NumberId number_language(Formula f);
  Formula typed(Formula f, Type type);  // object or array

  // ---- events
  Formula after_key(Formula f, KeyClass key);
  Formula after_item(Formula f, Formula duplicate);
  bool object_done(Formula f) { return done(f); }
  bool array_done(Formula f) { return done(f); }

  // ---- satisfiability; `seen` holds the keys read so far, `values` a list of items read so far
  bool satisfiable(Formula f);
  // Grows whenever an answer is "yes" because a budget was spent.
  size_t unproved() const { return unproved_count_; }
  // Steps of one question from now on.
  void set_max_steps(size_t steps) { max_ticks_ = steps; }
  // Between these two calls many questions are asked that share a budget.
  void begin_trial() { in_trial_ = true, trial_ticks_ = 0; }
  void end_trial() { in_trial_ = false, trial_ticks_ = 0; }
  bool object_open(Formula f, StringSet seen);
  bool array_open(Formula f, uint32_t values);

  // ---- short values, for completions.  Costs are bytes of compact JSON.
  using Cost = uint32_t;
  static constexpr Cost kNoCost = 0xFFFFFFFFu;
  // The type of a shortest value; false: not found.
  bool cheapest_type(Formula f, Type& type);
  // The least nesting depth (0: no array or object) of a value of f; kNoHeight if none was found.
  static constexpr int kNoHeight = 1 << 20;
  int height(Formula f);
  // A next member of an object that leads to a near end: its key and what its value should satisfy.
  // False: no plan was found.  `done_here`: the object can end instead.
  bool plan_member(Formula f, StringSet seen, bool& done_here, TextId& key, Formula& child);
  // The same for an item of an array.
  bool plan_item(Formula f, uint32_t values, bool& done_here, Formula& child);
  // What a child that is about to be read should satisfy, beside its goal, so that it and the rest
  // of its parent (a formula with variables) are short; returns what they cost.  `seen`: keys of an
  // object, values of an array.
  Cost plan_child(bool object, Formula parent, uint32_t seen, Formula goal, Formula& child);
  // The cost of a value, and of the rest of an object or array whose formula has no variables;
  // kNoCost: not found.
  Cost least_value(Formula f);
  Cost least_rest(bool object, Formula f, uint32_t seen);
  // The goals of the items of a list of plain atoms without uniqueness, the last one for all that
  // follow, and how many items it needs; false: the formula is no such list.
  bool list_goals(Formula f, std::vector<Formula>& goals, uint32_t& least);
  // The goals that other keys of a table can have.
  std::vector<Formula> goals_of_others(uint32_t table);
  Cost name_cost(TextId key);

  // ---- children
  // `now`: the keys seen, this one included.
  Child member(Formula f, uint32_t tracked, KeyClass key, StringSet now);
  Child item(Formula f, uint32_t tracked, uint32_t values);
  // The keys that may come next.
  LexId keys(Formula f, StringSet seen);

  // What tells keys apart for f and for the tracked formulas.
  struct Names {
    StringSet names = StringSets::kEmpty;
    std::vector<LexId> matchers;  // distinct regex parts of the matchers, sorted
  };
  const Names& frame_names(Formula f, uint32_t tracked);
  // Some class of other keys may run out of members.
  bool has_few_keys(Formula f, uint32_t tracked);

  // ---- values
  ValueId value(ValueKind kind, uint32_t a = 0);
  ValueId constant(uint32_t index);  // of the program that is being loaded
  const Value& value(ValueId v) const { return values_[v]; }
  bool holds(Formula f, ValueId v);
  // All values of f if there are at most cap (and they can be found), else nothing.
  std::optional<std::vector<ValueId>> enumerate(Formula f, size_t cap);

  // ---- object tables
  uint32_t add_table(std::vector<std::pair<TextId, Formula>> properties,
                     std::vector<std::pair<LexId, Formula>> generics,
                     std::vector<TextId> required, uint32_t least, uint32_t most) {
    return (*this)[table_from(std::move(properties), std::move(generics), std::move(required),
                              least, most)].a;
  }
  ObjectTable& table(uint32_t id) { return *tables_[id]; }
  void prepare(ObjectTable& t);
  uint32_t bit_set(uint32_t bits, uint32_t index);
  bool bit(uint32_t bits, uint32_t index) const;
  uint32_t required_missing(const ObjectTable& t, uint32_t bits) const;
  Formula others_goal(ObjectTable& t, uint32_t outcome);
  uint32_t count_after(const ObjectTable& t, uint32_t count) const;

  LexicalPool& pool() { return pool_; }
  NumberPool& numbers() { return numbers_; }
  size_t bytes() const;

  static constexpr ValueId kUnknownValue = 3;  // an earlier item that was not looked at

 private:
  struct Spent {};       // a step budget ran out
  struct TooBroad {};    // a projection grew too large
  using Literals = std::map<Formula, bool>;

  // Sets the depth limit and puts the old one back.
  class LimitScope {
   public:
    LimitScope(JsonTheory& theory, int limit) : theory_(theory), old_(theory.limit_) {
      theory.limit_ = limit;
    }
    ~LimitScope() { theory_.limit_ = old_; }
    LimitScope(const LimitScope&) = delete;
    LimitScope& operator=(const LimitScope&) = delete;

   private:
    JsonTheory& theory_;
    int old_;
  };

  // What has been made of a program's rows so far.
  struct Source {
    std::shared_ptr<const Program> program;
    std::vector<Formula> loaded;
    std::vector<LexId> regexes;
    std::vector<TextId> strings;
    std::vector<ValueId> constants;
    FlatMap matchers;
    uint32_t first_ref = 0;   // of its refs among those of all programs
  };
  // The nodes that numbers are about: those of the program that is being loaded.
  Source& source() { return *sources_[source_]; }
  const Program& program() const { return *sources_[source_]->program; }
  Formula load_in(uint32_t source, int32_t node);
  // What an atom kRef refers to.
  Formula load_ref(uint32_t ref) { return load_in(refs_[ref].first, refs_[ref].second); }
  Formula load(int32_t node);
  Formula load_uncached(int32_t node);
  LexId matcher(int32_t node);
  Formula merge_tables(const std::vector<Formula>& tables) override;
  Formula table_from(std::vector<std::pair<TextId, Formula>> properties,
                     std::vector<std::pair<LexId, Formula>> generics,
                     std::vector<TextId> required, uint32_t least, uint32_t most);
  Formula load_object(const int32_t* row);
  Formula load_array(const int32_t* row);
  Formula values_typed(uint32_t list, Type type);
  Formula typed_leaf(Formula a, Type type);

  bool done(Formula f);
  // A table as a conjunction of plain atoms about what is still to come.
  Formula expand_table(Formula f);
  bool table_search(Formula f, StringSet seen);
  // Name is required by the table and was not seen.
  bool table_requires(Formula f, TextId key);
  // What a positive kAllP or kTable literal asks of the value of this key.
  Formula asked_of(Formula literal, KeyClass key);
  bool table_implies(Formula f, Formula rule);
  // Keys that positive literals still require.
  std::vector<TextId> required_by(const Literals& literals);

  void tick(size_t steps = 1) {
    ticks_ += steps;
    if (in_trial_) trial_ticks_ += steps;
    if (ticks_ > max_ticks_ || (trial_ticks_ > kTrialTicks && ticks_ > kFewTicks)) throw Spent{};
    poll();
  }
  template <class Fn>
  bool guarded(uint64_t key, Fn fn);
  bool give_up() {
    ++unproved_count_;
    return true;
  }
  template <class Fn>
  bool top(Fn fn);
  bool satisfiable_typed(Formula f, Type type);
  bool object_search(Formula f, StringSet seen);
  struct Step {
    TextId key;
    Formula child;
  };
  bool plan_object(Formula f, StringSet seen, std::vector<Step>& plan, int members);
  bool shallow_member(Formula f, StringSet seen, TextId& key, Formula& child);
  bool shallow_item(Formula f, uint32_t values, Formula& child);
  // Runs `ask` under rising depth limits until it says yes.
  template <class Fn>
  int shallowest(Fn ask);
  bool array_search(Formula f, uint32_t values);
  bool explore_array(Formula f, uint32_t values);

  const Names& names(Formula f);
  bool matches(LexId keys, KeyClass key);
  const std::vector<std::pair<uint32_t, LexId>>& classes(Formula f);  // (class id, its language)
  std::vector<std::pair<uint32_t, LexId>> classes(const Names& n);
  struct Counts {
    uint64_t least = 0, most = UINT64_MAX;
    StringSet forbidden = StringSets::kEmpty;
  };
  Counts counts(const Literals& literals, StringSet seen);
  std::vector<std::pair<KeyClass, LexId>> next_keys(Formula g, const Literals& literals,
                                                    StringSet seen);
  StringSet use_class(LexId language, StringSet seen);
  LexId minus(LexId language, StringSet seen);
  bool cube_possible(const Literals& literals, StringSet seen);
  bool violation_memo(uint32_t key, const std::function<bool()>& search);
  bool violation_search(Formula violated, const std::vector<Formula>& positive,
                        StringSet forbidden);
  bool violation_possible(Formula atom, const Literals& literals, StringSet forbidden);
  bool simple_object(Formula g, const Literals& literals, StringSet seen);
  bool search_object(Formula g, const Literals& literals, StringSet seen);
  bool key_possible(Formula parent, StringSet now);
  // A way to complete an object that needs no search: these tables come true, with the names that
  // they still require, and every alternative stays false because a name in `avoid` stays away.
  struct Way {
    std::vector<Formula> tables;
    std::vector<TextId> required;  // sorted
    StringSet avoid = StringSets::kEmpty;
    uint64_t room = UINT64_MAX;    // members that may still come
    TextId told_apart = 0;         // a name whose value tells this way from others: it satisfies
    Formula told_by = kTrue;
  };
  // At most so many of them.
  std::vector<Way> easy_ways(Formula f, StringSet seen, size_t most = SIZE_MAX);
  bool find_way(Way& way, StringSet seen);
  bool discriminate(Way& way, const std::vector<Way>& alternatives,
                    const std::vector<size_t>& rest, StringSet seen);
  // A member with this key fits into the way.
  bool fits(const Way& way, KeyClass key);
  LexId keys_uncached(Formula f, StringSet names, StringSet seen);

  // Depth-first enumeration of the cubes (conjunctions of literals) of a conjunction; stops when
  // `visit` returns true.
  bool cubes(std::vector<Formula> todo, Literals literals,
             const std::function<bool(const Literals&)>& check,
             const std::function<bool(const Literals&)>& visit);
  Formula conjunction(const Literals& literals);

  Child child(Formula parent, uint32_t tracked, uint64_t context,
              const std::function<bool(Formula)>& open);
  Formula project(Formula f, const std::function<bool(Formula)>& open);
  Formula project_step(Formula f, Formula context, const std::function<bool(Formula)>& open,
                       size_t& steps);
  Formula relax(Formula f, bool positive);
  bool outcomes(Formula f, const std::vector<Formula>& known, Formula context,
                const std::function<bool(Formula, Formula)>& visit);
  bool implied(const std::vector<Formula>& goal, Formula f);
  Formula unique_filter(Formula goal, Formula parent, uint32_t values, Formula f);
  bool unique_possible(Formula f, uint32_t values);
  std::optional<std::vector<ValueId>> candidates(Formula f, int depth);
  std::optional<std::vector<ValueId>> enumerate_arrays(Formula g, size_t cap);
  const std::optional<std::vector<ValueId>>& domain(Formula f);

  // What is known of the cost of a value, of items or of members.
  struct Cheapest {
    Cost cost = kNoCost;
    Cost more_than = 0;       // where the cost is not known
    Type type = Type::kNull;  // of the value
    TextId key = 0;           // the first member
    Formula child = kTrue;    // what the first member or item satisfies
  };
  Cheapest& cheapest(uint32_t what, uint32_t a, uint32_t b);
  void cost_step();
  Cost text_cost(std::span<const uint32_t> text);
  Cost leaf_cost(Formula f, Type& type);
  bool cheapest_value(Formula f, ValueId& v);
  bool simple_items(Formula f);
  template <class Ask>
  Cost least(Ask ask);
  Cost value_cost(Formula f, Cost bound);
  Cost rest_cost(bool object, Formula f, uint32_t seen, Cost bound) {
    return object ? members_cost(f, seen, bound) : items_cost(f, seen, bound);
  }
  Cost table_cost(Formula f, StringSet seen, Cost bound, TextId& key, Formula& child);
  Cost items_cost(Formula f, uint32_t values, Cost bound);
  Cost list_cost(Formula f, uint32_t values, Cost bound, Formula& first);
  Cost residuals_cost(Formula f, uint32_t values, Cost bound, Formula& first);
  Cost members_cost(Formula f, StringSet seen, Cost bound);
  void ways_cost(Formula f, StringSet seen, Cost bound, Cheapest& best);
  void search_members(Formula f, StringSet seen, Cost bound, Cheapest& best);

  LexicalPool& pool_;
  NumberPool& numbers_;   // of the pool

  std::vector<std::unique_ptr<Source>> sources_;
  uint32_t source_ = 0;
  std::vector<std::pair<uint32_t, int32_t>> refs_;   // source and node of each kRef
  int load_depth_ = 0;
  std::vector<Value> values_;
  FlatMap value_index_;

  std::vector<std::unique_ptr<ObjectTable>> tables_;
  FlatMap merged_;
  FlatMap expanded_;

  FlatMap string_memo_, number_memo_, typed_memo_[2], key_memo_, item_memo_, done_memo_;
  std::unordered_set<uint64_t> typing_;
  std::unordered_map<uint64_t, bool> sat_memo_;
  std::unordered_map<uint64_t, int> in_progress_;
  int low_ = INT32_MAX;
  size_t ticks_ = 0, guarded_calls_ = 0, max_ticks_ = kTicks;
  size_t trial_ticks_ = 0;
  bool in_trial_ = false;
  size_t unproved_count_ = 0;
  std::unordered_set<uint64_t> unproved_;  // remembered answers that count as such
  int depth_ = 0;
  int limit_ = kNoHeight;  // nesting allowed below a value, while a completion is planned
  FlatMap height_memo_, few_keys_memo_;
  std::unordered_map<uint32_t, Cheapest> cheapest_;
  size_t cost_steps_ = 0;
  std::unordered_map<Formula, Names> names_memo_;
  std::unordered_map<uint64_t, Names> frame_names_memo_;
  std::unordered_map<Formula, std::vector<std::pair<uint32_t, LexId>>> class_memo_;
  ListInterner tuples_;
  std::unordered_map<uint32_t, Child> child_memo_;
  std::unordered_map<uint64_t, LexId> keys_memo_;
  std::unordered_map<Formula, std::optional<std::vector<ValueId>>> domain_memo_;
  std::unordered_set<Formula> enumerating_;
  FlatMap holds_memo_;
  Formula free_ = 0;  // "equals an earlier item", for items whose values are not known

  static constexpr size_t kTicks = 3000;         // of one question
  static constexpr size_t kTrialTicks = 15'000;  // of all questions of a mask; then each gets few
  static constexpr size_t kFewTicks = 50;
  static constexpr size_t kFormulasPerTick = 8;
  static constexpr uint64_t kDerivativesPerTick = 1024;
  static constexpr uint64_t kPrepareWork = 3'000'000;   // derivatives, for one table
  static constexpr size_t kGuardedCalls = 4000;
  static constexpr int kMaxDepth = 1500;
  static constexpr size_t kMaxEnumerations = 64;
};

}  // namespace constrain
