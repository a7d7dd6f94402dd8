#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/predicting.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/result.h"
#include "fleetfit/predict/design_predictor.h"

/// Use cases of predicting where only the times of whole networks are known: a table of designs.
namespace fleetfit::app {

/// A column of a CSV file with designs of a space.
struct TableColumn {
  std::filesystem::path file = {};
  std::string column = {};
};

/// Reads "FILE.csv#COLUMN".
Result<TableColumn> table_column_from(std::string_view text);

struct TrainOnTableRequest {
  std::string space = {};
  TableColumn table = {};
  std::size_t samples = 0;  ///< designs to learn from, drawn by the seed; 0: all
  predict::DesignMethod method = predict::DesignMethod::automatic;
  std::string encoding = "auto";
  std::optional<double> budget_s = {};  ///< for a graph network; none: as long as it takes
  std::filesystem::path output = {};
  std::uint64_t seed = 1;
  int threads = 1;
};

struct TrainedOnTable {
  std::filesystem::path output = {};
  predict::Identity identity = {};
  std::string space = {};
  std::string reads = {};  ///< the encoding, or "graph"
  std::string settings = {};
  double mape = 0;          ///< in percent, of designs that it did not see
  std::size_t missing = 0;  ///< empty cells of the column
};
core::Fields fields_of(const TrainedOnTable*);

/// Learns a device's latency from a column of a table and writes the predictor's file. Fails as
/// `read_design_table` and `train_design_predictor` do, and with `invalid_input` if the column has
/// fewer numbers than `samples`.
Result<TrainedOnTable> train_on_table(const core::Clock& clock, const TrainOnTableRequest& request,
                                      const std::stop_token& stop);

struct PredictedDesign {
  std::string design = {};
  double latency_ms = 0;
  core::Interval interval90 = {};
};

struct PredictedDesigns {
  predict::Identity predictor = {};
  std::vector<PredictedDesign> designs = {};
};

/// How long designs, given by their texts, take on the predictor's device.
Result<PredictedDesigns> predict_designs(const std::filesystem::path& predictor,
                                         const std::vector<std::string>& designs);

/// Holds a predictor against a table; designs that it was trained with are left out.
struct EvaluateOnTableRequest {
  std::filesystem::path predictor = {};
  TableColumn table = {};
};

struct TableEvaluation {
  predict::Identity predictor = {};
  std::size_t designs = 0;
  std::size_t left_out = 0;  ///< that it was trained with
  double mape = 0;           ///< in percent
  double within_5pct = 0;
  double within_10pct = 0;
  double coverage90 = 0;  ///< share of designs whose time lies in its interval
  double srcc = 0;        ///< rank correlation
};
core::Fields fields_of(const TableEvaluation*);

Result<TableEvaluation> evaluate_on_table(const EvaluateOnTableRequest& request);

nlohmann::ordered_json to_json(const PredictedDesigns& predictions);

}  // namespace fleetfit::app
