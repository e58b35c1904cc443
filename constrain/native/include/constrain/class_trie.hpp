// The tokens of a vocabulary by the classes of their characters.
//
// A node is the set of character sequences (nodes of a CharTrie) that have the same sequence of
// classes.  A language that respects the classes cannot tell the tokens of a node apart, so a table
// is made by visiting class nodes: for a language that only counts characters a hundred of them
// instead of the vocabulary's hundreds of thousands.
//
// Nodes are expanded when they are first asked for, so what no language visits costs nothing.  A
// token that ends in the middle of a character is kept by the classes that the character may still
// get.
//
// Cost: visiting a character node once, at expansion (a few nanoseconds); 8 bytes for each run of
// neighbours with one class, and 4 for each token.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/char_trie.hpp"
#include "constrain/machine.hpp"

namespace constrain {

// Classes of code points, fast where questions come in order.
class ClassLookup {
 public:
  explicit ClassLookup(const CharClasses& classes);
  uint32_t operator()(uint32_t code_point) {
    if (code_point < 128) return ascii_[code_point];
    if (code_point < low_ || code_point >= high_) find(code_point);
    return char_class_;
  }
  const CharClasses& classes() const { return classes_; }

 private:
  void find(uint32_t code_point);
  CharClasses classes_;
  uint32_t ascii_[128];
  uint32_t low_ = 1, high_ = 0, char_class_ = 0;   // the interval of the last answer
};

class ClassTrie {
 public:
  using Run = CharTrie::Run;
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
    uint32_t first_run = 0, runs = 0;     // of character nodes
    uint32_t first_edge = 0, edges = 0;
    uint32_t first_partial = 0, partials = 0;
    Tokens inside;    // tokens that end here
    Tokens ended;     // tokens whose unit ends here, whatever follows
    bool expanded = false;
    bool listed = false;   // inside, ended and partials are known
  };

  ClassTrie(const CharTrie& chars, const CharacterStepper& stepper, const CharClasses& classes,
            size_t words);

  // Node 0 is the root.  References are valid until the next call of one of these two.
  //
  // With the tokens at the node.
  const Node& list(uint32_t n);
  // With the tokens and the edges.
  const Node& expand(uint32_t n);
  std::span<const Edge> edges(const Node& node) const {
    return {edges_.data() + node.first_edge, node.edges};
  }
  std::span<const Partial> partials(const Node& node) const {
    return {partials_.data() + node.first_partial, node.partials};
  }
  const Node& node(uint32_t n) const { return nodes_[n]; }
  std::span<const Run> runs(const Node& node) const {
    return {runs_.data() + node.first_run, node.runs};
  }
  std::span<const uint32_t> class_set(uint32_t set) const { return class_sets_[set]; }
  // The classes that a character in progress may still get.
  uint32_t partial_of(uint32_t decoder);
  const CharTrie& chars() const { return chars_; }
  ClassLookup& lookup() { return lookup_; }
  const CharClasses& classes() const { return lookup_.classes(); }
  void add(const Tokens& tokens, uint32_t* row) const;
  size_t bytes() const;

  uint64_t last_used = 0;
  size_t extra_bytes = 0;   // held for this trie by the owner
  size_t counted = 0;   // bytes, as the owner has counted them

 private:
  Tokens keep(const std::vector<uint32_t>& tokens);

  const CharTrie& chars_;
  const CharacterStepper& stepper_;
  ClassLookup lookup_;
  size_t row_words_;
  std::vector<Node> nodes_;
  std::vector<Run> runs_;
  std::vector<uint32_t> tokens_;
  std::vector<uint32_t> rows_;
  std::vector<Edge> edges_;
  std::vector<Partial> partials_;
  std::vector<std::vector<uint32_t>> class_sets_;
  std::map<std::vector<uint32_t>, uint32_t> class_set_index_;
  std::map<uint32_t, uint32_t> set_of_decoder_;
  // Scratch; empty between calls.
  std::vector<std::vector<Run>> found_;    // by class
  std::vector<uint32_t> seen_;             // classes found
  std::vector<uint32_t> list_;
  std::vector<std::vector<uint32_t>> partial_tokens_;   // by class set
  std::vector<uint32_t> partial_seen_;
};

}  // namespace constrain
