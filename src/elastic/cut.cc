#include "elastic/cut.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/cost/cost.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/shrink.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;

/// A segment with what grouping asks for.
struct Piece {
  Segment where = {};
  std::int64_t parameters = 0;
  std::string kind = {};
  bool keeps_shape = false;
  bool can_shrink = false;
  bool has_layer_norm = false;  ///< at its beginning or its end, as halves of an encoder layer
};

class Grouping {
 public:
  Grouping(const Graph& model, double granularity) : model_(model), granularity_(granularity) {}

  Status prepare() {
    for (const auto& segment : find_segments(model_)) {
      FLEETFIT_ASSIGN(auto piece, examine(segment));
      total_ += piece.parameters;
      if (piece.can_shrink) largest_ = std::max(largest_, piece.parameters);
      pieces_.push_back(std::move(piece));
    }
    return {};
  }

  std::vector<Segment> run() {
    std::vector<Segment> groups;
    for (std::size_t i = 0; i < pieces_.size();) {
      std::size_t count = encoder_layer_at(i);
      if (count == 0) count = pieces_[i].can_shrink ? 1 : shrinkable_group_at(i);
      if (count == 0) count = 1;
      groups.push_back({pieces_[i].where.first, pieces_[i + count - 1].where.end});
      i += count;
    }
    return groups;
  }

  double helpful_granularity() const {
    return total_ == 0 ? 0 : static_cast<double>(held_back_) / static_cast<double>(total_);
  }

 private:
  Result<Piece> examine(const Segment& segment) const {
    const Graph part = extract(model_, segment);
    FLEETFIT_ASSIGN(auto parameters, parameters_of(part));
    const auto is_norm = [](const graph::Node& node) {
      return std::holds_alternative<graph::LayerNorm>(node.op);
    };
    return Piece{.where = segment,
                 .parameters = parameters,
                 .kind = kind_of(part),
                 .keeps_shape = keeps_shape(part),
                 .can_shrink = can_shrink(part),
                 .has_layer_norm = is_norm(part.nodes.front()) || is_norm(part.nodes.back())};
  }

  /// What cannot be cut finer may be larger than the granularity, and then so may groups.
  bool is_allowed(std::int64_t parameters) const {
    return static_cast<double>(parameters) <=
           std::max(granularity_ * static_cast<double>(total_), static_cast<double>(largest_));
  }

  bool is_pair(std::size_t i) const {
    if (i + 1 >= pieces_.size()) return false;
    const Piece& a = pieces_[i];
    const Piece& b = pieces_[i + 1];
    return a.keeps_shape && b.keeps_shape && a.has_layer_norm && b.has_layer_norm &&
           a.kind != b.kind;
  }
  bool is_same_pair(std::size_t i, std::size_t j) const {
    return is_pair(j) && pieces_[i].kind == pieces_[j].kind &&
           pieces_[i + 1].kind == pieces_[j + 1].kind;
  }

  /// Attention and dense network of an encoder layer that is there several times: 2, else 0.
  std::size_t encoder_layer_at(std::size_t i) {
    if (!is_pair(i)) return 0;
    const bool repeats = is_same_pair(i, i + 2) || (i >= 2 && is_same_pair(i, i - 2));
    if (!repeats) return 0;
    return is_allowed(pieces_[i].parameters + pieces_[i + 1].parameters) ? 2 : 0;
  }

  /// How many pieces from here on have inner channels together that none has alone; 0 if they get
  /// too large before, or meet one that has its own.
  std::size_t shrinkable_group_at(std::size_t i) {
    std::int64_t parameters = pieces_[i].parameters;
    for (std::size_t end = i + 1; end < pieces_.size() && !pieces_[end].can_shrink; ++end) {
      if (encoder_layer_at(end) != 0) return 0;
      parameters += pieces_[end].parameters;
      const Segment group{pieces_[i].where.first, pieces_[end].where.end};
      if (!is_allowed(parameters)) {
        if (can_shrink(extract(model_, group))) hold_back(parameters);
        return 0;
      }
      if (can_shrink(extract(model_, group))) return end - i + 1;
    }
    return 0;
  }

  void hold_back(std::int64_t parameters) {
    if (held_back_ == 0 || parameters < held_back_) held_back_ = parameters;
  }

  const Graph& model_;
  double granularity_;
  std::int64_t total_ = 0;
  std::int64_t largest_ = 0;    // piece with inner channels
  std::int64_t held_back_ = 0;  // least parameters of a group that was not allowed
  std::vector<Piece> pieces_;
};

std::string block_name(const Graph& block) {
  return block.nodes.empty() ? "" : block.nodes.front().name;
}

}  // namespace

Result<std::int64_t> parameters_of(const Graph& graph) {
  FLEETFIT_ASSIGN(const auto cost, cost::count_cost(graph));
  return cost.total.params;
}

std::string kind_of(const Graph& graph) {
  std::string kind;
  for (const auto& node : graph.nodes) {
    kind += graph::type_name(node.op);
    if (const auto* conv = std::get_if<graph::Conv>(&node.op)) {
      for (const auto k : conv->window.kernel) kind += fmt::format(" {}", k);
      if (conv->groups > 1) kind += " grouped";
    }
    kind += ';';
  }
  return kind;
}

bool keeps_shape(const Graph& graph) {
  return graph.inputs.size() == 1 && graph.outputs.size() == 1 &&
         graph.tensor(graph.inputs[0]).shape == graph.tensor(graph.outputs[0]).shape;
}

Result<CutModel> cut_model(const Graph& model, double granularity) {
  FLEETFIT_ASSIGN(const auto prepared_model, prepared(model));
  Grouping grouping(prepared_model, granularity);
  FLEETFIT_TRY(grouping.prepare());
  CutModel cut;
  cut.supernet.name = model.name;
  for (const auto& group : grouping.run()) {
    Graph part = extract(prepared_model, group);
    auto name = block_name(part);
    cut.supernet.blocks.push_back(
        {.name = std::move(name), .branches = {{.graph = std::move(part)}}});
  }
  cut.helpful_granularity = grouping.helpful_granularity();
  return cut;
}

Result<Supernet> cut_into_blocks(const Graph& model, double granularity) {
  auto cut = cut_model(model, granularity);
  FLEETFIT_TRY(cut);
  if (cut->supernet.blocks.size() < 2) {
    return refuse(
        fmt::format("the model {} cannot be cut: no tensor in it is one through which "
                    "everything flows",
                    model.name));
  }
  return std::move(cut->supernet);
}

}  // namespace fleetfit::elastic
