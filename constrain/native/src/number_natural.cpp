// Natural numbers of any size, base 10^9.
#include "number_natural.hpp"

#include <utility>

namespace constrain {

Natural::Natural(uint64_t value) {
  for (; value != 0; value /= kBase) limbs_.push_back(static_cast<uint32_t>(value % kBase));
}

void Natural::trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

Natural Natural::from_digits(std::string_view digits, int64_t zeros) {
  Natural out;
  const size_t total = digits.size() + static_cast<size_t>(zeros);
  out.limbs_.assign((total + 8) / 9, 0);
  uint32_t scale = 1;  // 10^(position % 9)
  size_t position = static_cast<size_t>(zeros);
  for (size_t i = 0; i < position % 9; ++i) scale *= 10;
  for (size_t i = digits.size(); i-- > 0; ++position) {
    if (position % 9 == 0) scale = 1;
    out.limbs_[position / 9] += static_cast<uint32_t>(digits[i] - '0') * scale;
    scale *= 10;
  }
  out.trim();
  return out;
}

std::string Natural::to_digits() const {
  if (limbs_.empty()) return "0";
  std::string out = std::to_string(limbs_.back());
  for (size_t i = limbs_.size() - 1; i-- > 0;) {
    const std::string part = std::to_string(limbs_[i]);
    out.append(9 - part.size(), '0');
    out += part;
  }
  return out;
}

int Natural::compare(const Natural& other) const {
  if (limbs_.size() != other.limbs_.size()) return limbs_.size() < other.limbs_.size() ? -1 : 1;
  for (size_t i = limbs_.size(); i-- > 0;) {
    if (limbs_[i] != other.limbs_[i]) return limbs_[i] < other.limbs_[i] ? -1 : 1;
  }
  return 0;
}

Natural Natural::plus(uint32_t small) const {
  Natural out = *this;
  uint64_t carry = small;
  for (size_t i = 0; carry != 0; ++i) {
    if (i == out.limbs_.size()) out.limbs_.push_back(0);
    carry += out.limbs_[i];
    out.limbs_[i] = static_cast<uint32_t>(carry % kBase);
    carry /= kBase;
  }
  return out;
}

Natural Natural::times(const Natural& other) const {
  Natural out;
  if (is_zero() || other.is_zero()) return out;
  out.limbs_.assign(limbs_.size() + other.limbs_.size(), 0);
  for (size_t i = 0; i < limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < other.limbs_.size() || carry != 0; ++j) {
      uint64_t term = out.limbs_[i + j] + carry;
      if (j < other.limbs_.size()) term += static_cast<uint64_t>(limbs_[i]) * other.limbs_[j];
      out.limbs_[i + j] = static_cast<uint32_t>(term % kBase);
      carry = term / kBase;
    }
  }
  out.trim();
  return out;
}

uint32_t Natural::divide_small(uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs_.size(); i-- > 0;) {
    rest = rest * kBase + limbs_[i];
    limbs_[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  trim();
  return static_cast<uint32_t>(rest);
}

Natural Natural::divided(const Natural& divisor, Natural& remainder) const {
  Natural quotient;
  if (compare(divisor) < 0) {
    remainder = *this;
    return quotient;
  }
  if (divisor.limbs_.size() == 1) {
    quotient = *this;
    remainder = Natural(quotient.divide_small(divisor.limbs_[0]));
    return quotient;
  }
  // Algorithm D: scale so that the divisor's leading limb is at least half the base; then the
  // estimate from two leading limbs is at most two too large.
  const uint32_t factor = kBase / (divisor.limbs_.back() + 1);
  std::vector<uint32_t> u = times(Natural(factor)).limbs_;
  const std::vector<uint32_t> v = divisor.times(Natural(factor)).limbs_;
  const size_t n = v.size();
  u.resize(limbs_.size() + 1, 0);
  const size_t m = u.size() - n;
  quotient.limbs_.assign(m, 0);
  for (size_t j = m; j-- > 0;) {
    const uint64_t top = static_cast<uint64_t>(u[j + n]) * kBase + u[j + n - 1];
    uint64_t q = top / v[n - 1];
    uint64_t r = top % v[n - 1];
    while (q >= kBase || q * v[n - 2] > r * kBase + u[j + n - 2]) {
      --q;
      r += v[n - 1];
      if (r >= kBase) break;
    }
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (size_t i = 0; i < n; ++i) {
      carry += q * v[i];
      int64_t term = static_cast<int64_t>(u[i + j]) - borrow - static_cast<int64_t>(carry % kBase);
      carry /= kBase;
      borrow = term < 0 ? 1 : 0;
      if (term < 0) term += kBase;
      u[i + j] = static_cast<uint32_t>(term);
    }
    int64_t top_term = static_cast<int64_t>(u[j + n]) - borrow - static_cast<int64_t>(carry);
    if (top_term < 0) {  // one too large: add the divisor back
      --q;
      uint64_t add = 0;
      for (size_t i = 0; i < n; ++i) {
        add += static_cast<uint64_t>(u[i + j]) + v[i];
        u[i + j] = static_cast<uint32_t>(add % kBase);
        add /= kBase;
      }
      top_term += static_cast<int64_t>(add);
    }
    u[j + n] = static_cast<uint32_t>(top_term);
    quotient.limbs_[j] = static_cast<uint32_t>(q);
  }
  quotient.trim();
  remainder.limbs_ = std::move(u);
  remainder.trim();
  remainder.divide_small(factor);
  return quotient;
}

Natural Natural::modulo(const Natural& divisor) const {
  Natural remainder;
  divided(divisor, remainder);
  return remainder;
}

Natural Natural::gcd(Natural a, Natural b) {
  while (!b.is_zero()) {
    Natural rest = a.modulo(b);
    a = std::move(b);
    b = std::move(rest);
  }
  return a;
}

int64_t Natural::strip_factor(uint32_t small) {
  int64_t count = 0;
  while (!is_zero()) {
    Natural part = *this;
    if (part.divide_small(small) != 0) break;
    *this = std::move(part);
    ++count;
  }
  return count;
}

}  // namespace constrain
