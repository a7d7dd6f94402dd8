#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"

/// The parts of `fleetfit predict` that know whole networks alone: tables of designs.
namespace fleetfit::cli {

struct TableTraining {
  std::string table;  ///< FILE.csv#COLUMN
  std::string space;
  std::size_t samples = 0;
  std::string method;
  std::string encoding = "auto";
  std::optional<double> budget_s;  ///< of a graph network
  std::string output;
};

Result<int> train_on_table(const Context& context, const TableTraining& training);
Result<int> predict_designs(const Context& context, const std::string& predictor,
                            const std::vector<std::string>& designs);
Result<int> evaluate_on_table(const Context& context, const std::string& predictor,
                              const std::string& table);

}  // namespace fleetfit::cli
