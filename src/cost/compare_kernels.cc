#include <algorithm>
#include <map>
#include <set>

#include "fleetfit/cost/kernels.h"

namespace fleetfit::cost {
namespace {

std::vector<int> sorted(std::vector<int> nodes) {
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace

KernelComparison compare_kernels(std::span<const Kernel> deduced,
                                 std::span<const ProfiledKernel> ran) {
  KernelComparison result{.deduced = static_cast<int>(deduced.size()),
                          .ran = static_cast<int>(ran.size())};
  std::map<int, std::size_t> ran_in;
  for (std::size_t k = 0; k < ran.size(); ++k) {
    for (const int node : ran[k].kernel.nodes) ran_in.emplace(node, k);
  }
  std::set<std::size_t> seen;
  for (const auto& kernel : deduced) {
    std::set<std::size_t> parts;
    for (const int node : kernel.nodes) {
      if (const auto found = ran_in.find(node); found != ran_in.end()) parts.insert(found->second);
    }
    seen.insert(parts.begin(), parts.end());
    const auto nodes = sorted(kernel.nodes);
    if (parts.size() == 1 && sorted(ran[*parts.begin()].kernel.nodes) == nodes) {
      ++result.alike;
      result.ran_alike.push_back(*parts.begin());
      continue;
    }
    KernelComparison::Difference difference{.deduced = kernel.nodes};
    for (const auto part : parts) difference.ran.push_back(ran[part].kernel.nodes);
    result.differences.push_back(std::move(difference));
  }
  for (std::size_t k = 0; k < ran.size(); ++k) {
    if (!seen.contains(k)) result.differences.push_back({.ran = {ran[k].kernel.nodes}});
  }
  return result;
}

KernelTimes assign_times(std::span<const Kernel> deduced, const MatchedProfile& ran) {
  KernelTimes times{.ms = std::vector<double>(deduced.size(), 0.0)};
  std::map<int, std::size_t> deduced_in;
  for (std::size_t k = 0; k < deduced.size(); ++k) {
    for (const int node : deduced[k].nodes) deduced_in.emplace(node, k);
  }
  for (const auto& kernel : ran.kernels) {
    const auto found = deduced_in.find(kernel.kernel.nodes.front());
    (found == deduced_in.end() ? times.rest_ms : times.ms[found->second]) += kernel.ms;
  }
  for (const auto& entry : ran.unmatched) times.rest_ms += entry.ms;
  return times;
}

}  // namespace fleetfit::cost
