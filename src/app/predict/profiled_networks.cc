#include "app/predict/profiled_networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/measure/sessions.h"
#include "app/models/model_files.h"
#include "fleetfit/app/measuring.h"
#include "fleetfit/cost/features.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/space/space.h"

namespace fleetfit::app {
namespace {

Status check_choice(const NetworkChoice& networks) {
  if (networks.space.empty() && networks.models.empty()) {
    return fail(ErrorCode::invalid_input,
                "there is no network: name a space and how many samples of it, or model files");
  }
  if (!networks.space.empty() && !networks.models.empty())
    return fail(ErrorCode::invalid_input, "a space and model files do not go together");
  return {};
}

/// Hands over what was measured of one network, or why it is of no use.
Status hand_over(ProfiledNetwork network, const ProfileReceiver& receiver) {
  if (network.record.status == store::MeasurementStatus::failed) {
    receiver.leave_out(fmt::format("{}: {}", network.name, network.record.reason));
    return {};
  }
  return receiver.take(network);
}

class Profiling {
 public:
  Profiling(Workplace& workplace, const ProfileRequest& request, const ProfileReceiver& receiver)
      : workplace_(workplace), request_(request), receiver_(receiver), protocol_(request.protocol) {
    protocol_.operators = true;
  }

  Status run(core::Progress& progress, const std::stop_token& stop) {
    FLEETFIT_ASSIGN(const auto device,
                    identify_device(workplace_, request_.device, request_.stored));
    precision_ = device.device.precision;
    fingerprint_ = device.fingerprint;
    return request_.networks.space.empty() ? of_files(progress, stop) : of_space(progress, stop);
  }

 private:
  Status of_space(core::Progress& progress, const std::stop_token& stop) {
    const auto& networks = request_.networks;
    FLEETFIT_ASSIGN(const auto space, space::find_space(networks.space));
    const DesignsRequest wanted{.space = networks.space,
                                .samples = networks.samples,
                                .first = request_.first,
                                .seed = networks.seed,
                                .devices = {request_.device},
                                .protocol = protocol_,
                                .threads = request_.threads,
                                .sessions = std::nullopt};
    FLEETFIT_ASSIGN(const auto designs,
                    request_.stored ? find_measured_designs(workplace_, wanted, {fingerprint_})
                                    : measure_designs(workplace_, wanted, progress, stop));
    if (stop.stop_requested()) return cancelled();
    if (designs.size() < networks.samples) {
      receiver_.leave_out(fmt::format("{} of {} designs: the store has no profile of them on {}",
                                      networks.samples - designs.size(), networks.samples,
                                      request_.device));
    }
    for (const auto& design : designs) {
      FLEETFIT_TRY(take_design(*space, design));
    }
    return {};
  }

  Status take_design(const space::Space& space, const MeasuredDesign& design) {
    const auto name = fmt::format("design {}", design.number);
    FLEETFIT_ASSIGN(
        const auto graph,
        core::within(name, space.parse(design.record.design.value_or(""))
                               .and_then([&](const auto& choices) { return space.lower(choices); })
                               .and_then([&](graph::Graph made) {
                                 return as_run(std::move(made), precision_);
                               })));
    return hand_over({name, design.record.model_hash, design.number, graph, design.record},
                     receiver_);
  }

  Status of_files(core::Progress& progress, const std::stop_token& stop) {
    // All files once, then all again, so that the sessions of one lie apart.
    for (int session = 0; session < kUsualSessions && !request_.stored; ++session) {
      FLEETFIT_ASSIGN(const auto missing, files_missing());
      if (missing.empty()) break;
      FLEETFIT_TRY(measure_once(missing, progress, stop));
      if (stop.stop_requested()) return cancelled();
    }
    for (const auto& file : request_.networks.models) {
      FLEETFIT_TRY(take_file(file));
    }
    return {};
  }

  /// Those that need another session.
  Result<std::vector<std::filesystem::path>> files_missing() {
    std::vector<std::filesystem::path> missing;
    for (const auto& file : request_.networks.models) {
      FLEETFIT_ASSIGN(const auto sessions, sessions_of(file));
      KnownSessions known{.failed = failed_.contains(file.string())};
      for (const auto& session : sessions) known.add(session);
      if (known.usual_missing(protocol_.target) > 0) missing.push_back(file);
    }
    return missing;
  }

  Status measure_once(const std::vector<std::filesystem::path>& files, core::Progress& progress,
                      const std::stop_token& stop) {
    FLEETFIT_ASSIGN(const auto measured,
                    measure_models(workplace_,
                                   {.models = files,
                                    .options = request_.networks.options,
                                    .devices = {request_.device},
                                    .protocol = one_of_sessions(protocol_, kUsualSessions),
                                    .threads = request_.threads},
                                   progress, stop));
    for (const auto& one : measured) note_failure(one);
    return {};
  }

