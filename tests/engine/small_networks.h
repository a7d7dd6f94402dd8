#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::engine {

/// A network of the zoo with a quarter of its channels, on the smallest image that it takes: all
/// its operators in milliseconds.
inline Result<graph::Graph> small_network(const std::string& name) {
  constexpr std::array<std::int64_t, 8> kImages{32, 48, 64, 96, 128, 160, 192, 224};
  for (const std::int64_t image : kImages) {
    auto graph = graph::build_zoo_network(name, {.width = 0.25, .classes = 10, .image = image});
    if (graph) return graph;
  }
  return graph::build_zoo_network(name, {.width = 0.25, .classes = 10});
}

/// The first network of each family of the zoo.
inline std::vector<std::string> one_of_each_family() {
  std::vector<std::string> names;
  std::string family;
  for (const auto& entry : graph::zoo()) {
    if (entry.family != family) names.push_back(entry.name);
    family = entry.family;
  }
  return names;
}

/// A network's name as a part of a test's name.
inline std::string test_name(const testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  for (char& letter : name) {
    if (letter == '.' || letter == '-') letter = '_';
  }
  return name;
}

}  // namespace fleetfit::engine
