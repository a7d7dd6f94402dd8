#include "fleetfit/space/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <optional>

#include "fleetfit/core/plausible.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::space {
namespace {

using core::CsvTable;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

Result<std::vector<std::size_t>> find_columns(const CsvTable& csv,
                                              const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const auto& name : names) {
    FLEETFIT_ASSIGN(const auto column, csv.column(name));
    columns.push_back(column);
  }
  return columns;
}

Result<std::vector<std::size_t>> find_key(const CsvTable& csv, const Space& space) {
  auto key = find_columns(csv, space.columns());
  if (key) return key;
  return fail(ErrorCode::not_found,
              fmt::format("{}; a table of the space {} gives its designs in {}",
                          key.error().message, space.name(), fmt::join(space.columns(), ", ")));
}

/// Whether some cell is a number, or all are empty.
bool holds_numbers(const CsvTable& csv, std::size_t column) {
  bool all_empty = true;
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    if (csv.is_missing(row, column)) continue;
    if (csv.number(row, column)) return true;
    all_empty = false;
  }
  return all_empty;
}

std::vector<std::size_t> number_columns(const CsvTable& csv, const std::vector<std::size_t>& key) {
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; column < csv.columns(); ++column) {
    const std::string& name = csv.header()[column];
    const bool counts_rows = name.empty() || name.ends_with("index");
    if (!counts_rows && !std::ranges::count(key, column) && holds_numbers(csv, column))
      columns.push_back(column);
  }
  return columns;
}

Result<Population> read_designs(const CsvTable& csv, const Space& space,
                                const std::vector<std::size_t>& key) {
  DesignIndex index(space);
  std::vector<std::string_view> cells(key.size());
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    for (std::size_t i = 0; i < key.size(); ++i) cells[i] = csv.cell(row, key[i]);
    const auto design = space.parse_cells(cells);
    if (!design) {
      return csv.error_at(
          row, key.front(),
          fmt::format("no design of the space {}: {}", space.name(), design.error().message));
    }
    if (!index.add(*design)) {
      return csv.error_at(
          row, key.front(),
          fmt::format("the design {} stands here for the second time", fmt::join(cells, ",")));
    }
  }
  return index.designs();
}

/// Nothing if any number will do.
const core::PlausibleRange* plausible_range(CellRule rule) {
  switch (rule) {
    case CellRule::latency:
      return &core::kPlausibleLatencyMs;
    case CellRule::energy:
      return &core::kPlausibleEnergyMj;
    case CellRule::memory:
      return &core::kPlausibleMemoryMb;
    case CellRule::accuracy:
      return &core::kPlausibleAccuracy;
    case CellRule::any:
      break;
  }
  return nullptr;
}

Result<std::vector<double>> read_values(const CsvTable& csv, std::size_t column, CellRule rule) {
  const auto* range = plausible_range(rule);
  std::vector<double> values(csv.rows(), kMissing);
  for (std::size_t row = 0; row < csv.rows(); ++row) {
    FLEETFIT_ASSIGN(const auto value, csv.optional_number(row, column));
    if (!value) continue;
    const auto problem = range == nullptr ? std::nullopt : core::absurdity(*range, *value);
    if (problem) {
      return csv.error_at(
          row, column,
          fmt::format("column '{}': {} {}", csv.header()[column], csv.cell(row, column), *problem));
    }
    values[row] = *value;
  }
  return values;
}

class TableSource final : public Source {
 public:
  TableSource(const DesignTable& table, std::size_t column)
      : index_(*table.space), values_(table.values[column]) {
    for (std::size_t row = 0; row < table.designs.size(); ++row) index_.add(table.designs[row]);
    assert(index_.size() == values_.size());
  }

  Status evaluate(DesignBatch designs, std::span<double> out) const override {
    assert(out.size() == designs.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto row = index_.find(designs[i]);
      out[i] = row ? values_[*row] : kMissing;
    }
    return {};
  }

 private:
  DesignIndex index_;
  std::vector<double> values_;
};

}  // namespace

CellRule rule_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::latency_ms:
      return CellRule::latency;
    case Quantity::energy_mj:
      return CellRule::energy;
    case Quantity::memory_mb:
      return CellRule::memory;
    case Quantity::accuracy:
      break;
  }
  return CellRule::accuracy;
}

Result<std::size_t> DesignTable::find_column(std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  if (found != columns.end()) return static_cast<std::size_t>(found - columns.begin());
  return fail(ErrorCode::not_found, fmt::format("{}: there is no column '{}'; there are {}", name,
                                                column, fmt::join(columns, ", ")));
}

Result<DesignTable> design_table_of(const core::CsvTable& csv, std::string name, const Space& space,
                                    const TableOptions& options) {
  FLEETFIT_ASSIGN(const auto key, find_key(csv, space));
  FLEETFIT_ASSIGN(const auto columns, options.columns.empty() ? number_columns(csv, key)
                                                              : find_columns(csv, options.columns));
  FLEETFIT_ASSIGN(auto designs, read_designs(csv, space, key));
  DesignTable table{.name = std::move(name), .space = &space, .designs = std::move(designs)};
  for (const auto column : columns) {
    FLEETFIT_ASSIGN(auto values, read_values(csv, column, options.cells));
    table.columns.push_back(csv.header()[column]);
    table.values.push_back(std::move(values));
  }
  return table;
}

Result<DesignTable> read_design_table(const std::filesystem::path& path, const Space& space,
                                      const TableOptions& options) {
  FLEETFIT_ASSIGN(const auto csv, core::read_csv(path));
  return design_table_of(csv, path.string(), space, options);
}

std::unique_ptr<const Source> table_source(const DesignTable& table, std::size_t column) {
  return std::make_unique<TableSource>(table, column);
}

}  // namespace fleetfit::space