  void note_failure(const MeasuredModel& measured) {
    if (measured.measurement.status != measure::MeasurementStatus::failed) return;
    failed_.insert(measured.model);
    receiver_.leave_out(fmt::format("{}: {}", measured.model, measured.measurement.reason));
  }

  /// What was measured of a file and has what is needed.
  Result<std::vector<store::MeasurementRecord>> sessions_of(const std::filesystem::path& file) {
    FLEETFIT_ASSIGN(auto files,
                    ModelFiles::open(file, request_.networks.options, request_.threads));
    FLEETFIT_ASSIGN(const auto hash, files.hash());
    FLEETFIT_ASSIGN(auto records, workplace_.store->list_measurements(
                                      {.device_fingerprint = fingerprint_, .model_hash = hash}));
    std::erase_if(records, [&](const auto& record) { return !answers(record, protocol_); });
    return records;
  }

  Status take_file(const std::filesystem::path& file) {
    FLEETFIT_ASSIGN(auto sessions, sessions_of(file));
    if (sessions.empty()) {  // if it was measured it failed, and was noted
      if (request_.stored) {
        receiver_.leave_out(fmt::format("{}: the store has no profile of it on {}", file.string(),
                                        request_.device));
      }
      return {};
    }
    auto record = merge_sessions(std::move(sessions), protocol_.target);
    auto model = graph::import_model(file, import_options(request_.networks.options));
    FLEETFIT_TRY(model);
    FLEETFIT_ASSIGN(auto graph,
                    core::within(file.string(), as_run(std::move(model->graph), precision_)));
    const auto hash = record.model_hash;
    return hand_over({file.string(), hash, std::nullopt, std::move(graph), std::move(record)},
                     receiver_);
  }

  static Status cancelled() {
    return fail(ErrorCode::cancelled, "stopped; what was measured is kept");
  }

  Workplace& workplace_;
  const ProfileRequest& request_;
  const ProfileReceiver& receiver_;
  measure::Protocol protocol_;
  measure::Precision precision_ = measure::Precision::fp32;
  std::string fingerprint_;
  std::set<std::string> failed_;  // files, as they were asked for
};

}  // namespace

Status profile_networks(Workplace& workplace, const ProfileRequest& request,
                        const ProfileReceiver& receiver, core::Progress& progress,
                        const std::stop_token& stop) {
  FLEETFIT_TRY(check_choice(request.networks));
  return Profiling(workplace, request, receiver).run(progress, stop);
}

namespace {

std::vector<cost::ProfileEntry> profile_of(const store::MeasurementRecord& record) {
  std::vector<cost::ProfileEntry> profile;
  for (const auto& op : record.operators)
    profile.push_back({.name = op.name, .type = op.type, .kernel = op.kernel, .ms = op.ms});
  return profile;
}

/// Being profiled costs time, most of it between operators: what is more than the network took by
/// itself is taken from the overhead first, and then from all operators alike.
void fit_into_latency(predict::NetworkSample& sample) {
  double kernels = 0;
  for (const auto& kernel : sample.kernels) kernels += kernel.ms;
  sample.overhead_ms = std::clamp(sample.latency_ms - kernels, 0.0, sample.overhead_ms);
  if (!(kernels > sample.latency_ms)) return;
  for (auto& kernel : sample.kernels) kernel.ms *= sample.latency_ms / kernels;
}

}  // namespace

Result<graph::Graph> as_run(graph::Graph graph, measure::Precision precision) {
  if (precision != measure::Precision::int8) return graph;
  return graph::quantized_for_costs(std::move(graph));
}

Result<predict::NetworkSample> sample_of(const graph::Graph& graph, const cost::KernelRules& rules,
                                         const store::MeasurementRecord& record) {
  if (!record.latency || record.operators.empty())
    return fail(ErrorCode::invalid_input, "was measured without operators");
  FLEETFIT_ASSIGN(auto deduced, cost::deduced_kernels(graph, rules));
  const auto times =
      cost::assign_times(deduced.kernels, cost::match_profile(graph, profile_of(record)));
  predict::NetworkSample sample{.name = record.model_name,
                                .overhead_ms = record.overhead_ms.value_or(0) + times.rest_ms,
                                .latency_ms = record.latency->median_ms};
  for (std::size_t i = 0; i < times.ms.size(); ++i) {
    if (!(times.ms[i] > 0)) continue;  // it ran as a part of another, or too shortly to be seen
    sample.kernels.push_back({.features = std::move(deduced.features[i]), .ms = times.ms[i]});
  }
  if (sample.kernels.empty())
    return fail(ErrorCode::invalid_input, "its profile names no node of it");
  fit_into_latency(sample);
  return sample;
}

}  // namespace fleetfit::app
