// Which tokens stay inside a region of a byte automaton, and what remains of the others.
//
// A token that stays inside by the region's own bytes is allowed whatever surrounds the region.  Any
// other token may still be allowed if the text leaves the region somewhere within it: for each state
// at which it may be left, and whose exits can begin with the token's next byte, the rest of the
// token is a remainder, to be walked with the machine from behind that state.
//
// Cost: a table look-up for each node of the trie that is reached, about three nanoseconds, and the
// nodes of the remainders.
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
  // in `row`; appends the remainders, one per state that is left (its number is the outcome).  Where
  // very many tokens below one node have to leave the region at it, they are no remainders: the node
  // is appended to `leaps`, and all tokens below it are to be asked from behind that state.
  void fill(const ByteRegion& region, uint32_t state, uint32_t root, uint32_t* row,
            std::vector<Remainders>& remainders, std::vector<Leap>& leaps);

  uint64_t steps() const { return steps_; }
  size_t bytes() const {
    return order_.capacity() * sizeof(Step) + (nodes_.capacity() + places_.capacity()) * 4;
  }

 private:
  // A node in the order of a walk from top to bottom, so that a walk reads memory front to back.
  struct Step {
    uint32_t token;      // first of the node's own; kNone: none
    uint32_t end;        // the place behind the subtree
    uint16_t depth;      // bytes from the root of the trie
    uint8_t byte;
    uint8_t more;        // further tokens end here
  };
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  struct Exit {
    uint32_t depth, state, number;
  };
  // An exit at one node, and how many tokens have it.
  struct ExitAt {
    uint32_t state, node, tokens;
  };
  // The rest of the tokens at and below `node`: bytes of paths_ that lead to it, then its subtree.
  struct Rest {
    uint32_t exit, path, path_end, node;   // exit: an index into exits_at_
  };

  void order();
  void leave_out(const ByteRegion& region, uint32_t depth, uint32_t node);
  RemainderTrie unite(std::span<const Rest> rests) const;

  const Trie& trie_;
  std::vector<Step> order_;          // made on first use
  std::vector<uint32_t> nodes_;      // of order_, by place
  std::vector<uint32_t> places_;     // by node
  std::vector<uint32_t> states_;     // by depth
  std::vector<uint8_t> bytes_;       // on the path, by depth
  std::vector<Exit> exits_;
  std::vector<ExitAt> exits_at_;
  std::vector<Rest> rests_;
  std::vector<uint8_t> paths_;
  uint64_t steps_ = 0;
};

}  // namespace constrain
