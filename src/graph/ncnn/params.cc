#include "graph/ncnn/params.h"

#include <fmt/format.h>

#include <cmath>

namespace fleetfit::graph::ncnn {
namespace {

bool is_whole(double number) { return std::nearbyint(number) == number; }

}  // namespace

std::int64_t Params::integer(const IntegerKey& key) {
  const auto found = values_.find(key.id);
  if (found == values_.end()) return key.fallback;
  const auto& param = found->second;
  const auto number = param.numbers.empty() ? 0.5 : param.numbers.front();
  if (param.is_array || !is_whole(number)) {
    keep(fmt::format("parameter {} ({}) is no whole number", key.id, key.name));
    return key.fallback;
  }
  if (number < static_cast<double>(key.low) || number > static_cast<double>(key.high)) {
    keep(fmt::format("parameter {} ({}) is {}, which is not in {}..{}", key.id, key.name, number,
                     key.low, key.high));
    return key.fallback;
  }
  return static_cast<std::int64_t>(number);
}

bool Params::flag(int id, std::string_view name, std::int64_t fallback) {
  return integer({.id = id,
                  .name = name,
                  .fallback = fallback,
                  .low = std::numeric_limits<std::int32_t>::min()}) != 0;
}

float Params::number(int id, std::string_view name, float fallback) {
  const auto found = values_.find(id);
  if (found == values_.end()) return fallback;
  const auto& param = found->second;
  const auto largest = static_cast<double>(std::numeric_limits<float>::max());
  if (param.is_array || param.numbers.empty() || std::abs(param.numbers.front()) > largest) {
    keep(fmt::format("parameter {} ({}) is no 32-bit number", id, name));
    return fallback;
  }
  return static_cast<float>(param.numbers.front());
}

std::vector<std::int64_t> Params::by_axis(int spatial, IntegerKey key) {
  const auto width = integer(key);
  if (spatial == 1) return {width};
  key.id += 10;
  key.fallback = width;
  return {integer(key), width};
}

std::vector<std::int64_t> Params::integers(int id, std::string_view name) {
  std::vector<std::int64_t> result;
  for (const auto number : numbers(id)) {
    if (!is_whole(number) || std::abs(number) > std::numeric_limits<std::int32_t>::max()) {
      keep(fmt::format("parameter {} ({}) holds {}, which is no 32-bit whole number", id, name,
                       number));
      return {};
    }
    result.push_back(static_cast<std::int64_t>(number));
  }
  return result;
}

std::vector<double> Params::numbers(int id) {
  const auto found = values_.find(id);
  return found == values_.end() ? std::vector<double>{} : found->second.numbers;
}

void Params::keep(std::string message) {
  if (status_) status_ = fail(ErrorCode::invalid_input, std::move(message));
}

}  // namespace fleetfit::graph::ncnn
