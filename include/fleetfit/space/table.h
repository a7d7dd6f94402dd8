#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/core/result.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/quantity.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// Numbers by design and column (a device, or a measure of quality), as people publish them.
struct DesignTable {
  std::string name;  ///< of the file
  const Space* space = nullptr;
  Population designs;
  std::vector<std::string> columns = {};
  std::vector<std::vector<double>> values = {};  ///< values[column][row]; NaN: an empty cell

  /// `not_found`, naming the file and the columns that there are.
  Result<std::size_t> find_column(std::string_view column) const;
};

/// What the cells of a table are; `core/plausible.h` says what they may be.
enum class CellRule : std::uint8_t {
  latency,
  energy,
  memory,
  accuracy,
  any,  ///< any finite number
};

CellRule rule_of(Quantity quantity);

struct TableOptions {
  /// Those to read, in this order. Empty: all that hold numbers, but for the design's own columns
  /// and for a number of the row (a column whose name ends in "index").
  std::vector<std::string> columns = {};
  CellRule cells = CellRule::latency;
};

/// Reads a CSV file with the space's key columns and a column for each device or measure. Fails
/// with `invalid_input`, naming file, line and column, on a design that the space does not have, on
/// one that stands there twice and on a cell that holds no such number; with `not_found` on a
/// column that is not there. Inactive parts of a design's text are not looked at: two rows that
/// differ in them alone are the same design.
Result<DesignTable> read_design_table(const std::filesystem::path& path, const Space& space,
                                      const TableOptions& options = {});

/// The same from a table that was read.
Result<DesignTable> design_table_of(const core::CsvTable& csv, std::string name, const Space& space,
                                    const TableOptions& options = {});

/// The numbers of one column. NaN for a design that the table does not hold.
std::unique_ptr<const Source> table_source(const DesignTable& table, std::size_t column);

}  // namespace fleetfit::space
