#include "constrain/mask.hpp"

#include <algorithm>
#include <string_view>

#include "constrain/poll.hpp"

namespace constrain {
namespace {

// Below this many tokens stepping through them costs less than finding a table, and a table of its
// own would be mostly overhead.
constexpr uint32_t kTableTokens = 32;
// Up to this many children are stepped into without asking which of them are live.
constexpr uint32_t kFewChildren = 3;

class Trial {
 public:
  explicit Trial(Machine& machine) : machine_(machine) { machine_.begin_trial(); }
  ~Trial() { machine_.end_trial(); }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

 private:
  Machine& machine_;
};

}  // namespace

MaskFiller::MaskFiller(const Trie& trie, LexicalTables& tables)
    : trie_(trie), tables_(tables), gaps_(trie, kTableTokens) {
  frames_.resize(trie.depth() + 1);
  configs_.resize(trie.depth() + 1);
  // A remainder is a proper suffix of a token.
  remainder_frames_.resize(trie.depth() + 1);
  remainder_configs_.resize(trie.depth() + 1);
}

const LexicalTable* MaskFiller::fill(Machine& machine, const Config& config, uint32_t* row) {
  const Trial trial(machine);
  start_ = config;
  const LexicalView view = machine.lexical(config);
  const LexicalTable* base = nullptr;
  later_.clear();
  if (view.present && !view.framed) {
    base = &tables_.get(view.cursor, 0);
    base->write_to(row, tables_.words());
    end_unit(machine, config, *base, false, row);
    if (view.exceptional) walk(machine, config, 0, Below::kTable, false, row);
  } else {
    std::fill_n(row, tables_.words(), 0u);
    if (view.split || view.framed) {
      base = add(machine, config, 0, row);
    } else {
      walk(machine, config, 0, Below::kClear, false, row);
    }
  }
  while (!later_.empty()) {
    const Later later = later_.back();
    later_.pop_back();
    add(machine, later.config, later.node, row);
  }
  return base;
}

const LexicalTable* MaskFiller::add(Machine& machine, const Config& config, uint32_t node,
                                    uint32_t* row) {
  const LexicalView view = machine.lexical(config);
  if (view.present) return add_unit(machine, config, view, node, row);
  if (!view.split) {
    walk(machine, config, node, Below::kClear, true, row);
    return nullptr;
  }
  const LexicalTable* base = nullptr;
  std::vector<Config> parts = std::move(parts_);   // tables of frames may come here again
  parts.clear();
  machine.parts(config, parts);
  for (const Config& part : parts) {
    const LexicalView own = machine.lexical(part);
    if (!own.present) {
      walk(machine, part, node, Below::kClear, true, row);
    } else if (const LexicalTable* table = add_unit(machine, part, own, node, row); !base) {
      base = table;
    }
  }
  parts_ = std::move(parts);
  return base;
}

const LexicalTable* MaskFiller::add_unit(Machine& machine, const Config& config,
                                         const LexicalView& view, uint32_t node, uint32_t* row) {
  if (view.framed) {
    const FrameTable& frame = frame_table(machine, config, view, node);
    if (frame.usable) {
      frame.table.add_to(row);
      Config behind = config;
      if (!frame.table.remainders().empty() && machine.leave_frame(behind)) {
        walk_remainders(machine, behind, frame.table.remainders()[0], row);
      }
      return frame.table.dense() ? &frame.table : nullptr;
    }
  }
  const LexicalTable& table = tables_.get(view.cursor, node);
  // What takes bits out again needs a row of its own.
  const bool alone = table.takes_out() || view.exceptional;
  uint32_t* to = row;
  if (alone) {
    scratch_.assign(tables_.words(), 0u);
    to = scratch_.data();
  }
  table.add_to(to);
  end_unit(machine, config, table, !alone, to);
  if (view.exceptional) walk(machine, config, node, Below::kTable, false, to);
  if (alone) {
    for (size_t i = 0; i < tables_.words(); ++i) row[i] |= to[i];
  }
  return table.dense() ? &table : nullptr;
}

void MaskFiller::open(Machine& machine, const Config& config, const TrieNode& node, Below below,
                      Frame& frame) {
  frame.next = node.first_child;
  frame.end = node.first_child + node.child_count;
  frame.below = below;
  frame.filtered = false;
  if (node.child_count > kFewChildren) {
    frame.filtered = below == Below::kTable ? machine.exceptional_bytes(config, frame.live)
                                            : machine.live_bytes(config, frame.live);
  }
}

void MaskFiller::walk(Machine& machine, const Config& config, uint32_t top, Below below,
                      bool shared, uint32_t* row) {
  size_t depth = 0;
  Frame first;
  open(machine, config, trie_.node(top), below, first);
  if (const uint32_t gap = top == 0 && !in_frame_ ? machine.gap(config) : kNoGap; gap != kNoGap) {
    if (!first.filtered) first.live.fill(~uint64_t{0});
    first.filtered = true;
    for (const char blank : std::string_view(" \n\r\t")) {
      remove_byte(first.live, static_cast<uint8_t>(blank));
    }
    walk_gap(machine, config, gap, first, shared, row);
  }
  configs_[0] = config;
  frames_[0] = first;
  while (true) {
    Frame& frame = frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) return;
      --depth;
      continue;
    }
    uint32_t n = frame.next;
    if (frame.filtered) {
      while (n != frame.end && !has_byte(frame.live, trie_.node(n).byte)) ++n;
      frame.next = n;
      if (n == frame.end) continue;
    }
    ++frame.next;
    const TrieNode& node = trie_.node(n);
    Below next_below = frame.below;
    Config& next = configs_[depth + 1];
    next = configs_[depth];
    poll_sometimes(steps_);
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
      if (in_frame_ && node.child_count != 0 && machine.accepts(next)) exits_.push_back({nullptr, n});
      if (!enter(machine, next, n, shared, next_below, row)) continue;
    }
    if (node.has_tokens) {
      for (const uint32_t token : trie_.own_tokens(n)) set_bit(row, token);
    }
    if (node.child_count) {
      ++depth;
      open(machine, next, node, next_below, frames_[depth]);
    }
  }
}

