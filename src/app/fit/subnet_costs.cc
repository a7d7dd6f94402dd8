#include "app/fit/subnet_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "fleetfit/cost/cost.h"
#include "fleetfit/predict/graph_pricing.h"

namespace fleetfit::app {
namespace {

using adapt::BranchNumbers;
using adapt::LatencyTable;
using elastic::SubnetSpace;
using elastic::Supernet;

/// A predictor has no error of sums of its own; that of operator-wise predictors is about this.
constexpr double kPredictorErrorPercent = 5;
/// From a mean error to the range of nine of ten, if errors are normal.
constexpr double kNineTenthsOfMeanError = 2.06;

/// Sums of a branch that devices pay for.
constexpr std::array<std::pair<const char*, double (*)(const cost::NodeCost&)>, 3> kSums = {
    {{"multiply-accumulates", [](const cost::NodeCost& c) { return static_cast<double>(c.flops); }},
     {"weights", [](const cost::NodeCost& c) { return static_cast<double>(c.weight_bytes); }},
     {"activations", [](const cost::NodeCost& c) {
        return static_cast<double>(c.input_bytes) + static_cast<double>(c.output_bytes);
      }}}};

/// The totals of every branch, by model, block and branch.
Result<std::vector<std::vector<std::vector<cost::NodeCost>>>> branch_costs(
    const std::vector<Supernet>& models) {
  std::vector<std::vector<std::vector<cost::NodeCost>>> all;
  for (const auto& model : models) {
    auto& blocks = all.emplace_back();
    for (const auto& block : model.blocks) {
      auto& branches = blocks.emplace_back();
      for (const auto& branch : block.branches) {
        FLEETFIT_ASSIGN(const auto counted, cost::count_cost(branch.graph));
        branches.push_back(counted.total);
      }
    }
  }
  return all;
}

/// As many random subnets as are asked for, or all if there are fewer.
Result<space::Population> some_subnets(const SubnetSpace& space,
                                       const KnownSubnetsOptions& options) {
  const auto size = space.size().exact();
  const std::size_t count =
      size ? static_cast<std::size_t>(std::min<std::uint64_t>(*size, options.subnets))
           : options.subnets;
  auto designs = space::sample_designs(space, {.seed = options.seed, .count = count});
  if (!designs) return designs;
  space::DesignIndex once(space);
  once.add(space.original());
  for (std::size_t i = 0; i < designs->size(); ++i) once.add(std::as_const(*designs)[i]);
  return once.designs();
}

}  // namespace

Result<space::DesignTable> known_subnets(const std::vector<Supernet>& models,
                                         const SubnetSpace& space, const LatencyTable& proxy,
                                         const KnownSubnetsOptions& options) {
  FLEETFIT_ASSIGN(auto designs, some_subnets(space, options));
  FLEETFIT_ASSIGN(const auto costs, branch_costs(models));
  space::DesignTable table{.name = "subnets", .space = &space, .designs = std::move(designs)};
  table.columns.push_back(proxy.device);
  for (const auto& [name, sum] : kSums) table.columns.emplace_back(name);
  table.values.resize(table.columns.size());
  for (std::size_t row = 0; row < table.designs.size(); ++row) {
    const auto path = space.path(std::as_const(table.designs)[row]);
    table.values[0].push_back(proxy.subnet_ms(path));
    for (std::size_t i = 0; i < kSums.size(); ++i) {
      double sum = 1;  // of what all subnets pay, so that it is positive
      for (const auto& id : path) sum += kSums[i].second(costs[id.model][id.block][id.branch]);
      table.values[i + 1].push_back(sum);
    }
  }
  return table;
}

LatencyTable corrected_table(const LatencyTable& proxy, const SubnetSpace& space,
                             const std::vector<fit::FitPoint>& measured) {
  std::vector<adapt::TimedSubnet> timed;
  for (const auto& point : measured)
    timed.push_back({.path = space.path(*space.parse(point.design)), .ms = point.measured.front()});
  return timed.empty() ? proxy : adapt::correct_table(proxy, timed);
}

Result<LatencyTable> table_from(const std::string& source, const std::vector<Supernet>& models) {
  const auto colon = source.find(':');
  const auto kind = source.substr(0, colon);
  const auto file = colon == std::string::npos ? "" : source.substr(colon + 1);
  if (kind == "table") return adapt::read_latency_table(file, models);
  if (kind != "predictor")
    return fail(ErrorCode::invalid_input,
                fmt::format("latency: {} is neither table:FILE nor predictor:FILE", source));
  FLEETFIT_ASSIGN(const auto pricing, predict::GraphPricing::open(file));
  LatencyTable table{.device = pricing.identity().device, .error_percent = kPredictorErrorPercent};
  for (const auto& model : models) {
    auto& blocks = table.ms.emplace_back();
    for (const auto& block : model.blocks) {
      auto& branches = blocks.emplace_back();
      for (const auto& branch : block.branches) {
        FLEETFIT_ASSIGN(const auto priced, pricing.price(branch.graph, block.name));
        branches.push_back(priced.latency_ms);
      }
    }
  }
  return table;
}

fit::FitPoint point_by_table(const LatencyTable& table, const SubnetSpace& space,
                             space::Design design) {
  const double ms = table.subnet_ms(space.path(design));
  const double reach = ms * kNineTenthsOfMeanError * table.error_percent / 100;
  return {.design = space.format(design),
          .expected = {{ms, std::max(ms - reach, 0.0), ms + reach}}};
}

void choose_by_table(const LatencyTable& table, const SubnetSpace& space,
                     const fit::Prospects& prospects, fit::FittedDevice& device) {
  const double limit = device.budgets.front().limit;
  std::vector<fit::FitPoint> points;
  for (std::size_t i = 0; i < prospects.designs.size(); ++i) {
    points.push_back(point_by_table(table, space, prospects.designs[i]));
    points.back().accuracy = prospects.accuracy[i];
    if (device.original && device.original->design == points.back().design)
      device.original->accuracy = prospects.accuracy[i];
  }
  std::ranges::sort(points, {}, [](const fit::FitPoint& point) { return point.expected[0].value; });
  for (const auto& point : points) {
    const bool keeps = point.expected[0].high <= limit;
    if (keeps && (!device.best || point.accuracy > device.best->accuracy)) device.best = point;
    if (!device.pool.empty() && point.accuracy <= device.pool.back().accuracy) continue;
    device.pool.push_back(point);
    if (!keeps && device.better.size() < 3) device.better.push_back(point);
  }
  device.state = device.best ? fit::FitState::predicted : fit::FitState::unreachable;
  if (!device.best && !points.empty()) device.nearest = points.front();
}

}  // namespace fleetfit::app
