#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/core/document_format.h"
#include "fleetfit/core/json.h"

namespace fleetfit::adapt {
namespace {

constexpr std::string_view kFormat = "fleetfit-latency-table";
constexpr std::int64_t kVersion = 1;

Result<std::vector<double>> branches_from(const core::JsonView& json, const elastic::Block& block) {
  auto ms = json.as_numbers();
  if (!ms) return ms;
  if (ms->size() != block.branches.size())
    return json.error(fmt::format("there are {} branches, the model has {} in this block",
                                  ms->size(), block.branches.size()));
  for (const double value : *ms)
    if (!(value >= 0) || !std::isfinite(value))
      return json.error(fmt::format("{} is no time", value));
  return ms;
}

Result<std::vector<std::vector<double>>> blocks_from(const core::JsonView& json,
                                                     const elastic::Supernet& model) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  if (items.size() != model.blocks.size())
    return json.error(fmt::format("there are {} blocks, the model {} has {}", items.size(),
                                  model.name, model.blocks.size()));
  std::vector<std::vector<double>> blocks;
  for (std::size_t b = 0; b < items.size(); ++b) {
    FLEETFIT_ASSIGN(auto branches, branches_from(items[b], model.blocks[b]));
    blocks.push_back(std::move(branches));
  }
  return blocks;
}

Result<LatencyTable> table_from(const core::JsonView& json,
                                const std::vector<elastic::Supernet>& models) {
  FLEETFIT_TRY(core::check_format(json, kFormat, kVersion));
  LatencyTable table;
  FLEETFIT_ASSIGN(table.device, json.text("device"));
  for (const auto& [key, field] : {std::pair{"overhead_ms", &LatencyTable::overhead_ms},
                                   std::pair{"error_percent", &LatencyTable::error_percent}}) {
    FLEETFIT_ASSIGN(table.*field, json.number(key));
  }
  FLEETFIT_ASSIGN(const auto items, json.items("ms"));
  if (items.size() != models.size())
    return json.error(
        fmt::format("ms: there are {} models, the bundle has {}", items.size(), models.size()));
  for (std::size_t m = 0; m < models.size(); ++m) {
    FLEETFIT_ASSIGN(auto blocks, blocks_from(items[m], models[m]));
    table.ms.push_back(std::move(blocks));
  }
  return table;
}

}  // namespace

Status write_latency_table(const LatencyTable& table, const std::filesystem::path& file) {
  const nlohmann::json json = {{"format", kFormat},
                               {"version", kVersion},
                               {"device", table.device},
                               {"overhead_ms", table.overhead_ms},
                               {"error_percent", table.error_percent},
                               {"ms", table.ms}};
  return core::write_json(file, json);
}

Result<LatencyTable> read_latency_table(const std::filesystem::path& file,
                                        const std::vector<elastic::Supernet>& models) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return table_from(core::JsonView(document, file.string()), models);
}

}  // namespace fleetfit::adapt
