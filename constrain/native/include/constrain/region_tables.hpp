// Which tokens stay inside a region of a byte automaton, and what remains of the others.
//
// A token that stays inside by the region's own bytes is allowed whatever surrounds the region.  Any
// other token may still be allowed if the text leaves the region somewhere within it: for each state
// at which it may be left, and whose exits can begin with the token's next byte, the rest of the
// token is a remainder, to be walked with the machine from behind that state.
//
// Cost: a table look-up for each node of the trie that is reached, some nanoseconds, and the nodes of
// the remainders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "constrain/byte_regions.hpp"
#include "constrain/remainders.hpp"
#include "constrain/trie.hpp"

namespace constrain {

class RegionTables {
 public:
  explicit RegionTables(const Trie& trie);

  // From `state`, reached at trie node `root`.  Sets the tokens at and below `root` that stay inside
  // in `row`; appends the remainders, one per state that is left (its number is the outcome).
  void fill(const ByteRegion& region, uint32_t state, uint32_t root, uint32_t* row,
            std::vector<Remainders>& remainders);

  uint64_t steps() const { return steps_; }

 private:
  struct Frame {
    uint32_t next, end, state, exits;   // how many of exits_ lie above
  };
  struct Exit {
    uint32_t depth, state;
  };
  // The rest of the tokens at and below `node`: bytes of paths_ that lead to it, then its subtree.
  struct Rest {
    uint32_t outcome, path, path_end, node;
  };

  RemainderTrie unite(std::span<const Rest> rests) const;

  const Trie& trie_;
  std::vector<Frame> frames_;
  std::vector<uint8_t> bytes_;    // on the path below the root
  std::vector<Exit> exits_;
  std::vector<Rest> rests_;
  std::vector<uint8_t> paths_;
  uint64_t steps_ = 0;
};

}  // namespace constrain
