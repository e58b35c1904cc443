// Per vocabulary: which tokens stay inside a lexical unit, and what remains of those that end it.
//
// A table belongs to a position in a unit (a LexCursor) and a node of the trie, the root for masks
// of a config inside a unit, another node for tokens that begin with structure and go on inside a
// unit.  It is a function of the two, shared by all constraints of the vocabulary, and holds
//
//   inside      the tokens of the subtree that end inside the unit;
//   remainders  per outcome of the unit, a trie of what follows the unit's last byte, with the
//               tokens at its nodes.  Tokens with equal remainders share a node, and remainders
//               that no JSON text continues with, whatever is open, are left out.
//
// Building walks the subtree once with the lexical stepper (2 to 3 ms for the root of a 128k
// vocabulary in a plain string).  Tables are bounded in bytes and dropped least recently used
// first, but only by `trim`, so that pointers stay valid during a fill.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/machine.hpp"
#include "constrain/trie.hpp"

namespace constrain {

// A trie of remainders: siblings contiguous, node 0 the empty remainder.  Tokens of node n are
// words[word_begin[n], word_begin[n + 1]).
struct RemainderTrie {
  uint32_t outcome = 0;
  uint32_t depth = 0;
  std::vector<TrieNode> nodes;
  std::vector<uint32_t> word_begin;
  std::vector<WordBits> words;

  std::span<const WordBits> tokens(uint32_t n) const {
    return {words.data() + word_begin[n], word_begin[n + 1] - word_begin[n]};
  }
  size_t bytes() const;
};

class LexicalTable {
 public:
  // row |= tokens that stay inside.  `ended_by`: see `merged`.
  void add_to(uint32_t* row) const;
  // row = tokens that stay inside and no others.
  void write_to(uint32_t* row, size_t words) const;

  std::span<const RemainderTrie> remainders() const { return remainders_; }
  // Tokens that end exactly with the unit are part of the inside row already, because the unit has
  // one outcome only: where leaving it is impossible they must be taken out again.
  bool merged() const { return merged_; }
  // The whole inside row where it is kept whole, else null.
  const uint32_t* dense() const { return dense_.empty() ? nullptr : dense_.data(); }
  std::span<const WordBits> sparse() const { return sparse_; }
  size_t bytes() const { return bytes_; }

 private:
  friend class LexicalTables;
  std::vector<uint32_t> dense_;      // one of the two is used
  std::vector<WordBits> sparse_;
  std::vector<RemainderTrie> remainders_;
  bool merged_ = false;
  size_t bytes_ = 0;
  uint64_t last_used_ = 0;
};

class LexicalTables {
 public:
  LexicalTables(const Trie& trie, LexicalStepper& stepper, uint32_t size, size_t max_bytes);

  // The table of this cursor below this trie node; built when missing.
  const LexicalTable& get(const LexCursor& cursor, uint32_t node);
  // Like get, but null when missing.
  const LexicalTable* find(const LexCursor& cursor, uint32_t node) const;

  // Drops the least recently used tables when they hold more than the bound.
  void trim();
  void set_max_bytes(size_t limit) { max_bytes_ = limit; }
  // Changes whenever tables were dropped: pointers from before are invalid.
  uint32_t generation() const { return generation_; }
  size_t bytes() const { return bytes_; }
  size_t count() const { return tables_.size(); }
  size_t words() const { return words_; }
  // Tables built and lexical steps made so far, for benchmarks.
  uint64_t built() const { return built_; }
  uint64_t steps() const { return steps_; }

 private:
  struct Key {
    LexCursor cursor;
    uint32_t node = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      uint64_t h = (uint64_t{k.cursor.goal} << 32 | k.cursor.tracked) * 0x9E3779B97F4A7C15ull;
      h ^= h >> 29;
      h += (uint64_t{k.cursor.decoder} << 32 | k.node);
      h *= 0xBF58476D1CE4E5B9ull;
      return static_cast<size_t>(h ^ h >> 32);
    }
  };
  struct Frame {
    uint32_t next, end;
  };
  struct End {
    uint32_t outcome, node;
  };

  std::unique_ptr<LexicalTable> build(const LexCursor& cursor, uint32_t node);
  RemainderTrie build_remainders(uint32_t outcome, std::span<const End> ends) const;

  const Trie& trie_;
  LexicalStepper& stepper_;
  size_t words_;
  size_t max_bytes_;
  size_t bytes_ = 0;
  uint64_t tick_ = 0;
  uint32_t generation_ = 0;
  uint64_t built_ = 0;
  uint64_t steps_ = 0;
  std::unordered_map<Key, std::unique_ptr<LexicalTable>, KeyHash> tables_;
  // Scratch of build.
  std::vector<Frame> frames_;
  std::vector<LexCursor> cursors_;
  std::vector<uint32_t> row_;
  std::vector<End> ends_;
};

}  // namespace constrain
