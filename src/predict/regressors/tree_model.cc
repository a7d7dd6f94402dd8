#include "fleetfit/predict/tree_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "predict/documents.h"

namespace fleetfit::predict {
namespace {

// Reads one number after the other from a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool done() const { return at_ == end_; }

  bool take(char wanted) {
    if (done() || *at_ != wanted) return false;
    ++at_;
    return true;
  }

  template <class Number>
  bool read(Number& number) {
    const auto [stop, problem] = std::from_chars(at_, end_, number);
    at_ = stop;
    return problem == std::errc();
  }

 private:
  const char* at_;
  const char* end_;
};

bool read_node(Reader& reader, TreeModel::Node& node) {
  if (reader.take('=')) return reader.read(node.value);
  return reader.read(node.feature) && node.feature >= 0 && reader.take('<') &&
         reader.read(node.value);
}

constexpr std::size_t kRowsInCache = 64;  // rows whose features stay in the first cache
constexpr std::size_t kWalks = 8;         // walks that a core can overlap
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr int kMostDepth = 1000;

// Never infinite and never NaN: a walk must not leave a leaf.
float as_feature(double value) {
  if (!(value < kLargest)) return std::numeric_limits<float>::max();
  return static_cast<float>(std::max(value, -kLargest));
}

// Subtrees that are still to come, and the deepest level reached.
struct Shape {
  bool whole = false;
  int depth = 0;
};

Shape shape_of(const TreeModel::Tree& tree) {
  std::vector<int> levels = {0};
  int deepest = 0;
  for (const auto& node : tree) {
    if (levels.empty()) return {};
    const int level = levels.back();
    levels.pop_back();
    deepest = std::max(deepest, level);
    if (node.feature >= 0) levels.insert(levels.end(), 2, level + 1);
  }
  return {.whole = levels.empty(), .depth = deepest};
}

Status check(const TreeModel::Tree& tree, std::size_t features) {
  for (const auto& node : tree) {
    if (node.feature >= 0 && static_cast<std::size_t>(node.feature) >= features)
      return refuse(fmt::format("feature {} is none of {}", node.feature, features));
    if (!std::isfinite(node.value)) return refuse("a number is not finite");
  }
  const Shape shape = shape_of(tree);
  if (!shape.whole) return refuse("it is not whole");
  if (shape.depth > kMostDepth) return refuse(fmt::format("it is deeper than {}", kMostDepth));
  return {};
}

// Where the right subtree of each inner node begins.
std::vector<std::size_t> right_children(const TreeModel::Tree& tree) {
  std::vector<std::size_t> right(tree.size(), 0);
  std::vector<std::size_t> ends(tree.size(), 0);
  for (std::size_t i = tree.size(); i-- > 0;) {
    if (tree[i].feature < 0) {
      ends[i] = i + 1;
    } else {
      right[i] = ends[i + 1];
      ends[i] = ends[right[i]];
    }
  }
  return right;
}

}  // namespace

std::string format_tree(const TreeModel::Tree& tree) {
  std::string text;
  for (const auto& node : tree) {
    if (!text.empty()) text += ' ';
    if (node.feature < 0) {
      fmt::format_to(std::back_inserter(text), "={}", node.value);
    } else {
      fmt::format_to(std::back_inserter(text), "{}<{}", node.feature, node.value);
    }
  }
  return text;
}

Result<TreeModel::Tree> parse_tree(std::string_view text) {
  TreeModel::Tree tree;
  tree.reserve(text.size() / 8);
  Reader reader(text);
  while (!reader.done()) {
    TreeModel::Node node;
    if ((!tree.empty() && !reader.take(' ')) || !read_node(reader, node)) {
      return refuse(fmt::format("node {} is neither FEATURE<THRESHOLD nor =VALUE", tree.size()));
    }
    tree.push_back(node);
  }
  return tree;
}

void ProductModel::predict(const MatrixView& rows, std::span<double> out) const {
  correction_.predict(rows, out);
  std::vector<double> prices(out.size());
  linear_.predict(rows, prices);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] *= prices[i];
}

nlohmann::json ProductModel::to_json() const {
  return {
      {"type", "product"}, {"linear", linear_.to_json()}, {"correction", correction_.to_json()}};
}

Result<std::unique_ptr<Regressor>> ProductModel::from_json(const core::JsonView& json,
                                                           std::size_t features) {
  FLEETFIT_ASSIGN(const auto linear_json, json.at("linear"));
  FLEETFIT_ASSIGN(const auto linear, LinearModel::from_json(linear_json, features));
  FLEETFIT_ASSIGN(const auto correction_json, json.at("correction"));
  FLEETFIT_ASSIGN(const auto correction, TreeModel::from_json(correction_json, features));
  return std::make_unique<ProductModel>(dynamic_cast<const LinearModel&>(*linear),
                                        dynamic_cast<const TreeModel&>(*correction));
}

Result<TreeModel> TreeModel::build(std::span<const Tree> trees, const Settings& settings) {
  if (settings.features == 0) return refuse("trees need at least one feature");
  if (!std::isfinite(settings.base)) return refuse("the base is not finite");
  TreeModel model(settings);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (auto checked = check(trees[i], settings.features); !checked)
      return core::within(fmt::format("tree {}", i), checked.error());
    model.add(trees[i]);
  }
  return model;
}

