#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "fleetfit/tune/trial_process.h"

/// The words of the trial protocol.
namespace fleetfit::tune {

/// The document that a trial finds in FLEETFIT_TRIAL. Fails with `invalid_input` if the parameters
/// are no JSON.
Result<std::string> trial_document(const TrialJob& job);

/// {"model": "file.onnx"}
struct ModelMessage {
  std::string file = {};
};
/// {"progress": "half of the images"}
struct ProgressMessage {
  std::string text = {};
};
/// {"result": {…}}
struct ResultMessage {
  double accuracy = 0;
  std::optional<double> loss = std::nullopt;
  std::map<std::string, double> other = {};
  std::string model_file = {};
};
/// One that has the key of a message and is none.
struct WrongMessage {
  std::string reason = {};
};
/// Everything else: a line of its log.
struct LogLine {};

using TrialMessage =
    std::variant<LogLine, EpochReport, ModelMessage, ProgressMessage, ResultMessage, WrongMessage>;

/// Never fails. NaN and infinities, which are no JSON but which programs print, are numbers that
/// are missing.
TrialMessage parse_trial_line(std::string_view line);

}  // namespace fleetfit::tune
