#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "cost/prepare.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/links.h"

namespace fleetfit::cost {
namespace {

using graph::Graph;
using graph::kNoTensor;
using graph::Node;
using graph::TensorId;

constexpr int kNone = -1;

/// Types of entries that runtimes put between kernels of their own accord.
bool is_helper_type(std::string_view type) {
  static constexpr std::array<std::string_view, 6> kHelpers{
      "Transpose", "Identity", "ReorderInput", "ReorderOutput", "Cast", "MemcpyFromHost"};
  return std::ranges::find(kHelpers, type) != kHelpers.end();
}

/// The operator behind names such as FusedConv, QLinearConv and NhwcMaxPool.
std::string_view plain_type(std::string_view type) {
  for (const std::string_view prefix : {"Fused", "QLinear", "Nhwc"}) {
    if (type.starts_with(prefix) && type.size() > prefix.size()) type.remove_prefix(prefix.size());
  }
  return type;
}

/// Kinds that other kernels do along the way; what else is not in a profile was not run.
bool can_be_absorbed(std::string_view kind) {
  static constexpr std::array<std::string_view, 4> kAbsorbed{"elementwise", "normalization",
                                                             "quantize", "padding"};
  return std::ranges::find(kAbsorbed, kind) != kAbsorbed.end();
}

/// Kinds of which an operator of this type is made where it is written out.
bool can_be_part(std::string_view type, std::string_view kind) {
  if (type == "ChannelShuffle") return kind == "reshape" || kind == "transpose";
  return kind == "elementwise" || kind == "mean" || kind == "reduce";
}

/// Finds the nodes of a graph by what runtimes call them.
class NodeNames {
 public:
  explicit NodeNames(const Graph& graph) : graph_(graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      by_name_.emplace(graph.nodes[i].name, static_cast<int>(i));
      for (const TensorId id : graph.nodes[i].outputs) {
        if (id != kNoTensor) by_result_.emplace(graph.tensor(id).name, static_cast<int>(i));
      }
    }
  }

  /// By its own name.
  std::optional<int> find(std::string_view name) const { return found_in(by_name_, name); }

  /// ONNX Runtime calls some kernels after what they make, and nodes without a name after their
  /// type and place in the file: Conv_17.
  std::optional<int> find_any(std::string_view name) const {
    if (const auto whole = find(name)) return whole;
    if (const auto made = found_in(by_result_, name)) return made;
    const auto cut = name.rfind('_');
    if (cut == std::string_view::npos) return std::nullopt;
    int number = kNone;
    const auto digits = name.substr(cut + 1);
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || rest != digits.data() + digits.size() || number < 0 ||
        static_cast<std::size_t>(number) >= graph_.nodes.size()) {
      return std::nullopt;
    }
    const Node& node = graph_.nodes[static_cast<std::size_t>(number)];
    return type_name(node.op) == name.substr(0, cut) ? std::optional(number) : std::nullopt;
  }

  /// Runtimes add to names: Conv_1_token_5, Conv_1_nchwc, MatMul_3/MatMulAddFusion.
  std::optional<int> find_beginning(std::string_view name) const {
    for (auto cut = name.find_last_of(kMarks); cut != std::string_view::npos;
         cut = name.find_last_of(kMarks)) {
      name = name.substr(0, cut);
      if (const auto found = find(name)) return found;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::string_view kMarks = "_/.: ";
  using Index = std::map<std::string, int, std::less<>>;

  static std::optional<int> found_in(const Index& index, std::string_view name) {
    const auto found = index.find(name);
    return found == index.end() ? std::nullopt : std::optional(found->second);
  }

  const Graph& graph_;
  Index by_name_;
  Index by_result_;  // by the names of what nodes make
};

/// Nodes that are left when constants are folded and what does nothing is dropped.
std::vector<bool> nodes_that_run(const Graph& graph) {
  std::vector<bool> runs(graph.nodes.size(), false);
  const auto clean = prepare_graph(graph, {});
  if (!clean) return std::vector<bool>(graph.nodes.size(), true);
  for (const auto& origins : clean->origins) {
    for (const int index : origins) runs[static_cast<std::size_t>(index)] = true;
  }
  return runs;
}

/// Helpers belong to the kernel; entries of other types are kept as what could not be matched.
void take_helpers(std::vector<ProfileEntry>& waiting, ProfiledKernel& kernel) {
  std::vector<ProfileEntry> rest;
  for (auto& entry : waiting) {
    if (is_helper_type(entry.type)) {
      kernel.ms += entry.ms;
      kernel.helper_ms += entry.ms;
    } else {
      rest.push_back(std::move(entry));
    }
  }
  waiting = std::move(rest);
}

class Matcher {
 public:
  Matcher(const Graph& graph, std::span<const ProfileEntry> profile)
      : graph_(graph),
        profile_(profile),
        names_(graph),
        links_(graph),
        runs_(nodes_that_run(graph)),
        owner_(graph.nodes.size(), kNone),
        nodes_(profile.size()) {}

  MatchedProfile match() {
    for (std::size_t e = 0; e < profile_.size(); ++e) claim_named(e);
    for (std::size_t e = 0; e < profile_.size(); ++e) claim_pattern(e);
    for (std::size_t e = 0; e < profile_.size(); ++e) claim_piece(e);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) claim_follower(static_cast<int>(i));
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) claim_leader(static_cast<int>(i));
    return collected();
  }

