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

GrammarStacks::GrammarStacks() : slots_(kFirstSlots), memo_(1024) { push(kBottom, kBottom); }

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

void GrammarStacks::open(StackId a, StackId b) {
  Frame frame;
  frame.merged = static_cast<uint32_t>(merged_.size());
  const auto left = entries(a), right = entries(b);
  std::ranges::set_union(left, right, std::back_inserter(merged_));
  frame.end = static_cast<uint32_t>(merged_.size());
  frame.at = frame.merged;
  frame.out = static_cast<uint32_t>(out_.size());
  frames_.push_back(frame);
  pairs_.push_back({a, b});
}

GrammarStacks::StackId GrammarStacks::unite(StackId a, StackId b) {
  if (a == b) return a;
  open(std::min(a, b), std::max(a, b));
  while (true) {
    Frame& frame = frames_.back();
    bool opened = false;
    while (frame.at < frame.end && !opened) {
      const Entry entry = merged_[frame.at];
      const bool more = out_.size() > frame.out && out_.back().back == entry.back &&
                        entry.back != kBottom;
      if (!more) {
        out_.push_back(entry);
        ++frame.at;
        continue;
      }
      const StackId x = std::min(out_.back().below, entry.below);
      const StackId y = std::max(out_.back().below, entry.below);
      const Memo& known = memo(x, y);
      if (x == y) {
        ++frame.at;
      } else if (known.result != 0 && known.a == x && known.b == y) {
        out_.back().below = known.result;
        ++frame.at;
      } else if (budget_ == 0) {
        out_.push_back(entry);            // not united: the same stacks, listed twice
        ++frame.at;
      } else {
        --budget_;
        opened = true;
        ++frame.at;
        open(x, y);
      }
    }
    if (opened) continue;
    const Frame done = frames_.back();
    const auto [x, y] = pairs_.back();
    frames_.pop_back();
    pairs_.pop_back();
    if (out_.size() - done.out > 1) {
      std::sort(out_.begin() + done.out, out_.end());
      out_.erase(std::unique(out_.begin() + done.out, out_.end()), out_.end());
    }
    const StackId result = intern({out_.data() + done.out, out_.size() - done.out});
    out_.resize(done.out);
    merged_.resize(done.merged);
    memo(x, y) = {x, y, result};
    memo_used_ = true;
    if (frames_.empty()) return result;
    out_.back().below = result;
  }
}

void GrammarStacks::begin_trial() {
  trial_ = true;
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
  if (memo_used_) std::fill(memo_.begin(), memo_.end(), Memo{});
  memo_used_ = false;
}

size_t GrammarStacks::bytes() const {
  return entries_.capacity() * sizeof(Entry) + nodes_.capacity() * sizeof(Node) +
         slots_.capacity() * 4 + memo_.size() * sizeof(Memo);
}

}  // namespace constrain
