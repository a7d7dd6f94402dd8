#include "fleetfit/app/inference_tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/device_variants.h"
#include "app/measure/model_session.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/graph/batch.h"
#include "fleetfit/predict/graph_pricing.h"

namespace fleetfit::app {
namespace {

constexpr std::string_view kPredictor = "predictor:";
// Of a normal distribution: half widths of the intervals of 95 % and of 90 %.
constexpr double kHalf95 = 1.960;
constexpr double kHalf90 = 1.645;
// Much of the time is rest, which is cut short so that measuring ends; longer ones were not tried.
constexpr double kRhythmTime = 3;
constexpr double kLongestPauseMs = 50;

std::optional<std::filesystem::path> predictor_file(std::string_view device) {
  if (!device.starts_with(kPredictor)) return std::nullopt;
  return std::filesystem::path(device.substr(kPredictor.size()));
}

tune::InferenceCost cost_of(const measure::Measurement& measurement) {
  const auto& latency = *measurement.latency;
  tune::InferenceCost cost{.cost = {.latency_ms = latency.median_ms,
                                    .spread = tune::RunSpread{.mean_ms = latency.mean_ms,
                                                              .p90_ms = latency.p90_ms,
                                                              .p99_ms = latency.p99_ms}},
                           .spread_ms = (latency.ci95_ms.high - latency.ci95_ms.low) / 2};
  if (measurement.energy) {
    cost.cost.energy_mj = measurement.energy->mj;
    cost.energy_source = to_string(measurement.energy->source);
  }
  if (measurement.status == measure::MeasurementStatus::unstable)
    cost.note = "unstable: " + measurement.reason;
  return cost;
}

measure::Protocol protocol_for(double seconds, const std::optional<tune::Rhythm>& rhythm) {
  if (!rhythm) return measure::protocol_within(seconds);
  auto protocol = measure::protocol_within(kRhythmTime * seconds);
  protocol.min_time_s = protocol.max_time_s / 2;
  protocol.request_ms = std::min(rhythm->busy_ms, protocol.request_ms);
  protocol.pause_ms = std::min(rhythm->pause_ms, kLongestPauseMs);
  return protocol;
}

/// Measures a network on variants of a device.
class DevicePricing {
 public:
  DevicePricing(Workplace& workplace, const InferenceRequest& request, const BatchedModel& model,
                const std::stop_token& stop)
      : workplace_(workplace),
        request_(request),
        model_(model),
        stop_(stop),
        choices_(workplace),
        power_(request.power ? *request.power : measure::assumed_power()) {}

  Status open(const std::string& name) {
    auto opened = open_device(workplace_, name);
    FLEETFIT_TRY(opened);
    FLEETFIT_ASSIGN(auto hardware, measure::read_hardware());
    device_ = std::move(opened->device);
    hardware_ = std::move(hardware);
    return {};
  }

  Result<tune::InferenceCost> price(const tune::InferenceSetting& setting,
                                    const std::optional<tune::Rhythm>& rhythm) {
    const auto protocol = protocol_for(request_.seconds, rhythm);
    FLEETFIT_ASSIGN(const auto variant, variant_of(device_, hardware_, setting));
    FLEETFIT_ASSIGN(auto files, model_.files(setting.batch, request_.threads));
    FLEETFIT_ASSIGN(auto opened, start_device(variant, workplace_.programs,
                                              measure::answers_within(protocol.max_time_s)));
    std::vector<OpenedDevice> devices;
    devices.push_back(std::move(opened));
    FLEETFIT_ASSIGN(const auto measured,
                    measure_on_devices(workplace_, {protocol, power_, choices_}, files,
                                       std::move(devices), stop_));
    const auto& measurement = measured.front().measurement;
    if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "measuring was stopped");
    if (!measurement.latency) return fail(ErrorCode::device_failed, measurement.reason);
    return cost_of(measurement);
  }

