// Per vocabulary: the tokens that begin with blank space, by what follows the blanks.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "constrain/gap.hpp"
#include "constrain/remainders.hpp"
#include "constrain/trie.hpp"

namespace constrain {

// What begins with blanks that a gap admits.  What comes behind blanks does not depend on them, so
// it is looked at once and not behind each of the many runs of blanks in a vocabulary.
struct GapTable {
  std::vector<WordBits> blanks;   // tokens of nothing else
  Remainders rest;                // what follows the blanks of other tokens, without ...
  struct Behind {
    uint8_t byte;
    uint32_t node;
  };
  std::vector<Behind> large;      // ... nodes above many tokens, by the byte that leads there
  size_t bytes() const;
};

// The tables of a vocabulary, made when first wanted.  There are at most some hundred of them.
class GapTables {
 public:
  // Nodes with at least so many tokens below are not united with others.
  GapTables(const Trie& trie, uint32_t large) : trie_(trie), large_(large) {}
  const GapTable& get(uint32_t gap);
  size_t bytes() const { return bytes_; }

 private:
  const Trie& trie_;
  uint32_t large_;
  size_t bytes_ = 0;
  std::unordered_map<uint32_t, std::unique_ptr<const GapTable>> tables_;
};

}  // namespace constrain
