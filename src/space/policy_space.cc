#include <fmt/format.h>

#include <array>
#include <utility>

#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/shrink.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

constexpr auto kStages = std::to_array<std::string_view>({"early", "middle", "late"});
constexpr auto kPercents = std::to_array<int>({100, 75, 50});
constexpr Choice kInt8 = 1;

// Weights are random, so that no range of activations is the right one; speed does not depend on
// it.
constexpr graph::ValueRange kAnyRange{-4, 4};

Gene precision_gene() { return {.name = "precision", .choices = {"fp32", "int8"}, .before = "+"}; }

Gene width_gene(std::size_t stage) {
  Gene gene{.name = fmt::format("{} width", kStages[stage]), .before = stage == 0 ? "+" : "-"};
  for (const int percent : kPercents) {
    gene.choices.push_back(fmt::format("w{}", percent));
    gene.values.push_back(percent / 100.0);
  }
  return gene;
}

std::vector<Gene> policy_genes(const Policies& policies) {
  std::vector<Gene> genes;
  if (policies.precision) genes.push_back(precision_gene());
  if (policies.pruning)
    for (std::size_t stage = 0; stage < kStages.size(); ++stage) genes.push_back(width_gene(stage));
  return genes;
}

/// In a table whose designs stand in one column, policies do, too; else each has its own.
std::vector<std::string> columns_of(const Space& base, const Policies& policies) {
  auto columns = base.columns();
  if (columns.size() == 1) return columns;
  if (policies.precision) columns.emplace_back("precision");
  if (policies.pruning) columns.emplace_back("pruning");
  return columns;
}

std::size_t column_of(const Gene& gene, const Space& base, const Policies& policies) {
  const auto before = base.columns().size();
  if (before == 1) return 0;
  return before + (policies.precision && gene.name != "precision" ? 1 : 0);
}

std::vector<Gene> genes_of(const Space& base, const Policies& policies) {
  std::vector<Gene> genes(base.genes().begin(), base.genes().end());
  for (auto& gene : policy_genes(policies)) {
    gene.column = column_of(gene, base, policies);
    genes.push_back(std::move(gene));
  }
  return genes;
}

std::vector<Slot> slots_of(const Space& base, const Policies& policies) {
  std::vector<Slot> slots(base.slots().begin(), base.slots().end());
  std::size_t number = base.genes().size();
  for (const auto& gene : policy_genes(policies))
    slots.push_back({.name = gene.name, .genes = {number++}});
  return slots;
}

std::string name_of(const Space& base, const Policies& policies) {
  return base.name() + (policies.precision ? "+precision" : "") +
         (policies.pruning ? "+pruning" : "");
}

std::string line_of(const Space& base, const Policies& policies) {
  const auto* what = !policies.pruning     ? "in float or int8"
                     : !policies.precision ? "with a share of the channels"
                                           : "in float or int8, with a share of the channels";
  return fmt::format("{}; {}", base.description(), what);
}

Result<graph::Graph> quantized(graph::Graph network) {
  auto prepared = graph::prepare_for_quantization(std::move(network));
  if (!prepared) return prepared;
  graph::Ranges ranges;
  for (const auto tensor : graph::tensors_to_observe(*prepared)) ranges[tensor] = kAnyRange;
  return graph::quantize(*std::move(prepared), ranges);
}

class PolicySpace final : public Space {
 public:
  PolicySpace(const Space& base, const Policies& policies)
      : Space({.name = name_of(base, policies),
               .line = line_of(base, policies),
               .columns = columns_of(base, policies),
               .dead_paths = base.can_have_dead_paths() ? DeadPaths::possible : DeadPaths::never},
              genes_of(base, policies), slots_of(base, policies)),
        base_(base),
        policies_(policies),
        first_(base.genes().size()) {}

  int version() const override { return base_.version(); }

  bool is_active(Design design, std::size_t gene) const override {
    return gene >= first_ || base_.is_active(design.first(first_), gene);
  }

  DesignCount size() const override {
    auto count = base_.size();
    for (const auto& gene : genes().subspan(first_)) count *= gene.choices.size();
    return count;
  }

  SlotSet active_slots(Design design) const override {
    return with_policies(base_.active_slots(design.first(first_)));
  }

  SlotSet live_slots(Design design) const override {
    return with_policies(base_.live_slots(design.first(first_)));
  }

 protected:
  Result<graph::Graph> build(Design design) const override {
    auto network = base_.lower(design.first(first_));
    if (!network) return network;
    if (policies_.pruning) network = graph::pruned(*network, widths_of(design));
    if (network && is_int8(design)) network = quantized(*std::move(network));
    return network;
  }

  Choice draw(core::Random& random, std::size_t gene) const override {
    return gene < first_ ? draw_in(base_, random, gene) : Space::draw(random, gene);
  }

 private:
  SlotSet with_policies(SlotSet slots) const {
    for (std::size_t i = base_.slots().size(); i < this->slots().size(); ++i) slots.set(i);
    return slots;
  }

  bool is_int8(Design design) const { return policies_.precision && design[first_] == kInt8; }

  std::array<double, kStages.size()> widths_of(Design design) const {
    std::array<double, kStages.size()> widths{};
    const std::size_t begin = first_ + (policies_.precision ? 1 : 0);
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = genes()[begin + i].values[design[begin + i]];
    return widths;
  }

  const Space& base_;
  Policies policies_;
  std::size_t first_;  // gene of the policies
};

}  // namespace

std::unique_ptr<const Space> make_policy_space(const Space& base, const Policies& policies) {
  return std::make_unique<PolicySpace>(base, policies);
}

}  // namespace fleetfit::space