bool MaskFiller::enter(Machine& machine, const Config& config, uint32_t node, bool shared,
                       Below& below, uint32_t* row) {
  if (trie_.subtree_size(node) < kTableTokens) return true;
  const LexicalView view = machine.lexical(config);
  if (view.split || view.framed || (shared && view.exceptional)) {
    for (const uint32_t token : trie_.own_tokens(node)) set_bit(row, token);
    later_.push_back({config, node});
    return false;
  }
  if (!view.present) return true;
  const LexicalTable& table = tables_.get(view.cursor, node);
  if (shared && table.takes_out()) {
    later_.push_back({config, node});
    return false;
  }
  table.add_to(row);
  end_unit(machine, config, table, shared, row);
  below = Below::kTable;
  return view.exceptional;
}

void MaskFiller::walk_gap(Machine& machine, const Config& config, uint32_t gap, const Frame& top,
                          bool shared, uint32_t* row) {
  const GapTable& table = gaps_.get(gap);
  or_words(row, table.blanks);
  walk_remainders(machine, config, table.rest, row);
  Config behind;
  for (size_t i = 0; i < table.large.size(); ++i) {
    const auto [byte, node] = table.large[i];
    if (!has_byte(top.live, byte)) continue;
    if (i == 0 || table.large[i - 1].byte != byte) {
      behind = config;
      ++steps_;
      if (!machine.step(behind, byte)) {
        while (i + 1 < table.large.size() && table.large[i + 1].byte == byte) ++i;
        continue;
      }
    }
    Below below = Below::kClear;
    if (!enter(machine, behind, node, shared, below, row)) continue;
    for (const uint32_t token : trie_.own_tokens(node)) set_bit(row, token);
    walk(machine, behind, node, below, shared, row);
  }
}

