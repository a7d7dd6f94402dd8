// A predictor held against measurements of its device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/predict/profiled_networks.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/predict/graph_pricing.h"
#include "fleetfit/space/space.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kCandidates = 200;  // designs that are looked at for advice
constexpr std::size_t kDesignsAdvised = 3;
constexpr std::size_t kKindsAdvised = 3;

struct KindErrors {
  int kernels = 0;
  double errors = 0;  // sum of relative ones
  double ms = 0;      // measured
};

class Evaluating {
 public:
  explicit Evaluating(const predict::GraphPricing& pricing) : pricing_(pricing) {
    evaluation_.predictor = pricing.identity();
  }

  Status take(const ProfiledNetwork& network) {
    FLEETFIT_ASSIGN(const auto predicted, pricing_.price(network.graph, network.name));
    evaluation_.networks.push_back({.name = network.name,
                                    .measured_ms = network.record.latency->median_ms,
                                    .predicted_ms = predicted.latency_ms,
                                    .interval90 = predicted.interval90,
                                    .unpriced = predicted.unpriced.size()});
    for (const auto& kernel : predicted.unpriced) ++guessed_[kernel.kind];
    return take_kernels(network);
  }

  void leave_out(std::string reason) { evaluation_.left_out.push_back(std::move(reason)); }

  Result<Evaluation> finish() {
    if (evaluation_.networks.empty()) {
      const auto& reasons = evaluation_.left_out;
      return fail(ErrorCode::invalid_input, "there are no networks to test on" +
                                                (reasons.empty() ? "" : ": " + reasons.front()));
    }
    summarize_networks();
    summarize_kinds();
    advise_on_kinds();
    return std::move(evaluation_);
  }

 private:
  Status take_kernels(const ProfiledNetwork& network) {
    FLEETFIT_ASSIGN(
        const auto sample,
        core::within(network.name, sample_of(network.graph, pricing_.rules(), network.record)));
    std::vector<cost::KernelFeatures> features;
    for (const auto& kernel : sample.kernels) features.push_back(kernel.features);
    FLEETFIT_ASSIGN(const auto price,
                    core::within(network.name, pricing_.predictor().price(features)));
    for (std::size_t i = 0; i < features.size(); ++i) {
      auto& kind = kinds_[features[i].kind];
      const double ms = sample.kernels[i].ms;
      ++kind.kernels;
      kind.errors += std::abs(price.kernels[i].ms / ms - 1);
      kind.ms += ms;
    }
    return {};
  }

  template <class Holds>
  double share_of_networks(const Holds& holds) const {
    const auto count = std::ranges::count_if(evaluation_.networks, holds);
    return static_cast<double>(count) / static_cast<double>(evaluation_.networks.size());
  }

  void summarize_networks() {
    double errors = 0;
    for (const auto& network : evaluation_.networks) errors += std::abs(network.error());
    evaluation_.mape = 100 * errors / static_cast<double>(evaluation_.networks.size());
    const auto within = [&](double limit) {
      return share_of_networks([&](const auto& n) { return std::abs(n.error()) <= limit; });
    };
    evaluation_.within_5pct = within(0.05);
    evaluation_.within_10pct = within(0.10);
    evaluation_.coverage90 = share_of_networks([](const auto& n) {
      return n.interval90.low <= n.measured_ms && n.measured_ms <= n.interval90.high;
    });
  }

  void summarize_kinds() {
    double all = 0;
    for (const auto& [name, kind] : kinds_) all += kind.ms;
    for (const auto& [name, kind] : kinds_) {
      evaluation_.kinds.push_back({.kind = name,
                                   .kernels = kind.kernels,
                                   .mape = 100 * kind.errors / kind.kernels,
                                   .share = kind.ms / all});
    }
    std::ranges::stable_sort(evaluation_.kinds, std::ranges::greater(), &EvaluatedKind::share);
  }

  /// Time that is priced badly is where more measurements gain most.
  void advise_on_kinds() {
    auto kinds = evaluation_.kinds;
    std::ranges::stable_sort(kinds, std::ranges::greater(),
                             [](const EvaluatedKind& k) { return k.share * k.mape; });
    for (std::size_t i = 0; i < std::min(kKindsAdvised, kinds.size()); ++i) {
      const auto& kind = kinds[i];
      const auto guessed = guessed_.find(kind.kind);
      evaluation_.advice.push_back(fmt::format(
          "{}: {:.0f} % of the time, priced with an error of {:.1f} %{}; networks with other such "
          "kernels would tell most",
          kind.kind, 100 * kind.share, kind.mape,
          guessed == guessed_.end() ? ""
                                    : fmt::format(", {} of them by a guess", guessed->second)));
    }
  }

  const predict::GraphPricing& pricing_;
  Evaluation evaluation_;
  std::map<std::string, KindErrors> kinds_;
  std::map<std::string, int> guessed_;
};

double relative_width(const predict::PredictedModel& model) {
  return (model.interval90.high - model.interval90.low) / 2 / model.latency_ms;
}

