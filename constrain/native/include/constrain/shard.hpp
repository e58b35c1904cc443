// What the constraints of a vocabulary share and change: lexical automata, tables, scratch space.
//
// One mutex guards it all, together with every lane that belongs to the shard: whoever steps a
// machine may intern lexical states.  Machines refer to the pool, so when the pool is dropped because
// the memory bound is reached or work on it was interrupted, `generation` changes and each lane
// rebuilds its machine before its next use.
//
// A vocabulary has one shard, and more where batches are filled by several threads: equal automata
// and tables are then made once in each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "constrain/lexical_tables.hpp"
#include "constrain/machine.hpp"
#include "constrain/mask.hpp"
#include "constrain/trie.hpp"

namespace constrain {

// How a shard gets its lexical automata, so that masks know none of them.
struct PoolFactory {
  std::function<std::unique_ptr<LexicalStepper>()> make;
  std::function<size_t(const LexicalStepper&)> bytes;
};

class Shard {
 public:
  Shard(const Trie& trie, uint32_t size, PoolFactory factory, size_t max_memory);

  std::timed_mutex& mutex() { return mutex_; }

  // All of the following with the mutex held.
  LexicalStepper& pool() { return *pool_; }
  LexicalTables& tables() { return *tables_; }
  MaskFiller& filler() { return *filler_; }
  uint32_t generation() const { return generation_; }
  size_t bytes() const {
    return discarded_ ? 0 : factory_.bytes(*pool_) + tables_->bytes() + filler_->bytes();
  }
  size_t max_memory() const { return max_memory_; }
  void set_max_memory(size_t limit);
  // Evicts tables, and the pool too where that is not enough.  Never during a fill.
  void trim();
  // Work on the pool was interrupted: it is made anew by the next trim.
  void discard() { discarded_ = true; }

 private:
  void rebuild();

  std::timed_mutex mutex_;
  const Trie& trie_;
  uint32_t size_;
  PoolFactory factory_;
  size_t max_memory_;
  uint32_t generation_ = 0;
  uint32_t calls_ = 0;   // of trim
  bool discarded_ = false;
  std::unique_ptr<LexicalStepper> pool_;
  std::unique_ptr<LexicalTables> tables_;
  std::unique_ptr<MaskFiller> filler_;
};

}  // namespace constrain
