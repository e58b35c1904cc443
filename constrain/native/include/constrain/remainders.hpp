// What remains of the tokens that end a lexical unit, behind the unit's last byte.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/trie.hpp"

namespace constrain {

// A trie of remainders: siblings contiguous, node 0 the empty remainder.  Tokens of node n are
// words[word_begin[n], word_begin[n + 1]).
struct RemainderTrie {
  std::vector<TrieNode> nodes;
  std::vector<uint32_t> word_begin;
  std::vector<WordBits> words;

  std::span<const WordBits> tokens(uint32_t n) const {
    return {words.data() + word_begin[n], word_begin[n + 1] - word_begin[n]};
  }
  size_t bytes() const;
};

// Unites what lies below nodes of a vocabulary's trie: behind `ends`, and from the byte that leads
// to one of `before` on.  What the automaton JsonSuperset refuses from the state `superset` on is
// left out.
RemainderTrie unite_remainders(const Trie& trie, std::span<const uint32_t> ends,
                               std::span<const uint32_t> before, uint8_t superset);

// What remains of the tokens that end a unit with one outcome: a trie, and which of its tokens.
struct Remainders {
  uint32_t outcome = 0;
  std::shared_ptr<const RemainderTrie> trie;
  // Empty: all tokens.  Else the tokens meant, for each of trie->words, and a bit for each node
  // that has one of them at or below it.
  std::vector<uint32_t> bits;
  std::vector<uint64_t> below;

  bool any_below(uint32_t n) const { return below.empty() || (below[n >> 6] >> (n & 63) & 1u); }
  // Some token ends exactly with the unit.
  bool any_at_root() const { return trie->nodes[0].has_tokens != 0; }
  void add_tokens(uint32_t n, uint32_t* row) const {
    if (bits.empty()) return or_words(row, trie->tokens(n));
    for (uint32_t i = trie->word_begin[n]; i < trie->word_begin[n + 1]; ++i) {
      row[trie->words[i].word] |= bits[i];
    }
  }
  void clear_tokens(uint32_t n, uint32_t* row) const {
    if (bits.empty()) return clear_words(row, trie->tokens(n));
    for (uint32_t i = trie->word_begin[n]; i < trie->word_begin[n + 1]; ++i) {
      row[trie->words[i].word] &= ~bits[i];
    }
  }
  template <class Use>
  void for_each_token(uint32_t n, Use use) const {
    for (uint32_t i = trie->word_begin[n]; i < trie->word_begin[n + 1]; ++i) {
      uint32_t left = bits.empty() ? trie->words[i].bits : bits[i];
      for (; left != 0; left &= left - 1) {
        use(trie->words[i].word * 32 + static_cast<uint32_t>(std::countr_zero(left)));
      }
    }
  }
  // Without the trie, which may be shared.
  size_t bytes() const {
    return sizeof(*this) + bits.capacity() * sizeof(uint32_t) + below.capacity() * sizeof(uint64_t);
  }
};

// A node of the vocabulary's trie below which tokens go on from behind the unit, left with this
// outcome at the node.
struct Leap {
  uint32_t outcome, node;
};

}  // namespace constrain
