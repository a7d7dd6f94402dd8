
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

/// Transformers, and convolutional networks that are built like them.
namespace fleetfit::graph {
namespace {

constexpr float kEpsilon = 1e-6F;

/// Cuts the image into squares of `patch` pixels, each of which becomes a token.
TensorId patch_tokens(NetBuilder& net, TensorId image, std::int64_t patch, std::int64_t features) {
  const TensorId x =
      net.conv(image, {.out = features, .kernel = patch, .stride = patch, .pad = 0, .bias = true});
  return net.transpose(net.reshape(x, {0, features, -1}), {0, 2, 1});
}

/// Linear, activation, linear back to as many features as there were.
TensorId mlp(NetBuilder& net, TensorId x, std::int64_t hidden, const Activation& activation) {
  const std::int64_t features = net.shape(x).empty() ? 0 : net.shape(x).back();
  return net.linear(net.activate(net.linear(x, hidden), activation), features);
}

/// Scaled dot-product attention of the tokens to each other. `heads` divides the features.
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

}  // namespace

TensorId encoder_block(NetBuilder& net, TensorId x, const EncoderSpec& spec) {
  x = net.add(x, self_attention(net, net.layer_norm(x, spec.epsilon), spec.heads));
  return net.add(x, mlp(net, net.layer_norm(x, spec.epsilon), spec.hidden, spec.activation));
}

namespace {

// --- ViT and DeiT ---

struct VisionTransformer {
  const char* name;
  std::int64_t patch;
  std::int64_t depth;
  std::int64_t heads;  ///< of 64 features each
};

constexpr VisionTransformer kVits[] = {
    {"vit_b_16", 16, 12, 12},
    {"vit_b_32", 32, 12, 12},
    {"vit_l_32", 32, 24, 16},
};

/// Without the token for distillation.
constexpr VisionTransformer kDeits[] = {
    {"deit_tiny", 16, 12, 3},
    {"deit_small", 16, 12, 6},
    {"deit_base", 16, 12, 12},
};

/// Puts a trained token before the others. It is repeated over the batch, whatever its size.
TensorId with_class_token(NetBuilder& net, TensorId tokens, std::int64_t features) {
  const TensorId token = net.parameter("class_token", {1, 1, features}, 0.02);
  const TensorId shape = net.node(ShapeOf{}, {net.slice(tokens, 1, 0, 1)}, "class_token_shape");
  return net.concat({net.node(Expand{}, {token, shape}, "class_token_expanded"), tokens}, 1);
}

/// A transformer on patches of the image whose class token is classified.
TensorId vision_transformer(NetBuilder& net, TensorId image, const NetOptions& options,
                            const VisionTransformer& row) {
  constexpr std::int64_t kPerHead = 64;
  const auto heads =
      std::max<std::int64_t>(1, std::llround(static_cast<double>(row.heads) * options.width));
  const std::int64_t features = heads * kPerHead;

  TensorId x = with_class_token(net, patch_tokens(net, image, row.patch, features), features);
  const std::int64_t tokens = net.shape(x).size() < 2 ? 0 : net.shape(x)[1];
  x = net.add(x, net.parameter("position_embedding", {1, tokens, features}, 0.02));
  for (std::int64_t i = 0; i < row.depth; ++i) {
    x = encoder_block(net, x, {.heads = heads, .hidden = 4 * features});
  }
  x = net.layer_norm(x, 1e-6F);
  x = net.reshape(net.slice(x, 1, 0, 1), {0, features});
  return net.linear(x, options.classes);
}

// --- MLP-Mixer ---

struct Mixer {
  const char* name;
  std::int64_t patch;
  std::int64_t depth;
  std::int64_t features;
};

constexpr Mixer kMixers[] = {
    {"mixer_s32", 32, 8, 512},
    {"mixer_s16", 16, 8, 512},
    {"mixer_b32", 32, 12, 768},
    {"mixer_b16", 16, 12, 768},
};

/// One perceptron across the tokens, one across the features.
TensorId mixer_block(NetBuilder& net, TensorId x, std::int64_t features) {
  const TensorId across = net.transpose(net.layer_norm(x, kEpsilon), {0, 2, 1});
  x = net.add(x, net.transpose(mlp(net, across, features / 2, kGelu), {0, 2, 1}));
  return net.add(x, mlp(net, net.layer_norm(x, kEpsilon), 4 * features, kGelu));
}

TensorId mixer(NetBuilder& net, TensorId image, const NetOptions& options, const Mixer& row) {
  const std::int64_t features = options.scaled(row.features);
  TensorId x = patch_tokens(net, image, row.patch, features);
  for (std::int64_t i = 0; i < row.depth; ++i) x = mixer_block(net, x, features);
  return net.linear(net.mean(net.layer_norm(x, kEpsilon), {1}), options.classes);
}

// --- MobileViT ---

struct MobileVit {
  const char* name;
  std::int64_t expand;
  std::array<std::int64_t, 5> channels;
  std::array<std::int64_t, 3> features;  ///< of the tokens in the last three stages
  std::int64_t last;
};

constexpr MobileVit kMobileVits[] = {
    {"mobilevit_xxs", 2, {16, 24, 48, 64, 80}, {64, 80, 96}, 320},
    {"mobilevit_xs", 4, {32, 48, 64, 80, 96}, {96, 120, 144}, 384},
    {"mobilevit_s", 4, {32, 64, 96, 128, 160}, {144, 192, 240}, 640},
};

constexpr std::int64_t kPatch = 2;

/// Pixels at the same place of their 2x2 patch become one sequence.
TensorId unfold(NetBuilder& net, TensorId x) {
  const std::int64_t columns = net.width(x) / kPatch;
  const std::int64_t patches = net.height(x) / kPatch * columns;
  const std::int64_t features = net.channels(x);
  x = net.transpose(net.reshape(x, {-1, kPatch, columns, kPatch}), {0, 2, 1, 3});
  x = net.transpose(net.reshape(x, {-1, features, patches, kPatch * kPatch}), {0, 3, 2, 1});
  return net.reshape(x, {-1, patches, features});
}

/// Undoes unfold; `like` has the height and width of the result.
TensorId fold(NetBuilder& net, TensorId x, TensorId like) {
  const std::int64_t columns = net.width(like) / kPatch;
  const std::int64_t patches = net.height(like) / kPatch * columns;
  const std::int64_t features = net.channels(like);
  x = net.transpose(net.reshape(x, {-1, kPatch * kPatch, patches, features}), {0, 3, 2, 1});
  x = net.transpose(net.reshape(x, {-1, columns, kPatch, kPatch}), {0, 2, 1, 3});
  return net.reshape(x, {-1, features, net.height(like), net.width(like)});
}

TensorId mobilevit_block(NetBuilder& net, TensorId x, std::int64_t features, int depth) {
  const std::int64_t channels = net.channels(x);
  const TensorId local =
      net.conv(net.conv_bn(x, {.out = channels, .kernel = 3}, kSilu), {.out = features});
  TensorId tokens = unfold(net, local);
  for (int i = 0; i < depth; ++i) {
    tokens = encoder_block(
        net, tokens, {.heads = 4, .hidden = 2 * features, .activation = kSilu, .epsilon = 1e-5F});
  }
  TensorId y = fold(net, net.layer_norm(tokens, 1e-5F), local);
  y = net.conv_bn(y, {.out = channels}, kSilu);
  return net.conv_bn(net.concat({x, y}), {.out = channels, .kernel = 3}, kSilu);
}

TensorId mobilevit(NetBuilder& net, TensorId x, const NetOptions& options, const MobileVit& row) {
  const auto residual = [&](std::size_t stage, std::int64_t stride) {
    x = inverted_residual(net, x,
                          {.stride = stride,
                           .expanded = row.expand * net.channels(x),
                           .out = options.scaled(row.channels[stage]),
                           .activation = kSilu});
  };
  constexpr std::array<int, 3> kDepth = {2, 4, 3};
  x = net.conv_bn(x, {.out = options.scaled(16), .kernel = 3, .stride = 2}, kSilu);
  residual(0, 1);
  for (const std::int64_t stride : {2, 1, 1}) residual(1, stride);
  for (std::size_t i = 0; i < kDepth.size(); ++i) {
    residual(i + 2, 2);
    x = mobilevit_block(net, x, options.scaled(row.features[i]), kDepth[i]);
  }
  x = net.conv_bn(x, {.out = options.scaled(row.last)}, kSilu);
  return classify(net, x, options.classes);
}

// --- ConvNeXt ---

struct ConvNext {
  const char* name;
  std::array<std::int64_t, 4> channels;
  std::array<int, 4> depth;
};

constexpr ConvNext kConvNexts[] = {
    {"convnext_tiny", {96, 192, 384, 768}, {3, 3, 9, 3}},
    {"convnext_small", {96, 192, 384, 768}, {3, 3, 27, 3}},
    {"convnext_base", {128, 256, 512, 1024}, {3, 3, 27, 3}},
    {"convnext_large", {192, 384, 768, 1536}, {3, 3, 27, 3}},
};

TensorId to_nhwc(NetBuilder& net, TensorId x) { return net.transpose(x, {0, 2, 3, 1}); }
TensorId to_nchw(NetBuilder& net, TensorId x) { return net.transpose(x, {0, 3, 1, 2}); }

TensorId channel_norm(NetBuilder& net, TensorId x) {
  return to_nchw(net, net.layer_norm(to_nhwc(net, x), kEpsilon));
}

TensorId convnext_block(NetBuilder& net, TensorId x, std::int64_t channels) {
  TensorId y = net.conv(x, {.out = channels, .kernel = 7, .groups = channels, .bias = true});
  y = net.layer_norm(to_nhwc(net, y), kEpsilon);
  y = to_nchw(net, mlp(net, y, 4 * channels, kGelu));
  const TensorId layer_scale = net.parameter("layer_scale", {channels, 1, 1}, 0.02, 0.1);
  return net.add(net.mul(layer_scale, y), x);
}

TensorId convnext(NetBuilder& net, TensorId x, const NetOptions& options, const ConvNext& row) {
  for (std::size_t stage = 0; stage < row.depth.size(); ++stage) {
    const std::int64_t channels = options.scaled(row.channels[stage]);
    if (stage == 0) {
      x = net.conv(x, {.out = channels, .kernel = 4, .stride = 4, .pad = 0, .bias = true});
      x = channel_norm(net, x);
    } else {
      x = channel_norm(net, x);
      x = net.conv(x, {.out = channels, .kernel = 2, .stride = 2, .pad = 0, .bias = true});
    }
    for (int i = 0; i < row.depth[stage]; ++i) x = convnext_block(net, x, channels);
  }
  x = net.flatten(net.global_average_pool(x));
  return net.linear(net.layer_norm(x, kEpsilon), options.classes);
}

// --- ConvMixer ---

struct ConvMixer {
  const char* name;
  std::int64_t channels;
  int depth;
  std::int64_t kernel;
  std::int64_t patch;
  Activation activation;
};

constexpr ConvMixer kConvMixers[] = {
    {"convmixer_768_32", 768, 32, 7, 7, kRelu},
    {"convmixer_1024_20_ks9_p14", 1024, 20, 9, 14, kGelu},
};

TensorId convmixer(NetBuilder& net, TensorId x, const NetOptions& options, const ConvMixer& row) {
  const std::int64_t channels = options.scaled(row.channels);
  const auto layer = [&](TensorId input, ConvSpec spec) {
    spec.out = channels;
    spec.bias = true;
    return net.batch_norm(net.activate(net.conv(input, spec), row.activation));
  };
  x = layer(x, {.kernel = row.patch, .stride = row.patch, .pad = 0});
  for (int i = 0; i < row.depth; ++i) {
    x = net.add(layer(x, {.kernel = row.kernel, .groups = channels}), x);
    x = layer(x, {.kernel = 1});
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_transformers(ZooList& zoo) {
  add_rows(zoo, {.family = "vit"}, kVits, vision_transformer);
  add_rows(zoo, {.family = "deit"}, kDeits, vision_transformer);
  add_rows(zoo, {.family = "mlp_mixer"}, kMixers, mixer);
  add_rows(zoo, {.family = "mobilevit", .image = 256}, kMobileVits, mobilevit);
  add_rows(zoo, {.family = "convnext"}, kConvNexts, convnext);
  add_rows(zoo, {.family = "convmixer"}, kConvMixers, convmixer);
}

}  // namespace fleetfit::graph
