#include "constrain/states.hpp"

#include <array>

namespace constrain {
namespace {

uint64_t hash(const Config& config) {
  uint64_t h = 0x9E3779B97F4A7C15ull;
  for (size_t i = 0; i < config.w.size(); i += 2) {
    h ^= uint64_t{config.w[i]} << 32 | config.w[i + 1];
    h *= 0xBF58476D1CE4E5B9ull;
    h ^= h >> 31;
  }
  return h;
}

constexpr size_t kFirstSlots = 256;
constexpr size_t kBlock = 32;   // words compared at once

}  // namespace

StateTable::StateTable() : slots_(kFirstSlots) { configs_.reserve(kFirstSlots / 2); }

StateId StateTable::intern(const Config& config) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash(config) & mask;
  while (slots_[at] != 0) {
    const StateId id = slots_[at] - 1;
    if (configs_[id] == config) return id;
    at = (at + 1) & mask;
  }
  const auto id = static_cast<StateId>(configs_.size());
  configs_.push_back(config);
  slots_[at] = id + 1;
  if (configs_.size() * 2 > slots_.size()) grow();
  return id;
}

StateId StateTable::find(const Config& config) const {
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash(config) & mask; slots_[at] != 0; at = (at + 1) & mask) {
    if (configs_[slots_[at] - 1] == config) return slots_[at] - 1;
  }
  return kNoState;
}

void StateTable::grow() {
  std::vector<uint32_t> slots(slots_.size() * 2);
  const size_t mask = slots.size() - 1;
  for (size_t id = 0; id < configs_.size(); ++id) {
    size_t at = hash(configs_[id]) & mask;
    while (slots[at] != 0) at = (at + 1) & mask;
    slots[at] = static_cast<uint32_t>(id) + 1;
  }
  slots_ = std::move(slots);
}

void StateTable::truncate(size_t size) {
  const size_t mask = slots_.size() - 1;
  // Later insertions go first, so that no probe sequence is cut.
  for (size_t id = configs_.size(); id-- > size;) {
    size_t at = hash(configs_[id]) & mask;
    while (slots_[at] != id + 1) at = (at + 1) & mask;
    slots_[at] = 0;
  }
  if (size < configs_.size()) configs_.resize(size);
}

void MaskCache::clear() {
  entries_.clear();
  changed_.clear();
  changed_.shrink_to_fit();
  rows_.clear();
  rows_.shrink_to_fit();
}

bool MaskCache::load(StateId state, uint32_t table_generation, uint32_t* row) {
  if (table_generation != table_generation_) {
    clear();   // the bases may be gone
    table_generation_ = table_generation;
  }
  if (state >= entries_.size()) entries_.resize(state + 1);
  const Entry& entry = entries_[state];
  switch (entry.kind) {
    case Kind::kChanges:
      if (entry.base) {
        entry.base->write_to(row, words_);
      } else {
        std::fill_n(row, words_, 0u);
      }
      for (uint32_t i = 0; i < entry.count; ++i) {
        const WordBits& change = changed_[entry.offset + i];
        row[change.word] = change.bits;
      }
      return true;
    case Kind::kRow:
      copy_row(row, rows_.data() + entry.offset, words_);
      return true;
    default:
      return false;
  }
}

void MaskCache::store(StateId state, const LexicalTable* base, const uint32_t* row) {
  if (entries_[state].kind == Kind::kUnseen) {
    entries_[state].kind = Kind::kSeen;
    return;
  }
  if (bytes() > max_bytes_) {
    clear();
    entries_.resize(state + 1);
  }
  const uint32_t* from = base ? base->dense() : nullptr;
  if (base && !from) {
    scratch_.resize(words_);
    base->write_to(scratch_.data(), words_);
    from = scratch_.data();
  }
  Entry entry;
  entry.base = base;
  entry.offset = static_cast<uint32_t>(changed_.size());
  // Most blocks are equal, and comparing them is a few vector instructions.  In the others words
  // differ at random, so nothing branches on that.
  const auto compare = [&](size_t begin, size_t end) {
    std::array<WordBits, kBlock> found;
    size_t count = 0;
    for (size_t i = begin; i < end; ++i) {
      found[count] = {static_cast<uint32_t>(i), row[i]};
      count += row[i] != (from ? from[i] : 0u);
    }
    changed_.insert(changed_.end(), found.begin(), found.begin() + count);
  };
  size_t at = 0;
  for (; at + kBlock <= words_; at += kBlock) {
    uint32_t different = 0;
    if (from) {
      for (size_t i = 0; i < kBlock; ++i) different |= row[at + i] ^ from[at + i];
    } else {
      for (size_t i = 0; i < kBlock; ++i) different |= row[at + i];
    }
    if (different != 0) compare(at, at + kBlock);
  }
  compare(at, words_);
  entry.count = static_cast<uint32_t>(changed_.size()) - entry.offset;
  entry.kind = Kind::kChanges;
  if (entry.count > words_ / 3) {
    changed_.resize(entry.offset);
    entry.kind = Kind::kRow;
    entry.offset = static_cast<uint32_t>(rows_.size());
    entry.count = 0;
    rows_.insert(rows_.end(), row, row + words_);
  }
  entries_[state] = entry;
}

}  // namespace constrain
