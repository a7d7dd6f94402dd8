#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/predict/training_files.h"
#include "fleetfit/train/graph_network.h"
#include "train/verbs/predictor_flags.h"

namespace fleetfit::train {
namespace {

Result<int> run_graph_network(const PredictorFlags& flags) {
  FLEETFIT_ASSIGN(const auto set, predict::read_graph_set(flags.samples));
  Work work(flags.common);
  FLEETFIT_ASSIGN(const auto trained,
                  core::within(flags.samples,
                               train_graph_network(
                                   {.features = set.features, .graphs = set.graphs, .ms = set.ms},
                                   flags.options(work, 1.0), work.context())));
  const auto text = core::format_json_line(trained.network.to_json()) + "\n";
  FLEETFIT_TRY(core::write_file(flags.output, text));
  if (flags.common.json) {
    print({{"validation_percent", trained.validation_percent},
           {"epochs", trained.epochs},
           {"ended", to_string(trained.ended)},
           {"settings", trained.settings},
           {"elapsed_s", work.elapsed_s()},
           {"interrupted", work.is_interrupted()}});
  } else {
    fmt::print("{:.2f} % on graphs not trained on after {} epochs ({})\n",
               trained.validation_percent, trained.epochs, trained.settings);
  }
  return work.finish("interrupted; the best network so far is in " + flags.output);
}

}  // namespace

void add_graph_network(CLI::App& program, Action& action) {
  add_predictor_verb(program, action, "graph-network",
                     "A graph network that predicts the time of a whole network",
                     &run_graph_network);
}

}  // namespace fleetfit::train
