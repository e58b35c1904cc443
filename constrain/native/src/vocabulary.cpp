#include "constrain/vocabulary.hpp"

#include <algorithm>

#include "constrain/errors.hpp"
#include "constrain/poll.hpp"

namespace constrain {

Vocabulary::Vocabulary(std::string blob, std::vector<uint32_t> offsets,
                       std::vector<uint32_t> eos_ids, uint32_t size, PoolFactory make_pool,
                       size_t max_memory)
    : blob_(std::move(blob)),
      eos_ids_(std::move(eos_ids)),
      size_(size),
      make_pool_(std::move(make_pool)),
      max_memory_(max_memory) {
  if (offsets.empty() || offsets.back() > blob_.size()) throw Error("token offsets do not fit");
  const size_t count = offsets.size() - 1;
  if (size_ < count) {
    throw Error("size " + std::to_string(size_) + " is less than the number of tokens " +
                std::to_string(count));
  }
  std::sort(eos_ids_.begin(), eos_ids_.end());
  eos_ids_.erase(std::unique(eos_ids_.begin(), eos_ids_.end()), eos_ids_.end());
  if (!eos_ids_.empty() && eos_ids_.back() >= size_) {
    throw Error("end-of-sequence id " + std::to_string(eos_ids_.back()) +
                " is not below the vocabulary size " + std::to_string(size_));
  }
  texts_.reserve(count);
  const std::string_view all(blob_);
  for (size_t i = 0; i < count; ++i) {
    if (offsets[i] > offsets[i + 1]) throw Error("token offsets do not ascend");
    texts_.push_back(all.substr(offsets[i], offsets[i + 1] - offsets[i]));
  }
  // An id that ends the sequence is no text, whatever bytes the tokenizer would print for it.
  for (const uint32_t id : eos_ids_) {
    if (id < count) texts_[id] = {};
  }
  eos_words_ = pack_tokens(eos_ids_);
  if (count > size_t{1} << 24) throw Error("more than 2^24 tokens");
  spelled_ = texts_;
  spellings_.reserve(4 * static_cast<size_t>(std::ranges::count_if(
                             texts_, [](std::string_view text) { return text.empty(); })));
  for (uint32_t id = 0; id < count; ++id) {
    if (texts_[id].empty()) {
      const auto spelling = token_spelling(id);
      spelled_[id] = {spellings_.data() + spellings_.size(), spelling.size()};
      spellings_.append(spelling.data(), spelling.size());
    } else if (texts_[id].find(static_cast<char>(kTokenMark)) != std::string_view::npos) {
      spelled_[id] = {};
    }
  }
  trie_ = std::make_unique<Trie>(spelled_);
  shard(0);
}

Shard& Vocabulary::shard(size_t index) {
  if (Shard* made = existing_shard(index)) return *made;
  {
    const std::lock_guard lock(making_);
    if (!shards_[index]) {
      shards_[index] = std::make_unique<Shard>(*trie_, size_, make_pool_, max_memory_);
      made_[index].store(shards_[index].get(), std::memory_order_release);
    }
  }
  if (index != 0) set_max_memory(max_memory_);
  return *existing_shard(index);
}

void Vocabulary::set_max_memory(size_t limit) {
  max_memory_ = limit;
  size_t count = 0;
  for (size_t i = 0; i < kMostShards; ++i) count += existing_shard(i) != nullptr;
  for (size_t i = 0; i < kMostShards; ++i) {
    Shard* shard = existing_shard(i);
    if (!shard) continue;
    lock_or_poll(shard->mutex());
    const std::lock_guard lock(shard->mutex(), std::adopt_lock);
    shard->set_max_memory(limit / count);
  }
}

const Spelling& Vocabulary::spelling() {
  std::call_once(spelled_once_, [this] { spell(); });
  return spelling_;
}

void Vocabulary::spell() {
  spelling_.every_byte = true;
  for (uint32_t byte = 0; byte < 0xF5; ++byte) {
    if (byte == 0xC0 || byte == 0xC1) continue;
    const uint32_t node = trie_->child(0, static_cast<uint8_t>(byte));
    if (node == 0 || trie_->node(node).has_tokens == 0) spelling_.every_byte = false;
  }
  for (const uint32_t token : trie_->order()) {
    // An object cannot begin right behind the bracket of another one.
    uint32_t count = 0;
    char last = 0;
    for (const char c : trie_->text(token)) {
      if (c == '[' || (c == '{' && last != '{')) ++count;
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') last = c;
    }
    spelling_.brackets = std::max(spelling_.brackets, count);
  }
}

bool Vocabulary::is_eos(int64_t token) const {
  if (token < 0 || token >= size_) return false;
  return std::binary_search(eos_ids_.begin(), eos_ids_.end(), static_cast<uint32_t>(token));
}

}  // namespace constrain
