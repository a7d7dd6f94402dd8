#include "fleetfit/learned/feature_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/sha256.h"

namespace fleetfit::learned {
namespace {

double transformed(FeatureKind kind, double value) {
  return is_latency(kind) ? std::log(value) : std::log1p(value);
}

struct Moments {
  double sum = 0;
  double squares = 0;
  std::size_t count = 0;

  void add(double value) {
    sum += value;
    squares += value * value;
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
  /// Around 0; a spread that only rounding makes is none.
  double spread() const {
    const double spread = count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
    return spread > 1e-9 ? spread : 1;
  }
};

Moments moments_of(const DeviceFeatures& devices, std::size_t column) {
  Moments moments;
  for (std::size_t device = 0; device < devices.devices.size(); ++device) {
    const double value = devices.row(device)[column];
    if (!std::isnan(value)) moments.add(transformed(devices.columns[column].kind, value));
  }
  return moments;
}

/// Why a column is not there: perhaps it is one of another space.
std::string explain_missing(const FeatureColumn& wanted, const DeviceFeatures& devices) {
  auto text = fmt::format("there is no column '{}'", wanted.text());
  if (wanted.kind != FeatureKind::reference_design) return text;
  for (const auto& column : devices.columns) {
    if (column.kind != FeatureKind::reference_design) continue;
    if (column.space != wanted.space || column.version != wanted.version) {
      return fmt::format("{}: '{}' is of the space {} version {}, wanted is {} version {}", text,
                         column.text(), column.space, column.version, wanted.space, wanted.version);
    }
  }
  return text;
}

Status check_known(std::span<const double> row, const DeviceFeatures& devices, std::size_t device) {
  if (!std::ranges::all_of(row, [](double value) { return std::isnan(value); })) return {};
  return refuse(fmt::format("{}: all features of the device '{}' are missing", devices.name,
                            devices.devices[device]));
}

void pick(std::span<const double> from, const std::vector<std::size_t>& places,
          std::span<double> out) {
  for (std::size_t i = 0; i < places.size(); ++i) out[i] = from[places[i]];
}

}  // namespace

Result<FeatureScaling> FeatureScaling::fit(const DeviceFeatures& devices) {
  FeatureScaling scaling;
  scaling.columns_ = devices.columns;
  for (std::size_t i = 0; i < devices.columns.size(); ++i) {
    const auto values = moments_of(devices, i);
    if (values.count == 0) {
      return refuse(fmt::format("{}: no device has a value in column '{}'", devices.name,
                                devices.columns[i].text()));
    }
    scaling.means_.push_back(values.mean());
    scaling.has_level_ = scaling.has_level_ || is_latency(devices.columns[i].kind);
  }
  scaling.fit_spreads(devices);
  return scaling;
}

void FeatureScaling::fit_spreads(const DeviceFeatures& devices) {
  Moments levels;
  std::vector<Moments> rest(columns_.size());
  for (std::size_t device = 0; device < devices.devices.size(); ++device) {
    const auto row = devices.row(device);
    const double level = level_of(row);
    levels.add(level);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (std::isnan(row[i])) continue;
      const auto kind = columns_[i].kind;
      rest[i].add(transformed(kind, row[i]) - means_[i] - (is_latency(kind) ? level : 0));
    }
  }
  level_spread_ = levels.spread();
  for (const auto& moments : rest) spreads_.push_back(moments.spread());
}

std::vector<std::string> FeatureScaling::input_names() const {
  std::vector<std::string> names;
  if (has_level_) names.emplace_back("slowness");
  for (const auto& column : columns_) names.push_back(column.text());
  for (const auto& column : columns_) names.push_back("missing " + column.text());
  return names;
}

double FeatureScaling::level_of(std::span<const double> row) const {
  double sum = 0;
  std::size_t known = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_latency(columns_[i].kind) || std::isnan(row[i])) continue;
    sum += std::log(row[i]) - means_[i];
    ++known;
  }
  return known == 0 ? 0 : sum / static_cast<double>(known);
}

