#include "cli/predict_designs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/text_table.h"
#include "fleetfit/app/predicting_designs.h"
#include "fleetfit/core/interrupt.h"

namespace fleetfit::cli {
namespace {

using Align = TextTable::Align;

std::string trained_text(const app::TrainedOnTable& trained) {
  return fmt::format(
      "{}: {} designs of {} on {}, {} of the {}, mean error of designs not seen {:.1f} %\n",
      trained.output.string(), trained.identity.networks, trained.space, trained.identity.device,
      trained.settings, trained.reads == "graph" ? "graph" : "encoding " + trained.reads,
      trained.mape);
}

std::string predictions_text(const app::PredictedDesigns& predictions) {
  TextTable table(
      {{"design"}, {"device"}, {"predicted ms", Align::right}, {"90 % interval", Align::right}});
  for (const auto& one : predictions.designs) {
    table.add({one.design, predictions.predictor.device, fmt::format("{:.4g}", one.latency_ms),
               fmt::format("{:.4g} to {:.4g}", one.interval90.low, one.interval90.high)});
  }
  return table.text();
}

std::string evaluation_text(const app::TableEvaluation& evaluation) {
  return fmt::format(
      "{} designs on {}: mean error {:.2f} %, {:.0f} % of them within 5 %, {:.0f} % within 10 %; "
      "the 90 % intervals hold {:.0f} %; rank correlation {:.3f}; {} that it was trained with are "
      "left out\n",
      evaluation.designs, evaluation.predictor.device, evaluation.mape,
      100 * evaluation.within_5pct, 100 * evaluation.within_10pct, 100 * evaluation.coverage90,
      evaluation.srcc, evaluation.left_out);
}

}  // namespace

Result<int> train_on_table(const Context& context, const TableTraining& training) {
  const auto table = app::table_column_from(training.table);
  if (!table) return core::within("--table", table.error());
  const auto method = core::parse_name<predict::DesignMethod>(training.method);
  if (!method) return core::within("--method", method.error());
  const core::Interrupt interrupt;
  const core::SystemClock clock;
  FLEETFIT_ASSIGN(const auto trained, app::train_on_table(clock,
                                                          {.space = training.space,
                                                           .table = *table,
                                                           .samples = training.samples,
                                                           .method = *method,
                                                           .encoding = training.encoding,
                                                           .budget_s = training.budget_s,
                                                           .output = training.output,
                                                           .seed = context.flags.seed,
                                                           .threads = context.threads()},
                                                          interrupt.token()));
  if (context.flags.json) {
    context.print(app::to_json(trained));
  } else {
    context.print(trained_text(trained));
  }
  return 0;
}

Result<int> predict_designs(const Context& context, const std::string& predictor,
                            const std::vector<std::string>& designs) {
  FLEETFIT_ASSIGN(const auto predictions, app::predict_designs(predictor, designs));
  if (context.flags.json) {
    context.print(app::to_json(predictions));
  } else {
    context.print(predictions_text(predictions));
  }
  return 0;
}

Result<int> evaluate_on_table(const Context& context, const std::string& predictor,
                              const std::string& table) {
  FLEETFIT_ASSIGN(const auto column, core::within("--table", app::table_column_from(table)));
  FLEETFIT_ASSIGN(const auto evaluation,
                  app::evaluate_on_table({.predictor = predictor, .table = column}));
  if (context.flags.json) {
    context.print(app::to_json(evaluation));
  } else {
    context.print(evaluation_text(evaluation));
  }
  return 0;
}

}  // namespace fleetfit::cli
