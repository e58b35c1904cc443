// Compiling a number formula into pieces of the number line.
#include "number_language.hpp"

#include <algorithm>
#include <unordered_map>

namespace constrain {

namespace {

Decimal integral(const Natural& natural, int64_t exponent) {
  return Decimal(false, natural.to_digits(), exponent);
}

// Two positive decimals as integers at a common scale.
struct Aligned {
  Natural a, b;
  int64_t scale;
};

Aligned align(const Decimal& a, const Decimal& b) {
  const int64_t scale = std::min(a.exponent(), b.exponent());
  return {Natural::from_digits(a.digits(), a.exponent() - scale),
          Natural::from_digits(b.digits(), b.exponent() - scale), scale};
}

Decimal least_common_multiple(const Decimal& a, const Decimal& b) {
  if (is_multiple(a, b)) return a;
  if (is_multiple(b, a)) return b;
  const Aligned both = align(a, b);
  Natural rest;
  const Natural part = both.b.divided(Natural::gcd(both.a, both.b), rest);
  return integral(both.a.times(part), both.scale);
}

}  // namespace

NumberLanguage::NumberLanguage(const NumberFormulas& formulas, NumberId id, bool plain)
    : formulas_(formulas), id_(id), lexical_(formulas.node(id).lexical),
      order_(formulas.reachable(id)) {
  divisors_.push_back(Decimal::from_int(1));
  rank_.assign(order_.size(), 0);
  children_.resize(order_.size());
  std::unordered_map<NumberId, uint32_t> position;
  std::vector<Decimal> constants{Decimal()};
  for (uint32_t i = 0; i < order_.size(); ++i) {
    position[order_[i]] = i;
    const NumberNode& node = formulas.node(order_[i]);
    switch (node.op) {
      case NumberOp::kMinimum:
      case NumberOp::kMaximum: constants.push_back(formulas.decimal(node.a)); break;
      case NumberOp::kOneOf:
        for (const NumberValue v : formulas.args(node)) constants.push_back(formulas.decimal(v));
        break;
      case NumberOp::kMultiple: {
        const Decimal& divisor = formulas.decimal(node.a);
        const auto it = std::find(divisors_.begin(), divisors_.end(), divisor);
        rank_[i] = static_cast<uint32_t>(it - divisors_.begin());
        if (it == divisors_.end()) divisors_.push_back(divisor);
        break;
      }
      case NumberOp::kNot: children_[i].push_back(position[node.a]); break;
      case NumberOp::kAnd:
      case NumberOp::kOne:
        for (const NumberId child : formulas.args(node)) children_[i].push_back(position[child]);
        break;
      default: break;
    }
  }
  if (divisors_.size() > NumberPool::kMaxDivisors) {
    exact_ = false;
    divisors_.resize(1);
    mode_ = plain ? NumberMode::kDecimal : NumberMode::kFree;
    for (const Decimal& c : constants) {
      if (c.plain_digits() > Decimal::kPlainDigits) mode_ = NumberMode::kFree;
    }
    return;
  }
  std::sort(constants.begin(), constants.end());
  constants.erase(std::unique(constants.begin(), constants.end()), constants.end());
  constants_ = std::move(constants);
  const auto rank_of = [&](const Decimal& d) {
    return static_cast<uint32_t>(std::lower_bound(constants_.begin(), constants_.end(), d) -
                                 constants_.begin());
  };
  const auto rank = [&](NumberValue v) { return rank_of(formulas.decimal(v)); };
  for (size_t i = 0; i < order_.size(); ++i) {
    const NumberNode& node = formulas.node(order_[i]);
    if (node.op == NumberOp::kMinimum || node.op == NumberOp::kMaximum) rank_[i] = rank(node.a);
    if (node.op == NumberOp::kOneOf) {
      for (const NumberValue v : formulas.args(node)) children_[i].push_back(rank(v));
    }
  }
  const size_t assignments = size_t{1} << divisors_.size();
  words_ = (assignments + 63) / 64;
  consistent_.assign(words_, 0);
  for (size_t a = 0; a < assignments; ++a) {
    // With 1 as the only divisor both assignments occur; the cube need not be built to know.
    if (divisors_.size() == 1 || cube(a, std::nullopt)) {
      consistent_[a / 64] |= uint64_t{1} << a % 64;
    }
  }
  zero_ = rank_of(Decimal());
  choose_mode(plain);
}

// Slot 2i is the open interval below constant i, slot 2i + 1 is constant i.
void NumberLanguage::evaluate_slot(size_t slot, bool lexical,
                                   std::vector<uint64_t>& table) const {
  table.assign(order_.size() * words_, 0);
  const size_t assignments = size_t{1} << divisors_.size();
  for (size_t i = 0; i < order_.size(); ++i) {
    const NumberNode& node = formulas_.node(order_[i]);
    uint64_t* out = &table[i * words_];
    const auto fill = [&](bool truth) { std::fill(out, out + words_, truth ? ~uint64_t{0} : 0); };
    const size_t point = size_t{2} * rank_[i] + 1;
    switch (node.op) {
      case NumberOp::kFalse: break;
      case NumberOp::kTrue: fill(true); break;
      case NumberOp::kMinimum: fill(slot > point || (slot == point && !node.strict)); break;
      case NumberOp::kMaximum: fill(slot < point || (slot == point && !node.strict)); break;
      case NumberOp::kLexical: fill(lexical); break;
      case NumberOp::kOneOf:
        fill(slot % 2 == 1 && std::binary_search(children_[i].begin(), children_[i].end(),
                                                 static_cast<uint32_t>(slot / 2)));
        break;
      case NumberOp::kMultiple:
        for (size_t a = 0; a < assignments; ++a) {
          if (a >> rank_[i] & 1) out[a / 64] |= uint64_t{1} << a % 64;
        }
        break;
      case NumberOp::kNot:
        for (size_t w = 0; w < words_; ++w) out[w] = ~table[children_[i][0] * words_ + w];
        break;
      case NumberOp::kAnd:
        fill(true);
        for (const uint32_t child : children_[i]) {
          for (size_t w = 0; w < words_; ++w) out[w] &= table[child * words_ + w];
        }
        break;
      case NumberOp::kOne:
        for (size_t w = 0; w < words_; ++w) {
          uint64_t once = 0;
          uint64_t twice = 0;
          for (const uint32_t child : children_[i]) {
            const uint64_t t = table[child * words_ + w];
            twice |= once & t;
            once |= t;
          }
          out[w] = once & ~twice;
        }
        break;
    }
  }
}

// The numbers that are multiples of exactly the divisors in `assignment` (and of 10^resolution);
// none: there are no such numbers.
std::optional<NumberCube> NumberLanguage::cube(size_t assignment,
                                               std::optional<int64_t> resolution) const {
  NumberCube out;
  if (resolution) out.step = Decimal::power_of_ten(*resolution);
  for (size_t i = 0; i < divisors_.size(); ++i) {
    if (assignment >> i & 1) {
      out.step = out.step ? least_common_multiple(*out.step, divisors_[i]) : divisors_[i];
    } else {
      out.others.push_back(divisors_[i]);
    }
  }
  if (!out.step) return out;
  bool small = true;
  for (const Decimal& other : out.others) {
    const Aligned both = align(other, *out.step);
    Natural rest;
    Natural period = both.a.divided(Natural::gcd(both.a, both.b), rest);
    if (period.is_one()) return std::nullopt;
    small = small && period.to_digits().size() <= 18;
    out.periods.push_back(std::move(period));
  }
  if (small) {
    for (const Natural& period : out.periods) out.small.push_back(std::stoull(period.to_digits()));
  }
  return out;
}

uint32_t NumberLanguage::table_id(NumberPieces& out, const uint64_t* wanted,
                                  NumberView view) const {
  for (uint32_t i = 0; i < out.tables.size(); ++i) {
    if (std::equal(wanted, wanted + words_, out.tables[i].bits.begin())) return i;
  }
  NumberTable table;
  table.bits.assign(wanted, wanted + words_);
  const std::vector<uint64_t>& bits = table.bits;
  table.all = true;
  const size_t assignments = size_t{1} << divisors_.size();
  const size_t first = view == NumberView::kLexical ? 1 : 0;
  const size_t stride = view == NumberView::kLexical ? 2 : 1;
  const auto has = [](const std::vector<uint64_t>& set, size_t a) {
    return (set[a / 64] >> a % 64 & 1) != 0;
  };
  for (size_t a = first; a < assignments; a += stride) {
    if (has(consistent_, a) && !has(bits, a)) table.all = false;
  }
  if (has(bits, 0)) {
    table.dense = true;
  } else if (table.all) {
    NumberCube integers;
    integers.step = divisors_[0];
    table.cubes.push_back(std::move(integers));
  } else {
    for (size_t a = first; a < assignments; ++a) {
      if (!has(bits, a)) continue;
      if (auto c = cube(a, std::nullopt)) table.cubes.push_back(std::move(*c));
    }
  }
  out.tables.push_back(std::move(table));
  return static_cast<uint32_t>(out.tables.size() - 1);
}

const NumberPieces& NumberLanguage::view(NumberView view) {
  auto& slot = views_[static_cast<size_t>(view)];
  if (!slot) build(view);
  return *slot;
}

void NumberLanguage::build(NumberView view) {
  const bool integers = view == NumberView::kLexical;
  NumberPieces out;
  const size_t count = constants_.size() * 2 + 1;
  std::vector<uint64_t> slots(count * words_);
  std::vector<uint64_t> tables;
  for (size_t slot = 0; slot < count; ++slot) {
    evaluate_slot(slot, integers, tables);
    for (size_t w = 0; w < words_; ++w) {
      uint64_t bits = tables[tables.size() - words_ + w] & consistent_[w];
      if (integers) bits &= 0xAAAAAAAAAAAAAAAAull;  // odd assignments are those of integers
      slots[slot * words_ + w] = bits;
    }
  }
  // Zero is a multiple of everything: the last assignment.
  const size_t last = (size_t{1} << divisors_.size()) - 1;
  out.zero = (slots[(2 * zero_ + 1) * words_ + last / 64] >> last % 64 & 1) != 0;
  for (size_t side = 0; side < 2; ++side) build_side(out, side, slots, view);
  out.integers_only = true;
  for (const auto& side : out.sides) {
    for (const NumberPiece& piece : side) {
      if (piece.point) {
        out.integers_only = out.integers_only && piece.window.low.is_integer();
        continue;
      }
      for (const uint64_t word : out.tables[piece.table].bits) {
        if (word & 0x5555555555555555ull) out.integers_only = false;
      }
    }
  }
  views_[static_cast<size_t>(view)] = std::move(out);
}

void NumberLanguage::build_side(NumberPieces& out, size_t side,
                                const std::vector<uint64_t>& slots, NumberView view) const {
  const auto zero = static_cast<ptrdiff_t>(zero_);
  const ptrdiff_t direction = side == 0 ? 1 : -1;
  NumberPiece current;
  bool open = false;
  const auto flush = [&] {
    if (!open) return;
    open = false;
    const NumberTable& table = out.tables[current.table];
    if (current.window.is_point()) {
      current.point = true;
      if (!table_holds(table, current.window.low)) return;
    } else if (find(out, current, current.window, std::nullopt, nullptr) == Answer::kNo) {
      return;
    }
    out.sides[side].push_back(current);
  };
  const auto constant_at = [&](ptrdiff_t slot) {
    return constants_[static_cast<size_t>(slot / 2)].absolute();
  };
  const auto end = static_cast<ptrdiff_t>(slots.size() / words_);
  for (ptrdiff_t slot = 2 * zero + 1 + direction; slot >= 0 && slot < end; slot += direction) {
    const uint64_t* bits = &slots[static_cast<size_t>(slot) * words_];
    if (std::all_of(bits, bits + words_, [](uint64_t w) { return w == 0; })) {
      flush();
      continue;
    }
    const uint32_t table = table_id(out, bits, view);
    const bool is_point = slot % 2 == 1;
    if (open && current.table != table) flush();
    if (!open) {
      current = NumberPiece{};
      current.table = table;
      current.window.low = constant_at(is_point ? slot : slot - direction);
      current.window.low_strict = !is_point;
      open = true;
    }
    const ptrdiff_t upper = is_point ? slot : slot + direction;
    current.window.high_strict = !is_point;
    current.window.unbounded = upper < 0 || upper >= end;
    if (!current.window.unbounded) current.window.high = constant_at(upper);
  }
  flush();
}

size_t NumberLanguage::assignment_of(const Decimal& value) const {
  size_t out = 0;
  for (size_t i = 0; i < divisors_.size(); ++i) {
    if (is_multiple(value, divisors_[i])) out |= size_t{1} << i;
  }
  return out;
}

bool NumberLanguage::table_holds(const NumberTable& table, const Decimal& value) const {
  const size_t a = assignment_of(value);
  return (table.bits[a / 64] >> a % 64 & 1) != 0;
}

bool NumberLanguage::holds(const Decimal& value, bool written_lexically) {
  if (id_ <= kAnyNumber) return id_ == kAnyNumber;
  if (!exact_) return formulas_.evaluate(id_, value, written_lexically);
  const bool lexically = lexical_ && written_lexically;
  const NumberPieces& pieces = view(lexically ? NumberView::kLexical : NumberView::kOther);
  if (value.is_zero()) return pieces.zero;
  const auto& side = pieces.sides[value.negative() ? 1 : 0];
  const Decimal magnitude = value.absolute();
  const auto it = std::partition_point(side.begin(), side.end(), [&](const NumberPiece& piece) {
    if (piece.window.unbounded) return false;
    const int order = piece.window.high.compare(magnitude);
    return order < 0 || (order == 0 && piece.window.high_strict);
  });
  if (it == side.end()) return false;
  const int order = it->window.low.compare(magnitude);
  if (order > 0 || (order == 0 && it->window.low_strict)) return false;
  return it->point || table_holds(pieces.tables[it->table], magnitude);
}

bool NumberLanguage::satisfiable() {
  if (!exact_) return true;
  if (mode_ == NumberMode::kInteger) return !view(NumberView::kLexical).empty();
  if (!view(NumberView::kOther).empty()) return true;
  return lexical_ && !view(NumberView::kLexical).empty();
}

void NumberLanguage::choose_mode(bool plain) {
  mode_ = NumberMode::kFree;
  if (!plain || id_ <= kAnyNumber) return;
  const NumberPieces& other = view(NumberView::kOther);
  const auto everything = [](const NumberPieces& pieces) {
    const auto whole = [&](const std::vector<NumberPiece>& side) {
      return side.size() == 1 && side[0].window.unbounded && side[0].window.low.is_zero() &&
             pieces.tables[side[0].table].all;
    };
    return pieces.zero && whole(pieces.sides[0]) && whole(pieces.sides[1]);
  };
  if (everything(other) && (!lexical_ || everything(view(NumberView::kLexical)))) return;
  // Would something be too long to write out?
  bool some = other.zero;
  bool any_piece = false;
  for (const auto& side : other.sides) {
    for (const NumberPiece& piece : side) {
      any_piece = true;
      const NumberWindow& w = piece.window;
      const bool is_long =
          piece.point ? w.low.plain_digits() > Decimal::kPlainDigits
                      : (!w.low.is_zero() && w.low.magnitude() > Decimal::kPlainDigits) ||
                            (!w.unbounded && w.high.magnitude() < -Decimal::kPlainDigits);
      if (piece.point && is_long) return;
      some = some || !is_long;
    }
  }
  if (any_piece && !some) return;
  mode_ = NumberMode::kDecimal;
  if (other.integers_only && !view(NumberView::kLexical).empty()) mode_ = NumberMode::kInteger;
}

size_t NumberLanguage::bytes() const {
  size_t total = sizeof(*this) + constants_.capacity() * sizeof(Decimal) +
                 order_.capacity() * (sizeof(NumberId) + sizeof(uint32_t));
  for (const auto& list : children_) total += sizeof(list) + list.capacity() * sizeof(uint32_t);
  for (const auto& pieces : views_) {
    if (!pieces) continue;
    for (const auto& side : pieces->sides) total += side.capacity() * sizeof(NumberPiece);
    for (const auto& table : pieces->tables) {
      total += sizeof(table) + table.bits.capacity() * sizeof(uint64_t) +
               table.cubes.capacity() * sizeof(NumberCube);
    }
  }
  return total;
}

}  // namespace constrain
