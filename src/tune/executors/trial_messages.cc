#include "tune/executors/trial_messages.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/core/plausible.h"
#include "fleetfit/core/program.h"

namespace fleetfit::tune {
namespace {

// Outside of texts.
std::string without_special_numbers(std::string_view line) {
  constexpr std::array<std::string_view, 5> kNumbers = {"-Infinity", "+Infinity", "Infinity", "NaN",
                                                        "-NaN"};
  std::string result;
  bool in_text = false;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) in_text = !in_text;
    std::size_t skipped = 0;
    for (const auto number : kNumbers)
      if (!in_text && line.substr(i).starts_with(number)) skipped = number.size();
    result += skipped > 0 ? std::string("null") : std::string(1, line[i]);
    i += skipped > 0 ? skipped : 1;
  }
  return result;
}

std::optional<nlohmann::json> parse_object(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || line[begin] != '{') return std::nullopt;
  auto document = core::parse_json(line, "line");
  if (!document) document = core::parse_json(without_special_numbers(line), "line");
  if (!document || !document->is_object()) return std::nullopt;
  return *std::move(document);
}

std::optional<double> finite_number(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return core::is_within_reason(value) ? std::optional(value) : std::nullopt;
}

// Of an object that has nothing else.
std::optional<std::string> only_text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string() || object.size() != 1) return std::nullopt;
  return found->get<std::string>();
}

TrialMessage read_result(const nlohmann::json& result) {
  if (!result.is_object()) return WrongMessage{"its result is no JSON object"};
  const auto accuracy = finite_number(result, "accuracy");
  if (!accuracy)
    return WrongMessage{result.contains("accuracy")
                            ? "its result's accuracy is not a finite number within ±1e100"
                            : "its result has no accuracy"};
  ResultMessage message{.accuracy = *accuracy, .loss = finite_number(result, "loss")};
  const auto model = result.find("model");
  if (model != result.end() && !model->is_null()) {
    if (!model->is_string()) return WrongMessage{"its result's model is no text"};
    message.model_file = model->get<std::string>();
  }
  for (const auto& [key, value] : result.items()) {
    if (key == "accuracy" || key == "loss") continue;
    if (const auto number = finite_number(result, key.c_str())) message.other[key] = *number;
  }
  return message;
}

}  // namespace

Result<std::string> trial_document(const TrialJob& job) {
  FLEETFIT_ASSIGN(auto params,
                  core::parse_json(job.params, fmt::format("trial {}: parameters", job.trial)));
  return core::format_json_line(
      {{"study", job.study},
       {"trial", job.trial},
       {"params", std::move(params)},
       {"budget", {{"epochs", job.budget.epochs}, {"data_fraction", job.budget.data_fraction}}},
       {"checkpoint_dir", job.checkpoint_folder.string()},
       {"resume", job.resume},
       {"seed", job.seed}});
}

TrialMessage parse_trial_line(std::string_view line) {
  const auto document = parse_object(line);
  if (!document) return LogLine{};
  if (const auto result = document->find("result"); result != document->end())
    return read_result(*result);
  const auto epoch = document->find("epoch");
  if (epoch != document->end() && epoch->is_number_integer())
    return EpochReport{.epoch = epoch->get<std::int64_t>(),
                       .accuracy = finite_number(*document, "accuracy"),
                       .loss = finite_number(*document, "loss")};
  if (auto model = only_text(*document, "model")) return ModelMessage{*std::move(model)};
  auto progress = only_text(*document, "progress");
  if (progress && progress->size() <= kLongestProgress)
    return ProgressMessage{core::one_line(*std::move(progress))};
  return LogLine{};
}

}  // namespace fleetfit::tune
