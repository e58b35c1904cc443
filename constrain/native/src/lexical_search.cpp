// Emptiness, counting and witnesses of string languages.
#include <algorithm>
#include <deque>

#include "constrain/lexical_pool.hpp"

namespace constrain {

namespace {
// Derivatives of parts that a search may take.  Languages of many parts get less after a search that
// was given up: there will be many like it.
constexpr size_t kSearchWork = 4'000'000;
constexpr size_t kManyParts = 8;
constexpr uint32_t kMostHalvings = 8;
constexpr size_t kHopelessParts = 64;   // after so many halvings these are not searched any more
}  // namespace

bool LexicalPool::is_live(LexId id) {
  int8_t known = nodes_[id].live;
  if (known < 0) {
    known = search_live(id);
    nodes_[id].live = known;
  }
  return known;
}

bool LexicalPool::search_live(LexId start) {
  if (nodes_[start].op == Op::kRegex) return growing(nodes_[start].a).live(nodes_[start].b);
  if (given_up_ == kMostHalvings && nodes_[start].parts >= kHopelessParts) return true;
  // Depth first, so that a long minimum length is reached in linear time.
  std::unordered_map<LexId, LexId> parent{{start, start}};
  std::vector<LexId> stack{start};
  LexId hit = kNothing;
  bool found = false, exhausted = false;
  size_t steps = 0, work = 0;
  const bool many = nodes_[start].parts >= kManyParts;
  const size_t most = many ? kSearchWork >> given_up_ : kSearchWork;
  while (!stack.empty() && !found) {
    const LexId id = stack.back();
    stack.pop_back();
    if (accepts(id) || nodes_[id].live == 1) {
      hit = id;
      found = true;
      break;
    }
    search_work_ += nodes_[id].parts;
    if (++steps > kSearchBudget || work > most) {
      exhausted = true;
      break;
    }
    for (const uint32_t c : representatives(id)) {
      work += nodes_[id].parts;
      search_work_ += nodes_[id].parts;
      const LexId next = derive(id, c);
      if (next == kNothing || nodes_[next].live == 0) continue;
      if (!parent.try_emplace(next, id).second) continue;
      if (next == kAnything) {
        hit = next;
        found = true;
        break;
      }
      stack.push_back(next);
    }
  }
  if (exhausted) {
    if (many && given_up_ < kMostHalvings) ++given_up_;
    return true;
  }
  if (!found) {
    for (const auto& [id, from] : parent) nodes_[id].live = 0;
    return false;
  }
  for (LexId id = hit;; id = parent[id]) {
    nodes_[id].live = 1;
    if (id == start) break;
  }
  return true;
}

bool LexicalPool::witness(LexId start, std::vector<uint32_t>& out) {
  out.clear();
  if (start == kNothing) return false;
  if (nodes_[start].op == Op::kSet) {
    StringSet s = nodes_[start].a;
    while (!sets_.has_empty(s)) {
      const uint32_t want = sets_.shortest(s) - 1;
      for (const auto& [c, next] : sets_.children(s)) {
        if (sets_.shortest(next) != want) continue;
        out.push_back(c);
        s = next;
        break;
      }
    }
    return true;
  }
  // Breadth first; long minimum lengths of plain languages are met without a search.
  LexId base;
  uint32_t least, most;
  split_lengths(start, base, least, most);
  if (base == kAnything) {
    out.assign(least, 'a');
    return true;
  }
  std::unordered_map<LexId, std::pair<LexId, uint32_t>> parent{{start, {start, 0}}};
  std::deque<LexId> queue{start};
  size_t steps = 0;
  while (!queue.empty()) {
    const LexId id = queue.front();
    queue.pop_front();
    if (accepts(id)) {
      for (LexId at = id; at != start; at = parent[at].first) out.push_back(parent[at].second);
      std::reverse(out.begin(), out.end());
      return true;
    }
    ++effort_;
    if (++steps > kSearchBudget) break;
    for (const uint32_t c : representatives(id)) {
      const LexId next = advance(id, c);
      if (next != kNothing && parent.try_emplace(next, id, c).second) queue.push_back(next);
    }
  }
  // A greedy walk for what is too long to be found breadth first.
  std::unordered_map<LexId, bool> seen;
  LexId id = start;
  out.clear();
  while (out.size() < 100000) {
    if (accepts(id)) return true;
    seen[id] = true;
    bool moved = false;
    for (const uint32_t c : representatives(id)) {
      const LexId next = advance(id, c);
      if (next == kNothing || seen.count(next)) continue;
      out.push_back(c);
      id = next;
      moved = true;
      break;
    }
    if (!moved) return false;
  }
  return false;
}

size_t LexicalPool::count(LexId id, size_t cap) {
  StringSet set;
  if (id == kNothing) return 0;
  if (id == kAnything) return cap;
  if (as_set(id, set)) return size_t(std::min<uint64_t>(cap, sets_.size(set)));
  std::vector<std::vector<uint32_t>> members;
  return enumerate(id, cap == 0 ? 0 : cap - 1, members) ? members.size() : cap;
}

bool LexicalPool::enumerate(LexId start, size_t cap, std::vector<std::vector<uint32_t>>& out) {
  out.clear();
  StringSet set;
  if (start == kNothing) return true;
  if (start == kAnything) return false;
  if (as_set(start, set)) {
    if (sets_.size(set) > cap) return false;
    out = sets_.members(set);
    return true;
  }
  std::vector<std::pair<LexId, std::vector<uint32_t>>> stack{{start, {}}};
  size_t steps = 0;
  while (!stack.empty()) {
    auto [id, text] = std::move(stack.back());
    stack.pop_back();
    if (id == kAnything || ++steps > 2000) return false;
    if (accepts(id)) {
      out.push_back(text);
      if (out.size() > cap) return false;
    }
    // Walk intervals, not representatives: every code point counts.
    std::vector<uint32_t> bounds = partition(dfas_of(id)).starts;
    std::vector<StringSet> sets;
    collect_sets(id, sets);
    for (const StringSet s : sets) {
      for (const auto& [c, next] : sets_.children(s)) {
        bounds.push_back(c);
        bounds.push_back(c + 1);
      }
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    for (size_t i = 0; i < bounds.size(); ++i) {
      const uint32_t low = bounds[i];
      if (low >= 0xD800 && low < 0xE000) continue;
      if (low > 0x10FFFF) break;
      const uint32_t high = i + 1 < bounds.size() ? bounds[i + 1] : 0x110000;
      const LexId next = advance(id, low);
      if (next == kNothing) continue;
      // Every open text leads to a member of its own.
      if (out.size() + stack.size() + (high - low) > cap) return false;
      for (uint32_t c = low; c < high; ++c) {
        auto longer = text;
        longer.push_back(c);
        stack.push_back({next, std::move(longer)});
      }
    }
  }
  return true;
}

}  // namespace constrain
