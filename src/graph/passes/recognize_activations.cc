#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "fleetfit/graph/evaluate.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

/// Networks write SiLU, GELU, hard-swish and their like out of element-wise operators, in many
/// orders. Whatever the order, nodes between one tensor x and a result that use nothing else but
/// single numbers are a function of one variable: it is computed on a few hundred points and
/// compared with the known activations.
namespace fleetfit::graph::rewrite {
namespace {

constexpr std::size_t kMostNodes = 12;

// The first few points are those that parameters are read off.
constexpr std::size_t kZero = 0;
constexpr std::size_t kQuarter = 1;
constexpr std::size_t kMinusOne = 2;
constexpr std::size_t kFarLeft = 3;
constexpr std::size_t kFarRight = 4;

std::vector<float> sample_points() {
  std::vector<float> points{0.0F, 0.25F, -1.0F, -1e4F, 1e4F};
  for (int i = -120; i <= 120; ++i) points.push_back(static_cast<float>(i) / 12.0F + 0.01F);
  for (float far = 12; far < 1e4F; far *= 2) {
    points.push_back(far);
    points.push_back(-far);
  }
  return points;
}

Value as_value(const std::vector<float>& points) {
  return {DType::f32, {static_cast<std::int64_t>(points.size())}, TensorData::copy(points), {}};
}

std::vector<float> values_at(const Value& points, const Activation& function) {
  const Node node{.op = Activate{function}, .inputs = {0}, .outputs = {1}};
  const Value* operand = &points;
  const auto results = evaluate(node, {&operand, 1});
  if (!results) return {};
  const auto values = results->front().data.as<float>();
  return {values.begin(), values.end()};
}

struct KnownFunction {
  Activation function;
  std::vector<float> values;  ///< at the sample points
};

/// Those without parameters. Made once; the same for everybody.
const std::vector<KnownFunction>& known_functions() {
  static const auto kKnown = [] {
    const auto points = as_value(sample_points());
    std::vector<KnownFunction> known;
    for (const auto kind : {ActivationKind::relu, ActivationKind::sigmoid, ActivationKind::tanh,
                            ActivationKind::hard_swish, ActivationKind::silu, ActivationKind::gelu,
                            ActivationKind::gelu_tanh, ActivationKind::softplus,
                            ActivationKind::softsign, ActivationKind::mish}) {
      const Activation function{.kind = kind};
      known.push_back({function, values_at(points, function)});
    }
    return known;
  }();
  return kKnown;
}

bool is_pointwise(const Operator& op) {
  return std::holds_alternative<Activate>(op) || std::holds_alternative<Unary>(op) ||
         std::holds_alternative<Elementwise>(op);
}

// Nodes that compute `result` from `root` and single numbers, last first.
struct Cone {
  TensorId root = kNoTensor;
  std::vector<int> nodes;
};

class Recognizer {
 public:
  explicit Recognizer(Graph& graph) : rewriter_(graph), points_(sample_points()) {}

  Result<bool> run() {
    for (int n = 0; n < rewriter_.node_count(); ++n) {
      if (!rewriter_.removed(n) && is_pointwise(rewriter_.node(n).op)) recognize(n);
    }
    return rewriter_.finish();
  }

 private:
  // Grows the cone one node at a time, always by the latest, and looks at it whenever a single
  // tensor is left that it depends on. The largest cone that is an activation counts.
  void recognize(int index) {
    const auto result = rewriter_.node(index).outputs.front();
    if (!is_plain_float(rewriter_.graph(), result)) return;
    Cone cone;
    std::optional<Activation> found;
    TensorId found_root = kNoTensor;
    std::set<int, std::greater<>> open{index};
    std::set<TensorId> sources;
    while (!open.empty() && cone.nodes.size() < kMostNodes) {
      const int latest = *open.begin();
      open.erase(open.begin());
      if (!add(latest, cone, sources)) break;
      for (const auto id : sources) {
        if (const int maker = rewriter_.maker(id); can_add(maker)) open.insert(maker);
      }
      if (sources.size() != 1) continue;
      cone.root = *sources.begin();
      if (const auto function = function_of(index, cone)) {
        found = function;
        found_root = cone.root;
      }
    }
    if (found) replace(index, *found, found_root);
  }

  bool can_add(int index) {
    return index != kNoNode && is_pointwise(rewriter_.node(index).op) &&
           !touches_quantized(rewriter_.graph(), rewriter_.node(index));
  }

