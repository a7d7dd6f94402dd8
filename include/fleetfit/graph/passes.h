#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// Rewrites of a graph that keep what it computes. Each is one small file in src/graph/passes. All
/// work in place: one that fails may leave the graph half changed, of no use but to be thrown away.
namespace fleetfit::graph {

struct Pass {
  std::string_view name;     ///< e.g. "fold_batch_norm"
  std::string_view summary;  ///< one line for --help
  /// Tells whether it changed the graph.
  Result<bool> (*rewrite)(Graph& graph);
};

/// Every pass, in the order in which they help each other.
std::span<const Pass> passes();

/// Those that make a graph smaller and faster and change no layout: what runs before measuring or
/// pricing a network.
struct SimplifyOptions {
  std::vector<std::string> without;  ///< names of passes to leave out
};

/// Runs the simplifying passes until none changes anything. `invalid_input` if a name in `without`
/// is no pass.
Status simplify(Graph& graph, const SimplifyOptions& options = {});

/// Runs one pass by name; says whether it changed anything. `invalid_input` if there is none of
/// that name.
Result<bool> run_pass(Graph& graph, std::string_view name);

/// Runs passes by name, one after the other, until none changes anything. `invalid_input`, and
/// nothing done, if there is none of one of the names.
Status run_passes(Graph& graph, std::span<const std::string> names);

/// Operators on images brought to one layout, with transposes where layouts meet, as few as can be
/// had cheaply.
Status convert_layout(Graph& graph, Layout layout);

}  // namespace fleetfit::graph
