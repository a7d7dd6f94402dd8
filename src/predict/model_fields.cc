#include "predict/model_fields.h"

#include <fmt/format.h>

namespace fleetfit::predict {

Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::string_view key,
                                              std::size_t length) {
  auto numbers = json.numbers(key);
  if (!numbers || numbers->size() == length) return numbers;
  return json.at(key)->error(fmt::format("expected {} numbers, found {}", length, numbers->size()));
}

}  // namespace fleetfit::predict
