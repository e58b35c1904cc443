#include "constrain/remainders.hpp"

#include <algorithm>
#include <utility>

#include "constrain/json_superset.hpp"

namespace constrain {

size_t RemainderTrie::bytes() const {
  return nodes.capacity() * sizeof(TrieNode) + word_begin.capacity() * sizeof(uint32_t) +
         words.capacity() * sizeof(WordBits) + sizeof(*this);
}

RemainderTrie unite_remainders(const Trie& trie, std::span<const uint32_t> ends,
                               std::span<const uint32_t> before, uint8_t superset) {
  // A node of the union is a set of trie nodes; sets are small except near the top.
  struct Union {
    std::vector<uint32_t> nodes;
    uint8_t state;
  };
  RemainderTrie result;
  std::vector<Union> unions(1);
  unions[0].state = superset;
  unions[0].nodes.assign(ends.begin(), ends.end());
  result.nodes.push_back({});
  std::vector<std::vector<WordBits>> packed;
  std::vector<std::pair<uint8_t, uint32_t>> edges;
  for (size_t u = 0; u < unions.size(); ++u) {
    const Union current = std::move(unions[u]);
    std::vector<uint32_t> tokens;
    edges.clear();
    for (const uint32_t n : current.nodes) {
      for (const uint32_t token : trie.own_tokens(n)) tokens.push_back(token);
      const TrieNode& node = trie.node(n);
      for (uint32_t c = node.first_child; c < node.first_child + node.child_count; ++c) {
        edges.push_back({trie.node(c).byte, c});
      }
    }
    if (u == 0) {
      for (const uint32_t n : before) edges.push_back({trie.node(n).byte, n});
    }
    result.nodes[u].has_tokens = !tokens.empty();
    packed.push_back(pack_tokens(std::move(tokens)));
    std::sort(edges.begin(), edges.end());
    result.nodes[u].first_child = static_cast<uint32_t>(result.nodes.size());
    for (size_t i = 0; i < edges.size();) {
      size_t j = i;
      Union next;
      while (j < edges.size() && edges[j].first == edges[i].first) {
        next.nodes.push_back(edges[j++].second);
      }
      next.state = JsonSuperset::step(current.state, edges[i].first);
      if (next.state != JsonSuperset::kDead) {
        TrieNode child;
        child.byte = edges[i].first;
        result.nodes.push_back(child);
        unions.push_back(std::move(next));
        ++result.nodes[u].child_count;
      }
      i = j;
    }
  }
  result.word_begin.push_back(0);
  for (const auto& words : packed) {
    result.words.insert(result.words.end(), words.begin(), words.end());
    result.word_begin.push_back(static_cast<uint32_t>(result.words.size()));
  }
  result.nodes.shrink_to_fit();
  result.words.shrink_to_fit();
  return result;
}

}  // namespace constrain
