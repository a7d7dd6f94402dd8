#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {

std::unique_ptr<const Space> make_fbnet();
std::unique_ptr<const Space> make_icpe();
std::unique_ptr<const Space> make_mobilenetv2();
std::unique_ptr<const Space> make_mobilenetv3();
std::unique_ptr<const Space> make_nasbench201();
std::unique_ptr<const Space> make_ofa_mbv3();
std::unique_ptr<const Space> make_proxylessnas();

/// What a design decides beside its architecture.
struct Policies {
  bool precision = false;  ///< float or int8
  bool pruning = false;    ///< which share of the channels stays

  bool operator==(const Policies&) const = default;
};

/// The designs of `base`, which must outlive it, with policies: their genes stand behind those of
/// the architecture. Networks are lowered as `base` does, then pruned, then quantized.
std::unique_ptr<const Space> make_policy_space(const Space& base, const Policies& policies);

// --- What the files of spaces share

/// A gene whose choices are amounts, each written behind `prefix`: k3, k5, k7.
Gene amounts(std::string name, std::string_view prefix, std::span<const std::int64_t> values,
             std::string before = "-");

inline constexpr std::int64_t kImage = 224;  ///< pixels on a side of ImageNet's
inline constexpr std::int64_t kImageChannels = 3;
inline constexpr std::int64_t kClasses = 1000;  ///< of ImageNet

/// The network on one image of so many pixels on a side; `grow(net, image)` gives its logits.
template <class Grow>
Result<graph::Graph> network_on_image(const std::string& name, std::int64_t size,
                                      const Grow& grow) {
  constexpr std::uint64_t kWeightSeed = 1;
  graph::NetBuilder net(name, kWeightSeed);
  const graph::TensorId image = net.input("input", {1, kImageChannels, size, size});
  net.output(grow(net, image), "output");
  return std::move(net).finish();
}

}  // namespace fleetfit::space
