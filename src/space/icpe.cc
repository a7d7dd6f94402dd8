#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <utility>

#include "fleetfit/graph/net_builder.h"
#include "space/all_spaces.h"

namespace fleetfit::space {
namespace {

using graph::Activation;
using graph::NetBuilder;
using graph::TensorId;

constexpr std::size_t kBlocks = 9;
// Networks that people design have channels that kernels like; those in between are met as well.
constexpr std::int64_t kUsualMultiple = 8;
constexpr double kUsualShare = 0.75;

struct Range {
  std::int64_t low;
  std::int64_t high;
};
constexpr Range kNarrow{8, 80};
constexpr Range kWide{80, 400};
constexpr Range kHead{1200, 1800};

/// The first convolution halves the image, then every second block does, as in MobileNetV2.
constexpr std::array<std::int64_t, kBlocks> kStrides = {1, 2, 1, 2, 1, 2, 1, 2, 1};
constexpr std::array<Range, kBlocks> kChannels = {kNarrow, kNarrow, kNarrow, kNarrow, kNarrow,
                                                  kWide,   kWide,   kWide,   kWide};

enum class Kind : std::uint8_t { conv, separable, bottleneck, pool, split };

constexpr std::array<std::int64_t, 3> kKernels = {3, 5, 7};
constexpr std::array<std::int64_t, 3> kExpansions = {1, 3, 6};
constexpr std::array<std::int64_t, 2> kWindows = {1, 3};
constexpr std::array<std::int64_t, 3> kParts = {2, 3, 4};
constexpr std::array<Activation, 4> kActivations = {graph::kRelu, graph::kRelu6, graph::kHardSwish,
                                                    Activation{graph::ActivationKind::silu}};
constexpr std::array<Activation, 2> kGates = {graph::kSigmoid, graph::kHardSigmoid};

enum class PartWork : std::uint8_t { relu, relu6, hswish, silu, sigmoid, norm, add, mul };

// Genes of a block, in the order in which they stand.
constexpr std::size_t kKind = 0;
constexpr std::size_t kKernel = 1;
constexpr std::size_t kGrouped = 2;
constexpr std::size_t kGroupSize = 3;
constexpr std::size_t kExpansion = 4;
constexpr std::size_t kSqueeze = 5;
constexpr std::size_t kGate = 6;
constexpr std::size_t kPooling = 7;
constexpr std::size_t kWindow = 8;
constexpr std::size_t kPartCount = 9;
constexpr std::size_t kPart1 = 10;
constexpr std::size_t kPart2 = 11;
constexpr std::size_t kPart3 = 12;
constexpr std::size_t kPart4 = 13;
constexpr std::size_t kShuffle = 14;
constexpr std::size_t kShortcut = 15;
constexpr std::size_t kActivation = 16;
constexpr std::size_t kOut = 17;
constexpr std::size_t kBlockGenes = 18;

// Genes of the first convolution, before all blocks, and of the head, behind them.
constexpr std::size_t kStemKernel = 0;
constexpr std::size_t kStemActivation = 1;
constexpr std::size_t kStemOut = 2;
constexpr std::size_t kStemGenes = 3;
constexpr std::size_t kHeadActivation = kStemGenes + kBlocks * kBlockGenes;
constexpr std::size_t kHeadOut = kHeadActivation + 1;

Gene channels_gene(std::string name, Range range) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(range.high - range.low + 1));
  std::iota(values.begin(), values.end(), range.low);
  return amounts(std::move(name), "", values);
}

Gene kinds(std::string name, std::vector<std::string> choices, std::string before = "-") {
  return {.name = std::move(name), .choices = std::move(choices), .before = std::move(before)};
}

Gene activation_gene(std::string name, std::string before = "-") {
  return kinds(std::move(name), {"relu", "relu6", "hswish", "silu"}, std::move(before));
}

