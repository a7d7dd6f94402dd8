#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "fleetfit/core/csv.h"
#include "fleetfit/space/space.h"
#include "fleetfit/space/table.h"

// Whatever was read holds numbers that are allowed, and each row is found again by its design.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const auto csv = core::parse_csv(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!csv) return 0;
  for (const auto& space : space::spaces()) {
    const auto table = space::design_table_of(*csv, "fuzz", *space);
    if (!table || table->columns.empty()) continue;
    std::vector<double> found(table->designs.size());
    const auto source = space::table_source(*table, 0);
    if (!source->evaluate(table->designs, found)) std::abort();
    for (std::size_t row = 0; row < found.size(); ++row) {
      const double value = table->values[0][row];
      const bool is_same = std::isnan(value) ? std::isnan(found[row]) : found[row] == value;
      if (!is_same || value <= 0) std::abort();
    }
  }
  return 0;
}
