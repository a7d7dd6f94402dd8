#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "fleetfit/elastic/supernet.h"

namespace fleetfit::elastic {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::TensorId;

/// Appends branches to one graph.
class Chain {
 public:
  explicit Chain(std::string name) { joined_.name = std::move(name); }

  Status append(const Graph& branch, std::size_t block) {
    prefix_ = fmt::format("b{}/", block);
    ids_.clear();
    FLEETFIT_TRY(connect(branch));
    for (const auto& node : branch.nodes) {
      graph::Node copy = node;
      copy.name = prefix_ + node.name;
      for (auto* ids : {&copy.inputs, &copy.outputs}) {
        for (auto& id : *ids) id = take(branch, id);
      }
      joined_.nodes.push_back(std::move(copy));
    }
    ends_.clear();
    names_.clear();
    for (const auto id : branch.outputs) {
      ends_.push_back(take(branch, id));
      names_.push_back(branch.tensor(id).name);
    }
    return {};
  }

  Result<Graph> finish() && {
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      if (std::ranges::find(joined_.inputs, ends_[i]) == joined_.inputs.end())
        joined_.tensor(ends_[i]).name = names_[i];
    }
    joined_.outputs = std::move(ends_);
    FLEETFIT_TRY(graph::validate(joined_));
    return std::move(joined_);
  }

 private:
  /// The branch's inputs become the outputs of what is there, or those of the model.
  Status connect(const Graph& branch) {
    if (!started_) {
      started_ = true;
      for (const auto id : branch.inputs) {
        joined_.inputs.push_back(joined_.add_tensor(branch.tensor(id)));
        ids_[id] = joined_.inputs.back();
      }
      return {};
    }
    if (branch.inputs.size() != 1 || ends_.size() != 1)
      return refuse("blocks are joined by one tensor");
    const auto& given = joined_.tensor(ends_.front());
    const auto& taken = branch.tensor(branch.inputs.front());
    if (given.shape != taken.shape || given.dtype != taken.dtype) {
      const auto text = [](const graph::Tensor& t) {
        return t.shape ? graph::to_string(*t.shape) : std::string("an unknown shape");
      };
      return refuse(
          fmt::format("it takes {}, the block before gives {}", text(taken), text(given)));
    }
    ids_[branch.inputs.front()] = ends_.front();
    return {};
  }

  TensorId take(const Graph& branch, TensorId id) {
    if (id == kNoTensor) return id;
    const auto [found, is_new] = ids_.try_emplace(id, kNoTensor);
    if (is_new) {
      graph::Tensor copy = branch.tensor(id);
      copy.name = prefix_ + copy.name;
      found->second = joined_.add_tensor(std::move(copy));
    }
    return found->second;
  }

  Graph joined_;
  bool started_ = false;
  std::string prefix_;
  std::map<TensorId, TensorId> ids_;  // of the branch at hand, in the joined graph
  std::vector<TensorId> ends_;        // outputs of the last branch
  std::vector<std::string> names_;    // as that branch called them
};

Status check_path(const std::vector<Supernet>& models, const std::vector<BranchId>& path) {
  const auto wrong = [] { return refuse("the path has a gap"); };
  if (path.empty() || path.front().model >= models.size()) return wrong();
  const auto& blocks = models[path.front().model].blocks;
  std::size_t next = 0;
  for (const auto& id : path) {
    if (id.model != path.front().model || id.block != next || next >= blocks.size() ||
        id.branch >= blocks[next].branches.size())
      return wrong();
    next += blocks[next].branches[id.branch].span;
  }
  return next == blocks.size() ? Status() : wrong();
}

}  // namespace

Result<Graph> join(const std::vector<Supernet>& models, const std::vector<BranchId>& path) {
  FLEETFIT_TRY(check_path(models, path));
  const auto& model = models[path.front().model];
  Chain chain(model.name);
  for (const auto& id : path) {
    const auto& block = model.blocks[id.block];
    FLEETFIT_TRY(core::within(fmt::format("block {} ({})", id.block, block.name),
                              chain.append(block.branches[id.branch].graph, id.block)));
  }
  return std::move(chain).finish();
}

Result<std::size_t> block_of(std::string_view node_name) {
  std::size_t block = 0;
  const char* const end = node_name.data() + node_name.size();
  if (node_name.starts_with('b')) {
    const auto [stop, code] = std::from_chars(node_name.data() + 1, end, block);
    if (code == std::errc() && stop != end && *stop == '/') return block;
  }
  return fail(ErrorCode::not_found, fmt::format("'{}' names no block", node_name));
}

}  // namespace fleetfit::elastic
