#include "tune_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <utility>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/json.h"

namespace fleetfit::bench {
namespace {

using std::numbers::pi;
using Numbers = std::span<const double>;

double square(double x) { return x * x; }

double branin(Numbers p) {
  const double x = p[0];
  const double bent = p[1] - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return bent * bent + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double hartmann6(Numbers p) {
  constexpr std::array<double, 4> kAlpha = {1.0, 1.2, 3.0, 3.2};
  constexpr std::array<std::array<double, 6>, 4> kA = {{{10, 3, 17, 3.5, 1.7, 8},
                                                        {0.05, 10, 17, 0.1, 8, 14},
                                                        {3, 3.5, 1.7, 10, 17, 8},
                                                        {17, 8, 0.05, 10, 0.1, 14}}};
  constexpr std::array<std::array<double, 6>, 4> kCentre = {{{1312, 1696, 5569, 124, 8283, 5886},
                                                             {2329, 4135, 8307, 3736, 1004, 9991},
                                                             {2348, 1451, 3522, 2883, 3047, 6650},
                                                             {4047, 8828, 8732, 5743, 1091, 381}}};
  double value = 0;
  for (std::size_t row = 0; row < 4; ++row) {
    double away = 0;
    for (std::size_t i = 0; i < 6; ++i) away += kA[row][i] * square(p[i] - kCentre[row][i] * 1e-4);
    value -= kAlpha[row] * std::exp(-away);
  }
  return value;
}

double levy(Numbers x) {
  const auto w = [&](std::size_t i) { return 1 + (x[i] - 1) / 4; };
  const double last = w(x.size() - 1);
  double value =
      square(std::sin(pi * w(0))) + square(last - 1) * (1 + square(std::sin(2 * pi * last)));
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    value += square(w(i) - 1) * (1 + 10 * square(std::sin(pi * w(i) + 1)));
  }
  return value;
}

double levy_mixed(Numbers p) {
  const std::array<double, 5> x = {4 * (std::log10(p[0]) + 2), p[1], p[2], p[3],
                                   std::log2(p[4]) - 4};
  return levy(x);
}

template <std::size_t N>
double pick(const std::array<double, N>& numbers, double index) {
  return numbers[static_cast<std::size_t>(index)];
}

double choice_and_numbers(Numbers p) {
  const double shift = pick<5>({-3.0, 2.5, 1.0, -1.5, 4.0}, p[0]);
  double value = pick<5>({1.0, 0.6, 0.0, 0.3, 1.5}, p[0]) +
                 pick<3>({0.5, 0.0, 0.25}, p[1]) * (1 + 0.1 * p[2] * p[2]);
  for (std::size_t i = 0; i < 3; ++i) {
    const double away = p[2 + i] - shift * static_cast<double>(i + 1) / 3;
    value += 0.5 * (1 - std::cos(1.5 * away)) + 0.1 * away * away;
  }
  return value;
}

double conditional_optimizer(Numbers p) {
  double value = 0;
  if (p[0] == 0) {
    value = 0.08 + 0.03 * square(std::log10(p[1]) + 0.5);
  } else if (p[0] == 1) {
    value = 0.03 + 0.04 * square(std::log10(p[2]) + 2) + 0.5 * square(p[3] - 0.9);
  } else {
    value = 0.05 * square(std::log10(p[4]) + 3) + 0.3 * square(p[5] - 0.9);
  }
  value += pick<3>({0.06, 0.0, 0.02}, p[6]);
  for (std::size_t i = 0; i <= static_cast<std::size_t>(p[6]); ++i) {
    value += 0.01 * square(std::log2(p[7 + i]) - (6 - static_cast<double>(i)));
  }
  return value;
}

/// Error of a classifier whose best learning rate depends on the batch, with ripples.
double classifier(Numbers p) {
  const double rate = std::log10(p[0]) + 2 - 0.5 * std::log10(p[1] / 64);
  const double width = std::log2(p[4] / 256);
  const double decay = std::log10(p[2]) + 4 + 0.3 * width;
  const double drop = p[3] - 0.2;
  const double steep = rate > 0 ? 0.3 : 0;
  const double bend = (0.15 + steep) * rate * rate + 0.01 * square(std::log2(p[1] / 64)) +
                      0.03 * decay * decay + drop * drop + 0.02 * width * width;
  const double ripple = 0.004 * (1 - std::cos(40 * rate)) + 0.004 * (1 - std::cos(25 * drop));
  return 0.05 + 0.85 * (1 - std::exp(-bend)) + ripple;
}

double ackley5(Numbers p) {
  double squares = 0;
  double waves = 0;
  for (const double x : p) {
    squares += x * x / 5;
    waves += std::cos(2 * pi * x) / 5;
  }
  return -20 * std::exp(-0.2 * std::sqrt(squares)) - std::exp(waves) + 20 + std::numbers::e;
}

double rosenbrock4(Numbers p) {
  double value = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    value += 100 * square(p[i + 1] - square(p[i])) + square(1 - p[i]);
  }
  return value;
}

double camel(Numbers p) {
  const double x = square(p[0]);
  const double y = square(p[1]);
  return (4 - 2.1 * x + x * x / 3) * x + p[0] * p[1] + (-4 + 4 * y) * y;
}

double styblinski_mixed(Numbers p) {
  double value = 0;
  for (const double x : {p[0], p[1], 2 * (std::log10(p[2]) + 2.5), p[3]}) {
    value += (square(x * x) - 16 * x * x + 5 * x) / 8;
  }
  return value;
}

double goldstein(Numbers p) {
  const double x = p[0];
  const double y = p[1];
  const double one =
      1 + square(x + y + 1) * (19 - 14 * x + 3 * x * x - 14 * y + 6 * x * y + 3 * y * y);
  const double two =
      30 + square(2 * x - 3 * y) * (18 - 32 * x + 12 * x * x + 48 * y - 36 * x * y + 27 * y * y);
  return std::log(one * two);
}

double choices(Numbers p) {
  const std::array<double, 4> cost = {
      pick<6>({0.9, 0.0, 0.4, 0.7, 0.2, 1.1}, p[0]), pick<6>({0.3, 0.8, 0.5, 0.0, 1.0, 0.6}, p[1]),
      pick<6>({0.0, 0.2, 0.9, 0.4, 0.6, 0.1}, p[2]), pick<6>({0.7, 0.5, 0.3, 0.9, 0.0, 0.8}, p[3])};
  const double value =
      cost[0] + cost[1] + cost[2] + cost[3] + cost[0] * cost[1] + cost[2] * cost[3];
  return value + 2 * square(p[4] - 0.3 - 0.1 * cost[0]) + 2 * square(p[5] - 0.6 + 0.2 * cost[2]);
}

double conditional_depth(Numbers p) {
  const double depth = p[2] + 2;
  double value = p[0] == 0 ? 0.2 : 0.05 * square(std::log10(p[1]) - 0.3);
  value += 0.05 * std::abs(depth - 4);
  for (std::size_t i = 0; i < static_cast<std::size_t>(depth); ++i) {
    value += 0.3 * square((p[3 + i] - 12 * static_cast<double>(i + 1)) / 64);
  }
  return value + 0.04 * square(std::log10(p[8]) + 2.2 + 0.1 * depth);
}

double griewank8(Numbers p) {
  double product = 1;
  double squares = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    product *= std::cos(p[i] / std::sqrt(static_cast<double>(i + 1)));
    squares += p[i] * p[i];
  }
  return 1 + squares / 4000 - product;
}

