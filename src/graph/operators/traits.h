#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/operator_table.h"
#include "graph/onnx/onnx_fields.h"

/// The table of operators: what is known of each type beside its fields. Code that treats operators
/// alike asks the table, so that a new one is described in its family's file and nowhere else.
namespace fleetfit::graph {

class ChannelLinks;
class Operands;
struct Outcome;
struct Value;
namespace interpreter {
struct Call;
}
namespace onnx_format {
class Lowering;
}  // namespace onnx_format
namespace quantization {
enum class Role : std::uint8_t {
  floats,    ///< computes with floats
  computes,  ///< computes with whole numbers: all that it reads and makes is quantized
  moves,     ///< has the same values, or some between them, in its result
};
}  // namespace quantization
namespace rewrite {
class Adaptation;
}
namespace tflite {
struct Conversion;
struct Converted;
}  // namespace tflite

/// How many inputs and outputs an operator takes; the first `least_inputs` may not be left out.
struct Arity {
  std::size_t least_inputs = 1;
  std::size_t most_inputs = 1;
  std::size_t most_outputs = 1;
};
inline constexpr std::size_t kAnyNumber = 1'000'000;

/// Checks that a node has as many inputs and outputs as its operator takes and that none is left
/// out that it needs. Fails with `invalid_input`, naming the node.
Status check_arity(const Node& node);

/// Some of an operator's inputs.
class InputSet {
 public:
  constexpr InputSet() = default;
  constexpr InputSet(std::initializer_list<unsigned> positions) {
    for (const auto i : positions) bits_ |= 1U << i;
  }
  static constexpr InputSet all() {
    InputSet set;
    set.bits_ = ~0U;
    return set;
  }
  constexpr bool contains(std::size_t i) const {
    return bits_ == ~0U || (i < 32 && (bits_ >> i & 1U) != 0);
  }

 private:
  std::uint32_t bits_ = 0;
};

/// Which inputs hold data whose layout matters; the others are weights, shapes, indices.
enum class DataInputs : std::uint8_t {
  first,
  joined,     ///< all, of one rank
  broadcast,  ///< all, brought together by numpy's rules
};

/// The names of an operator that is many in one: those of the values of a field, an enum or a
/// bool, in their order.
struct KindNames {
  std::span<const std::string_view> names;
  std::size_t in_onnx = 0;  ///< ONNX has the first so many
  std::size_t (*get)(const Operator&) = nullptr;
  void (*set)(Operator&, std::size_t) = nullptr;
};

template <auto member>
struct KindOf;
template <class Op, class T, T Op::* member>
struct KindOf<member> {
  static std::size_t get(const Operator& op) {
    return static_cast<std::size_t>(std::get_if<Op>(&op)->*member);
  }
  static void set(Operator& op, std::size_t kind) {
    std::get_if<Op>(&op)->*member = static_cast<T>(kind);
  }
};
template <auto member, std::size_t n>
constexpr KindNames names_by(const std::array<std::string_view, n>& names,
                             std::size_t in_onnx = n) {
  return {names, in_onnx, KindOf<member>::get, KindOf<member>::set};
}

/// What is left out is so for most operators. Functions get operators of their own type alone.
struct OperatorTraits {
  std::size_t type = 0;  ///< kTypeOf; set by `describe`

  /// Stands for the type in structure_id: never changes, and no other type ever gets it.
  std::size_t number = 0;
  std::string_view name;
  KindNames kinds;                                         ///< of types with several names
  std::string_view (*name_of)(const Operator&) = nullptr;  ///< the same, where no field says it
  Arity arity;
  Arity (*arity_of)(const Operator&) = nullptr;

  /// As infer_node.
  Result<std::vector<Outcome>> (*infer)(const Operator&, const Node&, const Operands&) = nullptr;
  /// The reference computation; null: it is not computed.
  Result<std::vector<Value>> (*run)(const Operator&, const interpreter::Call&) = nullptr;

