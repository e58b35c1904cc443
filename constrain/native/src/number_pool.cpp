// Reading numbers: contexts, steps, and when digits may be forgotten.
#include "number_pool.hpp"

#include <algorithm>

#include "constrain/errors.hpp"

namespace constrain {

namespace bits = cursor_bits;

namespace {

constexpr uint32_t kDead = 0;
constexpr uint32_t kKeep = 1;
constexpr uint32_t kFirstRecord = 2;

// Keys of the memo that are not contexts: the truth of a language for a whole number.
constexpr uint32_t kTruths = 1u << 31;

// Ranges are usable up to here, so that ten times a magnitude fits.
constexpr uint64_t kMaxRange = 1'000'000'000'000'000'000;

void set_decided(NumberCursor& cursor, uint32_t record) {
  cursor.phase &= 15u;
  cursor.digits = record;
}

NumberRanges ranges_of(NumberLanguage& language) {
  NumberRanges out;
  if (!language.exact() || language.mode() != NumberMode::kInteger) return out;
  const NumberPieces& pieces = language.view(NumberView::kLexical);
  out.zero = pieces.zero;
  for (size_t side = 0; side < 2; ++side) {
    if (pieces.sides[side].empty()) continue;
    const NumberPiece& piece = pieces.sides[side].front();
    if (pieces.sides[side].size() > 1) return out;
    if (!piece.point && !pieces.tables[piece.table].all) return out;
    const NumberWindow& w = piece.window;
    if (w.low.magnitude() > 18 || (!w.unbounded && w.high.magnitude() > 18)) return out;
    // Integral bounds: rounded inwards.
    const auto floor_of = [](const Decimal& d) -> uint64_t {
      if (d.is_zero() || d.magnitude() <= 0) return 0;
      std::string digits = d.digits();
      digits.resize(static_cast<size_t>(d.magnitude()), '0');
      return std::stoull(digits);
    };
    uint64_t low = floor_of(w.low);
    if (!w.low.is_integer() || w.low_strict) ++low;
    out.low[side] = std::max<uint64_t>(low, 1);
    out.high[side] = NumberRanges::kUnbounded;
    if (!w.unbounded) {
      out.high[side] = floor_of(w.high);
      if (w.high.is_integer() && w.high_strict) --out.high[side];
    }
  }
  out.usable = true;
  return out;
}

}  // namespace

// ---------------------------------------------------------------- memo

size_t NumberMemo::hash(uint32_t context, const NumberCursor& cursor) {
  uint64_t h = (static_cast<uint64_t>(cursor.phase) << 32 | cursor.digits) * 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 32) ^ context) * 0xBF58476D1CE4E5B9ull;
  return static_cast<size_t>(h ^ (h >> 31));
}

std::optional<uint32_t> NumberMemo::get(uint32_t context, const NumberCursor& cursor) const {
  if (slots_.empty()) return std::nullopt;
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash(context, cursor) & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.context == 0) return std::nullopt;
    if (slot.context == context + 1 && slot.cursor == cursor) return slot.outcome;
  }
}

void NumberMemo::put(uint32_t context, const NumberCursor& cursor, uint32_t outcome) {
  if (used_ >= kMaxEntries) clear();
  if ((used_ + 1) * 2 > slots_.size()) {
    std::vector<Slot> old(std::max<size_t>(256, slots_.size() * 2));
    old.swap(slots_);
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.context != 0) put(slot.context - 1, slot.cursor, slot.outcome);
    }
  }
  const size_t mask = slots_.size() - 1;
  size_t i = hash(context, cursor) & mask;
  while (slots_[i].context != 0) i = (i + 1) & mask;
  slots_[i] = {cursor, context + 1, outcome};
  ++used_;
}

void NumberMemo::clear() {
  slots_.clear();
  used_ = 0;
}

// ---------------------------------------------------------------- contexts

NumberCompiled& NumberPool::Impl::compiled(NumberId id) {
  if (languages.size() <= id) languages.resize(std::max<size_t>(formulas.size(), id + size_t{1}));
  auto& slot = languages[id];
  if (!slot) {
    slot = std::make_unique<NumberCompiled>(
        NumberCompiled{NumberLanguage(formulas, id, plain), NumberRanges{}});
    slot->ranges = ranges_of(slot->language);
  }
  return *slot;
}

