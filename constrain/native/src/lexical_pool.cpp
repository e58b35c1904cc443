#include "constrain/lexical_pool.hpp"

#include <algorithm>
#include <map>

#include "constrain/errors.hpp"
#include "constrain/poll.hpp"

namespace constrain {

namespace {
constexpr uint32_t kUnknown = 0xFFFFFFFFu;
constexpr uint32_t kMostParts = 1u << 20;   // counted
}  // namespace

LexicalPool::LexicalPool() {
  nodes_.push_back({Op::kNothing, true, false, 0, 0});
  nodes_.push_back({Op::kAnything, true, false, 1, 1});
  texts_.push_back({0, 0});
}

LexicalPool::~LexicalPool() = default;

// ------------------------------------------------------------------ building

LexId LexicalPool::make(Op op, uint32_t a, uint32_t b) {
  const uint32_t words[3] = {uint32_t(op), a, b};
  const uint64_t hash = hash_words(words, 3);
  const uint32_t found = node_set_.find(hash, [&](uint32_t id) {
    const Node& n = nodes_[id];
    return n.op == op && n.a == a && n.b == b;
  });
  if (found != IdSet::kMissing) return found;
  Node node{op};
  node.a = a;
  node.b = b;
  switch (op) {
    case Op::kRegex:
      node.uniform = false;
      node.accepts = dfas_[a]->accepting(b);
      break;
    case Op::kSet:
      node.uniform = false;
      node.has_sets = true;
      node.live = 1;
      node.accepts = sets_.has_empty(a);
      break;
    case Op::kMin:
      node.live = 1;
      node.accepts = 0;
      break;
    case Op::kMax:
      node.live = 1;
      node.accepts = 1;
      break;
    case Op::kLagging: {
      const Stop& stop = stop_at(b);
      node.uniform = false;
      node.accepts = b - stop.first + 1 == stop.characters.size() && accepts(a);
      break;
    }
    case Op::kNot:
      node.uniform = nodes_[a].uniform;
      node.has_sets = nodes_[a].has_sets;
      node.parts = nodes_[a].parts;
      break;
    default:
      for (const LexId p : lists_.get(a)) {
        node.parts = std::min(node.parts + nodes_[p].parts, kMostParts);
        node.uniform &= nodes_[p].uniform;
        node.has_sets |= nodes_[p].has_sets;
      }
  }
  const LexId id = LexId(nodes_.size());
  if (id % 256 == 0) poll();
  nodes_.push_back(node);
  node_set_.add(hash, id);
  return id;
}

LexId LexicalPool::make_list(Op op, std::vector<LexId> parts) {
  std::sort(parts.begin(), parts.end());
  return make(op, lists_.intern(parts));
}

LexId LexicalPool::regex_state(uint32_t dfa, uint32_t state) {
  switch (growing(dfa).constant(state)) {
    case RegexDfa::Constant::kEverything: return kAnything;
    case RegexDfa::Constant::kNothing: return kNothing;
    case RegexDfa::Constant::kNo: break;
  }
  return make(Op::kRegex, dfa, state);
}

LexId LexicalPool::regex(const std::vector<int32_t>& program) {
  const uint64_t hash =
      hash_words(reinterpret_cast<const uint32_t*>(program.data()), program.size());
  std::vector<uint32_t>& bucket = dfa_index_[hash];
  for (const uint32_t d : bucket)
    if (dfa_programs_[d] == program) return regex_state(d, dfas_[d]->start());
  auto dfa = std::make_unique<RegexDfa>(std::span<const int32_t>(program));
  const uint32_t d = uint32_t(dfas_.size());
  dfas_.push_back(std::move(dfa));
  dfa_bytes_.push_back(kStale);
  stale_.push_back(d);
  dfa_programs_.push_back(program);
  held_bytes_ += program.size() * sizeof(int32_t);
  bucket.push_back(d);
  return regex_state(d, dfas_[d]->start());
}

LexId LexicalPool::strings(StringSet set) {
  return set == StringSets::kEmpty ? kNothing : make(Op::kSet, set);
}

LexId LexicalPool::min_length(uint32_t n) { return n == 0 ? kAnything : make(Op::kMin, n); }

LexId LexicalPool::max_length(uint32_t n) { return make(Op::kMax, n); }

LexId LexicalPool::both(LexId a, LexId b) {
  const LexId parts[2] = {a, b};
  return all_of(parts);
}

LexId LexicalPool::either(LexId a, LexId b) {
  const LexId parts[2] = {a, b};
  return any_of(parts);
}

LexId LexicalPool::all_of(std::span<const LexId> parts) {
  std::vector<LexId> flat, work(parts.rbegin(), parts.rend());
  bool have_set = false;
  StringSet set = 0;
  uint32_t least = 0, most = UINT32_MAX;
  while (!work.empty()) {
    const LexId p = work.back();
    work.pop_back();
    const Node& n = nodes_[p];
    if (p == kNothing) return kNothing;
    if (p == kAnything) continue;
    if (n.op == Op::kAnd) {
      const auto inner = lists_.get(n.a);
      work.insert(work.end(), inner.begin(), inner.end());
    } else if (n.op == Op::kSet) {
      set = have_set ? sets_.intersect(set, n.a) : n.a;
      have_set = true;
      if (set == StringSets::kEmpty) return kNothing;
    } else if (n.op == Op::kMin) {
      least = std::max(least, n.a);
    } else if (n.op == Op::kMax) {
      most = std::min(most, n.a);
    } else {
      flat.push_back(p);
    }
  }
  if (least > most) return kNothing;
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const LexId p : flat)
    if (nodes_[p].op == Op::kNot && std::binary_search(flat.begin(), flat.end(), nodes_[p].a))
      return kNothing;
  if (have_set) {
    if (flat.empty() && least == 0 && most == UINT32_MAX) return strings(set);
    // A finite set is filtered at once, so that it meets the other conditions only here.
    if (sets_.size(set) <= 4096) {
      std::vector<std::vector<uint32_t>> kept;
      for (auto& text : sets_.members(set)) {
        bool ok = text.size() >= least && text.size() <= most;
        for (size_t i = 0; ok && i < flat.size(); ++i) ok = accepts(advance_text(flat[i], text));
        if (ok) kept.push_back(std::move(text));
      }
      return strings(sets_.from(std::move(kept)));
    }
    flat.push_back(make(Op::kSet, set));
  }
  if (least > 0) flat.push_back(make(Op::kMin, least));
  if (most != UINT32_MAX) flat.push_back(make(Op::kMax, most));
  if (flat.empty()) return kAnything;
  if (flat.size() == 1) return flat[0];
  return make_list(Op::kAnd, std::move(flat));
}