  // Takes a node into the cone: its output is no longer a source, its inputs are.
  bool add(int index, Cone& cone, std::set<TensorId>& sources) {
    const auto& node = rewriter_.node(index);
    cone.nodes.push_back(index);
    sources.erase(node.outputs.front());
    for (const auto id : node.inputs) {
      if (id == kNoTensor) return false;
      if (rewriter_.graph().tensor(id).is_constant()) {
        if (!single_value(rewriter_.graph(), id)) return false;
      } else {
        sources.insert(id);
      }
    }
    return sources.size() <= 4;
  }

  // The activation that the cone computes; nothing if it is none, or one already.
  std::optional<Activation> function_of(int index, const Cone& cone) {
    const auto& graph = rewriter_.graph();
    const auto result = rewriter_.node(index).outputs.front();
    const bool named_already =
        cone.nodes.size() == 1 && std::holds_alternative<Activate>(rewriter_.node(index).op);
    if (named_already || !is_plain_float(graph, cone.root) ||
        !same_shape(graph, cone.root, result) || !rewriter_.are_private(cone.nodes))
      return std::nullopt;
    return find_function(values_of(cone));
  }

  void replace(int index, const Activation& function, TensorId root) {
    auto& node = rewriter_.node(index);
    const auto inputs = node.inputs;
    node.op = Activate{function};
    node.activation = {};
    rewriter_.set_inputs(index, {root});
    for (const auto id : inputs) rewriter_.remove_unread(id);
  }

  // Empty if the interpreter cannot compute them.
  std::vector<float> values_of(const Cone& cone) {
    std::map<TensorId, Value> known{{cone.root, as_value(points_)}};
    for (auto index = cone.nodes.rbegin(); index != cone.nodes.rend(); ++index) {
      const auto& node = rewriter_.node(*index);
      std::vector<const Value*> operands;
      for (const auto id : node.inputs) operands.push_back(&operand(id, known));
      auto results = evaluate(node, operands);
      if (!results) return {};
      known.insert_or_assign(node.outputs.front(), std::move(results->front()));
    }
    const auto& last = known.at(rewriter_.node(cone.nodes.front()).outputs.front());
    if (last.dtype != DType::f32) return {};
    const auto values = last.data.as<float>();
    return {values.begin(), values.end()};
  }

  const Value& operand(TensorId id, std::map<TensorId, Value>& known) {
    const auto found = known.find(id);
    if (found != known.end()) return found->second;
    const auto& tensor = rewriter_.graph().tensor(id);
    return known.emplace(id, Value{tensor.dtype, {1}, *tensor.data, {}}).first->second;
  }

  std::optional<Activation> find_function(const std::vector<float>& values) const {
    if (values.size() != points_.size()) return std::nullopt;
    for (const auto& known : known_functions()) {
      if (alike(values, known.values)) return known.function;
    }
    for (const auto& function : fitted(values)) {
      if (alike(values, values_at(as_value(points_), function))) return function;
    }
    return std::nullopt;
  }

  // Functions with parameters that agree with the values at the first points.
  static std::vector<Activation> fitted(const std::vector<float>& values) {
    std::vector<Activation> functions;
    const float left = values[kFarLeft];
    const float right = values[kFarRight];
    if (left < right && std::abs(left) < 1e3F && std::abs(right) < 1e3F)
      functions.push_back({ActivationKind::clip, left, right});
    if (left == 0.0F && right == 1.0F) {
      const float slope = 4 * (values[kQuarter] - values[kZero]);
      const bool usual = std::abs(slope - kHardSigmoid.alpha) < 1e-6F &&
                         std::abs(values[kZero] - kHardSigmoid.beta) < 1e-6F;
      functions.push_back(usual ? kHardSigmoid
                                : Activation{ActivationKind::hard_sigmoid, slope, values[kZero]});
    }
    if (right == 1e4F && values[kMinusOne] < 0)
      functions.push_back({ActivationKind::leaky_relu, -values[kMinusOne]});
    return functions;
  }

  bool alike(const std::vector<float>& a, const std::vector<float>& b) const {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const float tolerance = 4e-6F * (1 + std::abs(points_[i]));
      if (!(std::abs(a[i] - b[i]) <= tolerance)) return false;
    }
    return true;
  }

  Rewriter rewriter_;
  std::vector<float> points_;
};

}  // namespace

Result<bool> recognize_activations(Graph& graph) { return Recognizer(graph).run(); }

}  // namespace fleetfit::graph::rewrite