  // --- What a rewriting has to know.
  bool only_moves = false;     ///< copies elements and never looks at them
  bool is_layer = false;       ///< multiplies its first input by the weights that are its second
  bool only_reshapes = false;  ///< the result is the first input's elements in their order
  /// Whether the node hands its first input on as it is; null: never.
  bool (*hands_on)(const Operator&, const Graph&, const Node&) = nullptr;
  /// What is pruned together; null: nothing of its operands can be pruned.
  void (*link)(const Operator&, ChannelLinks&) = nullptr;
  bool only_nhwc = false;  ///< works on NHWC images alone
  DataInputs data_inputs = DataInputs::first;
  /// The operator that does to tensors in another layout what this one does; null: there is none.
  std::optional<Operator> (*follow)(const Operator&, rewrite::Adaptation&) = nullptr;
  /// Left out: `moves` for what only moves, else `floats`.
  std::optional<quantization::Role> quantized;
  quantization::Role (*quantized_of)(const Operator&, const Graph&, const Node&) = nullptr;

  // --- What it costs.
  /// As multiply_accumulates; null: nothing is multiplied.
  std::optional<std::int64_t> (*products)(const Operator&, const Graph&, const Node&) = nullptr;
  InputSet trained;               ///< inputs that hold trained weights, if they are constant
  bool takes_any_factor = false;  ///< these may be factors and bounds that nobody trained, too
  std::string_view kernel_kind = "other";
  std::string_view (*kernel_kind_of)(const Operator&) = nullptr;
  Price price = Price::nothing;
  Price (*price_of)(const Operator&) = nullptr;
  bool shares_memory = false;  ///< its result is made of its operands' memory
  /// Names under which kernel rules count it among activations.
  std::span<const std::string_view> activation_names;

  // --- How ONNX has it.
  bool outside_onnx = false;  ///< ONNX has no operator of this name
  onnx_format::OnnxFields onnx;
  onnx_format::FormerAttribute was_attribute;
  Result<Operator> (*read_onnx)(onnx_format::NodeReader&) = nullptr;  ///< set by `describe`
  /// Attributes that come before those of the fields, and what ONNX keeps in further inputs.
  void (*write_onnx)(const Operator&, onnx_format::NodeWriter&) = nullptr;
  /// Writes the node in terms of what ONNX has; null: it has it.
  Status (*lower_onnx)(const Operator&, Node&, onnx_format::Lowering&) = nullptr;
  InputSet onnx_counts;  ///< inputs that ONNX wants in 64 bits
};

template <auto function>
struct OfOneType;
template <class Op, class R, class... Args, R (*function)(const Op&, Args...)>
struct OfOneType<function> {
  static R call(const Operator& op, Args... args) {
    return function(*std::get_if<Op>(&op), std::forward<Args>(args)...);
  }
};
/// A function of operators of one type that several types share, as the table wants it.
template <auto function>
inline constexpr auto rule = &OfOneType<function>::call;

/// How operators of a format are read that an entry does not describe. Each gives `Unknown`, with a
/// reason, where nothing fits.
struct OnnxReader {
  std::string_view type;
  Result<Operator> (*convert)(onnx_format::NodeReader&);
};
struct TfliteReader {
  std::string_view code;  ///< as the file's schema spells it
  Result<tflite::Converted> (*convert)(tflite::Conversion&);
  Arity arity;
};

/// What one file of this folder contributes.
struct OperatorFamily {
  std::span<const OperatorTraits> operators;
  std::span<const OnnxReader> onnx;
  std::span<const TfliteReader> tflite;
};

OperatorFamily convolution_family();
OperatorFamily matrix_family();
OperatorFamily normalization_family();
OperatorFamily pooling_family();
OperatorFamily activation_family();
OperatorFamily elementwise_family();
OperatorFamily conversion_family();
OperatorFamily joining_family();
OperatorFamily selection_family();
OperatorFamily resizing_family();
OperatorFamily reshaping_family();
OperatorFamily regrouping_family();
OperatorFamily reduction_family();
OperatorFamily constants_family();

std::span<const OperatorFamily> operator_families();

/// How ONNX's operators are read: as entries describe them, or as families say beside them.
std::vector<OnnxReader> onnx_readers();

const OperatorTraits& traits(const Operator& op);

}  // namespace fleetfit::graph