LexId LexicalPool::any_of(std::span<const LexId> parts) {
  std::vector<LexId> flat, work(parts.rbegin(), parts.rend());
  StringSet set = StringSets::kEmpty;
  uint32_t least = UINT32_MAX, most = 0;
  bool have_least = false, have_most = false;
  while (!work.empty()) {
    const LexId p = work.back();
    work.pop_back();
    const Node& n = nodes_[p];
    if (p == kAnything) return kAnything;
    if (p == kNothing) continue;
    if (n.op == Op::kOr) {
      const auto inner = lists_.get(n.a);
      work.insert(work.end(), inner.begin(), inner.end());
    } else if (n.op == Op::kSet) {
      set = sets_.unite(set, n.a);
    } else if (n.op == Op::kMin) {
      least = std::min(least, n.a);
      have_least = true;
    } else if (n.op == Op::kMax) {
      most = std::max(most, n.a);
      have_most = true;
    } else {
      flat.push_back(p);
    }
  }
  if (have_least && have_most && uint64_t(least) <= uint64_t(most) + 1) return kAnything;
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  for (const LexId p : flat)
    if (nodes_[p].op == Op::kNot && std::binary_search(flat.begin(), flat.end(), nodes_[p].a))
      return kAnything;
  if (set != StringSets::kEmpty) flat.push_back(make(Op::kSet, set));
  if (have_least) flat.push_back(make(Op::kMin, least));
  if (have_most) flat.push_back(make(Op::kMax, most));
  if (flat.empty()) return kNothing;
  if (flat.size() == 1) return flat[0];
  return make_list(Op::kOr, std::move(flat));
}