const std::map<std::string, double (*)(Numbers)>& formulas() {
  static const std::map<std::string, double (*)(Numbers)> all = {
      {"branin", branin},
      {"hartmann6", hartmann6},
      {"levy_mixed", levy_mixed},
      {"choice_and_numbers", choice_and_numbers},
      {"conditional_optimizer", conditional_optimizer},
      {"classifier", classifier},
      {"ackley5", ackley5},
      {"rosenbrock4", rosenbrock4},
      {"camel", camel},
      {"styblinski_mixed", styblinski_mixed},
      {"goldstein", goldstein},
      {"choices", choices},
      {"conditional_depth", conditional_depth},
      {"griewank8", griewank8}};
  return all;
}

/// Values of all cells of NAS-Bench-201, by their operators read as a number of base 5.
using Table = std::vector<double>;

std::size_t cell_number(Numbers p) {
  std::size_t number = 0;
  for (const double digit : p) number = number * 5 + static_cast<std::size_t>(digit);
  return number;
}

/// One column, ordered by cell. The tables are known to be whole.
Result<Table> read_table(const std::filesystem::path& file, const std::string& column) {
  FLEETFIT_ASSIGN(auto table, core::read_csv(file));
  FLEETFIT_ASSIGN(const auto values, table.numbers(column));
  FLEETFIT_ASSIGN(const auto ops, table.column("ops"));
  Table cells(table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::vector<double> digits;
    for (const char digit : table.cell(row, ops)) digits.push_back(digit - '0');
    cells.at(cell_number(digits)) = values[row];
  }
  return cells;
}

