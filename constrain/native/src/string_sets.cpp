#include "constrain/string_sets.hpp"

#include <algorithm>

namespace constrain {

std::vector<uint32_t> decode_utf8(std::string_view text) {
  std::vector<uint32_t> out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const uint8_t b = uint8_t(text[i]);
    int extra = b < 0x80 ? 0 : b < 0xE0 ? 1 : b < 0xF0 ? 2 : 3;
    uint32_t c = extra == 0 ? b : extra == 1 ? b & 0x1F : extra == 2 ? b & 0x0F : b & 0x07;
    ++i;
    for (; extra > 0 && i < text.size(); --extra, ++i) c = c << 6 | (uint8_t(text[i]) & 0x3F);
    out.push_back(c);
  }
  return out;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += char(0xC0 | c >> 6);
    out += char(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += char(0xE0 | c >> 12);
    out += char(0x80 | (c >> 6 & 0x3F));
    out += char(0x80 | (c & 0x3F));
  } else {
    out += char(0xF0 | c >> 18);
    out += char(0x80 | (c >> 12 & 0x3F));
    out += char(0x80 | (c >> 6 & 0x3F));
    out += char(0x80 | (c & 0x3F));
  }
}

StringSets::StringSets() {
  nodes_.push_back({});  // the empty set: never found by make(), which refuses childless non-finals
  nodes_.push_back({0, 0, 1, 0, true});
}

std::span<const std::pair<uint32_t, StringSet>> StringSets::children(StringSet set) const {
  const Node& n = nodes_[set];
  return {edges_.data() + n.first, n.count_children};
}

StringSet StringSets::child(StringSet set, uint32_t code_point) const {
  const auto kids = children(set);
  if (kids.size() <= 8) {
    for (const auto& [c, s] : kids)
      if (c == code_point) return s;
    return kEmpty;
  }
  const auto it = std::lower_bound(kids.begin(), kids.end(), code_point,
                                   [](const auto& e, uint32_t c) { return e.first < c; });
  return it != kids.end() && it->first == code_point ? it->second : kEmpty;
}

StringSet StringSets::make(bool final, std::span<const std::pair<uint32_t, StringSet>> kids) {
  if (kids.empty()) return final ? kEmptyString : kEmpty;
  uint64_t hash = final ? 0x51ED270B : 0x2545F491;
  for (const auto& [c, s] : kids) hash = mix64(hash ^ pack(c, s));
  const uint32_t found = set_.find(hash, [&](uint32_t id) {
    const Node& n = nodes_[id];
    return n.final == final && n.count_children == kids.size() &&
           std::equal(kids.begin(), kids.end(), edges_.begin() + n.first);
  });
  if (found != IdSet::kMissing) return found;
  Node node;
  node.first = uint32_t(edges_.size());
  node.count_children = uint32_t(kids.size());
  node.final = final;
  node.count = final ? 1 : 0;
  node.shortest = final ? 0 : UINT32_MAX;
  for (const auto& [c, s] : kids) {
    node.count += nodes_[s].count;
    if (!final) node.shortest = std::min(node.shortest, nodes_[s].shortest + 1);
  }
  const std::vector<std::pair<uint32_t, StringSet>> copy(kids.begin(), kids.end());
  edges_.insert(edges_.end(), copy.begin(), copy.end());
  const uint32_t id = uint32_t(nodes_.size());
  nodes_.push_back(node);
  set_.add(hash, id);
  return id;
}

StringSet StringSets::add(StringSet set, std::span<const uint32_t> text) {
  std::vector<StringSet> path{set};
  for (const uint32_t c : text) path.push_back(child(path.back(), c));
  const auto kids_of = [&](StringSet s) {
    const auto kids = children(s);
    return std::vector<std::pair<uint32_t, StringSet>>(kids.begin(), kids.end());
  };
  StringSet below = make(true, kids_of(path.back()));
  for (size_t i = text.size(); i-- > 0;) {
    auto kids = kids_of(path[i]);
    const auto it = std::lower_bound(kids.begin(), kids.end(), text[i],
                                     [](const auto& e, uint32_t c) { return e.first < c; });
    if (it != kids.end() && it->first == text[i]) {
      it->second = below;
    } else {
      kids.insert(it, {text[i], below});
    }
    below = make(nodes_[path[i]].final, kids);
  }
  return below;
}

