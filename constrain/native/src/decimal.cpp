// Exact decimal numbers: parsing, canonical form, comparison.
#include "constrain/decimal.hpp"

#include <algorithm>
#include <utility>

#include "constrain/errors.hpp"

namespace constrain {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Exponents are read up to here and clamped beyond, so that canonicalising cannot overflow before
// the range check.
constexpr int64_t kExponentClamp = 1'000'000'000'000'000;

[[noreturn]] void fail_parse(std::string_view text) {
  throw Error("not a JSON number: '" + std::string(text.substr(0, 60)) + "'");
}

}  // namespace

Decimal::Decimal(bool negative, std::string digits, int64_t exponent)
    : negative_(negative), digits_(std::move(digits)), exponent_(exponent) {
  const size_t first = digits_.find_first_not_of('0');
  if (first == std::string::npos) {
    negative_ = false;
    digits_.clear();
    exponent_ = 0;
    return;
  }
  const size_t last = digits_.find_last_not_of('0');
  exponent_ += static_cast<int64_t>(digits_.size() - 1 - last);
  if (first != 0 || last + 1 != digits_.size()) digits_ = digits_.substr(first, last + 1 - first);
  if (exponent_ > kMaxExponent || exponent_ < -kMaxExponent) {
    throw LimitError("the exponent of a number is beyond 10^9", "number_exponent");
  }
}

Decimal Decimal::parse(std::string_view text) {
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  bool negative = false;
  if (peek() == '-') {
    negative = true;
    ++at;
  }
  if (!is_digit(peek())) fail_parse(text);
  std::string digits;
  if (peek() == '0') {
    ++at;
  } else {
    while (is_digit(peek())) digits.push_back(text[at++]);
  }
  int64_t exponent = 0;
  if (peek() == '.') {
    ++at;
    if (!is_digit(peek())) fail_parse(text);
    while (is_digit(peek())) {
      digits.push_back(text[at++]);
      --exponent;
    }
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at;
    bool down = false;
    if (peek() == '+' || peek() == '-') down = text[at++] == '-';
    if (!is_digit(peek())) fail_parse(text);
    int64_t written = 0;
    while (is_digit(peek())) {
      written = std::min(kExponentClamp, written * 10 + (text[at++] - '0'));
    }
    exponent += down ? -written : written;
  }
  if (at != text.size()) fail_parse(text);
  return Decimal(negative, std::move(digits), exponent);
}

Decimal Decimal::from_int(int64_t value) {
  std::string digits = std::to_string(value);
  if (value < 0) digits.erase(0, 1);
  return Decimal(value < 0, std::move(digits), 0);
}

int64_t Decimal::plain_digits() const {
  if (is_zero()) return 1;
  const auto size = static_cast<int64_t>(digits_.size());
  if (exponent_ >= 0) return size + exponent_;
  return std::max(size, 1 - exponent_);
}

Decimal Decimal::negated() const {
  Decimal out = *this;
  if (!is_zero()) out.negative_ = !negative_;
  return out;
}

Decimal Decimal::absolute() const {
  Decimal out = *this;
  out.negative_ = false;
  return out;
}

Decimal Decimal::scaled(int64_t shift) const {
  if (is_zero()) return *this;
  return Decimal(negative_, digits_, exponent_ + shift);
}

int Decimal::compare(const Decimal& other) const {
  const int sign = is_zero() ? 0 : (negative_ ? -1 : 1);
  const int other_sign = other.is_zero() ? 0 : (other.negative_ ? -1 : 1);
  if (sign != other_sign) return sign < other_sign ? -1 : 1;
  if (sign == 0) return 0;
  const int64_t mine = magnitude();
  const int64_t theirs = other.magnitude();
  if (mine != theirs) return mine < theirs ? -sign : sign;
  // Same magnitude, no trailing zeros: the order of the digits as text.
  const int order = digits_.compare(other.digits_);
  return order == 0 ? 0 : (order < 0 ? -sign : sign);
}

std::string Decimal::to_string() const {
  if (is_zero()) return "0";
  std::string out;
  if (negative_) out.push_back('-');
  if (plain_digits() > kPlainDigits) {
    out.push_back(digits_[0]);
    if (digits_.size() > 1) {
      out.push_back('.');
      out.append(digits_, 1);
    }
    if (magnitude() != 1) {
      out.push_back('e');
      out += std::to_string(magnitude() - 1);
    }
    return out;
  }
  if (exponent_ >= 0) {
    out += digits_;
    out.append(static_cast<size_t>(exponent_), '0');
    return out;
  }
  const int64_t whole = magnitude();
  if (whole > 0) {
    out.append(digits_, 0, static_cast<size_t>(whole));
    out.push_back('.');
    out.append(digits_, static_cast<size_t>(whole));
  } else {
    out += "0.";
    out.append(static_cast<size_t>(-whole), '0');
    out += digits_;
  }
  return out;
}

size_t Decimal::hash() const {
  size_t h = std::hash<std::string>{}(digits_);
  h ^= static_cast<size_t>(exponent_) * 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  return negative_ ? ~h : h;
}

}  // namespace constrain
