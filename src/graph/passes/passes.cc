#include "fleetfit/graph/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "graph/passes/all_passes.h"

namespace fleetfit::graph {
namespace {

// Patterns are looked for before layers take their first and last nodes in.
constexpr std::array kPasses{
    Pass{"fold_constants", "computes what depends on constants alone", rewrite::fold_constants},
    Pass{"remove_identities", "removes nodes that hand their input on as it is",
         rewrite::remove_identities},
    Pass{"merge_moves", "merges consecutive transposes and consecutive reshapes",
         rewrite::merge_moves},
    Pass{"recognize_activations", "finds SiLU, GELU, hard-swish, Mish and others written out",
         rewrite::recognize_activations},
    Pass{"recognize_layer_norm", "finds layer norms written out", rewrite::recognize_layer_norm},
    Pass{"recognize_channel_shuffle", "finds channel shuffles written as reshape and transpose",
         rewrite::recognize_channel_shuffle},
    Pass{"recognize_global_pool", "finds global pooling written as a reduction",
         rewrite::recognize_global_pool},
    Pass{"fold_batch_norm", "folds batch norms into the layers before them",
         rewrite::fold_batch_norm},
    Pass{"fold_affine", "folds per-channel factors and offsets into the layers before them",
         rewrite::fold_affine},
    Pass{"fuse_activations", "lets layers apply the activations that follow them",
         rewrite::fuse_activations},
    Pass{"remove_dead_nodes", "removes nodes and tensors that no output needs",
         rewrite::remove_dead_nodes},
    Pass{"layout_nchw", "brings image operators to channels first", rewrite::layout_nchw},
    Pass{"layout_nhwc", "brings image operators to channels last", rewrite::layout_nhwc},
};

constexpr std::size_t kSimplifying = kPasses.size() - 2;
constexpr int kMostRounds = 16;

const Pass* find_pass(std::string_view name) {
  const auto* found = std::find_if(kPasses.begin(), kPasses.end(),
                                   [&](const Pass& pass) { return pass.name == name; });
  return found == kPasses.end() ? nullptr : found;
}

tl::unexpected<Error> no_such_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& pass : kPasses) names.push_back(pass.name);
  return fail(ErrorCode::invalid_input, fmt::format("there is no pass '{}'; the passes are {}",
                                                    name, fmt::join(names, ", ")));
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Status simplify(Graph& graph, const SimplifyOptions& options) {
  const auto& without = options.without;
  for (const auto& name : without) {
    if (find_pass(name) == nullptr) return no_such_pass(name);
  }
  std::vector<std::string> names;
  for (const auto& pass : std::span(kPasses).first(kSimplifying)) {
    if (std::ranges::find(without, pass.name) == without.end()) names.emplace_back(pass.name);
  }
  return run_passes(graph, names);
}

Result<bool> run_pass(Graph& graph, std::string_view name) {
  const auto* pass = find_pass(name);
  if (pass == nullptr) return no_such_pass(name);
  return pass->rewrite(graph);
}

Status run_passes(Graph& graph, std::span<const std::string> names) {
  std::vector<const Pass*> chosen;
  for (const auto& name : names) {
    chosen.push_back(find_pass(name));
    if (chosen.back() == nullptr) return no_such_pass(name);
  }
  bool changed = true;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (const auto* pass : chosen) {
      FLEETFIT_ASSIGN(const auto result, core::within(pass->name, pass->rewrite(graph)));
      changed = changed || result;
    }
  }
  return {};
}

Status convert_layout(Graph& graph, Layout layout) {
  FLEETFIT_TRY(run_pass(graph, layout == Layout::nchw ? "layout_nchw" : "layout_nhwc"));
  return {};
}

}  // namespace fleetfit::graph