void add_block(std::vector<Gene>& genes, std::size_t block) {
  const auto named = [&](std::string_view what) {
    return fmt::format("block {} {}", block + 1, what);
  };
  std::vector<std::int64_t> group_sizes(16);
  for (std::size_t k = 0; k < group_sizes.size(); ++k)
    group_sizes[k] = 4 * static_cast<std::int64_t>(k + 1);
  genes.push_back(kinds(named("kind"), {"conv", "sep", "mb", "pool", "split"}, "/"));
  genes.push_back(amounts(named("kernel"), "k", kKernels));
  genes.push_back(kinds(named("groups"), {"dense", "grouped"}));
  genes.push_back(amounts(named("group size"), "g", group_sizes));
  genes.push_back(amounts(named("expansion"), "e", kExpansions));
  genes.push_back(kinds(named("squeeze-and-excite"), {"nose", "se"}));
  genes.push_back(kinds(named("gate"), {"sigmoid", "hsigmoid"}));
  genes.push_back(kinds(named("pooling"), {"avg", "max"}));
  genes.push_back(amounts(named("window"), "w", kWindows));
  genes.push_back(amounts(named("parts"), "p", kParts));
  for (int part = 1; part <= kParts.back(); ++part) {
    genes.push_back(kinds(named(fmt::format("part {}", part)),
                          {"relu", "relu6", "hswish", "silu", "sigmoid", "norm", "add", "mul"}));
  }
  genes.push_back(kinds(named("shuffle"), {"inorder", "shuffle"}));
  genes.push_back(kinds(named("shortcut"), {"plain", "skip"}));
  genes.push_back(activation_gene(named("activation")));
  genes.push_back(channels_gene(named("channels"), kChannels[block]));
}

std::vector<Gene> all_genes() {
  std::vector<Gene> genes;
  genes.push_back(amounts("stem kernel", "k", kKernels, ""));
  genes.push_back(activation_gene("stem activation"));
  genes.push_back(channels_gene("stem channels", kNarrow));
  for (std::size_t block = 0; block < kBlocks; ++block) add_block(genes, block);
  genes.push_back(activation_gene("head activation", "/"));
  genes.push_back(channels_gene("head channels", kHead));
  return genes;
}

std::size_t first_gene(std::size_t block) { return kStemGenes + block * kBlockGenes; }

/// A block's choices with their meaning.
class Block {
 public:
  Block(Design design, std::size_t number)
      : genes_(design.subspan(first_gene(number), kBlockGenes)), number_(number) {}

  Kind kind() const { return static_cast<Kind>(genes_[kKind]); }
  std::int64_t kernel() const { return kKernels[genes_[kKernel]]; }
  bool is_grouped() const { return kind() == Kind::conv && genes_[kGrouped] == 1; }
  std::int64_t group_size() const { return std::int64_t{4} * (genes_[kGroupSize] + 1); }
  std::int64_t expansion() const { return kExpansions[genes_[kExpansion]]; }
  bool squeezes() const { return genes_[kSqueeze] == 1; }
  const Activation& gate() const { return kGates[genes_[kGate]]; }
  bool takes_maximum() const { return genes_[kPooling] == 1; }
  std::int64_t window() const { return kWindows[genes_[kWindow]]; }
  std::int64_t parts() const { return kParts[genes_[kPartCount]]; }
  PartWork work(std::size_t part) const { return static_cast<PartWork>(genes_[kPart1 + part]); }
  bool shuffles() const { return genes_[kShuffle] == 1; }
  bool has_shortcut() const { return genes_[kShortcut] == 1; }
  const Activation& activation() const { return kActivations[genes_[kActivation]]; }
  std::int64_t wanted_channels() const { return kChannels[number_].low + genes_[kOut]; }
  std::int64_t stride() const { return kStrides[number_]; }

  bool convolves() const {
    return kind() == Kind::conv || kind() == Kind::separable || kind() == Kind::bottleneck;
  }
  bool may_have_shortcut() const { return stride() == 1 && convolves() && !is_grouped(); }

  /// What the number of its input's channels has to be a multiple of.
  std::int64_t input_multiple() const {
    if (is_grouped()) return group_size();
    return kind() == Kind::split ? parts() : 1;
  }

 private:
  Design genes_;
  std::size_t number_;
};

constexpr std::uint32_t genes_at(std::initializer_list<std::size_t> places) {
  std::uint32_t set = 0;
  for (const std::size_t place : places) set |= std::uint32_t{1} << place;
  return set;
}

constexpr std::uint32_t kGenesOfAll = genes_at({kKind, kShortcut, kActivation, kOut});

