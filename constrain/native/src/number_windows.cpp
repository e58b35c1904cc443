// Which numbers of a compiled language a prefix can still reach.
#include <algorithm>
#include <limits>

#include "number_language.hpp"

namespace constrain {

namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
constexpr int64_t kNever = kFar + 1;
// Sides with more pieces than this are searched scale by scale instead of piece by piece.
constexpr size_t kManyPieces = 8;
// Scales tried before the answer is "not known"; a prefix of n digits needs about n.
constexpr int64_t kMaxScales = 100'000;
constexpr int64_t kSmallDigits = 18;

Decimal incremented(const std::string& digits) {
  std::string out = digits;
  size_t i = out.size();
  while (i > 0 && out[i - 1] == '9') out[--i] = '0';
  if (i == 0) out.insert(out.begin(), '1');
  else ++out[i - 1];
  return Decimal(false, std::move(out), 0);
}

uint64_t shifted(const Decimal& d, int64_t scale) {
  if (d.is_zero()) return 0;
  uint64_t out = 0;
  for (const char c : d.digits()) out = out * 10 + static_cast<uint64_t>(c - '0');
  for (int64_t i = d.exponent() - scale; i > 0; --i) out *= 10;
  return out;
}

}  // namespace

bool NumberWindow::empty() const {
  if (unbounded) return false;
  const int order = low.compare(high);
  return order > 0 || (order == 0 && (low_strict || high_strict));
}

NumberWindow NumberWindow::intersected(const NumberWindow& other) const {
  NumberWindow out = *this;
  const int below = low.compare(other.low);
  if (below < 0) {
    out.low = other.low;
    out.low_strict = other.low_strict;
  } else if (below == 0) {
    out.low_strict = low_strict || other.low_strict;
  }
  if (other.unbounded) return out;
  const int above = unbounded ? 1 : high.compare(other.high);
  if (above > 0) {
    out.high = other.high;
    out.high_strict = other.high_strict;
    out.unbounded = false;
  } else if (above == 0) {
    out.high_strict = high_strict || other.high_strict;
  }
  return out;
}

NumberWindow NumberWindow::of_prefix(const std::string& digits, int64_t scale) {
  NumberWindow out;
  out.low = Decimal(false, digits, scale);
  out.high = incremented(digits).scaled(scale);
  out.high_strict = true;
  return out;
}

NumberWindow NumberWindow::from(Decimal low, bool strict) {
  NumberWindow out;
  out.low = std::move(low);
  out.low_strict = strict;
  out.unbounded = true;
  return out;
}

Answer NumberLanguage::search(const NumberCube& cube, const NumberWindow& window,
                              Decimal* found) const {
  const Decimal& step = *cube.step;
  if (window.unbounded && found == nullptr) return Answer::kYes;
  const uint64_t tries = (uint64_t{1} << std::min<size_t>(cube.others.size(), 12)) + 1;

  int64_t scale = step.exponent();
  int64_t top = step.magnitude();
  const auto widen = [&](const Decimal& d) {
    if (d.is_zero()) return;
    scale = std::min(scale, d.exponent());
    top = std::max(top, d.magnitude());
  };
  widen(window.low);
  if (!window.unbounded) widen(window.high);

  if (top - scale <= kSmallDigits && cube.small.size() == cube.others.size()) {
    const uint64_t q = shifted(step, scale);
    const uint64_t low = shifted(window.low, scale);
    uint64_t n = low / q + (low % q != 0 || window.low_strict ? 1 : 0);
    n = std::max<uint64_t>(n, 1);
    uint64_t last = std::numeric_limits<uint64_t>::max();
    if (!window.unbounded) {
      const uint64_t high = shifted(window.high, scale);
      last = high / q;
      if (window.high_strict && high % q == 0) --last;  // high > 0, so last was at least 1
    }
    for (uint64_t i = 0; i < tries; ++i, ++n) {
      if (n > last) return Answer::kNo;
      const bool excluded = std::any_of(cube.small.begin(), cube.small.end(),
                                        [&](uint64_t period) { return n % period == 0; });
      if (excluded) continue;
      if (found != nullptr) {
        *found = Decimal(false, Natural(n).times(Natural(q)).to_digits(), scale);
      }
      return Answer::kYes;
    }
    return Answer::kUnknown;
  }

  if (top - scale > NumberPool::kMaxAlignedDigits) return Answer::kUnknown;
  const auto align = [&](const Decimal& d) {
    return d.is_zero() ? Natural() : Natural::from_digits(d.digits(), d.exponent() - scale);
  };
  const Natural q = align(step);
  Natural rest;
  Natural n = align(window.low).divided(q, rest);
  if (!rest.is_zero() || window.low_strict || n.is_zero()) n = n.plus(1);
  Natural last;
  bool last_excluded = false;
  if (!window.unbounded) {
    last = align(window.high).divided(q, rest);
    last_excluded = window.high_strict && rest.is_zero();
  }
  for (uint64_t i = 0; i < tries; ++i, n = n.plus(1)) {
    if (!window.unbounded) {
      const int order = n.compare(last);
      if (order > 0 || (order == 0 && last_excluded)) return Answer::kNo;
    }
    const bool excluded = std::any_of(cube.periods.begin(), cube.periods.end(),
                                      [&](const Natural& p) { return n.modulo(p).is_zero(); });
    if (excluded) continue;
    if (found != nullptr) *found = Decimal(false, n.times(q).to_digits(), scale);
    return Answer::kYes;
  }
  return Answer::kUnknown;
}

