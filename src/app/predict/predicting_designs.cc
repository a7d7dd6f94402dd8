#include "fleetfit/app/predicting_designs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "fleetfit/core/json.h"
#include "fleetfit/core/random.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/report/words.h"
#include "fleetfit/space/table.h"

namespace fleetfit::app {
namespace {

/// Designs with their times.
struct TimedDesigns {
  const space::Space* space;
  space::Population designs;
  std::vector<double> ms = {};
  std::size_t missing = 0;
};

Result<TimedDesigns> read_column(const space::Space& space, const TableColumn& from) {
  FLEETFIT_ASSIGN(const auto table,
                  space::read_design_table(from.file, space, {.columns = {from.column}}));
  TimedDesigns timed{.space = &space, .designs = space::Population(space.genes().size())};
  for (std::size_t row = 0; row < table.designs.size(); ++row) {
    const double ms = table.values[0][row];
    if (std::isnan(ms)) {
      ++timed.missing;
      continue;
    }
    timed.designs.add(table.designs[row]);
    timed.ms.push_back(ms);
  }
  return timed;
}

/// Keeps `count` of them, drawn by the seed.
Status draw(TimedDesigns& timed, std::size_t count, std::uint64_t seed, const TableColumn& from) {
  if (count == 0) return {};
  if (count > timed.ms.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: column {} has {} numbers, {} are asked for", from.file.string(),
                            from.column, timed.ms.size(), count));
  }
  std::vector<std::size_t> order(timed.ms.size());
  std::iota(order.begin(), order.end(), 0);
  core::Random(seed).split("samples").shuffle(order);
  TimedDesigns drawn{.space = timed.space, .designs = space::Population(timed.designs.genes())};
  for (const auto row : std::span(order).first(count)) {
    drawn.designs.add(std::as_const(timed.designs)[row]);
    drawn.ms.push_back(timed.ms[row]);
  }
  drawn.missing = timed.missing;
  timed = std::move(drawn);
  return {};
}

std::vector<std::string> texts_of(const TimedDesigns& timed) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < timed.designs.size(); ++i)
    texts.push_back(timed.space->format(std::as_const(timed.designs)[i]));
  return texts;
}

Result<TableEvaluation> compare(const predict::DesignPredictor& predictor,
                                const TimedDesigns& timed) {
  std::vector<double> predicted(timed.ms.size());
  FLEETFIT_TRY(predictor.evaluate(timed.designs, predicted));
  TableEvaluation evaluation{.predictor = predictor.identity(), .designs = timed.ms.size()};
  const double share = 1.0 / static_cast<double>(timed.ms.size());
  for (std::size_t i = 0; i < timed.ms.size(); ++i) {
    const double error = std::abs(predicted[i] / timed.ms[i] - 1);
    const auto interval = predictor.interval90(predicted[i]);
    evaluation.mape += 100 * error * share;
    if (error <= 0.05) evaluation.within_5pct += share;
    if (error <= 0.10) evaluation.within_10pct += share;
    if (interval.low <= timed.ms[i] && timed.ms[i] <= interval.high) evaluation.coverage90 += share;
  }
  FLEETFIT_ASSIGN(evaluation.srcc, core::spearman(predicted, timed.ms));
  return evaluation;
}

}  // namespace

Result<TableColumn> table_column_from(std::string_view text) {
  const auto mark = text.rfind('#');
  if (mark == std::string_view::npos || mark == 0 || mark + 1 == text.size())
    return fail(ErrorCode::invalid_input, fmt::format("'{}' is not FILE.csv#COLUMN", text));
  return TableColumn{.file = text.substr(0, mark), .column = std::string(text.substr(mark + 1))};
}

