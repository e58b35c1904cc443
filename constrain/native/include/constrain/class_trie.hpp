// The tokens of a vocabulary by the classes of their characters.
//
// A node is the set of vocabulary trie nodes that are reached by the same sequence of classes, read
// from a character boundary of a unit.  A language that respects the classes cannot tell the tokens
// of a node apart, so a table is made by visiting class nodes: for a language that only counts
// characters a hundred of them instead of the vocabulary's hundreds of thousands.
//
// Nodes are expanded when they are first asked for, so what no language visits costs nothing.  The
// characters of tokens are decoded here, once for all languages that share the classes; a token
// that ends in the middle of a character is kept by the classes that the character may still get.
//
// Cost: visiting a vocabulary node once, at expansion (some nanoseconds); 8 bytes for each node with
// children and 4 for each token.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/machine.hpp"
#include "constrain/trie.hpp"

namespace constrain {

class ClassTrie {
 public:
  struct Edge {
    uint32_t char_class = 0;
    uint32_t node = 0;
  };
  // Some tokens, as a list or, where there are many, as a whole row.
  struct Tokens {
    uint32_t begin = 0;   // into tokens or rows
    uint32_t count = 0;   // of tokens
    bool dense = false;
  };
  // Tokens that end in a character that may still get any of these classes.
  struct Partial {
    uint32_t class_set = 0;
    Tokens tokens;
  };
  struct Node {
    uint32_t first_head = 0, heads = 0;
    uint32_t first_edge = 0, edges = 0;
    uint32_t first_partial = 0, partials = 0;
    Tokens inside;    // tokens that end here
    Tokens ended;     // tokens whose unit ends here, whatever follows
    bool expanded = false;
  };

  // `decoder`: at a character boundary.
  ClassTrie(const Trie& trie, const CharacterStepper& stepper, const CharClasses& classes,
            uint32_t decoder, size_t words);

  // The children of a vocabulary node.
  struct Head {
    uint32_t first, count;
  };

  // Node 0 is the root.  References are valid until the next expand().
  const Node& expand(uint32_t n);
  std::span<const Edge> edges(const Node& node) const {
    return {edges_.data() + node.first_edge, node.edges};
  }
  std::span<const Partial> partials(const Node& node) const {
    return {partials_.data() + node.first_partial, node.partials};
  }
  const Node& node(uint32_t n) const { return nodes_[n]; }
  std::span<const Head> heads(const Node& node) const {
    return {heads_.data() + node.first_head, node.heads};
  }
  std::span<const uint32_t> class_set(uint32_t set) const { return class_sets_[set]; }
  const CharClasses& classes() const { return classes_; }
  void add(const Tokens& tokens, uint32_t* row) const;
  // Tokens that end here or go on from here, well-formed or not.
  template <class Use>
  void for_each_token(uint32_t n, Use use) const {
    const Node& node = nodes_[n];
    if (node.inside.dense) {
      const uint32_t* row = rows_.data() + node.inside.begin;
      for (size_t i = 0; i < row_words_; ++i) {
        for (uint32_t left = row[i]; left != 0; left &= left - 1) {
          use(static_cast<uint32_t>(i * 32) + static_cast<uint32_t>(std::countr_zero(left)));
        }
      }
    } else {
      for (uint32_t i = 0; i < node.inside.count; ++i) use(tokens_[node.inside.begin + i]);
    }
    for (uint32_t i = 0; i < node.heads; ++i) {
      const Head& head = heads_[node.first_head + i];
      for (const uint32_t token : trie_.subtree_tokens(head.first, head.count)) use(token);
    }
  }
  // How many these are.
  size_t token_count(uint32_t n) const {
    size_t total = nodes_[n].inside.count;
    for (uint32_t i = 0; i < nodes_[n].heads; ++i) {
      const Head& head = heads_[nodes_[n].first_head + i];
      total += trie_.subtree_tokens(head.first, head.count).size();
    }
    return total;
  }
  size_t bytes() const;

  uint64_t last_used = 0;
  size_t extra_bytes = 0;   // held for this trie by the owner
  size_t counted = 0;   // bytes, as the owner has counted them

 private:
  struct Step {
    uint32_t next, end, decoder;
  };
  // What was read of one class.
  struct Found {
    std::vector<Head> heads;
    std::vector<uint32_t> tokens;
  };
  void read(const Head& head);
  uint32_t class_of(uint32_t code_point) const;
  uint32_t partial_of(uint32_t decoder);
  Found& found(uint32_t char_class);
  void hit(uint32_t char_class, uint32_t node);
  Tokens keep(const std::vector<uint32_t>& tokens);

  const Trie& trie_;
  const CharacterStepper& stepper_;
  CharClasses classes_;
  uint32_t decoder_;
  size_t row_words_;
  uint32_t ascii_[128];     // class, or kSpecial
  std::vector<Node> nodes_;
  std::vector<Head> heads_;
  std::vector<uint32_t> tokens_;
  std::vector<uint32_t> rows_;
  std::vector<Edge> edges_;
  std::vector<Partial> partials_;
  std::vector<std::vector<uint32_t>> class_sets_;
  std::map<std::vector<uint32_t>, uint32_t> class_set_index_;
  std::map<uint32_t, uint32_t> set_of_decoder_;
  // Scratch of expand; empty between calls.
  std::vector<Step> steps_;
  std::vector<Found> found_;          // by class
  std::vector<uint32_t> seen_;        // classes found
  std::vector<uint32_t> ended_;
  std::vector<std::vector<uint32_t>> partial_tokens_;   // by class set
  std::vector<uint32_t> partial_seen_;
};

}  // namespace constrain
