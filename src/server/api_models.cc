#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/statistics.h"
#include "server/api_json.h"
#include "server/api_state.h"

namespace fleetfit::server {
namespace {

constexpr std::size_t kMostRows = 100;
constexpr std::size_t kFewestDesigns = 3;

struct KnownModel {
  std::string hash = {};
  std::string name = {};
  std::int64_t bytes = 0;
  std::size_t measured_on = 0;
};

/// Those that are kept and those that were measured, by name and hash.
Result<std::vector<KnownModel>> known_models(ApiState& state) {
  FLEETFIT_ASSIGN(const auto kept, state.store().list_models());
  FLEETFIT_TRY(state.latencies().refresh());
  std::map<std::string, KnownModel> models;
  for (const auto& model : kept)
    models[model.hash] = {.hash = model.hash, .name = model.name, .bytes = model.bytes};
  for (auto& model : state.latencies().models()) {
    auto& known = models[model.hash];
    known.hash = model.hash;
    if (known.name.empty()) known.name = model.name;
    known.measured_on = model.devices;
  }
  std::vector<KnownModel> all;
  for (auto& [hash, model] : models) all.push_back(std::move(model));
  std::ranges::sort(all, {}, [](const KnownModel& m) { return std::tie(m.name, m.hash); });
  return all;
}

/// A model as a page shows it: by its name or, where several have the same, with its hash.
struct Row {
  LatencyIndex::Model model = {};
  std::string label = {};
};

std::vector<Row> labelled(std::vector<LatencyIndex::Model> models) {
  constexpr std::size_t kDigits = 8;
  std::map<std::string, int> uses;
  for (const auto& model : models) ++uses[model.name];
  std::vector<Row> rows;
  for (auto& model : models) {
    auto label = uses[model.name] == 1
                     ? model.name
                     : fmt::format("{} {}", model.name, model.hash.substr(0, kDigits));
    rows.push_back({std::move(model), std::move(label)});
  }
  return rows;
}

/// At most a hundred: those asked for by hash or name, or those that were measured on most devices,
/// by name.
Result<std::vector<Row>> rows_of(ApiState& state, const Call& call) {
  const auto asked = call.query.list("models");
  if (asked.size() > kMostRows)
    return fail(ErrorCode::invalid_input, "?models: more than 100 at once");
  auto models = state.latencies().models();
  if (!asked.empty()) {
    const std::set<std::string> wanted(asked.begin(), asked.end());
    std::erase_if(models, [&](const LatencyIndex::Model& model) {
      return !wanted.contains(model.hash) && !wanted.contains(model.name);
    });
  }
  std::ranges::stable_sort(models, std::ranges::greater(), &LatencyIndex::Model::devices);
  models.resize(std::min(models.size(), kMostRows));
  std::ranges::stable_sort(models, {}, &LatencyIndex::Model::name);
  return labelled(std::move(models));
}

Result<std::vector<std::string>> columns_of(ApiState& state, const Call& call) {
  auto asked = call.query.list("devices");
  if (asked.size() > kMostRows)
    return fail(ErrorCode::invalid_input, "?devices: more than 100 at once");
  if (!asked.empty()) return asked;
  auto devices = state.latencies().devices();
  std::ranges::stable_sort(devices, std::ranges::greater(), &LatencyIndex::Device::models);
  devices.resize(std::min(devices.size(), kMostRows));
  std::vector<std::string> names;
  for (auto& device : devices) names.push_back(std::move(device.name));
  std::ranges::sort(names);
  return names;
}

Json cell_json(const Row& row, const std::string& device, const LatencyIndex::Cell& cell) {
  return {{"model", row.label},
          {"hash", row.model.hash},
          {"device", device},
          {"median_ms", core::or_null(cell.median_ms)},
          {"ci95", cell.median_ms ? Json{cell.low_ms, cell.high_ms} : Json()},
          {"status", store::to_string(cell.status)},
          {"measured", time_text(cell.started)},
          {"measurement", cell.id}};
}

/// What was measured on a device, by model, with ranks among all of it.
struct Ranked {
  std::string device = {};
  std::vector<std::uint32_t> models = {};
  std::vector<double> ms = {};
  std::vector<double> ranks = {};
};

Result<std::vector<Ranked>> ranked(const std::vector<LatencyIndex::Column>& columns) {
  std::vector<Ranked> all;
  for (const auto& column : columns) {
    if (column.ms.empty()) continue;
    Ranked one{.device = column.device};
    for (const auto& [model, ms] : column.ms) {
      one.models.push_back(model);
      one.ms.push_back(ms);
    }
    FLEETFIT_ASSIGN(one.ranks, core::ranks(one.ms));
    all.push_back(std::move(one));
  }
  return all;
}

/// Two devices, over what was measured on both.
struct Pair {
  std::size_t common = 0;
  std::optional<double> srcc = std::nullopt;  ///< nothing if that is too little
};

Pair pair_of(std::size_t common, const Result<double>& srcc) {
  const bool enough = common >= kFewestDesigns && srcc && std::isfinite(*srcc);
  return {.common = common, .srcc = enough ? std::optional(*srcc) : std::nullopt};
}

Pair compare(const Ranked& a, const Ranked& b) {
  // Mostly the same models were measured everywhere: then all is ranked already.
  if (a.models == b.models) return pair_of(a.models.size(), core::pearson(a.ranks, b.ranks));
  std::vector<double> x;
  std::vector<double> y;
  std::size_t j = 0;
  for (std::size_t i = 0; i < a.models.size(); ++i) {
    while (j < b.models.size() && b.models[j] < a.models[i]) ++j;
    if (j == b.models.size()) break;
    if (b.models[j] != a.models[i]) continue;
    x.push_back(a.ms[i]);
    y.push_back(b.ms[j]);
  }
  return pair_of(x.size(), core::spearman(x, y));
}

}  // namespace

Result<ApiReply> get_models(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto models, known_models(state));
  const auto after = call.query.text("after");
  auto at = models.begin();
  if (!after.empty()) {
    at = std::ranges::find(models, after, &KnownModel::hash);
    if (at == models.end())
      return fail(ErrorCode::not_found, fmt::format("?after: there is no model {}", after));
    ++at;
  }
  auto items = Json::array();
  for (; at != models.end() && items.size() < limit; ++at)
    items.push_back({{"hash", at->hash},
                     {"name", at->name},
                     {"bytes", at->bytes > 0 ? Json(at->bytes) : Json()},
                     {"measured_on", at->measured_on}});
  const Json next = at == models.end() ? Json() : items.back().at("hash");
  return page_reply(std::move(items), next);
}

