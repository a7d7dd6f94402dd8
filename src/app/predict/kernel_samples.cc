#include "app/predict/kernel_samples.h"

#include <algorithm>
#include <utility>

#include "fleetfit/cost/features.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::app {
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
