#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/space/design_count.h"
#include "fleetfit/space/space.h"

/// A pretrained network made elastic: it is a chain of blocks, and for some of them there are
/// other, cheaper ways (branches) to compute what they compute. Each way through the chain is a
/// subnet, a network that works by itself.
namespace fleetfit::elastic {

enum class BranchKind : std::uint8_t {
  original,  ///< the block as it came, weights untouched
  shrunk,    ///< the block with a share of its inner channels
  merged,    ///< one block in the place of several
};

/// "original", "shrunk", "merged".
core::Names names_of(BranchKind);
using core::to_string;

/// One way to compute what `span` neighbouring blocks compute: a network with one input and one
/// output of the same shapes as theirs (that of the last block has the model's outputs).
struct Branch {
  BranchKind kind = BranchKind::original;
  std::size_t span = 1;  ///< blocks that it stands for
  double share = 1;      ///< of the inner channels that it keeps, if shrunk, and if merged
  graph::Graph graph = {};
};

/// A piece of the model between two tensors through which everything flows.
struct Block {
  std::string name = {};              ///< that of its first node
  std::vector<Branch> branches = {};  ///< the original first, then shrunk ones, then merged ones
};

/// A branch of a block in the texts of subnets: "o", "s1" for the first shrunk one, "m2" for one
/// merged with two neighbours, "m2s" for such a one with a share of its channels.
std::string branch_code(const Block& block, std::size_t branch);

/// Blocks in the order of execution. A branch with a span beyond the last block does not occur.
struct Supernet {
  std::string name = {};
  std::vector<Block> blocks = {};
};

/// Where a branch stands.
struct BranchId {
  std::size_t model = 0;
  std::size_t block = 0;
  std::size_t branch = 0;

  auto operator<=>(const BranchId&) const = default;
};

/// The subnets of one or several supernets as a space. A gene for each block that has a choice: "o"
/// (original), "s1", "s2" (shrunk, in the order of the branches), "m1", "m2" (merged with so many
/// neighbours; "m2s" if shrunk, too), joined by "-": "o-s2-m1-o"; blocks that a merged one stands
/// for have no letter. With several models, the first gene says which, and only its own genes are
/// active: "small:o-s2-m1-o". `check_supernets` has to hold. Copies the structure; the bytes of
/// constants are shared.
class SubnetSpace final : public space::Space {
 public:
  explicit SubnetSpace(const std::vector<Supernet>& models);

  bool is_active(space::Design design, std::size_t gene) const override;
  space::SlotSet active_slots(space::Design design) const override;
  space::DesignCount size() const override;

  /// The branches of a design in the order of execution, fixed blocks included.
  std::vector<BranchId> path(space::Design design) const;

  /// All choices original.
  std::vector<space::Choice> original(std::size_t model = 0) const;

  /// The gene that chooses the branch of a block; none for a block without a choice.
  std::optional<std::size_t> gene_of(std::size_t model, std::size_t block) const;

 protected:
  Result<graph::Graph> build(space::Design design) const override;

 private:
  /// What a gene chooses; the gene that chooses the model has none.
  struct Owner {
    std::size_t model = 0;
    std::size_t block = 0;
    std::vector<std::size_t> spans = {};  // of each choice
  };
  struct Layout;
  explicit SubnetSpace(Layout layout, const std::vector<Supernet>& models);
  static Layout lay_out(const std::vector<Supernet>& models);

  std::size_t model_of(space::Design design) const;

  std::vector<Owner> owners_;             // of each gene
  std::vector<std::size_t> first_genes_;  // of each model, and the number of genes
  std::vector<Supernet> models_;          // graphs share the bytes of their constants
};

/// Checks what spaces and joins rely on: blocks there, the original first, spans within the chain
/// and each once in a block (and once shrunk), one input and one output of the same shapes on all
/// ways, not more choices than a space can hold. Fails with `invalid_input`, naming model and
/// block.
Status check_supernets(const std::vector<Supernet>& models);

/// The network of a way through a supernet: its branches one after the other, as one graph with the
/// model's inputs and outputs. Names of nodes begin with "b3/" (the block's number), so that times
/// of operators can be added up by block. Fails with `invalid_input` if the path has a gap or if a
/// branch does not take what the one before it gives.
Result<graph::Graph> join(const std::vector<Supernet>& models, const std::vector<BranchId>& path);

/// Some nodes' block, from a name that `join` gave; nodes fused by an engine are joined by "+" and
/// count for the first. `not_found` for another name.
Result<std::size_t> block_of(std::string_view node_name);

}  // namespace fleetfit::elastic
