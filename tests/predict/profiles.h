#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/samples.h"

namespace fleetfit::predict::test {

inline bool came_later(std::string_view feature) {
  return feature.starts_with("filled_") || feature.starts_with("unblocked_") ||
         feature.starts_with("uneven_") || feature.starts_with("shifted_") ||
         feature.starts_with("joined_") || feature.starts_with("unjoined_") ||
         feature.starts_with("outside_") || feature.starts_with("reordered_");
}

/// A kernel with random features whose arithmetic and traffic are in `scale` x [1, 100).
inline cost::KernelFeatures random_kernel(core::Random& random, const std::string& kind,
                                          double scale = 1) {
  cost::KernelFeatures kernel{.kind = kind};
  const auto& names = cost::feature_names(kind);
  // Features that came later are like earlier ones: what is drawn for the others stays what it was.
  for (const auto& name : names)
    kernel.values.push_back(came_later(name) ? kernel.values[kernel.values.size() - 5]
                                             : random.uniform(1, 20));
  kernel.values[0] = scale * 1e6 * random.uniform(1, 100);  // flops
  kernel.values[1] = scale * 1e4 * random.uniform(1, 100);  // input_size
  return kernel;
}

using Law = std::function<double(const cost::KernelFeatures&)>;

/// Convolutions at 10 GFLOP/s, elementwise kernels at 1 value per ns, each with 1 us to start.
inline double plain_law(const cost::KernelFeatures& kernel) {
  if (kernel.kind == "conv2d") return 0.001 + kernel.values[0] / 1e7;
  return 0.001 + kernel.values[1] / 1e6;
}

struct ProfileOptions {
  int networks = 60;
  int kernels = 10;
  double noise = 0;  ///< of a kernel, standard deviation of its logarithm
  double network_noise = 0;
  double overhead_ms = 0.05;
  std::uint64_t seed = 1;
};

/// Networks of convolutions and elementwise kernels.
inline std::vector<NetworkSample> make_profiles(const ProfileOptions& options,
                                                const Law& law = plain_law) {
  std::vector<NetworkSample> networks;
  core::Random random(options.seed);
  for (int n = 0; n < options.networks; ++n) {
    NetworkSample network{.name = "net" + std::to_string(n), .overhead_ms = options.overhead_ms};
    network.latency_ms = options.overhead_ms;
    const double common = std::exp(options.network_noise * random.normal());
    for (int k = 0; k < options.kernels; ++k) {
      auto kernel = random_kernel(random, k % 2 == 0 ? "conv2d" : "elementwise");
      const double ms = law(kernel) * common * std::exp(options.noise * random.normal());
      network.kernels.push_back({.features = std::move(kernel), .ms = ms});
      network.latency_ms += ms;
    }
    networks.push_back(std::move(network));
  }
  return networks;
}

inline std::vector<cost::KernelFeatures> kernels_of(const NetworkSample& network) {
  std::vector<cost::KernelFeatures> kernels;
  for (const auto& kernel : network.kernels) kernels.push_back(kernel.features);
  return kernels;
}

}  // namespace fleetfit::predict::test