/// Genes that can be active in a block of each kind.
constexpr std::array<std::uint32_t, 5> kGenesOfKind = {
    kGenesOfAll | genes_at({kKernel, kGrouped, kGroupSize}),
    kGenesOfAll | genes_at({kKernel}),
    kGenesOfAll | genes_at({kKernel, kExpansion, kSqueeze, kGate}),
    kGenesOfAll | genes_at({kPooling, kWindow}),
    kGenesOfAll | genes_at({kPartCount, kPart1, kPart2, kPart3, kPart4, kShuffle}),
};

/// The block's active genes as bits. Each depends on genes before it alone, so that the bits up to
/// and with the next one are right while a design is being made.
std::uint32_t active_genes(const Block& block) {
  std::uint32_t idle = 0;
  if (!block.is_grouped()) idle |= genes_at({kGroupSize});
  if (!block.squeezes()) idle |= genes_at({kGate});
  if (block.parts() < 3) idle |= genes_at({kPart3});
  if (block.parts() < 4) idle |= genes_at({kPart4});
  if (!block.may_have_shortcut()) idle |= genes_at({kShortcut});
  if (block.has_shortcut()) idle |= genes_at({kOut});
  return kGenesOfKind[static_cast<std::size_t>(block.kind())] & ~idle;
}

/// The multiple in the range that is nearest to the wanted number, the smaller of two; nothing if
/// the range has none.
std::optional<std::int64_t> nearest_multiple(std::int64_t wanted, std::int64_t of, Range range) {
  const std::int64_t below = wanted / of * of;
  const std::int64_t above = below + (below == wanted ? 0 : of);
  const bool has_below = below >= range.low;
  const bool has_above = above <= range.high;
  if (has_below && (!has_above || wanted - below <= above - wanted)) return below;
  if (has_above) return above;
  return std::nullopt;
}

/// Channels at the borders of blocks (the first is the stem's output), such that groups and parts
/// come out even, and the groups of each block.
struct Widths {
  std::array<std::int64_t, kBlocks + 1> channels{};
  std::array<std::int64_t, kBlocks> groups{};
};

/// What the channels at each border have to be a multiple of for the blocks that follow: a block
/// with a shortcut hands on what the next one asks for.
std::array<std::int64_t, kBlocks + 1> needed_multiples(std::span<const Block> blocks) {
  std::array<std::int64_t, kBlocks + 1> multiples{};
  multiples[kBlocks] = 1;
  for (std::size_t b = kBlocks; b-- > 0;)
    multiples[b] = blocks[b].has_shortcut() ? multiples[b + 1] : blocks[b].input_multiple();
  return multiples;
}

Widths fit_widths(std::int64_t stem_channels, std::span<const Block> blocks) {
  const auto multiples = needed_multiples(blocks);
  Widths widths;
  widths.channels[0] =
      nearest_multiple(stem_channels, multiples[0], kNarrow).value_or(stem_channels);
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const Block& block = blocks[b];
    const std::int64_t in = widths.channels[b];
    const std::int64_t wanted = block.wanted_channels();
    const std::int64_t groups = block.is_grouped() ? in / block.group_size() : 1;
    const std::int64_t both = std::lcm(multiples[b + 1], groups);
    auto out = nearest_multiple(wanted, both, kChannels[b]);
    // Rather larger groups than channels out of the range.
    if (!out) out = nearest_multiple(wanted, multiples[b + 1], kChannels[b]);
    widths.channels[b + 1] = block.has_shortcut() ? in : out.value_or(wanted);
    widths.groups[b] = std::gcd(groups, widths.channels[b + 1]);
  }
  return widths;
}

/// How a block is built.
struct Frame {
  std::int64_t out;
  std::int64_t groups;
};

TensorId with_shortcut(NetBuilder& net, TensorId x, TensorId y, const Block& block) {
  return net.activate(net.add(x, y), block.activation());
}

TensorId convolution(NetBuilder& net, TensorId x, const Block& block, const Frame& frame) {
  const graph::ConvSpec spec{
      .out = frame.out, .kernel = block.kernel(), .stride = block.stride(), .groups = frame.groups};
  if (!block.has_shortcut()) return net.conv_bn(x, spec, block.activation());
  return with_shortcut(net, x, net.conv_bn(x, spec), block);
}