 private:
  Workplace& workplace_;
  const InferenceRequest& request_;
  const BatchedModel& model_;
  const std::stop_token& stop_;
  KernelChoices choices_;
  std::optional<measure::PowerModel> power_;
  measure::Device device_;
  measure::Hardware hardware_;
};

Status check_setting(const predict::Identity& identity, const tune::InferenceSetting& setting) {
  if (setting.cores || setting.threads) {
    return fail(ErrorCode::unsupported,
                "a predictor knows only the cores and threads that it was made for");
  }
  if (setting.precision && *setting.precision != identity.precision) {
    return fail(ErrorCode::unsupported, fmt::format("the predictor is made for {}, not for {}",
                                                    identity.precision, *setting.precision));
  }
  return {};
}

Result<tune::InferenceCost> predict_cost(const predict::GraphPricing& pricing,
                                         const BatchedModel& model,
                                         const tune::InferenceSetting& setting) {
  FLEETFIT_TRY(check_setting(pricing.identity(), setting));
  FLEETFIT_ASSIGN(auto graph, graph::with_batch(model.graph, setting.batch));
  FLEETFIT_ASSIGN(const auto priced, pricing.price(std::move(graph), model.name));
  if (!priced.unpriced.empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("the predictor cannot price {} of its kernels, {} the first",
                            priced.unpriced.size(), priced.unpriced.front().kind));
  }
  const auto& interval = priced.interval90;
  return tune::InferenceCost{.cost = {.latency_ms = priced.latency_ms},
                             .spread_ms = (interval.high - interval.low) / 2 * kHalf95 / kHalf90,
                             .predicted = true};
}

/// Tells the progress of each price.
tune::PriceInference told(tune::PriceInference price, core::ProgressTask& task) {
  return [price = std::move(price), &task](const tune::InferenceSetting& setting,
                                           const std::optional<tune::Rhythm>& rhythm) {
    auto cost = price(setting, rhythm);
    task.advance();
    return cost;
  };
}

/// Which network is asked for on which device.
struct Question {
  const InferenceRequest& request;
  const BatchedModel& model;
  const std::string& device;
};

Result<tune::InferenceResult> find_answer(Workplace& workplace, const Question& question,
                                          core::Progress& progress, const std::stop_token& stop) {
  const auto& [request, model, device] = question;
  core::ProgressTask task(
      progress, {.name = "inference of " + model.name + " on " + device, .unit = "settings"});
  const tune::InferenceTuning tuning{
      .study = request.study, .algorithm = request.algorithm, .seed = request.seed};
  if (const auto file = predictor_file(device)) {
    FLEETFIT_ASSIGN(const auto pricing, predict::GraphPricing::open(*file));
    const auto price = [&](const tune::InferenceSetting& setting, const auto& /*rhythm*/) {
      return predict_cost(pricing, question.model, setting);
    };
    return tune::tune_inference(tuning, told(price, task), stop);
  }
  DevicePricing pricing(workplace, request, model, stop);
  FLEETFIT_TRY(pricing.open(device));
  const auto price = [&](const tune::InferenceSetting& setting,
                         const std::optional<tune::Rhythm>& rhythm) {
    return pricing.price(setting, rhythm);
  };
  return tune::tune_inference(tuning, told(price, task), stop);
}

Status keep(Workplace& workplace, const InferenceRequest& request, const DeviceInference& found) {
  return workplace.store->studies().save_inference(
      {.structure = found.structure,
       .device_fingerprint = found.fingerprint,
       .question = tune::question_key(request.study, request.algorithm),
       .device = found.device,
       .result = tune::to_json(found.result).dump(),
       .failed = !found.result.best.has_value(),
       .elapsed_s = found.result.elapsed_s,
       .study = request.study_name,
       .found = std::chrono::floor<std::chrono::milliseconds>(workplace.clock.date())});
}

