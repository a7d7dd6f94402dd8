#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fleetfit::space {

/// How many designs there are: a whole number of any size, exact.
class DesignCount {
 public:
  DesignCount(std::uint64_t value = 0);  // NOLINT(google-explicit-constructor): it is a number

  DesignCount& operator+=(const DesignCount& other);
  DesignCount& operator*=(std::uint64_t factor);
  DesignCount& operator*=(const DesignCount& other);

  std::string decimal() const;
  double log10() const;  ///< minus infinity for 0
  double approximate() const;
  /// Nothing if it needs more than 64 bits.
  std::optional<std::uint64_t> exact() const;

  bool operator==(const DesignCount&) const = default;

 private:
  void drop_leading_zeros();

  std::vector<std::uint32_t> digits_;  // to the base 10^9, the lowest first; none for 0
};

DesignCount operator+(DesignCount a, const DesignCount& b);
DesignCount operator*(DesignCount a, const DesignCount& b);

}  // namespace fleetfit::space