std::function<double(Numbers)> lookup(Table table) {
  return [table = std::move(table)](Numbers p) { return table[cell_number(p)]; };
}

Table error_of(Table accuracy) {
  for (double& value : accuracy) value = 100 - value;
  return accuracy;
}

Status take_table(Function& function, const std::filesystem::path& data) {
  const std::map<std::string, std::string> columns = {{"nasbench201_latency", "in16_test_200ep"},
                                                      {"nasbench201_fidelities", "c10_test_200ep"},
                                                      {"nasbench201_c100", "c100_test_200ep"}};
  const auto found = columns.find(function.name);
  if (found == columns.end()) {
    return fail(ErrorCode::invalid_input, function.name + ": no such function");
  }
  const std::filesystem::path accuracies = data / "accuracy/nasbench201.csv";
  FLEETFIT_ASSIGN(auto accuracy, read_table(accuracies, found->second));
  Table values = error_of(std::move(accuracy));
  if (function.name == "nasbench201_latency") {
    FLEETFIT_ASSIGN(const auto latency, read_table(data / "latency/nasbench201.csv", "raspi4"));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.2 * latency[i];
  }
  if (!function.levels.empty()) {
    FLEETFIT_ASSIGN(auto low, read_table(accuracies, "c10_val_12ep"));
    function.low_fidelity = lookup(error_of(std::move(low)));
  }
  function.optimum = *std::min_element(values.begin(), values.end());
  function.value = lookup(std::move(values));
  return {};
}

/// The file is part of this program's source, so what is wrong with it is a mistake in here and may
/// throw.
tune::Parameter read_parameter(const nlohmann::json& json,
                               const std::vector<tune::Parameter>& before) {
  tune::Parameter parameter;
  parameter.name = json.at("name");
  for (const auto& value : json.value("values", nlohmann::json::array())) {
    parameter.values.emplace_back(value.get<std::string>());
  }
  parameter.low = json.value("low", 0.0);
  parameter.high = json.value("high", 0.0);
  parameter.integer = json.value("integer", false);
  parameter.log = json.value("log", false);
  if (!json.contains("when")) return parameter;
  tune::Parameter::Condition when;
  const auto parent = std::find_if(before.begin(), before.end(), [&](const auto& one) {
    return one.name == json["when"][0].get<std::string>();
  });
  when.parameter = static_cast<std::size_t>(parent - before.begin());
  for (const auto& value : json["when"][1]) {
    const auto place = std::find(parent->values.begin(), parent->values.end(),
                                 tune::Value(value.get<std::string>()));
    when.choices.push_back(static_cast<std::size_t>(place - parent->values.begin()));
  }
  parameter.when = std::move(when);
  return parameter;
}

Result<Function> read_function(const nlohmann::json& json, const std::filesystem::path& data) {
  Function function;
  function.name = json.at("name");
  function.is_benchmark = json.value("set", "benchmark") == "benchmark";
  function.evaluations = json.at("evaluations");
  function.levels = json.value("levels", std::vector<double>{});
  std::vector<tune::Parameter> parameters;
  for (const auto& parameter : json.at("parameters")) {
    parameters.push_back(read_parameter(parameter, parameters));
  }
  FLEETFIT_ASSIGN(function.parameters, tune::Parameters::create(std::move(parameters)));
  const auto formula = formulas().find(function.name);
  if (formula != formulas().end()) {
    function.value = formula->second;
    function.optimum = json.at("optimum");
  } else if (auto taken = take_table(function, data); !taken) {
    return tl::unexpected(taken.error());
  }
  return function;
}

}  // namespace

Result<std::vector<Function>> read_functions(const std::filesystem::path& file,
                                             const std::filesystem::path& data) {
  FLEETFIT_ASSIGN(const auto json, core::read_json(file));
  std::vector<Function> functions;
  for (const auto& entry : json) {
    FLEETFIT_ASSIGN(auto function, read_function(entry, data));
    functions.push_back(std::move(function));
  }
  return functions;
}

}  // namespace fleetfit::bench
