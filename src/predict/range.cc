#include "predict/range.h"

#include <algorithm>
#include <cmath>

namespace fleetfit::predict {

Excess excess_of(std::span<const double> row, std::span<const double> low,
                 std::span<const double> high) {
  Excess worst;
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (row[j] >= low[j] && row[j] <= high[j]) continue;
    const double bound = row[j] < low[j] ? low[j] : high[j];
    const double away = std::abs(std::log((1 + row[j]) / (1 + bound)));
    if (away > worst.log) worst = {.log = away, .feature = j};
  }
  return worst;
}

void clamp_into(std::span<const double> row, std::span<const double> low,
                std::span<const double> high, std::vector<double>& out) {
  for (std::size_t j = 0; j < row.size(); ++j) out.push_back(std::clamp(row[j], low[j], high[j]));
}

}  // namespace fleetfit::predict
