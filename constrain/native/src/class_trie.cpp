#include "constrain/class_trie.hpp"

#include <algorithm>

namespace constrain {
namespace {

constexpr uint32_t kAhead = 12;
constexpr uint32_t kSpecial = 0xFFFFFFFFu;   // the decoder knows what such a byte means

}  // namespace

ClassTrie::ClassTrie(const Trie& trie, const CharacterStepper& stepper, const CharClasses& classes,
                     uint32_t decoder, size_t words)
    : trie_(trie), stepper_(stepper), classes_(classes), decoder_(decoder), row_words_(words) {
  found_.resize(classes_.representatives.size());
  for (uint32_t b = 0; b < 128; ++b) {
    uint32_t at = decoder;
    uint32_t code_point = CharClasses::kNoCodePoint;
    const LexStep step = stepper.decode_byte(at, static_cast<uint8_t>(b), code_point);
    ascii_[b] = step == LexStep::kInside && code_point != CharClasses::kNoCodePoint
                    ? class_of(code_point)
                    : kSpecial;
  }
  const TrieNode& root = trie.node(0);
  heads_.push_back({root.first_child, root.child_count});
  nodes_.push_back({});
  nodes_[0].heads = 1;
}

uint32_t ClassTrie::class_of(uint32_t code_point) const {
  const auto after = std::upper_bound(classes_.starts.begin(), classes_.starts.end(), code_point);
  return classes_.classes[static_cast<size_t>(after - classes_.starts.begin()) - 1];
}

uint32_t ClassTrie::partial_of(uint32_t decoder) {
  const auto known = set_of_decoder_.find(decoder);
  if (known != set_of_decoder_.end()) return known->second;
  CodePointRange ranges[3];
  const size_t count = stepper_.reachable(decoder, ranges);
  std::vector<uint32_t> set;
  for (size_t i = 0; i < count; ++i) {
    const auto after =
        std::upper_bound(classes_.starts.begin(), classes_.starts.end(), ranges[i].low);
    auto at = static_cast<size_t>(after - classes_.starts.begin()) - 1;
    for (; at < classes_.starts.size() && classes_.starts[at] <= ranges[i].high; ++at) {
      set.push_back(classes_.classes[at]);
    }
  }
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  const auto [place, fresh] =
      class_set_index_.try_emplace(set, static_cast<uint32_t>(class_sets_.size()));
  if (fresh) {
    class_sets_.push_back(std::move(set));
    partial_tokens_.emplace_back();
  }
  set_of_decoder_.emplace(decoder, place->second);
  return place->second;
}

ClassTrie::Found& ClassTrie::found(uint32_t char_class) {
  Found& found = found_[char_class];
  if (found.heads.empty() && found.tokens.empty()) seen_.push_back(char_class);
  return found;
}

// A character of this class ends at this vocabulary node.
void ClassTrie::hit(uint32_t char_class, uint32_t n) {
  const TrieNode& node = trie_.node(n);
  Found& to = found(char_class);
  if (node.has_tokens) {
    const auto own = trie_.own_tokens(n);
    to.tokens.insert(to.tokens.end(), own.begin(), own.end());
  }
  if (node.child_count) to.heads.push_back({node.first_child, node.child_count});
}

// The next characters behind one vocabulary node.
void ClassTrie::read(const Head& head) {
  steps_.push_back({head.first, head.first + head.count, decoder_});
  while (!steps_.empty()) {
    Step& step = steps_.back();
    if (step.next == step.end) {
      steps_.pop_back();
      continue;
    }
    const uint32_t n = step.next++;
    const TrieNode& node = trie_.node(n);
    uint32_t decoder = step.decoder;
    if (node.byte < 0x80 && decoder == decoder_ && ascii_[node.byte] != kSpecial) {
      hit(ascii_[node.byte], n);
      continue;
    }
    uint32_t code_point = CharClasses::kNoCodePoint;
    const LexStep result = stepper_.decode_byte(decoder, node.byte, code_point);
    if (result == LexStep::kDead) continue;
    if (result == LexStep::kEnd) {
      const auto below = trie_.subtree_tokens(n);
      ended_.insert(ended_.end(), below.begin(), below.end());
    } else if (code_point != CharClasses::kNoCodePoint) {
      hit(class_of(code_point), n);
    } else {
      if (node.has_tokens) {
        const uint32_t set = partial_of(decoder);
        std::vector<uint32_t>& tokens = partial_tokens_[set];
        if (tokens.empty()) partial_seen_.push_back(set);
        const auto own = trie_.own_tokens(n);
        tokens.insert(tokens.end(), own.begin(), own.end());
      }
      if (node.child_count) {
        steps_.push_back({node.first_child, node.first_child + node.child_count, decoder});
      }
    }
  }
}

ClassTrie::Tokens ClassTrie::keep(const std::vector<uint32_t>& tokens) {
  Tokens result;
  result.count = static_cast<uint32_t>(tokens.size());
  result.dense = tokens.size() > row_words_ / 2;
  if (!result.dense) {
    result.begin = static_cast<uint32_t>(tokens_.size());
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    return result;
  }
  result.begin = static_cast<uint32_t>(rows_.size());
  rows_.resize(rows_.size() + row_words_);
  for (const uint32_t token : tokens) set_bit(rows_.data() + result.begin, token);
  return result;
}

const ClassTrie::Node& ClassTrie::expand(uint32_t n) {
  if (nodes_[n].expanded) return nodes_[n];
  Node node = nodes_[n];
  for (uint32_t i = 0; i < node.heads; ++i) {
    // Heads lie all over the vocabulary: most of the time here is waiting for memory.
    if (i + kAhead < node.heads) trie_.prefetch(heads_[node.first_head + i + kAhead].first);
    read(heads_[node.first_head + i]);
  }
  node.expanded = true;
  node.ended = keep(ended_);
  ended_.clear();
  std::sort(partial_seen_.begin(), partial_seen_.end());
  node.first_partial = static_cast<uint32_t>(partials_.size());
  node.partials = static_cast<uint32_t>(partial_seen_.size());
  for (const uint32_t set : partial_seen_) {
    partials_.push_back({set, keep(partial_tokens_[set])});
    partial_tokens_[set].clear();
  }
  partial_seen_.clear();
  // Each class becomes a node.
  std::sort(seen_.begin(), seen_.end());
  node.first_edge = static_cast<uint32_t>(edges_.size());
  node.edges = static_cast<uint32_t>(seen_.size());
  for (const uint32_t c : seen_) {
    Found& from = found_[c];
    edges_.push_back({c, static_cast<uint32_t>(nodes_.size())});
    Node child;
    child.first_head = static_cast<uint32_t>(heads_.size());
    child.heads = static_cast<uint32_t>(from.heads.size());
    child.inside = keep(from.tokens);
    child.expanded = child.heads == 0;
    nodes_.push_back(child);
    heads_.insert(heads_.end(), from.heads.begin(), from.heads.end());
    from.heads.clear();
    from.tokens.clear();
  }
  seen_.clear();
  nodes_[n] = node;
  return nodes_[n];
}

void ClassTrie::add(const Tokens& tokens, uint32_t* row) const {
  if (tokens.dense) {
    const uint32_t* from = rows_.data() + tokens.begin;
    for (size_t i = 0; i < row_words_; ++i) row[i] |= from[i];
  } else {
    for (uint32_t i = 0; i < tokens.count; ++i) set_bit(row, tokens_[tokens.begin + i]);
  }
}

size_t ClassTrie::bytes() const {
  size_t total = sizeof(*this) + extra_bytes + nodes_.capacity() * sizeof(Node) +
                 heads_.capacity() * sizeof(Head) + edges_.capacity() * sizeof(Edge) +
                 (tokens_.capacity() + rows_.capacity() + ended_.capacity()) * sizeof(uint32_t) +
                 partials_.capacity() * sizeof(Partial) + set_of_decoder_.size() * 48 +
                 (classes_.starts.capacity() + classes_.classes.capacity()) * sizeof(uint32_t);
  for (const auto& set : class_sets_) total += 2 * set.capacity() * sizeof(uint32_t) + 96;
  for (const auto& tokens : partial_tokens_) total += tokens.capacity() * sizeof(uint32_t) + 24;
  for (const Found& found : found_) {
    total += found.heads.capacity() * sizeof(Head) + found.tokens.capacity() * sizeof(uint32_t) + 48;
  }
  return total;
}

}  // namespace constrain
