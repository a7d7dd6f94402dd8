#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/measuring.h"
#include "fleetfit/space/quantity.h"
#include "fleetfit/space/space.h"

namespace fleetfit::app {

/// A space that need not be among the known ones, and the name under which its designs are kept.
struct NamedSpace {
  const space::Space& space;
  std::string name;
};

/// A number of a measurement; of latencies the median, mean, p90 or p99. NaN if it does not have
/// it, or failed.
double cost_of(const store::MeasurementRecord& record, space::Quantity quantity,
               std::string_view statistic = "median");

/// What `measure_designs` does, for a space that the caller has; that of the request is not looked
/// at.
Result<std::vector<MeasuredDesign>> measure_designs_of(Workplace& workplace,
                                                       const NamedSpace& space,
                                                       const DesignsRequest& request,
                                                       core::Progress& progress,
                                                       const std::stop_token& stop);

}  // namespace fleetfit::app
