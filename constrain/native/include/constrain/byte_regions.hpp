// Regions of byte automata, interned: the units of grammars (ARCHITECTURE.md, "Units of grammars").
//
// A region is a deterministic automaton over bytes whose states may be left: behind such a state the
// text may go on in another way than by the region's own bytes.  `exits` says with which bytes that
// can begin; it is empty where a state cannot be left.  The end of a region is soft: a text may
// leave it at a state that can also go on.
//
// Equal regions have equal ids, so tables are shared by all grammars of a vocabulary that have the
// same terminals.  Regions are compared as they are numbered; whoever makes them numbers states in
// the order of a search from the first, which is canonical for minimal automata.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "constrain/byte_set.hpp"
#include "constrain/util.hpp"

namespace constrain {

class ByteRegion {
 public:
  static constexpr uint32_t kDead = 0xFFFFFFFFu;
  struct Range {
    uint32_t state;          // from
    uint8_t first, last;     // bytes, both included
    uint32_t target;
    bool operator==(const Range&) const = default;
  };

  // `ranges` in order of states and bytes, not overlapping; exits[s] for each state.
  ByteRegion(std::vector<Range> ranges, std::vector<ByteSet> exits);

  uint32_t states() const { return static_cast<uint32_t>(exits_.size()); }
  uint32_t step(uint32_t state, uint8_t byte) const {
    return next_[size_t{state} * classes_ + class_of_[byte]];
  }
  const ByteSet& exits(uint32_t state) const { return exits_[state]; }
  bool can_leave(uint32_t state) const { return leaves_[state] != 0; }
  size_t bytes() const;

 private:
  friend class ByteRegions;
  std::vector<Range> ranges_;
  std::vector<ByteSet> exits_;
  std::vector<uint8_t> leaves_;
  std::array<uint8_t, 256> class_of_{};
  uint32_t classes_ = 1;
  std::vector<uint32_t> next_;   // [state][class of byte]
};

class ByteRegions {
 public:
  uint32_t intern(std::vector<ByteRegion::Range> ranges, std::vector<ByteSet> exits);
  const ByteRegion& operator[](uint32_t id) const { return regions_[id]; }
  size_t bytes() const { return bytes_ + set_.bytes(); }

 private:
  std::deque<ByteRegion> regions_;
  IdSet set_;
  size_t bytes_ = 0;
};

}  // namespace constrain
