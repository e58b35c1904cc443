// Natural numbers of any size, for divisibility of decimals.  Internal to the number languages.
//
// Little-endian limbs in base 10^9: decimal digits go in and out in linear time, and scaling by a
// power of ten is cheap.  Multiplication and division are the schoolbook ones (Knuth, The Art of
// Computer Programming 2, 4.3.1), O(n*m); operands are bounded by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace constrain {

class Natural {
 public:
  Natural() = default;  // zero
  explicit Natural(uint64_t value);
  // ASCII digits times 10^zeros.
  static Natural from_digits(std::string_view digits, int64_t zeros = 0);

  bool is_zero() const { return limbs_.empty(); }
  bool is_one() const { return limbs_.size() == 1 && limbs_[0] == 1; }
  std::string to_digits() const;
  int compare(const Natural& other) const;
  bool operator==(const Natural&) const = default;

  Natural plus(uint32_t small) const;
  Natural times(const Natural& other) const;
  // Divides by `divisor` (not zero), leaving the remainder in `remainder`.
  Natural divided(const Natural& divisor, Natural& remainder) const;
  Natural modulo(const Natural& divisor) const;
  static Natural gcd(Natural a, Natural b);
  // Divides by `small` while it divides (at least 2); how often.
  int64_t strip_factor(uint32_t small);

 private:
  static constexpr uint32_t kBase = 1'000'000'000;
  void trim();
  uint32_t divide_small(uint32_t divisor);  // in place; the remainder
  std::vector<uint32_t> limbs_;
};

}  // namespace constrain