uint32_t NumberPool::Impl::context(NumberId goal, std::span<const NumberId> tracked,
                                   bool capture) {
  const bool simple = tracked.empty() && !capture;
  if (simple) {
    if (goal < simple_contexts.size() && simple_contexts[goal] != 0) {
      return simple_contexts[goal] - 1;
    }
  } else if (last_context != ~0u) {
    const NumberContext& last = *contexts[last_context];
    if (last.goal == goal && last.capture == capture &&
        std::equal(tracked.begin(), tracked.end(), last.tracked.begin(), last.tracked.end())) {
      return last_context;
    }
  }
  std::vector<uint32_t> key{goal, capture ? 1u : 0u};
  key.insert(key.end(), tracked.begin(), tracked.end());
  const auto [it, fresh] =
      context_index.emplace(std::move(key), static_cast<uint32_t>(contexts.size()));
  if (fresh) {
    auto made = std::make_unique<NumberContext>();
    made->goal = goal;
    made->capture = capture;
    made->tracked.assign(tracked.begin(), tracked.end());
    made->compiled = &compiled(goal);
    made->mode = made->compiled->language.mode();
    made->simple = simple;
    contexts.push_back(std::move(made));
  }
  if (simple) {
    if (simple_contexts.size() <= goal) simple_contexts.resize(goal + size_t{1}, 0);
    simple_contexts[goal] = it->second + 1;
  } else {
    last_context = it->second;
  }
  return it->second;
}

uint32_t NumberPool::Impl::record(const std::vector<NumberRecord::Entry>& entries) {
  if (entries.size() == 1 && entries[0].bits == 3) return 0;
  std::vector<uint32_t> key;
  for (const auto& entry : entries) {
    key.push_back(entry.id);
    key.push_back(entry.bits);
  }
  const auto [it, fresh] =
      record_index.emplace(std::move(key), static_cast<uint32_t>(records.size()));
  if (fresh) records.push_back({entries});
  return it->second;
}

// ---------------------------------------------------------------- what becomes of a cursor

// The answers of a language if they do not depend on digits any more (as in NumberRecord).
std::optional<uint32_t> NumberPool::Impl::decide(NumberLanguage& language, const NumberContext& c,
                                                 const NumberPrefix& prefix,
                                                 const bool (&reachable)[2]) {
  NumberLanguage& goal = c.compiled->language;
  const auto ask = [&](NumberView view) { return language.cover(prefix, c.mode, view, goal); };
  if (c.mode == NumberMode::kInteger || !(language.lexical() || goal.lexical())) {
    // One kind of text only, or no difference between the two.
    const Cover cover =
        ask(c.mode == NumberMode::kInteger ? NumberView::kLexical : NumberView::kOther);
    if (cover == Cover::kMixed) return std::nullopt;
    return cover == Cover::kAll ? 3u : 0u;
  }
  uint32_t out = 3;  // what cannot come about counts as true, so that equal futures are equal
  for (const NumberView view : {NumberView::kLexical, NumberView::kOther}) {
    const auto bit = static_cast<size_t>(view);
    if (view == NumberView::kLexical && !bits::is_lexical(prefix.phase)) continue;
    if (!reachable[bit]) {
      // The goal itself must refuse these texts; of others nobody will ask.
      if (&language == &goal) out &= ~(1u << bit);
      continue;
    }
    const Cover cover = ask(view);
    if (cover == Cover::kMixed) return std::nullopt;
    if (cover == Cover::kNone) out &= ~(1u << bit);
  }
  return out;
}

uint32_t NumberPool::Impl::judge(const NumberContext& c, const NumberCursor& cursor) {
  const NumberPrefix prefix = prefixes.decode(cursor);
  NumberLanguage& goal = c.compiled->language;
  bool reachable[2] = {true, true};
  if (c.goal != kAnyNumber && goal.exact()) {
    const auto ask = [&](NumberView view) {
      return goal.reachable(prefix, c.mode, view) != Answer::kNo;
    };
    if (c.mode == NumberMode::kInteger) {
      reachable[0] = reachable[1] = ask(NumberView::kLexical);
    } else if (!goal.lexical()) {
      reachable[0] = reachable[1] = ask(NumberView::kOther);
    } else {
      reachable[0] = bits::is_lexical(prefix.phase) && ask(NumberView::kLexical);
      reachable[1] = ask(NumberView::kOther);
    }
    if (!reachable[0] && !reachable[1]) return kDead;
  }
  if (c.capture) return kKeep;
  std::vector<NumberRecord::Entry> entries;
  const auto enter = [&](NumberId id) {
    const auto answers = decide(compiled(id).language, c, prefix, reachable);
    if (answers) entries.push_back({id, *answers});
    return answers.has_value();
  };
  if (!enter(c.goal)) return kKeep;
  for (const NumberId id : c.tracked) {
    if (!enter(id)) return kKeep;
  }
  return kFirstRecord + record(entries);
}

