// The tables of a grammar program (layout: constrain/grammar/program.py), checked and made fast.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace constrain {

class GrammarTables {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  static constexpr uint32_t kFar = 0x3FFFFFFFu;   // a distance that no text has

  struct Range {
    uint8_t first, last;
    uint32_t target;
  };
  struct Call {
    uint32_t callee, back, rank;
  };
  struct Mark {
    uint32_t obligation, target;
  };

  struct Foreign {
    uint32_t number, back;
  };

  // Throws Error if the table is not one.  `possible`: of the programs that it embeds, which have any
  // text.  What cannot be completed without the others is left out; throws UnsatisfiableConstraint
  // if nothing is left.
  GrammarTables(std::span<const int32_t> table, const std::vector<uint8_t>& possible);

  uint32_t states() const { return static_cast<uint32_t>(final_.size()); }
  uint32_t start() const { return start_; }
  uint32_t next(uint32_t state, uint8_t byte) const {
    if (!dense_.empty()) return dense_[size_t{state} * classes_ + class_of_[byte]];
    return find(ranges(state), byte);
  }
  bool is_final(uint32_t state) const { return final_[state] != 0; }
  // Nothing happens in this state but the end of its net: returning to it can be skipped.
  bool is_pure(uint32_t state) const { return pure_[state] != 0; }
  // Nothing happens in this state but reading bytes.
  bool is_plain(uint32_t state) const { return plain_[state] != 0; }
  bool reads(uint32_t state) const { return range_begin_[state] != range_begin_[state + 1]; }
  std::span<const Range> ranges(uint32_t s) const { return slice(ranges_, range_begin_, s); }
  std::span<const Call> calls(uint32_t s) const { return slice(calls_, call_begin_, s); }
  std::span<const Mark> marks(uint32_t s) const { return slice(marks_, mark_begin_, s); }

  std::span<const Foreign> foreigns(uint32_t s) const {
    return slice(foreigns_, foreign_begin_, s);
  }

  // The least number of bytes from a state to the end of its net, if the texts of embedded programs
  // are as long as measure() was told.
  uint32_t distance(uint32_t state) const { return distance_[state]; }
  // kFar: no text is known.
  void measure(std::span<const uint32_t> lengths);
  bool measured() const { return !distance_.empty(); }

  uint32_t obligations() const { return static_cast<uint32_t>(obligation_end_.size()); }
  // kNone: broken.  Obligation 0 stays.
  uint32_t reduce(uint32_t obligation, uint8_t byte) const {
    return obligation == 0 ? 0 : find(obligation_ranges(obligation), byte);
  }
  bool ends(uint32_t obligation) const { return obligation_end_[obligation] != 0; }
  std::span<const Range> obligation_ranges(uint32_t o) const {
    return slice(obligation_ranges_, obligation_begin_, o);
  }

  size_t bytes() const;

 private:
  template <typename T>
  static std::span<const T> slice(const std::vector<T>& all, const std::vector<uint32_t>& begin,
                                  uint32_t i) {
    return {all.data() + begin[i], all.data() + begin[i + 1]};
  }
  static uint32_t find(std::span<const Range> ranges, uint8_t byte);
  void read(std::span<const int32_t> table, uint32_t parts);
  void keep_productive(const std::vector<uint8_t>& possible);
  void make_dense();

  uint32_t start_ = 0;
  std::vector<uint32_t> range_begin_, call_begin_, mark_begin_, foreign_begin_, obligation_begin_;
  std::vector<Range> ranges_, obligation_ranges_;
  std::vector<Call> calls_;
  std::vector<Mark> marks_;
  std::vector<Foreign> foreigns_;
  std::vector<uint8_t> final_, pure_, plain_, obligation_end_;
  std::vector<uint32_t> distance_;
  std::array<uint8_t, 256> class_of_{};
  uint32_t classes_ = 0;
  std::vector<uint32_t> dense_;                   // empty if it would be too large
};

}  // namespace constrain
