// Regular expressions as lazily determinised automata over code points.
//
// A state is a boolean formula over atoms; an atom is a list of pattern parts that must match, one
// after the other, from here to the end of the text (a partial derivative).  Reading a code point
// rewrites every atom; lookahead becomes a conjunction with what follows, its negation a
// complement, so nothing ever backtracks.  Counted repeats stay counters and are never unrolled.
// What a pattern asks about the character before the current one (`^`, `\b`, lookbehind of width
// one) is a few bits beside the formula, kept only where the formula can see them.
//
// Equal formulas have equal ids (hash-consing), so states are values.  Transitions are memoised in
// one row of `num_classes` words per state: a known transition is one load.  A pattern of n parts
// costs O(n) to load; everything else is paid per state that is really reached.
//
// Surrogates (U+D800 to U+DFFF) occur in no text: they belong to the class of U+D7FF.
//
// Not thread-safe: queries fill caches.  The program format is documented in
// constrain/regex/program.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace constrain {

namespace regex {
class Terms;
}

class RegexDfa {
 public:
  static constexpr size_t kDefaultMaxStates = size_t{1} << 20;
  static constexpr uint32_t kUnreachable = 0xFFFFFFFFu;

  enum class Constant : uint8_t { kNo, kEverything, kNothing };

  // Error: the program is malformed.  `max_states` bounds the states that may ever be derived, and
  // with them the terms behind them; LimitError("max_states") when a query would exceed it.
  explicit RegexDfa(std::span<const int32_t> program, size_t max_states = kDefaultMaxStates);
  ~RegexDfa();
  RegexDfa(RegexDfa&&) noexcept;
  RegexDfa& operator=(RegexDfa&&) noexcept;

  uint32_t start() const { return start_; }

  // Code points that the pattern cannot tell apart form a class; a class is a union of intervals.
  uint32_t num_classes() const { return num_classes_; }
  uint32_t class_of(uint32_t code_point) const {
    return code_point < 128 ? ascii_[code_point] : class_of_wide(code_point);
  }
  // Sorted first code points of the intervals; interval i ends before interval i + 1, the last one
  // at U+10FFFF.  Neighbours differ in class.
  std::span<const uint32_t> class_starts() const { return interval_starts_; }
  uint32_t class_of_interval(size_t interval) const { return interval_classes_[interval]; }
  // A code point of this class, never a surrogate.
  uint32_t representative(uint32_t cls) const { return representatives_[cls]; }

  uint32_t step_class(uint32_t state, uint32_t cls) {
    const uint32_t next = table_[size_t{state} * num_classes_ + cls];
    return next != kUnknown ? next : derive(state, cls);
  }
  uint32_t step(uint32_t state, uint32_t code_point) {
    return step_class(state, class_of(code_point));
  }

  // The text may end here.
  bool accepting(uint32_t state) const { return (info_[state].flags & kAccepting) != 0; }
  // kEverything: every continuation, the empty one too, is accepted.  kNothing: none is.  Both
  // answers are proofs; kNo is also given where a proof would need more than a small search.
  Constant constant(uint32_t state) {
    const uint8_t known = info_[state].flags & kConstantMask;
    return known != 0 ? static_cast<Constant>((known >> kConstantShift) - 1) : find_constant(state);
  }
  // By its form the pattern goes on behind any text: it looks for something anywhere.
  bool lasting(uint32_t state) const { return (info_[state].flags & kLasting) != 0; }
  // Some continuation is accepted.  Exact, unless the budget of the search is spent: then true.
  bool live(uint32_t state) {
    const uint8_t flags = info_[state].flags;
    if ((flags & kLive) != 0) return true;
    if ((flags & kDead) != 0) return false;
    return find_live(state);
  }
  // Code points in a shortest accepted continuation; kUnreachable if there is none.  If the budget
  // of the search is spent: a lower bound.
  uint32_t distance(uint32_t state) {
    const uint32_t known = info_[state].distance;
    return known != kUnknown - 1 ? known : find_distance(state);
  }

  size_t num_states() const { return info_.size(); }
  // Bytes held, including all caches.
  size_t bytes() const;

 private:
  static constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  static constexpr uint8_t kAccepting = 1;
  static constexpr uint8_t kLive = 2;
  static constexpr uint8_t kDead = 4;
  static constexpr uint8_t kLasting = 8;
  static constexpr uint8_t kConstantShift = 4;
  static constexpr uint8_t kConstantMask = 0x30;  // 0: not known; else 1 + the Constant

  struct Info {
    uint32_t formula;
    uint32_t context;   // answers to the pattern's questions about the previous character
    uint32_t distance;  // kUnknown - 1: not known
    uint8_t flags;
  };

  uint32_t class_of_wide(uint32_t code_point) const;
  uint32_t intern(uint32_t formula, uint32_t context);
  uint32_t derive(uint32_t state, uint32_t cls);
  Constant find_constant(uint32_t state);
  bool find_live(uint32_t state);
  uint32_t find_distance(uint32_t state);
  void set_constant(uint32_t state, Constant value);

  uint32_t num_classes_ = 0;
  uint32_t start_ = 0;
  size_t max_states_;
  std::array<uint32_t, 128> ascii_{};
  std::vector<uint32_t> interval_starts_;
  std::vector<uint32_t> interval_classes_;
  std::vector<uint32_t> representatives_;
  std::vector<uint32_t> table_;  // num_classes_ words per state
  std::vector<Info> info_;
  std::vector<uint32_t> slots_;  // open addressing: state + 1
  std::unique_ptr<regex::Terms> terms_;
};

}  // namespace constrain