Answer NumberLanguage::find(const NumberPieces& pieces, const NumberPiece& piece,
                            const NumberWindow& window, std::optional<int64_t> resolution,
                            Decimal* found) const {
  const NumberWindow w = piece.window.intersected(window);
  if (w.empty()) return Answer::kNo;
  const NumberTable& table = pieces.tables[piece.table];
  if (w.is_point()) {
    if (resolution && w.low.exponent() < *resolution) return Answer::kNo;
    if (!piece.point && !table_holds(table, w.low)) return Answer::kNo;
    if (found != nullptr) *found = w.low;
    return Answer::kYes;
  }
  bool unknown = false;
  std::optional<Decimal> best;
  const auto consider = [&](const NumberCube& cube) {
    Decimal value;
    const Answer answer = search(cube, w, found == nullptr ? nullptr : &value);
    if (answer == Answer::kUnknown) unknown = true;
    if (answer == Answer::kYes && (!best || value < *best)) best = value;
  };
  if (!resolution) {
    if (table.dense) return Answer::kYes;
    for (const NumberCube& cube : table.cubes) {
      consider(cube);
      if (best && found == nullptr) return Answer::kYes;
    }
  } else if (table.all) {
    NumberCube cube;
    // Only integers where the table is not dense.
    const int64_t finest = table.dense ? *resolution : std::max<int64_t>(*resolution, 0);
    cube.step = Decimal::power_of_ten(finest);
    consider(cube);
  } else {
    for (size_t a = 0; a < size_t{1} << divisors_.size(); ++a) {
      if ((table.bits[a / 64] >> a % 64 & 1) == 0) continue;
      if (const auto c = cube(a, resolution)) consider(*c);
      if (best && found == nullptr) return Answer::kYes;
    }
  }
  if (!best) return unknown ? Answer::kUnknown : Answer::kNo;
  if (found != nullptr) *found = *best;
  return Answer::kYes;
}

Answer NumberLanguage::find(const NumberPieces& pieces, size_t side, const NumberWindow& window,
                            std::optional<int64_t> resolution, Decimal* found) const {
  const auto& list = pieces.sides[side];
  auto it = std::partition_point(list.begin(), list.end(), [&](const NumberPiece& piece) {
    return !piece.window.unbounded && piece.window.high < window.low;
  });
  bool unknown = false;
  for (; it != list.end(); ++it) {
    if (!window.unbounded && window.high < it->window.low) break;
    const Answer answer = find(pieces, *it, window, resolution, found);
    if (answer == Answer::kYes) return answer;
    unknown = unknown || answer == Answer::kUnknown;
  }
  return unknown ? Answer::kUnknown : Answer::kNo;
}

