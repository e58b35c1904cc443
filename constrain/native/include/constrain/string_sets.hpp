// Finite sets of strings as hash-consed tries over code points.
//
// A set is a node id; equal sets have equal ids, because a node is interned by whether it is final
// and by its sorted children.  Id 0 is the empty set, id 1 the set of the empty string.  Adding a
// string copies the path to it: O(length * fan-out).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "constrain/util.hpp"

namespace constrain {

using StringSet = uint32_t;

// Code points of a UTF-8 text; surrogates encoded as three bytes are passed through.
std::vector<uint32_t> decode_utf8(std::string_view text);
void append_utf8(std::string& out, uint32_t code_point);

class StringSets {
 public:
  static constexpr StringSet kEmpty = 0;
  static constexpr StringSet kEmptyString = 1;

  StringSets();

  bool has_empty(StringSet set) const { return nodes_[set].final; }
  StringSet child(StringSet set, uint32_t code_point) const;
  // Children as (code point, set), sorted by code point.
  std::span<const std::pair<uint32_t, StringSet>> children(StringSet set) const;
  uint64_t size(StringSet set) const { return nodes_[set].count; }

  StringSet add(StringSet set, std::span<const uint32_t> text);
  StringSet from(std::vector<std::vector<uint32_t>> texts);
  bool contains(StringSet set, std::span<const uint32_t> text) const;
  StringSet unite(StringSet a, StringSet b) { return combine(a, b, true, true, true); }
  StringSet intersect(StringSet a, StringSet b) { return combine(a, b, false, true, false); }
  StringSet subtract(StringSet a, StringSet b) { return combine(a, b, true, false, false); }
  // All members, in code point order.
  std::vector<std::vector<uint32_t>> members(StringSet set) const;
  // Length in code points of a shortest member; set must not be empty.
  uint32_t shortest(StringSet set) const { return nodes_[set].shortest; }

  size_t bytes() const;

 private:
  struct Node {
    uint32_t first = 0;  // into edges_
    uint32_t count_children = 0;
    uint64_t count = 0;  // members
    uint32_t shortest = 0;
    bool final = false;
  };

  StringSet make(bool final, std::span<const std::pair<uint32_t, StringSet>> children);
  // Membership of the result: keep what is only in a, in both, only in b.
  StringSet combine(StringSet a, StringSet b, bool only_a, bool both, bool only_b);

  std::vector<Node> nodes_;
  std::vector<std::pair<uint32_t, StringSet>> edges_;
  IdSet set_;
};

}  // namespace constrain
