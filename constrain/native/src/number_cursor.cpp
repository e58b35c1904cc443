// Number cursors: the grammar of JSON numbers, and prefixes that do not fit a cursor.
#include "number_cursor.hpp"

#include <algorithm>
#include <array>

namespace constrain {

namespace bits = cursor_bits;

namespace {

constexpr uint32_t kBlockDigits = 15;

uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b * 0x9E3779B97F4A7C15ull)) * 0xBF58476D1CE4E5B9ull;
  return h ^ (h >> 29);
}

uint32_t count_digits(uint64_t value) {
  uint32_t count = 0;
  for (; value != 0; value /= 10) ++count;
  return count;
}

enum ByteClass : uint8_t {
  kZeroByte, kDigitByte, kPointByte, kEByte, kPlusByte, kMinusByte, kOther,
};

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> out{};
  for (auto& c : out) c = kOther;
  out['0'] = kZeroByte;
  for (int c = '1'; c <= '9'; ++c) out[static_cast<size_t>(c)] = kDigitByte;
  out['.'] = kPointByte;
  out['e'] = out['E'] = kEByte;
  out['+'] = kPlusByte;
  out['-'] = kMinusByte;
  return out;
}

constexpr std::array<uint8_t, 256> kClasses = make_classes();

using P = NumberPhase;
// Rows: phases; columns: zero, other digit, point, e, plus, minus, anything else.
constexpr P kNext[9][7] = {
    {P::kZero, P::kInt, P::kNone, P::kNone, P::kNone, P::kMinus, P::kNone},
    {P::kZero, P::kInt, P::kNone, P::kNone, P::kNone, P::kNone, P::kNone},
    {P::kNone, P::kNone, P::kPoint, P::kE, P::kNone, P::kNone, P::kNone},
    {P::kInt, P::kInt, P::kPoint, P::kE, P::kNone, P::kNone, P::kNone},
    {P::kFraction, P::kFraction, P::kNone, P::kNone, P::kNone, P::kNone, P::kNone},
    {P::kFraction, P::kFraction, P::kNone, P::kE, P::kNone, P::kNone, P::kNone},
    {P::kExponent, P::kExponent, P::kNone, P::kNone, P::kExponentSign, P::kExponentSign, P::kNone},
    {P::kExponent, P::kExponent, P::kNone, P::kNone, P::kNone, P::kNone, P::kNone},
    {P::kExponent, P::kExponent, P::kNone, P::kNone, P::kNone, P::kNone, P::kNone},
};

}  // namespace

NumberPhase NumberPrefixes::next_phase(NumberPhase phase, uint8_t byte) {
  return kNext[static_cast<uint32_t>(phase)][kClasses[byte]];
}

uint64_t NumberPrefixes::hash(const Block& block) { return mix(block.digits, block.parent); }

uint64_t NumberPrefixes::hash(const Long& prefix) {
  const uint64_t sizes = static_cast<uint64_t>(prefix.block) << 8 | prefix.tail_size;
  const uint64_t scale = static_cast<uint64_t>(prefix.fraction) << 32 | prefix.exponent;
  return mix(mix(prefix.tail, sizes), scale);
}

template <typename T>
uint32_t NumberPrefixes::intern(const T& item, std::vector<T>& items,
                                std::unordered_multimap<uint64_t, uint32_t>& index) {
  const uint64_t key = hash(item);
  const auto [first, last] = index.equal_range(key);
  for (auto it = first; it != last; ++it) {
    if (items[it->second] == item) return it->second;
  }
  const auto id = static_cast<uint32_t>(items.size());
  items.push_back(item);
  index.emplace(key, id);
  return id;
}

template <typename T>
void NumberPrefixes::truncate(size_t size, std::vector<T>& items,
                              std::unordered_multimap<uint64_t, uint32_t>& index) {
  for (size_t id = items.size(); id-- > size;) {
    const auto [first, last] = index.equal_range(hash(items[id]));
    for (auto it = first; it != last; ++it) {
      if (it->second == id) {
        index.erase(it);
        break;
      }
    }
  }
  items.resize(std::min(size, items.size()));
}

NumberPrefixes::Long NumberPrefixes::expand(const NumberCursor& cursor) const {
  if (bits::store(cursor) == NumberStore::kLong) return longs_[cursor.digits];
  Long out;
  if (bits::in_exponent(bits::phase(cursor))) {
    out.tail = cursor.digits;
    out.exponent = bits::high(cursor);
  } else {
    out.tail = bits::mantissa(cursor);
  }
  out.tail_size = count_digits(out.tail);
  out.fraction = bits::fraction(cursor);
  return out;
}

