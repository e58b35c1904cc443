// Which tokens of a mask stay within a budget.
#include <algorithm>

#include "constrain/bits.hpp"
#include "constrain/budget.hpp"
#include "constrain/trie_walk.hpp"

namespace constrain {
namespace {

constexpr uint32_t kUnitTokens = 32;            // below this many tokens a unit is walked
constexpr size_t kGroupTokens = size_t{1} << 22;   // in all groups that are kept
constexpr uint32_t kClose = 2;
// What one mask may spend where tokens are not grouped.
constexpr size_t kCompletions = 60, kReads = 15'000, kSteps = 100'000;
constexpr uint64_t kEffort = 4000;   // steps of the machine's searches

}  // namespace

void Budget::keep(StateId state, uint32_t left, uint32_t* row) {
  if (at(state).worst <= left) return;
  start_ = states_.config(state);
  left_ = left;
  most_ = 0;
  dropped_ = false;
  completions_ = kCompletions;
  reads_ = kReads;
  steps_ = walked_ + kSteps;
  effort_ = machine_.effort() + kEffort;
  row_ = row;
  before_.assign(row, row + tables_.words());
  const LexicalView view = machine_.lexical(start_);
  if (!in_unit(view) || trie_.node_count() <= kSmallTrie) {
    keep_walk(start_, 0);
  } else {
    keep_unit(start_, view, 0);
  }
  if (need(state) != 0 && ways_[state].need <= left + 1) {
    settle(state);
    set_bit(row, ways_[state].token);
    note(ways_[state].need - 1);
  }
  if (!dropped_) at(state).worst = most_;
}

bool Budget::ends(const Config& from, const Tail& tail) {
  Config config = from;
  for (const char c : tail.text) {
    if (reads_ > 0) --reads_;
    if (!machine_.step(config, static_cast<uint8_t>(c))) return false;
  }
  return machine_.accepts(config) && !machine_.unsure(config);
}

Budget::Verdict Budget::judge(const Config& config) {
  const auto answer = [&](uint32_t needed) {
    if (needed > left_) return Verdict::kLong;
    note(needed);
    return Verdict::kFits;
  };
  StateId state = states_.find(config);
  if (state != kNoState && at(state).need <= left_) return answer(ways_[state].need);
  const bool small = trie_.node_count() <= kSmallTrie;
  if (!small) {
    const LexicalView view = machine_.lexical(config);
    if (in_unit(view) && !view.exceptional) {
      if (machine_.effort() > effort_ && !ends_.contains(view.cursor)) return Verdict::kLong;
      const uint32_t needed = unit_need(config, view.cursor);
      if (needed != kNever) return answer(needed);
    }
  }
  for (const uint32_t id : recent_) {
    const Tail& tail = tails_[id];
    if (tail.tokens.size() > left_ || !ends(config, tail)) continue;
    state = states_.intern(config);
    Way& way = at(state);
    way.need = static_cast<uint32_t>(tail.tokens.size());
    way.tail = id;
    tried(id);
    return answer(way.need);
  }
  if (machine_.unsure(config)) return Verdict::kUnknown;
  // A text that fits is not longer than this.
  const size_t longest = (size_t{left_} + kClose) * trie_.depth();
  if (state == kNoState || at(state).asked < longest) {
    if (completions_ == 0 || machine_.effort() > effort_) return Verdict::kLong;
    --completions_;
    state = states_.intern(config);
    find_plain(state, longest);
  }
  // A search is worth it where little is missing, or nothing is known.
  const uint32_t plain = at(state).need;
  if (small && plain > left_ && (plain == kNever || plain - left_ <= kClose) && walked_ < steps_) {
    find(state, longest);
  }
  return at(state).need == kNever ? Verdict::kUnknown : answer(ways_[state].need);
}

void Budget::drop(uint32_t token) {
  dropped_ |= test_bit(row_, token);
  clear_bit(row_, token);
}

void Budget::judge_node(uint32_t node, const Config& config) {
  bool wanted = false;
  for (const uint32_t token : trie_.own_tokens(node)) wanted |= test_bit(before_.data(), token);
  if (!wanted) return;
  const bool good = fits(config);
  for (const uint32_t token : trie_.own_tokens(node)) {
    if (!good) drop(token);
    else if (test_bit(before_.data(), token)) set_bit(row_, token);
  }
}

void Budget::judge_token(uint32_t token) {
  if (!test_bit(before_.data(), token)) return;
  if (reads_ == 0 || machine_.effort() > effort_) return drop(token);
  Config config = start_;
  for (const char c : trie_.text(token)) {
    if (reads_ > 0) --reads_;
    if (!machine_.step(config, static_cast<uint8_t>(c))) return;
  }
  if (fits(config)) set_bit(row_, token);
  else drop(token);
}

// Tokens below a node, by the machine; where it enters a unit above many tokens, by the unit.
void Budget::keep_walk(const Config& from, uint32_t top) {
  const bool units = trie_.node_count() > kSmallTrie;
  walk_below(
      [&](uint32_t n) -> const TrieNode& { return trie_.node(n); }, top, from,
      [&](const Config& config, ByteSet& live) { return machine_.live_bytes(config, live); },
      [&](uint32_t n, Config& config) {
        if (!machine_.step(config, trie_.node(n).byte)) return WalkStep::kPast;
        if (trie_.node(n).has_tokens) judge_node(n, config);
        if (units && trie_.node(n).child_count != 0 && trie_.subtree_size(n) >= kUnitTokens) {
          const LexicalView view = machine_.lexical(config);
          if (in_unit(view)) {
            keep_unit(config, view, n);
            return WalkStep::kPast;
          }
        }
        return WalkStep::kInto;
      });
}

void Budget::keep_unit(const Config& config, const LexicalView& view, uint32_t node) {
  keep_inside(config, view.cursor, node);
  for (const Remainders& remainders : tables_.get(view.cursor, node).remainders()) {
    Config behind = config;
    const bool alive = machine_.leave(behind, remainders.outcome);
    if (machine_.unsure(behind)) {
      try_remainders(remainders, 0);
    } else if (alive) {
      keep_remainders(behind, remainders);
    }
  }
  if (view.exceptional) keep_exceptional(config, node);
}

void Budget::keep_inside(const Config& config, const LexCursor& cursor, uint32_t node) {
  if (vocabulary_.spelling().every_byte && cursor.tracked == 0) {
    const uint32_t farthest = stepper_.farthest(cursor);
    if (farthest < left_) {
      // From the farthest cursor at the latest the unit ends, and what follows is the same.
      uint32_t behind = 0;
      const End end = end_of(cursor);
      bool known = end.step != LexStep::kDead;
      if (end.step == LexStep::kEnd) {
        Config after = config;
        known = machine_.leave(after, end.outcome) && !machine_.unsure(after);
        if (known) behind = need(states_.intern(after));
      }
      if (known && behind != kNever && behind + farthest <= left_) {
        note(behind + farthest);
        return;
      }
    }
  }
  for (const Group& group : groups(cursor, node)) {
    if (machine_.effort() > effort_ && !ends_.contains(group.cursor)) {
      for (const uint32_t token : group.tokens) drop(token);
      continue;
    }
    const uint32_t needed = unit_need(config, group.cursor);
    if (needed <= left_) {
      note(needed);
    } else if (needed == kNever) {
      for (const uint32_t token : group.tokens) judge_token(token);
    } else {
      for (const uint32_t token : group.tokens) drop(token);
    }
  }
}

uint32_t Budget::unit_need(const Config& config, const LexCursor& cursor) {
  const End end = end_of(cursor);
  if (end.step != LexStep::kEnd) return end.step == LexStep::kInside ? end.tokens : kNever;
  Config after = config;
  if (!machine_.leave(after, end.outcome) || machine_.unsure(after)) return kNever;
  const StateId behind = states_.intern(after);
  const uint32_t rest = need(behind);
  if (rest == kNever) return kNever;
  const uint32_t apart = end.tokens + rest;
  if (apart <= left_ || apart > left_ + kClose) return apart;
  uint32_t& known = joined(behind, end.text);
  if (known == kNoTail) known = join(behind, end.text);
  return std::min(apart, static_cast<uint32_t>(tails_[known].tokens.size()));
}

const std::vector<Budget::Group>& Budget::groups(const LexCursor& from, uint32_t top) {
  const auto found = groups_.find({from, top});
  if (found != groups_.end()) return found->second;
  if (group_tokens_ > kGroupTokens) {
    groups_.clear();
    group_tokens_ = 0;
  }
  std::vector<Group>& list = groups_[{from, top}];
  std::unordered_map<LexCursor, size_t, CursorHash> index;
  size_t last = 0;
  walk_below(
      [&](uint32_t n) -> const TrieNode& { return trie_.node(n); }, top, from,
      [](const LexCursor&, ByteSet&) { return false; },
      [&](uint32_t n, LexCursor& cursor) {
        uint32_t outcome = 0;
        if (stepper_.step(cursor, trie_.node(n).byte, outcome) != LexStep::kInside) {
          return WalkStep::kPast;
        }
        if (!trie_.node(n).has_tokens) return WalkStep::kInto;
        if (last >= list.size() || !(list[last].cursor == cursor)) {
          const auto [at, fresh] = index.try_emplace(cursor, list.size());
          if (fresh) list.push_back({cursor, {}});
          last = at->second;
        }
        const auto own = trie_.own_tokens(n);
        list[last].tokens.insert(list[last].tokens.end(), own.begin(), own.end());
        group_tokens_ += own.size();
        return WalkStep::kInto;
      });
  return list;
}

// Texts that the table of the unit does not know: the machine's own steps, as far as they differ.
void Budget::keep_exceptional(const Config& from, uint32_t top) {
  walk_below(
      [&](uint32_t n) -> const TrieNode& { return trie_.node(n); }, top, from,
      [&](const Config& config, ByteSet& live) { return machine_.exceptional_bytes(config, live); },
      [&](uint32_t n, Config& config) {
        if (!machine_.step(config, trie_.node(n).byte)) return WalkStep::kPast;
        const LexicalView view = machine_.lexical(config);
        const bool inside = view.present && stepper_.region(view.cursor) == nullptr;
        // Where it is plain the table is right about what follows.
        if (inside && !view.exceptional) return WalkStep::kPast;
        if (trie_.node(n).has_tokens) judge_node(n, config);
        if (inside) return WalkStep::kInto;
        if (trie_.node(n).child_count != 0) keep_walk(config, n);
        return WalkStep::kPast;
      });
}

void Budget::keep_remainders(const Config& from, const Remainders& remainders) {
  const RemainderTrie& trie = *remainders.trie;
  judge_remainders(remainders, 0, from);
  walk_below(
      [&](uint32_t n) -> const TrieNode& { return trie.nodes[n]; }, 0, from,
      [&](const Config& config, ByteSet& live) { return machine_.live_bytes(config, live); },
      [&](uint32_t n, Config& config) {
        if (!remainders.any_below(n)) return WalkStep::kPast;
        const bool alive = machine_.step(config, trie.nodes[n].byte);
        if (machine_.unsure(config)) {
          try_remainders(remainders, n);
          return WalkStep::kPast;
        }
        if (!alive) return WalkStep::kPast;
        if (trie.nodes[n].has_tokens) judge_remainders(remainders, n, config);
        return WalkStep::kInto;
      });
}

void Budget::judge_remainders(const Remainders& remainders, uint32_t node, const Config& config) {
  const Verdict verdict = judge(config);
  remainders.for_each_token(node, [&](uint32_t token) {
    if (verdict == Verdict::kUnknown) judge_token(token);
    else if (verdict == Verdict::kLong) drop(token);
    else if (test_bit(before_.data(), token)) set_bit(row_, token);
  });
}

void Budget::try_remainders(const Remainders& remainders, uint32_t top) {
  std::vector<uint32_t> pending{top};
  while (!pending.empty()) {
    const uint32_t n = pending.back();
    pending.pop_back();
    if (!remainders.any_below(n)) continue;
    const TrieNode& node = remainders.trie->nodes[n];
    for (uint32_t c = 0; c < node.child_count; ++c) pending.push_back(node.first_child + c);
    remainders.for_each_token(n, [&](uint32_t token) { judge_token(token); });
  }
}

}  // namespace constrain
