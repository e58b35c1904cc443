// Shortest ways to end a unit, in bytes as they are written.
#include <algorithm>
#include <queue>

#include "constrain/lexical_pool.hpp"

namespace constrain {

namespace {

constexpr size_t kFinishBudget = 2'000;    // languages looked at for the end of a cursor
constexpr size_t kRemembered = 64;         // code points of a text that is worth remembering
constexpr uint64_t kStep = 4;              // what a language costs, in the steps of other searches
constexpr uint32_t kKind = 7u << 28;       // of a decoder, see lexical_decode.cpp
constexpr const char* kHex = "0123456789abcdef";

// The letter of a short escape, or 0.
char escape_letter(uint32_t c) {
  switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    case 8: return 'b';
    case 9: return 't';
    case 10: return 'n';
    case 12: return 'f';
    case 13: return 'r';
    default: return 0;
  }
}

void append_hex(std::string& out, uint32_t unit) {
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[unit >> shift & 15];
}

uint32_t cost_of(uint32_t c, bool raw) {
  if (c < 0x80) {
    if (raw || (c >= 0x20 && c != '"' && c != '\\')) return 1;
    return escape_letter(c) != 0 ? 2 : 6;
  }
  return c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

}  // namespace

void LexicalPool::spell(std::string& out, uint32_t c, bool raw) {
  if (raw || !needs_escape(c)) return append_utf8(out, c);
  out += '\\';
  if (const char letter = escape_letter(c); letter != 0) {
    out += letter;
  } else {
    out += 'u';
    append_hex(out, c);
  }
}

// For each class of characters the one that is written shortest, letters first.
void LexicalPool::cheapest(LexId id, bool raw, std::vector<uint32_t>& out) {
  out.clear();
  std::vector<StringSet> sets;
  collect_sets(id, sets);
  for (const StringSet s : sets)
    for (const auto& [c, next] : sets_.children(s)) out.push_back(c);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  const size_t members = out.size();
  const auto is_member = [&](uint32_t c) {
    return std::binary_search(out.begin(), out.begin() + ptrdiff_t(members), c);
  };
  const CharClasses& p = partition(dfas_of(id));
  std::vector<uint32_t> best(p.representatives.size(), kNone);
  const auto offer = [&](uint32_t cls, uint32_t c) {
    if (is_member(c)) return;
    const bool better = best[cls] == kNone || cost_of(c, raw) < cost_of(best[cls], raw) ||
                        (c == 'a' && cost_of(best[cls], raw) == 1);
    if (better) best[cls] = c;
  };
  for (size_t i = 0; i < p.starts.size(); ++i) {
    const uint32_t low = p.starts[i];
    if (low >= 0xD800 && low < 0xE000) continue;
    const uint32_t end = i + 1 < p.starts.size() ? p.starts[i + 1] : 0x110000;
    const uint32_t cls = p.classes[i];
    if (low <= 'a' && 'a' < end) offer(cls, 'a');
    for (uint32_t c = low; c < end; ++c) {
      if (best[cls] != kNone && (c >= 0x80 || cost_of(best[cls], raw) == 1)) break;
      offer(cls, c);
    }
    // A longer interval may hold a cheaper character than the class had before.
    if (best[cls] != kNone && cost_of(low, raw) < cost_of(best[cls], raw)) offer(cls, low);
  }
  for (const uint32_t c : best)
    if (c != kNone) out.push_back(c);
}

bool LexicalPool::shortest(LexId start, bool raw, std::vector<uint32_t>& out) {
  out.clear();
  if (start == kNothing) return false;
  if (accepts(start)) return true;
  const uint64_t key = pack(start, raw);
  if (const uint32_t known = shortest_.find(key); known != FlatMap::kMissing) {
    out = text_code_points(known);
    return true;
  }
  LexId base;
  uint32_t least, most;
  split_lengths(start, base, least, most);
  if (base == kAnything) {
    out.assign(least, 'a');
    return true;
  }
  struct Reached {
    uint32_t cost;
    LexId from;
    uint32_t code_point;
  };
  std::unordered_map<LexId, Reached> reached{{start, {0, start, 0}}};
  using Entry = std::pair<uint32_t, LexId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.push({0, start});
  std::vector<uint32_t> choices;
  // The best end through a language whose own is known.
  uint32_t best = UINT32_MAX;
  LexId through = kNothing;
  const auto ended = [&](LexId last, std::vector<uint32_t> rest) {
    std::reverse(rest.begin(), rest.end());
    for (LexId at = last; at != start; at = reached[at].from) {
      if (rest.size() <= kRemembered) {
        shortest_.set(pack(at, raw), text(std::vector<uint32_t>(rest.rbegin(), rest.rend())));
      }
      rest.push_back(reached[at].code_point);
    }
    out.assign(rest.rbegin(), rest.rend());
    if (out.size() <= kRemembered) shortest_.set(key, text(out));
    return true;
  };
  for (size_t steps = 0; !queue.empty() && steps < most_steps_; ++steps) {
    const auto [cost, id] = queue.top();
    if (cost >= best) break;
    queue.pop();
    if (cost > reached[id].cost) continue;
    effort_ += kStep;
    if (accepts(id)) return ended(id, {});
    cheapest(id, raw, choices);
    for (const uint32_t c : choices) {
      const LexId next = advance(id, c);
      if (next == kNothing) continue;
      const uint32_t total = cost + cost_of(c, raw);
      const auto [it, fresh] = reached.try_emplace(next, Reached{total, id, c});
      if (!fresh) {
        if (it->second.cost <= total) continue;
        it->second = {total, id, c};
      }
      const uint32_t known = shortest_.find(pack(next, raw));
      if (known == FlatMap::kMissing) {
        queue.push({total, next});
        continue;
      }
      uint32_t whole = total;
      for (const uint32_t x : text_code_points(known)) whole += cost_of(x, raw);
      if (whole < best) best = whole, through = next;
    }
  }
  if (through != kNothing) {
    return ended(through, text_code_points(shortest_.find(pack(through, raw))));
  }
  // Too large for this search.
  return most_steps_ == kSearchBudget && witness(start, out);
}

// The bytes behind the decoder's position that make it this code point.
void LexicalPool::spell_rest(uint32_t decoder, uint32_t c, std::string& out) {
  std::string whole;
  size_t done = 0;
  const uint32_t quotes = (decoder & kRaw) != 0 ? 0 : decoder & (kSingleQuoted | kDoubleQuoted);
  const bool python = quotes == kSingleQuoted || quotes == kDoubleQuoted;
  const uint32_t kind = (decoder & kRaw) != 0 ? 1 : (decoder & kKind) >> 28;
  switch (kind) {
    case 1:
      append_utf8(whole, c);
      done = whole.size() - (decoder >> 24 & 3);
      break;
    case 2:
      if (const char letter = escape_letter(c); letter != 0 && (letter != '/' || !python)) {
        out += letter;
        return;
      }
      whole += 'u';
      append_hex(whole, c < 0x10000 ? c : 0xD7C0 + (c >> 10));
      break;
    case 3:
      append_hex(whole, c < 0x10000 ? c : 0xD7C0 + (c >> 10));
      done = decoder >> 24 & 3;
      break;
    case 6:
      append_hex(whole, c >> 16);
      append_hex(whole, c & 0xFFFF);
      out += whole.substr(decoder >> 24 & 7);
      return;
    case 7:
      append_hex(whole, c);
      out += whole.substr(2 + (decoder >> 24 & 1));
      return;
    default: break;
  }
  const bool low = kind == 4;
  if (low || (kind != 1 && c >= 0x10000)) {
    whole += "\\u";
    append_hex(whole, 0xDC00 + (c & 0x3FF));
    if (low) done = decoder >> 24 & 7;
  }
  out += whole.substr(done);
}

bool LexicalPool::finish(LexId goal, uint32_t decoder, std::string& out) {
  const bool raw = (decoder & kRaw) != 0;
  std::vector<uint32_t> text;
  if (between(decoder)) {
    if (!shortest(goal, raw, text)) return false;
    for (const uint32_t c : text) spell_in(out, c, decoder);
    return true;
  }
  // Inside a character: one that it can become, of each kind.
  std::vector<uint32_t> choices;
  cheapest(goal, raw, choices);
  for (const char c : {'"', '\\', '/', '\b', '\t', '\n', '\f', '\r'}) choices.push_back(uint32_t(c));
  CodePointRange ranges[3];
  const size_t count = reachable(decoder, ranges);
  std::vector<StringSet> sets;
  collect_sets(goal, sets);
  for (size_t i = 0; i < count; ++i) {
    const CharClasses& p = partition(dfas_of(goal));
    for (size_t k = 0; k < p.starts.size(); ++k) {
      const uint32_t end = k + 1 < p.starts.size() ? p.starts[k + 1] : 0x110000;
      const uint32_t from = std::max(p.starts[k], ranges[i].low);
      const uint32_t to = std::min(end, ranges[i].high + 1);
      for (uint32_t c = from; c < to; ++c) {
        choices.push_back(c);
        bool member = false;   // of a set: it does not stand for its class
        for (const StringSet s : sets) member |= sets_.child(s, c) != StringSets::kEmpty;
        if (!member) break;
      }
    }
  }
  std::string best;
  bool found = false;
  for (const uint32_t c : choices) {
    if (!can_become(decoder, c)) continue;
    const LexId next = advance(goal, c);
    if (next == kNothing || !shortest(next, raw, text)) continue;
    std::string spelled;
    spell_rest(decoder, c, spelled);
    for (const uint32_t x : text) spell_in(spelled, x, decoder);
    if (found && spelled.size() >= best.size()) continue;
    best = std::move(spelled);
    found = true;
  }
  out += best;
  return found;
}

LexStep LexicalPool::finish(const LexCursor& cursor, std::string& out, uint32_t& outcome_id) {
  std::string text;
  most_steps_ = kFinishBudget;
  const bool found = finish(cursor.goal, cursor.decoder, text);
  most_steps_ = kSearchBudget;
  if (!found) return LexStep::kDead;
  text += terminator(cursor.decoder);
  LexCursor at = cursor;
  LexStep last = LexStep::kInside;
  for (const char c : text) {
    last = step(at, static_cast<uint8_t>(c), outcome_id);
    if (last == LexStep::kDead) return last;
  }
  out += text;
  return last;
}

uint32_t LexicalPool::farthest(const LexCursor& cursor) {
  constexpr uint32_t kUnknown = 0xFFFFFFFFu;
  constexpr uint32_t kCharacter = 8;   // to finish one that has begun, and the closing quote
  constexpr size_t kStates = 400;
  // Python's escapes are not those whose cost is known.
  const uint32_t quotes = cursor.decoder & (kSingleQuoted | kDoubleQuoted);
  if ((cursor.decoder & kRaw) == 0 && (quotes == kSingleQuoted || quotes == kDoubleQuoted))
    return kUnknown;
  LexId base;
  uint32_t least, most;
  split_lengths(cursor.goal, base, least, most);
  if (base == kAnything) return least + kCharacter + 1;
  const bool raw = (cursor.decoder & kRaw) != 0;
  const uint64_t key = pack(cursor.goal, raw);
  if (const uint32_t known = farthest_.find(key); known != FlatMap::kMissing) return known;
  // All languages that are left after some text, and how far each is from its end.
  std::unordered_map<LexId, uint32_t> index{{cursor.goal, 0}};
  std::vector<LexId> ids{cursor.goal};
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> before;   // by target: source, cost
  std::vector<uint32_t> choices;
  for (size_t i = 0; i < ids.size() && ids.size() <= kStates; ++i) {
    before.resize(ids.size());
    cheapest(ids[i], raw, choices);
    for (const uint32_t c : choices) {
      const LexId next = advance(ids[i], c);
      if (next == kNothing) continue;
      const auto [at, fresh] = index.try_emplace(next, uint32_t(ids.size()));
      if (fresh) ids.push_back(next);
      before.resize(ids.size());
      before[at->second].push_back({uint32_t(i), cost_of(c, raw)});
    }
  }
  uint32_t worst = kUnknown - 1;
  if (ids.size() <= kStates) {
    using Entry = std::pair<uint32_t, uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    std::vector<uint32_t> distance(ids.size(), kUnknown);
    for (uint32_t i = 0; i < ids.size(); ++i) {
      if (accepts(ids[i])) queue.push({distance[i] = 0, i});
    }
    while (!queue.empty()) {
      const auto [cost, i] = queue.top();
      queue.pop();
      if (cost > distance[i]) continue;
      for (const auto& [from, step] : before[i]) {
        if (cost + step >= distance[from]) continue;
        distance[from] = cost + step;
        queue.push({distance[from], from});
      }
    }
    // Behind a character that is in progress any of these may be left.
    worst = *std::max_element(distance.begin(), distance.end());
    worst = worst == kUnknown ? kUnknown - 1 : worst + kCharacter + 1;
  }
  farthest_.set(key, worst);
  return worst;
}

}  // namespace constrain
