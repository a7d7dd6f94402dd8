#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

#include "graph/channel_links.h"
#include "graph/evaluate/kernels.h"
#include "graph/onnx/lowering.h"
#include "graph/onnx/onnx_fields.h"
#include "graph/onnx/onnx_node.h"
#include "graph/operands.h"
#include "graph/operators/traits.h"
#include "graph/passes/constants.h"
#include "graph/passes/layout_adaptation.h"
#include "graph/quantize/plan.h"
#include "graph/tflite/conversion.h"

/// What the file of a family of operators is written with. `describe<Op>` makes an entry of its
/// table, and takes what it can from functions of the file, which it knows by their names:
///
/// - infer(const Op&, const Node&, const Operands&), with or without the Node; or shape_of(const
///   Op&, const Shape&, const Operands&), with or without the Operands, where the one result has
///   the type of the first input: it gives its shape, for a known shape of the first input;
/// - run(const Op&, const Call&);
/// - hands_on, role_of and products(const Op&, const Graph&, const Node&);
/// - link(const Op&, ChannelLinks&);
/// - follow(const Op&, Adaptation&);
/// - name_of, arity_of, kernel_kind_of and price_of(const Op&);
/// - read_onnx(Op, NodeReader&), whose Op has its fields already: gives what the node becomes, and
///   rewrites the node's inputs to the form of opset 17;
/// - write_onnx(const Op&, NodeWriter&);
/// - lower_onnx(const Op&, Node&, Lowering&).
///
/// They give what the member of OperatorTraits gives that they stand for. One that fits none of
/// these is used by nobody, which the compiler reports. The members are the rest: what is said by
/// a value, or by a function that several types have in common.
///
/// Fields that ONNX keeps in attributes are described by `onnx`.
namespace fleetfit::graph {
namespace {

// Each file has its own, so that it finds its own functions and is seen by no other.
// NOLINTNEXTLINE(misc-anonymous-namespace-in-header)
struct ThisFile {};

/// An operator as the argument of functions for its type alone: what takes any Operator does not
/// take it. `File` makes the compiler look for them in the file, too, not in this header alone.
template <class Op, class File = ThisFile>
struct Only {
  const Op& op;
  explicit Only(const Operator& any) : op(*std::get_if<Op>(&any)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator const Op&() const { return op; }
};

template <class Op>
Result<Operator> read_as(onnx_format::NodeReader& reader) {
  Operator op = Op{};
  if (auto reason = onnx_format::read_fields(op, reader)) return unknown(reader, *reason);
  if constexpr (requires(Only<Op> own) { read_onnx(own, reader); }) {
    return read_onnx(Only<Op>(op), reader);
  } else {
    return op;
  }
}

template <class Op>
Outcomes infer_as(const Operator& any, const Node& node, const Operands& in) {
  const Only<Op> op(any);
  if constexpr (requires { infer(op, node, in); }) {
    return infer(op, node, in);
  } else if constexpr (requires { infer(op, in); }) {
    return infer(op, in);
  } else {
    const auto* x = in.shape(0);
    if (x == nullptr) return open(in.dtype(0));
    if constexpr (requires { shape_of(op, *x, in); }) {
      FLEETFIT_ASSIGN(auto shape, shape_of(op, *x, in));
      return one(in.dtype(0), std::move(shape));
    } else {
      FLEETFIT_ASSIGN(auto shape, shape_of(op, *x));
      return one(in.dtype(0), std::move(shape));
    }
  }
}

/// The entry of a type of operators, with what the file has functions for.
template <class Op>
constexpr OperatorTraits describe(OperatorTraits t) {
  using It = Only<Op>;
  t.type = kTypeOf<Op>;
  t.read_onnx = read_as<Op>;
  constexpr bool kInfers =
      requires(It op, const Node& node, const Operands& in) { infer(op, node, in); } ||
      requires(It op, const Operands& in) { infer(op, in); } ||
      requires(It op, const Shape& x, const Operands& in) { shape_of(op, x, in); } ||
      requires(It op, const Shape& x) { shape_of(op, x); };
  if constexpr (kInfers) t.infer = infer_as<Op>;
  if constexpr (requires(It op, const interpreter::Call& call) { run(op, call); })
    t.run = [](const Operator& op, const interpreter::Call& call) { return run(It(op), call); };
  if constexpr (requires(It op, const Graph& graph, const Node& node) {
                  hands_on(op, graph, node);
                })
    t.hands_on = [](const Operator& op, const Graph& graph, const Node& node) {
      return hands_on(It(op), graph, node);
    };
  if constexpr (requires(It op, ChannelLinks& links) { link(op, links); })
    t.link = [](const Operator& op, ChannelLinks& links) { link(It(op), links); };
  if constexpr (requires(It op, rewrite::Adaptation& adaptation) { follow(op, adaptation); })
    t.follow = [](const Operator& op, rewrite::Adaptation& adaptation) {
      return follow(It(op), adaptation);
    };
  if constexpr (requires(It op, const Graph& graph, const Node& node) { role_of(op, graph, node); })
    t.quantized_of = [](const Operator& op, const Graph& graph, const Node& node) {
      return role_of(It(op), graph, node);
    };
  if constexpr (requires(It op, const Graph& graph, const Node& node) {
                  products(op, graph, node);
                })
    t.products = [](const Operator& op, const Graph& graph, const Node& node) {
      return products(It(op), graph, node);
    };
  if constexpr (requires(It op) { name_of(op); })
    t.name_of = [](const Operator& op) { return name_of(It(op)); };
  if constexpr (requires(It op) { arity_of(op); })
    t.arity_of = [](const Operator& op) { return arity_of(It(op)); };
  if constexpr (requires(It op) { kernel_kind_of(op); })
    t.kernel_kind_of = [](const Operator& op) { return kernel_kind_of(It(op)); };
  if constexpr (requires(It op) { price_of(op); })
    t.price_of = [](const Operator& op) { return price_of(It(op)); };
  if constexpr (requires(It op, onnx_format::NodeWriter& out) { write_onnx(op, out); })
    t.write_onnx = [](const Operator& op, onnx_format::NodeWriter& out) {
      write_onnx(It(op), out);
    };
  if constexpr (requires(It op, Node& node, onnx_format::Lowering& out) {
                  lower_onnx(op, node, out);
                })
    t.lower_onnx = [](const Operator& op, Node& node, onnx_format::Lowering& out) {
      return lower_onnx(It(op), node, out);
    };
  return t;
}

// --- What entries begin with.

/// An operator that computes each element of its result from that of its one operand.
constexpr OperatorTraits elementwise(OperatorTraits t) {
  if (t.infer == nullptr) t.infer = infer_like_first;
  t.link = linked<&ChannelLinks::keep_shape>;
  t.follow = rewrite::follow_unchanged;
  t.kernel_kind = "elementwise";
  return t;
}

/// The same of several operands, brought together by numpy's rules.
constexpr OperatorTraits broadcast_elementwise(OperatorTraits t) {
  t.link = linked<&ChannelLinks::broadcast_all>;
  t.data_inputs = DataInputs::broadcast;
  t.follow = rewrite::follow_unchanged;
  t.kernel_kind = "elementwise";
  return t;
}

}  // namespace

// --- Whether a node hands its first input on as it is.

template <class T>
bool all_equal_to(const std::optional<std::vector<T>>& values, T wanted) {
  return values && std::ranges::all_of(*values, [&](T value) { return value == wanted; });
}

inline bool has_input(const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoTensor;
}

/// The values of a constant input of whole numbers.
inline std::optional<Ints> ints_of(const Graph& graph, const Node& node, std::size_t i) {
  return has_input(node, i) ? constant_ints(graph, node.inputs[i]) : std::nullopt;
}

/// Whether input and output are known to have the same shape.
inline bool keeps_shape(const Graph& graph, const Node& node) {
  const auto& before = graph.tensor(node.inputs.front()).shape;
  return before && before == graph.tensor(node.outputs.front()).shape;
}

inline bool keeps_shape_of_first(const Operator&, const Graph& graph, const Node& node) {
  return keeps_shape(graph, node);
}

// --- Counts of products, for operators whose shapes are known; nothing where they do not fit into
// 64 bits.

using Count = std::optional<std::int64_t>;

inline const Shape& input_shape(const Graph& graph, const Node& node, std::size_t i) {
  return *graph.tensor(node.inputs[i]).shape;
}
inline const Shape& output_shape(const Graph& graph, const Node& node) {
  return *graph.tensor(node.outputs[0]).shape;
}

inline Count product(std::initializer_list<std::int64_t> factors) {
  std::int64_t count = 1;
  for (const auto factor : factors) {
    if (__builtin_mul_overflow(count, factor, &count)) return std::nullopt;
  }
  return count;
}

inline Count sum(std::initializer_list<Count> addends) {
  std::int64_t count = 0;
  for (const auto& addend : addends) {
    if (!addend || __builtin_add_overflow(count, *addend, &count)) return std::nullopt;
  }
  return count;
}

}  // namespace fleetfit::graph