/// Designs that the predictor knows least of, out of those that come next.
Result<std::vector<std::string>> advise_on_designs(const predict::GraphPricing& pricing,
                                                   std::size_t measured) {
  const auto& known = pricing.identity().trained_on;
  std::vector<std::string> advice;
  if (known.space.empty()) return advice;
  FLEETFIT_ASSIGN(const auto space, space::find_space(known.space));
  const std::size_t first = known.first + known.designs + measured;
  const auto designs =
      space::sample_designs(*space, {.seed = known.seed, .first = first, .count = kCandidates});
  if (!designs) return advice;  // the space has not as many
  std::vector<std::pair<double, std::size_t>> widths;
  for (std::size_t i = 0; i < designs->size(); ++i) {
    FLEETFIT_ASSIGN(auto graph, space->lower((*designs)[i]));
    FLEETFIT_ASSIGN(const auto priced,
                    pricing.price(std::move(graph), fmt::format("design {}", first + i)));
    widths.emplace_back(relative_width(priced), first + i);
  }
  std::ranges::sort(widths, std::ranges::greater());
  for (std::size_t i = 0; i < std::min(kDesignsAdvised, widths.size()); ++i) {
    advice.push_back(
        fmt::format("design {1} has the widest interval of the next {2} (± {0:.0f} %): fleetfit "
                    "measure --space "
                    "{3} --first {1} --samples 1 --ops --device {4}",
                    100 * widths[i].first, widths[i].second, kCandidates, known.space,
                    pricing.identity().device));
  }
  return advice;
}

/// Without other wishes the designs after those of the training.
std::size_t first_design(const predict::TrainedOn& known, const NetworkChoice& networks) {
  if (networks.first) return *networks.first;
  const bool same = known.space == networks.space && known.seed == networks.seed;
  return same ? known.first + known.designs : 0;
}

/// A network that it was trained with is no test of it.
bool was_seen(const predict::TrainedOn& known, const NetworkChoice& networks,
              const ProfiledNetwork& network) {
  if (std::ranges::find(known.models, network.hash) != known.models.end()) return true;
  if (!network.design || known.space != networks.space || known.seed != networks.seed) return false;
  return *network.design >= known.first && *network.design < known.first + known.designs;
}

}  // namespace

Result<Evaluation> evaluate_predictor(Workplace& workplace, const EvaluatePredictorRequest& request,
                                      core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto pricing, predict::GraphPricing::open(request.predictor));
  const auto& identity = pricing.identity();
  if (identity.fingerprint.empty()) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{}: stands for a device that exists on paper alone; there is nothing to "
                    "measure",
                    request.predictor.string()));
  }
  FLEETFIT_TRY(check_predictor(workplace, request.predictor, identity.device, request.stored));
  Evaluating evaluating(pricing);
  const ProfileReceiver receiver{
      .take = [&](const ProfiledNetwork& network) -> Status {
        if (!was_seen(identity.trained_on, request.networks, network))
          return evaluating.take(network);
        evaluating.leave_out(fmt::format("{}: the predictor was trained with it", network.name));
        return {};
      },
      .leave_out = [&](std::string reason) { evaluating.leave_out(std::move(reason)); }};
  const ProfileRequest profile{.device = identity.device,
                               .networks = request.networks,
                               .first = first_design(identity.trained_on, request.networks),
                               .protocol = request.protocol,
                               .threads = request.threads,
                               .stored = request.stored};
  FLEETFIT_TRY(profile_networks(workplace, profile, receiver, progress, stop));
  auto evaluation = evaluating.finish();
  if (!evaluation) return evaluation;
  FLEETFIT_ASSIGN(auto advice, advise_on_designs(pricing, request.networks.samples));
  std::ranges::move(advice, std::back_inserter(evaluation->advice));
  if (!request.plot.empty()) {
    const auto page = prediction_page(*evaluation, pricing.predictor());
    FLEETFIT_TRY(core::write_file(request.plot, page));
  }
  return evaluation;
}

core::Fields fields_of(const EvaluatedKind*) {
  static constexpr core::Field kAll[] = {core::field<&EvaluatedKind::kind>("type"),
                                         FLEETFIT_MEMBERS(EvaluatedKind, kernels, mape, share)};
  return {.all = kAll};
}

core::Fields fields_of(const EvaluatedNetwork*) {
  static constexpr core::Field kAll[] = {
      core::field<&EvaluatedNetwork::name>("model"),
      FLEETFIT_MEMBERS(EvaluatedNetwork, measured_ms, predicted_ms, interval90, unpriced)};
  return {.all = kAll};
}

core::Fields fields_of(const Evaluation*) {
  static constexpr core::Field kAll[] = {
      core::computed("models", [](const Evaluation& all) { return all.networks.size(); }),
      core::field<&Evaluation::predictor, &predict::Identity::device>("device"),
      core::field<&Evaluation::predictor, &predict::Identity::method>("method"),
      FLEETFIT_MEMBERS(Evaluation, mape, within_5pct, within_10pct, coverage90),
      core::field<&Evaluation::kinds>("per_type"),
      FLEETFIT_MEMBERS(Evaluation, networks, left_out, advice)};
  return {.all = kAll};
}

}  // namespace fleetfit::app