Answer NumberLanguage::scan(const NumberPieces& pieces, const NumberPiece& piece,
                            const std::string& digits, std::optional<int64_t> least,
                            int64_t* scale) const {
  const NumberTable& table = pieces.tables[piece.table];
  Decimal low = piece.window.low;
  if (!piece.point && !table.dense) {
    const Decimal* step = nullptr;
    for (const NumberCube& cube : table.cubes) {
      if (step == nullptr || *cube.step < *step) step = &*cube.step;
    }
    if (step != nullptr && low < *step) low = *step;
  }
  const Decimal after = incremented(digits);
  int64_t k = 0;
  if (low.is_zero()) {
    // Dense down to zero: any scale below the upper end serves.
    if (least) {
      k = *least;
    } else {
      k = piece.window.unbounded ? -static_cast<int64_t>(digits.size())
                                 : piece.window.high.magnitude() - 1 - after.magnitude();
    }
  } else {
    k = low.magnitude() - after.magnitude() - 1;
    while (after.scaled(k) < low) ++k;
    if (least) k = std::max(k, *least);
  }
  for (int64_t tried = 0; tried < kMaxScales; ++tried, ++k) {
    const NumberWindow window = NumberWindow::of_prefix(digits, k);
    if (!piece.window.unbounded && piece.window.high < window.low) return Answer::kNo;
    const Answer answer = find(pieces, piece, window, std::nullopt, nullptr);
    if (answer == Answer::kNo) continue;
    if (scale != nullptr) *scale = k;
    return answer;
  }
  return Answer::kUnknown;
}

bool exponent_reachable(const NumberPrefix& prefix, int64_t low, int64_t high) {
  if (low > high) return false;
  for (const bool down : {false, true}) {
    if (prefix.phase != NumberPhase::kE && down != prefix.exponent_negative) continue;
    const int64_t from = down ? std::max<int64_t>(-high, 0) : std::max<int64_t>(low, 0);
    const int64_t to = down ? -low : high;
    if (from > to) continue;
    if (prefix.phase != NumberPhase::kExponent || prefix.exponent == 0) return true;
    int64_t first = prefix.exponent;
    int64_t last = prefix.exponent;
    // Beyond saturation all exponents are alike: the last range is open.
    while (first <= to && first <= NumberPool::kExponentSaturation) {
      if (std::max(first, from) <= std::min(last, to)) return true;
      first *= 10;
      last = last * 10 + 9;
    }
    if (std::max(std::min(first, NumberPool::kExponentSaturation), from) <= to &&
        to >= NumberPool::kExponentSaturation) {
      return true;
    }
  }
  return false;
}

std::vector<std::pair<int64_t, int64_t>> NumberLanguage::exponents(const Decimal& mantissa) {
  const NumberPieces& pieces = view(NumberView::kOther);
  std::vector<std::pair<int64_t, int64_t>> out;
  std::vector<int64_t> thresholds;  // per divisor: the smallest exponent that makes a multiple
  const auto find_thresholds = [&] {
    const Natural d = Natural::from_digits(mantissa.digits());
    for (const Decimal& divisor : divisors_) {
      const Natural q = Natural::from_digits(divisor.digits());
      Natural rest;
      Natural left = q.divided(Natural::gcd(q, d), rest);
      const int64_t twos = left.strip_factor(2);
      const int64_t fives = left.strip_factor(5);
      thresholds.push_back(left.is_one() ? divisor.exponent() - mantissa.exponent() +
                                               std::max(twos, fives)
                                         : kNever);
    }
  };
  for (const NumberPiece& piece : pieces.sides[mantissa.negative() ? 1 : 0]) {
    int64_t first = -kFar;
    int64_t last = kFar;
    if (!piece.window.low.is_zero()) {
      first = piece.window.low.magnitude() - mantissa.magnitude();
      const int order = mantissa.digits().compare(piece.window.low.digits());
      if (order < 0 || (order == 0 && piece.window.low_strict)) ++first;
    }
    if (!piece.window.unbounded) {
      last = piece.window.high.magnitude() - mantissa.magnitude();
      const int order = mantissa.digits().compare(piece.window.high.digits());
      if (order > 0 || (order == 0 && piece.window.high_strict)) --last;
    }
    if (first > last) continue;
    const NumberTable& table = pieces.tables[piece.table];
    if (piece.point || table.all) {
      out.emplace_back(first, last);
      continue;
    }
    if (thresholds.empty()) find_thresholds();
    // Between thresholds the divisors agree.
    std::vector<int64_t> cuts{first};
    for (const int64_t t : thresholds) {
      if (t > first && t <= last) cuts.push_back(t);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t i = 0; i < cuts.size(); ++i) {
      size_t a = 0;
      for (size_t d = 0; d < thresholds.size(); ++d) {
        if (thresholds[d] <= cuts[i]) a |= size_t{1} << d;
      }
      if ((table.bits[a / 64] >> a % 64 & 1) == 0) continue;
      out.emplace_back(cuts[i], i + 1 < cuts.size() ? cuts[i + 1] - 1 : last);
    }
  }
  return out;
}

