#include "fleetfit/adapt/latency_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "adapt/branch_paths.h"
#include "adapt/search/linear_posterior.h"
#include "fleetfit/core/document_format.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/plausible.h"
#include "fleetfit/core/random.h"
#include "fleetfit/cost/cost.h"

namespace fleetfit::adapt {
namespace {

using elastic::BranchId;
using elastic::Supernet;

// How sure the parts of a table are before whole subnets are seen, as shares of what they are.
constexpr double kBranchDoubt = 0.15;
constexpr double kScaleDoubt = 0.15;
constexpr double kOverheadDoubt = 0.03;  // of a whole subnet
constexpr double kTimingNoise = 0.02;

/// Time of each block of a subnet. Sums up to the whole: what lies between operators, and
/// operators without a block's name, are shared out.
std::vector<double> block_times(const NetworkTime& time, std::size_t blocks) {
  std::vector<double> ms(blocks);
  for (const auto& [node, node_ms] : time.nodes)
    if (const auto block = elastic::block_of(node); block && *block < blocks) ms[*block] += node_ms;
  const double sum = std::accumulate(ms.begin(), ms.end(), 0.0);
  if (!(sum > 0)) return {};
  for (double& of_block : ms) of_block *= time.ms / sum;
  return ms;
}

double flops_of(const graph::Graph& graph) {
  const auto cost = cost::count_cost(graph);
  return cost ? std::max(1.0, static_cast<double>(cost->total.flops)) : 1.0;
}

/// Where a runtime does not tell the times of operators: by their work.
std::vector<double> block_times_by_work(const std::vector<Supernet>& models, const Path& path,
                                        double ms) {
  std::vector<double> times(models[path.front().model].blocks.size());
  double sum = 0;
  for (const auto& [model, block, branch] : path)
    sum += times[block] = flops_of(models[model].blocks[block].branches[branch].graph);
  for (double& of_block : times) of_block *= ms / sum;
  return times;
}

/// Mean time of each branch over the subnets that have it.
BranchNumbers mean_branch_times(const std::vector<Supernet>& models, std::span<const Path> paths,
                                std::span<const NetworkTime> times) {
  auto sums = zeros(models);
  auto counts = zeros(models);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto blocks = block_times(times[i], models[paths[i].front().model].blocks.size());
    if (blocks.empty()) blocks = block_times_by_work(models, paths[i], times[i].ms);
    for (const auto& [model, block, branch] : paths[i]) {
      sums[model][block][branch] += blocks[block];
      counts[model][block][branch] += 1;
    }
  }
  for (std::size_t m = 0; m < sums.size(); ++m)
    for (std::size_t b = 0; b < sums[m].size(); ++b)
      for (std::size_t i = 0; i < sums[m][b].size(); ++i)
        sums[m][b][i] /= std::max(counts[m][b][i], 1.0);
  return sums;
}

/// Random subnets, all different; fewer if the space is small.
std::vector<Path> random_paths(const elastic::SubnetSpace& space, core::Random random,
                               std::size_t count) {
  std::set<Path> paths;
  std::vector<space::Choice> design(space.genes().size());
  for (std::size_t attempt = 0; attempt < 4 * count && paths.size() < count; ++attempt) {
    space.sample(random, design);
    paths.insert(space.path(design));
  }
  return {paths.begin(), paths.end()};
}

/// The table as a linear model: a weight for each branch, one for all together, one for being a
/// network at all.
class TableFit {
 public:
  TableFit(const LatencyTable& table, std::span<const TimedSubnet> timed) : table_(table) {
    double mean_ms = 0;
    for (const auto& subnet : timed) mean_ms += subnet.ms / static_cast<double>(timed.size());
    for (const auto& model : table.ms)
      for (const auto& block : model)
        for (const double ms : block) add_weight(ms, kBranchDoubt * ms);
    add_weight(0, kScaleDoubt);
    add_weight(table.overhead_ms, kOverheadDoubt * mean_ms);
    for (const auto& subnet : timed) {
      rows_.push_back(row_of(subnet.path));
      targets_.push_back(subnet.ms);
      noise_.push_back(std::pow(kTimingNoise * subnet.ms, 2));
    }
  }

  LinearPosterior fit() const { return {prior_, rows_, targets_, noise_}; }

  LatencyTable corrected(std::span<const double> weights) const {
    LatencyTable table = table_;
    const double scale = weights[prior_.mean.size() - 2];
    std::size_t index = 0;
    for (auto& model : table.ms)
      for (auto& block : model)
        for (double& ms : block) ms = std::max(0.0, weights[index++] + scale * ms);
    table.overhead_ms = weights.back();
    return table;
  }

 private:
  void add_weight(double mean, double doubt) {
    prior_.mean.push_back(mean);
    prior_.variance.push_back(doubt * doubt);
  }

  std::size_t index_of(const BranchId& id) const {
    std::size_t index = 0;
    for (std::size_t m = 0; m <= id.model; ++m)
      for (std::size_t b = 0; b < (m < id.model ? table_.ms[m].size() : id.block); ++b)
        index += table_.ms[m][b].size();
    return index + id.branch;
  }

  FeatureRow row_of(const Path& path) const {
    FeatureRow row;
    double sum = 0;
    for (const auto& id : path) {
      row.push_back({.index = index_of(id)});
      sum += table_.ms[id.model][id.block][id.branch];
    }
    row.push_back({.index = prior_.mean.size() - 2, .value = sum});
    row.push_back({.index = prior_.mean.size() - 1});
    return row;
  }

