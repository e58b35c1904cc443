// The tokens of a vocabulary as characters, read from a character boundary of a unit.
//
// A node is a sequence of characters; spellings do not matter (an escape and the character itself
// lead to the same node).  Nodes are numbered level by level, siblings in order of code points, so
// that what belongs to neighbouring nodes is contiguous: their children, and the tokens that end at
// them.  A *run* of nodes, [first, last), is all that users handle.
//
// Tokens that end the unit, and tokens that end inside a character, are kept apart by node; tokens
// that no unit has are left out.
//
// Cost: some 12 ms and 5 MB for 128,000 tokens, once per vocabulary and kind of unit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "constrain/machine.hpp"
#include "constrain/trie.hpp"

namespace constrain {

class CharTrie {
 public:
  struct Run {
    uint32_t first = 0, last = 0;
    bool empty() const { return first == last; }
  };
  // A token that is not at a boundary in the unit.
  struct Odd {
    uint32_t token;
    uint32_t decoder;   // inside a character; kEnded: it ended the unit
  };
  static constexpr uint32_t kEnded = 0xFFFFFFFFu;

  // `decoder`: at a character boundary.
  CharTrie(const Trie& trie, const CharacterStepper& stepper, uint32_t decoder);

  static constexpr Run kRoot{0, 1};
  uint32_t code_point(uint32_t node) const { return code_points_[node]; }
  // The children of all nodes of the run: one run, whose siblings are sorted.
  Run children(Run run) const { return {first_child_[run.first], first_child_[run.last]}; }
  // Tokens that end at nodes of the run, at a boundary.
  std::span<const uint32_t> tokens(Run run) const {
    return {tokens_.data() + first_token_[run.first], tokens_.data() + first_token_[run.last]};
  }
  std::span<const Odd> odd(Run run) const {
    return {odd_.data() + first_odd_[run.first], odd_.data() + first_odd_[run.last]};
  }
  // Nodes of the vocabulary's trie behind the byte that ends the unit, and the tokens at them and
  // below, of all tokens.
  std::span<const uint32_t> ends() const { return ends_; }
  // The nodes from which tokens that end the unit can be reached, as a trie of their own.
  struct EndNode {
    uint32_t node = 0;
    uint32_t first_child = 0, last_child = 0;   // a range of end_nodes()
  };
  std::span<const EndNode> end_nodes() const { return end_nodes_; }
  uint32_t node_count() const { return static_cast<uint32_t>(code_points_.size()); }
  size_t bytes() const;

 private:
  std::vector<uint32_t> code_points_;
  std::vector<uint32_t> first_child_, first_token_, first_odd_;   // one more than nodes
  std::vector<uint32_t> tokens_;
  std::vector<Odd> odd_;
  std::vector<uint32_t> ends_;
  std::vector<EndNode> end_nodes_;
};

}  // namespace constrain
