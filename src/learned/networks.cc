#include "fleetfit/learned/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace fleetfit::learned {
namespace {

using predict::DenseLayer;

void add_row(const float* row, std::span<float> out) {
  float* const sums = out.data();
  for (std::size_t i = 0; i < out.size(); ++i) sums[i] += row[i];
}

/// out = bias + the rows of the columns that are 1.
void apply_sparse(const DenseLayer& layer, std::span<const std::uint32_t> taken,
                  std::span<float> out) {
  std::ranges::copy(layer.bias, out.begin());
  for (const auto column : taken) add_row(layer.weights.data() + column * layer.outputs, out);
}

void cut_negative(std::span<float> values) {
  for (float& value : values) value = std::max(value, 0.0F);
}

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

using space::Choice;

/// The beginning of a design.
struct Beginning {
  std::vector<Choice> design;
  std::vector<float> state;
  double log_probability = 0;
};

struct Step {
  std::size_t from;
  Choice choice;
  double log_probability;
};

/// ln of the sum of exp.
double log_sum(std::span<const float> logits) {
  const double most = std::ranges::max(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

Status check_gene(const OptimizerNetwork::Gene& gene, std::size_t choices, std::size_t width,
                  const std::string& name) {
  FLEETFIT_TRY(check_layer(gene.place, 1, width, name + ".place"));
  FLEETFIT_TRY(check_layer(gene.choices, choices, width, name + ".choices"));
  return check_layer(gene.out, width, choices, name + ".out");
}

}  // namespace

DesignColumns::DesignColumns(const space::Space& space) : space_(&space) {
  one_hot_ = space.find_encoding("one-hot").value();
  live_ = space.find_encoding("live").value();
  width_ = space.encodings()[one_hot_].features.size();
  const auto counts = space.find_encoding("counts").value();
  tells_live_ = std::ranges::any_of(space.encodings()[counts].features, [](const auto& name) {
    return std::string_view(name).starts_with("live ");
  });
}

std::size_t DesignColumns::taken(space::Design design, std::span<std::uint32_t> out) const {
  assert(out.size() >= most_taken());
  std::size_t count = space_->taken_columns(design, one_hot_, out);
  if (!tells_live_) return count;
  const auto rest = out.subspan(count);
  const std::size_t live = space_->taken_columns(design, live_, rest);
  for (auto& column : rest.first(live)) column += static_cast<std::uint32_t>(width_);
  return count + live;
}

void add_dense(const DenseLayer& layer, std::span<const float> row, std::span<float> out) {
  const std::size_t outputs = layer.outputs;
  float* const sums = out.data();
  for (std::size_t i = 0; i < outputs; ++i) sums[i] += layer.bias[i];
  for (std::size_t input = 0; input < layer.inputs; ++input) {
    const float value = row[input];
    if (value == 0) continue;  // half of them, after ReLU
    const float* const weights = layer.weights.data() + input * outputs;
    for (std::size_t i = 0; i < outputs; ++i) sums[i] += value * weights[i];
  }
}

Status check_layer(const DenseLayer& layer, std::size_t inputs, std::size_t outputs,
                   const std::string& name) {
  if (layer.inputs != inputs || layer.outputs != outputs) {
    return refuse(fmt::format("{}: a layer of {} x {} numbers, expected {} x {}", name,
                              layer.inputs, layer.outputs, inputs, outputs));
  }
  if (layer.weights.size() != inputs * outputs || layer.bias.size() != outputs)
    return refuse(name + ": not as many weights as the layer's sizes say");
  if (!all_finite(layer.weights) || !all_finite(layer.bias))
    return refuse(name + ": a weight is not finite");
  return {};
}

Result<DesignNetwork> DesignNetwork::make(Parts parts, std::size_t columns) {
  if (parts.layers.empty()) return refuse("layers: there is none");
  std::size_t inputs = columns;
  for (std::size_t i = 0; i < parts.layers.size(); ++i) {
    const auto& layer = parts.layers[i];
    const bool is_last = i + 1 == parts.layers.size();
    const std::size_t outputs = is_last ? parts.skip.outputs : layer.outputs;
    FLEETFIT_TRY(check_layer(layer, inputs, outputs, fmt::format("layers[{}]", i)));
    inputs = outputs;
  }
  FLEETFIT_TRY(check_layer(parts.skip, columns, inputs, "skip"));
  return DesignNetwork(std::move(parts));
}

DesignNetwork::DesignNetwork(Parts parts) : parts_(std::move(parts)) {
  for (const auto& layer : parts_.layers) widest_ = std::max(widest_, layer.outputs);
}

void DesignNetwork::apply(std::span<const std::uint32_t> taken, std::span<float> out,
                          std::vector<float>& scratch) const {
  apply_sparse(parts_.skip, taken, out);
  scratch.resize(2 * widest_);
  auto values = std::span(scratch).first(widest_);
  auto next = std::span(scratch).subspan(widest_);
  const auto& layers = parts_.layers;
  if (layers.size() == 1) {
    add_row(layers[0].bias.data(), out);
    for (const auto column : taken) add_row(&layers[0].weights[column * layers[0].outputs], out);
    return;
  }
  apply_sparse(layers[0], taken, values.first(layers[0].outputs));
  for (std::size_t i = 1; i < layers.size(); ++i) {
    const auto row = values.first(layers[i].inputs);
    cut_negative(row);
    if (i + 1 == layers.size()) {
      add_dense(layers[i], row, out);
      break;
    }
    const auto sums = next.first(layers[i].outputs);
    std::ranges::fill(sums, 0.0F);
    add_dense(layers[i], row, sums);
    std::swap(values, next);
  }
}

Result<OptimizerNetwork> OptimizerNetwork::make(Parts parts, const space::Space& space,
                                                std::size_t inputs) {
  const std::size_t width = parts.hidden.inputs;
  if (width == 0) return refuse("hidden: the layer is empty");
  FLEETFIT_TRY(check_layer(parts.hidden, width, width, "hidden"));
  if (parts.context.empty()) return refuse("context: there is no layer");
  std::size_t before = inputs;
  for (std::size_t i = 0; i < parts.context.size(); ++i) {
    const std::size_t after = i + 1 == parts.context.size() ? width : parts.context[i].outputs;
    FLEETFIT_TRY(check_layer(parts.context[i], before, after, fmt::format("context[{}]", i)));
    before = after;
  }
  if (parts.genes.size() != space.genes().size()) {
    return refuse(
        fmt::format("genes: there are {}, expected {}", parts.genes.size(), space.genes().size()));
  }
  for (std::size_t i = 0; i < parts.genes.size(); ++i) {
    FLEETFIT_TRY(check_gene(parts.genes[i], space.genes()[i].choices.size(), width,
                            fmt::format("genes[{}]", i)));
  }
  return OptimizerNetwork(std::move(parts));
}

std::vector<float> OptimizerNetwork::context_of(std::span<const float> inputs) const {
  std::vector<float> values(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < parts_.context.size(); ++i) {
    if (i > 0)
      for (float& value : values) value = std::max(value, 0.0F);
    std::vector<float> next(parts_.context[i].outputs);
    add_dense(parts_.context[i], values, next);
    values = std::move(next);
  }
  return values;
}

void OptimizerNetwork::logits_of(std::size_t gene, std::span<const float> state,
                                 std::span<float> out, std::vector<float>& scratch) const {
  const auto& parts = parts_.genes[gene];
  scratch.assign(2 * width(), 0.0F);
  const auto row = std::span(scratch).first(width());
  const auto hidden = std::span(scratch).subspan(width());
  for (std::size_t i = 0; i < width(); ++i) row[i] = std::max(state[i] + parts.place.bias[i], 0.0F);
  add_dense(parts_.hidden, row, hidden);
  for (float& value : hidden) value = std::max(value, 0.0F);
  std::ranges::fill(out, 0.0F);
  add_dense(parts.out, hidden, out);
}

void OptimizerNetwork::propose(const space::Space& space, std::span<const float> inputs,
                               std::size_t beam, space::Population& designs) const {
  const std::size_t genes = parts_.genes.size();
  std::vector<Beginning> kept(1);
  kept[0] = {.design = std::vector<Choice>(genes), .state = context_of(inputs)};
  std::vector<float> scratch;
  std::vector<float> logits;
  std::vector<Step> steps;
  for (std::size_t gene = 0; gene < genes; ++gene) {
    const auto& parts = parts_.genes[gene];
    steps.clear();
    logits.resize(parts.out.outputs);
    bool is_decided = false;
    for (std::size_t from = 0; from < kept.size(); ++from) {
      if (!space.is_active(kept[from].design, gene)) {
        steps.push_back({from, 0, kept[from].log_probability});
        continue;
      }
      is_decided = true;
      logits_of(gene, kept[from].state, logits, scratch);
      const double total = log_sum(logits);
      for (std::size_t choice = 0; choice < logits.size(); ++choice) {
        steps.push_back({from, static_cast<Choice>(choice),
                         kept[from].log_probability + logits[choice] - total});
      }
    }
    if (!is_decided) continue;
    const std::size_t count = std::min(beam, steps.size());
    std::ranges::partial_sort(steps, steps.begin() + static_cast<std::ptrdiff_t>(count),
                              std::ranges::greater{}, &Step::log_probability);
    std::vector<Beginning> next;
    next.reserve(count);
    for (const auto& step : std::span(steps).first(count)) {
      Beginning longer = kept[step.from];
      longer.log_probability = step.log_probability;
      if (space.is_active(longer.design, gene)) {
        const float* const added = &parts.choices.weights[step.choice * width()];
        for (std::size_t i = 0; i < width(); ++i) longer.state[i] += added[i];
      }
      longer.design[gene] = step.choice;
      next.push_back(std::move(longer));
    }
    kept = std::move(next);
  }
  for (const auto& one : kept) designs.add(one.design);
}

}  // namespace fleetfit::learned
