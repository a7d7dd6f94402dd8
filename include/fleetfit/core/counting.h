#pragma once

#include <concepts>
#include <numeric>
#include <vector>

namespace fleetfit::core {

/// `count` whole numbers from `first` on: the places of things that are to be put in order.
template <std::integral Number>
std::vector<Number> counting(Number count, Number first = 0) {
  std::vector<Number> numbers(static_cast<std::vector<Number>::size_type>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

}  // namespace fleetfit::core
