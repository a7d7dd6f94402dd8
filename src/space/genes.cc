#include "space/genes.h"

#include <fmt/format.h>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::space {

Gene amounts(std::string name, std::string_view prefix, std::span<const std::int64_t> values,
             std::string before) {
  Gene gene{.name = std::move(name), .before = std::move(before)};
  for (const auto value : values) {
    gene.choices.push_back(fmt::format("{}{}", prefix, value));
    gene.values.push_back(static_cast<double>(value));
  }
  return gene;
}

std::vector<std::int64_t> channels_around(std::int64_t channels) {
  constexpr int kFirstTenths = 2;
  constexpr int kLastTenths = 18;
  std::vector<std::int64_t> values;
  for (int tenths = kFirstTenths; tenths <= kLastTenths; tenths += 2) {
    const std::int64_t value = graph::scaled_channels(channels, tenths / 10.0);
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  return values;
}

}  // namespace fleetfit::space
