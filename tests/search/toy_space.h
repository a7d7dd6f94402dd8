#pragma once

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/space/source.h"
#include "fleetfit/space/space.h"

namespace fleetfit::search {

/// `genes` genes of `choices` choices each, all independent.
class ToySpace final : public space::Space {
 public:
  ToySpace(std::size_t genes, std::size_t choices)
      : Space({.name = "toy", .line = "for tests"}, make_genes(genes, choices)) {}

 protected:
  Result<graph::Graph> build(space::Design /*design*/) const override {
    return fail(ErrorCode::unsupported, "a toy has no network");
  }

 private:
  static std::vector<space::Gene> make_genes(std::size_t genes, std::size_t choices) {
    std::vector<space::Gene> made;
    for (std::size_t i = 0; i < genes; ++i) {
      space::Gene gene{.name = fmt::format("gene {}", i)};
      for (std::size_t c = 0; c < choices; ++c) gene.choices.push_back(std::to_string(c));
      made.push_back(std::move(gene));
    }
    return made;
  }
};

/// Two stages of 2 to 4 blocks with a kernel of 3, 5 or 7 each.
class DepthSpace final : public space::Space {
 public:
  static constexpr std::size_t kBlocks = 4;

  DepthSpace() : Space({.name = "deep", .line = "for tests"}, make_genes()) {}

  bool is_active(space::Design design, std::size_t gene) const override {
    const std::size_t stage = gene / (kBlocks + 1);
    const std::size_t block = gene % (kBlocks + 1);  // 0: the depth
    return block == 0 || block <= design[stage * (kBlocks + 1)] + std::size_t{2};
  }

 protected:
  Result<graph::Graph> build(space::Design /*design*/) const override {
    return fail(ErrorCode::unsupported, "a toy has no network");
  }

 private:
  static std::vector<space::Gene> make_genes() {
    std::vector<space::Gene> genes;
    for (int stage = 1; stage <= 2; ++stage) {
      genes.push_back({.name = fmt::format("stage {} depth", stage),
                       .choices = {"2", "3", "4"},
                       .values = {2, 3, 4},
                       .before = " d"});
      for (std::size_t block = 1; block <= kBlocks; ++block) {
        genes.push_back({.name = fmt::format("stage {} block {} kernel", stage, block),
                         .choices = {"3", "5", "7"},
                         .values = {3, 5, 7},
                         .before = " k"});
      }
    }
    return genes;
  }
};

/// A number for each design by a function.
class FunctionSource final : public space::Source {
 public:
  using Function = std::function<double(space::Design)>;
  explicit FunctionSource(Function function) : function_(std::move(function)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = function_(designs[i]);
    return {};
  }

 private:
  Function function_;
};

/// A sum over the genes of what their choices weigh.
inline double sum_of(space::Design design, const std::vector<double>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < design.size(); ++i) sum += weights[i % weights.size()] * design[i];
  return sum;
}

}  // namespace fleetfit::search
