#include "fleetfit/learned/optimizer_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/learned/design_network.h"

namespace fleetfit::learned {
namespace {

using predict::DenseLayer;
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

Result<OptimizerNetwork> OptimizerNetwork::make(Parts parts, const space::Space& space,
                                                std::size_t inputs) {
  const std::size_t width = parts.hidden.inputs;
  if (width == 0) return fail(ErrorCode::invalid_input, "hidden: the layer is empty");
  FLEETFIT_TRY(check_layer(parts.hidden, width, width, "hidden"));
  if (parts.context.empty()) return fail(ErrorCode::invalid_input, "context: there is no layer");
  std::size_t before = inputs;
  for (std::size_t i = 0; i < parts.context.size(); ++i) {
    const std::size_t after = i + 1 == parts.context.size() ? width : parts.context[i].outputs;
    FLEETFIT_TRY(check_layer(parts.context[i], before, after, fmt::format("context[{}]", i)));
    before = after;
  }
  if (parts.genes.size() != space.genes().size()) {
    return fail(ErrorCode::invalid_input, fmt::format("genes: there are {}, expected {}",
                                                      parts.genes.size(), space.genes().size()));
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
