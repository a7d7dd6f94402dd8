#include "fleetfit/graph/zoo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

std::vector<ZooEntry> all_networks() {
  ZooList list;
  for (const auto add : {add_classic, add_darknet, add_densenet, add_efficientnet, add_espnet_v2,
                         add_inception, add_mobilenet, add_regnet, add_repvgg, add_resnet,
                         add_searched, add_shufflenet, add_transformers}) {
    add(list);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const ZooEntry& a, const ZooEntry& b) { return a.family < b.family; });
  return list;
}

/// Number of single-letter edits between two words.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string_view> nearest_names(std::string_view name) {
  std::vector<std::pair<std::size_t, std::string_view>> scored;
  for (const auto& entry : zoo())
    scored.emplace_back(edit_distance(name.substr(0, 64), entry.name), entry.name);
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, scored.size()); ++i)
    names.push_back(scored[i].second);
  return names;
}

// "mobilenet_v1_0.5", as papers write it, is listed as "mobilenet_v1_x0_5".
std::string as_listed(std::string_view name) {
  std::string listed(name);
  const auto width = listed.rfind('_');
  const auto point = listed.rfind('.');
  if (width == std::string::npos || point == std::string::npos || point < width) return listed;
  listed[point] = '_';
  return listed.insert(width + 1, "x");
}

}  // namespace

std::int64_t NetOptions::scaled(std::int64_t channels) const {
  return width == 1 ? channels : scaled_channels(channels, width);
}

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> kNetworks = all_networks();
  return kNetworks;
}

Result<Graph> build_zoo_network(std::string_view name, const ZooOptions& options) {
  const auto listed = as_listed(name);
  const auto entry =
      std::find_if(zoo().begin(), zoo().end(), [&](const ZooEntry& e) { return e.name == listed; });
  if (entry == zoo().end()) {
    return fail(ErrorCode::not_found, fmt::format("no network '{}' in the zoo; the nearest are {}",
                                                  name, fmt::join(nearest_names(name), ", ")));
  }
  const NetOptions net{.classes = options.classes.value_or(entry->classes), .width = options.width};
  const auto image = options.image.value_or(entry->image);
  const auto channels = options.channels.value_or(entry->channels);
  constexpr std::int64_t kMost = 1 << 16;
  if (net.classes < 1 || image < 1 || channels < 1 || net.classes > kMost * 16 || image > kMost ||
      channels > kMost) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: classes, image and channels must be positive and sane", name));
  }
  if (!(net.width > 0.01 && net.width <= 16)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: a width of {} is not between 0.01 and 16", name, net.width));
  }
  NetBuilder builder(entry->name, options.seed);
  const auto x = builder.input("input", {1, channels, image, image});
  builder.output(entry->build(builder, x, net), "output");
  return std::move(builder).finish();
}

}  // namespace fleetfit::graph
