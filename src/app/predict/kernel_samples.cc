#include "app/predict/kernel_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/models/model_files.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::app {
namespace {

std::vector<cost::ProfileEntry> profile_of(const store::MeasurementRecord& record) {
  std::vector<cost::ProfileEntry> profile;
  for (const auto& op : record.operators)
    profile.push_back({.name = op.name, .type = op.type, .kernel = op.kernel, .ms = op.ms});
  return profile;
}

std::string name_of(const graph::Graph& graph, const cost::Kernel& kernel) {
  std::vector<std::string_view> names;
  for (const int node : kernel.nodes)
    names.push_back(graph.nodes[static_cast<std::size_t>(node)].name);
  return fmt::format("{}", fmt::join(names, "+"));
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
  if (precision != measure::Precision::int8 || graph::is_quantized(graph)) return graph;
  auto prepared = graph::prepare_for_quantization(std::move(graph));
  if (!prepared) return prepared;
  const auto ranges = graph::guessed_ranges(*prepared);
  // How many scales weights have changes no cost.
  return graph::quantize(*std::move(prepared), ranges, {.per_channel = false, .only_costs = true});
}

Result<DeducedKernels> deduced_kernels(const graph::Graph& graph, const cost::KernelRules& rules) {
  auto plan = cost::deduce_kernels(graph, rules);
  FLEETFIT_TRY(plan);
  FLEETFIT_ASSIGN(auto features, cost::features_of(graph, plan->kernels));
  DeducedKernels deduced{.kernels = std::move(plan->kernels), .features = std::move(features)};
  for (const auto& kernel : deduced.kernels) deduced.names.push_back(name_of(graph, kernel));
  return deduced;
}

Result<predict::NetworkSample> sample_of(const graph::Graph& graph, const cost::KernelRules& rules,
                                         const store::MeasurementRecord& record) {
  if (!record.latency || record.operators.empty())
    return fail(ErrorCode::invalid_input, "was measured without operators");
  auto deduced = deduced_kernels(graph, rules);
  FLEETFIT_TRY(deduced);
  const auto times =
      cost::assign_times(deduced->kernels, cost::match_profile(graph, profile_of(record)));
  predict::NetworkSample sample{.name = record.model_name,
                                .overhead_ms = record.overhead_ms.value_or(0) + times.rest_ms,
                                .latency_ms = record.latency->median_ms};
  for (std::size_t i = 0; i < times.ms.size(); ++i) {
    if (!(times.ms[i] > 0)) continue;  // it ran as a part of another, or too shortly to be seen
    sample.kernels.push_back({.features = std::move(deduced->features[i]), .ms = times.ms[i]});
  }
  if (sample.kernels.empty())
    return fail(ErrorCode::invalid_input, "its profile names no node of it");
  fit_into_latency(sample);
  return sample;
}

}  // namespace fleetfit::app
