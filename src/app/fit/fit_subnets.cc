#include "app/fit/fit_subnets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "app/predict/graph_pricing.h"
#include "fleetfit/adapt/pool.h"
#include "fleetfit/app/bundles.h"
#include "fleetfit/app/quantizing.h"
#include "fleetfit/cost/cost.h"

namespace fleetfit::app {
namespace {

using adapt::BranchNumbers;
using adapt::LatencyTable;
using elastic::SubnetSpace;
using elastic::Supernet;

/// A predictor tells no error of sums of its own; that of operator-wise predictors is about this.
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
Result<space::Population> some_subnets(const SubnetSpace& space, const TaughtOptions& options) {
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

std::filesystem::path relative_folder(const FittedDevice& device) {
  return std::filesystem::path("devices") / device.name;
}

double cost_of(const FitPoint& point) {
  return point.measured.empty() ? point.expected.front().value : point.measured.front();
}

Status write_pool_of(const WriteRequest& request, FittedDevice& device) {
  std::vector<adapt::JudgedSubnet> judged = {{.subnet = device.best->design,
                                              .latency_ms = cost_of(*device.best),
                                              .measured = !device.best->measured.empty(),
                                              .accuracy = device.best->accuracy}};
  for (const auto& point : device.pool) {
    if (point.design == device.best->design) continue;
    judged.push_back({.subnet = point.design,
                      .latency_ms = cost_of(point),
                      .measured = !point.measured.empty(),
                      .accuracy = point.accuracy});
  }
  const auto file = relative_folder(device) / "pool.json";
  device.files.push_back(file);
  return adapt::write_pool({.device = request.device_name,
                            .bundle_sha256 = request.bundle_sha256,
                            .budget_ms = device.budgets.front().limit,
                            .best = device.best->design,
                            .entries = adapt::pool_entries(judged, 0)},
                           request.folder / file);
}

Status quantize(const WriteRequest& request, const std::filesystem::path& float_file,
                const std::filesystem::path& file, FittedDevice& device, core::Progress& progress) {
  QuantizeRequest how;
  how.in = float_file;
  how.out = file;
  how.calibrate = request.data;
  how.seed = request.seed;
  how.threads = request.threads;
  FLEETFIT_ASSIGN(const auto done, quantize_model(how, progress));
  if (!done.accuracy) return {};
  device.best->accuracy = done.accuracy->int8_share;
  device.about += fmt::format("; accuracy after quantization, {:.2f} % before, on {} test images",
                              100 * done.accuracy->float_share, done.accuracy->images);
  return {};
}

}  // namespace

Result<space::DesignTable> taught_subnets(const std::vector<Supernet>& models,
                                          const SubnetSpace& space, const LatencyTable& proxy,
                                          const TaughtOptions& options) {
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

LatencyTable bent_table(const LatencyTable& proxy, const SubnetSpace& space,
                        const std::vector<FitPoint>& measured) {
  std::vector<adapt::TimedSubnet> timed;
  for (const auto& point : measured)
    timed.push_back({.path = space.path(*space.parse(point.design)), .ms = point.measured.front()});
  return timed.empty() ? proxy : adapt::correct_table(proxy, timed);
}

Result<LatencyTable> believed_table(const std::string& source,
                                    const std::vector<Supernet>& models) {
  const auto colon = source.find(':');
  const auto kind = source.substr(0, colon);
  const auto file = colon == std::string::npos ? "" : source.substr(colon + 1);
  if (kind == "table") return adapt::read_latency_table(file, models);
  if (kind != "predictor")
    return fail(ErrorCode::invalid_input,
                fmt::format("latency: {} is neither table:FILE nor predictor:FILE", source));
  FLEETFIT_ASSIGN(const auto pricing, GraphPricing::open(file));
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

FitPoint believed_point(const LatencyTable& table, const SubnetSpace& space, space::Design design) {
  const double ms = table.subnet_ms(space.path(design));
  const double reach = ms * kNineTenthsOfMeanError * table.error_percent / 100;
  return {.design = space.format(design),
          .expected = {{ms, std::max(ms - reach, 0.0), ms + reach}}};
}

void choose_by_table(const LatencyTable& table, const SubnetSpace& space,
                     const Prospects& prospects, FittedDevice& device) {
  const double limit = device.budgets.front().limit;
  std::vector<FitPoint> points;
  for (std::size_t i = 0; i < prospects.designs.size(); ++i) {
    points.push_back(believed_point(table, space, prospects.designs[i]));
    points.back().accuracy = prospects.accuracy[i];
    if (device.original && device.original->design == points.back().design)
      device.original->accuracy = prospects.accuracy[i];
  }
  std::ranges::sort(points, {}, [](const FitPoint& point) { return point.expected[0].value; });
  for (const auto& point : points) {
    const bool keeps = point.expected[0].high <= limit;
    if (keeps && (!device.best || point.accuracy > device.best->accuracy)) device.best = point;
    if (!device.pool.empty() && point.accuracy <= device.pool.back().accuracy) continue;
    device.pool.push_back(point);
    if (!keeps && device.better.size() < 3) device.better.push_back(point);
  }
  device.state = device.best ? FitState::predicted : FitState::unreachable;
  if (!device.best && !points.empty()) device.nearest = points.front();
}

void drop_what_is_no_better(FittedDevice& device) {
  const std::string best = device.best ? device.best->design : "";
  double so_far = -1;
  std::erase_if(device.pool, [&](const FitPoint& point) {
    const bool better = point.accuracy > so_far;
    so_far = std::max(so_far, point.accuracy);
    return !better && point.design != best;
  });
  so_far = device.best ? device.best->accuracy : -1;
  std::erase_if(device.better, [&](const FitPoint& point) {
    const bool better = point.accuracy > so_far;
    so_far = std::max(so_far, point.accuracy);
    return !better;
  });
}

Status write_fitted(const WriteRequest& request, FittedDevice& device, core::Progress& progress) {
  const auto folder = relative_folder(device);
  std::error_code ignored;  // writing tells
  std::filesystem::create_directories(request.folder / folder, ignored);
  const auto model = folder / "model.onnx";
  const auto float_model = request.int8 ? folder / "model-fp32.onnx" : model;
  FLEETFIT_TRY(extract_subnet(request.bundle, device.best->design, request.folder / float_model));
  device.files.push_back(model);
  if (request.int8) {
    auto done =
        quantize(request, request.folder / float_model, request.folder / model, device, progress);
    if (!done) return done;
    device.files.push_back(float_model);
  }
  return write_pool_of(request, device);
}

}  // namespace fleetfit::app