bool NumberPool::Impl::settle_ranges(const NumberRanges& ranges, NumberCursor& cursor) const {
  const size_t side = bits::negative(cursor) ? 1 : 0;
  const uint64_t low = ranges.low[side];
  const uint64_t high = ranges.high[side];
  switch (bits::phase(cursor)) {
    case NumberPhase::kZero:
      set_decided(cursor, 0);
      return ranges.zero;
    case NumberPhase::kMinus:
      if (low > high) return false;
      if (low == 1 && high == NumberRanges::kUnbounded) set_decided(cursor, 0);
      return true;
    default: break;
  }
  const uint64_t n = bits::mantissa(cursor);
  if (high == NumberRanges::kUnbounded) {
    if (n >= low) set_decided(cursor, 0);
    return true;
  }
  // Do the numbers that start with n, [n * 10^k, (n + 1) * 10^k), meet low..high?
  uint64_t first = n;
  uint64_t size = 1;
  while (first <= high) {
    if (first + (size - 1) >= low) return true;
    first *= 10;
    size *= 10;
  }
  return false;
}

bool NumberPool::Impl::settle(uint32_t context_id, NumberCursor& cursor) {
  const NumberContext& c = *contexts[context_id];
  const bool is_long = bits::store(cursor) == NumberStore::kLong;
  if (c.simple) {
    if (c.goal == kAnyNumber) {
      set_decided(cursor, 0);
      return true;
    }
    if (c.goal == kNoNumber) return false;
    if (c.compiled->ranges.usable && !is_long) return settle_ranges(c.compiled->ranges, cursor);
  }
  NumberMemo& table = is_long ? long_memo : memo;
  std::optional<uint32_t> outcome = table.get(context_id, cursor);
  if (!outcome) {
    outcome = judge(c, cursor);
    table.put(context_id, cursor, *outcome);
  }
  if (*outcome >= kFirstRecord) set_decided(cursor, *outcome - kFirstRecord);
  return *outcome != kDead;
}

bool NumberPool::Impl::step(uint32_t context_id, NumberCursor& cursor, uint8_t byte) {
  const NumberContext& c = *contexts[context_id];
  const NumberPhase from = bits::phase(cursor);
  const NumberPhase next = NumberPrefixes::next_phase(from, byte);
  if (next == NumberPhase::kNone) return false;
  const bool leaves = next == NumberPhase::kPoint || next == NumberPhase::kE;
  if (leaves) {
    if (c.mode == NumberMode::kInteger) return false;
    if (c.mode == NumberMode::kDecimal && next == NumberPhase::kE) return false;
  }
  if (next == NumberPhase::kZero && from == NumberPhase::kMinus &&
      c.mode == NumberMode::kInteger) {
    return false;
  }
  if (from != NumberPhase::kNone && bits::store(cursor) == NumberStore::kDecided) {
    if (leaves && cursor.digits != 0 && (records[cursor.digits].entries[0].bits & 2) == 0) {
      return false;
    }
    cursor.phase = static_cast<uint32_t>(next);
    return true;
  }
  // Everything is forgotten anyway: do not even count.
  if (c.simple && c.goal == kAnyNumber) {
    cursor.phase = static_cast<uint32_t>(next);
    cursor.digits = 0;
    return true;
  }
  if (next == NumberPhase::kInt && bits::store(cursor) == NumberStore::kInline) {
    // The hot case: one more digit that fits.
    const uint64_t grown = bits::mantissa(cursor) * 10 + static_cast<uint64_t>(byte - '0');
    if (grown < bits::kMaxMantissa) {
      cursor.phase = static_cast<uint32_t>(next) | (cursor.phase & bits::kNegative) |
                     static_cast<uint32_t>(NumberStore::kInline) << bits::kStoreShift |
                     static_cast<uint32_t>(grown >> 32) << bits::kHighShift;
      cursor.digits = static_cast<uint32_t>(grown);
      return settle(context_id, cursor);
    }
  }
  bool saturated = false;
  prefixes.step(cursor, next, byte, saturated);
  if (c.capture && next == NumberPhase::kExponent &&
      (saturated || prefixes.decode(cursor).exponent > kMaxCapturedExponent)) {
    return false;
  }
  return settle(context_id, cursor);
}

