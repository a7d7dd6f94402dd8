#include "predict/model_fields.h"

#include <fmt/format.h>

namespace fleetfit::predict {

Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::string_view key,
                                              std::size_t length) {
  FLEETFIT_ASSIGN(const auto list, json.at(key));
  return numbers_of_length(list, length);
}

Result<std::vector<double>> numbers_of_length(const core::JsonView& json, std::size_t length) {
  auto numbers = json.as_numbers();
  if (!numbers || numbers->size() == length) return numbers;
  return json.error(fmt::format("expected {} numbers, found {}", length, numbers->size()));
}

Status check_kind(const core::JsonView& json, const DocumentKind& kind) {
  FLEETFIT_ASSIGN(const auto found, json.text("type"));
  if (found != kind.type) {
    return json.at("type")->error(fmt::format(R"(expected "{}", found "{}")", kind.type, found));
  }
  FLEETFIT_ASSIGN(const auto number, json.integer("version"));
  if (number < 1 || number > kind.version) {
    return json.at("version")->error(
        fmt::format("version {} of {} is not known; this program reads up to {}", number, kind.type,
                    kind.version));
  }
  return {};
}

}  // namespace fleetfit::predict