LexId LexicalPool::negate(LexId a) {
  if (a == kNothing) return kAnything;
  if (a == kAnything) return kNothing;
  const Node& n = nodes_[a];
  if (n.op == Op::kNot) return n.a;
  if (n.op == Op::kMin) return max_length(n.a - 1);
  if (n.op == Op::kMax) return n.a == UINT32_MAX ? kNothing : min_length(n.a + 1);
  if (n.op == Op::kAnd) {
    // What is none of several patterns is most often negated again.
    std::vector<LexId> parts = lists_.copy(n.a);
    bool negations = true;
    for (LexId& p : parts) {
      negations &= nodes_[p].op == Op::kNot;
      p = nodes_[p].a;
    }
    if (negations) return any_of(parts);
  }
  return make(Op::kNot, a);
}

LexId LexicalPool::exactly_one(std::span<const LexId> parts) {
  std::map<LexId, int> count;
  int certain = 0;
  for (const LexId p : parts) {
    if (p == kAnything) ++certain;
    else if (p != kNothing) ++count[p];
  }
  if (certain > 1) return kNothing;
  std::vector<LexId> conj, once;
  for (const auto& [p, n] : count) {
    if (n > 1 || certain) conj.push_back(negate(p));
    else once.push_back(p);
  }
  if (certain) return all_of(conj);
  if (once.empty()) return kNothing;
  conj.push_back(once.size() == 1 ? once[0] : make_list(Op::kOne, once));
  return all_of(conj);
}

// ------------------------------------------------------------------ derivatives

LexId LexicalPool::derive(LexId id, uint32_t c) {
  const Node n = nodes_[id];
  switch (n.op) {
    case Op::kNothing:
    case Op::kAnything: return id;
    case Op::kRegex: return regex_state(n.a, growing(n.a).step(n.b, c));
    case Op::kSet: return strings(sets_.child(n.a, c));
    case Op::kMin: return min_length(n.a - 1);
    case Op::kMax: return n.a == 0 ? kNothing : max_length(n.a - 1);
    case Op::kLagging: return derive_lagging(n.a, n.b, c);
    case Op::kNot: return negate(derive(n.a, c));
    default: break;
  }
  std::vector<LexId> parts = lists_.copy(n.a);
  for (LexId& p : parts) p = derive(p, c);
  if (n.op == Op::kAnd) return all_of(parts);
  if (n.op == Op::kOr) return any_of(parts);
  return exactly_one(parts);
}

LexId LexicalPool::advance_slow(LexId id, uint32_t c) {
  const LexId next = derive(id, c);
  return live(next) ? next : kNothing;
}

LexId LexicalPool::advance(LexId id, uint32_t c) {
  if (id <= kAnything) return id;
  Node& n = nodes_[id];
  if (n.op == Op::kSet) return strings(sets_.child(n.a, c));
  if (n.uniform) {
    if (n.uniform_next == kUnknown) {
      const LexId next = advance_slow(id, c);
      nodes_[id].uniform_next = next;
      return next;
    }
    return n.uniform_next;
  }
  if (c < 128) {
    if (n.row == kUnknown) {
      n.row = uint32_t(rows_.size());
      rows_.emplace_back().fill(kUnknown);
    }
    const LexId known = rows_[n.row][c];
    if (known != kUnknown) return known;
    const LexId next = advance_slow(id, c);
    rows_[nodes_[id].row][c] = next;
    return next;
  }
  if (n.has_sets) {
    const uint64_t key = pack(id, c);
    const uint32_t known = wide_by_point_.find(key);
    if (known != FlatMap::kMissing) return known;
    const LexId next = advance_slow(id, c);
    wide_by_point_.set(key, next);
    return next;
  }
  const uint64_t key = pack(id, class_of(partition(dfas_of(id)), c));
  const uint32_t known = wide_by_class_.find(key);
  if (known != FlatMap::kMissing) return known;
  const LexId next = advance_slow(id, c);
  wide_by_class_.set(key, next);
  return next;
}