bool NumberPool::Impl::accepts(NumberId goal, const NumberCursor& cursor) {
  const NumberPhase phase = bits::phase(cursor);
  if (!bits::is_complete(phase)) return false;
  const bool lexical = bits::is_lexical(phase);
  if (bits::store(cursor) == NumberStore::kDecided) {
    if (cursor.digits == 0) return true;
    const NumberRecord::Entry& entry = records[cursor.digits].entries[0];
    if (entry.id != goal) throw Error("a number cursor was asked about another goal than its own");
    return (entry.bits >> (lexical ? 0 : 1) & 1) != 0;
  }
  if (goal <= kAnyNumber) return goal == kAnyNumber;
  NumberCompiled& c = compiled(goal);
  const bool is_inline = bits::store(cursor) == NumberStore::kInline;
  if (c.ranges.usable && phase == NumberPhase::kInt && is_inline) {
    const size_t side = bits::negative(cursor) ? 1 : 0;
    const uint64_t n = bits::mantissa(cursor);
    return n >= c.ranges.low[side] && n <= c.ranges.high[side];
  }
  return holds_kept(goal, cursor);
}

bool NumberPool::Impl::holds_kept(NumberId id, const NumberCursor& cursor) {
  NumberMemo& table = bits::store(cursor) == NumberStore::kLong ? long_memo : memo;
  const uint32_t key = kTruths | id;
  if (const auto known = table.get(key, cursor)) return *known != 0;
  const bool lexical = bits::is_lexical(bits::phase(cursor));
  const bool truth = compiled(id).language.holds(prefixes.decode(cursor).value(), lexical);
  table.put(key, cursor, truth ? 1 : 0);
  return truth;
}

// ---------------------------------------------------------------- the public face

NumberPool::NumberPool(bool plain) : impl_(std::make_unique<Impl>(plain)) {}
NumberPool::~NumberPool() = default;

NumberValue NumberPool::value(const Decimal& decimal) { return impl_->formulas.value(decimal); }
const Decimal& NumberPool::decimal(NumberValue value) const {
  return impl_->formulas.decimal(value);
}
NumberId NumberPool::minimum(NumberValue bound, bool strict) {
  return impl_->formulas.bound(NumberOp::kMinimum, bound, strict);
}
NumberId NumberPool::maximum(NumberValue bound, bool strict) {
  return impl_->formulas.bound(NumberOp::kMaximum, bound, strict);
}
NumberId NumberPool::multiple_of(NumberValue divisor) { return impl_->formulas.multiple(divisor); }
NumberId NumberPool::integer() {
  return impl_->formulas.multiple(impl_->formulas.value(Decimal::from_int(1)));
}
NumberId NumberPool::integer_lexical() { return impl_->formulas.lexical(); }
NumberId NumberPool::one_of(std::vector<NumberValue> values) {
  return impl_->formulas.one_of(std::move(values));
}
NumberId NumberPool::land(std::span<const NumberId> ids) { return impl_->formulas.land(ids); }
NumberId NumberPool::lor(std::span<const NumberId> ids) { return impl_->formulas.lor(ids); }
NumberId NumberPool::lnot(NumberId id) { return impl_->formulas.lnot(id); }
NumberId NumberPool::exactly_one(std::span<const NumberId> ids) {
  return impl_->formulas.exactly_one(ids);
}

bool NumberPool::start(NumberId goal, std::span<const NumberId> tracked, bool capture,
                       uint8_t byte, NumberCursor& cursor) {
  cursor = NumberCursor{};
  return impl_->step(impl_->context(goal, tracked, capture), cursor, byte);
}

bool NumberPool::step(NumberId goal, std::span<const NumberId> tracked, bool capture,
                      NumberCursor& cursor, uint8_t byte) {
  return impl_->step(impl_->context(goal, tracked, capture), cursor, byte);
}