Answer NumberLanguage::reachable(const NumberPrefix& prefix, NumberMode mode, NumberView which) {
  const auto yes = [](bool truth) { return truth ? Answer::kYes : Answer::kNo; };
  const bool lexical = which == NumberView::kLexical;
  const NumberPieces& pieces = view(which);
  const size_t side = prefix.negative ? 1 : 0;
  const auto& list = pieces.sides[side];
  const bool free = mode == NumberMode::kFree && !lexical;
  std::optional<int64_t> least;
  switch (prefix.phase) {
    case NumberPhase::kNone: return yes(!pieces.empty());
    case NumberPhase::kMinus:
      // "-0" is not written where integers are plain.
      return yes(!list.empty() || (pieces.zero && mode != NumberMode::kInteger));
    case NumberPhase::kZero:
      if (pieces.zero) return Answer::kYes;
      if (lexical) return Answer::kNo;
      if (free) return yes(!list.empty());
      return find(pieces, side, NumberWindow::of_prefix("0", 0), std::nullopt, nullptr);
    case NumberPhase::kInt:
      if (list.empty()) return Answer::kNo;
      if (list.back().window.unbounded) return Answer::kYes;  // digits reach as far as needed
      if (!free) least = 0;
      break;
    case NumberPhase::kPoint:
    case NumberPhase::kFraction:
      if (lexical) return Answer::kNo;
      if (prefix.digits.empty() && pieces.zero) return Answer::kYes;
      if (!free) {
        const std::string digits = prefix.digits.empty() ? "0" : prefix.digits;
        return find(pieces, side, NumberWindow::of_prefix(digits, -prefix.fraction), std::nullopt,
                    nullptr);
      }
      if (prefix.digits.empty()) return yes(!list.empty());
      break;
    case NumberPhase::kE:
    case NumberPhase::kExponentSign:
    case NumberPhase::kExponent: {
      if (lexical) return Answer::kNo;
      if (prefix.digits.empty()) return yes(pieces.zero);
      const auto ranges = exponents(Decimal(prefix.negative, prefix.digits, -prefix.fraction));
      return yes(std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
        return exponent_reachable(prefix, range.first, range.second);
      }));
    }
  }
  bool unknown = false;
  if (least && list.size() > kManyPieces) {
    for (int64_t k = *least; k - *least < kMaxScales; ++k) {
      const NumberWindow window = NumberWindow::of_prefix(prefix.digits, k);
      if (list.back().window.high < window.low) return unknown ? Answer::kUnknown : Answer::kNo;
      const Answer answer = find(pieces, side, window, std::nullopt, nullptr);
      if (answer == Answer::kYes) return answer;
      unknown = unknown || answer == Answer::kUnknown;
    }
    return Answer::kUnknown;
  }
  for (const NumberPiece& piece : list) {
    const Answer answer = scan(pieces, piece, prefix.digits, least, nullptr);
    if (answer == Answer::kYes) return answer;
    unknown = unknown || answer == Answer::kUnknown;
  }
  return unknown ? Answer::kUnknown : Answer::kNo;
}

