#include "constrain/budget.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "constrain/bits.hpp"
#include "constrain/trie_walk.hpp"

namespace constrain {
namespace {

constexpr size_t kLongest = size_t{1} << 20;   // bytes of a completion
// A search over tokens is worth its steps where it can be complete, and where there is nothing else.
constexpr size_t kImproveSteps = 100'000;
constexpr size_t kTails = 8;
constexpr size_t kSearchSmall = 3'000, kSearchLast = 2'000'000;   // steps

}  // namespace

bool fewest_tokens(const Trie& trie, std::string_view text, std::vector<uint32_t>& out) {
  constexpr uint32_t kFar = 0xFFFFFFFFu;
  struct Cell {
    uint32_t count = kFar, from = 0, node = 0;
  };
  std::vector<Cell> cells(text.size() + 1);
  cells[0].count = 0;
  for (uint32_t i = 0; i < text.size(); ++i) {
    if (cells[i].count == kFar) continue;
    uint32_t node = 0;
    for (uint32_t j = i; j < text.size(); ++j) {
      node = trie.child(node, static_cast<uint8_t>(text[j]));
      if (node == 0) break;
      if (trie.node(node).has_tokens && cells[i].count + 1 < cells[j + 1].count) {
        cells[j + 1] = {cells[i].count + 1, i, node};
      }
    }
  }
  out.clear();
  if (cells.back().count == kFar) return false;
  for (size_t at = text.size(); at != 0; at = cells[at].from) {
    out.push_back(trie.own_tokens(cells[at].node)[0]);
  }
  std::reverse(out.begin(), out.end());
  return true;
}

bool completes(Machine& machine, Config config, std::string_view text) {
  for (const char c : text) {
    if (!machine.step(config, static_cast<uint8_t>(c))) return false;
  }
  return machine.accepts(config) && !machine.unsure(config);
}

Budget::Budget(Vocabulary& vocabulary, Shard& shard, Machine& machine, StateTable& states)
    : vocabulary_(vocabulary),
      trie_(vocabulary.trie()),
      stepper_(shard.pool()),
      tables_(shard.tables()),
      machine_(machine),
      states_(states) {}

bool Budget::far(StateId state, uint32_t left) {
  const Spelling& spelling = vocabulary_.spelling();
  if (!spelling.every_byte) return false;
  Way& here = at(state);
  if (here.bound == kUnasked) {
    here.bound = machine_.most_needed(states_.config(state), spelling.brackets, trie_.depth());
  }
  return here.bound <= left;
}

size_t Budget::bytes() const {
  size_t total = ways_.capacity() * sizeof(Way) + before_.capacity() * sizeof(uint32_t);
  for (const Tail& tail : tails_) total += sizeof(Tail) + tail.text.capacity();
  return total + group_tokens_ * sizeof(uint32_t);
}

Budget::Way& Budget::at(StateId state) {
  if (state >= ways_.size()) ways_.resize(std::max<size_t>(state + 1, ways_.size() * 2));
  return ways_[state];
}

uint32_t Budget::need(StateId state) {
  if (!at(state).known) find(state);
  return ways_[state].need;
}

uint32_t Budget::need_here(StateId state) {
  const uint32_t known = need(state);
  if (known == kNever || ways_[state].exact || trie_.node_count() > kSmallTrie) return known;
  improve(state);
  return ways_[state].need;
}

std::vector<uint32_t> Budget::way(StateId state) {
  std::vector<uint32_t> tokens;
  if (need_here(state) == kNever) return tokens;
  while (at(state).need != 0) {
    tokens.push_back(ways_[state].token);
    state = ways_[state].next;
  }
  return tokens;
}

StateId Budget::behind(StateId state, uint32_t token) {
  Config config = states_.config(state);
  for (const char c : trie_.text(token)) {
    if (!machine_.step(config, static_cast<uint8_t>(c))) return kNoState;
  }
  return states_.intern(config);
}

void Budget::find(StateId state) {
  find_plain(state);
  at(state).known = true;
  Way& way = at(state);
  if (way.exact) return;
  if (way.need == kNever) {
    search(state, kSearchLast);
  } else if (trie_.node_count() <= kSmallTrie) {
    search(state, kSearchSmall);
  }
}

// The machine's own completion.
void Budget::find_plain(StateId state) {
  if (at(state).plain) return;
  ways_[state].plain = true;
  const Config config = states_.config(state);
  if (machine_.accepts(config)) {
    ways_[state].need = 0;
    ways_[state].exact = true;
    return;
  }
  std::string text;
  std::vector<uint32_t> tokens;
  if (machine_.complete(config, text, kLongest) && fewest_tokens(trie_, text, tokens) &&
      record(state, tokens)) {
    if (tails_.size() < kTails) tails_.emplace_back();
    Tail& tail = tails_[next_tail_++ % kTails];
    tail.text = std::move(text);
    tail.tokens = static_cast<uint32_t>(tokens.size());
  }
  // What completed another config may be shorter: searches that gave up are not alike.
  for (const Tail& tail : tails_) {
    if (tail.tokens >= at(state).need || !completes(machine_, config, tail.text)) continue;
    if (fewest_tokens(trie_, tail.text, tokens)) record(state, tokens);
  }
  if (at(state).need == 1) ways_[state].exact = true;
}

// Looks one token ahead from each state of a way: shorter texts often take more tokens.
void Budget::improve(StateId start) {
  std::vector<StateId> path;
  const size_t limit = walked_ + kImproveSteps;
  for (StateId state = start; at(state).need > 1 && !ways_[state].improved;
       state = ways_[state].next) {
    ways_[state].improved = true;
    path.push_back(state);
    const Config config = states_.config(state);
    walk(config, [&](uint32_t n, const Config& next) {
      const StateId id = states_.intern(next);
      find_plain(id);
      if (at(id).need != kNever && ways_[id].need + 1 < ways_[state].need) {
        ways_[state].need = ways_[id].need + 1;
        ways_[state].token = trie_.own_tokens(n)[0];
        ways_[state].next = id;
      }
      return walked_ < limit;
    });
    if (walked_ >= limit) break;
  }
  for (size_t i = path.size(); i-- > 0;) {
    Way& way = ways_[path[i]];
    way.need = std::min(way.need, ways_[way.next].need + 1);
  }
}

bool Budget::record(StateId state, std::span<const uint32_t> tokens) {
  std::vector<StateId> path{state};
  for (const uint32_t token : tokens) {
    path.push_back(behind(path.back(), token));
    if (path.back() == kNoState) return false;
  }
  const Config& end = states_.config(path.back());
  if (!machine_.accepts(end) || machine_.unsure(end)) return false;
  Way& last = at(path.back());
  last.need = 0;
  last.known = last.exact = true;
  for (size_t i = tokens.size(); i-- > 0;) {
    Way& way = at(path[i]);
    const uint32_t need = ways_[path[i + 1]].need + 1;
    if (need >= way.need) continue;
    way.need = need;
    way.token = tokens[i];
    way.next = path[i + 1];
  }
  return true;
}

template <class Visit>
void Budget::walk(const Config& from, Visit visit) {
  walk_below(
      [&](uint32_t n) -> const TrieNode& { return trie_.node(n); }, 0, from,
      [](const Config&, ByteSet&) { return false; },
      [&](uint32_t n, Config& config) {
        ++walked_;
        if (!machine_.step(config, trie_.node(n).byte)) return WalkStep::kPast;
        return trie_.node(n).has_tokens && !visit(n, config) ? WalkStep::kStop : WalkStep::kInto;
      });
}

void Budget::search(StateId start, size_t steps) {
  struct Found {
    uint32_t depth, token;
    StateId from;
  };
  std::unordered_map<StateId, Found> found{{start, {0, 0, kNoState}}};
  std::vector<StateId> queue{start};
  uint32_t best = at(start).need;   // a shorter way is wanted
  StateId end = kNoState;           // it leads here, and on as is known from here
  const size_t limit = walked_ + steps;
  bool complete = true;
  for (size_t i = 0; i < queue.size(); ++i) {
    const StateId here = queue[i];
    const uint32_t depth = found[here].depth + 1;
    if (depth >= best) break;
    const Config config = states_.config(here);
    walk(config, [&](uint32_t n, const Config& next) {
      if (walked_ > limit) {
        complete = false;
        return false;
      }
      const StateId id = states_.intern(next);
      if (!found.try_emplace(id, Found{depth, trie_.own_tokens(n)[0], here}).second) return true;
      Way& way = at(id);
      if (!way.known && machine_.accepts(next)) {
        way.known = way.exact = true;
        way.need = 0;
      }
      if (way.need != kNever && depth + way.need < best) {
        best = depth + way.need;
        end = id;
      }
      if (!way.exact) queue.push_back(id);
      return true;
    });
    if (!complete) break;
  }
  if (end != kNoState) {
    std::vector<uint32_t> tokens;
    for (StateId id = end; id != start; id = found[id].from) tokens.push_back(found[id].token);
    std::reverse(tokens.begin(), tokens.end());
    for (const uint32_t token : way(end)) tokens.push_back(token);
    record(start, tokens);
  }
  if (!complete || best == kNever) return;
  for (StateId id = start; id != kNoState; id = ways_[id].next) ways_[id].exact = true;
}

}  // namespace constrain
