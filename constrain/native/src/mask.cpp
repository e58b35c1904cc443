#include "constrain/mask.hpp"

#include <algorithm>

namespace constrain {
namespace {

// Below this many tokens stepping through them costs less than finding a table, and a table of its
// own would be mostly overhead.
constexpr uint32_t kTableTokens = 32;

}  // namespace

MaskFiller::MaskFiller(const Trie& trie, LexicalTables& tables) : trie_(trie), tables_(tables) {
  frames_.resize(trie.depth() + 1);
  configs_.resize(trie.depth() + 1);
  // A remainder is a proper suffix of a token.
  remainder_frames_.resize(trie.depth() + 1);
  remainder_configs_.resize(trie.depth() + 1);
}

const LexicalTable* MaskFiller::fill(Machine& machine, const Config& config, uint32_t* row) {
  const LexicalView view = machine.lexical(config);
  if (!view.present) {
    std::fill_n(row, tables_.words(), 0u);
    walk(machine, config, 0, Below::kClear, row);
    return nullptr;
  }
  const LexicalTable& table = tables_.get(view.cursor, 0);
  table.write_to(row, tables_.words());
  end_unit(machine, config, table, row);
  if (view.exceptional) walk(machine, config, 0, Below::kTable, row);
  return &table;
}

void MaskFiller::walk(Machine& machine, const Config& config, uint32_t top, Below below,
                      uint32_t* row) {
  size_t depth = 0;
  const TrieNode& root = trie_.node(top);
  frames_[0] = {root.first_child, root.first_child + root.child_count, below};
  configs_[0] = config;
  while (true) {
    Frame& frame = frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) return;
      --depth;
      continue;
    }
    const uint32_t n = frame.next++;
    const TrieNode& node = trie_.node(n);
    Below next_below = frame.below;
    Config& next = configs_[depth + 1];
    next = configs_[depth];
    ++steps_;
    const bool alive = machine.step(next, node.byte);
    if (next_below == Below::kTable) {
      LexicalView view;
      if (alive) view = machine.lexical(next);
      if (view.present && !view.exceptional) continue;
      if (!view.present) {
        for (const uint32_t token : trie_.subtree_tokens(n)) clear_bit(row, token);
        next_below = Below::kClear;
      }
      if (!alive) continue;
    } else {
      if (!alive) continue;
      if (trie_.subtree_size(n) >= kTableTokens) {
        const LexicalView view = machine.lexical(next);
        if (view.present) {
          const LexicalTable& table = tables_.get(view.cursor, n);
          table.add_to(row);
          end_unit(machine, next, table, row);
          if (!view.exceptional) continue;
          next_below = Below::kTable;
        }
      }
    }
    if (node.has_tokens) {
      for (const uint32_t token : trie_.own_tokens(n)) set_bit(row, token);
    }
    if (node.child_count) {
      ++depth;
      frames_[depth] = {node.first_child, node.first_child + node.child_count, next_below};
    }
  }
}

void MaskFiller::end_unit(Machine& machine, const Config& config, const LexicalTable& table,
                          uint32_t* row) {
  for (const RemainderTrie& trie : table.remainders()) {
    Config behind = config;
    ++steps_;
    if (!machine.leave(behind, trie.outcome)) {
      if (table.merged()) clear_words(row, trie.tokens(0));
      continue;
    }
    if (!table.merged()) or_words(row, trie.tokens(0));
    walk_remainders(machine, behind, trie, row);
  }
}

void MaskFiller::walk_remainders(Machine& machine, const Config& config, const RemainderTrie& trie,
                                 uint32_t* row) {
  size_t depth = 0;
  const TrieNode& root = trie.nodes[0];
  remainder_frames_[0] = {root.first_child, root.first_child + root.child_count, Below::kClear};
  remainder_configs_[0] = config;
  while (true) {
    Frame& frame = remainder_frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) return;
      --depth;
      continue;
    }
    const uint32_t n = frame.next++;
    const TrieNode& node = trie.nodes[n];
    Config& next = remainder_configs_[depth + 1];
    next = remainder_configs_[depth];
    ++steps_;
    if (!machine.step(next, node.byte)) continue;
    if (node.has_tokens) or_words(row, trie.tokens(n));
    if (node.child_count) {
      ++depth;
      remainder_frames_[depth] = {node.first_child, node.first_child + node.child_count,
                                  Below::kClear};
    }
  }
}

}  // namespace constrain
