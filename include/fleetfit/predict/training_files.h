#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/predict/graph_network.h"
#include "fleetfit/predict/regressor.h"

/// The files between fleetfit and fleetfit-train (docs/training.md). Reading checks everything that
/// training and predicting rely on; errors are `invalid_input` and name file and field.
namespace fleetfit::predict {

/// Rows of one kind of thing with their times.
struct RowSet {
  std::string name;                   ///< e.g. of the kind of kernels
  std::vector<std::string> features;  ///< names of the numbers of a row
  std::vector<double> values;         ///< row by row
  std::vector<double> ms;             ///< of each row, positive
  std::vector<int> fold = {};         ///< of each row, or empty
  int folds = 0;                      ///< 0: no row has one

  /// Borrows this set.
  TrainingSet view() const;
};

/// Type "training-rows". Names are all different.
Status write_row_sets(const std::filesystem::path& file, std::span<const RowSet> sets);
Result<std::vector<RowSet>> read_row_sets(const std::filesystem::path& file);

/// A model that was trained on a RowSet.
struct TrainedModel {
  std::string name;                   ///< of the set
  std::vector<std::string> features;  ///< of the set
  std::unique_ptr<Regressor> model;
  std::string settings;           ///< for people
  double validation_percent = 0;  ///< mean error on rows that were not trained on
  int epochs = 0;
  std::string ended;                ///< "patience", "epochs" or "early"
  std::vector<double> out_of_fold;  ///< of each row; empty if there were no folds
};
core::Fields fields_of(const TrainedModel*);

/// Type "trained-models".
Status write_trained_models(const std::filesystem::path& file,
                            std::span<const TrainedModel> models);
Result<std::vector<TrainedModel>> read_trained_models(const std::filesystem::path& file);

/// Graphs with their times.
struct GraphSet {
  std::vector<std::string> features;  ///< names of the numbers of a node
  std::vector<std::string> names;     ///< of each graph
  std::vector<NodeGraph> graphs;
  std::vector<double> ms;  ///< of each graph, positive
};

/// Type "training-graphs".
Status write_graph_set(const std::filesystem::path& file, const GraphSet& set);
Result<GraphSet> read_graph_set(const std::filesystem::path& file);

struct TrainerOptions {
  std::uint64_t seed = 0;
  std::optional<double> budget_s = {};  ///< none: as long as it takes
  std::optional<int> threads = {};
  std::optional<int> trials = {};
  std::stop_token stop = {};
};

/// Has a verb of fleetfit-train learn from a file of samples; `not_found` if it is not installed.
/// One that was stopped has written what it had by then, if anything.
Status run_trainer(std::string_view verb, const std::filesystem::path& samples,
                   const std::filesystem::path& output, const TrainerOptions& options);

}  // namespace fleetfit::predict