 private:
  const Node& node(int index) const { return links_.node(index); }
  int owner(int index) const { return owner_[static_cast<std::size_t>(index)]; }
  bool is_free(int index) const {
    return runs_[static_cast<std::size_t>(index)] && owner(index) == kNone;
  }
  std::string_view kind(int index) const { return plain_kind(graph_, node(index)); }

  void claim(int index, std::size_t entry) {
    owner_[static_cast<std::size_t>(index)] = static_cast<int>(entry);
    nodes_[entry].push_back(index);
  }

  // --- What the profile names

  void claim_named(std::size_t entry) {
    std::string_view name = profile_[entry].name;
    constexpr std::string_view kFused = "fused ";
    if (name.starts_with(kFused) && !names_.find(name)) name.remove_prefix(kFused.size());
    if (const auto known = names_.find_any(name)) return claim_if_fits(*known, entry);
    if (name.find('+') != std::string_view::npos) {
      for (std::size_t begin = 0; begin <= name.size();) {
        const auto end = std::min(name.find('+', begin), name.size());
        const auto part = names_.find(name.substr(begin, end - begin));
        if (part && owner(*part) == kNone) claim(*part, entry);
        begin = end + 1;
      }
    }
    if (!nodes_[entry].empty()) return;
    if (const auto longest = names_.find_beginning(name)) claim_if_fits(*longest, entry);
  }

  /// A transpose that is called after a convolution is there for it and does not stand for it.
  void claim_if_fits(int index, std::size_t entry) {
    const auto type = plain_type(profile_[entry].type);
    const bool helps = is_helper_type(type) && type != type_name(node(index).op);
    if (helps) return;
    if (owner(index) == kNone) {
      claim(index, entry);
    } else if (has_type(index, type)) {
      pieces_.emplace(entry, static_cast<std::size_t>(owner(index)));  // it is run once more
    }
  }

  // --- What the names stand for

  /// An entry of another type than its node stands for a pattern that ends there: a convolution
  /// called after the activation that was fused into it, a layer norm written out.
  void claim_pattern(std::size_t entry) {
    const auto type = plain_type(profile_[entry].type);
    const auto is_wanted = [&](int index) { return has_type(index, type); };
    const auto named = nodes_[entry];
    if (std::ranges::any_of(named, is_wanted)) return;
    for (const int index : named) {
      if (claim_path(index, entry)) return;
    }
    for (const int index : named) claim_parts(index, entry);
  }

  bool has_type(int index, std::string_view type) const {
    const auto own = type_name(node(index).op);
    return own == type ||
           (type == "Requantize" && (own == "QuantizeLinear" || own == "DequantizeLinear"));
  }

  /// The free nodes that make what a node reads, and whose results nobody else needs.
  std::vector<int> private_makers(int index, std::size_t entry) const {
    std::vector<int> makers;
    for (const TensorId id : node(index).inputs) {
      const int maker = links_.maker(id);
      if (maker >= 0 && is_free(maker) && is_private(maker, entry)) makers.push_back(maker);
    }
    return makers;
  }

  /// Claims what lies between a node and the one before it that has the entry's type.
  bool claim_path(int index, std::size_t entry) {
    for (const int maker : private_makers(index, entry)) {
      claim(maker, entry);
      if (has_type(maker, plain_type(profile_[entry].type)) || claim_path(maker, entry)) {
        return true;
      }
      nodes_[entry].pop_back();
      owner_[static_cast<std::size_t>(maker)] = kNone;
    }
    return false;
  }

  /// Claims the parts of an operator that is written out.
  void claim_parts(int index, std::size_t entry) {
    for (const int maker : private_makers(index, entry)) {
      if (!is_free(maker) || !can_be_part(profile_[entry].type, kind(maker))) continue;
      claim(maker, entry);
      claim_parts(maker, entry);
    }
  }

  /// Whether only nodes of this entry read what a node makes.
  bool is_private(int index, std::size_t entry) const {
    return std::ranges::all_of(node(index).outputs, [&](TensorId id) {
      return !links_.is_output(id) && std::ranges::all_of(links_.readers(id), [&](int reader) {
        return owner(reader) == static_cast<int>(entry);
      });
    });
  }

