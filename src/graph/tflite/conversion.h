#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/operators.h"

namespace flatbuffers {
class Table;
struct TypeTable;
}  // namespace flatbuffers

namespace fleetfit::graph::tflite {

namespace file {
struct Operator;
}

/// Bounds what is copied out of a file. Parts of a FlatBuffer may be referred to any number of
/// times, so that a small file could otherwise ask for any amount of memory.
class CopyBudget {
 public:
  explicit CopyBudget(std::size_t file_bytes) : left_(2 * file_bytes + kSmallChange) {}

  /// Whether this many bytes more may be copied.
  [[nodiscard]] bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }

 private:
  static constexpr std::size_t kSmallChange = std::size_t{1} << 20;
  std::size_t left_;
};

/// The options of an operator of the file, by the names of the schema's fields. What the file
/// leaves out is 0, or the fallback.
class Options {
 public:
  Options() = default;
  Options(const flatbuffers::Table* table, const flatbuffers::TypeTable* type)
      : table_(table), type_(type) {}

  /// Whether the file holds any.
  explicit operator bool() const { return table_ != nullptr; }

  std::int64_t integer(std::string_view field, std::int64_t fallback = 0) const;
  float number(std::string_view field) const;
  bool flag(std::string_view field) const { return integer(field) != 0; }

  /// The name of an enum's value; "" for one that the schema does not have.
  std::string_view name(std::string_view field) const;

  /// The type that a field of the schema's TensorType stands for.
  DType type(std::string_view field) const;

  /// A list of whole numbers, if there are at most so many; nothing if the file has no list.
  struct List {
    bool is_long = false;
    Ints values;
  };
  std::optional<List> list(std::string_view field, std::size_t most) const;

 private:
  /// The place of a field in the schema's table. There has to be one of the name.
  std::size_t place(std::string_view field) const;

  const flatbuffers::Table* table_ = nullptr;
  const flatbuffers::TypeTable* type_ = nullptr;
};

/// What the reading of one operator leaves for those after it.
struct Progress {
  Graph& graph;
  CopyBudget& budget;
  std::vector<int> readers;  ///< of each tensor of the file, being an output counted as one
  std::map<TensorId, TensorId> depthwise_weights;  ///< those transposed, by the file's id
  std::map<TensorId, std::size_t> made_by;         ///< index of the node that makes a tensor
};

/// One operator of the file on its way into the graph. Indices of its tensors are checked.
struct Conversion {
  Progress& progress;
  Graph& graph;
  const file::Operator& source;
  std::string name;
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;

  /// kNoTensor if it is left out.
  TensorId input(std::size_t i) const { return i < inputs.size() ? inputs[i] : kNoTensor; }

  /// The type of an input, which is there.
  DType type(std::size_t i) const { return graph.tensor(input(i)).dtype; }

  /// The shape of an input as far as the file says it; null if not.
  const Shape* shape(std::size_t i) const;

  /// The values of an input that is a short list of constant whole numbers, e.g. axes.
  std::optional<Ints> ints(std::size_t i) const;

  /// The same for a single number, e.g. an axis.
  std::optional<std::int64_t> integer(std::size_t i) const;

  /// None if the file holds no options, or those of another operator than `type` says.
  Options options(std::string_view type) const;

  /// The options of an operator that the schema does not know.
  std::span<const std::uint8_t> custom_options() const;

  /// A constant that this operator reads.
  TensorId add_ints(std::string_view role, const Ints& values);

  /// A node that this operator needs before it; gives its output. `like` describes that.
  TensorId add_before(Operator op, std::vector<TensorId> op_inputs, std::string_view role,
                      Tensor like);
};

/// What an operator becomes: Unknown, with nothing but a reason, where a graph has no such thing.
struct Converted {
  Operator op;
  std::vector<TensorId> inputs;
  Activation activation;
};

inline Converted not_known(std::string reason) {
  return {.op = Unknown{.reason = std::move(reason)}};
}

/// The activation that the file fuses into an operator with these options, none if there are no
/// options; nothing if it is one that a graph has not.
std::optional<Activation> fused(const Options& options);

inline constexpr std::string_view kUnknownActivation = "its fused activation is not known";
inline constexpr std::string_view kNoOptions = "it has no options";
inline constexpr std::string_view kUnknownType = "the type of its result is not known";

/// Strides and dilations of a window.
struct Steps {
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  std::int64_t dilation_h = 1;
  std::int64_t dilation_w = 1;
};

/// A window on images. `padding` is the schema's name of one. Fails if a number is not positive or
/// the padding is not known.
Result<Window> window(Ints kernel, const Steps& steps, std::string_view padding);

std::vector<TensorId> with_optional(std::vector<TensorId> inputs, TensorId optional);

/// The weights of a depthwise convolution, 1 x height x width x output in the file, as output x
/// height x width x 1. Transposes constants, also below a conversion to float, and otherwise puts a
/// Transpose before the operator.
Result<TensorId> depthwise_weights(Conversion& conversion, TensorId weights);

/// An operator without options that takes its inputs as they are.
template <class Op>
Result<Converted> convert_plain(Conversion& c) {
  return Converted{.op = Op{}, .inputs = c.inputs};
}

}  // namespace fleetfit::graph::tflite
