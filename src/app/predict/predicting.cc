#include "fleetfit/app/predicting.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/opened_device.h"
#include "app/models/model_files.h"
#include "app/predict/profiled_networks.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/predict/dense_network.h"
#include "fleetfit/predict/graph_pricing.h"
#include "fleetfit/report/words.h"

namespace fleetfit::app {
namespace {

/// What the predictor knows of the device that it stands for.
Result<predict::Identity> identity_of(Workplace& workplace, const TrainPredictorRequest& request) {
  FLEETFIT_ASSIGN(const auto found, identify_device(workplace, request.device, request.stored));
  const auto& device = found.device;
  predict::Identity identity{
      .device = device.name,
      .fingerprint = found.fingerprint,
      .runtime = fmt::format("{} {}", device.runtime_info.name, device.runtime_info.version),
      .precision = std::string(measure::to_string(device.precision)),
      .rules = rules_of_device(device),
      .date = report::today(workplace.clock)};
  identity.trained_on.space = request.networks.space;
  if (!request.networks.space.empty()) {
    identity.trained_on.seed = request.networks.seed;
    identity.trained_on.first = request.networks.first.value_or(0);
    identity.trained_on.designs = request.networks.samples;
  }
  return identity;
}

TrainedPredictor summary_of(const predict::OperatorPredictor& predictor,
                            const std::filesystem::path& output) {
  TrainedPredictor trained{.output = output,
                           .identity = predictor.identity(),
                           .mape = predictor.network_mape(),
                           .overhead = predictor.overhead(),
                           .short_networks = predictor.short_networks()};
  for (const auto& kind : predictor.kinds()) {
    trained.kinds.push_back({.kind = kind.kind,
                             .method = kind.method,
                             .settings = kind.settings,
                             .samples = kind.samples,
                             .mape = kind.mape,
                             .share = kind.share});
  }
  std::ranges::stable_sort(trained.kinds, std::ranges::greater(), &TrainedPredictor::Kind::share);
  return trained;
}

// Measuring takes long: who will not be able to write the result should learn it before.
Status check_folder(const std::filesystem::path& output) {
  const auto folder = output.parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("{}: there is no folder {}", output.string(), folder.string()));
}

}  // namespace

Result<TrainedPredictor> train_predictor(Workplace& workplace, const TrainPredictorRequest& request,
                                         core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_TRY(check_folder(request.output));
  FLEETFIT_ASSIGN(auto identity, identity_of(workplace, request));
  FLEETFIT_ASSIGN(const auto rules, cost::KernelRules::named(identity.rules));
  std::vector<predict::NetworkSample> samples;
  std::vector<std::string> left_out;
  const ProfileReceiver receiver{
      .take = [&](const ProfiledNetwork& network) -> Status {
        FLEETFIT_ASSIGN(auto sample, core::within(network.name,
                                                  sample_of(network.graph, rules, network.record)));
        sample.name = network.name;
        samples.push_back(std::move(sample));
        if (request.networks.space.empty()) identity.trained_on.models.push_back(network.hash);
        return {};
      },
      .leave_out = [&](std::string reason) { left_out.push_back(std::move(reason)); }};
  const ProfileRequest profile{.device = request.device,
                               .networks = request.networks,
                               .first = request.networks.first.value_or(0),
                               .protocol = request.protocol,
                               .threads = request.threads,
                               .stored = request.stored};
  FLEETFIT_TRY(profile_networks(workplace, profile, receiver, progress, stop));
  if (samples.empty() && !left_out.empty()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("there are no networks to learn from: {}", left_out.front()));
  }
  predict::TrainOptions options{
      .method = request.method, .identity = std::move(identity), .seed = request.seed};
  // Only where it is asked for: it takes long, and a program that may not be installed.
  if (request.method == predict::Method::mlp) options.fit_mlp = predict::fit_mlp({.stop = stop});
  core::ThreadPool pool(request.threads);
  FLEETFIT_ASSIGN(const auto predictor, predict::train_operator_predictor(samples, options, pool));
  FLEETFIT_TRY(predict::write_kernel_predictor(request.output, predictor));
  auto trained = summary_of(predictor, request.output);
  trained.left_out = std::move(left_out);
  return trained;
}

