#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/zoo.h"

// Whatever rules were read put no node into two kernels.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleetfit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = cost::KernelRules::parse(text, "fuzz");
  if (!rules) return 0;
  static const auto network =
      graph::build_zoo_network("mobilenet_v3_small", {.width = 0.25, .image = 32});
  if (!network) std::abort();
  const auto plan = cost::deduce_kernels(*network, *rules);
  if (!plan) return 0;
  std::set<int> seen;
  for (const auto& kernel : plan->kernels) {
    for (const int node : kernel.nodes) {
      if (!seen.insert(node).second) std::abort();
    }
  }
  return 0;
}
