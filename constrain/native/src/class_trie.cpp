#include "constrain/class_trie.hpp"

#include <algorithm>

namespace constrain {
namespace {

constexpr uint32_t kSpecial = 0xFFFFFFFFu;   // the decoder knows what such a byte means

}  // namespace

ClassTrie::ClassTrie(const Trie& trie, const CharacterStepper& stepper, const CharClasses& classes,
                     uint32_t decoder, size_t words)
    : trie_(trie), stepper_(stepper), classes_(classes), decoder_(decoder), row_words_(words) {
  counts_.resize(classes_.representatives.size());
  row_.resize(words);
  for (uint32_t b = 0; b < 128; ++b) {
    uint32_t at = decoder;
    uint32_t code_point = CharClasses::kNoCodePoint;
    const LexStep step = stepper.decode_byte(at, static_cast<uint8_t>(b), code_point);
    ascii_[b] = step == LexStep::kInside && code_point != CharClasses::kNoCodePoint
                    ? class_of(code_point)
                    : kSpecial;
  }
  heads_.push_back(0);
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
  if (fresh) class_sets_.push_back(std::move(set));
  set_of_decoder_.emplace(decoder, place->second);
  return place->second;
}

// The next characters behind one vocabulary node.
void ClassTrie::read(uint32_t head) {
  const TrieNode& top = trie_.node(head);
  if (top.has_tokens) {
    const auto own = trie_.own_tokens(head);
    inside_.insert(inside_.end(), own.begin(), own.end());
  }
  steps_.assign(1, {top.first_child, top.first_child + top.child_count, decoder_});
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
      hits_.push_back({ascii_[node.byte], n});
      continue;
    }
    uint32_t code_point = CharClasses::kNoCodePoint;
    const LexStep result = stepper_.decode_byte(decoder, node.byte, code_point);
    if (result == LexStep::kDead) continue;
    if (result == LexStep::kEnd) {
      const auto below = trie_.subtree_tokens(n);
      ended_.insert(ended_.end(), below.begin(), below.end());
    } else if (code_point != CharClasses::kNoCodePoint) {
      hits_.push_back({class_of(code_point), n});
    } else {
      if (node.has_tokens) {
        std::vector<uint32_t>& tokens = partial_tokens_[partial_of(decoder)];
        const auto own = trie_.own_tokens(n);
        tokens.insert(tokens.end(), own.begin(), own.end());
      }
      if (node.child_count) {
        steps_.push_back({node.first_child, node.first_child + node.child_count, decoder});
      }
    }
  }
}

ClassTrie::Tokens ClassTrie::pack(std::vector<uint32_t>& tokens) {
  Tokens result;
  if (tokens.size() > row_words_ / 3) {
    std::fill(row_.begin(), row_.end(), 0u);
    for (const uint32_t token : tokens) set_bit(row_.data(), token);
    const auto used = static_cast<size_t>(
        std::count_if(row_.begin(), row_.end(), [](uint32_t w) { return w != 0; }));
    result.dense = used > row_words_ / 3;
    if (result.dense) {
      result.begin = static_cast<uint32_t>(rows_.size());
      result.count = static_cast<uint32_t>(row_words_);
      rows_.insert(rows_.end(), row_.begin(), row_.end());
      return result;
    }
  }
  std::sort(tokens.begin(), tokens.end());
  result.begin = static_cast<uint32_t>(words_.size());
  for (const uint32_t token : tokens) {
    if (words_.size() == result.begin || words_.back().word != token >> 5) {
      words_.push_back({token >> 5, 0});
    }
    words_.back().bits |= 1u << (token & 31);
  }
  result.count = static_cast<uint32_t>(words_.size()) - result.begin;
  return result;
}

const ClassTrie::Node& ClassTrie::expand(uint32_t n) {
  if (nodes_[n].expanded) return nodes_[n];
  hits_.clear();
  inside_.clear();
  ended_.clear();
  partial_tokens_.clear();
  Node node = nodes_[n];
  for (uint32_t i = 0; i < node.heads; ++i) read(heads_[node.first_head + i]);
  node.expanded = true;
  node.inside = pack(inside_);
  node.ended = pack(ended_);
  node.first_partial = static_cast<uint32_t>(partials_.size());
  node.partials = static_cast<uint32_t>(partial_tokens_.size());
  for (auto& [set, tokens] : partial_tokens_) partials_.push_back({set, pack(tokens)});

  // The hits by class; each class becomes a node.
  seen_.clear();
  for (const Hit& hit : hits_) {
    if (counts_[hit.char_class]++ == 0) seen_.push_back(hit.char_class);
  }
  std::sort(seen_.begin(), seen_.end());
  node.first_edge = static_cast<uint32_t>(edges_.size());
  node.edges = static_cast<uint32_t>(seen_.size());
  auto place = static_cast<uint32_t>(heads_.size());
  heads_.resize(heads_.size() + hits_.size());
  for (const uint32_t c : seen_) {
    edges_.push_back({c, static_cast<uint32_t>(nodes_.size())});
    Node child;
    child.first_head = place;
    child.heads = counts_[c];
    nodes_.push_back(child);
    counts_[c] = place;
    place += child.heads;
  }
  for (const Hit& hit : hits_) heads_[counts_[hit.char_class]++] = hit.node;
  for (const uint32_t c : seen_) counts_[c] = 0;
  nodes_[n] = node;
  return nodes_[n];
}

void ClassTrie::add(const Tokens& tokens, uint32_t* row) const {
  if (tokens.dense) {
    const uint32_t* from = rows_.data() + tokens.begin;
    for (size_t i = 0; i < row_words_; ++i) row[i] |= from[i];
  } else {
    or_words(row, {words_.data() + tokens.begin, tokens.count});
  }
}

size_t ClassTrie::bytes() const {
  size_t total = sizeof(*this) + nodes_.capacity() * sizeof(Node) +
                 (heads_.capacity() + rows_.capacity() + row_.capacity()) * sizeof(uint32_t) +
                 edges_.capacity() * sizeof(Edge) + partials_.capacity() * sizeof(Partial) +
                 words_.capacity() * sizeof(WordBits) +
                 (classes_.starts.capacity() + classes_.classes.capacity()) * sizeof(uint32_t) +
                 hits_.capacity() * sizeof(Hit) +
                 (inside_.capacity() + ended_.capacity()) * sizeof(uint32_t) +
                 set_of_decoder_.size() * 48;
  for (const auto& set : class_sets_) total += 2 * set.capacity() * sizeof(uint32_t) + 96;
  return total;
}

}  // namespace constrain