LexId LexicalPool::advance_text(LexId id, std::span<const uint32_t> text) {
  for (const uint32_t c : text) {
    id = advance(id, c);
    if (id <= kAnything) break;
  }
  return id;
}

bool LexicalPool::accepts(LexId id) {
  if (nodes_[id].accepts >= 0) return nodes_[id].accepts;
  const Node n = nodes_[id];
  bool r = false;
  if (n.op == Op::kNot) {
    r = !accepts(n.a);
  } else {
    size_t yes = 0;
    const std::vector<LexId> parts = lists_.copy(n.a);
    for (const LexId p : parts) yes += accepts(p);
    r = n.op == Op::kAnd ? yes == parts.size() : n.op == Op::kOr ? yes > 0 : yes == 1;
  }
  nodes_[id].accepts = r;
  return r;
}

bool LexicalPool::contains(LexId id, TextId text) {
  if (id <= kAnything) return id == kAnything;
  const uint64_t key = pack(id, text);
  const uint32_t known = contains_.find(key);
  if (known != FlatMap::kMissing) return known;
  const bool r = accepts(advance_text(id, text_code_points(text)));
  contains_.set(key, r);
  return r;
}

// ------------------------------------------------------------------ finite sets

template <class Leaf>
LexId LexicalPool::rebuild(LexId id, Leaf leaf, std::unordered_map<LexId, LexId>& memo) {
  const Node n = nodes_[id];
  if (n.op != Op::kNot && n.op != Op::kAnd && n.op != Op::kOr && n.op != Op::kOne) return leaf(id);
  if (const auto it = memo.find(id); it != memo.end()) return it->second;
  LexId r;
  if (n.op == Op::kNot) {
    r = negate(rebuild(n.a, leaf, memo));
  } else {
    std::vector<LexId> parts = lists_.copy(n.a);
    for (LexId& p : parts) p = rebuild(p, leaf, memo);
    r = n.op == Op::kAnd ? all_of(parts) : n.op == Op::kOr ? any_of(parts) : exactly_one(parts);
  }
  memo[id] = r;
  return r;
}

LexId LexicalPool::without_sets(LexId id) {
  if (!nodes_[id].has_sets) return id;
  uint32_t known = without_.find(id);
  if (known != FlatMap::kMissing) return known;
  std::unordered_map<LexId, LexId> memo;
  LexId r = rebuild(
      id, [&](LexId leaf) { return nodes_[leaf].op == Op::kSet ? kNothing : leaf; }, memo);
  if (!live(r)) r = kNothing;
  without_.set(id, r);
  return r;
}

StringSet LexicalPool::union_of_sets(LexId id) {
  const uint32_t known = unions_.find(id);
  if (known != FlatMap::kMissing) return known;
  std::vector<StringSet> sets;
  collect_sets(id, sets);
  StringSet r = StringSets::kEmpty;
  for (const StringSet s : sets) r = sets_.unite(r, s);
  unions_.set(id, r);
  return r;
}

bool LexicalPool::as_set(LexId id, StringSet& set) const {
  if (nodes_[id].op != Op::kSet) return false;
  set = nodes_[id].a;
  return true;
}

