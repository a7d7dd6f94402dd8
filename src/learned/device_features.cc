#include "fleetfit/learned/device_features.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_set>
#include <utility>

#include "fleetfit/core/file.h"
#include "fleetfit/core/plausible.h"
#include "fleetfit/core/random.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::learned {
namespace {

constexpr std::string_view kDeviceColumn = "device";
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kNamedDevices = 10;

constexpr std::array<std::pair<FeatureKind, std::string_view>, 4> kPrefixes = {
    {{FeatureKind::reference_design, "ref"},
     {FeatureKind::reference_network, "net"},
     {FeatureKind::probe, "probe"},
     {FeatureKind::specification, "spec"}}};

std::string_view prefix_of(FeatureKind kind) {
  return std::ranges::find(kPrefixes, kind, [](const auto& pair) { return pair.first; })->second;
}

tl::unexpected<Error> no_feature(std::string_view text, std::string_view problem) {
  return refuse(fmt::format("column '{}' is no feature: {}", text.substr(0, 80), problem));
}

/// "nasbench201@1:421233" of "ref:nasbench201@1:421233".
Result<FeatureColumn> parse_reference(std::string_view text, std::string_view rest) {
  const auto at = rest.find('@');
  const auto colon = at == std::string_view::npos ? at : rest.find(':', at);
  if (colon == std::string_view::npos || at == 0 || colon + 1 == rest.size())
    return no_feature(text, "a reference design is written ref:SPACE@VERSION:DESIGN");
  FeatureColumn column{.kind = FeatureKind::reference_design,
                       .name = std::string(rest.substr(colon + 1)),
                       .space = std::string(rest.substr(0, at))};
  const auto number = rest.substr(at + 1, colon - at - 1);
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), column.version);
  if (error != std::errc() || end != number.data() + number.size() || column.version < 1)
    return no_feature(text, "the version of its space is no positive whole number");
  return column;
}

/// Which column of a table is which feature.
struct PlacedFeature {
  std::size_t place = 0;
  FeatureColumn feature = {};
};

Result<std::vector<PlacedFeature>> read_columns(const core::CsvTable& csv, std::size_t key,
                                                std::string_view name) {
  std::vector<PlacedFeature> columns;
  for (std::size_t i = 0; i < csv.columns(); ++i) {
    if (i == key) continue;
    FLEETFIT_ASSIGN(auto column, core::within(name, parse_feature_column(csv.header()[i])));
    if (std::ranges::count(columns, column, &PlacedFeature::feature)) {
      return refuse(fmt::format("{}: there are two columns '{}'", name, column.text()));
    }
    columns.push_back({i, std::move(column)});
  }
  return columns;
}

const core::PlausibleRange& plausible_range(FeatureKind kind) {
  return is_latency(kind) ? core::kPlausibleLatencyMs : core::kPlausibleAmount;
}

Result<double> read_value(const core::CsvTable& csv, std::size_t row, std::size_t column,
                          FeatureKind kind) {
  FLEETFIT_ASSIGN(const auto value, csv.optional_number(row, column));
  if (!value) return kMissing;
  if (is_latency(kind) && *value <= 0)
    return csv.error_at(row, column,
                        fmt::format("column '{}': {} is no latency: it has to be positive",
                                    csv.header()[column], csv.cell(row, column)));
  if (const auto problem = core::absurdity(plausible_range(kind), *value)) {
    return csv.error_at(
        row, column,
        fmt::format("column '{}': {} {}", csv.header()[column], csv.cell(row, column), *problem));
  }
  return *value;
}

/// The rows of a table whose column `key` names devices. Errors are those of
/// `device_features_of`.
Result<DeviceFeatures> read_feature_rows(const core::CsvTable& csv, std::size_t key,
                                         const std::vector<PlacedFeature>& columns,
                                         std::string name) {
  DeviceFeatures features{.name = std::move(name)};
  if (columns.empty()) {
    return refuse(fmt::format("{}: there is no column of features", features.name));
  }
  for (const auto& column : columns) features.columns.push_back(column.feature);
  std::unordered_set<std::string_view> seen;
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    const auto device = csv.cell(row, key);
    if (device.empty()) return csv.error_at(row, key, "the device has no name");
    if (!seen.insert(device).second) {
      return csv.error_at(row, key,
                          fmt::format("the device '{}' stands here for the second time", device));
    }
    features.devices.emplace_back(device);
    for (const auto& column : columns) {
      FLEETFIT_ASSIGN(const auto value, read_value(csv, row, column.place, column.feature.kind));
      features.values.push_back(value);
    }
  }
  return features;
}

/// Adds the columns of `from` at `first`, by device.
void fill_columns(const DeviceFeatures& from, std::size_t first, DeviceFeatures& into) {
  for (std::size_t device = 0; device < from.devices.size(); ++device) {
    const auto row = std::ranges::find(into.devices, from.devices[device]) - into.devices.begin();
    const auto values = from.row(device);
    std::ranges::copy(values, into.values.begin() +
                                  row * static_cast<std::ptrdiff_t>(into.columns.size()) +
                                  static_cast<std::ptrdiff_t>(first));
  }
}

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