StringSet StringSets::from(std::vector<std::vector<uint32_t>> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.empty()) return kEmpty;
  // One open node per depth of the text that was read last; closed when the next text leaves it.
  struct Open {
    bool final = false;
    std::vector<std::pair<uint32_t, StringSet>> kids;
  };
  std::vector<Open> open(1);
  std::vector<uint32_t> last;
  const auto close_to = [&](size_t depth) {
    while (open.size() > depth + 1) {
      const StringSet s = make(open.back().final, open.back().kids);
      open.pop_back();
      open.back().kids.push_back({last[open.size() - 1], s});
    }
  };
  for (const auto& text : texts) {
    size_t same = 0;
    while (same < text.size() && same < last.size() && text[same] == last[same]) ++same;
    close_to(same);
    open.resize(text.size() + 1);
    open.back().final = true;
    last = text;
  }
  close_to(0);
  return make(open[0].final, open[0].kids);
}

bool StringSets::contains(StringSet set, std::span<const uint32_t> text) const {
  for (const uint32_t c : text) {
    set = child(set, c);
    if (set == kEmpty) return false;
  }
  return has_empty(set);
}

StringSet StringSets::combine(StringSet a, StringSet b, bool only_a, bool both, bool only_b) {
  // Post-order over pairs; depth is the length of a string, so the stack is explicit.
  struct Frame {
    StringSet a, b;
    size_t i = 0, j = 0;
    std::vector<std::pair<uint32_t, StringSet>> kids;
    uint32_t via = 0;
  };
  const auto trivial = [&](StringSet x, StringSet y, StringSet& result) {
    if (x == y) return result = both ? x : kEmpty, true;
    if (y == kEmpty) return result = only_a ? x : kEmpty, true;
    if (x == kEmpty) return result = only_b ? y : kEmpty, true;
    return false;
  };
  StringSet result = kEmpty;
  if (trivial(a, b, result)) return result;
  std::vector<Frame> stack;
  stack.push_back({a, b, 0, 0, {}, 0});
  for (;;) {
    Frame& f = stack.back();
    const auto ka = children(f.a), kb = children(f.b);
    if (f.i < ka.size() || f.j < kb.size()) {
      uint32_t c;
      StringSet x = kEmpty, y = kEmpty;
      if (f.j >= kb.size() || (f.i < ka.size() && ka[f.i].first <= kb[f.j].first)) {
        c = ka[f.i].first;
      } else {
        c = kb[f.j].first;
      }
      if (f.i < ka.size() && ka[f.i].first == c) x = ka[f.i++].second;
      if (f.j < kb.size() && kb[f.j].first == c) y = kb[f.j++].second;
      StringSet r;
      if (trivial(x, y, r)) {
        if (r != kEmpty) f.kids.push_back({c, r});
      } else {
        stack.push_back({x, y, 0, 0, {}, c});
      }
      continue;
    }
    const bool in_a = nodes_[f.a].final, in_b = nodes_[f.b].final;
    const bool final = in_a && in_b ? both : in_a ? only_a : in_b ? only_b : false;
    result = make(final, f.kids);
    const uint32_t via = f.via;
    stack.pop_back();
    if (stack.empty()) return result;
    if (result != kEmpty) stack.back().kids.push_back({via, result});
  }
}

std::vector<std::vector<uint32_t>> StringSets::members(StringSet set) const {
  std::vector<std::vector<uint32_t>> out;
  if (set == kEmpty) return out;
  std::vector<std::pair<StringSet, size_t>> stack{{set, 0}};
  std::vector<uint32_t> text;
  if (has_empty(set)) out.push_back(text);
  while (!stack.empty()) {
    auto& [s, i] = stack.back();
    const auto kids = children(s);
    if (i == kids.size()) {
      stack.pop_back();
      if (!text.empty()) text.pop_back();
      continue;
    }
    const auto [c, next] = kids[i++];
    text.push_back(c);
    if (has_empty(next)) out.push_back(text);
    stack.push_back({next, 0});
  }
  return out;
}

size_t StringSets::bytes() const {
  return nodes_.capacity() * sizeof(Node) + edges_.capacity() * sizeof(edges_[0]) + set_.bytes();
}

}  // namespace constrain
