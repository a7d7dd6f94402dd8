#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// A square (or height x width) convolution. Defaults keep height and width with an odd kernel and
/// stride 1.
struct ConvSpec {
  std::int64_t out = 0;  ///< output channels
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  std::int64_t dilation = 1;
  std::int64_t pad = -1;      ///< -1: dilation * (kernel - 1) / 2 on every side
  std::int64_t kernel_w = 0;  ///< 0: as `kernel`
  std::int64_t pad_w = -1;    ///< -1: as `pad`, worked out from kernel_w
  bool bias = false;
};

struct PoolSpec {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t pad = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;
};

/// Writes a network down layer by layer, in NCHW with a batch dimension named "N", with random but
/// seeded weights that keep the size of activations sane. Only operators that ONNX has: SiLU, GELU,
/// channel shuffle and the like are written out.
///
/// The first mistake (operands that do not fit) is kept and returned by finish(); until then ids
/// are safe to pass on.
class NetBuilder {
 public:
  NetBuilder(std::string name, std::uint64_t seed);

  TensorId input(std::string name, const Shape& shape, DType dtype = DType::f32);

  /// A trained constant, uniform with this standard deviation around `center`.
  TensorId parameter(std::string_view role, const Shape& shape, double stddev, double center = 0);

  // Layers with weights.
  TensorId conv(TensorId x, const ConvSpec& spec);
  TensorId conv_transpose(TensorId x, const ConvSpec& spec);
  TensorId batch_norm(TensorId x, float epsilon = 1e-5F);
  TensorId conv_bn(TensorId x, const ConvSpec& spec, const Activation& activation = {},
                   float epsilon = 1e-5F);
  TensorId linear(TensorId x, std::int64_t out);  ///< over the last dimension, with bias
  TensorId linear_no_bias(TensorId x, std::int64_t out);
  TensorId layer_norm(TensorId x, float epsilon = 1e-5F);  ///< over the last dimension

  // Layers without.
  TensorId activate(TensorId x, const Activation& activation);
  TensorId max_pool(TensorId x, const PoolSpec& spec);
  TensorId average_pool(TensorId x, const PoolSpec& spec);
  TensorId global_average_pool(TensorId x);  ///< keeps rank: N x C x 1 x 1
  TensorId softmax(TensorId x, std::int64_t axis = -1);
  TensorId lrn(TensorId x, const Lrn& lrn);
  /// If just one of them comes from a batch norm, as the branch of a residual block does, that one
  /// gets small scales.
  TensorId add(TensorId a, TensorId b);
  TensorId sub(TensorId a, TensorId b);
  TensorId mul(TensorId a, TensorId b);
  TensorId scale(TensorId x, double factor);  ///< by a constant that is no parameter
  TensorId matmul(TensorId a, TensorId b);
  TensorId concat(const std::vector<TensorId>& parts, std::int64_t axis = 1);
  std::vector<TensorId> split(TensorId x, const Ints& sizes, std::int64_t axis = 1);
  TensorId slice(TensorId x, std::int64_t axis, std::int64_t begin, std::int64_t end);
  TensorId pad(TensorId x, std::int64_t top, std::int64_t left, std::int64_t bottom,
               std::int64_t right);
  TensorId reshape(TensorId x, const Ints& wanted);  ///< 0 copies an extent, -1 takes the rest
  TensorId transpose(TensorId x, const Ints& perm);
  TensorId flatten(TensorId x);  ///< to N x rest
  TensorId mean(TensorId x, const Ints& axes, bool keep_dims = false);
  TensorId resize(TensorId x, double factor, ResizeMode mode);  ///< height and width
  TensorId channel_shuffle(TensorId x, std::int64_t groups);

  /// Any other operator with one output.
  TensorId node(Operator op, std::vector<TensorId> inputs, std::string_view role = {});

  // What is known of a tensor; 0 and an empty shape after a mistake.
  const Shape& shape(TensorId id) const;
  std::int64_t channels(TensorId id) const;
  std::int64_t height(TensorId id) const;
  std::int64_t width(TensorId id) const;

  /// Any other operator; nodes are named by their role. Gives its first output.
  TensorId append(Operator op, std::vector<TensorId> inputs, std::string_view role);

  void output(TensorId id, std::string name);

  Result<Graph> finish() &&;

 private:
  std::vector<TensorId> append_many(Operator op, std::vector<TensorId> inputs,
                                    std::string_view role, int outputs);
  std::uint64_t next_seed() const;
  const Node* batch_norm_before(TensorId x) const;
  void soften_branch(TensorId a, TensorId b);
  Status infer_last();
  TensorId constant_ints(std::string_view role, const Ints& values);
  TensorId constant_scalar(std::string_view role, float value);
  std::string fresh_name(std::string_view role);

  Graph graph_;
  std::uint64_t seed_;
  std::map<std::string, int, std::less<>> used_;
  std::map<TensorId, TensorData> shapes_;  // what the ShapeOf nodes give
  Status status_;
};

/// Channels scaled by a width multiplier and rounded to a multiple of `divisor`, never below 90 %
/// of the exact value (the rule of the MobileNet family).
std::int64_t scaled_channels(std::int64_t channels, double width, std::int64_t divisor = 8);

}  // namespace fleetfit::graph