void NumberPrefixes::assign(NumberCursor& cursor, NumberPhase phase, const Long& prefix) {
  const uint32_t signs = cursor.phase & (bits::kNegative | bits::kExponentNegative);
  const bool in_exponent = bits::in_exponent(phase);
  const bool fits = prefix.block == 0 && prefix.fraction <= bits::kMaxFraction &&
                    (in_exponent ? prefix.tail >> 32 == 0 && prefix.exponent <= bits::kMaxExponent
                                 : prefix.tail < bits::kMaxMantissa);
  if (fits) {
    const uint32_t high = in_exponent ? prefix.exponent : static_cast<uint32_t>(prefix.tail >> 32);
    cursor.phase = static_cast<uint32_t>(phase) | signs |
                   static_cast<uint32_t>(NumberStore::kInline) << bits::kStoreShift |
                   prefix.fraction << bits::kFractionShift | high << bits::kHighShift;
    cursor.digits = static_cast<uint32_t>(prefix.tail);
    return;
  }
  cursor.phase = static_cast<uint32_t>(phase) | signs |
                 static_cast<uint32_t>(NumberStore::kLong) << bits::kStoreShift;
  cursor.digits = intern(prefix, longs_, long_index_);
}

void NumberPrefixes::step(NumberCursor& cursor, NumberPhase next, uint8_t byte, bool& saturated) {
  saturated = false;
  const NumberPhase from = bits::phase(cursor);
  if (from == NumberPhase::kNone) {
    const bool minus = next == NumberPhase::kMinus;
    cursor.phase = static_cast<uint32_t>(next) | (minus ? bits::kNegative : 0u) |
                   static_cast<uint32_t>(NumberStore::kInline) << bits::kStoreShift;
    cursor.digits = minus ? 0 : static_cast<uint32_t>(byte - '0');
    return;
  }
  Long prefix = expand(cursor);
  if (next == NumberPhase::kExponentSign) {
    if (byte == '-') cursor.phase |= bits::kExponentNegative;
  } else if (next == NumberPhase::kExponent) {
    const uint64_t grown = static_cast<uint64_t>(prefix.exponent) * 10 + (byte - '0');
    saturated = grown > static_cast<uint64_t>(NumberPool::kExponentSaturation);
    prefix.exponent = static_cast<uint32_t>(
        std::min(grown, static_cast<uint64_t>(NumberPool::kExponentSaturation)));
  } else if (byte >= '0' && byte <= '9') {
    if (next == NumberPhase::kFraction) ++prefix.fraction;
    const bool none_yet = prefix.tail == 0 && prefix.block == 0;
    if (byte != '0' || !none_yet) {
      if (prefix.tail_size == kBlockDigits) {
        prefix.block = intern(Block{prefix.block, prefix.tail}, blocks_, block_index_) + 1;
        prefix.tail = 0;
        prefix.tail_size = 0;
      }
      prefix.tail = prefix.tail * 10 + static_cast<uint64_t>(byte - '0');
      ++prefix.tail_size;
    }
  }
  assign(cursor, next, prefix);
}

NumberPrefix NumberPrefixes::decode(const NumberCursor& cursor) const {
  NumberPrefix out;
  out.phase = bits::phase(cursor);
  out.negative = bits::negative(cursor);
  out.exponent_negative = (cursor.phase & bits::kExponentNegative) != 0;
  const Long prefix = expand(cursor);
  out.fraction = prefix.fraction;
  out.exponent = prefix.exponent;
  // The chain is read backwards.
  std::vector<uint64_t> blocks;
  for (uint32_t at = prefix.block; at != 0; at = blocks_[at - 1].parent) {
    blocks.push_back(blocks_[at - 1].digits);
  }
  const auto append = [&](uint64_t part, size_t size) {
    if (size == 0) return;
    const std::string text = std::to_string(part);
    out.digits.append(size - text.size(), '0');
    out.digits += text;
  };
  for (size_t i = blocks.size(); i-- > 0;) append(blocks[i], kBlockDigits);
  append(prefix.tail, prefix.tail_size);
  return out;
}

size_t NumberPrefixes::bytes() const {
  // A node of the index: a pointer, the cached hash, the pair.
  constexpr size_t kNode = 40;
  return blocks_.capacity() * sizeof(Block) + longs_.capacity() * sizeof(Long) +
         (block_index_.size() + long_index_.size()) * kNode +
         (block_index_.bucket_count() + long_index_.bucket_count()) * sizeof(void*);
}

NumberPool::Mark NumberPrefixes::mark() const {
  return {static_cast<uint32_t>(longs_.size()), static_cast<uint32_t>(blocks_.size())};
}

bool NumberPrefixes::release(const NumberPool::Mark& mark) {
  if (mark.longs >= longs_.size() && mark.blocks >= blocks_.size()) return false;
  truncate(mark.longs, longs_, long_index_);
  truncate(mark.blocks, blocks_, block_index_);
  return true;
}

}  // namespace constrain
