#include "train/subnet_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fleetfit/cost/cost.h"

namespace fleetfit::train {
namespace {

// Beyond it, one way is sure to be taken as long as shares differ by a hundredth.
constexpr double kMostTilt = 4000;
constexpr int kBisections = 40;

struct Work {
  double macs = 0;
  double layers = 0;
};

Result<Work> work_of(const graph::Graph& graph) {
  FLEETFIT_ASSIGN(auto cost, cost::count_cost(graph));
  const auto multiplies = [](const std::optional<cost::NodeCost>& node) {
    return node && node->flops > 0;
  };
  const auto layers = std::ranges::count_if(cost.nodes, multiplies);
  return Work{.macs = static_cast<double>(cost.total.flops), .layers = static_cast<double>(layers)};
}

/// log(exp(a) + exp(b)) without overflow.
double log_sum(double a, double b) {
  const double high = std::max(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

}  // namespace

Result<SubnetSampler> SubnetSampler::create(const elastic::Supernet& supernet) {
  SubnetSampler sampler;
  Work total;
  for (const auto& block : supernet.blocks) {
    auto& ways = sampler.ways_.emplace_back();
    for (const auto& branch : block.branches) {
      FLEETFIT_ASSIGN(const auto work, work_of(branch.graph));
      ways.push_back({.span = branch.span, .macs = work.macs, .layers = work.layers});
    }
    total.macs += ways.front().macs;
    total.layers += ways.front().layers;
  }
  if (total.macs <= 0)
    return refuse(fmt::format("{}: it has no multiply-accumulates", supernet.name));
  for (auto& ways : sampler.ways_) {
    for (auto& way : ways) {
      way.macs /= total.macs;
      way.layers /= total.layers;
    }
  }
  sampler.least_ = sampler.look_ahead(-kMostTilt).mean_cost;
  sampler.most_ = sampler.look_ahead(kMostTilt).mean_cost;
  return sampler;
}

double SubnetSampler::mac_share(const SubnetPath& path) const {
  double share = 0;
  for (const auto& step : path) share += ways_[step.block][step.branch].macs;
  return share;
}

double SubnetSampler::cost(const SubnetPath& path) const {
  double cost = 0;
  for (const auto& step : path) cost += ways_[step.block][step.branch].cost();
  return cost;
}

SubnetPath SubnetSampler::original() const {
  SubnetPath path;
  for (std::size_t b = 0; b < ways_.size(); ++b) path.push_back({.block = b});
  return path;
}

bool SubnetSampler::is_original(const SubnetPath& path) {
  return std::ranges::all_of(path, [](const elastic::BranchId& step) { return step.branch == 0; });
}

SubnetSampler::Ahead SubnetSampler::look_ahead(double tilt) const {
  const std::size_t blocks = ways_.size();
  Ahead ahead{.log_ways = std::vector<double>(blocks + 1)};
  std::vector<double> mean(blocks + 1);
  for (std::size_t b = blocks; b-- > 0;) {
    double sum = -std::numeric_limits<double>::infinity();
    for (const auto& way : ways_[b])
      sum = log_sum(sum, tilt * way.cost() + ahead.log_ways[b + way.span]);
    for (const auto& way : ways_[b]) {
      const double probability = std::exp(tilt * way.cost() + ahead.log_ways[b + way.span] - sum);
      mean[b] += probability * (way.cost() + mean[b + way.span]);
    }
    ahead.log_ways[b] = sum;
  }
  ahead.mean_cost = mean.front();
  return ahead;
}

SubnetPath SubnetSampler::draw_tilted(double tilt, core::Random& random) const {
  const auto ahead = look_ahead(tilt);
  SubnetPath path;
  for (std::size_t b = 0; b < ways_.size();) {
    const auto& ways = ways_[b];
    double left = random.uniform();
    std::size_t taken = 0;
    for (; taken + 1 < ways.size(); ++taken) {
      left -= std::exp(tilt * ways[taken].cost() + ahead.log_ways[b + ways[taken].span] -
                       ahead.log_ways[b]);
      if (left < 0) break;
    }
    path.push_back({.block = b, .branch = taken});
    b += ways[taken].span;
  }
  return path;
}

double SubnetSampler::tilt_for(double cost) const {
  double low = -kMostTilt;
  double high = kMostTilt;
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2;
    (look_ahead(middle).mean_cost < cost ? low : high) = middle;
  }
  return (low + high) / 2;
}

SubnetPath SubnetSampler::draw_near(double cost, core::Random& random) const {
  return draw_tilted(tilt_for(std::clamp(cost, least_, most_)), random);
}

std::vector<SubnetPath> SubnetSampler::draw_spread(std::size_t count, core::Random& random) const {
  std::vector<SubnetPath> paths;
  for (std::size_t i = 0; i < count; ++i) {
    const double part = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.5;
    paths.push_back(draw_near(least_ + part * (most_ - least_), random));
  }
  return paths;
}

}  // namespace fleetfit::train
