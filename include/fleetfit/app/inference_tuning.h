#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/models.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/energy.h"
#include "fleetfit/study/place.h"
#include "fleetfit/tune/inference.h"

/// Use cases of inference tuning: how a network is best run on a device, what is known of it, and a
/// real run that confirms it. docs/inference-tuning.md.
namespace fleetfit::app {

enum class KnownAnswers : std::uint8_t { use, replace };

struct InferenceRequest {
  std::filesystem::path model = {};
  ModelOptions options = {};  ///< the batch does not matter
  tune::InferenceStudy study = {};
  tune::SamplerKind algorithm = tune::SamplerKind::grid;
  std::uint64_t seed = 1;
  double seconds = 1;  ///< of measuring, for each setting
  int threads = 1;     ///< for preparing models
  /// Of a busy core, for machines without a sensor; nothing: `measure::assumed_power`.
  std::optional<measure::PowerModel> power = std::nullopt;
  std::string study_name = {};  ///< for which it is found; may be ""
  KnownAnswers known = KnownAnswers::use;
};

/// The answer for one device.
struct DeviceInference {
  std::string device = {};       ///< its name, or `predictor:FILE`
  std::string fingerprint = {};  ///< of the device, or of the predictor's file
  std::string structure = {};    ///< graph::structure_id of the network, for one sample
  tune::InferenceResult result = {};
  bool known = false;  ///< found earlier, and taken from the store
};
/// {"device", "structure", "known", "best": {"params", "latency_ms", "response", …} or null,
/// "priced", "settings", "elapsed_s", "trials": […]}
core::Fields fields_of(const DeviceInference*);

/// Identity of the network in a file, whatever its weights and its batch. Fails as importing does.
Result<std::string> structure_of_model(const std::filesystem::path& model,
                                       const ModelOptions& options = {});

/// What stands for a device in the historical data base: its fingerprint as it is now, or that of
/// the predictor's file. Starts the device's runtime once. Fails as opening either does.
Result<std::string> inference_fingerprint(Workplace& workplace, const std::string& device);

/// The answer that the store has; nothing if it has none or only one that failed.
Result<std::optional<DeviceInference>> find_inference(Workplace& workplace,
                                                      const std::string& structure,
                                                      const std::string& device,
                                                      const std::string& fingerprint,
                                                      const std::string& question);

/// Takes the answer from the store or finds it: measures the network, with the weights that it has,
/// as each setting asks for (a variant of the device with as many of its cores and threads), or
/// asks the predictor; and keeps it. A setting that cannot be tried is a trial with a reason.
///
/// Fails on a model or device that cannot be opened, if the device has changed since it was added,
/// if the store cannot be written, and with `cancelled`.
Result<DeviceInference> tune_inference_on(Workplace& workplace, const InferenceRequest& request,
                                          const std::string& device, core::Progress& progress,
                                          const std::stop_token& stop);

struct ConfirmRequest {
  std::filesystem::path model = {};
  ModelOptions options = {};
  std::string device = {};  ///< no predictor
  tune::Scenario scenario = {};
  tune::InferenceResult result = {};  ///< has a best setting
  double seconds = 10;
  std::uint64_t seed = 1;
  int threads = 1;  ///< for preparing models
  std::optional<measure::PowerModel> power = std::nullopt;
};

/// The recommended setting in a real run.
struct ConfirmedInference {
  std::string device = {};
  tune::Scenario scenario = {};
  tune::InferenceSetting setting = {};
  tune::Response expected = {};
  tune::Response real = {};
  std::string energy_source = {};          ///< of `real`: "measured", "modelled" or ""
  std::vector<std::int64_t> batches = {};  ///< that were loaded; others ran as the next larger one
  std::vector<std::string> notes = {};

  /// Of the mean response (offline: of the throughput): 0.1 = expected 10 % more than it is.
  double error() const;
};
core::Fields fields_of(const ConfirmedInference*);

/// Serves the scenario for some seconds as the best setting says: the engine in a process of its
/// own that has all batches loaded; other runtimes with a process for each batch, the time of their
/// messages included. Fails as opening and running the device do, and with `invalid_input` on a
/// predictor or a result without a best setting.
Result<ConfirmedInference> confirm_inference(Workplace& workplace, const ConfirmRequest& request,
                                             core::Progress& progress, const std::stop_token& stop);

/// What the hidden verb `infer serve` does for `confirm_inference`: reads a plan, says when it is
/// ready, serves on request, and says what it saw. One JSON document on each line.
Status serve_inference_plan(std::istream& in, std::ostream& out);

/// The recommendation of the best trial of a study, confirmed on each of its devices that is no
/// predictor. `not_found` if there is no such study, or nothing to confirm in it yet.
struct ConfirmStudyRequest {
  std::string study = {};
  double seconds = 10;
  int threads = 1;
};
Result<std::vector<ConfirmedInference>> confirm_study(Workplace& workplace,
                                                      const ConfirmStudyRequest& request,
                                                      core::Progress& progress,
                                                      const std::stop_token& stop);

/// What the studies of a workplace work with: their inference is tuned on its devices. Borrows it.
study::StudyPlace study_place(Workplace& workplace);

/// A page that shows how response, throughput and energy depend on the batch, and the
/// recommendation; `confirmed` may be empty.
std::string inference_page(std::string_view model, const tune::InferenceStudy& study,
                           const std::vector<DeviceInference>& inferences,
                           const std::vector<ConfirmedInference>& confirmed);

}  // namespace fleetfit::app
