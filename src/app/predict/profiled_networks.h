#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/devices/opened_device.h"
#include "fleetfit/app/predicting.h"
#include "fleetfit/core/result.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/predict/samples.h"
#include "fleetfit/store/records.h"

namespace fleetfit::app {

/// Which networks are wanted from a device, and how those are measured that it does not know yet.
struct ProfileRequest {
  const std::string& device;
  const NetworkChoice& networks;
  std::size_t first = 0;  ///< number of the first design of a space
  const measure::Protocol& protocol;
  int threads = 1;
  bool stored = false;  ///< those alone that it knows: nothing is measured
};

/// A network with the profile that was taken of it.
struct ProfiledNetwork {
  std::string name = {};
  std::string hash = {};
  std::optional<std::size_t> design = std::nullopt;  ///< its number, if it is one of a space
  graph::Graph graph = {};                           ///< as it was run
  store::MeasurementRecord record = {};
};

/// Sees to it that the networks were profiled on the device, and hands each to `take`, in order;
/// one that cannot be used to `leave_out`, with the reason. Fails with `cancelled` when stopped.
struct ProfileReceiver {
  std::function<Status(const ProfiledNetwork&)> take;
  std::function<void(std::string)> leave_out;
};
Status profile_networks(Workplace& workplace, const ProfileRequest& request,
                        const ProfileReceiver& receiver, core::Progress& progress,
                        const std::stop_token& stop);

/// The network as a device of this precision runs it: a float one is quantized for int8.
Result<graph::Graph> as_run(graph::Graph graph, measure::Precision precision);

/// A measurement with operators in the form that predictors learn from: the deduced kernels with
/// the times of what ran for them. Time that belongs to none of them counts as overhead; where all
/// of it is more than the network took when it was not profiled, the overhead is less and, if that
/// is not enough, each kernel. Fails with
/// `invalid_input` if the record has no operators or they do not fit the graph.
Result<predict::NetworkSample> sample_of(const graph::Graph& graph, const cost::KernelRules& rules,
                                         const store::MeasurementRecord& record);

}  // namespace fleetfit::app