TensorId separable(NetBuilder& net, TensorId x, const Block& block, const Frame& frame) {
  const graph::ConvSpec depthwise{.out = net.channels(x),
                                  .kernel = block.kernel(),
                                  .stride = block.stride(),
                                  .groups = net.channels(x)};
  const TensorId y = net.conv_bn(x, depthwise, block.activation());
  if (!block.has_shortcut()) return net.conv_bn(y, {.out = frame.out}, block.activation());
  return with_shortcut(net, x, net.conv_bn(y, {.out = frame.out}), block);
}

TensorId squeeze_excite(NetBuilder& net, TensorId x, const Block& block) {
  const std::int64_t reduced = graph::scaled_channels(net.channels(x), 0.25);
  TensorId gate = net.global_average_pool(x);
  gate = net.activate(net.conv(gate, {.out = reduced, .bias = true}), block.activation());
  gate = net.activate(net.conv(gate, {.out = net.channels(x), .bias = true}), block.gate());
  return net.mul(x, gate);
}

TensorId bottleneck(NetBuilder& net, TensorId x, const Block& block, const Frame& frame) {
  TensorId y = x;
  const std::int64_t expanded = block.expansion() * net.channels(x);
  if (block.expansion() > 1) y = net.conv_bn(y, {.out = expanded}, block.activation());
  const graph::ConvSpec depthwise{
      .out = expanded, .kernel = block.kernel(), .stride = block.stride(), .groups = expanded};
  y = net.conv_bn(y, depthwise, block.activation());
  if (block.squeezes()) y = squeeze_excite(net, y, block);
  y = net.conv_bn(y, {.out = frame.out});
  return block.has_shortcut() ? net.add(x, y) : y;
}

TensorId pooling(NetBuilder& net, TensorId x, const Block& block, const Frame& frame) {
  const graph::PoolSpec spec{
      .kernel = block.window(), .stride = block.stride(), .pad = (block.window() - 1) / 2};
  x = block.takes_maximum() ? net.max_pool(x, spec) : net.average_pool(x, spec);
  return net.conv_bn(x, {.out = frame.out}, block.activation());
}

TensorId work_on_part(NetBuilder& net, PartWork work, TensorId part, TensorId neighbour) {
  switch (work) {
    case PartWork::relu:
    case PartWork::relu6:
    case PartWork::hswish:
    case PartWork::silu:
      return net.activate(part, kActivations[static_cast<std::size_t>(work)]);
    case PartWork::sigmoid:
      return net.activate(part, graph::kSigmoid);
    case PartWork::norm:
      return net.batch_norm(part);
    case PartWork::add:
      return net.add(part, neighbour);
    case PartWork::mul:
      return net.mul(part, neighbour);
  }
  return part;
}

TensorId split(NetBuilder& net, TensorId x, const Block& block, const Frame& frame) {
  const auto count = static_cast<std::size_t>(block.parts());
  const auto parts = net.split(x, graph::Ints(count, net.channels(x) / block.parts()));
  std::vector<TensorId> worked;
  for (std::size_t i = 0; i < count; ++i)
    worked.push_back(work_on_part(net, block.work(i), parts[i], parts[(i + 1) % count]));
  TensorId y = net.concat(worked);
  if (block.shuffles()) y = net.channel_shuffle(y, block.parts());
  return net.conv_bn(y, {.out = frame.out, .stride = block.stride()}, block.activation());
}

TensorId build_block(NetBuilder& net, TensorId x, const Block& block, const Frame& frame) {
  switch (block.kind()) {
    case Kind::conv:
      return convolution(net, x, block, frame);
    case Kind::separable:
      return separable(net, x, block, frame);
    case Kind::bottleneck:
      return bottleneck(net, x, block, frame);
    case Kind::pool:
      return pooling(net, x, block, frame);
    case Kind::split:
      return split(net, x, block, frame);
  }
  return x;
}

