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
constexpr size_t kRecent = 8;
constexpr size_t kSearchSmall = 3'000, kSearchLast = 200'000;   // steps

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

uint32_t Budget::bound(StateId state) {
  const Spelling& spelling = vocabulary_.spelling();
  if (!spelling.every_byte) return kNever;
  Way& here = at(state);
  if (here.bound == kUnasked) {
    here.bound = machine_.most_needed(states_.config(state), spelling.brackets, trie_.depth());
  }
  return here.bound;
}

size_t Budget::bytes() const {
  return ways_.capacity() * sizeof(Way) + before_.capacity() * sizeof(uint32_t) + text_bytes_ +
         ends_.size() * sizeof(End) + group_tokens_ * sizeof(uint32_t);
}

Budget::Way& Budget::at(StateId state) {
  if (state >= ways_.size()) ways_.resize(std::max<size_t>(state + 1, ways_.size() * 2));
  return ways_[state];
}

uint32_t Budget::need(StateId state) {
  find(state, kLongest);
  return ways_[state].need;
}

uint32_t Budget::need_here(StateId state) {
  find(state, kLongest);
  if (ways_[state].need == kNever && !ways_[state].last) {
    ways_[state].last = true;
    search(state, kSearchLast);
  }
  if (ways_[state].need != kNever && !ways_[state].exact && trie_.node_count() <= kSmallTrie) {
    improve(state);
  }
  return ways_[state].need;
}

uint32_t Budget::need_behind(StateId before, uint32_t token, StateId state, uint32_t enough) {
  if (need(state) > enough) inherit(before, token, state);
  return ways_[state].need > enough ? need_here(state) : ways_[state].need;
}

