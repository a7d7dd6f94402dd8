#include "graph/zoo/transformer.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace fleetfit::graph {

TensorId patch_tokens(NetBuilder& net, TensorId image, std::int64_t patch, std::int64_t features) {
  const TensorId x =
      net.conv(image, {.out = features, .kernel = patch, .stride = patch, .pad = 0, .bias = true});
  return net.transpose(net.reshape(x, {0, features, -1}), {0, 2, 1});
}

TensorId mlp(NetBuilder& net, TensorId x, std::int64_t hidden, const Activation& activation) {
  const std::int64_t features = net.shape(x).empty() ? 0 : net.shape(x).back();
  return net.linear(net.activate(net.linear(x, hidden), activation), features);
}

TensorId self_attention(NetBuilder& net, TensorId x, std::int64_t heads) {
  const std::int64_t features = net.shape(x).empty() ? 0 : net.shape(x).back();
  const std::int64_t per_head = features / heads;
  const auto by_head = [&](TensorId part, const Ints& perm) {
    return net.transpose(net.reshape(part, {0, 0, heads, per_head}), perm);
  };
  const std::vector<TensorId> parts =
      net.split(net.linear(x, 3 * features), {features, features, features}, -1);
  const TensorId q = by_head(parts[0], {0, 2, 1, 3});
  const TensorId k = by_head(parts[1], {0, 2, 3, 1});
  const TensorId v = by_head(parts[2], {0, 2, 1, 3});

  const double temperature = std::sqrt(static_cast<double>(per_head));
  const TensorId weights = net.softmax(net.scale(net.matmul(q, k), 1 / temperature));
  const TensorId mixed = net.transpose(net.matmul(weights, v), {0, 2, 1, 3});
  return net.linear(net.reshape(mixed, {0, 0, features}), features);
}

TensorId encoder_block(NetBuilder& net, TensorId x, const EncoderSpec& spec) {
  x = net.add(x, self_attention(net, net.layer_norm(x, spec.epsilon), spec.heads));
  return net.add(x, mlp(net, net.layer_norm(x, spec.epsilon), spec.hidden, spec.activation));
}

namespace {

/// Puts a trained token before the others. It is repeated over the batch, whatever its size.
TensorId with_class_token(NetBuilder& net, TensorId tokens, std::int64_t features) {
  const TensorId token = net.parameter("class_token", {1, 1, features}, 0.02);
  const TensorId shape = net.node(ShapeOf{}, {net.slice(tokens, 1, 0, 1)}, "class_token_shape");
  return net.concat({net.node(Expand{}, {token, shape}, "class_token_expanded"), tokens}, 1);
}

}  // namespace

TensorId vision_transformer(NetBuilder& net, TensorId image, const NetOptions& options,
                            const VisionTransformerSpec& spec) {
  constexpr std::int64_t kPerHead = 64;
  const auto heads =
      std::max<std::int64_t>(1, std::llround(static_cast<double>(spec.heads) * options.width));
  const std::int64_t features = heads * kPerHead;

  TensorId x = with_class_token(net, patch_tokens(net, image, spec.patch, features), features);
  const std::int64_t tokens = net.shape(x).size() < 2 ? 0 : net.shape(x)[1];
  x = net.add(x, net.parameter("position_embedding", {1, tokens, features}, 0.02));
  for (std::int64_t i = 0; i < spec.depth; ++i) {
    x = encoder_block(net, x, {.heads = heads, .hidden = 4 * features});
  }
  x = net.layer_norm(x, 1e-6F);
  x = net.reshape(net.slice(x, 1, 0, 1), {0, features});
  return net.linear(x, options.classes);
}

}  // namespace fleetfit::graph