/// How many designs one block has.
DesignCount block_count(std::size_t block) {
  const auto out = static_cast<std::uint64_t>(kChannels[block].high - kChannels[block].low + 1);
  // A shortcut takes the place of the choice of channels.
  const std::uint64_t ends = out + (kStrides[block] == 1 ? 1 : 0);
  constexpr std::uint64_t kGroupSizes = 16;
  constexpr std::uint64_t kWorks = 8;
  const std::uint64_t conv = 3 * (kGroupSizes * out + ends);
  const std::uint64_t sep = 3 * ends;
  const std::uint64_t bottlenecks = 9 * (1 + kGates.size()) * ends;
  const std::uint64_t pools = 2 * kWindows.size() * out;
  const std::uint64_t splits =
      (kWorks * kWorks) * (1 + kWorks + kWorks * kWorks) * 2 * out;  // 2, 3 or 4 parts; shuffled
  return DesignCount(conv + sep + bottlenecks + pools + splits) * kActivations.size();
}

class Icpe final : public Space {
 public:
  Icpe()
      : Space({.name = "icpe",
               .line = "nine blocks of five kinds in sequence (Li, Paolieri and Golubchik), for "
                       "learning what operators cost"},
              all_genes()) {}

  bool is_active(Design design, std::size_t gene) const override {
    if (gene < kStemGenes || gene >= kHeadActivation) return true;
    const std::size_t block = (gene - kStemGenes) / kBlockGenes;
    const std::size_t place = gene - first_gene(block);
    return (active_genes(Block(design, block)) >> place & 1U) != 0;
  }

  std::size_t next_active(Design design, std::size_t gene) const override {
    if (gene < kStemGenes || gene >= kHeadActivation) return gene;
    const std::size_t number = (gene - kStemGenes) / kBlockGenes;
    const std::size_t first = first_gene(number);
    const std::size_t passed = gene - first;
    const std::uint32_t left = active_genes(Block(design, number)) >> passed;
    if (left == 0) return first + kBlockGenes;  // the next block's kind, or the head
    return gene + static_cast<std::size_t>(std::countr_zero(left));
  }

  DesignCount size() const override {
    DesignCount count = genes()[kStemKernel].choices.size();
    count *= kActivations.size() * genes()[kStemOut].choices.size();
    for (std::size_t block = 0; block < kBlocks; ++block) count *= block_count(block);
    return count * DesignCount(kActivations.size() * genes()[kHeadOut].choices.size());
  }

 protected:
  Choice draw(core::Random& random, std::size_t gene) const override {
    const Choice choice = Space::draw(random, gene);
    const auto range = channel_range(gene);
    if (!range || !random.chance(kUsualShare)) return choice;
    const auto usual = nearest_multiple(range->low + choice, kUsualMultiple, *range);
    return static_cast<Choice>(*usual - range->low);
  }

  Result<graph::Graph> build(Design design) const override {
    std::vector<Block> blocks;
    for (std::size_t b = 0; b < kBlocks; ++b) blocks.emplace_back(design, b);
    const auto widths = fit_widths(kNarrow.low + design[kStemOut], blocks);
    return network_on_image(name(), kImage, [&](NetBuilder& net, TensorId x) {
      x = net.conv_bn(
          x, {.out = widths.channels[0], .kernel = kKernels[design[kStemKernel]], .stride = 2},
          kActivations[design[kStemActivation]]);
      for (std::size_t b = 0; b < kBlocks; ++b) {
        x = build_block(net, x, blocks[b],
                        {.out = widths.channels[b + 1], .groups = widths.groups[b]});
      }
      x = net.conv_bn(x, {.out = kHead.low + design[kHeadOut]},
                      kActivations[design[kHeadActivation]]);
      return net.linear(net.flatten(net.global_average_pool(x)), kClasses);
    });
  }

 private:
  /// Nothing for a gene that is not about channels.
  static std::optional<Range> channel_range(std::size_t gene) {
    if (gene == kStemOut) return kNarrow;
    if (gene == kHeadOut) return kHead;
    if (gene < kStemGenes || gene >= kHeadActivation) return std::nullopt;
    const std::size_t block = (gene - kStemGenes) / kBlockGenes;
    if (gene - first_gene(block) != kOut) return std::nullopt;
    return kChannels[block];
  }
};

}  // namespace

std::unique_ptr<const Space> make_icpe() { return std::make_unique<Icpe>(); }

}  // namespace fleetfit::space
