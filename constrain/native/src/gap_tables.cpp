#include "constrain/gap_tables.hpp"

#include <algorithm>

#include "constrain/json_superset.hpp"

namespace constrain {

size_t GapTable::bytes() const {
  return sizeof(*this) + 64 + blanks.capacity() * sizeof(WordBits) +
         large.capacity() * sizeof(Behind) + rest.bytes() + rest.trie->bytes();
}

const GapTable& GapTables::get(uint32_t gap) {
  std::unique_ptr<const GapTable>& slot = tables_[gap];
  if (slot) return *slot;
  auto table = std::make_unique<GapTable>();
  std::vector<uint32_t> tokens, small;
  std::vector<std::pair<uint32_t, uint32_t>> open{{0, gap}};   // node, gap there
  while (!open.empty()) {
    const auto [at, so_far] = open.back();
    open.pop_back();
    const TrieNode& node = trie_.node(at);
    for (uint32_t n = node.first_child; n < node.first_child + node.child_count; ++n) {
      const uint8_t byte = trie_.node(n).byte;
      uint32_t next = so_far;
      if (is_blank(byte)) {
        if (!step_gap(next, byte)) continue;
        for (const uint32_t token : trie_.own_tokens(n)) tokens.push_back(token);
        open.push_back({n, next});
      } else if (at != 0 && JsonSuperset::step(JsonSuperset::kBehindGap, byte) !=
                                JsonSuperset::kDead) {
        if (trie_.subtree_size(n) >= large_) {
          table->large.push_back({byte, n});
        } else {
          small.push_back(n);
        }
      }
    }
  }
  std::sort(table->large.begin(), table->large.end(), [](const auto& a, const auto& b) {
    return std::pair(a.byte, a.node) < std::pair(b.byte, b.node);
  });
  table->large.shrink_to_fit();
  table->blanks = pack_tokens(std::move(tokens));
  table->rest.trie = std::make_shared<const RemainderTrie>(
      unite_remainders(trie_, {}, small, JsonSuperset::kBehindGap));
  bytes_ += table->bytes();
  slot = std::move(table);
  return *slot;
}

}  // namespace constrain