  // --- Entries that name nothing

  /// A runtime may run one operator as several under names of its own. They belong to the node
  /// that reads what ran before and is named nowhere.
  void claim_piece(std::size_t entry) {
    if (!nodes_[entry].empty() || pieces_.contains(entry) || entry == 0 ||
        is_helper_type(profile_[entry].type)) {
      return;
    }
    const std::size_t before = entry - 1;
    if (const auto found = unnamed_reader(before)) {
      claim(*found, entry);
      pieces_.emplace(entry, entry);
    } else if (const auto piece = pieces_.find(before); piece != pieces_.end()) {
      pieces_.emplace(entry, piece->second);
    }
  }

  std::optional<int> unnamed_reader(std::size_t entry) const {
    for (const int index : nodes_[entry]) {
      for (const TensorId id : node(index).outputs) {
        for (const int reader : links_.readers(id)) {
          if (is_free(reader)) return reader;
        }
      }
    }
    return std::nullopt;
  }

  // --- Nodes that are named nowhere

  void claim_follower(int index) {
    if (!is_free(index) || !can_be_absorbed(kind(index)) || goes_with_reader(index)) return;
    int latest = kNone;
    for (const TensorId id : node(index).inputs) {
      const int maker = links_.maker(id);
      if (maker >= 0) latest = std::max(latest, owner(maker));
    }
    if (latest != kNone) claim(index, static_cast<std::size_t>(latest));
  }

  /// Padding and unpacking happen while a kernel reads.
  bool goes_with_reader(int index) const {
    const auto& op = node(index).op;
    if (std::holds_alternative<graph::Pad>(op)) return true;
    return std::holds_alternative<graph::DequantizeLinear>(op) && !only_absorbed_read(index);
  }

  /// Whether all that reads a node is named nowhere and goes with somebody else.
  bool only_absorbed_read(int index) const {
    return std::ranges::all_of(links_.readers(node(index).outputs[0]), [&](int reader) {
      return is_free(reader) && can_be_absorbed(kind(reader));
    });
  }

  void claim_leader(int index) {
    if (!is_free(index) || !can_be_absorbed(kind(index))) return;
    // What is packed after nothing that ran was a view.
    if (std::holds_alternative<graph::QuantizeLinear>(node(index).op)) return;
    for (const TensorId id : node(index).outputs) {
      for (const int reader : links_.readers(id)) {
        if (owner(reader) != kNone) return claim(index, static_cast<std::size_t>(owner(reader)));
      }
    }
  }

  // --- The result

  MatchedProfile collected() const {
    MatchedProfile result;
    std::map<std::size_t, std::size_t> kernel_of;  // entry -> place in the result
    std::vector<ProfileEntry> waiting;
    for (std::size_t e = 0; e < profile_.size(); ++e) {
      const auto piece = pieces_.find(e);
      if (piece != pieces_.end() && piece->second != e) {
        result.kernels[kernel_of.at(piece->second)].ms += profile_[e].ms;
      } else if (nodes_[e].empty()) {
        waiting.push_back(profile_[e]);
      } else {
        kernel_of.emplace(e, result.kernels.size());
        result.kernels.push_back(kernel_of_entry(e));
        take_helpers(waiting, result.kernels.back());
      }
    }
    if (!result.kernels.empty()) take_helpers(waiting, result.kernels.back());
    result.unmatched = std::move(waiting);
    return result;
  }

  ProfiledKernel kernel_of_entry(std::size_t entry) const {
    auto nodes = nodes_[entry];
    std::ranges::sort(nodes);
    const auto kinds = kernel_kinds();
    const auto anchor = std::ranges::min_element(
        nodes, {}, [&](int index) { return std::ranges::find(kinds, kind(index)); });
    std::rotate(nodes.begin(), anchor, anchor + 1);
    ProfiledKernel kernel{.ran = profile_[entry].kernel, .ms = profile_[entry].ms};
    kernel.kernel.kind = kind(nodes.front());
    kernel.kernel.nodes = std::move(nodes);
    return kernel;
  }

  const Graph& graph_;
  std::span<const ProfileEntry> profile_;
  NodeNames names_;
  graph::Links links_;
  std::vector<bool> runs_;
  std::vector<int> owner_;                     // entry of each node
  std::vector<std::vector<int>> nodes_;        // of each entry
  std::map<std::size_t, std::size_t> pieces_;  // entry -> the first piece of the same operator
};

}  // namespace

MatchedProfile match_profile(const Graph& graph, std::span<const ProfileEntry> profile) {
  return Matcher(graph, profile).match();
}

}  // namespace fleetfit::cost