void MaskFiller::end_unit(Machine& machine, const Config& config, const LexicalTable& table,
                          bool shared, uint32_t* row) {
  leap(machine, config, table);
  for (const LexicalTable::Detour& detour : table.detours()) {
    Config at = config;
    bool alive = true;
    for (const char c : detour.path) alive = alive && machine.step(at, static_cast<uint8_t>(c));
    steps_ += detour.path.size() + 1;
    if (!alive || !machine.step(at, trie_.node(detour.node).byte)) continue;
    for (const uint32_t token : trie_.own_tokens(detour.node)) set_bit(row, token);
    later_.push_back({at, detour.node});
  }
  if (Config behind = config; table.gap_behind() && machine.leave(behind, 0)) {
    walk(machine, behind, 0, Below::kClear, shared, row);
  }
  for (const Remainders& remainders : table.remainders()) {
    Config behind = config;
    poll_sometimes(steps_);
    const bool alive = machine.leave(behind, remainders.outcome);
    const bool unsure = machine.unsure(behind);
    if (table.merged() && (!alive || unsure)) remainders.clear_tokens(0, row);
    if (unsure) {
      try_tokens(machine, remainders, 0, row);
    } else if (alive) {
      if (!table.merged()) remainders.add_tokens(0, row);
      walk_remainders(machine, behind, remainders, row);
    }
  }
}

void MaskFiller::leap(Machine& machine, const Config& config, const LexicalTable& table) {
  for (const Leap& leap : table.leaps()) {
    Config behind = config;
    if (!machine.leave(behind, leap.outcome)) continue;
    if (in_frame_ && machine.accepts(behind)) exits_.push_back({nullptr, leap.node});
    later_.push_back({behind, leap.node});
  }
}

void MaskFiller::walk_remainders(Machine& machine, const Config& config,
                                 const Remainders& remainders, uint32_t* row) {
  const RemainderTrie& trie = *remainders.trie;
  size_t depth = 0;
  if (in_frame_ && machine.accepts(config)) exits_.push_back({remainders.trie, 0});
  remainder_configs_[0] = config;
  open(machine, config, trie.nodes[0], Below::kClear, remainder_frames_[0]);
  while (true) {
    Frame& frame = remainder_frames_[depth];
    if (frame.next == frame.end) {
      if (depth == 0) return;
      --depth;
      continue;
    }
    uint32_t n = frame.next;
    if (frame.filtered) {
      while (n != frame.end && !has_byte(frame.live, trie.nodes[n].byte)) ++n;
      frame.next = n;
      if (n == frame.end) continue;
    }
    ++frame.next;
    const TrieNode& node = trie.nodes[n];
    if (!remainders.any_below(n)) continue;
    Config& next = remainder_configs_[depth + 1];
    next = remainder_configs_[depth];
    poll_sometimes(steps_);
    const bool alive = machine.step(next, node.byte);
    if (machine.unsure(next)) {
      try_tokens(machine, remainders, n, row);
      continue;
    }
    if (!alive) continue;
    if (node.has_tokens) remainders.add_tokens(n, row);
    if (node.child_count) {
      if (in_frame_ && machine.accepts(next)) exits_.push_back({remainders.trie, n});
      ++depth;
      open(machine, next, node, Below::kClear, remainder_frames_[depth]);
    }
  }
}

void MaskFiller::try_tokens(Machine& machine, const Remainders& remainders, uint32_t node,
                            uint32_t* row) {
  frame_usable_ = false;      // what comes now is about the text from its start
  pending_.assign(1, node);
  while (!pending_.empty()) {
    const uint32_t n = pending_.back();
    pending_.pop_back();
    if (!remainders.any_below(n)) continue;
    const TrieNode& at = remainders.trie->nodes[n];
    for (uint32_t c = 0; c < at.child_count; ++c) pending_.push_back(at.first_child + c);
    remainders.for_each_token(n, [&](uint32_t token) {
      Config config = start_;
      bool alive = true;
      for (const char c : trie_.text(token)) {
        poll_sometimes(steps_);
        if (!(alive = machine.step(config, static_cast<uint8_t>(c)))) break;
      }
      ++tried_;
      if (alive) set_bit(row, token);
    });
  }
}

}  // namespace constrain
