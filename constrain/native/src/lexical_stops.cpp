// Units that end with a text of their own: raw text up to a stop.
//
// The decoder knows how much of the stop the last characters are (the position), as the automaton of
// Knuth, Morris and Pratt does, and hands on every character but the last one of the stop.  What is
// read of a unit is therefore its text and the stop without its last character; `until` makes the
// language of these texts.  It is a combination of the same kind: fixed endings commute with all
// boolean operations, sets and lengths take the ending in, and a regex is read with a delay.
#include <algorithm>

#include "constrain/errors.hpp"
#include "constrain/lexical_pool.hpp"

namespace constrain {

namespace {

constexpr uint32_t kInCharacter = 1u << 28, kKindMask = 7u << 28, kQuotes = 3u << 22;
constexpr uint32_t kMostPositions = 1u << 11;

// Any text followed by this one, and by any text again if `open`, as a regex program.
std::vector<int32_t> program_of_ending(std::span<const uint32_t> text, bool open = false) {
  std::vector<uint32_t> letters(text.begin(), text.end());
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  const auto count = int32_t(letters.size());
  // version, sets, nodes; the first set and node are any character
  std::vector<int32_t> program{1, count + 1, count + 3, 1, 0, 0x10FFFF};
  for (const uint32_t c : letters) program.insert(program.end(), {1, int32_t(c), int32_t(c)});
  for (int32_t set = 0; set <= count; ++set) program.insert(program.end(), {1, set});
  program.insert(program.end(), {4, 0, 0, -1, 2, int32_t(text.size()) + 1 + open, count + 1});
  for (const uint32_t c : text) {
    const auto at = std::lower_bound(letters.begin(), letters.end(), c) - letters.begin();
    program.push_back(int32_t(at) + 1);
  }
  if (open) program.push_back(count + 1);
  return program;
}

}  // namespace

uint32_t LexicalPool::position_of(uint32_t decoder) {
  return (decoder >> 15 & 0x1FF) | (decoder >> 29 & 3) << 9;
}

uint32_t LexicalPool::at_position(uint32_t position) {
  return kRaw | (position & 0x1FF) << 15 | position >> 9 << 29;
}

bool LexicalPool::between(uint32_t decoder) {
  return (decoder & (decoder & kRaw ? kInCharacter : kKindMask)) == 0;
}

bool LexicalPool::begins(uint32_t decoder) const {
  if (!between(decoder)) return false;
  if ((decoder & kRaw) == 0) return true;
  const uint32_t position = position_of(decoder);
  return position == 0 || position == stop_at(position).first;
}

uint32_t LexicalPool::raw_until(std::string_view text) {
  const auto [known, fresh] = stop_index_.try_emplace(std::string(text), 0);
  if (!fresh) return at_position(known->second);
  Stop stop;
  const size_t special = text.find('\xFF');
  stop.characters = decode_utf8(text.substr(0, special));
  if (special != std::string_view::npos) stop.characters.push_back(kSpecial);
  const size_t n = stop.characters.size();
  if (n == 0 || positions_.size() + n > kMostPositions)
    throw LimitError("too many different texts that end strings", "stops");
  stop.border = {0, 0};
  for (size_t i = 1; i < n; ++i) {
    uint32_t at = stop.border[i];
    while (at > 0 && stop.characters[at] != stop.characters[i]) at = stop.border[at];
    stop.border.push_back(stop.characters[at] == stop.characters[i] ? at + 1 : 0);
  }
  stop.first = uint32_t(positions_.size());
  if (n > 1) stop.anything = regex(program_of_ending(std::span(stop.characters).first(n - 1)));
  positions_.insert(positions_.end(), n, uint32_t(stops_.size()));
  known->second = stop.first;
  stops_.push_back(std::move(stop));
  return at_position(known->second);
}

LexStep LexicalPool::decode_raw(uint32_t& decoder, uint8_t b, uint32_t& code_point) const {
  const uint32_t position = position_of(decoder);
  const Stop& stop = stop_at(position);
  uint32_t at = position - stop.first;
  uint32_t c = b;
  if (decoder & kInCharacter) {
    // The rest of a character is decoded as in any raw text.
    uint32_t inside = decoder & ~(at_position(position) & ~kRaw);
    const LexStep step = decode(inside, b, c);
    if (step == LexStep::kDead) return step;
    if (c == kNone) {
      decoder = inside | at_position(position);
      return LexStep::kInside;
    }
  } else if (b == 0xFF) {
    return stop.characters[at] == kSpecial ? LexStep::kEnd : LexStep::kDead;
  } else if (b >= 0x80) {
    uint32_t inside = kRaw;
    const LexStep step = decode(inside, b, c);
    decoder = inside | at_position(position);
    return step;
  }
  while (at > 0 && stop.characters[at] != c) at = stop.border[at];
  if (stop.characters[at] == c && ++at == stop.characters.size()) return LexStep::kEnd;
  decoder = at_position(stop.first + at);
  code_point = c;
  return LexStep::kInside;
}

LexId LexicalPool::lagging(LexId regex, uint32_t position) {
  if (regex == kNothing) return kNothing;
  const Stop& stop = stop_at(position);
  if (regex != kAnything) return make(Op::kLagging, regex, position);
  return advance_text(stop.anything, std::span(stop.characters).first(position - stop.first));
}

LexId LexicalPool::derive_lagging(LexId regex, uint32_t position, uint32_t c) {
  const Stop& stop = stop_at(position);
  const std::vector<uint32_t>& text = stop.characters;
  const uint32_t was = position - stop.first, whole = uint32_t(text.size()) - 1;
  uint32_t at = was == whole ? stop.border[whole] : was;
  while (at > 0 && text[at] != c) at = stop.border[at];
  if (at < whole && text[at] == c) ++at;
  // What can no longer be the beginning of the stop is read now.
  const uint32_t read = was + 1 - at;
  for (uint32_t i = 0; i < read && regex > kAnything; ++i)
    regex = derive(regex, i < was ? text[i] : c);
  return lagging(regex, stop.first + at);
}

LexId LexicalPool::followed(LexId id, const Stop& stop, std::unordered_map<LexId, LexId>& memo) {
  if (id == kNothing) return kNothing;
  if (id == kAnything) return stop.anything;
  if (const auto known = memo.find(id); known != memo.end()) return known->second;
  const std::span ending = std::span(stop.characters).first(stop.characters.size() - 1);
  const auto length = uint32_t(ending.size());
  const Node n = nodes_[id];
  LexId r = kNothing;
  switch (n.op) {
    case Op::kRegex: r = lagging(id, stop.first); break;
    case Op::kSet: {
      std::vector<std::vector<uint32_t>> members = sets_.members(n.a);
      for (auto& text : members) text.insert(text.end(), ending.begin(), ending.end());
      r = strings(sets_.from(std::move(members)));
      break;
    }
    case Op::kMin: r = both(min_length(n.a > UINT32_MAX - length ? UINT32_MAX : n.a + length), stop.anything); break;
    case Op::kMax: r = both(max_length(n.a > UINT32_MAX - length ? UINT32_MAX : n.a + length), stop.anything); break;
    case Op::kNot: r = both(negate(followed(n.a, stop, memo)), stop.anything); break;
    default: {
      std::vector<LexId> parts = lists_.copy(n.a);
      for (LexId& p : parts) p = followed(p, stop, memo);
      r = n.op == Op::kAnd ? all_of(parts) : n.op == Op::kOr ? any_of(parts) : exactly_one(parts);
    }
  }
  memo[id] = r;
  return r;
}

LexId LexicalPool::until(LexId language, uint32_t decoder) {
  if ((decoder & kRaw) == 0 || position_of(decoder) == 0) return language;
  const Stop& stop = stop_at(position_of(decoder));
  if (stop.characters.size() == 1 || language == kNothing) return language;
  const uint64_t key = pack(language, stop.first);
  if (const uint32_t known = until_.find(key); known != FlatMap::kMissing) return known;
  std::unordered_map<LexId, LexId> memo;
  LexId r = followed(language, stop, memo);
  if (!live(r)) r = kNothing;
  until_.set(key, r);
  return r;
}

LexId LexicalPool::free_of(uint32_t decoder) {
  const std::vector<uint32_t> text = stop_at(position_of(decoder)).characters;
  const std::vector<uint32_t> border = stop_at(position_of(decoder)).border;
  const size_t n = text.size();
  std::vector<LexId> parts{negate(regex(program_of_ending(text, true)))};
  // The stop must not begin in the text and go on into itself.
  for (uint32_t b = border[n]; b > 0; b = border[b])
    parts.push_back(negate(regex(program_of_ending(std::span(text).first(n - b)))));
  return all_of(parts);
}

TextId LexicalPool::without_stop(TextId read, uint32_t decoder) const {
  if ((decoder & kRaw) == 0 || position_of(decoder) == 0) return read;
  for (size_t i = stop_at(position_of(decoder)).characters.size(); i > 1; --i)
    read = texts_[read].parent;
  return read;
}

bool LexicalPool::same_end(uint32_t decoder, uint32_t other) const {
  return positions_[position_of(decoder)] == positions_[position_of(other)];
}

std::string LexicalPool::terminator(uint32_t decoder) const {
  if ((decoder & kRaw) == 0) return (decoder & kQuotes) == kSingleQuoted ? "'" : "\"";
  std::string out;
  if (position_of(decoder) == 0) return out;
  const uint32_t last = stop_at(position_of(decoder)).characters.back();
  if (last == kSpecial) return "\xFF";
  append_utf8(out, last);
  return out;
}

void LexicalPool::spell_in(std::string& out, uint32_t c, uint32_t decoder) {
  if ((decoder & kQuotes) == kSingleQuoted && (decoder & kRaw) == 0 && (c == '\'' || c == '"')) {
    if (c == '\'') out += '\\';
    out += char(c);
    return;
  }
  spell(out, c, (decoder & kRaw) != 0);
}

}  // namespace constrain
