#include "constrain/region_tables.hpp"

#include <algorithm>
#include <memory>

namespace constrain {

RegionTables::RegionTables(const Trie& trie) : trie_(trie) {
  frames_.resize(trie.depth() + 1);
  bytes_.resize(trie.depth() + 1);
}

void RegionTables::fill(const ByteRegion& region, uint32_t state, uint32_t root, uint32_t* row,
                        std::vector<Remainders>& remainders) {
  exits_.clear();
  rests_.clear();
  paths_.clear();
  for (const uint32_t token : trie_.own_tokens(root)) set_bit(row, token);
  const TrieNode& top = trie_.node(root);
  frames_[0] = {top.first_child, top.first_child + top.child_count, state, 0};
  size_t depth = 0;
  while (true) {
    Frame& frame = frames_[depth];
    exits_.resize(frame.exits);
    if (frame.next == frame.end) {
      if (depth == 0) break;
      --depth;
      continue;
    }
    const uint32_t n = frame.next++;
    const TrieNode& node = trie_.node(n);
    ++steps_;
    const uint32_t target = region.step(frame.state, node.byte);
    if (target == ByteRegion::kDead) {
      if (exits_.empty()) continue;
      bytes_[depth] = node.byte;
      uint32_t start = 0;      // where the byte below the root would be, once a path is copied
      bool copied = false;
      for (const Exit& exit : exits_) {
        if (!has_byte(region.exits(exit.state), bytes_[exit.depth])) continue;
        if (!copied) {
          copied = true;
          start = static_cast<uint32_t>(paths_.size()) - exit.depth;
          paths_.insert(paths_.end(), bytes_.begin() + exit.depth,
                        bytes_.begin() + static_cast<ptrdiff_t>(depth) + 1);
        }
        rests_.push_back({exit.state, start + exit.depth, static_cast<uint32_t>(paths_.size()), n});
      }
      continue;
    }
    if (node.has_tokens) {
      for (const uint32_t token : trie_.own_tokens(n)) set_bit(row, token);
    }
    if (node.child_count == 0) continue;
    bytes_[depth] = node.byte;
    ++depth;
    const auto above = static_cast<uint32_t>(exits_.size());
    const bool leaves = region.can_leave(target);
    if (leaves) exits_.push_back({static_cast<uint32_t>(depth), target});
    frames_[depth] = {node.first_child, node.first_child + node.child_count, target,
                      above + (leaves ? 1u : 0u)};
  }
  std::stable_sort(rests_.begin(), rests_.end(),
                   [](const Rest& a, const Rest& b) { return a.outcome < b.outcome; });
  for (size_t i = 0; i < rests_.size();) {
    size_t j = i;
    while (j < rests_.size() && rests_[j].outcome == rests_[i].outcome) ++j;
    Remainders one;
    one.outcome = rests_[i].outcome;
    one.trie = std::make_shared<const RemainderTrie>(unite({rests_.data() + i, j - i}));
    remainders.push_back(std::move(one));
    i = j;
  }
}

// A node of the union is a list of rests that have been read up to it.
RemainderTrie RegionTables::unite(std::span<const Rest> rests) const {
  struct Edge {
    uint8_t byte;
    Rest rest;
  };
  RemainderTrie result;
  std::vector<std::vector<Rest>> unions{{rests.begin(), rests.end()}};
  result.nodes.push_back({});
  result.word_begin.push_back(0);
  std::vector<Edge> edges;
  for (size_t u = 0; u < unions.size(); ++u) {
    const std::vector<Rest> current = std::move(unions[u]);
    std::vector<uint32_t> tokens;
    edges.clear();
    for (const Rest& rest : current) {
      if (rest.path != rest.path_end) {
        edges.push_back({paths_[rest.path], {0, rest.path + 1, rest.path_end, rest.node}});
        continue;
      }
      for (const uint32_t token : trie_.own_tokens(rest.node)) tokens.push_back(token);
      const TrieNode& node = trie_.node(rest.node);
      for (uint32_t c = node.first_child; c < node.first_child + node.child_count; ++c) {
        edges.push_back({trie_.node(c).byte, {0, 0, 0, c}});
      }
    }
    result.nodes[u].has_tokens = !tokens.empty();
    const std::vector<WordBits> words = pack_tokens(std::move(tokens));
    result.words.insert(result.words.end(), words.begin(), words.end());
    result.word_begin.push_back(static_cast<uint32_t>(result.words.size()));
    std::stable_sort(edges.begin(), edges.end(),
                     [](const Edge& a, const Edge& b) { return a.byte < b.byte; });
    result.nodes[u].first_child = static_cast<uint32_t>(result.nodes.size());
    for (size_t i = 0; i < edges.size();) {
      std::vector<Rest> next;
      size_t j = i;
      while (j < edges.size() && edges[j].byte == edges[i].byte) next.push_back(edges[j++].rest);
      TrieNode child;
      child.byte = edges[i].byte;
      result.nodes.push_back(child);
      unions.push_back(std::move(next));
      ++result.nodes[u].child_count;
      i = j;
    }
  }
  result.nodes.shrink_to_fit();
  result.words.shrink_to_fit();
  return result;
}

}  // namespace constrain
