#pragma once

#include <utility>

#include "graph/zoo/families.h"

namespace fleetfit::graph {

/// Adds one network for each row of a table. `like` holds what the networks have in common; a row
/// has a `name` and is handed to `build` as the last argument.
template <class Rows, class Build>
void add_rows(ZooList& zoo, const ZooEntry& like, const Rows& rows, Build build) {
  for (const auto& row : rows) {
    ZooEntry entry = like;
    entry.name = row.name;
    entry.build = [row, build](NetBuilder& net, TensorId image, const NetOptions& options) {
      return build(net, image, options, row);
    };
    zoo.push_back(std::move(entry));
  }
}

}  // namespace fleetfit::graph
