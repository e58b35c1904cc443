// States at token boundaries, by id, and the masks that were wanted more than once.
#pragma once

#include <cstdint>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/lexical_tables.hpp"
#include "constrain/machine.hpp"

namespace constrain {

// Hash-consed configs: equal configs have equal ids.  Open addressing, at most half full.
class StateTable {
 public:
  StateTable();
  StateId intern(const Config& config);
  // kNoState: not interned.
  StateId find(const Config& config) const;
  const Config& config(StateId id) const { return configs_[id]; }
  size_t size() const { return configs_.size(); }
  // Forgets all but the first `size` configs.
  void truncate(size_t size);
  size_t bytes() const {
    return configs_.capacity() * sizeof(Config) + slots_.capacity() * sizeof(uint32_t);
  }

 private:
  void grow();
  std::vector<Config> configs_;
  std::vector<uint32_t> slots_;   // id + 1, 0: free
};

// Masks of states, kept from the second visit of a state on, as the words that differ from the row
// of a lexical table (or from zero), or whole where most words differ.
class MaskCache {
 public:
  MaskCache(size_t words, size_t max_bytes) : words_(words), max_bytes_(max_bytes) {}

  // Writes the mask of this state to row, if it is kept.  Counts the visit.
  bool load(StateId state, uint32_t table_generation, uint32_t* row);
  // Keeps the mask if the state was seen before.
  void store(StateId state, const LexicalTable* base, const uint32_t* row);
  size_t bytes() const {
    return entries_.capacity() * sizeof(Entry) + changed_.capacity() * sizeof(WordBits) +
           rows_.capacity() * sizeof(uint32_t);
  }

 private:
  enum class Kind : uint8_t { kUnseen, kSeen, kChanges, kRow };
  struct Entry {
    Kind kind = Kind::kUnseen;
    uint32_t offset = 0, count = 0;
    const LexicalTable* base = nullptr;
  };
  void clear();

  size_t words_;
  size_t max_bytes_;
  uint32_t table_generation_ = 0;
  std::vector<Entry> entries_;       // by state
  std::vector<WordBits> changed_;
  std::vector<uint32_t> rows_;
  std::vector<uint32_t> scratch_;
};

}  // namespace constrain