void TreeModel::add(const Tree& tree) {
  const auto right = right_children(tree);
  const auto root = static_cast<std::int32_t>(nodes_.size());
  nodes_.resize(nodes_.size() + tree.size());
  std::vector<std::pair<std::size_t, std::int32_t>> waiting = {{0, root}};  // in the tree, here
  std::int32_t next = root + 1;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const auto [from, to] = waiting[i];
    const Node& node = tree[from];
    FlatNode& flat = nodes_[static_cast<std::size_t>(to)];
    if (node.feature < 0) {
      flat = {.threshold = kInfinity, .feature = 0, .left = to, .value = node.value};
      continue;
    }
    flat = {.threshold = node.value, .feature = node.feature, .left = next, .value = 0};
    waiting.emplace_back(from + 1, next);
    waiting.emplace_back(right[from], next + 1);
    next += 2;
  }
  roots_.push_back(root);
  depths_.push_back(shape_of(tree).depth);
}

TreeModel::Tree TreeModel::tree(std::size_t index) const {
  Tree tree;
  std::vector<std::int32_t> waiting = {roots_[index]};
  while (!waiting.empty()) {
    const std::int32_t at = waiting.back();
    waiting.pop_back();
    const FlatNode& node = nodes_[static_cast<std::size_t>(at)];
    if (node.left == at) {
      tree.push_back({.feature = -1, .value = node.value});
      continue;
    }
    tree.push_back({.feature = node.feature, .value = node.threshold});
    waiting.push_back(node.left + 1);
    waiting.push_back(node.left);
  }
  return tree;
}

double TreeModel::answer(float sum) const {
  return settings_.link == Link::logarithm ? std::exp(static_cast<double>(sum)) : sum;
}

void TreeModel::predict(const MatrixView& rows, std::span<double> out) const {
  for (std::size_t begin = 0; begin < rows.rows(); begin += kRowsInCache) {
    const std::size_t count = std::min(kRowsInCache, rows.rows() - begin);
    predict_block(rows, begin, out.subspan(begin, count));
  }
}

void TreeModel::predict_block(const MatrixView& rows, std::size_t begin,
                              std::span<double> out) const {
  const std::size_t columns = settings_.features;
  const std::size_t padded = (out.size() + kWalks - 1) / kWalks * kWalks;
  std::vector<float> x(padded * columns, 0.0F);
  for (std::size_t i = 0; i < out.size(); ++i)
    std::ranges::transform(rows.row(begin + i), x.data() + i * columns, as_feature);

  std::array<float, kRowsInCache> sums;
  sums.fill(settings_.base);
  for (std::size_t t = 0; t < roots_.size(); ++t) {
    for (std::size_t group = 0; group < padded; group += kWalks) {
      const float* const features = x.data() + group * columns;
      std::array<std::int32_t, kWalks> at;
      at.fill(roots_[t]);
      for (int level = 0; level < depths_[t]; ++level) {
        for (std::size_t lane = 0; lane < kWalks; ++lane) {
          const FlatNode& node = nodes_[static_cast<std::size_t>(at[lane])];
          const float value = features[lane * columns + static_cast<std::size_t>(node.feature)];
          at[lane] = node.left + static_cast<std::int32_t>(!(value < node.threshold));
        }
      }
      for (std::size_t lane = 0; lane < kWalks; ++lane)
        sums[group + lane] += nodes_[static_cast<std::size_t>(at[lane])].value;
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = answer(sums[i]);
}

std::vector<double> TreeModel::staged(std::span<const double> row) const {
  std::vector<double> answers;
  answers.reserve(roots_.size());
  float sum = settings_.base;
  for (std::size_t t = 0; t < roots_.size(); ++t) {
    std::int32_t at = roots_[t];
    for (int level = 0; level < depths_[t]; ++level) {
      const FlatNode& node = nodes_[static_cast<std::size_t>(at)];
      const float value = as_feature(row[static_cast<std::size_t>(node.feature)]);
      at = node.left + static_cast<std::int32_t>(!(value < node.threshold));
    }
    sum += nodes_[static_cast<std::size_t>(at)].value;
    answers.push_back(answer(sum));
  }
  return answers;
}

nlohmann::json TreeModel::to_json() const {
  auto trees_json = nlohmann::json::array();
  for (std::size_t t = 0; t < roots_.size(); ++t) trees_json.push_back(format_tree(tree(t)));
  return {{"type", "trees"},
          {"link", settings_.link == Link::logarithm ? "logarithm" : "identity"},
          {"base", settings_.base},
          {"trees", std::move(trees_json)}};
}

Result<std::unique_ptr<Regressor>> TreeModel::from_json(const core::JsonView& json,
                                                        std::size_t features) {
  FLEETFIT_ASSIGN(const auto link, json.text("link"));
  if (link != "logarithm" && link != "identity")
    return json.at("link")->error(fmt::format("there is no link '{}'", link));
  FLEETFIT_ASSIGN(const auto base, json.number("base"));
  FLEETFIT_ASSIGN(const auto texts, json.at("trees"));
  if (!texts.value().is_array()) return texts.error("expected a list of trees");

  TreeModel model({.features = features,
                   .link = link == "logarithm" ? Link::logarithm : Link::identity,
                   .base = static_cast<float>(base)});
  std::size_t index = 0;
  for (const auto& text : texts.value()) {
    if (!text.is_string()) return texts.error(fmt::format("tree {} is no text", index));
    auto tree = parse_tree(text.get_ref<const std::string&>());
    if (!tree) return texts.error(fmt::format("tree {}: {}", index, tree.error().message));
    if (auto checked = check(*tree, features); !checked)
      return texts.error(fmt::format("tree {}: {}", index, checked.error().message));
    model.add(*tree);
    ++index;
  }
  return std::make_unique<TreeModel>(std::move(model));
}

}  // namespace fleetfit::predict
