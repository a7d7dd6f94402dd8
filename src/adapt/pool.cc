#include "fleetfit/adapt/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "adapt/file_header.h"
#include "fleetfit/core/json.h"

namespace fleetfit::adapt {
namespace {

constexpr std::string_view kPoolFormat = "fleetfit-pool";
constexpr std::int64_t kPoolVersion = 1;

nlohmann::json to_json(const PoolEntry& entry) {
  return {{"subnet", entry.subnet},
          {"latency_ms", entry.latency_ms},
          {"relative", entry.relative},
          {"accuracy", entry.accuracy},
          {"measured", entry.measured}};
}

Result<double> positive(const core::JsonView& json, std::string_view key) {
  auto value = json.number(key);
  if (!value) return value;
  if (!(*value > 0) || !std::isfinite(*value))
    return json.error(fmt::format("{}: {} is not positive", key, *value));
  return value;
}

Result<PoolEntry> entry_from(const core::JsonView& json) {
  PoolEntry entry;
  FLEETFIT_ASSIGN(entry.subnet, json.text("subnet"));
  for (const auto& [key, field] : {std::pair{"latency_ms", &PoolEntry::latency_ms},
                                   std::pair{"relative", &PoolEntry::relative}}) {
    FLEETFIT_ASSIGN(entry.*field, positive(json, key));
  }
  FLEETFIT_ASSIGN(const auto accuracy, json.number("accuracy"));
  if (!(accuracy >= 0 && accuracy <= 1))
    return json.error(fmt::format("accuracy: {} is not a share from 0 to 1", accuracy));
  entry.accuracy = accuracy;
  FLEETFIT_ASSIGN(entry.measured, json.boolean_or("measured", false));
  return entry;
}

Status check_follows(const PoolEntry& entry, const PoolEntry& before, const core::JsonView& json) {
  if (!(entry.latency_ms > before.latency_ms))
    return json.error("latency_ms: the entries are not in the order of latency");
  if (!(entry.accuracy > before.accuracy))
    return json.error("accuracy: a quicker subnet is as accurate, so this one is of no use");
  return {};
}

Result<std::vector<PoolEntry>> entries_from(const core::JsonView& json) {
  FLEETFIT_ASSIGN(const auto items, json.items("entries"));
  if (items.empty()) return json.error("entries: there is none");
  std::vector<PoolEntry> entries;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(auto entry, entry_from(item));
    if (!entries.empty()) {
      FLEETFIT_TRY(check_follows(entry, entries.back(), item));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<SubnetPool> pool_from(const core::JsonView& json) {
  FLEETFIT_TRY(check_header(json, kPoolFormat, kPoolVersion));
  SubnetPool pool;
  for (const auto& [key, field] : {std::pair{"device", &SubnetPool::device},
                                   std::pair{"bundle_sha256", &SubnetPool::bundle_sha256},
                                   std::pair{"best", &SubnetPool::best}}) {
    FLEETFIT_ASSIGN(pool.*field, json.text(key));
  }
  FLEETFIT_ASSIGN(pool.budget_ms, positive(json, "budget_ms"));
  FLEETFIT_ASSIGN(pool.entries, entries_from(json));
  if (std::ranges::find(pool.entries, pool.best, &PoolEntry::subnet) == pool.entries.end())
    return json.error(fmt::format("best: {} is not among the entries", pool.best));
  return pool;
}

}  // namespace

Status write_pool(const SubnetPool& pool, const std::filesystem::path& file) {
  nlohmann::json json = {{"format", kPoolFormat},
                         {"version", kPoolVersion},
                         {"device", pool.device},
                         {"bundle_sha256", pool.bundle_sha256},
                         {"budget_ms", pool.budget_ms},
                         {"best", pool.best},
                         {"entries", nlohmann::json::array()}};
  for (const auto& entry : pool.entries) json["entries"].push_back(to_json(entry));
  return core::write_json(file, json);
}

Result<SubnetPool> read_pool(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  return pool_from(core::JsonView(document, file.string()));
}

}  // namespace fleetfit::adapt
