#include "predict/model_fields.h"

#include <fmt/format.h>

#include <numeric>

namespace fleetfit::predict {

Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::string_view key,
                                              std::size_t length) {
  auto numbers = json.numbers(key);
  if (!numbers || numbers->size() == length) return numbers;
  return json.at(key)->error(fmt::format("expected {} numbers, found {}", length, numbers->size()));
}

std::vector<double> shares_of_sum(std::vector<double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum > 0)
    for (double& v : values) v /= sum;
  return values;
}

}  // namespace fleetfit::predict
