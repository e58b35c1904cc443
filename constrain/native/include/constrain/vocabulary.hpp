// A vocabulary: the bytes of each token, the ids that end a sequence, and the width of the logits.
//
// Special tokens, ids that end a sequence and tokens without bytes have an empty text and never match
// text; in the trie they have a spelling (trie.hpp), so that a grammar can ask for them.  Tokens with
// the byte 0xFF are not in the trie: no text has it.  Everything that is shared by the constraints of
// a vocabulary and grows (the lexical automata and their tables) lives in its shards.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "constrain/bits.hpp"
#include "constrain/shard.hpp"
#include "constrain/trie.hpp"

namespace constrain {

struct Spelling {
  bool every_byte = false;   // that UTF-8 has is a token
  uint32_t brackets = 0;     // that one token opens at most in JSON
};

class Vocabulary {
 public:
  // Token i is blob[offsets[i], offsets[i + 1]).  `size` is the width of the logits, at least the
  // number of tokens; ids from there on are padding.  Throws Error where ids do not fit.
  Vocabulary(std::string blob, std::vector<uint32_t> offsets, std::vector<uint32_t> eos_ids,
             uint32_t size, PoolFactory make_pool, size_t max_memory);

  uint32_t size() const { return size_; }
  uint32_t token_count() const { return static_cast<uint32_t>(texts_.size()); }
  size_t words() const { return row_words(size_); }
  // Text of a token; empty where the id matches no text.
  std::string_view text(int64_t token) const {
    return token >= 0 && token < static_cast<int64_t>(texts_.size())
               ? texts_[static_cast<size_t>(token)]
               : std::string_view{};
  }
  // What a token is in the trie; empty: it is not there.
  std::string_view spelling(int64_t token) const {
    return token >= 0 && token < static_cast<int64_t>(spelled_.size())
               ? spelled_[static_cast<size_t>(token)]
               : std::string_view{};
  }
  bool is_eos(int64_t token) const;
  std::span<const uint32_t> eos_ids() const { return eos_ids_; }
  std::span<const WordBits> eos_words() const { return eos_words_; }
  const Trie& trie() const { return *trie_; }
  // What its tokens can spell; found when first asked for.
  const Spelling& spelling();
  Shard& shard() { return *shards_[0]; }

  // Batches on several threads use a shard each; all but the first are made when first asked for.
  // The bound on memory is for all of them together.
  static constexpr size_t kMostShards = 4;
  Shard& shard(size_t index);
  // Null: it was not made.
  Shard* existing_shard(size_t index) { return made_[index].load(std::memory_order_acquire); }
  // Takes the mutexes of the shards, one after the other.
  void set_max_memory(size_t limit);
  size_t max_memory() const { return max_memory_; }
  // Nanoseconds that a mask in a batch has taken lately.
  std::atomic<uint64_t>& mask_cost() { return mask_cost_; }

 private:
  void spell();

  std::string blob_;
  std::vector<std::string_view> texts_;
  std::vector<std::string_view> spelled_;
  std::string spellings_;              // of tokens without text
  std::vector<uint32_t> eos_ids_;      // sorted
  std::vector<WordBits> eos_words_;
  uint32_t size_;
  std::unique_ptr<Trie> trie_;
  std::once_flag spelled_once_;
  Spelling spelling_;
  PoolFactory make_pool_;
  std::atomic<size_t> max_memory_;
  std::atomic<uint64_t> mask_cost_{0};
  std::mutex making_;
  std::array<std::unique_ptr<Shard>, kMostShards> shards_;
  std::array<std::atomic<Shard*>, kMostShards> made_{};
};

}  // namespace constrain
