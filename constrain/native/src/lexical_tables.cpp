#include "constrain/lexical_tables.hpp"

#include <algorithm>

#include "constrain/json_superset.hpp"

namespace constrain {

size_t RemainderTrie::bytes() const {
  return nodes.capacity() * sizeof(TrieNode) + word_begin.capacity() * sizeof(uint32_t) +
         words.capacity() * sizeof(WordBits) + sizeof(*this);
}

void LexicalTable::add_to(uint32_t* row) const {
  for (size_t i = 0; i < dense_.size(); ++i) row[i] |= dense_[i];
  or_words(row, sparse_);
}

void LexicalTable::write_to(uint32_t* row, size_t words) const {
  if (!dense_.empty()) {
    copy_row(row, dense_.data(), words);
    return;
  }
  std::fill_n(row, words, 0u);
  for (const WordBits& w : sparse_) row[w.word] = w.bits;
}

LexicalTables::LexicalTables(const Trie& trie, LexicalStepper& stepper, uint32_t size,
                             size_t max_bytes)
    : trie_(trie), stepper_(stepper), words_(row_words(size)), max_bytes_(max_bytes) {
  frames_.resize(trie.depth() + 1);
  cursors_.resize(trie.depth() + 1);
  row_.resize(words_);
}

const LexicalTable* LexicalTables::find(const LexCursor& cursor, uint32_t node) const {
  const auto it = tables_.find({cursor, node});
  return it == tables_.end() ? nullptr : it->second.get();
}

const LexicalTable& LexicalTables::get(const LexCursor& cursor, uint32_t node) {
  auto& slot = tables_[{cursor, node}];
  if (!slot) {
    slot = build(cursor, node);
    bytes_ += slot->bytes_;
  }
  slot->last_used_ = ++tick_;
  return *slot;
}

void LexicalTables::trim() {
  if (bytes_ <= max_bytes_) return;
  std::vector<std::pair<uint64_t, Key>> by_age;
  by_age.reserve(tables_.size());
  for (const auto& [key, table] : tables_) by_age.push_back({table->last_used_, key});
  std::sort(by_age.begin(), by_age.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [age, key] : by_age) {
    if (bytes_ <= max_bytes_ / 2) break;
    const auto it = tables_.find(key);
    bytes_ -= it->second->bytes_;
    tables_.erase(it);
  }
  ++generation_;
}

std::unique_ptr<LexicalTable> LexicalTables::build(const LexCursor& cursor, uint32_t root) {
  auto table = std::make_unique<LexicalTable>();
  std::fill(row_.begin(), row_.end(), 0u);
  ends_.clear();
  ++built_;
  auto add_own = [&](uint32_t n) {
    for (const uint32_t token : trie_.own_tokens(n)) set_bit(row_.data(), token);
  };
  if (trie_.node(root).has_tokens) add_own(root);
  size_t depth = 0;
  const TrieNode& top = trie_.node(root);
  frames_[0] = {top.first_child, top.first_child + top.child_count};
  cursors_[0] = cursor;
  while (true) {
    Frame& frame = frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) break;
      --depth;
      continue;
    }
    const uint32_t n = frame.next++;
    const TrieNode& node = trie_.node(n);
    LexCursor next = cursors_[depth];
    uint32_t outcome = 0;
    ++steps_;
    switch (stepper_.step(next, node.byte, outcome)) {
      case LexStep::kDead:
        break;
      case LexStep::kEnd:
        ends_.push_back({outcome, n});
        break;
      case LexStep::kInside:
        if (node.has_tokens) add_own(n);
        if (node.child_count) {
          ++depth;
          frames_[depth] = {node.first_child, node.first_child + node.child_count};
          cursors_[depth] = next;
        }
        break;
    }
  }

  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return a.outcome < b.outcome; });
  for (size_t i = 0; i < ends_.size();) {
    size_t j = i;
    while (j < ends_.size() && ends_[j].outcome == ends_[i].outcome) ++j;
    table->remainders_.push_back(
        build_remainders(ends_[i].outcome, {ends_.data() + i, j - i}));
    i = j;
  }
  if (table->remainders_.size() == 1) {
    table->merged_ = true;
    or_words(row_.data(), table->remainders_[0].tokens(0));
  }

  const auto used = static_cast<size_t>(
      std::count_if(row_.begin(), row_.end(), [](uint32_t w) { return w != 0; }));
  // A word in a sparse row takes twice the space and more than twice the time.
  if (used > words_ / 3) {
    table->dense_ = row_;
  } else {
    table->sparse_.reserve(used);
    for (uint32_t i = 0; i < words_; ++i) {
      if (row_[i]) table->sparse_.push_back({i, row_[i]});
    }
  }
  table->bytes_ = sizeof(LexicalTable) + 64 + table->dense_.capacity() * sizeof(uint32_t) +
                  table->sparse_.capacity() * sizeof(WordBits);
  for (const RemainderTrie& r : table->remainders_) table->bytes_ += r.bytes();
  return table;
}

RemainderTrie LexicalTables::build_remainders(uint32_t outcome, std::span<const End> ends) const {
  // Unites the subtrees below the nodes where the unit ends.  A node of the union is a set of trie
  // nodes; sets are small except near the top.
  struct Union {
    std::vector<uint32_t> nodes;
    uint8_t state;
    uint32_t depth;
  };
  RemainderTrie result;
  result.outcome = outcome;
  std::vector<Union> unions(1);
  unions[0].state = JsonSuperset::kAfterString;
  unions[0].depth = 0;
  for (const End& end : ends) unions[0].nodes.push_back(end.node);
  result.nodes.push_back({});
  std::vector<std::vector<WordBits>> packed;
  std::vector<std::pair<uint8_t, uint32_t>> edges;
  for (size_t u = 0; u < unions.size(); ++u) {
    const Union current = std::move(unions[u]);
    result.depth = std::max(result.depth, current.depth);
    std::vector<uint32_t> tokens;
    edges.clear();
    for (const uint32_t n : current.nodes) {
      for (const uint32_t token : trie_.own_tokens(n)) tokens.push_back(token);
      const TrieNode& node = trie_.node(n);
      for (uint32_t c = node.first_child; c < node.first_child + node.child_count; ++c) {
        edges.push_back({trie_.node(c).byte, c});
      }
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
      next.depth = current.depth + 1;
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
