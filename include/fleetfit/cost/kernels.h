#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// Which kernels a framework will run for a network, worked out from the network alone.
namespace fleetfit::cost {

/// A piece of work that a framework starts as one: an operator and what it does along the way.
struct Kernel {
  std::string kind;        ///< one of kernel_kinds()
  std::vector<int> nodes;  ///< of the graph; the first does the work, the rest is fused into it
  bool outside_blocks = false;  ///< the framework keeps channels in blocks, but not in this kernel
  std::int64_t reordered_size = 0;  ///< elements that change their layout for it before it runs

  bool operator==(const Kernel&) const = default;
};

/// What is computed from constants alone, and what a framework does by renaming memory, is in none
/// of the kernels.
struct KernelPlan {
  std::vector<Kernel> kernels;  ///< in an order of execution
  /// Operators of the file that compute or move something in every run; an activation that the
  /// file keeps inside of another operator counts as one.
  int before_fusion = 0;
};

/// "conv2d", "winograd", "elementwise", …: every kind that a kernel can be of. "other" is last.
std::span<const std::string_view> kernel_kinds();

/// The kind of a node that runs alone, without regard to what a framework would choose:
/// "winograd" is never among them.
std::string_view plain_kind(const graph::Graph& graph, const graph::Node& node);

struct KernelRuleData;

/// How one framework turns networks into kernels: what it folds away before running, what costs
/// nothing, what is fused into what, which of several algorithms is taken. Read from a file of
/// format docs/formats/kernel-rules.md; those that come with fleetfit are such files, too.
/// Immutable; safe to use from many threads.
class KernelRules {
 public:
  /// Fails with `invalid_input`, naming file and field.
  static Result<KernelRules> parse(std::string_view text, const std::string& file_name);
  static Result<KernelRules> read(const std::filesystem::path& file);

  /// One of builtin_rules(); `not_found`, with the names that there are, else.
  static Result<KernelRules> builtin(std::string_view name);

  /// By the name of a set that comes with fleetfit, or of a file of one (*.json). A target may
  /// stand behind a colon: "engine:xnnpack". "" stands for "plain".
  static Result<KernelRules> named(std::string_view name);

  const std::string& name() const;

  /// The devices that these rules tell apart, e.g. "adreno640"; may be empty.
  std::vector<std::string> targets() const;

  /// The rules as they hold on one of them; `not_found`, with the names that there are, if it is
  /// none. Rules with targets of which none was chosen are those of a device of no known family.
  Result<KernelRules> for_target(std::string_view target) const;

 private:
  explicit KernelRules(std::shared_ptr<const KernelRuleData> data);
  friend Result<KernelPlan> deduce_kernels(const graph::Graph& graph, const KernelRules& rules);

  std::shared_ptr<const KernelRuleData> data_;  ///< copies share it; nobody changes it
  std::string family_;
};

struct BuiltinRules {
  std::string_view name;  ///< "tflite-gpu", "engine", "onnxruntime", "plain"
  std::string_view text;  ///< the file, to be read and copied
};
std::span<const BuiltinRules> builtin_rules();

/// The kernels that the framework will run. Every node that takes part in a run and costs something
/// is in exactly one of them. Shapes need to be inferred. Fails with `invalid_input`, naming the
/// place, if the graph is broken.
Result<KernelPlan> deduce_kernels(const graph::Graph& graph, const KernelRules& rules);

/// Data flow between two kernels of a plan, by their indices.
struct KernelEdge {
  int from = 0;
  int to = 0;

  bool operator==(const KernelEdge&) const = default;
};

/// Which kernel reads what another one makes, each pair once, sorted. Nodes that are in no kernel
/// (views, what is computed from constants) hand on what they read. The graph is in an order of
/// execution, and no node is in two kernels.
std::vector<KernelEdge> kernel_edges(const graph::Graph& graph, std::span<const Kernel> kernels);

/// One line of a profile, as runtimes give them.
struct ProfileEntry {
  std::string name;    ///< of the node, as the runtime calls it; fused ones are joined by "+"
  std::string type;    ///< of the operator, as the runtime calls it
  std::string kernel;  ///< what ran, in the runtime's words; may be ""
  double ms = 0;
};

/// What ran as one, in terms of the graph.
struct ProfiledKernel {
  Kernel kernel;
  std::string ran;       ///< the runtime's words for it
  double ms = 0;         ///< with helper_ms
  double helper_ms = 0;  ///< of conversions between layouts that were run for it
};

struct MatchedProfile {
  std::vector<ProfiledKernel> kernels;  ///< in the order of the profile
  std::vector<ProfileEntry> unmatched;  ///< entries that belong to no node of the graph
};

/// Finds the nodes behind a profile. A node that the profile does not name (a folded batch norm, a
/// fused activation) belongs to the kernel that makes its input, or to the one that reads its
/// result if it has no input that is made; one between the two that costs nothing to no kernel. A
/// helper without a node of its own (a conversion of layouts) is counted to the kernel after it. No
/// time is lost: the kernels' and the unmatched entries' times add up to the profile's.
MatchedProfile match_profile(const graph::Graph& graph, std::span<const ProfileEntry> profile);

/// A deduction held against what ran.
struct KernelComparison {
  struct Difference {
    std::vector<int> deduced;           ///< nodes of a deduced kernel; empty: none
    std::vector<std::vector<int>> ran;  ///< the kernels that these nodes ran in
  };
  int deduced = 0;
  int ran = 0;
  int alike = 0;  ///< deduced kernels that ran with just these nodes
  std::vector<Difference> differences;
  std::vector<std::size_t> ran_alike;  ///< indices into what ran
};
KernelComparison compare_kernels(std::span<const Kernel> deduced,
                                 std::span<const ProfiledKernel> ran);

/// The times of a profile brought to deduced kernels, as predictors learn from them.
struct KernelTimes {
  std::vector<double> ms;  ///< of each deduced kernel; 0: nothing ran for it alone
  double rest_ms = 0;      ///< of what belongs to none of them
};

/// What ran is counted to the deduced kernel that holds the node which does its work. The times
/// add up to the profile's.
KernelTimes assign_times(std::span<const Kernel> deduced, const MatchedProfile& ran);

}  // namespace fleetfit::cost
