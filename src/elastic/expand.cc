#include "fleetfit/elastic/expand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "elastic/cut.h"
#include "elastic/merge.h"
#include "fleetfit/core/random.h"
#include "fleetfit/graph/shrink.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::TensorId;

class Forgetting {
 public:
  Forgetting(Graph& graph, std::uint64_t seed) : graph_(graph), seed_(seed) {}

  void operator()(const graph::Conv&, const graph::Node& node) { layer(node, 0); }
  void operator()(const graph::ConvTranspose&, const graph::Node& node) { layer(node, 1); }
  void operator()(const graph::Gemm& op, const graph::Node& node) {
    layer(node, op.trans_b ? 0 : 1);
  }
  void operator()(const graph::MatMul& op, const graph::Node& node) {
    if (graph_.tensor(node.inputs[1]).shape->size() == 2) layer(node, op.trans_b ? 0 : 1);
  }
  void operator()(const graph::BatchNorm&, const graph::Node& node) {
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      fill(node.inputs[i], i == 1 || i == 4 ? 1 : 0, 0);
  }
  void operator()(const graph::LayerNorm&, const graph::Node& node) {
    fill(node.inputs[1], 1, 0);
    if (node.inputs.size() > 2) fill(node.inputs[2], 0, 0);
  }
  template <class Op>
  void operator()(const Op&, const graph::Node&) {}

 private:
  /// Draws the weights; all axes but the outputs' are what an output sums over.
  void layer(const graph::Node& node, std::size_t output_axis) {
    const TensorId weights = node.inputs[1];
    if (graph_.tensor(weights).is_constant()) {
      const auto& shape = *graph_.tensor(weights).shape;
      const auto fan_in =
          static_cast<double>(graph::elements(shape)) / static_cast<double>(shape[output_axis]);
      fill(weights, 0, std::sqrt(6 / fan_in));
    }
    if (node.inputs.size() > 2) fill(node.inputs[2], 0, 0);
  }

  void fill(TensorId id, double center, double spread) {
    if (id == kNoTensor) return;
    auto& tensor = graph_.tensor(id);
    if (!tensor.is_constant() || tensor.dtype != graph::DType::f32) return;
    tensor.data = graph::TensorData::generate(
        {.dtype = tensor.dtype,
         .count = static_cast<std::size_t>(graph::elements(*tensor.shape)),
         .center = center,
         .spread = spread,
         .seed = core::mix(seed_, static_cast<std::uint64_t>(id))});
  }

  Graph& graph_;
  std::uint64_t seed_;
};

/// Forgets what a network has learned: weights are drawn again (He's rule), batch norms start as
/// the identity, biases at zero.
void randomize_weights(Graph& graph, std::uint64_t seed) {
  Forgetting forget(graph, seed);
  for (const auto& node : graph.nodes)
    std::visit([&](const auto& op) { forget(op, node); }, node.op);
}

Status check_options(const ExpandOptions& options) {
  if (!(options.granularity > 0 && options.granularity <= 1))
    return refuse(fmt::format("granularity {}: not within 0 and 1", options.granularity));
  for (const double share : options.shrink) {
    if (!(share > 0 && share < 1))
      return refuse(fmt::format("share {} of channels: not between 0 and 1", share));
  }
  if (!(options.merge_shrink > 0 && options.merge_shrink <= 1))
    return refuse(fmt::format("share {} of the channels of merged branches: not within 0 and 1",
                              options.merge_shrink));
  if (options.merge == 0 && options.shrink.empty())
    return refuse("neither merged nor shrunk branches are asked for");
  return {};
}

class Expansion {
 public:
  Expansion(Supernet& supernet, const ExpandOptions& options)
      : supernet_(supernet), options_(options) {}

  void run() {
    find_elastic();
    for (std::size_t b = 0; b < supernet_.blocks.size(); ++b) {
      if (!elastic_[b]) continue;
      add_shrunk(b);
      for (std::size_t neighbours = 1; neighbours <= options_.merge; ++neighbours)
        add_merged(b, neighbours);
    }
  }

 private:
  const Graph& original(std::size_t block) const {
    return supernet_.blocks[block].branches.front().graph;
  }

