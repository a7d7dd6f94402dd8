#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/store/records.h"

/// Every store checks a record before it writes it, so that all of them refuse the same. Failures
/// are `invalid_input` and name the record and its field.
namespace fleetfit::store {

Status check(const DeviceRecord& device);
Status check(const ModelRecord& model);
Status check(const MeasurementRecord& measurement);
Status check(const KernelChoiceRecord& choice);

}  // namespace fleetfit::store