Result<Predictions> predict_models(const PredictRequest& request) {
  FLEETFIT_ASSIGN(const auto pricing, predict::GraphPricing::open(request.predictor));
  Predictions predictions{.predictor = pricing.identity()};
  for (const auto& file : request.models) {
    auto model = graph::import_model(file, import_options(request.options));
    FLEETFIT_TRY(model);
    FLEETFIT_ASSIGN(auto priced, pricing.price(std::move(model->graph), file.string()));
    predictions.models.push_back(std::move(priced));
  }
  return predictions;
}

Status check_predictor(Workplace& workplace, const std::filesystem::path& predictor,
                       const std::string& device, bool stored) {
  FLEETFIT_ASSIGN(const auto read, predict::read_kernel_predictor(predictor));
  FLEETFIT_ASSIGN(const auto found, identify_device(workplace, device, stored));
  return predict::check_fits(
      read->identity(), {.device = device,
                         .fingerprint = found.fingerprint,
                         .precision = std::string(measure::to_string(found.device.precision))});
}

core::Fields fields_of(const TrainedPredictor::Kind*) {
  using Kind = TrainedPredictor::Kind;
  static constexpr core::Field kAll[] = {
      core::field<&Kind::kind>("type"),
      FLEETFIT_MEMBERS(Kind, method, settings, samples, mape, share)};
  return {.all = kAll};
}

core::Fields fields_of(const TrainedPredictor*) {
  using Trained = TrainedPredictor;
  using predict::Identity;
  static constexpr core::Field kAll[] = {
      core::computed("output", [](const Trained& trained) { return trained.output.string(); }),
      core::field<&Trained::identity, &Identity::device>("device"),
      core::field<&Trained::identity, &Identity::fingerprint>("device_fingerprint"),
      core::field<&Trained::identity, &Identity::runtime>("runtime"),
      core::field<&Trained::identity, &Identity::precision>("precision"),
      core::field<&Trained::identity, &Identity::method>("method"),
      core::field<&Trained::identity, &Identity::networks>("networks"),
      core::field<&Trained::mape>("cross_validation_mape"),
      core::field<&Trained::overhead, &predict::Overhead::network_ms>("overhead_ms"),
      core::field<&Trained::overhead, &predict::Overhead::kernel_ms>("overhead_per_kernel_ms"),
      core::computed("short_networks",
                     [](const Trained& trained) -> nlohmann::ordered_json {
                       const auto& law = trained.short_networks;
                       if (law.power <= 0)
                         return nullptr;  // none are faster than their kernels suggest
                       return {{"below_ms", law.below_ms},
                               {"least_factor", law.factor(law.least_ms)}};
                     }),
      core::field<&Trained::kinds>("per_type"),
      FLEETFIT_MEMBERS(Trained, left_out)};
  return {.all = kAll};
}

namespace {

using Json = nlohmann::ordered_json;

Json ends(const core::Interval& interval) { return {interval.low, interval.high}; }

Json kernel_json(const predict::PricedKernel& kernel) {
  return {{"name", kernel.name},
          {"kernel", kernel.kind},
          {"latency_ms", kernel.ms},
          {"interval90", ends(kernel.interval90)}};
}

Json unpriced_json(const predict::PredictedModel& model, const predict::Unpriced& unpriced) {
  const auto& kernel = model.kernels[unpriced.kernel];
  return {{"name", kernel.name},         {"kernel", unpriced.kind},
          {"latency_ms", kernel.ms},     {"reason", unpriced.reason},
          {"nearest", unpriced.nearest}, {"nearest_ms", unpriced.nearest_ms}};
}

Json model_json(const Predictions& predictions, const predict::PredictedModel& model) {
  auto ops = core::json_list(model.kernels, kernel_json);
  auto unpriced =
      core::json_list(model.unpriced, [&](const auto& one) { return unpriced_json(model, one); });
  return {{"model", model.model},
          {"device", predictions.predictor.device},
          {"source", "predicted"},
          {"method", predictions.predictor.method},
          {"latency_ms", model.latency_ms},
          {"interval90", ends(model.interval90)},
          {"overhead_ms", model.overhead_ms},
          {"ops", std::move(ops)},
          {"unpriced", std::move(unpriced)}};
}

}  // namespace

nlohmann::ordered_json to_json(const Predictions& predictions) {
  return core::json_list(predictions.models,
                         [&](const auto& model) { return model_json(predictions, model); });
}

}  // namespace fleetfit::app
