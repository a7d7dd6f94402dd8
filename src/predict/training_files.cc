#include "fleetfit/predict/training_files.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "fleetfit/core/companion.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "predict/documents.h"

namespace fleetfit::predict {
namespace {

using core::JsonView;
using Json = nlohmann::json;

constexpr DocumentKind kRows{.type = "training-rows"};
constexpr DocumentKind kModels{.type = "trained-models"};
constexpr DocumentKind kGraphs{.type = "training-graphs"};
constexpr core::JsonLimits kLimits{.max_bytes = std::uint64_t{1} << 30};

// On one line: indented, each number would be a line.
Status write_line(const std::filesystem::path& file, const DocumentKind& kind, Json document) {
  document["type"] = kind.type;
  document["version"] = kind.version;
  return core::write_file(file, core::format_json_line(document) + "\n");
}

Json rows_json(std::span<const double> values, std::size_t columns) {
  Json rows = Json::array();
  for (std::size_t at = 0; columns > 0 && at < values.size(); at += columns) {
    const auto row = values.subspan(at, columns);
    rows.push_back(Json::array_t(row.begin(), row.end()));
  }
  return rows;
}

// A list of lists of `columns` numbers each, one after the other.
Result<std::vector<double>> read_rows(const JsonView& json, std::size_t columns) {
  FLEETFIT_ASSIGN(const auto rows, json.items());
  std::vector<double> values;
  values.reserve(rows.size() * columns);
  for (const auto& row : rows) {
    FLEETFIT_ASSIGN(const auto numbers, row.as_numbers());
    if (numbers.size() != columns) {
      return row.error(fmt::format("expected {} numbers, one for each feature, found {}", columns,
                                   numbers.size()));
    }
    values.insert(values.end(), numbers.begin(), numbers.end());
  }
  return values;
}

Status check_time(const JsonView& place, double ms) {
  if (std::isfinite(ms) && ms > 0) return {};
  return place.error(fmt::format("{} is no positive time", ms));
}

Result<std::vector<double>> read_times(const JsonView& json, std::size_t count) {
  auto times = json.as_numbers();
  if (!times) return times;
  if (times->size() != count)
    return json.error(
        fmt::format("expected {} times, one for each row, found {}", count, times->size()));
  for (std::size_t i = 0; i < count; ++i) {
    if (auto checked = check_time(json, (*times)[i]); !checked)
      return json.error(fmt::format("row {}: {} is no positive time", i, (*times)[i]));
  }
  return times;
}

Status read_folds(const JsonView& json, RowSet& set) {
  FLEETFIT_ASSIGN(const auto fold, json.find("fold"));
  if (!fold) return {};
  FLEETFIT_ASSIGN(const auto folds, json.integer("folds", {1, 1'000'000}));
  FLEETFIT_ASSIGN(const auto numbers, fold->items());
  if (numbers.size() != set.ms.size()) {
    return fold->error(fmt::format("expected {} folds, one for each row, found {}", set.ms.size(),
                                   numbers.size()));
  }
  for (const auto& number : numbers) {
    FLEETFIT_ASSIGN(const auto value, number.as_integer({0, folds - 1}));
    set.fold.push_back(static_cast<int>(value));
  }
  set.folds = static_cast<int>(folds);
  return {};
}

Result<RowSet> read_row_set(const JsonView& json) {
  FLEETFIT_TRY(json.allow_only({"name", "features", "rows", "ms", "fold", "folds"}));
  RowSet set;
  FLEETFIT_ASSIGN(set.name, json.text("name"));
  FLEETFIT_ASSIGN(auto features, json.texts("features"));
  if (features.empty()) return json.at("features")->error("there are none");
  set.features = std::move(features);
  FLEETFIT_ASSIGN(auto values, json.at("rows").and_then([&](const JsonView& rows) {
    return read_rows(rows, set.features.size());
  }));
  if (values.empty()) return json.at("rows")->error("there are none");
  set.values = std::move(values);
  FLEETFIT_ASSIGN(set.ms, json.at("ms").and_then([&](const JsonView& times) {
    return read_times(times, set.values.size() / set.features.size());
  }));
  FLEETFIT_TRY(read_folds(json, set));
  return set;
}

Json row_set_json(const RowSet& set) {
  Json json = {{"name", set.name},
               {"features", set.features},
               {"rows", rows_json(set.values, set.features.size())},
               {"ms", set.ms}};
  if (set.folds > 0) {
    json["fold"] = set.fold;
    json["folds"] = set.folds;
  }
  return json;
}

Status read_regressor(const JsonView& json, TrainedModel& trained) {
  FLEETFIT_ASSIGN(trained.model, regressor_from_json(json, trained.features.size()));
  return {};
}

nlohmann::ordered_json write_regressor(const TrainedModel& trained) {
  return trained.model->to_json();
}

// Objects in the list `key` of a document of this type, with names that are all different.
template <class T>
Result<std::vector<T>> read_named(const std::filesystem::path& file, const DocumentKind& kind,
                                  std::string_view key, Result<T> (*read)(const JsonView&)) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file, kLimits));
  const JsonView json(document, file.string());
  FLEETFIT_TRY(check_kind(json, kind));
  FLEETFIT_ASSIGN(const auto items, json.items(key));
  std::vector<T> all;
  std::set<std::string> names;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto one, read(item));
    if (!names.insert(one.name).second)
      return item.error(fmt::format("there are two of the name '{}'", one.name));
    all.push_back(std::move(one));
  }
  return all;
}

