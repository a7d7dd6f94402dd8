#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::cost {

/// Numbers that a kernel's latency depends on. All are finite, none is negative, and more of any
/// means more work, so that a predictor may demand weights that are not negative.
struct KernelFeatures {
  std::string kind;            ///< of the kernel
  std::vector<double> values;  ///< in the order of feature_names(kind)

  bool operator==(const KernelFeatures&) const = default;
};

/// Changes whenever a feature goes or means something else. New ones come last in their lists:
/// predictors that were made before know those in front of them.
inline constexpr int kFeatureVersion = 1;

/// The names of the features that every kind has, and with which every list begins.
const std::vector<std::string>& generic_feature_names();

/// All features of a kind; of a kind that is not known those of "other".
const std::vector<std::string>& feature_names(std::string_view kind);

/// Works for floats and for quantized networks alike (QuantizeLinear and DequantizeLinear around an
/// operator that are part of its kernel, or tensors that are quantized themselves). Fails with
/// `invalid_input`, naming the node, if a shape that is needed cannot be known, and if the kernel
/// names a node that the graph does not have.
Result<KernelFeatures> features_of(const graph::Graph& graph, const Kernel& kernel);

/// Those of many kernels of one graph, in order: much faster than one by one.
Result<std::vector<KernelFeatures>> features_of(const graph::Graph& graph,
                                                const std::vector<Kernel>& kernels);

/// The kernels that a runtime will run for a network, with their features and names.
struct DeducedKernels {
  std::vector<Kernel> kernels = {};
  std::vector<KernelFeatures> features = {};
  std::vector<std::string> names = {};  ///< of the nodes in each, joined by "+"
};
/// Fails as `deduce_kernels` and `features_of` do.
Result<DeducedKernels> deduced_kernels(const graph::Graph& graph, const KernelRules& rules);

}  // namespace fleetfit::cost
