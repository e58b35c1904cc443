// Small containers of the core: hash maps with integer keys and interners of integer lists.
//
// Everything here grows and is never shrunk element by element: an arena that outgrows its bound
// is dropped as a whole by its owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace constrain {

inline uint64_t mix64(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15ull;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 32;
  return x;
}

inline uint64_t hash_words(const uint32_t* words, size_t count, uint64_t seed = 0) {
  uint64_t h = seed ^ (count * 0x9E3779B97F4A7C15ull);
  for (size_t i = 0; i < count; ++i) h = (h ^ words[i]) * 0xD6E8FEB86659FD93ull, h ^= h >> 32;
  return mix64(h);
}

inline uint64_t pack(uint32_t high, uint32_t low) { return uint64_t(high) << 32 | low; }

// Open addressing, uint64 -> uint32.  The key 2^64-1 is reserved.
class FlatMap {
 public:
  static constexpr uint32_t kMissing = 0xFFFFFFFFu;

  uint32_t find(uint64_t key) const {
    if (slots_.empty()) return kMissing;
    for (size_t i = mix64(key) & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].key == key) return slots_[i].value;
      if (slots_[i].key == kEmpty) return kMissing;
    }
  }

  void set(uint64_t key, uint32_t value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    for (size_t i = mix64(key) & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].key == key) {
        slots_[i].value = value;
        return;
      }
      if (slots_[i].key == kEmpty) {
        slots_[i] = {key, value};
        ++size_;
        return;
      }
    }
  }

  size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    uint32_t value = 0;
  };

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& s : old) {
      if (s.key == kEmpty) continue;
      size_t i = mix64(s.key) & mask_;
      while (slots_[i].key != kEmpty) i = (i + 1) & mask_;
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t size_ = 0;
};

// A set of ids found by hash; equality is decided by the caller.
class IdSet {
 public:
  static constexpr uint32_t kMissing = 0xFFFFFFFFu;

  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const {
    if (slots_.empty()) return kMissing;
    const uint32_t tag = uint32_t(hash >> 32);
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
      if (slots_[i].id == kMissing) return kMissing;
      if (slots_[i].tag == tag && equal(slots_[i].id)) return slots_[i].id;
    }
  }

  void add(uint64_t hash, uint32_t id) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    put(hash, id);
    ++size_;
  }

  size_t bytes() const { return slots_.capacity() * sizeof(Slot) + hashes_.capacity() * 8; }

 private:
  struct Slot {
    uint32_t tag = 0;
    uint32_t id = kMissing;
  };

  void put(uint64_t hash, uint32_t id) {
    size_t i = hash & mask_;
    while (slots_[i].id != kMissing) i = (i + 1) & mask_;
    slots_[i] = {uint32_t(hash >> 32), id};
    if (hashes_.size() <= id) hashes_.resize(id + 1);
    hashes_[id] = hash;
  }

  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : old.size() * 2, Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& s : old) {
      if (s.id == kMissing) continue;
      size_t i = hashes_[s.id] & mask_;
      while (slots_[i].id != kMissing) i = (i + 1) & mask_;
      slots_[i] = s;
    }
  }

  std::vector<Slot> slots_;
  std::vector<uint64_t> hashes_;  // by id, for growing
  size_t mask_ = 0;
  size_t size_ = 0;
};

// Lists of uint32, equal lists having equal ids.  Id 0 is the empty list.
class ListInterner {
 public:
  ListInterner() {
    offsets_.push_back(0);
    intern({});
  }

  uint32_t intern(std::span<const uint32_t> items) {
    const uint64_t hash = hash_words(items.data(), items.size());
    const uint32_t found = set_.find(hash, [&](uint32_t id) {
      const std::span<const uint32_t> other = get(id);
      return other.size() == items.size() &&
             (items.empty() || std::memcmp(other.data(), items.data(), items.size_bytes()) == 0);
    });
    if (found != IdSet::kMissing) return found;
    const uint32_t id = uint32_t(offsets_.size() - 1);
    data_.insert(data_.end(), items.begin(), items.end());
    offsets_.push_back(uint32_t(data_.size()));
    set_.add(hash, id);
    return id;
  }

  // Valid until the next intern().
  std::span<const uint32_t> get(uint32_t id) const {
    return {data_.data() + offsets_[id], data_.data() + offsets_[id + 1]};
  }

  std::vector<uint32_t> copy(uint32_t id) const {
    const auto s = get(id);
    return {s.begin(), s.end()};
  }

  size_t bytes() const {
    return data_.capacity() * 4 + offsets_.capacity() * 4 + set_.bytes();
  }

 private:
  std::vector<uint32_t> data_;
  std::vector<uint32_t> offsets_;
  IdSet set_;
};

}  // namespace constrain
