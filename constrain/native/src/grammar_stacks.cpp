#include "constrain/grammar_stacks.hpp"

#include <algorithm>

namespace constrain {
namespace {

constexpr size_t kFirstSlots = 1024;

uint32_t hash_of(std::span<const GrammarStacks::Entry> entries) {
  uint64_t h = 0x9E3779B97F4A7C15ull + entries.size();
  for (const auto& entry : entries) {
    h ^= uint64_t{entry.back} << 32 | entry.below;
    h *= 0xBF58476D1CE4E5B9ull;
    h ^= h >> 29;
  }
  return static_cast<uint32_t>(h ^ h >> 32);
}

}  // namespace

GrammarStacks::GrammarStacks() : slots_(kFirstSlots) { push(kBottom, kBottom); }

GrammarStacks::StackId GrammarStacks::intern(std::span<const Entry> entries) {
  return lookup(entries, hash_of(entries));
}

GrammarStacks::StackId GrammarStacks::lookup(std::span<const Entry> found, uint32_t hash) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != 0) {
    const StackId id = slots_[at] - 1;
    if (nodes_[id].hash == hash && std::ranges::equal(entries(id), found)) return id;
    at = (at + 1) & mask;
  }
  const auto id = static_cast<StackId>(nodes_.size());
  nodes_.push_back({static_cast<uint32_t>(entries_.size()), static_cast<uint32_t>(found.size()),
                    hash});
  united_.push_back(0);
  entries_.insert(entries_.end(), found.begin(), found.end());
  slots_[at] = id + 1;
  if (nodes_.size() * 2 > slots_.size()) rehash(slots_.size() * 2);
  return id;
}

void GrammarStacks::rehash(size_t slots) {
  slots_.assign(slots, 0);
  const size_t mask = slots - 1;
  for (size_t id = 0; id < nodes_.size(); ++id) {
    size_t at = nodes_[id].hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<uint32_t>(id) + 1;
  }
}

// The union of the sets in ids_[from ...], which it takes from there, if it is known or nothing has
// to be united below; else kBottom, and a frame is opened.
GrammarStacks::StackId GrammarStacks::open(size_t from, uint32_t back) {
  const auto merged = static_cast<uint32_t>(merged_.size());
  for (size_t i = from; i < ids_.size(); ++i) {
    const auto more = entries(ids_[i]);
    merged_.insert(merged_.end(), more.begin(), more.end());
  }
  ids_.resize(from);
  std::sort(merged_.begin() + merged, merged_.end());
  merged_.erase(std::unique(merged_.begin() + merged, merged_.end()), merged_.end());
  bool doubles = false;
  for (size_t i = merged + 1; i < merged_.size(); ++i) {
    doubles = doubles || merged_[i].back == merged_[i - 1].back;
  }
  const StackId listed = intern({merged_.data() + merged, merged_.size() - merged});
  if (!doubles || budget_ == 0 || united_[listed] != 0) {
    merged_.resize(merged);
    if (!doubles || united_[listed] == 0) {
      complete_ = complete_ && !doubles;
      return listed;      // without budget: the same stacks, listed under several entries
    }
    return united_[listed];
  }
  const auto end = static_cast<uint32_t>(merged_.size());
  budget_ -= std::min(budget_, end - merged);
  frames_.push_back({back, listed, merged, end, static_cast<uint32_t>(out_.size()), merged});
  return kBottom;
}

GrammarStacks::StackId GrammarStacks::unite(std::span<const StackId> sets) {
  ids_.assign(sets.begin(), sets.end());
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  if (ids_.size() == 1) return ids_[0];
  complete_ = true;
  StackId result = open(0, kBottom);
  while (!frames_.empty()) {
    bool opened = false;
    while (!opened && frames_.back().at < frames_.back().end) {
      Frame& frame = frames_.back();
      const uint32_t first = frame.at, back = merged_[first].back;
      uint32_t last = first + 1;
      while (last < frame.end && merged_[last].back == back) ++last;
      frame.at = last;
      if (last - first == 1) {
        out_.push_back(merged_[first]);
        continue;
      }
      for (uint32_t i = first; i < last; ++i) ids_.push_back(merged_[i].below);
      const StackId below = open(ids_.size() - (last - first), back);
      opened = below == kBottom;
      if (!opened) out_.push_back({back, below});
    }
    if (opened) continue;
    const Frame done = frames_.back();
    frames_.pop_back();
    result = intern({out_.data() + done.out, out_.size() - done.out});
    out_.resize(done.out);
    merged_.resize(done.merged);
    if (complete_) remember(done.listed, result);
    if (!frames_.empty()) out_.push_back({done.back, result});
  }
  return result;
}

void GrammarStacks::remember(StackId listed, StackId united) {
  if (trial_ && listed < trial_nodes_) trial_united_.push_back(listed);
  united_[listed] = united;
}

void GrammarStacks::begin_trial() {
  trial_ = true;
  trial_united_.clear();
  trial_nodes_ = nodes_.size();
  trial_entries_ = entries_.size();
  trial_slots_ = slots_.size();
}

void GrammarStacks::end_trial() {
  if (!trial_) return;
  trial_ = false;
  if (nodes_.size() == trial_nodes_) return;
  if (slots_.size() == trial_slots_) {
    // Later insertions go first, so that no probe sequence is cut.
    for (size_t id = nodes_.size(); id-- > trial_nodes_;) {
      size_t at = nodes_[id].hash & (slots_.size() - 1);
      while (slots_[at] != id + 1) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = 0;
    }
    nodes_.resize(trial_nodes_);
  } else {
    nodes_.resize(trial_nodes_);
    rehash(slots_.size());
  }
  entries_.resize(trial_entries_);
  united_.resize(trial_nodes_);
  for (const StackId id : trial_united_) united_[id] = 0;
  trial_united_.clear();
}

size_t GrammarStacks::bytes() const {
  return entries_.capacity() * sizeof(Entry) + nodes_.capacity() * sizeof(Node) +
         (slots_.capacity() + united_.capacity()) * 4;
}

}  // namespace constrain
