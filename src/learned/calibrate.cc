#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "fleetfit/core/statistics.h"
#include "fleetfit/learned/lessons.h"
#include "learned/rehearsal.h"

namespace fleetfit::learned {
namespace {

/// Outputs of a network for all designs, row by row.
std::vector<float> outputs_of(const DesignNetwork& network, const DesignColumns& columns,
                              space::DesignBatch designs, core::ThreadPool& pool) {
  constexpr std::size_t kChunk = 512;
  const std::size_t width = network.outputs();
  std::vector<float> outputs(designs.size() * width);
  pool.parallel_chunks(designs.size(), kChunk, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> room(columns.most_taken());
    std::vector<float> scratch;
    for (std::size_t i = begin; i < end; ++i) {
      const auto taken = std::span(room).first(columns.taken(designs[i], room));
      network.apply(taken, std::span(outputs).subspan(i * width, width), scratch);
    }
  });
  return outputs;
}

std::vector<double> mean_accuracy(const Model::Parts& parts, const DesignColumns& columns,
                                  space::DesignBatch designs, core::ThreadPool& pool) {
  std::vector<double> sums(designs.size());
  for (const auto& member : parts.accuracy.members) {
    const auto outputs = outputs_of(member, columns, designs, pool);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += parts.accuracy.of(outputs[i]);
  }
  for (double& sum : sums) sum /= static_cast<double>(parts.accuracy.members.size());
  return sums;
}

/// What one member says of all designs on a device, in ln.
std::vector<double> logs_on(const CostModel& cost, std::span<const float> outputs,
                            const DeviceVector& device) {
  const std::size_t width = device.inputs.size() + 1;
  std::vector<double> logs(outputs.size() / width);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    double number = outputs[i * width];
    for (std::size_t k = 0; k + 1 < width; ++k)
      number += outputs[i * width + k + 1] * device.inputs[k];
    logs[i] = device.level + cost.offset + cost.scale * number;
  }
  return logs;
}

double rank_correlation(std::span<const double> truth, std::span<const double> predicted) {
  std::vector<double> a;
  std::vector<double> b;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isnan(truth[i])) continue;
    a.push_back(truth[i]);
    b.push_back(predicted[i]);
  }
  return core::spearman(a, b).value_or(0);
}

}  // namespace

void calibrate(Model::Parts& parts, const Samples& samples, std::span<const std::size_t> folds,
               double ridge, core::ThreadPool& pool) {
  const DesignColumns columns(*parts.space);
  const auto accuracy = mean_accuracy(parts, columns, samples.designs, pool);
  const auto devices = read_devices(parts.device, samples);
  if (!devices) return;
  for (std::size_t cost = 0; cost < parts.costs.size(); ++cost) {
    auto& model = parts.costs[cost];
    std::vector<double> correlations(devices->size());
    std::vector<std::vector<float>> outputs;
    for (const auto& member : model.members)
      outputs.push_back(outputs_of(member.network, columns, samples.designs, pool));
    pool.parallel_for(devices->size(), [&](std::size_t d) {
      const auto& unseen = outputs[std::min(folds[d], outputs.size() - 1)];
      correlations[d] =
          rank_correlation(samples.costs_on(cost, d), logs_on(model, unseen, (*devices)[d]));
    });
    model.rank_correlation = core::mean(correlations).value_or(0);
    auto trust = rehearse(samples, cost, *devices, folds,
                          {.ridge = ridge, .noise = model.noise, .accuracy = accuracy});
    model.margin = trust.margin;
    model.risk = std::move(trust.risk);
    model.usual_spread = trust.usual_spread;
  }
}

void fill_in_typical(Model::Parts& parts, std::uint64_t seed) {
  constexpr std::size_t kDesigns = 500;
  const DesignColumns columns(*parts.space);
  core::Random random = core::Random(seed).split("typical");
  space::Population designs(parts.space->genes().size(), kDesigns);
  for (std::size_t i = 0; i < kDesigns; ++i) parts.space->sample(random, designs[i]);
  core::ThreadPool alone(1);
  for (auto& cost : parts.costs) {
    for (auto& member : cost.members) {
      const auto outputs = outputs_of(member.network, columns, designs, alone);
      const std::size_t width = member.network.outputs();
      std::vector<double> sums(width);
      for (std::size_t i = 0; i < outputs.size(); ++i) sums[i % width] += outputs[i];
      member.typical.clear();
      for (const double sum : sums)
        member.typical.push_back(static_cast<float>(sum / static_cast<double>(kDesigns)));
    }
  }
}

}  // namespace fleetfit::learned
