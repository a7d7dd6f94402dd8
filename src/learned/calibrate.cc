#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/core/statistics.h"
#include "fleetfit/learned/lessons.h"

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
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += outputs[i];
  }
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

/// True over predicted cost, in ln, of the designs that would be chosen at limits spread over the
/// device's range.
void add_excesses(std::span<const double> truth, std::span<const double> predicted,
                  std::span<const double> accuracy, double far, std::vector<double>& excesses) {
  constexpr int kLimits = 16;
  std::vector<double> sorted;
  for (const double value : truth)
    if (!std::isnan(value)) sorted.push_back(std::log(value));
  for (int step = 1; step <= kLimits; ++step) {
    const double limit = *core::quantile(sorted, static_cast<double>(step) / (kLimits + 1));
    std::size_t best = truth.size();
    for (std::size_t i = 0; i < truth.size(); ++i) {
      if (std::isnan(truth[i]) || predicted[i] > limit) continue;
      if (best == truth.size() || accuracy[i] > accuracy[best]) best = i;
    }
    if (best < truth.size()) excesses.push_back((std::log(truth[best]) - predicted[best]) / far);
  }
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

/// Deviation of the members, nine of ten are less.
double usual_spread(std::span<const std::vector<double>> members) {
  std::vector<double> spreads;
  const std::size_t step = std::max<std::size_t>(members[0].size() / 500, 1);
  for (std::size_t i = 0; i < members[0].size(); i += step) {
    std::vector<double> values;
    for (const auto& member : members) values.push_back(member[i]);
    spreads.push_back(values.size() > 1 ? *core::stddev(values) : 0);
  }
  return *core::quantile(spreads, 0.9);
}

struct Findings {
  std::vector<double> excesses;
  std::vector<double> correlations;
  std::vector<double> spreads;
};

void look_at_device(const Model::Parts& parts, const Samples& samples, std::size_t cost,
                    std::size_t device, std::size_t fold,
                    std::span<const std::vector<float>> outputs, std::span<const double> accuracy,
                    const DeviceVector& vector, Findings& findings) {
  std::vector<std::vector<double>> members;
  for (const auto& one : outputs) members.push_back(logs_on(parts.costs[cost], one, vector));
  const auto truth = samples.costs_on(cost, device);
  const auto& unseen = members[std::min(fold, members.size() - 1)];
  // Its distance from the others alone.
  const double distance = vector.distance / std::max(1 - vector.distance, 1e-3);
  const double far = std::clamp(parts.device.unfamiliarity(distance), 0.2, 3.0);
  add_excesses(truth, unseen, accuracy, far, findings.excesses);
  findings.correlations.push_back(rank_correlation(truth, unseen));
  findings.spreads.push_back(usual_spread(members));
}

}  // namespace

void calibrate(Model::Parts& parts, const Samples& samples, std::span<const std::size_t> folds,
               core::ThreadPool& pool) {
  constexpr double kKept = 0.93;  // share of the choices that keep their limit
  constexpr double kLeastSpread = 1e-4;
  const DesignColumns columns(*parts.space);
  const auto accuracy = mean_accuracy(parts, columns, samples.designs, pool);
  const auto devices = read_devices(parts.device, samples);
  if (!devices) return;
  for (std::size_t cost = 0; cost < parts.costs.size(); ++cost) {
    std::vector<std::vector<float>> outputs;
    for (const auto& member : parts.costs[cost].members)
      outputs.push_back(outputs_of(member.network, columns, samples.designs, pool));
    std::vector<Findings> found(devices->size());
    pool.parallel_for(found.size(), [&](std::size_t d) {
      look_at_device(parts, samples, cost, d, folds[d], outputs, accuracy, (*devices)[d], found[d]);
    });
    Findings all;
    for (const auto& one : found) {
      all.excesses.insert(all.excesses.end(), one.excesses.begin(), one.excesses.end());
      all.correlations.push_back(one.correlations[0]);
      all.spreads.push_back(one.spreads[0]);
    }
    auto& model = parts.costs[cost];
    model.margin = std::max(core::quantile(all.excesses, kKept).value_or(0.1), 0.0);
    model.rank_correlation = core::mean(all.correlations).value_or(0);
    model.usual_spread = std::max(core::quantile(all.spreads, 0.9).value_or(0), kLeastSpread);
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