nlohmann::ordered_json best_json(const DeviceInference& inference) {
  const auto& result = inference.result;
  if (!result.best) return nullptr;
  const auto& best = result.trials[*result.best];
  const auto& cost = *best.cost;
  nlohmann::ordered_json json = {{"params", tune::to_json(best.setting)},
                                 {"latency_ms", cost.cost.latency_ms},
                                 {"spread_ms", cost.spread_ms},
                                 {"source", cost.predicted ? "predicted" : "measured"},
                                 {"throughput", best.response.throughput},
                                 {"capacity", best.response.capacity()},
                                 {"response", core::to_json(best.response)}};
  if (best.response.energy_mj)
    json["energy_mj"] = {{"value", *best.response.energy_mj}, {"source", cost.energy_source}};
  if (!cost.note.empty()) json["note"] = cost.note;
  return json;
}

}  // namespace

core::Fields fields_of(const DeviceInference*) {
  using Inference = DeviceInference;
  constexpr auto kResult = &Inference::result;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Inference, device, fingerprint, structure, known),
      core::written_field<Inference, best_json>("best"),
      core::computed("priced", [](const Inference& one) { return one.result.trials.size(); }),
      core::field<kResult, &tune::InferenceResult::settings>("settings"),
      core::field<kResult, &tune::InferenceResult::elapsed_s>("elapsed_s"),
      core::computed("trials",
                     [](const Inference& one) { return tune::to_json(one.result).at("trials"); })};
  return {.all = kAll};
}

Result<std::string> structure_of_model(const std::filesystem::path& model,
                                       const ModelOptions& options) {
  return BatchedModel::open(model, options).map([](const BatchedModel& opened) {
    return opened.structure;
  });
}

Result<std::string> inference_fingerprint(Workplace& workplace, const std::string& device) {
  if (const auto file = predictor_file(device)) {
    FLEETFIT_ASSIGN(const auto mapped, core::MappedFile::open(*file));
    const auto bytes = mapped.bytes();
    return std::string(kPredictor) +
           core::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return open_device(workplace, device).map([](const OpenedDevice& opened) {
    return opened.fingerprint;
  });
}

Result<std::optional<DeviceInference>> find_inference(Workplace& workplace,
                                                      const std::string& structure,
                                                      const std::string& device,
                                                      const std::string& fingerprint,
                                                      const std::string& question) {
  FLEETFIT_ASSIGN(const auto record,
                  workplace.store->studies().find_inference(structure, fingerprint, question));
  if (!record || record->failed) return std::nullopt;
  FLEETFIT_ASSIGN(const auto json,
                  core::parse_json(record->result, "inference result in the store"));
  auto result = tune::inference_result_from_json(core::JsonView(json, "inference result"));
  if (!result) return std::nullopt;  // of another version: found again
  return DeviceInference{.device = device,
                         .fingerprint = fingerprint,
                         .structure = structure,
                         .result = *std::move(result),
                         .known = true};
}

Result<DeviceInference> tune_inference_on(Workplace& workplace, const InferenceRequest& request,
                                          const std::string& device, core::Progress& progress,
                                          const std::stop_token& stop) {
  FLEETFIT_TRY(tune::check_inference_parameters(request.study.parameters));
  FLEETFIT_ASSIGN(const auto model, BatchedModel::open(request.model, request.options));
  FLEETFIT_ASSIGN(auto fingerprint, inference_fingerprint(workplace, device));
  if (request.known == KnownAnswers::use) {
    FLEETFIT_ASSIGN(const auto known,
                    find_inference(workplace, model.structure, device, fingerprint,
                                   tune::question_key(request.study, request.algorithm)));
    if (known) return *known;
  }
  FLEETFIT_ASSIGN(auto result, find_answer(workplace, {request, model, device}, progress, stop));
  DeviceInference found{.device = device,
                        .fingerprint = std::move(fingerprint),
                        .structure = model.structure,
                        .result = std::move(result)};
  FLEETFIT_TRY(keep(workplace, request, found));
  return found;
}

}  // namespace fleetfit::app
