// Completing a number to a short text in its goal, and listing finite languages.
#include <algorithm>
#include <set>

#include "constrain/errors.hpp"
#include "number_pool.hpp"

namespace constrain {

namespace bits = cursor_bits;

namespace {

// Completions of up to this many characters without exponent are searched shortest first; longer
// ones piece by piece.
constexpr int64_t kThorough = 12;
// Fraction digits tried at most.
constexpr int64_t kMaxFractionTried = 3'000;
// Pieces that are tried for completions with an exponent.
constexpr size_t kMaxPiecesTried = 64;

void offer(std::string& best, std::string text) {
  if (best.empty() || text.size() < best.size()) best = std::move(text);
}

// The digits of `value` behind the first `known` significant digits, as far as 10^lowest.
std::string digits_behind(const Decimal& value, size_t known, int64_t lowest) {
  std::string digits = value.digits();
  const int64_t zeros = value.exponent() - lowest;
  if (zeros > 0) digits.append(static_cast<size_t>(zeros), '0');
  return digits.size() > known ? digits.substr(known) : std::string();
}

std::string exponent_text(int64_t exponent) {
  std::string out;
  if (exponent != 0) {
    out.push_back('e');
    out += std::to_string(exponent);
  }
  return out;
}

}  // namespace

// All completions are admissible: the shortest is a matter of grammar.
std::string NumberPool::Impl::complete_decided(const NumberContext& c,
                                               const NumberCursor& cursor) const {
  const uint32_t answers = cursor.digits == 0 ? 3u : records[cursor.digits].entries[0].bits;
  const bool lexical = (answers & 1) != 0;
  switch (bits::phase(cursor)) {
    case NumberPhase::kNone: return "0";
    case NumberPhase::kMinus:
      return std::string(c.mode == NumberMode::kInteger ? "1" : "0") + (lexical ? "" : ".0");
    case NumberPhase::kZero:
    case NumberPhase::kInt: return lexical ? "" : ".0";
    case NumberPhase::kFraction:
    case NumberPhase::kExponent: return "";
    default: return "0";
  }
}

// Without exponent.
void NumberPool::Impl::complete_plain(NumberLanguage& language, NumberMode mode,
                                      const NumberPrefix& prefix, std::string& best) const {
  const size_t side = prefix.negative ? 1 : 0;
  const std::string known = prefix.digits.empty() ? "0" : prefix.digits;
  const size_t known_size = prefix.digits.size();
  const auto fractions = [&](const std::string& lead, int64_t whole, int64_t have, int64_t from,
                             int64_t limit) {
    // `lead` is what comes before the fraction digits, of which there are `have` already.
    const NumberPieces& pieces = language.view(NumberView::kOther);
    const NumberWindow window = NumberWindow::of_prefix(known, whole - have);
    for (int64_t j = from; j <= limit; ++j) {
      Decimal value;
      std::string tail;
      if (prefix.digits.empty() && pieces.zero) {
        tail.assign(static_cast<size_t>(j), '0');
      } else if (language.find(pieces, side, window, -have - j, &value) == Answer::kYes) {
        tail = digits_behind(value, 0, -have - j);
        // Known digits and leading zeros are written already or fill up.
        const size_t wanted = static_cast<size_t>(j + whole);
        if (tail.size() > wanted) tail = tail.substr(tail.size() - wanted);
        tail.insert(0, wanted - tail.size(), '0');
      } else {
        continue;
      }
      const std::string integral = tail.substr(0, static_cast<size_t>(whole));
      offer(best, integral + lead + tail.substr(static_cast<size_t>(whole)));
      return;
    }
  };
  if (prefix.phase == NumberPhase::kPoint || prefix.phase == NumberPhase::kFraction) {
    fractions("", 0, prefix.fraction, 1, kMaxFractionTried);
    return;
  }
  const bool grows = prefix.phase == NumberPhase::kInt;
  const NumberView integral = mode == NumberMode::kInteger || language.lexical()
                                  ? NumberView::kLexical
                                  : NumberView::kOther;
  const auto whole = [&](int64_t k) {
    const NumberPieces& pieces = language.view(integral);
    Decimal value;
    const Answer answer =
        language.find(pieces, side, NumberWindow::of_prefix(known, k), 0, &value);
    if (answer == Answer::kYes) offer(best, digits_behind(value, known_size, 0));
    return answer == Answer::kYes;
  };
  for (int64_t length = 1; length <= kThorough && best.empty(); ++length) {
    if (grows && whole(length)) return;
    if (mode == NumberMode::kInteger) continue;
    for (int64_t k = 0; k <= (grows ? length - 2 : 0); ++k) {
      const int64_t j = length - 1 - k;
      if (j >= 1) fractions(".", k, 0, j, j);
    }
  }
  if (!best.empty()) return;
  // Far away: the first scale at which a piece is met.
  if (grows) {
    const NumberPieces& pieces = language.view(integral);
    for (const NumberPiece& piece : pieces.sides[side]) {
      int64_t k = 0;
      if (language.scan(pieces, piece, known, 0, &k) != Answer::kYes) continue;
      if (whole(k) || whole(k + 1)) break;
    }
  }
  if (mode == NumberMode::kInteger) return;
  const NumberPieces& pieces = language.view(NumberView::kOther);
  for (const NumberPiece& piece : pieces.sides[side]) {
    int64_t k = 0;
    if (grows && language.scan(pieces, piece, known, 0, &k) != Answer::kYes) continue;
    fractions(".", k, 0, 1, kMaxFractionTried);
    if (!best.empty()) return;
  }
}

// More digits and then an exponent: for every piece, a number of few digits in it.
void NumberPool::Impl::complete_scaled(NumberLanguage& language, const NumberPrefix& prefix,
                                       std::string& best) const {
  const NumberPieces& pieces = language.view(NumberView::kOther);
  const size_t side = prefix.negative ? 1 : 0;
  const bool none_yet = prefix.digits.empty();
  const bool integral = prefix.phase == NumberPhase::kInt;
  // A point needs a digit behind it.
  const int64_t least = prefix.phase == NumberPhase::kPoint ? 1 : 0;
  const auto& list = pieces.sides[side];
  for (size_t i = 0; i < std::min(list.size(), kMaxPiecesTried); ++i) {
    const NumberPiece& piece = list[i];
    if (none_yet) {
      const Decimal& reach = piece.window.low.is_zero() && !piece.window.unbounded
                                 ? piece.window.high
                                 : piece.window.low;
      const int64_t top = reach.is_zero() ? 0 : reach.magnitude();
      for (int64_t r = top; r > top - kMaxFractionTried; --r) {
        Decimal value;
        if (language.find(pieces, piece, piece.window, r, &value) != Answer::kYes) continue;
        const auto size = static_cast<int64_t>(value.digits().size());
        const std::string lead = prefix.phase == NumberPhase::kZero ? "." : "";
        const std::string scale = exponent_text(value.exponent() + prefix.fraction + size);
        offer(best, lead + value.digits() + scale);
        break;
      }
      continue;
    }
    int64_t k = 0;
    if (language.scan(pieces, piece, prefix.digits, std::nullopt, &k) != Answer::kYes) continue;
    for (int64_t j = least; j < kMaxFractionTried; ++j) {
      Decimal value;
      const NumberWindow window = NumberWindow::of_prefix(prefix.digits, k);
      if (language.find(pieces, piece, window, k - j, &value) != Answer::kYes) continue;
      std::string text = digits_behind(value, prefix.digits.size(), k - j);
      text += exponent_text(integral ? k - j : k + prefix.fraction);
      // The number was looked for among those written with fraction or exponent.
      if (integral && text.find('e') == std::string::npos) text += "e0";
      offer(best, std::move(text));
      break;
    }
  }
}

void NumberPool::Impl::complete_exponent(NumberLanguage& language, const NumberPrefix& prefix,
                                         std::string& best) const {
  if (prefix.digits.empty()) {
    offer(best, "0");
    return;
  }
  const auto consider = [&](int64_t e, bool down) {
    std::string text;
    if (prefix.phase == NumberPhase::kE && down) text.push_back('-');
    text += std::to_string(e);
    if (prefix.phase == NumberPhase::kExponent && prefix.exponent != 0) {
      const std::string have = std::to_string(prefix.exponent);
      if (text.size() <= have.size() || text.compare(0, have.size(), have) != 0) return;
      text.erase(0, have.size());
    }
    offer(best, text);
  };
  const Decimal mantissa(prefix.negative, prefix.digits, -prefix.fraction);
  for (const auto& [low, high] : language.exponents(mantissa)) {
    for (const bool down : {false, true}) {
      if (prefix.phase != NumberPhase::kE && down != prefix.exponent_negative) continue;
      const int64_t from = down ? std::max<int64_t>(-high, 0) : std::max<int64_t>(low, 0);
      const int64_t to = down ? -low : high;
      if (from > to) continue;
      if (prefix.phase != NumberPhase::kExponent || prefix.exponent == 0) {
        consider(from, down);
        continue;
      }
      int64_t first = prefix.exponent * 10;
      for (int64_t size = 10; first <= to && size < NumberPool::kExponentSaturation * 10;
           size *= 10, first *= 10) {
        if (first + size - 1 < from) continue;
        consider(std::max(first, from), down);
        break;
      }
    }
  }
}

bool NumberPool::Impl::verify(uint32_t context_id, NumberCursor cursor, const std::string& text) {
  for (const char c : text) {
    if (!step(context_id, cursor, static_cast<uint8_t>(c))) return false;
  }
  return accepts(contexts[context_id]->goal, cursor);
}

bool NumberPool::Impl::complete(uint32_t context_id, const NumberCursor& cursor,
                                std::string& out) {
  const NumberContext& c = *contexts[context_id];
  if (bits::phase(cursor) == NumberPhase::kNone) {
    std::string best;
    for (const char first : {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-'}) {
      NumberCursor next;
      if (!step(context_id, next, static_cast<uint8_t>(first))) continue;
      std::string text(1, first);
      if (!complete(context_id, next, text)) continue;
      offer(best, text);
      if (best.size() == 1) break;
    }
    out += best;
    return !best.empty();
  }
  if (accepts(c.goal, cursor)) return true;
  if (bits::store(cursor) == NumberStore::kDecided) {
    out += complete_decided(c, cursor);
    return true;
  }
  NumberLanguage& language = c.compiled->language;
  if (!language.exact()) return false;
  const NumberPrefix prefix = prefixes.decode(cursor);
  std::string best;
  if (prefix.phase == NumberPhase::kMinus) {
    for (char digit = '0'; digit <= '9'; ++digit) {
      NumberCursor next = cursor;
      if (!step(context_id, next, static_cast<uint8_t>(digit))) continue;
      std::string text(1, digit);
      if (!complete(context_id, next, text)) continue;
      offer(best, text);
      if (best.size() == 1) break;
    }
  } else if (bits::in_exponent(prefix.phase)) {
    complete_exponent(language, prefix, best);
  } else {
    if (c.goal == kAnyNumber) {
      best = "0";  // only "5." is unfinished here
    } else {
      complete_plain(language, c.mode, prefix, best);
      if (c.mode == NumberMode::kFree) complete_scaled(language, prefix, best);
    }
  }
  if (best.empty() || !verify(context_id, cursor, best)) return false;
  out += best;
  return true;
}

uint32_t NumberPool::longest_end(NumberId goal) {
  constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  constexpr uint64_t kFew = 16;   // a sign, a point, a digit that tells the number from a bound
  if (goal == kNoNumber || goal == kAnyNumber) return kFew;
  const NumberLanguage& language = impl_->compiled(goal).language;
  if (!language.exact() || language.mode() == NumberMode::kFree) return kUnknown;
  // A prefix that is alive meets a number of the language within the digits of the bounds and of a
  // common multiple of the divisors.
  uint64_t digits = kFew;
  const auto add = [&](NumberValue value) {
    const Decimal& d = impl_->formulas.decimal(value);
    digits += d.digits().size() + static_cast<uint64_t>(std::abs(d.exponent())) + 1;
  };
  for (const NumberId id : impl_->formulas.reachable(goal)) {
    const NumberNode& node = impl_->formulas.node(id);
    switch (node.op) {
      case NumberOp::kMinimum:
      case NumberOp::kMaximum:
      case NumberOp::kMultiple: add(node.a); break;
      case NumberOp::kOneOf: {
        const uint64_t before = digits;
        uint64_t longest = before;
        for (const NumberValue value : impl_->formulas.args(node)) {
          digits = before;
          add(value);
          longest = std::max(longest, digits);
        }
        digits = longest;
        break;
      }
      default: break;
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(digits, kUnknown - 1));
}

bool NumberPool::enumerate(NumberId id, size_t cap, std::vector<NumberValue>& out) {
  if (id == kNoNumber) return true;
  if (id == kAnyNumber) return false;
  NumberLanguage& language = impl_->compiled(id).language;
  if (!language.exact()) return false;
  const auto less = [](const Decimal& a, const Decimal& b) { return a < b; };
  std::set<Decimal, decltype(less)> found(less);
  const auto collect = [&](NumberView which) {
    const NumberPieces& pieces = language.view(which);
    if (pieces.zero) found.insert(Decimal());
    for (size_t side = 0; side < 2; ++side) {
      for (const NumberPiece& piece : pieces.sides[side]) {
        if (piece.window.unbounded) return false;
        if (!piece.point && pieces.tables[piece.table].dense) return false;
        NumberWindow rest = piece.window;
        while (true) {
          Decimal value;
          const Answer answer = language.find(pieces, piece, rest, std::nullopt, &value);
          if (answer == Answer::kUnknown) return false;
          if (answer == Answer::kNo) break;
          found.insert(side == 0 ? value : value.negated());
          if (found.size() > cap) return false;
          rest.low = value;
          rest.low_strict = true;
        }
      }
    }
    return found.size() <= cap;
  };
  const bool integers = language.mode() == NumberMode::kInteger;
  if (!integers && !collect(NumberView::kOther)) return false;
  if ((integers || language.lexical()) && !collect(NumberView::kLexical)) return false;
  for (const Decimal& value : found) out.push_back(impl_->formulas.value(value));
  return true;
}

}  // namespace constrain
