#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/app/models.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/measure/protocol.h"
#include "fleetfit/predict/graph_pricing.h"
#include "fleetfit/predict/operator_predictor.h"

/// Use cases of predicting: how long a network takes on a device, without the device.
namespace fleetfit::app {

/// Networks whose measured times are wanted: designs of a space, or model files.
struct NetworkChoice {
  std::string space = {};   ///< "": the files
  std::size_t samples = 0;  ///< how many designs
  /// Number of the first one. None: 0 for training, and those after the training for a test.
  std::optional<std::size_t> first = std::nullopt;
  std::uint64_t seed = 1;  ///< of the designs
  std::vector<std::filesystem::path> models = {};
  ModelOptions options = {};  ///< of the files
};

struct TrainPredictorRequest {
  std::string device = {};
  predict::Method method = predict::Method::automatic;
  NetworkChoice networks = {};
  measure::Protocol protocol =
      {};  ///< for what was not measured yet; operators are always asked for
  std::filesystem::path output = {};
  std::uint64_t seed = 1;  ///< of the training
  int threads = 1;
  /// Measure nothing and do with what the store has of the device as it was added: it need not be
  /// here. Networks that it has no profile of are left out.
  bool stored = false;
};

/// What is reported of a predictor that was trained.
struct TrainedPredictor {
  std::filesystem::path output = {};
  predict::Identity identity = {};
  struct Kind {
    std::string kind = {};
    std::string method = {};
    std::string settings = {};
    int samples = 0;
    double mape = 0;   ///< in percent, in cross-validation
    double share = 0;  ///< of all time
  };
  std::vector<Kind> kinds = {};
  double mape = 0;  ///< of whole networks, in percent, in cross-validation
  predict::Overhead overhead = {};
  predict::ShortNetworks short_networks = {};
  /// Networks that could not be used, each with the reason.
  std::vector<std::string> left_out = {};
};
core::Fields fields_of(const TrainedPredictor*);

/// Measures what was not measured yet (`measure_designs`, `measure_models`), trains, and writes the
/// predictor's file. Fails as these do, with `cancelled` when stopped while measuring (what was
/// measured is kept, and the next call goes on), and with `invalid_input` if too few networks can
/// be used.
Result<TrainedPredictor> train_predictor(Workplace& workplace, const TrainPredictorRequest& request,
                                         core::Progress& progress, const std::stop_token& stop);

struct Predictions {
  predict::Identity predictor = {};
  std::vector<predict::PredictedModel> models = {};
};

/// How long these models take on the predictor's device. `device`, if not empty, is the name of one
/// that the predictor must be made for; else `invalid_input`. A float model is priced as quantized
/// by a predictor of int8.
struct PredictRequest {
  std::filesystem::path predictor = {};
  std::vector<std::filesystem::path> models = {};
  ModelOptions options = {};
};
Result<Predictions> predict_models(const PredictRequest& request);

/// Refuses, by name, a predictor that was not made for this device as it is now, or, `stored`, as
/// it was added.
Status check_predictor(Workplace& workplace, const std::filesystem::path& predictor,
                       const std::string& device, bool stored = false);

struct EvaluatePredictorRequest {
  std::filesystem::path predictor = {};
  /// Of a space: designs that the predictor was not trained with.
  NetworkChoice networks = {};
  measure::Protocol protocol = {};
  std::filesystem::path plot = {};  ///< an HTML page to write; may be empty
  int threads = 1;
  bool stored = false;  ///< as in training
};

struct EvaluatedNetwork {
  std::string name = {};
  double measured_ms = 0;
  double predicted_ms = 0;
  core::Interval interval90 = {};
  std::size_t unpriced = 0;

  double error() const { return predicted_ms / measured_ms - 1; }
};

/// Errors of a kind of kernels, over all of its kernels that ran.
struct EvaluatedKind {
  std::string kind = {};
  int kernels = 0;
  double mape = 0;   ///< in percent
  double share = 0;  ///< of all measured time
};

struct Evaluation {
  predict::Identity predictor = {};
  std::vector<EvaluatedNetwork> networks = {};
  double mape = 0;  ///< in percent
  double within_5pct = 0;
  double within_10pct = 0;
  double coverage90 = 0;  ///< share of networks whose time lies in its interval
  std::vector<EvaluatedKind> kinds = {};
  std::vector<std::string> left_out = {};
  std::vector<std::string> advice = {};  ///< what to measure next, most worth first
};
core::Fields fields_of(const Evaluation*);

/// Holds a predictor against its device: measures what was not measured yet. Fails if the device
/// is not the one that it was made for.
Result<Evaluation> evaluate_predictor(Workplace& workplace, const EvaluatePredictorRequest& request,
                                      core::Progress& progress, const std::stop_token& stop);

nlohmann::ordered_json to_json(const Predictions& predictions);

/// A page of HTML: predicted against measured, errors by kind of kernel, what prices depend on,
/// what to measure next.
std::string prediction_page(const Evaluation& evaluation,
                            const predict::KernelPredictor& predictor);

}  // namespace fleetfit::app
