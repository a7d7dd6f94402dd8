#include "fleetfit/learned/feature_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/core/random.h"
#include "fleetfit/space/design_index.h"
#include "learned/feature_rows.h"

namespace fleetfit::learned {
namespace {

bool is_complete(const space::DesignTable& table, std::size_t row) {
  return std::ranges::none_of(table.values,
                              [&](const auto& column) { return std::isnan(column[row]); });
}

std::vector<std::size_t> candidates_of(const space::DesignTable& table,
                                       const ReferenceChoice& choice) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.designs.size(); ++row)
    if (is_complete(table, row)) rows.push_back(row);
  if (rows.size() > choice.candidates) {
    core::Random(choice.seed).shuffle(rows);
    rows.resize(choice.candidates);
    std::ranges::sort(rows);
  }
  return rows;
}

/// A row of logarithms for each candidate, each column with mean 0.
std::vector<std::vector<double>> centred_logarithms(const space::DesignTable& table,
                                                    const std::vector<std::size_t>& rows) {
  std::vector<std::vector<double>> logs(rows.size());
  for (const auto& column : table.values) {
    double mean = 0;
    for (const auto row : rows) mean += std::log(column[row]) / static_cast<double>(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      logs[i].push_back(std::log(column[rows[i]]) - mean);
  }
  return logs;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Takes the part that lies in the direction of `row` out of all rows.
void remove_direction(std::vector<std::vector<double>>& rows, const std::vector<double>& row) {
  const double squares = dot(row, row);
  for (auto& other : rows) {
    const double share = dot(other, row) / squares;
    for (std::size_t i = 0; i < row.size(); ++i) other[i] -= share * row[i];
  }
}

bool holds_text(const core::CsvTable& csv, std::size_t column) {
  for (std::size_t row = 0; row < csv.rows(); ++row)
    if (!csv.optional_number(row, column)) return true;
  return false;
}

bool is_empty(const core::CsvTable& csv, std::size_t column) {
  for (std::size_t row = 0; row < csv.rows(); ++row)
    if (!csv.is_missing(row, column)) return false;
  return true;
}

}  // namespace

Result<std::vector<std::size_t>> choose_references(const space::DesignTable& table,
                                                   const ReferenceChoice& choice) {
  const auto candidates = candidates_of(table, choice);
  auto rows = centred_logarithms(table, candidates);
  std::vector<std::size_t> chosen;
  while (chosen.size() < choice.count) {
    const auto best =
        std::ranges::max_element(rows, {}, [](const auto& row) { return dot(row, row); });
    if (best == rows.end() || dot(*best, *best) < 1e-12) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: only {} designs can be chosen that tell its {} devices apart, "
                              "not {}",
                              table.name, chosen.size(), table.columns.size(), choice.count));
    }
    chosen.push_back(candidates[static_cast<std::size_t>(best - rows.begin())]);
    remove_direction(rows, std::vector<double>(*best));
  }
  return chosen;
}

Result<std::vector<std::size_t>> find_references(const space::DesignTable& table,
                                                 const std::vector<std::string>& designs) {
  space::DesignIndex index(*table.space);
  for (std::size_t row = 0; row < table.designs.size(); ++row) index.add(table.designs[row]);
  std::vector<std::size_t> rows;
  for (const auto& text : designs) {
    const auto design = table.space->parse(text);
    if (!design)
      return core::within(fmt::format("the reference design '{}'", text), design.error());
    const auto row = index.find(*design);
    if (!row) {
      return fail(ErrorCode::not_found,
                  fmt::format("{}: there is no design '{}'", table.name, text));
    }
    rows.push_back(*row);
  }
  return rows;
}

Result<DeviceFeatures> probe_features(std::string device, const core::JsonView& probe) {
  FLEETFIT_ASSIGN(const auto found, probe.at("features"));
  FLEETFIT_ASSIGN(const auto members, found.members());
  DeviceFeatures features{.name = probe.place(), .devices = {std::move(device)}};
  for (const auto& member : members) {
    FLEETFIT_ASSIGN(const auto value, member.value.as_number());
    if (value < 0) return member.value.error("it cannot be negative");
    features.columns.push_back({.kind = FeatureKind::probe, .name = member.key});
    features.values.push_back(value);
  }
  if (features.columns.empty()) return found.error("there are no features");
  return features;
}

Result<SheetFeatures> sheet_features(const core::CsvTable& csv, std::string name,
                                     std::string_view device_column) {
  FLEETFIT_ASSIGN(const auto key, csv.column(device_column));
  SheetFeatures sheet{.features = {}};
  std::vector<PlacedFeature> taken;
  for (std::size_t column = 0; column < csv.columns(); ++column) {
    if (column == key || is_empty(csv, column)) continue;
    if (csv.header()[column].empty() || holds_text(csv, column)) {
      sheet.left_out.push_back(csv.header()[column]);
      continue;
    }
    taken.push_back({column, {.kind = FeatureKind::specification, .name = csv.header()[column]}});
  }
  FLEETFIT_ASSIGN(sheet.features, read_feature_rows(csv, key, taken, std::move(name)));
  return sheet;
}

}  // namespace fleetfit::learned