std::string FeatureColumn::text() const {
  if (kind == FeatureKind::reference_design)
    return fmt::format("{}:{}@{}:{}", prefix_of(kind), space, version, name);
  return fmt::format("{}:{}", prefix_of(kind), name);
}

Result<FeatureColumn> parse_feature_column(std::string_view text) {
  const auto colon = text.find(':');
  const auto prefix = text.substr(0, colon);
  const auto kind =
      std::ranges::find(kPrefixes, prefix, [](const auto& pair) { return pair.second; });
  if (colon == std::string_view::npos || kind == kPrefixes.end())
    return no_feature(text, "it has to start with ref:, net:, probe: or spec:");
  const auto rest = text.substr(colon + 1);
  if (kind->first == FeatureKind::reference_design) return parse_reference(text, rest);
  if (rest.empty()) return no_feature(text, "it has no name");
  return FeatureColumn{.kind = kind->first, .name = std::string(rest)};
}

Result<std::size_t> DeviceFeatures::find_device(std::string_view device) const {
  const auto found = std::ranges::find(devices, device);
  if (found != devices.end()) return static_cast<std::size_t>(found - devices.begin());
  const auto named = std::span(devices).first(std::min(devices.size(), kNamedDevices));
  return fail(ErrorCode::not_found,
              fmt::format("{}: there is no device '{}'; there are {}{}", name, device,
                          fmt::join(named, ", "), named.size() < devices.size() ? ", …" : ""));
}

Result<DeviceFeatures> device_features_of(const core::CsvTable& csv, std::string name) {
  const auto key = csv.column(kDeviceColumn);
  if (!key) {
    return refuse(
        fmt::format("{}; a file of device features names its devices there", key.error().message));
  }
  FLEETFIT_ASSIGN(const auto columns, read_columns(csv, *key, name));
  return read_feature_rows(csv, *key, columns, std::move(name));
}

Result<DeviceFeatures> read_device_features(const std::filesystem::path& path) {
  FLEETFIT_ASSIGN(const auto csv, core::read_csv(path));
  return device_features_of(csv, path.string());
}

std::string format_device_features(const DeviceFeatures& features) {
  std::vector<std::string> header = {std::string(kDeviceColumn)};
  for (const auto& column : features.columns) header.push_back(column.text());
  core::CsvWriter writer(header);
  std::vector<core::CsvCell> cells;
  for (std::size_t device = 0; device < features.devices.size(); ++device) {
    cells = {core::CsvCell(features.devices[device])};
    for (const double value : features.row(device)) cells.emplace_back(value);
    writer.add_row(cells);
  }
  return writer.text();
}

Status write_device_features(const std::filesystem::path& path, const DeviceFeatures& features) {
  return core::write_file(path, format_device_features(features));
}

Result<DeviceFeatures> reference_features(const space::DesignTable& table,
                                          std::span<const std::size_t> rows) {
  if (rows.empty()) return refuse("there is no reference design");
  DeviceFeatures features{.name = table.name, .devices = table.columns};
  for (const auto row : rows) {
    if (row >= table.designs.size()) {
      return refuse(fmt::format("{}: there is no row {}; the table has {}", table.name, row,
                                table.designs.size()));
    }
    if (std::ranges::count(rows, row) > 1) {
      return refuse(fmt::format("{}: row {} is named twice", table.name, row));
    }
    features.columns.push_back({.kind = FeatureKind::reference_design,
                                .name = table.space->format(table.designs[row]),
                                .space = table.space->name(),
                                .version = table.space->version()});
  }
  for (const auto& column : table.values)
    for (const auto row : rows) features.values.push_back(column[row]);
  return features;
}

Result<DeviceFeatures> join_features(const DeviceFeatures& a, const DeviceFeatures& b) {
  DeviceFeatures joined = {.name = a.name, .columns = a.columns, .devices = a.devices};
  for (const auto& column : b.columns) {
    if (std::ranges::count(a.columns, column)) {
      return refuse(fmt::format("'{}' is a column of {} and of {}", column.text(), a.name, b.name));
    }
    joined.columns.push_back(column);
  }
  for (const auto& device : b.devices)
    if (!std::ranges::count(a.devices, device)) joined.devices.push_back(device);
  joined.values.assign(joined.devices.size() * joined.columns.size(), kMissing);
  fill_columns(a, 0, joined);
  fill_columns(b, a.columns.size(), joined);
  return joined;
}

Result<std::vector<std::size_t>> choose_references(const space::DesignTable& table,
                                                   const ReferenceChoice& choice) {
  const auto candidates = candidates_of(table, choice);
  auto rows = centred_logarithms(table, candidates);
  std::vector<std::size_t> chosen;
  while (chosen.size() < choice.count) {
    const auto best =
        std::ranges::max_element(rows, {}, [](const auto& row) { return dot(row, row); });
    if (best == rows.end() || dot(*best, *best) < 1e-12) {
      return refuse(
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
    FLEETFIT_ASSIGN(const auto design, core::within(fmt::format("the reference design '{}'", text),
                                                    table.space->parse(text)));
    const auto row = index.find(design);
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
