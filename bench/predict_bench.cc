// How fast predictors answer and load, and boosted trees against XGBoost's own prediction.
//   predict_bench                         one table, on one core
//   predict_bench --fit TRAIN TEST        boosted trees fitted to one CSV file and tried on
//   another:
//                                         all columns are features, but the last, "ms"; for
//                                         bench/boosting_side_by_side.py
#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/cost/features.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/zoo.h"
#include "fleetfit/predict/network_predictor.h"
#include "fleetfit/predict/operator_predictor.h"

namespace fleetfit::bench {
namespace {

using predict::MatrixView;
using predict::NetworkSample;

constexpr int kStages = 200;
constexpr int kDepth = 6;

/// Seconds of the fastest of some rounds: the machine is not ours alone.
double fastest(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 60; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

struct Table {
  std::size_t columns = 0;
  std::vector<double> x;
  std::vector<double> y;

  MatrixView rows() const { return {.values = x, .columns = columns}; }
};

Result<Table> read_table(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto csv, core::read_csv(file));
  Table table{.columns = csv.columns() - 1};
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    for (std::size_t column = 0; column < csv.columns(); ++column) {
      FLEETFIT_ASSIGN(const auto number, csv.number(row, column));
      (column < table.columns ? table.x : table.y).push_back(number);
    }
  }
  return table;
}

std::vector<int> folds_of(std::size_t rows) {
  std::vector<int> fold;
  for (std::size_t i = 0; i < rows; ++i) fold.push_back(static_cast<int>(i % 5));
  core::Random(1).shuffle(fold);
  return fold;
}

Status fit_and_try(const std::filesystem::path& train_file,
                   const std::filesystem::path& test_file) {
  FLEETFIT_ASSIGN(const auto train, read_table(train_file));
  FLEETFIT_ASSIGN(const auto test, read_table(test_file));
  const auto fold = folds_of(train.y.size());
  core::ThreadPool pool(core::ThreadPool::available_cpus());
  const predict::TrainingSet set{.x = train.rows(), .y = train.y, .fold = fold, .folds = 5};
  const std::pair<const char*, predict::BoostTarget> targets[] = {
      {"logarithm", predict::BoostTarget::logarithm},
      {"correction", predict::BoostTarget::correction}};
  for (const auto& [name, target] : targets) {
    FLEETFIT_ASSIGN(const auto fitted,
                    predict::fit_boosted_trees(set, core::Random(1), pool, {.target = target}));
    std::vector<double> prices(test.y.size());
    fitted.model->predict(test.rows(), prices);
    fmt::print("{} {:.4f}\n", name, predict::mape_percent(prices, test.y));
  }
  return {};
}

/// A device with steps and regimes, so that trees have something to learn.
double made_up_ms(const cost::KernelFeatures& kernel) {
  const double flops = kernel.values[0];
  const double bytes = kernel.values[4] + kernel.values[5] + kernel.values[6];
  const double rate = (bytes > 1e6 ? 8e6 : 3e7) * (1 + std::fmod(flops, 7.0) / 20);
  return (0.002 + std::max(flops / rate, bytes / 4e6));
}

Result<std::vector<cost::KernelFeatures>> kernels_of(const graph::Graph& graph,
                                                     const cost::KernelRules& rules) {
  FLEETFIT_ASSIGN(const auto plan, cost::deduce_kernels(graph, rules));
  return cost::features_of(graph, plan.kernels);
}

/// A float network as a device runs it.
using AsRun = Result<graph::Graph> (*)(graph::Graph graph);

Result<graph::Graph> as_it_is(graph::Graph graph) { return graph; }

Result<graph::Graph> as_int8(graph::Graph graph) {
  auto prepared = graph::prepare_for_quantization(std::move(graph));
  if (!prepared) return prepared;
  const auto ranges = graph::guessed_ranges(*prepared);
  return graph::quantize(*std::move(prepared), ranges, {.per_channel = false, .only_costs = true});
}

Result<std::vector<NetworkSample>> profiled_zoo(const std::vector<std::string>& names, AsRun as_run,
                                                const cost::KernelRules& rules) {
  std::vector<NetworkSample> samples;
  for (const auto& name : names) {
    FLEETFIT_ASSIGN(const auto graph, graph::build_zoo_network(name).and_then(as_run));
    FLEETFIT_ASSIGN(const auto features, kernels_of(graph, rules));
    NetworkSample sample{.name = name, .overhead_ms = 0.05, .latency_ms = 0.05};
    for (const auto& kernel : features) {
      sample.kernels.push_back({.features = kernel, .ms = made_up_ms(kernel)});
      sample.latency_ms += sample.kernels.back().ms;
    }
    samples.push_back(std::move(sample));
  }
  return samples;
}

Table kernels_of_kind(const std::vector<NetworkSample>& samples, const std::string& kind) {
  Table table{.columns = cost::feature_names(kind).size()};
  for (const auto& network : samples) {
    for (const auto& [features, ms] : network.kernels) {
      if (features.kind != kind) continue;
      table.x.insert(table.x.end(), features.values.begin(), features.values.end());
      table.y.push_back(ms);
    }
  }
  return table;
}

/// Seconds that XGBoost takes to answer for all rows, after training as many trees. Rows are given
/// as a matrix that it has not seen: answers for known ones are cached.
double seconds_of_xgboost(const Table& table, const std::vector<float>& asked, int stages) {
  const auto columns = static_cast<bst_ulong>(table.columns);
  const std::vector<float> x(table.x.begin(), table.x.end());
  std::vector<float> y;
  for (const double ms : table.y) y.push_back(static_cast<float>(std::log(ms)));
  DMatrixHandle train = nullptr;
  BoosterHandle booster = nullptr;
  XGDMatrixCreateFromMat(x.data(), y.size(), columns, std::numeric_limits<float>::quiet_NaN(),
                         &train);
  XGDMatrixSetFloatInfo(train, "label", y.data(), y.size());
  XGBoosterCreate(&train, 1, &booster);
  for (const auto& [name, value] :
       {std::pair{"nthread", "1"}, std::pair{"max_depth", "6"}, std::pair{"eta", "0.1"},
        std::pair{"tree_method", "hist"}, std::pair{"verbosity", "0"}})
    XGBoosterSetParam(booster, name, value);
  for (int i = 0; i < stages; ++i) XGBoosterUpdateOneIter(booster, i, train);
  const double seconds = fastest([&] {
    DMatrixHandle fresh = nullptr;
    XGDMatrixCreateFromMat(asked.data(), asked.size() / columns, columns,
                           std::numeric_limits<float>::quiet_NaN(), &fresh);
    bst_ulong length = 0;
    const float* answers = nullptr;
    XGBoosterPredict(booster, fresh, 0, 0, 0, &length, &answers);
    XGDMatrixFree(fresh);
  });
  XGBoosterFree(booster);
  XGDMatrixFree(train);
  return seconds;
}

Status compare_with_xgboost(const Table& table) {
  core::ThreadPool pool(core::ThreadPool::available_cpus());
  const auto fold = folds_of(table.y.size());
  FLEETFIT_ASSIGN(
      const auto fitted,
      predict::fit_boosted_trees({.x = table.rows(), .y = table.y, .fold = fold, .folds = 5},
                                 core::Random(1), pool,
                                 {.stages = kStages,
                                  .depths = {kDepth},
                                  .least_child_samples = {1},
                                  .target = predict::BoostTarget::logarithm}));
  const auto& trees = dynamic_cast<const predict::TreeModel&>(*fitted.model);
  std::vector<double> many;
  while (many.size() < 2'000 * table.columns)
    many.insert(many.end(), table.x.begin(), table.x.end());
  const std::size_t rows = many.size() / table.columns;
  std::vector<double> out(rows);
  const double ours =
      fastest([&] { trees.predict({.values = many, .columns = table.columns}, out); });
  const double theirs =
      seconds_of_xgboost(table, {many.begin(), many.end()}, static_cast<int>(trees.trees()));
  const auto count = static_cast<double>(rows);
  fmt::print("{:<52} {:>14.0f}\n",
             fmt::format("kernels per second, {} trees of depth {}", trees.trees(), kDepth),
             count / ours);
  fmt::print("{:<52} {:>14.0f}\n", "  XGBoost's own prediction", count / theirs);
  fmt::print("{:<52} {:>14.1f}\n", "  ratio", theirs / ours);
  return {};
}

Status price_file(const std::filesystem::path& file, AsRun as_run,
                  const predict::OperatorPredictor& predictor, const cost::KernelRules& rules) {
  FLEETFIT_ASSIGN(auto model, graph::import_model(file));
  FLEETFIT_ASSIGN(const auto run, as_run(std::move(model.graph)));
  const auto kernels = kernels_of(run, rules);
  const auto price = kernels ? predictor.price(*kernels) : tl::unexpected(kernels.error());
  return price ? Status{} : tl::unexpected(price.error());
}

/// What to price, by what.
struct Pricing {
  const predict::OperatorPredictor& predictor;
  const cost::KernelRules& rules;
  AsRun as_run;
};

/// From a model's file in the system's cache, and from kernels that are known already.
Status time_network(const std::string& name, const Pricing& pricing,
                    const std::filesystem::path& folder) {
  FLEETFIT_ASSIGN(const auto graph, graph::build_zoo_network(name));
  const auto file = folder / (name + ".onnx");
  FLEETFIT_TRY(graph::export_onnx_file(graph, file));
  Status status;
  const double from_file = fastest([&] {
    auto priced = price_file(file, pricing.as_run, pricing.predictor, pricing.rules);
    if (!priced) status = std::move(priced);
  });
  FLEETFIT_ASSIGN(const auto kernels, pricing.as_run(graph).and_then([&](const graph::Graph& run) {
    return kernels_of(run, pricing.rules);
  }));
  const double known = fastest([&] {
    const auto price = pricing.predictor.price(kernels);
    if (!price) status = tl::unexpected(price.error());
  });
  fmt::print("{:<52} {:>14.2f}\n",
             fmt::format("ms from the file of {}, {} MB, to its price", name,
                         std::filesystem::file_size(file) / 1'000'000),
             1e3 * from_file);
  fmt::print("{:<52} {:>14.3f}\n", fmt::format("  of them for its {} kernels", kernels.size()),
             1e3 * known);
  return status;
}

Status time_networks(const std::vector<NetworkSample>& samples, AsRun as_run,
                     const cost::KernelRules& rules) {
  core::ThreadPool pool(core::ThreadPool::available_cpus());
  predict::TrainOptions options;
  options.method = predict::Method::boosted_trees;
  options.boost.depths = {kDepth};
  options.boost.least_child_samples = {1};
  FLEETFIT_ASSIGN(const auto predictor, predict::train_operator_predictor(samples, options, pool));
  FLEETFIT_ASSIGN(const auto folder, core::ScratchFolder::create());
  const auto file = folder.path() / "predictor.json";
  FLEETFIT_TRY(predict::write_kernel_predictor(file, predictor));
  Status status;
  const double load = fastest([&] {
    const auto read = predict::read_kernel_predictor(file);
    if (!read) status = tl::unexpected(read.error());
  });
  fmt::print("{:<52} {:>14.2f}\n",
             fmt::format("ms to load a file of {} kinds, {} kB", predictor.kinds().size(),
                         std::filesystem::file_size(file) / 1000),
             1e3 * load);
  for (const auto* name : {"mobilenet_v2", "resnet50", "densenet121"}) {
    auto timed = time_network(name, {predictor, rules, as_run}, folder.path());
    if (!timed) return timed;
  }
  return status;
}

void time_designs() {
  for (const auto& [genes, choices] : {std::pair{6, 5}, std::pair{22, 9}, std::pair{46, 8}}) {
    const std::vector<std::vector<double>> ms(
        static_cast<std::size_t>(genes),
        std::vector<double>(static_cast<std::size_t>(choices), 0.5));
    const auto table = predict::AdditiveTable::build(1, ms).value();
    core::Random random(1);
    std::vector<std::uint16_t> designs;
    constexpr std::size_t count = 4'000;
    for (std::size_t i = 0; i < count * static_cast<std::size_t>(genes); ++i)
      designs.push_back(
          static_cast<std::uint16_t>(random.below(static_cast<std::uint64_t>(choices))));
    std::vector<double> out(count);
    const double seconds = fastest([&] { table.price(designs, out); });
    fmt::print("{:<52} {:>14.0f}\n",
               fmt::format("designs per second, {} genes of {} choices", genes, choices),
               static_cast<double>(count) / seconds);
  }
}

Status run() {
  FLEETFIT_ASSIGN(const auto rules, cost::KernelRules::builtin("engine"));
  const std::vector<std::string> names{"mobilenet_v2",  "resnet18",           "resnet50",
                                       "squeezenet1_1", "mobilenet_v3_small", "efficientnet_b0",
                                       "mnasnet1_0",    "regnet_y_400mf",     "googlenet",
                                       "densenet121",   "shufflenet_v2_x1_0", "mobilenet_v1"};
  FLEETFIT_ASSIGN(const auto samples, profiled_zoo(names, as_it_is, rules));
  FLEETFIT_TRY(compare_with_xgboost(kernels_of_kind(samples, "conv2d")));
  FLEETFIT_TRY(time_networks(samples, as_it_is, rules));
  FLEETFIT_ASSIGN(const auto in_int8, profiled_zoo(names, as_int8, rules));
  fmt::print("the same float files for a device in int8:\n");
  FLEETFIT_TRY(time_networks(in_int8, as_int8, rules));
  time_designs();
  return {};
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool fits = arguments.size() == 3 && arguments[0] == "--fit";
  if (!arguments.empty() && !fits) {
    fmt::print(stderr, "usage: predict_bench [--fit TRAIN.csv TEST.csv]\n");
    return 2;
  }
  const auto done =
      fits ? fleetfit::bench::fit_and_try(arguments[1], arguments[2]) : fleetfit::bench::run();
  if (done) return 0;
  fmt::print(stderr, "predict_bench: {}\n", done.error().message);
  return 1;
}
