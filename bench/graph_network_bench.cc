// A graph network against a linear model on cells of NAS-Bench-201: trained on some, both predict
// the latency of all others.
//   graph_network_bench LATENCY.csv [--training 900] [--trials 4] [--seed 1] DEVICE…
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/predict/network_predictor.h"
#include "fleetfit/predict/regressor.h"
#include "fleetfit/train/predictors.h"

namespace {

using namespace fleetfit;
using predict::NodeGraph;

constexpr std::size_t kOperators = 5;
constexpr std::size_t kNodeFeatures = kOperators + 2 + 6;  // operators, input, output, places
constexpr std::size_t kOneHot = 6 * kOperators;
constexpr int kInput = 6;
constexpr int kOutput = 7;

// Which states of the cell each of its six operators lies between.
struct Place {
  int from;
  int to;
};
constexpr std::array<Place, 6> kPlaces = {{{0, 1}, {0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 3}}};

struct Cell {
  std::string ops;
  double ms = 0;
};

NodeGraph graph_of(const std::string& ops) {
  NodeGraph graph{.features = kNodeFeatures, .nodes = std::vector<double>(8 * kNodeFeatures)};
  for (std::size_t i = 0; i < 6; ++i) {
    graph.nodes[i * kNodeFeatures + static_cast<std::size_t>(ops[i] - '0')] = 1;
    graph.nodes[i * kNodeFeatures + kOperators + 2 + i] = 1;
  }
  graph.nodes[kInput * kNodeFeatures + kOperators] = 1;
  graph.nodes[kOutput * kNodeFeatures + kOperators + 1] = 1;
  for (int i = 0; i < 6; ++i) {
    const auto [from, to] = kPlaces[static_cast<std::size_t>(i)];
    if (from == 0) graph.edges.push_back({.from = kInput, .to = i});
    if (to == 3) graph.edges.push_back({.from = i, .to = kOutput});
    for (int j = 0; j < 6; ++j)
      if (kPlaces[static_cast<std::size_t>(j)].from == to)
        graph.edges.push_back({.from = i, .to = j});
  }
  return graph;
}

// Whether data can get from the cell's input to its output; operator 0 lets nothing pass.
bool is_connected(const std::string& ops) {
  std::array<bool, 4> reached = {true, false, false, false};
  for (std::size_t i = 0; i < 6; ++i) {
    const auto [from, to] = kPlaces[i];
    if (ops[i] != '0' && reached[static_cast<std::size_t>(from)])
      reached[static_cast<std::size_t>(to)] = true;
  }
  return reached[3];
}

std::array<double, kOneHot> one_hot(const std::string& ops) {
  std::array<double, kOneHot> row{};
  for (std::size_t i = 0; i < 6; ++i)
    row[i * kOperators + static_cast<std::size_t>(ops[i] - '0')] = 1;
  return row;
}

std::vector<double> rows_of(const std::vector<Cell>& cells) {
  std::vector<double> rows;
  for (const auto& cell : cells) {
    const auto row = one_hot(cell.ops);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

std::vector<double> times_of(const std::vector<Cell>& cells) {
  std::vector<double> times;
  for (const auto& cell : cells) times.push_back(cell.ms);
  return times;
}

// Least squares of the percentage error on what lies at each place.
Result<std::vector<double>> predict_linear(const std::vector<Cell>& training,
                                           const std::vector<Cell>& test) {
  constexpr int kFolds = 5;
  const auto rows = rows_of(training);
  const auto ms = times_of(training);
  std::vector<int> fold(training.size());
  for (std::size_t i = 0; i < fold.size(); ++i) fold[i] = static_cast<int>(i) % kFolds;
  FLEETFIT_ASSIGN(
      const auto fitted,
      predict::fit_ridge(
          {.x = {.values = rows, .columns = kOneHot}, .y = ms, .fold = fold, .folds = kFolds}));
  std::vector<double> predicted(test.size());
  fitted.model->predict({.values = rows_of(test), .columns = kOneHot}, predicted);
  return predicted;
}

struct Options {
  std::size_t training = 900;
  train::TrainingOptions network = {.trials = 4};
};

Result<std::vector<double>> predict_graph(const std::vector<Cell>& training,
                                          const std::vector<Cell>& test, const Options& options) {
  const std::vector<std::string> names = {"none",    "skip",    "conv1x1", "conv3x3", "pool",
                                          "input",   "output",  "place 0", "place 1", "place 2",
                                          "place 3", "place 4", "place 5"};
  std::vector<NodeGraph> graphs;
  const auto ms = times_of(training);
  for (const auto& cell : training) graphs.push_back(graph_of(cell.ops));
  core::ThreadPool pool(core::ThreadPool::available_cpus());
  const core::SystemClock clock;
  const auto progress = core::make_terminal_progress(clock);
  FLEETFIT_ASSIGN(
      const auto trained,
      train::train_graph_network({.features = names, .graphs = graphs, .ms = ms}, options.network,
                                 {.pool = pool, .clock = clock, .progress = *progress}));
  std::vector<NodeGraph> others;
  for (const auto& cell : test) others.push_back(graph_of(cell.ops));
  return trained.network.predict(others);
}

Result<std::vector<Cell>> read_cells(const core::CsvTable& table, const std::string& device) {
  FLEETFIT_ASSIGN(const auto ops, table.column("ops"));
  FLEETFIT_ASSIGN(const auto times, table.numbers(device));
  std::vector<Cell> cells;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::string code(table.cell(row, ops));
    if (code.size() != 6 || code.find_first_not_of("01234") != std::string::npos)
      return table.error_at(row, ops, "expected six digits from 0 to 4");
    if (is_connected(code)) cells.push_back({.ops = std::move(code), .ms = times[row]});
  }
  return cells;
}

Status compare(const core::CsvTable& table, const std::string& device, const Options& options) {
  FLEETFIT_ASSIGN(auto cells, read_cells(table, device));
  if (cells.size() <= options.training)
    return fail(ErrorCode::invalid_input, "there are not that many cells");
  core::Random(options.network.seed).split("cells").shuffle(cells);
  const auto middle = cells.begin() + static_cast<std::ptrdiff_t>(options.training);
  const std::vector<Cell> training(cells.begin(), middle);
  const std::vector<Cell> test(middle, cells.end());
  const auto measured = times_of(test);

  FLEETFIT_ASSIGN(const auto linear, predict_linear(training, test));
  FLEETFIT_ASSIGN(const auto graph, predict_graph(training, test, options));
  fmt::print("{:<14} {:>6} {:>8.4f} {:>8.4f} {:>8.2f} {:>8.2f}\n", device, test.size(),
             core::spearman(linear, measured).value_or(0),
             core::spearman(graph, measured).value_or(0), predict::mape_percent(linear, measured),
             predict::mape_percent(graph, measured));
  std::fflush(stdout);
  return {};
}

Result<int> run(const std::vector<std::string>& arguments) {
  Options options;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].starts_with("--")) {
      names.push_back(arguments[i]);
      continue;
    }
    const auto& value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    int number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || number < 1)
      return fail(ErrorCode::invalid_input, arguments[i] + " wants a number");
    if (arguments[i] == "--training") {
      options.training = static_cast<std::size_t>(number);
    } else if (arguments[i] == "--trials") {
      options.network.trials = number;
    } else if (arguments[i] == "--seed") {
      options.network.seed = static_cast<std::uint64_t>(number);
    } else {
      return fail(ErrorCode::invalid_input, "there is no option " + arguments[i]);
    }
    ++i;
  }
  if (names.size() < 2)
    return fail(ErrorCode::invalid_input,
                "usage: graph_network_bench LATENCY.csv [--training N] DEVICE…");
  FLEETFIT_ASSIGN(const auto table, core::read_csv(names[0]));
  fmt::print("{:<14} {:>6} {:>17} {:>17}\n{:<14} {:>6} {:>8} {:>8} {:>8} {:>8}\n", "", "",
             "rank correlation", "MAPE %", "device", "cells", "linear", "graph", "linear", "graph");
  for (std::size_t i = 1; i < names.size(); ++i)
    if (auto done = compare(table, names[i], options); !done)
      return core::within(names[i], done.error());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return core::run_guarded([&] {
    const auto status = run({argv + 1, argv + argc});
    return status ? *status : core::report(status.error());
  });
}
