#include "fleetfit/space/design_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fleetfit::space {
namespace {

constexpr std::uint64_t kBase = 1'000'000'000;

}  // namespace

DesignCount::DesignCount(std::uint64_t value) {
  for (; value > 0; value /= kBase) digits_.push_back(static_cast<std::uint32_t>(value % kBase));
}

DesignCount& DesignCount::operator+=(const DesignCount& other) {
  digits_.resize(std::max(digits_.size(), other.digits_.size()) + 1);
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < digits_.size(); ++i) {
    carry += digits_[i];
    if (i < other.digits_.size()) carry += other.digits_[i];
    digits_[i] = static_cast<std::uint32_t>(carry % kBase);
    carry /= kBase;
  }
  drop_leading_zeros();
  return *this;
}

DesignCount& DesignCount::operator*=(std::uint64_t factor) { return *this *= DesignCount(factor); }

DesignCount& DesignCount::operator*=(const DesignCount& other) {
  std::vector<std::uint32_t> product(digits_.size() + other.digits_.size() + 1);
  for (std::size_t i = 0; i < digits_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; i + j < product.size(); ++j) {
      carry += product[i + j];
      if (j < other.digits_.size()) carry += std::uint64_t{digits_[i]} * other.digits_[j];
      product[i + j] = static_cast<std::uint32_t>(carry % kBase);
      carry /= kBase;
    }
  }
  digits_ = std::move(product);
  drop_leading_zeros();
  return *this;
}

void DesignCount::drop_leading_zeros() {
  while (!digits_.empty() && digits_.back() == 0) digits_.pop_back();
}

std::string DesignCount::decimal() const {
  if (digits_.empty()) return "0";
  std::string text = std::to_string(digits_.back());
  for (std::size_t i = digits_.size() - 1; i-- > 0;) text += fmt::format("{:09}", digits_[i]);
  return text;
}

double DesignCount::log10() const {
  // The three highest digits hold more than a double does.
  double head = 0;
  const std::size_t used = std::min<std::size_t>(3, digits_.size());
  for (std::size_t i = 0; i < used; ++i)
    head = head * static_cast<double>(kBase) + digits_[digits_.size() - 1 - i];
  return std::log10(head) + 9.0 * static_cast<double>(digits_.size() - used);
}

double DesignCount::approximate() const {
  double value = 0;
  for (std::size_t i = digits_.size(); i-- > 0;)
    value = value * static_cast<double>(kBase) + digits_[i];
  return value;
}

std::optional<std::uint64_t> DesignCount::exact() const {
  std::uint64_t value = 0;
  for (std::size_t i = digits_.size(); i-- > 0;) {
    if (value > (std::numeric_limits<std::uint64_t>::max() - digits_[i]) / kBase)
      return std::nullopt;
    value = value * kBase + digits_[i];
  }
  return value;
}

DesignCount operator+(DesignCount a, const DesignCount& b) { return a += b; }
DesignCount operator*(DesignCount a, const DesignCount& b) { return a *= b; }

}  // namespace fleetfit::space
