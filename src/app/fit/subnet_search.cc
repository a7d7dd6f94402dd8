#include "app/fit/subnet_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/cost/cost.h"
#include "fleetfit/predict/graph_pricing.h"

namespace fleetfit::app {
namespace {

constexpr std::size_t kChoiceImages = 1500;
constexpr std::size_t kTestImages = 4000;

Result<std::vector<double>> evaluate(SubnetAccuracies& accuracies, space::DesignBatch designs) {
  FLEETFIT_ASSIGN(const auto found, accuracies.evaluate(designs));
  std::vector<double> shares;
  for (const auto& evaluation : found) shares.push_back(evaluation.accuracy);
  return shares;
}

}  // namespace

SubnetRatings::SubnetRatings(const FitPlace& place, const FitFolder& folder,
                             const elastic::SubnetSpace& space)
    : place_(place), folder_(folder), space_(space) {}

Status SubnetRatings::open(const std::filesystem::path& file, const elastic::Bundle& bundle) {
  FLEETFIT_ASSIGN(bundle_,
                  elastic::read_bundle(file, {.batch = static_cast<std::int64_t>(kImageBatch)}));
  const ImagesRequest images{
      .bundle = file, .data = place_.fleet.data, .seed = place_.request.seed};
  FLEETFIT_ASSIGN(validation_, open_images(images, bundle, data::Split::validation));
  FLEETFIT_ASSIGN(test_, open_images(images, bundle, data::Split::test));
  return {};
}

std::unique_ptr<adapt::SubnetQuality> SubnetRatings::to_search(
    const adapt::LatencyTable& proxy) const {
  return on(validation_.part(0, place_.fleet.samples), "search", proxy);
}

Result<std::vector<double>> SubnetRatings::to_choose(space::DesignBatch designs,
                                                     const adapt::LatencyTable& proxy) {
  const auto images = on(validation_.part(place_.fleet.samples, kChoiceImages), "choice", proxy);
  choice_images_ = images->images();
  return evaluate(*images, designs);
}

Result<std::vector<double>> SubnetRatings::to_test(space::DesignBatch designs,
                                                   const adapt::LatencyTable& proxy) {
  const auto images = on(test_.part(0, kTestImages), "test", proxy);
  test_images_ = images->images();
  return evaluate(*images, designs);
}

std::string SubnetRatings::about() const {
  return fmt::format(
      "share of {} test images of {} whose class was found; networks were chosen by {} other "
      "images",
      test_images_, place_.fleet.data, place_.fleet.samples + choice_images_);
}

std::unique_ptr<SubnetAccuracies> SubnetRatings::on(std::unique_ptr<adapt::ImageBatches> images,
                                                    std::string_view what,
                                                    const adapt::LatencyTable& proxy) const {
  const auto file = folder_.named(
      fmt::format("accuracy-{}", what),
      fmt::format("{} {} {} {} {} {}", bundle_.manifest_sha256, place_.fleet.data,
                  place_.request.seed, place_.fleet.samples, kChoiceImages, kTestImages),
      "json");
  return std::make_unique<SubnetAccuracies>(AccuracyParts{.models = bundle_.models,
                                                          .space = space_,
                                                          .table = proxy,
                                                          .progress = place_.progress,
                                                          .stop = place_.stop,
                                                          .threads = place_.request.threads},
                                            std::move(images), file);
}

Result<std::size_t> add_finalists(const adapt::SubnetProblem& problem,
                                  adapt::SubnetQuality& quality, const SubnetSearchPlan& plan,
                                  std::set<std::string>& finalists) {
  const auto& space = problem.space;
  const auto fastest =
      adapt::design_of(space, adapt::fastest_subnet(problem.models, problem.table));
  finalists.insert(space.format(fastest));
  if (problem.table.subnet_ms(space.path(fastest)) > 1.1 * problem.budget_ms) return 0;
  const adapt::GuidedOptions few{
      .first = 12, .batch = 8, .most_rounds = 4, .patience = 2, .levels = 0};
  const auto strategy = adapt::make_guided(problem, core::Random(plan.seed).split("search"),
                                           plan.thorough ? adapt::GuidedOptions{} : few);
  FLEETFIT_ASSIGN(const auto searched,
                  adapt::search_subnets(problem, quality, *strategy, {.stop = plan.stop}));
  if (searched.stopped) return fail(ErrorCode::cancelled, "stopped");
  const auto chosen = adapt::finalists(searched, problem.budget_ms);
  for (const auto& numbers : {chosen.near, chosen.levels})
    for (const auto number : numbers)
      finalists.insert(space.format(searched.subnets[number].design));
  return chosen.near.size() + (plan.thorough ? chosen.levels.size() : 0);
}

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
