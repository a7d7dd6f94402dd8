#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
std::string_view to_string(BranchKind kind);

/// One way to compute what `span` neighbouring blocks compute: a network with one input and one
/// output of the same shapes as theirs (that of the last block has the model's outputs).
struct Branch {
  BranchKind kind = BranchKind::original;
  std::size_t span = 1;  ///< blocks that it stands for
  double share = 1;      ///< of the channels, if shrunk
  graph::Graph graph = {};
};

/// A piece of the model between two tensors through which everything flows.
struct Block {
  std::string name = {};              ///< that of its first node
  std::vector<Branch> branches = {};  ///< the original first, then shrunk ones, then merged ones
};

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
/// neighbours), joined by "-": "o-s2-m1-o"; blocks that a merged one stands for have no letter.
/// With several models, the first gene says which, and only its own genes are active:
/// "small:o-s2-m1-o". The empty supernet list is not allowed. Copies the structure, not the graphs.
class SubnetSpace final : public space::Space {
 public:
  explicit SubnetSpace(const std::vector<Supernet>& models);

  bool is_active(space::Design design, std::size_t gene) const override;
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
  struct GeneOf {
    std::size_t model = 0;
    std::size_t block = 0;
    std::vector<std::size_t> spans = {};  // of each choice
  };
  std::vector<GeneOf> owners_;
  std::vector<Supernet> models_;  // graphs share the bytes of their constants
};

/// The network of a way through a supernet: its branches one after the other, as one graph with the
/// model's inputs and outputs. Names of nodes begin with "b3/" (the block's number), so that times
/// of operators can be told by block.
Result<graph::Graph> join(const std::vector<Supernet>& models, const std::vector<BranchId>& path);

/// Some nodes' block, from a name that `join` gave; nodes fused by an engine are joined by "+" and
/// count for the first. `not_found` for another name.
Result<std::size_t> block_of(std::string_view node_name);

}  // namespace fleetfit::elastic
