// Tables of frames: what a place in a frame allows whatever the frame returns to.
//
// A grammar's item is a state of a net above stacks.  Until the net returns, the stacks play no part,
// so the tokens that do not leave the frame are a row for each state, and of the others there remains
// what follows a return, to be walked with the stacks at hand.  Made once for each state and node of
// the trie that is met, and kept with the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "constrain/lexical_tables.hpp"

namespace constrain {

struct FrameTable {
  // The row of tokens that stay; the only remainders are those behind the frame.
  LexicalTable table;
  bool usable = true;     // false: what the frame does depends on more
};

class FrameTables {
 public:
  // Null where none was made yet.
  const FrameTable* find(uint32_t frame, uint32_t node) const {
    const auto at = tables_.find(uint64_t{frame} << 32 | node);
    return at == tables_.end() ? nullptr : at->second.get();
  }
  const FrameTable& keep(uint32_t frame, uint32_t node, std::unique_ptr<FrameTable> table) {
    bytes_ += table->table.bytes() + 64;
    return *(tables_[uint64_t{frame} << 32 | node] = std::move(table));
  }
  size_t bytes() const { return bytes_; }

 private:
  std::unordered_map<uint64_t, std::unique_ptr<FrameTable>> tables_;
  size_t bytes_ = 0;
};

}  // namespace constrain