void FeatureScaling::scale(std::span<const double> row, std::span<double> out) const {
  assert(row.size() == columns_.size() && out.size() == inputs());
  const double level = level_of(row);
  std::size_t at = 0;
  if (has_level_) out[at++] = level / level_spread_;
  for (std::size_t i = 0; i < row.size(); ++i, ++at) {
    const auto kind = columns_[i].kind;
    const double shift = means_[i] + (is_latency(kind) ? level : 0);
    out[at] = std::isnan(row[i]) ? 0 : (transformed(kind, row[i]) - shift) / spreads_[i];
    out[at + row.size()] = std::isnan(row[i]) ? 1 : 0;
  }
}

Result<std::vector<std::size_t>> FeatureScaling::find_columns(const DeviceFeatures& devices) const {
  std::vector<std::size_t> places;
  for (const auto& column : columns_) {
    const auto found = std::ranges::find(devices.columns, column);
    if (found == devices.columns.end()) {
      return refuse(fmt::format("{}: {}", devices.name, explain_missing(column, devices)));
    }
    places.push_back(static_cast<std::size_t>(found - devices.columns.begin()));
  }
  return places;
}

Result<std::vector<double>> FeatureScaling::scale(const DeviceFeatures& devices) const {
  FLEETFIT_ASSIGN(const auto places, find_columns(devices));
  std::vector<double> out(devices.devices.size() * inputs());
  std::vector<double> row(columns_.size());
  for (std::size_t device = 0; device < devices.devices.size(); ++device) {
    pick(devices.row(device), places, row);
    FLEETFIT_TRY(check_known(row, devices, device));
    scale(row, std::span(out).subspan(device * inputs(), inputs()));
  }
  return out;
}

Result<std::vector<double>> FeatureScaling::row_of(const DeviceFeatures& devices,
                                                   std::size_t device) const {
  FLEETFIT_ASSIGN(const auto places, find_columns(devices));
  std::vector<double> row(columns_.size());
  pick(devices.row(device), places, row);
  FLEETFIT_TRY(check_known(row, devices, device));
  return row;
}

std::string FeatureScaling::fingerprint() const {
  std::string text;
  for (const auto& column : columns_) text += column.text() + "\n";
  return core::sha256_hex(text);
}

nlohmann::json FeatureScaling::to_json() const {
  auto columns = nlohmann::json::array();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns.push_back({{"name", columns_[i].text()}, {"mean", means_[i]}, {"spread", spreads_[i]}});
  }
  nlohmann::json json = {{"columns", columns}};
  if (has_level_) json["level_spread"] = level_spread_;
  return json;
}

namespace {

Result<double> read_spread(const core::JsonView& json, std::string_view key) {
  auto spread = json.number(key);
  if (spread && *spread <= 0) return json.error(fmt::format("{} is not positive", key));
  return spread;
}

}  // namespace

Result<FeatureScaling> FeatureScaling::from_json(const core::JsonView& json) {
  FeatureScaling scaling;
  FLEETFIT_ASSIGN(const auto items, json.items("columns"));
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto name, item.text("name"));
    auto column = parse_feature_column(name);
    if (!column) return item.error(column.error().message);
    if (std::ranges::count(scaling.columns_, *column))
      return item.error("the column is there twice");
    FLEETFIT_ASSIGN(const auto mean, item.number("mean"));
    FLEETFIT_ASSIGN(const auto spread, read_spread(item, "spread"));
    scaling.has_level_ = scaling.has_level_ || is_latency(column->kind);
    scaling.columns_.push_back(std::move(*column));
    scaling.means_.push_back(mean);
    scaling.spreads_.push_back(spread);
  }
  if (scaling.columns_.empty()) return json.error("columns is empty");
  if (!scaling.has_level_) return scaling;
  FLEETFIT_ASSIGN(scaling.level_spread_, read_spread(json, "level_spread"));
  return scaling;
}

}  // namespace fleetfit::learned
