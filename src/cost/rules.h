#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/cost/kernels.h"

namespace fleetfit::cost {

/// Which of its inputs a node can be fused along.
enum class Along : std::uint8_t {
  first,   ///< its first one
  latest,  ///< the one that is made last
  each,    ///< all, in their order
  any,     ///< all, beginning with the one that is made last
};
core::Names names_of(Along);

/// What a fusion asks for beside types. `joined` is the tensor between the two.
enum class Condition : std::uint8_t {
  inputs_ready,              ///< all that the follower reads is made before the kernel starts
  same_shape,                ///< its inputs that are made, and its output, are as large as `joined`
  constant_channel_operand,  ///< its other operands are constants, at most one value per channel
  constant_weights,          ///< the kernel's weights are constants, stored around zero
  not_activated,             ///< no activation is part of the kernel yet
  other_dies,                ///< nobody needs its other operand afterwards, nor its memory
  other_not_read,            ///< the kernel does not read the other operand itself
  channel_axis,              ///< both work along the channels
  same_storage,              ///< types and quantization are the same before and after
  float_only,                ///< nothing is quantized
  not_grouped,   ///< the kernel is no convolution in groups, unless each has one channel
  relu_follows,  ///< a ReLU is all that reads the result
};
core::Names names_of(Condition);

/// A node of a type in `types` becomes part of the kernel that makes its input.
struct FuseRule {
  std::set<std::string> types;
  std::set<std::string> into;      ///< types of the node that does the kernel's work; empty: any
  std::set<std::string> after;     ///< types of the kernel's last node; empty: any
  std::set<std::string> families;  ///< empty: all
  Along along = Along::first;
  std::vector<Condition> when;
};
core::Fields fields_of(const FuseRule*);

/// A whole number and what is asked of it.
struct Bound {
  std::string quantity;
  std::optional<std::int64_t> is;
  std::optional<std::int64_t> at_least;
  std::optional<std::int64_t> at_most;
  std::optional<std::int64_t> multiple_of;
};
core::Fields fields_of(const Bound*);

/// Kernels of the kinds `of` become `kind` if all bounds hold.
struct SelectRule {
  std::string kind;
  std::set<std::string> of;
  std::set<std::string> families;
  std::vector<Bound> when;
};
core::Fields fields_of(const SelectRule*);

/// A framework that keeps channels of float images in blocks. Convolutions whose channels allow it
/// and poolings of whole blocks work on them; where such a kernel meets another one, what is
/// between them is brought into the other layout.
struct BlockRules {
  std::int64_t channels = 0;     ///< of one block; 0: there are none
  std::set<std::string> follow;  ///< types that work on blocks if all that they read lies in such
};
core::Fields fields_of(const BlockRules*);

struct KernelRuleData {
  std::string name;
  std::map<std::string, std::string> targets;  ///< family of each
  std::vector<std::string> prepare;            ///< passes of graph, and the names below
  std::set<std::string> free;                  ///< types that cost nothing
  std::set<std::string> unpacked;              ///< types without a kernel for 8 bits
  BlockRules blocks;
  std::vector<FuseRule> fuse;      ///< the first that fits is taken
  std::vector<SelectRule> select;  ///< the first that fits is taken
};
core::Fields fields_of(const KernelRuleData*);

/// Names in KernelRuleData::prepare that are no passes: operators between DequantizeLinear and
/// QuantizeLinear compute with 8 bits; with the second name, activations between them join in.
inline constexpr std::string_view kQuantizedTensors = "quantized_tensors";
inline constexpr std::string_view kQuantizedActivations = "quantized_activations";

}  // namespace fleetfit::cost
