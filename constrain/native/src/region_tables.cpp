#include "constrain/region_tables.hpp"

#include <algorithm>
#include <memory>

#include "constrain/poll.hpp"

namespace constrain {
namespace {

constexpr uint32_t kLeap = 256;   // tokens from which on an exit is a leap

}  // namespace

RegionTables::RegionTables(const Trie& trie) : trie_(trie) {
  states_.resize(trie.depth() + 1);
  bytes_.resize(trie.depth() + 1);
}

void RegionTables::order() {
  order_.reserve(trie_.node_count());
  nodes_.reserve(trie_.node_count());
  places_.resize(trie_.node_count());
  struct Open {
    uint32_t next, end, place;
  };
  std::vector<Open> open;
  const auto visit = [&](uint32_t n) {
    const TrieNode& node = trie_.node(n);
    places_[n] = static_cast<uint32_t>(order_.size());
    order_.push_back({node.has_tokens ? trie_.own_tokens(n)[0] : kNone, 0,
                      static_cast<uint16_t>(open.size()), node.byte,
                      static_cast<uint8_t>(node.has_tokens > 1)});
    nodes_.push_back(n);
    open.push_back({node.first_child, node.first_child + node.child_count, places_[n]});
  };
  visit(0);
  while (!open.empty()) {
    Open& top = open.back();
    if (top.next != top.end) {
      visit(top.next++);
    } else {
      order_[top.place].end = static_cast<uint32_t>(order_.size());
      open.pop_back();
    }
  }
}

void RegionTables::fill(const ByteRegion& region, uint32_t state, uint32_t root, uint32_t* row,
                        std::vector<Remainders>& remainders, std::vector<Leap>& leaps) {
  if (order_.empty()) order();
  exits_.clear();
  exits_at_.clear();
  rests_.clear();
  paths_.clear();
  for (const uint32_t token : trie_.own_tokens(root)) set_bit(row, token);
  const Step& top = order_[places_[root]];
  states_[top.depth] = state;
  for (uint32_t place = places_[root] + 1; place < top.end;) {
    const Step& step = order_[place];
    poll_sometimes(steps_);
    const uint32_t depth = step.depth - 1u;     // of the parent
    while (!exits_.empty() && exits_.back().depth > depth) exits_.pop_back();
    const uint32_t target = region.step(states_[depth], step.byte);
    bytes_[depth] = step.byte;
    if (target == ByteRegion::kDead) {
      if (!exits_.empty()) leave_out(region, depth, nodes_[place]);
      place = step.end;
      continue;
    }
    states_[depth + 1] = target;
    if (step.token != kNone) {
      set_bit(row, step.token);
      if (step.more) {
        for (const uint32_t token : trie_.own_tokens(nodes_[place])) set_bit(row, token);
      }
    }
    if (place + 1 != step.end && region.can_leave(target)) {
      exits_.push_back({depth + 1, target, static_cast<uint32_t>(exits_at_.size())});
      exits_at_.push_back({target, nodes_[place], 0});
    }
    ++place;
  }
  for (const ExitAt& at : exits_at_) {
    if (at.tokens >= kLeap) leaps.push_back({at.state, at.node});
  }
  std::erase_if(rests_, [&](const Rest& rest) { return exits_at_[rest.exit].tokens >= kLeap; });
  const auto outcome = [&](const Rest& rest) { return exits_at_[rest.exit].state; };
  std::stable_sort(rests_.begin(), rests_.end(),
                   [&](const Rest& a, const Rest& b) { return outcome(a) < outcome(b); });
  for (size_t i = 0; i < rests_.size();) {
    size_t j = i;
    while (j < rests_.size() && outcome(rests_[j]) == outcome(rests_[i])) ++j;
    Remainders one;
    one.outcome = outcome(rests_[i]);
    one.trie = std::make_shared<const RemainderTrie>(unite({rests_.data() + i, j - i}));
    remainders.push_back(std::move(one));
    i = j;
  }
}

// Tokens at and below a node do not stay inside: what is left of them behind each exit above.
void RegionTables::leave_out(const ByteRegion& region, uint32_t depth, uint32_t node) {
  uint32_t start = 0;      // where the first byte of the trie would be, once a path is copied
  bool copied = false;
  for (const Exit& exit : exits_) {
    if (!has_byte(region.exits(exit.state), bytes_[exit.depth])) continue;
    if (!copied) {
      copied = true;
      start = static_cast<uint32_t>(paths_.size()) - exit.depth;
      paths_.insert(paths_.end(), bytes_.begin() + exit.depth,
                    bytes_.begin() + static_cast<ptrdiff_t>(depth) + 1);
    }
    exits_at_[exit.number].tokens += trie_.subtree_size(node);
    rests_.push_back({exit.number, start + exit.depth, static_cast<uint32_t>(paths_.size()), node});
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
