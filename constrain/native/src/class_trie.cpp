#include "constrain/class_trie.hpp"

#include <algorithm>

namespace constrain {

ClassLookup::ClassLookup(const CharClasses& classes) : classes_(classes) {
  for (uint32_t c = 0; c < 128; ++c) {
    find(c);
    ascii_[c] = char_class_;
  }
}

void ClassLookup::find(uint32_t code_point) {
  const auto after = std::upper_bound(classes_.starts.begin(), classes_.starts.end(), code_point);
  const auto at = static_cast<size_t>(after - classes_.starts.begin()) - 1;
  low_ = classes_.starts[at];
  high_ = after == classes_.starts.end() ? 0x110000u : *after;
  char_class_ = classes_.classes[at];
}

ClassTrie::ClassTrie(const CharTrie& chars, const CharacterStepper& stepper,
                     const CharClasses& classes, size_t words)
    : chars_(chars), stepper_(stepper), lookup_(classes), row_words_(words) {
  found_.resize(classes.representatives.size());
  runs_.push_back(CharTrie::kRoot);
  nodes_.push_back({});
  nodes_[0].runs = 1;
}

uint32_t ClassTrie::partial_of(uint32_t decoder) {
  const auto known = set_of_decoder_.find(decoder);
  if (known != set_of_decoder_.end()) return known->second;
  const CharClasses& classes = lookup_.classes();
  CodePointRange ranges[3];
  const size_t count = stepper_.reachable(decoder, ranges);
  std::vector<uint32_t> set;
  for (size_t i = 0; i < count; ++i) {
    const auto after =
        std::upper_bound(classes.starts.begin(), classes.starts.end(), ranges[i].low);
    auto at = static_cast<size_t>(after - classes.starts.begin()) - 1;
    for (; at < classes.starts.size() && classes.starts[at] <= ranges[i].high; ++at) {
      set.push_back(classes.classes[at]);
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

const ClassTrie::Node& ClassTrie::list(uint32_t n) {
  if (nodes_[n].listed) return nodes_[n];
  Node node = nodes_[n];
  node.listed = true;
  list_.clear();
  for (const Run& run : runs(node)) {
    const auto tokens = chars_.tokens(run);
    list_.insert(list_.end(), tokens.begin(), tokens.end());
  }
  node.inside = keep(list_);
  list_.clear();
  for (const Run& run : runs(node)) {
    for (const CharTrie::Odd& odd : chars_.odd(run)) {
      if (odd.decoder == CharTrie::kEnded) {
        list_.push_back(odd.token);
        continue;
      }
      const uint32_t set = partial_of(odd.decoder);
      std::vector<uint32_t>& tokens = partial_tokens_[set];
      if (tokens.empty()) partial_seen_.push_back(set);
      tokens.push_back(odd.token);
    }
  }
  node.ended = keep(list_);
  std::sort(partial_seen_.begin(), partial_seen_.end());
  node.first_partial = static_cast<uint32_t>(partials_.size());
  node.partials = static_cast<uint32_t>(partial_seen_.size());
  for (const uint32_t set : partial_seen_) {
    partials_.push_back({set, keep(partial_tokens_[set])});
    partial_tokens_[set].clear();
  }
  partial_seen_.clear();
  nodes_[n] = node;
  return nodes_[n];
}

const ClassTrie::Node& ClassTrie::expand(uint32_t n) {
  list(n);
  if (nodes_[n].expanded) return nodes_[n];
  Node node = nodes_[n];
  node.expanded = true;
  for (const Run& run : runs(node)) {
    const Run children = chars_.children(run);
    for (uint32_t c = children.first; c != children.last; ++c) {
      const uint32_t char_class = lookup_(chars_.code_point(c));
      std::vector<Run>& found = found_[char_class];
      if (found.empty()) {
        seen_.push_back(char_class);
      } else if (found.back().last == c) {
        ++found.back().last;
        continue;
      }
      found.push_back({c, c + 1});
    }
  }
  // Each class becomes a node.
  std::sort(seen_.begin(), seen_.end());
  node.first_edge = static_cast<uint32_t>(edges_.size());
  node.edges = static_cast<uint32_t>(seen_.size());
  for (const uint32_t c : seen_) {
    edges_.push_back({c, static_cast<uint32_t>(nodes_.size())});
    Node child;
    child.first_run = static_cast<uint32_t>(runs_.size());
    child.runs = static_cast<uint32_t>(found_[c].size());
    nodes_.push_back(child);
    runs_.insert(runs_.end(), found_[c].begin(), found_[c].end());
    found_[c].clear();
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
  const CharClasses& classes = lookup_.classes();
  size_t total = sizeof(*this) + extra_bytes + nodes_.capacity() * sizeof(Node) +
                 runs_.capacity() * sizeof(Run) + edges_.capacity() * sizeof(Edge) +
                 (tokens_.capacity() + rows_.capacity() + list_.capacity()) * sizeof(uint32_t) +
                 partials_.capacity() * sizeof(Partial) + set_of_decoder_.size() * 48 +
                 (classes.starts.capacity() + classes.classes.capacity()) * sizeof(uint32_t);
  for (const auto& set : class_sets_) total += 2 * set.capacity() * sizeof(uint32_t) + 96;
  for (const auto& tokens : partial_tokens_) total += tokens.capacity() * sizeof(uint32_t) + 24;
  for (const auto& found : found_) total += found.capacity() * sizeof(Run) + 24;
  return total;
}

}  // namespace constrain
