#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/fit/probers.h"
#include "fleetfit/fit/fleet_file.h"
#include "fleetfit/space/quantity.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/few_shot.h"

namespace fleetfit::app {

/// Where the costs of a device are looked up, and which of its cells there are. A device that has
/// most of its cells is fitted as if it were new: only what is asked for is looked up. One with few
/// cells is new: all are taken, and others have to measure more.
struct DeviceCells {
  LookedUp looked_up;
  space::Population given;  ///< designs that are taken as they are
  space::Population open;   ///< designs to choose from
};

/// The tables of a space's fleet: a column for each device whose costs are known.
class FleetTables {
 public:
  /// Both are borrowed.
  FleetTables(const fit::Fleet& fleet, const space::Space& space);

  /// Reads the tables that the fleet names.
  Status read();

  const space::DesignTable& latencies() const;

  /// The cells of "table:FILE#COLUMN", or of the column that has the device's name.
  Result<DeviceCells> cells_of(const fit::FleetDevice& written);

  /// What the other devices, or those that the device names, let one know of a cost there. Safe to
  /// call from many threads.
  Result<transfer::KnownDevices> known_by(const fit::FleetDevice& written, space::Quantity quantity,
                                          std::uint64_t seed) const;

 private:
  /// A table with the digest of its file.
  struct ReadTable {
    space::DesignTable table;
    std::string sha256;

    bool is_known(std::size_t column) const;
  };
  struct Column {
    const ReadTable* table;
    std::string name;
  };

  Result<ReadTable> read_table(const std::string& file, space::Quantity quantity) const;
  Result<Column> column_of(const fit::FleetDevice& written, space::Quantity quantity);
  void list_cells(const ReadTable& table, std::size_t column, DeviceCells& cells) const;
  Result<std::vector<std::size_t>> references_of(const fit::FleetDevice& written,
                                                 const ReadTable& table) const;
  std::string own_column(const fit::FleetDevice& written) const;

  const fit::Fleet& fleet_;
  const space::Space& space_;
  std::map<space::Quantity, ReadTable> tables_;
  std::map<std::string, ReadTable> others_;  // by file
};

}  // namespace fleetfit::app
