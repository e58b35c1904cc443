#include "constrain/char_trie.hpp"

#include <algorithm>

namespace constrain {
namespace {

// Siblings of the vocabulary's trie, to be read with a decoder that may be inside a character.
struct Step {
  uint32_t next, end, decoder;
};

// A character that was read, and the trie node at which it is complete.
struct Hit {
  uint32_t code_point, node, decoder;
};

}  // namespace

CharTrie::CharTrie(const Trie& trie, const CharacterStepper& stepper, uint32_t decoder) {
  // Most bytes below 0x80 are characters of their own.
  uint32_t ascii[128], behind[128];
  for (uint32_t b = 0; b < 128; ++b) {
    uint32_t at = decoder;
    ascii[b] = CharClasses::kNoCodePoint;
    if (stepper.decode_byte(at, static_cast<uint8_t>(b), ascii[b]) != LexStep::kInside) {
      ascii[b] = CharClasses::kNoCodePoint;
    }
    behind[b] = at;
  }
  code_points_.reserve(trie.node_count());
  first_child_.reserve(trie.node_count());
  first_token_.reserve(trie.node_count());
  first_odd_.reserve(trie.node_count());
  tokens_.reserve(trie.order().size());
  // The trie nodes behind each node: several where a character has several spellings.
  std::vector<uint32_t> heads{0}, first_head{0, 1};
  // The decoder at each node: it knows of the characters that may begin the end of the unit.
  std::vector<uint32_t> decoders{decoder};
  code_points_.push_back(0);
  std::vector<Step> steps;
  std::vector<Hit> hits;
  for (uint32_t n = 0; n < code_points_.size(); ++n) {
    first_token_.push_back(static_cast<uint32_t>(tokens_.size()));
    first_odd_.push_back(static_cast<uint32_t>(odd_.size()));
    first_child_.push_back(static_cast<uint32_t>(code_points_.size()));
    hits.clear();
    for (uint32_t h = first_head[n]; h < first_head[n + 1]; ++h) {
      const TrieNode& head = trie.node(heads[h]);
      if (n != 0 && head.has_tokens) {
        const auto own = trie.own_tokens(heads[h]);
        tokens_.insert(tokens_.end(), own.begin(), own.end());
      }
      steps.push_back({head.first_child, head.first_child + head.child_count, decoders[n]});
      while (!steps.empty()) {
        Step& step = steps.back();
        if (step.next == step.end) {
          steps.pop_back();
          continue;
        }
        const uint32_t at = step.next++;
        const TrieNode& node = trie.node(at);
        if (node.byte < 0x80 && step.decoder == decoder &&
            ascii[node.byte] != CharClasses::kNoCodePoint) {
          hits.push_back({ascii[node.byte], at, behind[node.byte]});
          continue;
        }
        uint32_t within = step.decoder, code_point = CharClasses::kNoCodePoint;
        const LexStep result = stepper.decode_byte(within, node.byte, code_point);
        if (result == LexStep::kDead) continue;
        if (result == LexStep::kEnd) {
          ends_.push_back(at);
          for (const uint32_t token : trie.subtree_tokens(at)) odd_.push_back({token, kEnded});
        } else if (code_point != CharClasses::kNoCodePoint) {
          hits.push_back({code_point, at, within});
        } else {
          if (node.has_tokens) {
            for (const uint32_t token : trie.own_tokens(at)) odd_.push_back({token, within});
          }
          if (node.child_count) {
            steps.push_back({node.first_child, node.first_child + node.child_count, within});
          }
        }
      }
    }
    const auto before = [](const Hit& a, const Hit& b) { return a.code_point < b.code_point; };
    if (!std::is_sorted(hits.begin(), hits.end(), before)) {
      std::stable_sort(hits.begin(), hits.end(), before);
    }
    for (size_t i = 0; i < hits.size(); ++i) {
      if (i == 0 || hits[i].code_point != hits[i - 1].code_point) {
        code_points_.push_back(hits[i].code_point);
        decoders.push_back(hits[i].decoder);
        first_head.push_back(first_head.back());
      }
      heads.push_back(hits[i].node);
      ++first_head.back();
    }
  }
  first_token_.push_back(static_cast<uint32_t>(tokens_.size()));
  first_odd_.push_back(static_cast<uint32_t>(odd_.size()));
  first_child_.push_back(static_cast<uint32_t>(code_points_.size()));
  code_points_.shrink_to_fit();
  first_child_.shrink_to_fit();
  first_token_.shrink_to_fit();
  first_odd_.shrink_to_fit();
  std::sort(ends_.begin(), ends_.end());
}

size_t CharTrie::bytes() const {
  return sizeof(*this) + odd_.capacity() * sizeof(Odd) +
         (code_points_.capacity() + first_child_.capacity() + first_token_.capacity() +
          first_odd_.capacity() + tokens_.capacity() + ends_.capacity()) *
             sizeof(uint32_t);
}

}  // namespace constrain