Result<std::vector<GraphEdge>> read_edges(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  std::vector<GraphEdge> edges;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto ends, item.items());
    if (ends.size() != 2) return item.error("expected the two nodes of an edge");
    constexpr core::IntegerRange kNodes{0, 1 << 24};
    FLEETFIT_ASSIGN(const auto from, ends[0].as_integer(kNodes));
    FLEETFIT_ASSIGN(const auto to, ends[1].as_integer(kNodes));
    edges.push_back({.from = static_cast<int>(from), .to = static_cast<int>(to)});
  }
  return edges;
}

Status read_graph(const JsonView& json, GraphSet& set) {
  FLEETFIT_TRY(json.allow_only({"name", "nodes", "edges", "ms"}));
  FLEETFIT_ASSIGN(auto name, json.text_or("name", ""));
  const std::size_t features = set.features.size();
  FLEETFIT_ASSIGN(auto nodes, json.at("nodes").and_then(
                                  [&](const JsonView& rows) { return read_rows(rows, features); }));
  FLEETFIT_ASSIGN(auto edges, json.at("edges").and_then(read_edges));
  FLEETFIT_ASSIGN(const auto ms, json.number("ms"));
  FLEETFIT_TRY(check_time(*json.at("ms"), ms));
  NodeGraph graph{.features = features, .nodes = std::move(nodes), .edges = std::move(edges)};
  FLEETFIT_TRY(core::within(json.place(), check_graph(graph, features)));
  set.names.push_back(std::move(name));
  set.graphs.push_back(std::move(graph));
  set.ms.push_back(ms);
  return {};
}

Json edges_json(std::span<const GraphEdge> edges) {
  Json list = Json::array();
  for (const auto& edge : edges) list.push_back(Json::array_t{edge.from, edge.to});
  return list;
}

}  // namespace

core::Fields fields_of(const TrainedModel*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(TrainedModel, name, features),
      core::field_by<TrainedModel, read_regressor, write_regressor>("model"),
      core::field<&TrainedModel::settings>("settings").may_be_missing(),
      core::field<&TrainedModel::validation_percent>("validation_percent"),
      core::field<&TrainedModel::epochs>("epochs").between(0, 1'000'000'000),
      FLEETFIT_MEMBERS(TrainedModel, ended, out_of_fold)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

TrainingSet RowSet::view() const {
  return {
      .x = {.values = values, .columns = features.size()}, .y = ms, .fold = fold, .folds = folds};
}

Status write_row_sets(const std::filesystem::path& file, std::span<const RowSet> sets) {
  auto list = core::json_list(sets, row_set_json);
  return write_line(file, kRows, {{"sets", std::move(list)}});
}

Result<std::vector<RowSet>> read_row_sets(const std::filesystem::path& file) {
  return read_named<RowSet>(file, kRows, "sets", &read_row_set);
}

Status write_trained_models(const std::filesystem::path& file,
                            std::span<const TrainedModel> models) {
  auto list =
      core::json_list(models, [&](const auto& model) { return core::to_json<Json>(model); });
  return write_line(file, kModels, {{"models", std::move(list)}});
}

Result<std::vector<TrainedModel>> read_trained_models(const std::filesystem::path& file) {
  return read_named<TrainedModel>(file, kModels, "models", &core::read<TrainedModel>);
}

Status write_graph_set(const std::filesystem::path& file, const GraphSet& set) {
  Json list = Json::array();
  for (std::size_t i = 0; i < set.graphs.size(); ++i) {
    list.push_back({{"name", set.names[i]},
                    {"nodes", rows_json(set.graphs[i].nodes, set.features.size())},
                    {"edges", edges_json(set.graphs[i].edges)},
                    {"ms", set.ms[i]}});
  }
  return write_line(file, kGraphs, {{"features", set.features}, {"graphs", std::move(list)}});
}

Result<GraphSet> read_graph_set(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file, kLimits));
  const JsonView json(document, file.string());
  FLEETFIT_TRY(check_kind(json, kGraphs));
  GraphSet set;
  FLEETFIT_ASSIGN(auto features, json.texts("features"));
  if (features.empty()) return json.at("features")->error("there are none");
  set.features = std::move(features);
  FLEETFIT_ASSIGN(const auto graphs, json.items("graphs"));
  if (graphs.empty()) return json.at("graphs")->error("there are none");
  for (const auto& graph : graphs) FLEETFIT_TRY(read_graph(graph, set));
  return set;
}

Status run_trainer(std::string_view verb, const std::filesystem::path& samples,
                   const std::filesystem::path& output, const TrainerOptions& options) {
  constexpr std::string_view kTrainer = "fleetfit-train";
  std::vector<std::string> arguments{std::string(verb),
                                     samples.string(),
                                     "--output",
                                     output.string(),
                                     "--json",
                                     "--seed",
                                     std::to_string(options.seed)};
  const auto add = [&](const char* flag, const auto& value) {
    if (value) arguments.insert(arguments.end(), {flag, fmt::format("{}", *value)});
  };
  add("--threads", options.threads);
  add("--budget-s", options.budget_s);
  add("--trials", options.trials);
  FLEETFIT_ASSIGN(const auto done,
                  core::run_companion(kTrainer, arguments, {.stop = options.stop}));
  // One that was stopped says so by its status, but has written what it had.
  if (done.status.succeeded() || options.stop.stop_requested()) return {};
  return fail(ErrorCode::internal, fmt::format("{} failed: {}", kTrainer, to_string(done.status)));
}

}  // namespace fleetfit::predict