  const LatencyTable& table_;
  LinearPrior prior_;
  std::vector<FeatureRow> rows_;
  std::vector<double> targets_;
  std::vector<double> noise_;
};

Result<std::vector<graph::Graph>> join_all(const std::vector<Supernet>& models,
                                           std::span<const Path> paths) {
  std::vector<graph::Graph> networks;
  for (const auto& path : paths) {
    FLEETFIT_ASSIGN(auto network, elastic::join(models, path));
    networks.push_back(std::move(network));
  }
  return networks;
}

// --- files ---

constexpr std::string_view kFormat = "fleetfit-latency-table";
constexpr std::int64_t kVersion = 1;

Result<std::vector<double>> branches_from(const core::JsonView& json, const elastic::Block& block) {
  auto ms = json.as_numbers();
  if (!ms) return ms;
  if (ms->size() != block.branches.size())
    return json.error(fmt::format("there are {} branches, the model has {} in this block",
                                  ms->size(), block.branches.size()));
  for (const double value : *ms)
    if (!(value >= 0 && value <= core::kDayMs))
      return json.error(fmt::format("{} is no time", value));
  return ms;
}

Result<std::vector<std::vector<double>>> blocks_from(const core::JsonView& json,
                                                     const elastic::Supernet& model) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  if (items.size() != model.blocks.size())
    return json.error(fmt::format("there are {} blocks, the model {} has {}", items.size(),
                                  model.name, model.blocks.size()));
  std::vector<std::vector<double>> blocks;
  for (std::size_t b = 0; b < items.size(); ++b) {
    FLEETFIT_ASSIGN(auto branches, branches_from(items[b], model.blocks[b]));
    blocks.push_back(std::move(branches));
  }
  return blocks;
}

Result<LatencyTable> table_from(const core::JsonView& json,
                                const std::vector<elastic::Supernet>& models) {
  FLEETFIT_TRY(core::check_format(json, kFormat, kVersion));
  LatencyTable table;
  FLEETFIT_ASSIGN(table.device, json.text("device"));
  for (const auto& [key, field] : {std::pair{"overhead_ms", &LatencyTable::overhead_ms},
                                   std::pair{"error_percent", &LatencyTable::error_percent}}) {
    FLEETFIT_ASSIGN(table.*field, json.number(key));
    if (!(std::abs(table.*field) <= core::kDayMs))
      return json.error(fmt::format("{}: {:g} lies beyond ±{:g}", key, table.*field, core::kDayMs));
  }
  FLEETFIT_ASSIGN(const auto items, json.items("ms"));
  if (items.size() != models.size())
    return json.error(
        fmt::format("ms: there are {} models, the bundle has {}", items.size(), models.size()));
  for (std::size_t m = 0; m < models.size(); ++m) {
    FLEETFIT_ASSIGN(auto blocks, blocks_from(items[m], models[m]));
    table.ms.push_back(std::move(blocks));
  }
  return table;
}

}  // namespace

Result<NetworkTime> NetworkTimer::time(const graph::Graph& network) {
  FLEETFIT_ASSIGN(auto times, time_in_turns(std::span(&network, 1)));
  return std::move(times.front());
}

double LatencyTable::subnet_ms(std::span<const BranchId> path) const {
  double sum = overhead_ms;
  for (const auto& [model, block, branch] : path) sum += ms[model][block][branch];
  return sum;
}

LatencyTable correct_table(LatencyTable table, std::span<const TimedSubnet> timed) {
  if (timed.empty()) return table;
  const TableFit fit(table, timed);
  const auto posterior = fit.fit();
  auto corrected = fit.corrected(posterior.weights());
  const auto residuals = posterior.left_out_residuals();
  double error = 0;
  for (std::size_t i = 0; i < timed.size(); ++i) error += std::abs(residuals[i]) / timed[i].ms;
  corrected.error_percent = 100 * error / static_cast<double>(timed.size());
  return corrected;
}

Result<LatencyTable> profile_branches(const std::vector<Supernet>& models,
                                      const elastic::SubnetSpace& space, NetworkTimer& timer,
                                      const ProfileOptions& options, core::Progress& progress) {
  auto paths = covering_paths(models);
  const std::size_t covering = paths.size();
  for (auto& path :
       random_paths(space, core::Random(options.seed).split("profile"), options.check_subnets))
    paths.push_back(std::move(path));
  core::ProgressTask task(progress, {.name = "profile", .total = paths.size(), .unit = "subnets"});
  FLEETFIT_ASSIGN(const auto networks, join_all(models, paths));
  FLEETFIT_ASSIGN(const auto times, timer.time_in_turns(networks));
  task.advance(paths.size());
  if (options.stop.stop_requested()) return fail(ErrorCode::cancelled, "profiling was stopped");
  LatencyTable table{.ms = mean_branch_times(models, std::span(paths).first(covering),
                                             std::span(times).first(covering))};
  std::vector<TimedSubnet> checks;
  for (std::size_t i = covering; i < paths.size(); ++i)
    checks.push_back({.path = paths[i], .ms = times[i].ms});
  return correct_table(std::move(table), checks);
}

Status write_latency_table(const LatencyTable& table, const std::filesystem::path& file) {
  const nlohmann::json json = {{"format", kFormat},
                               {"version", kVersion},
                               {"device", table.device},
                               {"overhead_ms", table.overhead_ms},
                               {"error_percent", table.error_percent},
                               {"ms", table.ms}};
  return core::write_json(file, json);
}

Result<LatencyTable> read_latency_table(const std::filesystem::path& file,
                                        const std::vector<elastic::Supernet>& models) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return table_from(core::JsonView(document, file.string()), models);
}

}  // namespace fleetfit::adapt