  /// Blocks with inner channels, and those that stand beside one of their kind.
  void find_elastic() {
    const std::size_t count = supernet_.blocks.size();
    std::vector<std::string> kinds;
    for (std::size_t b = 0; b < count; ++b)
      kinds.push_back(keeps_shape(original(b)) ? kind_of(original(b)) : std::string());
    for (std::size_t b = 0; b < count; ++b) {
      const bool repeats = !kinds[b].empty() && ((b > 0 && kinds[b - 1] == kinds[b]) ||
                                                 (b + 1 < count && kinds[b + 1] == kinds[b]));
      elastic_.push_back(repeats || can_shrink(original(b)));
    }
  }

  void add_shrunk(std::size_t block) {
    std::int64_t smallest = parameters_of(original(block)).value_or(0);
    auto shares = options_.shrink;
    std::ranges::sort(shares, std::greater<>());
    for (const double share : shares) {
      auto graph = shrunk(original(block), share);
      if (!graph) continue;
      // Rounding can make two shares one.
      const auto size = parameters_of(*graph).value_or(smallest);
      if (size >= smallest) continue;
      smallest = size;
      add(block, {.kind = BranchKind::shrunk, .share = share, .graph = std::move(*graph)});
    }
  }

  void add_merged(std::size_t block, std::size_t neighbours) {
    const std::size_t end = block + neighbours + 1;
    if (end > supernet_.blocks.size()) return;
    std::vector<const Graph*> replaced;
    for (std::size_t b = block; b < end; ++b) {
      if (!elastic_[b] || !is_link(original(b))) return;
      replaced.push_back(&original(b));
    }
    auto graph = merged(replaced);
    if (!graph) return;
    // Only of the longest, which the quickest subnets are made of: branches make bundles larger.
    auto narrow = neighbours == options_.merge && options_.merge_shrink < 1
                      ? shrunk(*graph, options_.merge_shrink)
                      : std::nullopt;
    Branch branch{.kind = BranchKind::merged, .span = neighbours + 1, .graph = std::move(*graph)};
    add(block, std::move(branch));
    if (!narrow) return;
    add(block, {.kind = BranchKind::merged,
                .span = neighbours + 1,
                .share = options_.merge_shrink,
                .graph = std::move(*narrow)});
  }

  static bool is_link(const Graph& block) {
    return block.inputs.size() == 1 && block.outputs.size() == 1 &&
           block.tensor(block.inputs[0]).shape && block.tensor(block.outputs[0]).shape;
  }

  void add(std::size_t block, Branch branch) {
    auto& branches = supernet_.blocks[block].branches;
    branches.push_back(std::move(branch));
    if (options_.start == BranchStart::replaced) return;
    const auto seed = core::mix(core::mix(options_.seed, block), branches.size());
    randomize_weights(branches.back().graph, seed);
  }

  Supernet& supernet_;
  const ExpandOptions& options_;
  std::vector<bool> elastic_;
};

bool has_choice(const Supernet& supernet) {
  return std::ranges::any_of(supernet.blocks,
                             [](const Block& block) { return block.branches.size() > 1; });
}

tl::unexpected<Error> nothing_elastic(const std::string& name, const CutModel& cut,
                                      double granularity) {
  std::string message = fmt::format(
      "the model {} cannot be made elastic: of its {} blocks none repeats and none has inner "
      "channels that can be left out",
      name, cut.supernet.blocks.size());
  if (cut.helpful_granularity > granularity) {
    // Rounded up, so that what is named helps.
    message += fmt::format("; a granularity of {:.2f} would allow larger blocks that have",
                           std::min(1.0, cut.helpful_granularity + 0.005));
  }
  return refuse(std::move(message));
}

}  // namespace

Result<Supernet> expand(const Graph& model, const ExpandOptions& options) {
  FLEETFIT_TRY(check_options(options));
  auto cut = cut_model(model, options.granularity);
  FLEETFIT_TRY(cut);
  Expansion(cut->supernet, options).run();
  if (!has_choice(cut->supernet)) return nothing_elastic(model.name, *cut, options.granularity);
  std::vector<Supernet> models{std::move(cut->supernet)};
  FLEETFIT_TRY(check_supernets(models));
  return std::move(models.front());
}

}  // namespace fleetfit::elastic
