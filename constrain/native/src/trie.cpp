#include "constrain/trie.hpp"

#include <algorithm>

namespace constrain {

Trie::Trie(std::span<const std::string_view> tokens) : texts_(tokens) {
  // Sorted by (first eight bytes as a big-endian number, rest): the comparison of most pairs is one
  // integer comparison.
  struct Key {
    uint64_t head;
    uint32_t id;
  };
  std::vector<Key> keys;
  keys.reserve(tokens.size());
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    const std::string_view text = tokens[id];
    if (text.empty()) continue;
    uint64_t head = 0;
    for (size_t i = 0; i < 8; ++i) {
      head = head << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0u);
    }
    keys.push_back({head, id});
    uint32_t digits = 0;
    for (const char c : text) {
      digits = c >= '0' && c <= '9' ? digits + 1 : 0;
      digit_run_ = std::max(digit_run_, digits);
    }
    depth_ = std::max<uint32_t>(depth_, static_cast<uint32_t>(text.size()));
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    if (a.head != b.head) return a.head < b.head;
    const int order = tokens[a.id].compare(tokens[b.id]);
    return order != 0 ? order < 0 : a.id < b.id;
  });
  order_.reserve(keys.size());
  for (const Key& key : keys) order_.push_back(key.id);

  // Depth first, so that a subtree lies together; a node's children are placed when it is visited.
  struct Work {
    uint32_t node, depth;
  };
  std::vector<Work> stack;
  nodes_.reserve(order_.size() * 5 / 2 + 1);
  ranges_.reserve(order_.size() * 5 / 2 + 1);
  nodes_.push_back({});
  ranges_.push_back({0, static_cast<uint32_t>(order_.size())});
  stack.push_back({0, 0});
  while (!stack.empty()) {
    const auto [n, depth] = stack.back();
    stack.pop_back();
    uint32_t at = ranges_[n].begin;
    const uint32_t end = ranges_[n].end;
    while (at < end && tokens[order_[at]].size() == depth) ++at;
    nodes_[n].has_tokens = static_cast<uint8_t>(std::min<uint32_t>(at - ranges_[n].begin, 255));
    const auto first = static_cast<uint32_t>(nodes_.size());
    nodes_[n].first_child = first;
    while (at < end) {
      const char byte = tokens[order_[at]][depth];
      const uint32_t begin = at;
      while (at < end && tokens[order_[at]][depth] == byte) ++at;
      TrieNode child;
      child.byte = static_cast<uint8_t>(byte);
      nodes_.push_back(child);
      ranges_.push_back({begin, at});
    }
    const auto count = static_cast<uint32_t>(nodes_.size()) - first;
    nodes_[n].child_count = static_cast<uint16_t>(count);
    for (uint32_t i = count; i > 0; --i) stack.push_back({first + i - 1, depth + 1});
  }
  nodes_.shrink_to_fit();
  ranges_.shrink_to_fit();
}

uint32_t Trie::child(uint32_t n, uint8_t byte) const {
  const TrieNode* first = nodes_.data() + nodes_[n].first_child;
  const TrieNode* last = first + nodes_[n].child_count;
  const TrieNode* found = std::lower_bound(
      first, last, byte, [](const TrieNode& node, uint8_t b) { return node.byte < b; });
  if (found == last || found->byte != byte) return 0;
  return static_cast<uint32_t>(found - nodes_.data());
}

uint32_t Trie::find(std::string_view text) const {
  uint32_t n = 0;
  for (const char c : text) {
    n = child(n, static_cast<uint8_t>(c));
    if (n == 0) return 0;
  }
  return n;
}

size_t Trie::bytes() const {
  return nodes_.capacity() * sizeof(TrieNode) + ranges_.capacity() * sizeof(Range) +
         order_.capacity() * sizeof(uint32_t);
}

}  // namespace constrain