bool NumberPool::complete(const NumberCursor& cursor) const {
  return bits::is_complete(bits::phase(cursor));
}

bool NumberPool::accepts(NumberId goal, const NumberCursor& cursor) {
  return impl_->accepts(goal, cursor);
}

bool NumberPool::holds_at_end(NumberId id, const NumberCursor& cursor) {
  if (id <= kAnyNumber) return id == kAnyNumber;
  const bool lexical = bits::is_lexical(bits::phase(cursor));
  if (bits::store(cursor) == NumberStore::kDecided) {
    for (const NumberRecord::Entry& entry : impl_->records[cursor.digits].entries) {
      if (entry.id == id) return (entry.bits >> (lexical ? 0 : 1) & 1) != 0;
    }
    throw Error("a number cursor was asked about a language that it does not track");
  }
  return impl_->holds_kept(id, cursor);
}

NumberValue NumberPool::captured(const NumberCursor& cursor) {
  if (!complete(cursor) || bits::store(cursor) == NumberStore::kDecided) {
    throw Error("the value of a number was not kept");
  }
  return impl_->formulas.value(impl_->prefixes.decode(cursor).value());
}

bool NumberPool::satisfiable(NumberId id) {
  if (id <= kAnyNumber) return id == kAnyNumber;
  return impl_->compiled(id).language.satisfiable();
}

bool NumberPool::holds(NumberId id, NumberValue value) {
  if (id <= kAnyNumber) return id == kAnyNumber;
  const Decimal decimal = impl_->formulas.decimal(value);
  return impl_->compiled(id).language.holds(decimal, decimal.is_integer());
}

size_t NumberPool::bytes() const {
  return sizeof(Impl) + impl_->formulas.bytes() + impl_->prefixes.bytes() + impl_->memo.bytes() +
         impl_->long_memo.bytes() + impl_->languages.capacity() * sizeof(void*) +
         impl_->counted_bytes();
}

size_t NumberPool::Impl::counted_bytes() {
  // There may be thousands of these, and each of them grows little once it is there.
  constexpr uint32_t kBetweenCounts = 64;
  const size_t things = languages.size() + contexts.size() + records.size();
  if (things == counted_things && ++counted_age < kBetweenCounts) return counted;
  counted_things = things;
  counted_age = 0;
  size_t total = 0;
  for (const auto& compiled : languages) {
    if (compiled) total += sizeof(NumberCompiled) + compiled->language.bytes();
  }
  constexpr size_t kNode = 80;  // a map node with its key's header
  for (const auto& c : contexts) {
    total += sizeof(NumberContext) + kNode + 3 * c->tracked.capacity() * sizeof(NumberId);
  }
  for (const auto& record : records) {
    total += sizeof(record) + kNode + 2 * record.entries.capacity() * sizeof(NumberRecord::Entry);
  }
  counted = total;
  return total;
}

NumberPool::Mark NumberPool::mark() const { return impl_->prefixes.mark(); }

bool NumberPool::accepts_digits(NumberId goal, const NumberCursor& cursor, uint32_t more) {
  if (bits::store(cursor) != NumberStore::kInline) return false;
  return impl_->compiled(goal).language.holds_with_digits(impl_->prefixes.decode(cursor), more);
}

NumberId NumberPool::goal_behind(NumberId goal, const NumberCursor& cursor) {
  const bool decided = bits::store(cursor) == NumberStore::kDecided && cursor.digits == 0;
  if (!decided || bits::phase(cursor) == NumberPhase::kNone) return goal;
  const NumberMode mode = impl_->compiled(goal).language.mode();
  return impl_->compiled(kAnyNumber).language.mode() == mode ? kAnyNumber : goal;
}

bool NumberPool::is_small(const NumberCursor& cursor) {
  static_assert(bits::kHighShift == kSmallPhaseBits);
  const NumberStore store = bits::store(cursor);
  return bits::high(cursor) == 0 && store != NumberStore::kLong &&
         (store != NumberStore::kInline || cursor.digits < 10);
}

void NumberPool::release(const Mark& mark) {
  if (impl_->prefixes.release(mark)) impl_->long_memo.clear();
}

bool NumberPool::complete_text(NumberId goal, std::span<const NumberId> tracked, bool capture,
                               const NumberCursor& cursor, std::string& out) {
  return impl_->complete(impl_->context(goal, tracked, capture), cursor, out);
}

}  // namespace constrain
