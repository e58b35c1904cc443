// A compiled number language: pieces of the number line, and which prefixes can still reach them.
// Internal to the number languages.
//
// Compiling cuts the line at every bound and enumerated value of the formula.  On a piece only the
// divisors are undecided: the formula is a truth table over "is a multiple of q_i" (divisor 0 is 1,
// so integrality is one of them).  A row of the table is a cube: multiples of L that are multiples
// of none of some other q.  Among consecutive multiples of L, the longest run in which each is a
// multiple of one of k others is shorter than 2^k (Kanold's bound of Jacobsthal's function), so a
// search of 2^k multiples decides a window exactly.
//
// A language has two views: kLexical, the values reached by texts without fraction and exponent
// (integers all), and kOther, those reached by other texts; they differ only for formulas that
// mention INTEGER_LEXICAL, and by integrality.
//
// Cost: compiling n constants and d divisors takes O((n + 2^d) * formula); a question about a
// prefix takes O(log n) comparisons per scale tried, a few dozen of them, or O(n) where an exponent
// may follow.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "number_cursor.hpp"
#include "number_formula.hpp"
#include "number_natural.hpp"

namespace constrain {

// What may be written, see numbers.hpp.
enum class NumberMode : uint32_t { kInteger, kDecimal, kFree };

enum class NumberView : uint32_t { kLexical, kOther };

enum class Answer : uint8_t { kNo, kYes, kUnknown };

// An interval of positive magnitudes.
struct NumberWindow {
  Decimal low;
  Decimal high;
  bool low_strict = false;
  bool high_strict = false;
  bool unbounded = false;  // `high` means nothing

  bool empty() const;
  bool is_point() const { return !unbounded && low == high; }
  NumberWindow intersected(const NumberWindow& other) const;
  // [n * 10^k, (n + 1) * 10^k), n given by its digits.
  static NumberWindow of_prefix(const std::string& digits, int64_t scale);
  static NumberWindow from(Decimal low, bool strict);
};

// Multiples of `step` (none: all decimals) whose index is a multiple of no period.
struct NumberCube {
  std::optional<Decimal> step;
  std::vector<Decimal> others;    // the q
  std::vector<Natural> periods;   // lcm(step, q) / step, each at least 2
  std::vector<uint64_t> small;    // the same where all fit, else empty
};

struct NumberTable {
  std::vector<uint64_t> bits;  // bit a: true for the assignment a of divisors
  bool all = false;            // true for all numbers of the view
  bool dense = false;          // every interval has numbers in it
  std::vector<NumberCube> cubes;
};

struct NumberPiece {
  NumberWindow window;
  uint32_t table = 0;
  bool point = false;  // a single value, which is in the language
};

// A view of a language, zero and both signs apart; pieces are of magnitudes, ascending, none empty.
struct NumberPieces {
  bool zero = false;
  std::array<std::vector<NumberPiece>, 2> sides;  // positive, negative
  std::vector<NumberTable> tables;
  bool empty() const { return !zero && sides[0].empty() && sides[1].empty(); }
  bool integers_only = false;
};

enum class Cover : uint8_t { kNone, kAll, kMixed };

class NumberLanguage {
 public:
  NumberLanguage(const NumberFormulas& formulas, NumberId id, bool plain);

  NumberId id() const { return id_; }
  NumberMode mode() const { return mode_; }
  // False: too many divisors; then only `holds` may be asked.
  bool exact() const { return exact_; }
  bool lexical() const { return lexical_; }
  const NumberPieces& view(NumberView view);
  bool holds(const Decimal& value, bool written_lexically);
  bool satisfiable();

  // Can the prefix be completed, by a text of the view, to a number of the language?
  Answer reachable(const NumberPrefix& prefix, NumberMode mode, NumberView view);
  // Are all completions of the prefix within the view and within `goal` (itself allowed) in this
  // language, or none?  kMixed is also "not known".
  Cover cover(const NumberPrefix& prefix, NumberMode mode, NumberView view, NumberLanguage& goal);

  // Is the prefix in the language, or where it ends with a point will be with a digit, and also with
  // up to so many further digits behind it?  False also where that is not known.
  bool holds_with_digits(const NumberPrefix& prefix, int64_t more);

  // The smallest number of a piece within a window that is a multiple of 10^resolution (none: any;
  // then `found`, if given, is left alone for dense tables).
  Answer find(const NumberPieces& pieces, const NumberPiece& piece, const NumberWindow& window,
              std::optional<int64_t> resolution, Decimal* found) const;
  Answer find(const NumberPieces& pieces, size_t side, const NumberWindow& window,
              std::optional<int64_t> resolution, Decimal* found) const;
  // The smallest scale k >= `least` at which [n*10^k, (n+1)*10^k) meets the piece.
  Answer scan(const NumberPieces& pieces, const NumberPiece& piece, const std::string& digits,
              std::optional<int64_t> least, int64_t* scale) const;
  // Ranges of exponents e (inclusive) for which mantissa * 10^e is in the language; ascending
  // within a piece.
  std::vector<std::pair<int64_t, int64_t>> exponents(const Decimal& mantissa);

  size_t bytes() const;

 private:
  void build(NumberView view);
  void build_side(NumberPieces& out, size_t side, const std::vector<uint64_t>& slots,
                  NumberView view) const;
  void choose_mode(bool plain);
  // Leaves the truth table of the formula in the last `words_` words of `tables`, which has room
  // for one of each node.
  void evaluate_slot(size_t slot, bool lexical, std::vector<uint64_t>& tables) const;
  uint32_t table_id(NumberPieces& out, const uint64_t* bits, NumberView view) const;
  std::optional<NumberCube> cube(size_t assignment, std::optional<int64_t> resolution) const;
  Answer search(const NumberCube& cube, const NumberWindow& window, Decimal* found) const;
  size_t assignment_of(const Decimal& value) const;
  bool table_holds(const NumberTable& table, const Decimal& value) const;

  const NumberFormulas& formulas_;
  NumberId id_;
  bool lexical_ = false;
  bool exact_ = true;
  NumberMode mode_ = NumberMode::kFree;
  std::vector<NumberId> order_;
  std::vector<Decimal> constants_;      // ascending, zero among them
  size_t zero_ = 0;                     // its index
  std::vector<uint32_t> rank_;          // per node of order_: constant of a bound, divisor index
  std::vector<std::vector<uint32_t>> children_;  // per node: positions in order_, or constants
  std::vector<Decimal> divisors_;       // the first is 1
  std::vector<uint64_t> consistent_;    // assignments that some number has
  size_t words_ = 1;
  std::array<std::optional<NumberPieces>, 2> views_;
};

// Is some exponent in [low, high] spelled by a completion of what is written behind the 'e'?
bool exponent_reachable(const NumberPrefix& prefix, int64_t low, int64_t high);

}  // namespace constrain
