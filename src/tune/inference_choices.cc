#include "tune/inference_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace fleetfit::tune {
namespace {

constexpr std::size_t kMostBatches = 4096;
constexpr std::size_t kMostOthers = 10;
constexpr std::size_t kShortList = 6;
constexpr std::int64_t kLargest = 1 << 20;

std::optional<std::int64_t> whole(const Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<double>(&value); number && std::trunc(*number) == *number)
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

Status check_numbers(const Parameter& parameter) {
  const auto good = [](std::int64_t number) { return number >= 1 && number <= kLargest; };
  if (parameter.is_choice()) {
    const bool all = std::ranges::all_of(parameter.values, [&](const Value& value) {
      const auto number = whole(value);
      return number && good(*number);
    });
    if (!all) return refuse(parameter, "has to be whole numbers from 1");
    return {};
  }
  if (!parameter.integer || parameter.low < 1 || parameter.high > static_cast<double>(kLargest))
    return refuse(parameter, "has to be a range of whole numbers from 1, with integer: true");
  return {};
}

Status check_precision(const Parameter& parameter) {
  const auto known = [](const Value& value) {
    const auto* name = std::get_if<std::string>(&value);
    return name != nullptr && (*name == "fp32" || *name == "int8");
  };
  if (parameter.is_choice() && std::ranges::all_of(parameter.values, known)) return {};
  return refuse(parameter, "has to be values out of fp32 and int8");
}

/// Whole numbers of a range: all if there are few, else evenly spread ones.
std::vector<std::int64_t> numbers_of(const Parameter& parameter, std::size_t most) {
  std::set<std::int64_t> numbers;
  if (parameter.is_choice()) {
    for (const auto& value : parameter.values) numbers.insert(whole(value).value_or(1));
  } else {
    const double count = std::min(parameter.high - parameter.low + 1, static_cast<double>(most));
    for (double i = 0; i < count; ++i) {
      const double share = count > 1 ? i / (count - 1) : 0;
      numbers.insert(std::llround(std::lerp(parameter.low, parameter.high, share)));
    }
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<std::optional<std::int64_t>> optional_numbers(const Parameters& parameters,
                                                          std::string_view name) {
  const auto index = parameters.find(name);
  if (!index) return {std::nullopt};
  const auto numbers = numbers_of(parameters.all()[*index], kMostOthers);
  return {numbers.begin(), numbers.end()};
}

std::vector<std::optional<std::string>> precisions_of(const Parameters& parameters) {
  const auto index = parameters.find("precision");
  if (!index) return {std::nullopt};
  std::vector<std::optional<std::string>> names;
  for (const auto& value : parameters.all()[*index].values)
    names.emplace_back(std::get<std::string>(value));
  return names;
}

std::vector<std::int64_t> batches_of(const InferenceStudy& study) {
  if (study.scenario.kind == ScenarioKind::single) return {1};
  const auto index = study.parameters.find("batch_size");
  if (!index) return {1};
  auto batches = numbers_of(study.parameters.all()[*index], kMostBatches);
  if (study.scenario.kind != ScenarioKind::server) return batches;
  // A batch that holds a whole query does not become better by being larger.
  const auto enough = std::ranges::lower_bound(batches, study.scenario.samples);
  if (enough != batches.end()) batches.erase(enough + 1, batches.end());
  return batches;
}

}  // namespace

Status check_inference_parameters(const Parameters& parameters) {
  for (const auto& parameter : parameters.all()) {
    if (parameter.when) return refuse(parameter, "inference takes no conditions");
    const bool number =
        parameter.name == "batch_size" || parameter.name == "cores" || parameter.name == "threads";
    if (!number && parameter.name != "precision")
      return refuse(parameter, "inference has batch_size, cores, threads and precision");
    if (auto ok = number ? check_numbers(parameter) : check_precision(parameter); !ok) return ok;
  }
  return {};
}

InferenceChoices choices_of(const InferenceStudy& study) {
  return {.batches = batches_of(study),
          .cores = optional_numbers(study.parameters, "cores"),
          .threads = optional_numbers(study.parameters, "threads"),
          .precisions = precisions_of(study.parameters)};
}

InferenceSetting setting_of(const Parameters& parameters, std::span<const double> point) {
  InferenceSetting setting;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& parameter = parameters.all()[i];
    if (parameter.name == "precision") {
      setting.precision =
          std::get<std::string>(parameter.values[static_cast<std::size_t>(point[i])]);
      continue;
    }
    const auto number =
        parameter.is_choice()
            ? whole(parameter.values[static_cast<std::size_t>(point[i])]).value_or(1)
            : std::llround(point[i]);
    if (parameter.name == "batch_size") setting.batch = number;
    if (parameter.name == "cores") setting.cores = number;
    if (parameter.name == "threads") setting.threads = number;
  }
  return setting;
}

std::vector<std::int64_t> first_batches(std::span<const std::int64_t> batches) {
  if (batches.size() <= kShortList) return {batches.begin(), batches.end()};
  std::set<std::int64_t> chosen = {batches.front(), batches.back()};
  for (std::int64_t power = 1; power < batches.back(); power *= 2) {
    if (power <= batches.front()) continue;
    const auto above = std::ranges::lower_bound(batches, power);
    const auto below = above - 1;
    chosen.insert(*above - power <= power - *below ? *above : *below);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace fleetfit::tune