void LexicalPool::split_lengths(LexId id, LexId& base, uint32_t& least, uint32_t& most) {
  base = id;
  least = 0;
  most = UINT32_MAX;
  const Node n = nodes_[id];
  if (n.op == Op::kMin) {
    least = n.a;
    base = kAnything;
  } else if (n.op == Op::kMax) {
    most = n.a;
    base = kAnything;
  } else if (n.op == Op::kAnd) {
    std::vector<LexId> rest;
    for (const LexId p : lists_.copy(n.a)) {
      if (nodes_[p].op == Op::kMin) least = nodes_[p].a;
      else if (nodes_[p].op == Op::kMax) most = nodes_[p].a;
      else rest.push_back(p);
    }
    if (least > 0 || most != UINT32_MAX) base = all_of(rest);
  }
}

// ------------------------------------------------------------------ texts

TextId LexicalPool::text_append(TextId text, uint32_t c) {
  const uint64_t key = pack(text, c);
  const uint32_t known = text_index_.find(key);
  if (known != FlatMap::kMissing) return known;
  const TextId id = TextId(texts_.size());
  texts_.push_back({text, c});
  text_index_.set(key, id);
  return id;
}

TextId LexicalPool::try_text(TextId text, uint32_t c) {
  tried_texts_.push_back({text, c});
  return static_cast<TextId>(tried_texts_.size() - 1) | kTried;
}

TextId LexicalPool::text(std::span<const uint32_t> code_points) {
  TextId t = 0;
  for (const uint32_t c : code_points) t = text_append(t, c);
  return t;
}

TextId LexicalPool::text(std::string_view utf8) { return text(decode_utf8(utf8)); }

std::vector<uint32_t> LexicalPool::text_code_points(TextId text) const {
  std::vector<uint32_t> out;
  while (text != 0) {
    const TextNode& node = (text & kTried) != 0 ? tried_texts_[text & ~kTried] : texts_[text];
    out.push_back(node.code_point);
    text = node.parent;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::string LexicalPool::text_utf8(TextId text) const {
  std::string out;
  for (const uint32_t c : text_code_points(text)) append_utf8(out, c);
  return out;
}

// ------------------------------------------------------------------ numbers

bool LexicalPool::number(const LexCursor& cursor, NumberPlace& place) const {
  // Raw text and Python's strings have other bits of their own.
  if ((cursor.decoder & (0xFu << 28 | 3u << 22)) != kNumber) return false;
  place.plain = (cursor.decoder & kPlainNumber) != 0;
  place.digits_only = (cursor.decoder & kDigitsOnly) != 0;
  place.goal = cursor.goal;
  place.phase = cursor.decoder & (kDigitsOnly - 1);
  place.digits = cursor.tracked;
  return true;
}

bool LexicalPool::step_number(NumberPlace& place, uint8_t byte) {
  if (place.digits_only) {
    place.digits = 0;
    return byte >= '0' && byte <= '9';
  }
  NumberCursor cursor{place.phase, place.digits};
  if (!numbers(place.plain).step(place.goal, {}, false, cursor, byte)) return false;
  place.phase = cursor.phase;
  place.digits = cursor.digits;
  return true;
}

bool LexicalPool::number_ends(const NumberPlace& place) {
  if (place.digits_only) return place.digits == 0;
  return numbers(place.plain).accepts(place.goal, {place.phase, place.digits});
}

size_t LexicalPool::bytes() const {
  size_t total = nodes_.capacity() * sizeof(Node) + node_set_.bytes() + lists_.bytes() +
                 sets_.bytes() + rows_.capacity() * sizeof(rows_[0]) + wide_by_class_.bytes() +
                 wide_by_point_.bytes() + contains_.bytes() + without_.bytes() +
                 unions_.bytes() + until_.bytes() + shortest_.bytes() + farthest_.bytes() +
                 texts_.capacity() * sizeof(TextNode) + text_index_.bytes() + regions_.bytes() +
                 plain_numbers_.bytes() + any_numbers_.bytes();
  for (const uint32_t d : stale_) {
    dfa_bytes_[d] = dfas_[d]->bytes();
    held_bytes_ += dfa_bytes_[d];
  }
  stale_.clear();
  return total + held_bytes_ + merged_index_.bytes() + merged_partitions_.bytes();
}

}  // namespace constrain
