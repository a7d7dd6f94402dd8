#include "fleetfit/adapt/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "fleetfit/core/document_format.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/plausible.h"

namespace fleetfit::adapt {
namespace {

constexpr std::string_view kPoolFormat = "fleetfit-pool";
constexpr std::int64_t kPoolVersion = 1;

Status check_follows(const PoolEntry& entry, const PoolEntry& before, const core::JsonView& json) {
  if (!(entry.latency_ms > before.latency_ms))
    return json.error("latency_ms: the entries are not in the order of latency");
  if (!(entry.accuracy > before.accuracy))
    return json.error("accuracy: a quicker subnet is as accurate, so this one is of no use");
  return {};
}

Status check_entries(const core::JsonView& json, const SubnetPool& pool) {
  FLEETFIT_ASSIGN(const auto items, json.items("entries"));
  for (std::size_t i = 1; i < items.size(); ++i)
    FLEETFIT_TRY(check_follows(pool.entries[i], pool.entries[i - 1], items[i]));
  if (std::ranges::find(pool.entries, pool.best, &PoolEntry::subnet) == pool.entries.end())
    return json.error(fmt::format("best: {} is not among the entries", pool.best));
  return {};
}

}  // namespace

std::optional<std::size_t> choose_best(std::span<const JudgedSubnet> judged, double budget_ms) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (judged[i].latency_ms > budget_ms) continue;
    const bool better = !best || judged[i].choice > judged[*best].choice ||
                        (judged[i].choice == judged[*best].choice &&
                         judged[i].latency_ms < judged[*best].latency_ms);
    if (better) best = i;
  }
  return best;
}

std::vector<PoolEntry> pool_entries(std::span<const JudgedSubnet> judged, std::size_t best) {
  const auto& chosen = judged[best];
  std::vector<std::size_t> order(judged.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(judged[i].latency_ms, -judged[i].accuracy);
  });
  std::vector<PoolEntry> entries;
  double accuracy = -1;
  for (const std::size_t i : order) {
    const auto& subnet = judged[i];
    const bool conflicts =
        i != best && (subnet.latency_ms <= chosen.latency_ms ? subnet.accuracy >= chosen.accuracy
                                                             : subnet.accuracy <= chosen.accuracy);
    if (conflicts || !(subnet.accuracy > accuracy)) continue;
    accuracy = subnet.accuracy;
    entries.push_back({.subnet = subnet.subnet,
                       .latency_ms = subnet.latency_ms,
                       .relative = subnet.latency_ms / chosen.latency_ms,
                       .accuracy = subnet.accuracy,
                       .measured = subnet.measured});
  }
  return entries;
}

core::Fields fields_of(const PoolEntry*) {
  static constexpr core::Field kAll[] = {
      core::field<&PoolEntry::subnet>("subnet"),
      core::field<&PoolEntry::latency_ms>("latency_ms").above(0).up_to(core::kDayMs),
      core::field<&PoolEntry::relative>("relative").above(0),
      core::field<&PoolEntry::accuracy>("accuracy").between(0, 1),
      core::field<&PoolEntry::measured>("measured").may_be_missing()};
  return {.all = kAll};
}

core::Fields fields_of(const SubnetPool*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(SubnetPool, device, bundle_sha256),
      core::field<&SubnetPool::budget_ms>("budget_ms").above(0).up_to(core::kDayMs),
      core::field<&SubnetPool::best>("best"),
      core::field<&SubnetPool::entries>("entries").at_least(1)};
  return {.all = kAll};
}

Status write_pool(const SubnetPool& pool, const std::filesystem::path& file) {
  auto json = core::to_json<nlohmann::json>(pool);
  json["format"] = kPoolFormat;
  json["version"] = kPoolVersion;
  return core::write_json(file, json);
}

Result<SubnetPool> read_pool(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto document, core::read_json(file));
  const core::JsonView json(document, file.string());
  FLEETFIT_TRY(core::check_format(json, kPoolFormat, kPoolVersion));
  FLEETFIT_ASSIGN(auto pool, core::read<SubnetPool>(json));
  FLEETFIT_TRY(check_entries(json, pool));
  return pool;
}

}  // namespace fleetfit::adapt
