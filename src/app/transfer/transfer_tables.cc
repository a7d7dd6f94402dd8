#include "app/transfer/transfer_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/random.h"

namespace fleetfit::app {

Result<space::DesignTable> read_device_table(const std::filesystem::path& file,
                                             const std::string& space,
                                             const std::vector<std::string>& devices) {
  FLEETFIT_ASSIGN(const auto found, space::find_space(space));
  FLEETFIT_ASSIGN(auto table, space::read_design_table(file, *found, {.columns = devices}));
  if (table.columns.empty()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: there is no column of a device", file.string()));
  }
  return table;
}

std::vector<std::size_t> complete_rows(std::span<const std::vector<double>> columns) {
  std::vector<std::size_t> rows;
  if (columns.empty()) return rows;
  for (std::size_t row = 0; row < columns.front().size(); ++row) {
    const bool is_complete =
        std::ranges::none_of(columns, [&](const auto& column) { return std::isnan(column[row]); });
    if (is_complete) rows.push_back(row);
  }
  return rows;
}

std::vector<double> pick(std::span<const double> values, std::span<const std::size_t> rows) {
  std::vector<double> picked;
  picked.reserve(rows.size());
  for (const auto row : rows) picked.push_back(values[row]);
  return picked;
}

space::Population pick(const space::Population& designs, std::span<const std::size_t> rows) {
  space::Population picked(designs.genes());
  for (const auto row : rows) picked.add(designs[row]);
  return picked;
}

Result<std::vector<std::size_t>> sample_rows(std::span<const std::size_t> rows, std::size_t count,
                                             std::uint64_t seed, std::string_view what) {
  if (count > rows.size()) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{} samples were asked for, but there are {} {}", count, rows.size(), what));
  }
  core::Random random(seed);
  std::vector<std::size_t> picked;
  for (const auto i : random.sample(rows.size(), count)) picked.push_back(rows[i]);
  return picked;
}

nlohmann::ordered_json changes_json(const std::vector<transfer::OperatorChange>& changes) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& change : changes) {
    json.push_back(
        {{"name", change.name}, {"change_ms", change.change_ms}, {"live_only", change.live_only}});
  }
  return json;
}

}  // namespace fleetfit::app
