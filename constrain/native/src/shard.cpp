#include "constrain/shard.hpp"

namespace constrain {

Shard::Shard(const Trie& trie, uint32_t size, PoolFactory factory, size_t max_memory)
    : trie_(trie), size_(size), factory_(std::move(factory)), max_memory_(max_memory) {
  rebuild();
}

void Shard::rebuild() {
  discarded_ = true;   // until all is there again
  filler_.reset();
  tables_.reset();
  pool_.reset();
  pool_ = factory_.make();
  pool_->set_token_lengths(trie_.depth(), trie_.digit_run());
  tables_ = std::make_unique<LexicalTables>(trie_, *pool_, size_, max_memory_ / 2);
  filler_ = std::make_unique<MaskFiller>(trie_, *tables_);
  discarded_ = false;
}

void Shard::set_max_memory(size_t limit) {
  max_memory_ = limit;
  if (tables_) tables_->set_max_bytes(limit / 2);
}

void Shard::trim() {
  if (!discarded_) {
    tables_->trim();
    // Adding up the pool takes longer the more patterns it holds, and it grows slowly.
    if (++calls_ % 64 != 0 || factory_.bytes(*pool_) <= max_memory_ / 2) return;
  }
  ++generation_;
  rebuild();
}

}  // namespace constrain