Result<TrainedOnTable> train_on_table(const core::Clock& clock, const TrainOnTableRequest& request,
                                      const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(request.space));
  FLEETFIT_ASSIGN(auto timed, read_column(*space, request.table));
  FLEETFIT_TRY(draw(timed, request.samples, request.seed, request.table));
  predict::Identity identity{.device = request.table.column, .date = report::today(clock)};
  identity.trained_on.space = request.space;
  identity.trained_on.models = texts_of(timed);
  core::ThreadPool pool(request.threads);
  FLEETFIT_ASSIGN(const auto predictor,
                  predict::train_design_predictor(*space, timed.designs, timed.ms,
                                                  {.method = request.method,
                                                   .encoding = request.encoding,
                                                   .identity = std::move(identity),
                                                   .seed = request.seed,
                                                   .budget_s = request.budget_s,
                                                   .stop = stop},
                                                  pool));
  FLEETFIT_TRY(core::write_json(request.output, predictor->to_json()));
  return TrainedOnTable{.output = request.output,
                        .identity = predictor->identity(),
                        .space = request.space,
                        .reads = std::string(predictor->reads()),
                        .settings = std::string(predictor->settings()),
                        .mape = predictor->mape(),
                        .missing = timed.missing};
}

Result<PredictedDesigns> predict_designs(const std::filesystem::path& predictor,
                                         const std::vector<std::string>& designs) {
  FLEETFIT_ASSIGN(const auto read, predict::read_design_predictor(predictor));
  const auto& space = read->space();
  space::Population population(space.genes().size());
  for (const auto& text : designs) {
    const auto design = space.parse(text);
    if (!design) return core::within(fmt::format("design '{}'", text), design.error());
    population.add(*design);
  }
  std::vector<double> ms(designs.size());
  FLEETFIT_TRY(read->evaluate(population, ms));
  PredictedDesigns predictions{.predictor = read->identity()};
  for (std::size_t i = 0; i < designs.size(); ++i)
    predictions.designs.push_back({designs[i], ms[i], read->interval90(ms[i])});
  return predictions;
}

Result<TableEvaluation> evaluate_on_table(const EvaluateOnTableRequest& request) {
  FLEETFIT_ASSIGN(const auto predictor, predict::read_design_predictor(request.predictor));
  FLEETFIT_ASSIGN(const auto timed, read_column(predictor->space(), request.table));
  const auto& models = predictor->identity().trained_on.models;
  const std::set<std::string> known(models.begin(), models.end());
  TimedDesigns unseen{.space = timed.space, .designs = space::Population(timed.designs.genes())};
  const auto texts = texts_of(timed);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (known.contains(texts[i])) continue;
    unseen.designs.add(timed.designs[i]);
    unseen.ms.push_back(timed.ms[i]);
  }
  if (unseen.ms.empty()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: the predictor was trained with all designs of column {}",
                            request.table.file.string(), request.table.column));
  }
  auto evaluation = compare(*predictor, unseen);
  if (evaluation) evaluation->left_out = timed.ms.size() - unseen.ms.size();
  return evaluation;
}

core::Fields fields_of(const TrainedOnTable*) {
  using Trained = TrainedOnTable;
  using predict::Identity;
  static constexpr core::Field kAll[] = {
      core::computed("output", [](const Trained& trained) { return trained.output.string(); }),
      core::field<&Trained::identity, &Identity::device>("device"),
      FLEETFIT_MEMBERS(Trained, space),
      core::field<&Trained::identity, &Identity::method>("method"),
      FLEETFIT_MEMBERS(Trained, reads, settings),
      core::field<&Trained::identity, &Identity::networks>("networks"),
      FLEETFIT_MEMBERS(Trained, missing),
      core::field<&Trained::mape>("cross_validation_mape")};
  return {.all = kAll};
}

nlohmann::ordered_json to_json(const PredictedDesigns& predictions) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& one : predictions.designs) {
    list.push_back({{"model", one.design},
                    {"device", predictions.predictor.device},
                    {"source", "predicted"},
                    {"method", predictions.predictor.method},
                    {"latency_ms", one.latency_ms},
                    {"interval90", {one.interval90.low, one.interval90.high}}});
  }
  return list;
}

core::Fields fields_of(const TableEvaluation*) {
  using Evaluated = TableEvaluation;
  static constexpr core::Field kAll[] = {
      core::field<&Evaluated::designs>("models"),
      core::field<&Evaluated::predictor, &predict::Identity::device>("device"),
      core::field<&Evaluated::predictor, &predict::Identity::method>("method"),
      FLEETFIT_MEMBERS(Evaluated, mape, within_5pct, within_10pct, coverage90, srcc, left_out)};
  return {.all = kAll};
}

}  // namespace fleetfit::app
