#include "app/fit/fleet_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::app {
namespace {

/// A column with a smaller share of its cells filled in is a new device.
constexpr double kFilledShare = 0.5;

}  // namespace

FleetTables::FleetTables(const fit::Fleet& fleet, const space::Space& space)
    : fleet_(fleet), space_(space) {}

Status FleetTables::read() {
  using space::Quantity;
  for (const auto& [quantity, file] : {std::pair{Quantity::latency_ms, &fleet_.table},
                                       std::pair{Quantity::energy_mj, &fleet_.energy_table},
                                       std::pair{Quantity::memory_mb, &fleet_.memory_table}}) {
    if (file->empty()) continue;
    FLEETFIT_ASSIGN(auto table, read_table(fleet_.located(*file), quantity));
    tables_.emplace(quantity, std::move(table));
  }
  return {};
}

const space::DesignTable& FleetTables::latencies() const {
  return tables_.at(space::Quantity::latency_ms).table;
}

Result<DeviceCells> FleetTables::cells_of(const fit::FleetDevice& written) {
  DeviceCells cells{.looked_up = {.space = {space_, space_.name()},
                                  .device = written.name,
                                  .budgets = fit::budgets_of(written)},
                    .given = space::Population(space_.genes().size()),
                    .open = space::Population(space_.genes().size())};
  auto& from = cells.looked_up;
  std::string digests;
  for (const auto& budget : from.budgets) {
    FLEETFIT_ASSIGN(const auto column, column_of(written, budget.quantity));
    const auto& table = column.table->table;
    FLEETFIT_ASSIGN(const auto number, table.find_column(column.name));
    digests += column.table->sha256 + "#" + column.name + " ";
    if (from.cells.empty()) {
      list_cells(*column.table, number, cells);
      from.table = fmt::format("{}, column {}",
                               std::filesystem::path(table.name).filename().string(), column.name);
    }
    from.cells.push_back(space::table_source(table, number));
  }
  from.fingerprint = "table-" + core::sha256_hex(digests);
  return cells;
}

Result<transfer::KnownDevices> FleetTables::known_by(const fit::FleetDevice& written,
                                                     space::Quantity quantity,
                                                     std::uint64_t seed) const {
  const auto at = tables_.find(quantity);
  if (at == tables_.end())
    return fail(
        ErrorCode::invalid_input,
        fmt::format("budget of {}: there is no table of known devices", to_string(quantity)));
  FLEETFIT_ASSIGN(const auto references, references_of(written, at->second));
  return transfer::KnownDevices::learn(at->second.table, references, {.seed = seed});
}

bool FleetTables::ReadTable::is_known(std::size_t column) const {
  const auto& values = table.values[column];
  const auto filled = std::ranges::count_if(values, [](double v) { return !std::isnan(v); });
  return static_cast<double>(filled) >= kFilledShare * static_cast<double>(values.size());
}

Result<FleetTables::ReadTable> FleetTables::read_table(const std::string& file,
                                                       space::Quantity quantity) const {
  FLEETFIT_ASSIGN(auto text, core::read_file(file));
  auto sha256 = core::sha256_hex(text);
  FLEETFIT_ASSIGN(auto csv, core::parse_csv(std::move(text), file));
  FLEETFIT_ASSIGN(auto table,
                  space::design_table_of(csv, file, space_, {.cells = space::rule_of(quantity)}));
  return ReadTable{.table = std::move(table), .sha256 = std::move(sha256)};
}

Result<FleetTables::Column> FleetTables::column_of(const fit::FleetDevice& written,
                                                   space::Quantity quantity) {
  constexpr std::string_view kKind = "table:";
  if (written.measure.empty()) return Column{&tables_.at(quantity), written.name};
  const auto hash = written.measure.rfind('#');
  if (hash == std::string::npos)
    return fail(ErrorCode::invalid_input, "measure: expected table:FILE.csv#COLUMN");
  const auto name = written.measure.substr(hash + 1);
  const auto file = fleet_.located(written.measure.substr(kKind.size(), hash - kKind.size()));
  if (quantity != space::Quantity::latency_ms || file == fleet_.located(fleet_.table))
    return Column{&tables_.at(quantity), name};
  auto known = others_.find(file);
  if (known == others_.end()) {
    FLEETFIT_ASSIGN(auto table, read_table(file, space::Quantity::latency_ms));
    known = others_.emplace(file, std::move(table)).first;
  }
  return Column{&known->second, name};
}

void FleetTables::list_cells(const ReadTable& table, std::size_t column, DeviceCells& cells) const {
  const auto& designs = table.table.designs;
  const bool known = table.is_known(column);
  for (std::size_t row = 0; row < designs.size(); ++row) {
    const bool filled = !std::isnan(table.table.values[column][row]);
    if (filled && !known) cells.given.add(designs[row]);
    if (filled == known) cells.open.add(designs[row]);
  }
}

Result<std::vector<std::size_t>> FleetTables::references_of(const fit::FleetDevice& written,
                                                            const ReadTable& table) const {
  std::vector<std::size_t> columns;
  for (const auto& name : written.references) {
    FLEETFIT_ASSIGN(const auto column, core::within("references", table.table.find_column(name)));
    columns.push_back(column);
  }
  if (!columns.empty()) return columns;
  const auto own = own_column(written);
  for (std::size_t i = 0; i < table.table.columns.size(); ++i)
    if (table.table.columns[i] != own && table.is_known(i)) columns.push_back(i);
  return columns;
}

/// Of the fleet's tables; "" if it has none there.
std::string FleetTables::own_column(const fit::FleetDevice& written) const {
  if (written.measure.empty()) return written.name;
  const auto hash = written.measure.rfind('#');
  const bool here = written.measure.starts_with(fmt::format("table:{}#", fleet_.table));
  return here ? written.measure.substr(hash + 1) : "";
}

}  // namespace fleetfit::app
