// Exact decimal numbers: the values that JSON numbers denote.
//
// A Decimal is sign * digits * 10^exponent with any number of digits.  It is canonical: `digits`
// has neither leading nor trailing zeros and is empty for zero, and zero is neither negative nor
// scaled, so equal values are equal member by member and -0 is 0.  Comparing never scales: it looks
// at the sign, the magnitude and the digits, in O(digits) whatever the exponents are.  Up to 15
// digits (16-byte small string) nothing is allocated.
//
// Exponents of a value beyond +-kMaxExponent throw LimitError ("number_exponent").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace constrain {

class Decimal {
 public:
  static constexpr int64_t kMaxExponent = 1'000'000'000;
  // Values that need more digits than this to be written without exponent get one in to_string.
  static constexpr int64_t kPlainDigits = 40;

  Decimal() = default;  // zero
  // Canonicalises.  `digits` are ASCII digits, possibly none (zero).
  Decimal(bool negative, std::string digits, int64_t exponent);
  // The grammar of JSON numbers, which also covers Python's repr of int and float and the str of
  // decimal.Decimal ("1e+400", "0.1", "-5", "1E+2").  Throws Error when the text is not a number.
  static Decimal parse(std::string_view text);
  static Decimal from_int(int64_t value);
  static Decimal power_of_ten(int64_t exponent) { return Decimal(false, "1", exponent); }

  bool is_zero() const { return digits_.empty(); }
  bool negative() const { return negative_; }
  const std::string& digits() const { return digits_; }
  int64_t exponent() const { return exponent_; }
  bool is_integer() const { return exponent_ >= 0; }
  // For a value other than zero: 10^(magnitude - 1) <= |value| < 10^magnitude.
  int64_t magnitude() const { return exponent_ + static_cast<int64_t>(digits_.size()); }
  // How many digits the value has when written without exponent (1 for zero; 0.05 has 3).
  int64_t plain_digits() const;

  Decimal negated() const;
  Decimal absolute() const;
  // The value times 10^shift.
  Decimal scaled(int64_t shift) const;

  // Negative, zero or positive as *this is less than, equal to or greater than `other`.
  int compare(const Decimal& other) const;
  bool operator==(const Decimal&) const = default;
  bool operator<(const Decimal& other) const { return compare(other) < 0; }

  // Canonical JSON text: plain ("0.05", "1200") up to kPlainDigits digits, else "1.5e300".
  std::string to_string() const;
  size_t hash() const;

 private:
  bool negative_ = false;
  std::string digits_;
  int64_t exponent_ = 0;
};

}  // namespace constrain
