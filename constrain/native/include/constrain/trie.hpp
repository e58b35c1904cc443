// A byte trie over the tokens of a vocabulary.
//
// Invariants: the children of a node are contiguous and sorted by byte; the tokens of a subtree are
// a contiguous range of `order()`, a node's own tokens first.  Node 0 is the root.  Tokens without
// bytes are not in the trie: they never match text.
//
// A token that writes no text has a spelling of its own: 0xFF and its id as three bytes, big endian
// (Vocabulary.token_bytes in Python).  No text has the byte 0xFF, so only automata that ask for
// tokens read it.
//
// The texts that it is made of belong to the caller and must outlive it.
//
// Cost: 16 bytes a node (the 8 that a walk reads lie together), 4 bytes a token; building 128,000
// tokens takes some 60 ms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace constrain {

inline constexpr uint8_t kTokenMark = 0xFF;
inline std::array<char, 4> token_spelling(uint32_t id) {
  return {static_cast<char>(kTokenMark), static_cast<char>(id >> 16), static_cast<char>(id >> 8),
          static_cast<char>(id)};
}

struct TrieNode {
  uint32_t first_child = 0;
  uint16_t child_count = 0;   // 0..256
  uint8_t byte = 0;           // on the edge that leads here
  uint8_t has_tokens = 0;     // how many tokens end here; 255: that or more
};
static_assert(sizeof(TrieNode) == 8);

class Trie {
 public:
  // tokens[i] is the text of token i; empty: not in the trie.
  explicit Trie(std::span<const std::string_view> tokens);

  const TrieNode& node(uint32_t n) const { return nodes_[n]; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  // Longest path below the root, in bytes.
  uint32_t depth() const { return depth_; }
  // How many digits follow each other in a token at most.
  uint32_t digit_run() const { return digit_run_; }

  // Token ids that end at node n, and those that end at or below it.
  std::span<const uint32_t> own_tokens(uint32_t n) const {
    const uint32_t begin = ranges_[n].begin;
    uint32_t count = nodes_[n].has_tokens;
    if (count == 255) {
      count =
          (nodes_[n].child_count ? ranges_[nodes_[n].first_child].begin : ranges_[n].end) - begin;
    }
    return {order_.data() + begin, count};
  }
  std::span<const uint32_t> subtree_tokens(uint32_t n) const {
    return {order_.data() + ranges_[n].begin, ranges_[n].end - ranges_[n].begin};
  }
  // Of `count` siblings from node n on.
  std::span<const uint32_t> subtree_tokens(uint32_t n, uint32_t count) const {
    return {order_.data() + ranges_[n].begin, ranges_[n + count - 1].end - ranges_[n].begin};
  }
  uint32_t subtree_size(uint32_t n) const { return ranges_[n].end - ranges_[n].begin; }
  std::span<const uint32_t> order() const { return order_; }
  std::string_view text(uint32_t token) const { return texts_[token]; }

  // Child of n over this byte, or 0 (the root is nobody's child).
  uint32_t child(uint32_t n, uint8_t byte) const;
  // Node of this text, or 0 when no token continues or equals it (0 for the empty text too).
  uint32_t find(std::string_view text) const;

  // Node n and its tokens will be wanted soon.
  void prefetch(uint32_t n) const {
#if defined(__GNUC__)
    __builtin_prefetch(nodes_.data() + n);
    __builtin_prefetch(ranges_.data() + n);
#else
    (void)n;
#endif
  }

  size_t bytes() const;

 private:
  struct Range {
    uint32_t begin = 0, end = 0;
  };
  std::span<const std::string_view> texts_;
  std::vector<TrieNode> nodes_;
  std::vector<Range> ranges_;
  std::vector<uint32_t> order_;
  uint32_t depth_ = 0;
  uint32_t digit_run_ = 0;
};

}  // namespace constrain
