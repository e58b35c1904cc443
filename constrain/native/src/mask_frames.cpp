// Tables of frames (frame_tables.hpp): masks that hold for all stacks below a frame.
#include <algorithm>
#include <tuple>

#include "constrain/mask.hpp"

namespace constrain {

const FrameTable& MaskFiller::frame_table(Machine& machine, const Config& config,
                                          const LexicalView& view, uint32_t node) {
  FrameTables& frames = *machine.frame_tables();
  if (const FrameTable* known = frames.find(view.frame, node)) return *known;
  // Tables of frames that are met below are made in between, so nothing of this one is in members
  // that they use.
  std::vector<Later> later = std::move(later_);
  std::vector<FrameExit> exits = std::move(exits_);
  const bool in_frame = in_frame_, frame_usable = frame_usable_;
  later_.clear();
  exits_.clear();
  in_frame_ = true;
  frame_usable_ = true;
  const bool doubt = machine.take_doubt();

  std::vector<uint32_t> row(tables_.words());
  const Config alone = machine.isolated(config);
  const LexicalTable& unit = tables_.get(view.cursor, node);
  unit.add_to(row.data());
  end_unit(machine, alone, unit, true, row.data());
  while (!later_.empty()) {
    const Later next = later_.back();
    later_.pop_back();
    add(machine, next.config, next.node, row.data());
  }
  auto table = std::make_unique<FrameTable>();
  table->usable = !machine.take_doubt() && frame_usable_;
  std::vector<Remainders> behind;
  if (table->usable && !exits_.empty()) {
    Remainders one;
    one.trie = unite_exits(machine.behind_frame(config), row);
    if (one.trie->nodes[0].child_count != 0) behind.push_back(std::move(one));
  }
  table->table.set(row, std::move(behind));

  later_ = std::move(later);
  exits_ = std::move(exits);
  in_frame_ = in_frame;
  // A frame around this one is in doubt if it was, or if it can be left from here in doubt.
  frame_usable_ = frame_usable && !doubt && table->usable;
  return frames.keep(view.frame, node, std::move(table));
}

// What follows the exits in tokens that are not in the row.
std::shared_ptr<const RemainderTrie> MaskFiller::unite_exits(
    const ByteSet& first, const std::vector<uint32_t>& row) const {
  // Tokens of the vocabulary that are left, counted along its order; and the remainders that have
  // some at or below each node.
  std::vector<uint32_t> before;
  std::unordered_map<const RemainderTrie*, std::vector<uint8_t>> open;
  const std::span<const uint32_t> order = trie_.order();
  const auto is_left = [&](uint32_t token) { return !test_bit(row.data(), token); };
  std::vector<std::pair<const RemainderTrie*, uint32_t>> roots;
  for (const FrameExit& exit : exits_) {
    roots.push_back({exit.trie.get(), exit.node});
    if (!exit.trie && before.empty()) {
      before.push_back(0);
      for (const uint32_t token : order) before.push_back(before.back() + is_left(token));
    }
    if (!exit.trie || open.contains(exit.trie.get())) continue;
    const RemainderTrie& trie = *exit.trie;
    std::vector<uint8_t>& any = open[&trie];
    any.resize(trie.nodes.size());
    for (size_t n = trie.nodes.size(); n-- > 0;) {
      for (const WordBits& w : trie.tokens(static_cast<uint32_t>(n))) {
        any[n] |= (w.bits & ~row[w.word]) != 0;
      }
      for (uint32_t c = 0; c < trie.nodes[n].child_count; ++c) {
        any[n] |= any[trie.nodes[n].first_child + c];
      }
    }
  }
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());

  struct Edge {
    uint8_t byte;
    const RemainderTrie* trie;
    uint32_t node;
  };
  RemainderTrie result;
  std::vector<std::vector<std::pair<const RemainderTrie*, uint32_t>>> unions{std::move(roots)};
  std::vector<Edge> edges;
  result.nodes.push_back({});
  result.word_begin.push_back(0);
  for (size_t u = 0; u < unions.size(); ++u) {
    const auto current = std::move(unions[u]);
    std::vector<uint32_t> tokens;
    edges.clear();
    for (const auto& [trie, n] : current) {
      const TrieNode& node = trie ? trie->nodes[n] : trie_.node(n);
      if (u != 0 && trie) {
        for (const WordBits& w : trie->tokens(n)) {
          for (uint32_t bits = w.bits & ~row[w.word]; bits != 0; bits &= bits - 1) {
            tokens.push_back(w.word * 32 + static_cast<uint32_t>(std::countr_zero(bits)));
          }
        }
      } else if (u != 0) {
        std::ranges::copy_if(trie_.own_tokens(n), std::back_inserter(tokens), is_left);
      }
      for (uint32_t c = node.first_child; c < node.first_child + node.child_count; ++c) {
        const uint8_t byte = trie ? trie->nodes[c].byte : trie_.node(c).byte;
        if (u == 0 && !has_byte(first, byte)) continue;
        if (trie) {
          if (open[trie][c] == 0) continue;
        } else {
          const auto below = trie_.subtree_tokens(c);
          const auto begin = static_cast<size_t>(below.data() - order.data());
          if (before[begin + below.size()] == before[begin]) continue;
        }
        edges.push_back({byte, trie, c});
      }
    }
    result.nodes[u].has_tokens = !tokens.empty();
    const std::vector<WordBits> words = pack_tokens(std::move(tokens));
    result.words.insert(result.words.end(), words.begin(), words.end());
    result.word_begin.push_back(static_cast<uint32_t>(result.words.size()));
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::tie(a.byte, a.trie, a.node) < std::tie(b.byte, b.trie, b.node);
    });
    result.nodes[u].first_child = static_cast<uint32_t>(result.nodes.size());
    for (size_t i = 0; i < edges.size();) {
      std::vector<std::pair<const RemainderTrie*, uint32_t>> next;
      size_t j = i;
      while (j < edges.size() && edges[j].byte == edges[i].byte) {
        next.push_back({edges[j].trie, edges[j].node});
        ++j;
      }
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
  return std::make_shared<const RemainderTrie>(std::move(result));
}

}  // namespace constrain