Cover NumberLanguage::cover(const NumberPrefix& prefix, NumberMode mode, NumberView which,
                            NumberLanguage& goal) {
  if (id_ <= kAnyNumber) return id_ == kAnyNumber ? Cover::kAll : Cover::kNone;
  if (!exact_) return Cover::kMixed;
  // A hull of the completions: an interval of magnitudes, and perhaps zero.
  const bool lexical = which == NumberView::kLexical;
  const bool free = mode == NumberMode::kFree && !lexical;
  const bool none_yet = prefix.digits.empty();
  bool zero = none_yet;
  NumberWindow hull = NumberWindow::from(Decimal(), true);
  switch (prefix.phase) {
    case NumberPhase::kNone: return Cover::kMixed;
    case NumberPhase::kMinus:
      zero = mode != NumberMode::kInteger;
      if (lexical) hull.low = Decimal::from_int(1), hull.low_strict = false;
      break;
    case NumberPhase::kZero:
      if (!free) {
        hull.unbounded = false;
        hull.high_strict = true;
        if (!lexical) hull.high = Decimal::from_int(1);
      }
      break;
    case NumberPhase::kInt:
      if (!free) hull = NumberWindow::from(Decimal(false, prefix.digits, 0), false);
      break;
    case NumberPhase::kPoint:
    case NumberPhase::kFraction:
      if (free) break;
      hull = NumberWindow::of_prefix(none_yet ? "0" : prefix.digits, -prefix.fraction);
      hull.low_strict = none_yet;
      break;
    case NumberPhase::kE:
    case NumberPhase::kExponentSign:
    case NumberPhase::kExponent: {
      if (none_yet) {
        hull.unbounded = false;
        hull.high_strict = true;
        break;
      }
      if (prefix.phase == NumberPhase::kE) break;
      const Decimal now = prefix.value().absolute();
      if (prefix.exponent_negative) {
        hull.unbounded = false;
        hull.high = now;
      } else {
        hull = NumberWindow::from(now, false);
      }
      break;
    }
  }
  const size_t side = prefix.negative ? 1 : 0;
  bool inside = !hull.empty();
  if (&goal != this && goal.exact() && goal.id() > kAnyNumber) {
    const NumberPieces& wanted = goal.view(which);
    zero = zero && wanted.zero;
    if (wanted.sides[side].empty()) {
      inside = false;
    } else if (inside) {
      NumberWindow range = wanted.sides[side].back().window;
      range.low = wanted.sides[side].front().window.low;
      range.low_strict = wanted.sides[side].front().window.low_strict;
      hull = hull.intersected(range);
      inside = !hull.empty();
    }
  }
  const NumberPieces& pieces = view(which);
  bool all = !zero || pieces.zero;
  bool none = !zero || !pieces.zero;
  if (inside) {
    bool within = false;
    for (const NumberPiece& piece : pieces.sides[side]) {
      const NumberWindow& w = piece.window;
      if (!hull.unbounded && hull.high < w.low) break;
      if (w.intersected(hull).empty()) continue;
      none = false;
      const int low = w.low.compare(hull.low);
      const bool starts = low < 0 || (low == 0 && (!w.low_strict || hull.low_strict));
      const int high = w.unbounded ? 1 : (hull.unbounded ? -1 : w.high.compare(hull.high));
      const bool ends = high > 0 || (high == 0 && (!w.high_strict || hull.high_strict));
      within = starts && ends && (piece.point || pieces.tables[piece.table].all);
      break;
    }
    all = all && within;
  }
  if (all) return Cover::kAll;
  return none ? Cover::kNone : Cover::kMixed;
}

bool NumberLanguage::holds_with_digits(const NumberPrefix& prefix, int64_t more) {
  if (!exact_) return false;
  NumberWindow window;
  NumberView which = NumberView::kOther;
  const bool none_yet = prefix.digits.empty();
  if (prefix.phase == NumberPhase::kInt) {
    which = NumberView::kLexical;
    window = NumberWindow::of_prefix(prefix.digits, 0);
    window.high = window.high.scaled(more);
  } else if (prefix.phase == NumberPhase::kPoint || prefix.phase == NumberPhase::kFraction) {
    window = NumberWindow::of_prefix(none_yet ? "0" : prefix.digits, -prefix.fraction);
    window.low_strict = none_yet;   // zero is no magnitude
  } else {
    return false;
  }
  const NumberPieces& pieces = view(which);
  if (none_yet && !pieces.zero) return false;
  for (const NumberPiece& piece : pieces.sides[prefix.negative ? 1 : 0]) {
    const NumberWindow& w = piece.window;
    const int low = w.low.compare(window.low);
    if (low > 0 || (low == 0 && w.low_strict && !window.low_strict)) return false;   // pieces ascend
    if (!w.unbounded && w.high.compare(window.high) < 0) continue;
    return !piece.point && pieces.tables[piece.table].all;
  }
  return false;
}

}  // namespace constrain
