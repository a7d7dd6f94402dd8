#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/graph/operators/activation.h"
#include "fleetfit/graph/operators/constants.h"
#include "fleetfit/graph/operators/conversion.h"
#include "fleetfit/graph/operators/convolution.h"
#include "fleetfit/graph/operators/elementwise.h"
#include "fleetfit/graph/operators/joining.h"
#include "fleetfit/graph/operators/matrix.h"
#include "fleetfit/graph/operators/normalization.h"
#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/pooling.h"
#include "fleetfit/graph/operators/reduction.h"
#include "fleetfit/graph/operators/regrouping.h"
#include "fleetfit/graph/operators/reshaping.h"
#include "fleetfit/graph/operators/resizing.h"
#include "fleetfit/graph/operators/selection.h"
#include "fleetfit/graph/operators/window.h"

/// The operators of a graph.
///
/// Each means what the ONNX operator of the same name means in opset 17, with the same inputs in
/// the same order, and with these additions:
///  - operators on images carry a `layout`: with nhwc, activations are NHWC and weights of
///  convolutions are
///    output x kernel… x input/groups (also for transposed ones, for which nchw means ONNX's
///    input x output/groups x kernel…);
///  - any node may apply an Activation to its first output (Node::activation);
///  - a tensor may be quantized (Tensor::quantization); an operator on quantized tensors computes
///  on the
///    real values that they stand for;
///  - the bounds of Clip and the axes of reductions are attributes, not inputs.
/// What ONNX keeps in inputs (the shape of Reshape, the starts of Slice, …) is an input here too.
namespace fleetfit::graph {

/// An attribute of an operator that is not known.
using Attribute = std::variant<std::int64_t, double, std::string, Ints, std::vector<double>,
                               std::vector<std::string>>;

/// An operator that is kept as it stands in the file, but that nothing here can run or price.
struct Unknown {
  std::string domain;  ///< "" for the standard operators of the format
  std::string type;
  std::map<std::string, Attribute> attributes;
  std::string reason;  ///< why it is not understood, e.g. "no such operator is known"
  bool operator==(const Unknown&) const = default;
};

using AnyOperator =
    OneOf<OperatorList<Unknown>, ConvolutionOperators, MatrixOperators, NormalizationOperators,
          PoolingOperators, ActivationOperators, ElementwiseOperators, ConversionOperators,
          JoiningOperators, SelectionOperators, ResizingOperators, ReshapingOperators,
          RegroupingOperators, ReductionOperators, ConstantOperators>;

template <class Op, class... Ops>
constexpr bool is_among(const std::variant<Ops...>*) {
  return (std::is_same_v<Op, Ops> || ...);
}

/// One of them, to be looked at as a std::variant. Copies, moves and comparisons are compiled once,
/// not in each file that has a Node: that takes two seconds off each.
class Operator : public AnyOperator {
 public:
  Operator();
  Operator(const Operator& other);
  Operator(Operator&& other) noexcept;
  template <class Op>
    requires(is_among<Op>(static_cast<const AnyOperator*>(nullptr)))
  Operator(Op op) : AnyOperator(std::in_place_type<Op>, std::move(op)) {}
  ~Operator();
  Operator& operator=(const Operator& other);
  Operator& operator=(Operator&& other) noexcept;

  bool operator==(const Operator& other) const;
};

/// The operator's type as shown to users: ONNX's name where it has one ("Conv", "Relu",
/// "ReduceMean"), the file's own for an unknown one.
std::string_view type_name(const Operator& op);

/// Builds a visitor out of lambdas: std::visit(Overloaded{[](const Conv&) {…}, [](const auto&)
/// {…}}, op).
template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

}  // namespace fleetfit::graph