std::vector<uint32_t> Budget::way(StateId state) {
  std::vector<uint32_t> tokens;
  if (at(state).need == kNever) return tokens;
  while (at(state).need != 0) {
    settle(state);
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

void Budget::find(StateId state, size_t longest) {
  find_plain(state, longest);
  if (ways_[state].searched || ways_[state].exact) return;
  ways_[state].searched = true;
  from_unit(state);
  if (trie_.node_count() <= kSmallTrie) search(state, kSearchSmall);
}

// The machine's own completion.
void Budget::find_plain(StateId state, size_t longest) {
  longest = std::min(longest, kLongest);
  if (at(state).asked >= longest || ways_[state].exact) return;
  ways_[state].asked = static_cast<uint32_t>(longest);
  const Config config = states_.config(state);
  if (machine_.accepts(config)) {
    ways_[state].need = 0;
    ways_[state].exact = true;
    return;
  }
  std::string text;
  if (machine_.complete(config, text, longest)) {
    const uint32_t found = tail(std::move(text));
    if (found != kNoTail && offer(state, found)) tried(found);
  }
  // What completed another config may be shorter: searches that gave up are not alike.
  for (const uint32_t other : recent_) offer(state, other);
  if (at(state).need == 1) ways_[state].exact = true;
}

// Of a state in a unit: how the unit ends, and what is known behind it.
void Budget::from_unit(StateId state) {
  const Config config = states_.config(state);
  const LexicalView view = machine_.lexical(config);
  if (!in_unit(view)) return;
  const End end = end_of(view.cursor);
  if (end.step == LexStep::kInside) offer(state, tail(end.text));
  if (end.step != LexStep::kEnd) return;
  Config after = config;
  if (!machine_.leave(after, end.outcome) || machine_.unsure(after)) return;
  const StateId behind = states_.intern(after);
  if (need(behind) == kNever) return;
  offer(state, joined(behind, end.text));
  offer(state, join(behind, end.text));
}

uint32_t& Budget::joined(StateId behind, const std::string& end) {
  std::string key(reinterpret_cast<const char*>(&behind), sizeof behind);
  key += end;
  const auto [it, fresh] = joined_.try_emplace(std::move(key), kNoTail);
  if (fresh) text_bytes_ += it->first.size() + sizeof *it;
  return it->second;
}

uint32_t Budget::join(StateId behind, const std::string& end) {
  std::string text = end;
  for (const uint32_t token : way(behind)) text += trie_.text(token);
  return tail(std::move(text));
}

const Budget::End& Budget::end_of(const LexCursor& cursor) {
  const auto [it, fresh] = ends_.try_emplace(cursor);
  End& end = it->second;
  if (!fresh) return end;
  end.step = stepper_.finish(cursor, end.text, end.outcome);
  std::vector<uint32_t> tokens;
  if (end.step != LexStep::kDead && !fewest_tokens(trie_, end.text, tokens)) {
    end.step = LexStep::kDead;
  }
  end.tokens = static_cast<uint32_t>(tokens.size());
  text_bytes_ += end.text.capacity();
  return end;
}

// The token may have been kept for what is behind a unit that ends within it, from `leave`.
void Budget::inherit(StateId before, uint32_t token, StateId state) {
  const std::string_view text = trie_.text(token);
  Config config = states_.config(before);
  for (size_t i = 0; i < text.size(); ++i) {
    const LexicalView view = machine_.lexical(config);
    if (in_unit(view)) {
      LexCursor cursor = view.cursor;
      uint32_t outcome = 0;
      LexStep last = LexStep::kInside;
      size_t j = i;
      while (j < text.size() && last == LexStep::kInside) {
        last = stepper_.step(cursor, static_cast<uint8_t>(text[j++]), outcome);
      }
      Config after = config;
      bool alive = last == LexStep::kEnd && machine_.leave(after, outcome);
      while (alive && j < text.size()) {
        alive = machine_.step(after, static_cast<uint8_t>(text[j++]));
      }
      if (alive && !machine_.unsure(after)) {
        const StateId known = states_.intern(after);
        find(known, kLongest);
        if (at(known).need < at(state).need) record(state, way(known));
      }
    }
    if (!machine_.step(config, static_cast<uint8_t>(text[i]))) return;
  }
}

uint32_t Budget::tail(std::string text) {
  const auto found = tail_ids_.find(text);
  if (found != tail_ids_.end()) return found->second;
  Tail fresh{std::move(text), {}};
  uint32_t id = kNoTail;
  if (fewest_tokens(trie_, fresh.text, fresh.tokens)) {
    id = static_cast<uint32_t>(tails_.size());
    text_bytes_ += 2 * fresh.text.size() + fresh.tokens.size() * sizeof(uint32_t) +
                   sizeof(Tail) + sizeof(std::string);
    tail_ids_.emplace(fresh.text, id);
    tails_.push_back(std::move(fresh));
  } else {
    text_bytes_ += fresh.text.size() + sizeof(std::string);
    tail_ids_.emplace(std::move(fresh.text), id);
  }
  return id;
}

bool Budget::offer(StateId state, uint32_t tail) {
  if (tail == kNoTail || tails_[tail].tokens.size() >= at(state).need) return false;
  if (!completes(machine_, states_.config(state), tails_[tail].text)) return false;
  Way& way = at(state);
  way.need = static_cast<uint32_t>(tails_[tail].tokens.size());
  way.tail = tail;
  if (way.need == 0) way.exact = true;
  return true;
}

void Budget::tried(uint32_t tail) {
  const auto found = std::find(recent_.begin(), recent_.end(), tail);
  if (found == recent_.begin() && found != recent_.end()) return;
  if (found != recent_.end()) recent_.erase(found);
  recent_.insert(recent_.begin(), tail);
  if (recent_.size() > kRecent) recent_.pop_back();
}

void Budget::settle(StateId state) {
  const uint32_t tail = at(state).tail;
  if (tail == kNoTail) return;
  ways_[state].tail = kNoTail;
  ways_[state].need = kNever;   // the same number or a smaller one comes from the path
  const std::vector<uint32_t> tokens = tails_[tail].tokens;
  record(state, tokens);
}

// Looks one token ahead from each state of a way: shorter texts often take more tokens.
void Budget::improve(StateId start) {
  std::vector<StateId> path;
  const size_t limit = walked_ + kImproveSteps;
  for (StateId state = start; at(state).need > 1 && !ways_[state].improved;
       state = ways_[state].next) {
    ways_[state].improved = true;
    path.push_back(state);
    settle(state);
    const Config config = states_.config(state);
    walk(config, [&](uint32_t n, const Config& next) {
      const StateId id = states_.intern(next);
      find_plain(id, kLongest);
      if (at(id).need != kNever && ways_[id].need + 1 < ways_[state].need) {
        ways_[state].need = ways_[id].need + 1;
        ways_[state].token = trie_.own_tokens(n)[0];
        ways_[state].next = id;
        ways_[state].tail = kNoTail;
      }
      return walked_ < limit;
    });
    if (walked_ >= limit) break;
  }
  for (size_t i = path.size(); i-- > 0;) {
    Way& way = ways_[path[i]];
    if (way.tail == kNoTail) way.need = std::min(way.need, ways_[way.next].need + 1);
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
  last.tail = kNoTail;
  last.searched = last.exact = true;
  for (size_t i = tokens.size(); i-- > 0;) {
    Way& way = at(path[i]);
    const uint32_t need = ways_[path[i + 1]].need + 1;
    if (need >= way.need) continue;
    way.need = need;
    way.token = tokens[i];
    way.next = path[i + 1];
    way.tail = kNoTail;
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
      if (!way.exact && machine_.accepts(next)) {
        way.searched = way.exact = true;
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
  for (StateId id = start; at(id).need != 0; id = ways_[id].next) {
    settle(id);
    ways_[id].exact = true;
  }
}

}  // namespace constrain