Result<ApiReply> get_latencies(ApiState& state, const Call& call) {
  FLEETFIT_TRY(state.latencies().refresh());
  FLEETFIT_ASSIGN(const auto rows, rows_of(state, call));
  FLEETFIT_ASSIGN(const auto columns, columns_of(state, call));
  auto models = Json::array();
  auto hashes = Json::array();
  auto cells = Json::array();
  for (const auto& row : rows) {
    models.push_back(row.label);
    hashes.push_back(row.model.hash);
    for (const auto& device : columns)
      if (const auto cell = state.latencies().find(row.model.hash, device))
        cells.push_back(cell_json(row, device, *cell));
  }
  return json_reply({{"models", std::move(models)},
                     {"hashes", std::move(hashes)},
                     {"devices", columns},
                     {"cells", std::move(cells)}});
}

Result<ApiReply> get_correlations(ApiState& state, const Call& call) {
  FLEETFIT_TRY(state.latencies().refresh());
  FLEETFIT_ASSIGN(const auto devices, columns_of(state, call));
  FLEETFIT_ASSIGN(const auto ranks,
                  ranked(state.latencies().columns(devices, call.query.text("space"))));
  const auto& columns = ranks;
  const auto count = columns.size();
  std::vector<std::vector<Json>> srcc(count, std::vector<Json>(count));
  auto designs = srcc;
  auto names = Json::array();
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(columns[i].device);
    for (std::size_t j = i; j < count; ++j) {
      const auto pair = compare(columns[i], columns[j]);
      srcc[i][j] = srcc[j][i] = core::or_null(pair.srcc);
      designs[i][j] = designs[j][i] = pair.common;
    }
  }
  return json_reply({{"devices", std::move(names)}, {"srcc", srcc}, {"designs", designs}});
}

Result<ApiReply> get_measurements(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto limit, call.query.limit());
  FLEETFIT_ASSIGN(const auto records,
                  state.store().list_measurements({.device = call.query.find("device"),
                                                   .model_hash = call.query.find("model"),
                                                   .limit = limit,
                                                   .operators = false}));
  auto items = Json::array();
  for (const auto& record : records) items.push_back(core::to_json(record));
  return page_reply(std::move(items), nullptr);
}

Result<ApiReply> get_measurement(ApiState& state, const Call& call) {
  FLEETFIT_ASSIGN(const auto id, parse_id(call.names.front(), "measurement"));
  FLEETFIT_ASSIGN(const auto record, state.store().find_measurement(id));
  if (!record) return fail(ErrorCode::not_found, fmt::format("there is no measurement {}", id));
  return json_reply(core::to_json(*record));
}

}  // namespace fleetfit::server
