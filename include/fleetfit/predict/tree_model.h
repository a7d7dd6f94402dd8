#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/predict/linear_model.h"
#include "fleetfit/predict/regressor.h"

namespace fleetfit::predict {

/// How the sum of the trees becomes the answer.
enum class Link {
  identity,   ///< it is the answer
  logarithm,  ///< it is the answer's natural logarithm, so that the answer is positive
};

/// A sum of regression trees, laid out for speed. Features and thresholds are compared and leaves
/// added up as floats, one tree after the other, which gives bit by bit what XGBoost gives. A
/// feature that is not a number counts as a very large one.
class TreeModel final : public Regressor {
 public:
  /// A node in preorder: the left subtree of an inner node follows it, then its right one.
  struct Node {
    std::int32_t feature = -1;  ///< -1: a leaf
    float value = 0;            ///< rows whose feature is less go left; of a leaf its value
  };
  using Tree = std::vector<Node>;

  struct Settings {
    std::size_t features = 0;
    Link link = Link::identity;
    float base = 0;  ///< added to the sum of the trees
  };

  /// Fails with `invalid_input`, naming the tree, if it is not whole, has a feature that rows do
  /// not have, or a number that is not finite.
  static Result<TreeModel> build(std::span<const Tree> trees, const Settings& settings);

  std::size_t trees() const { return roots_.size(); }

  std::size_t features() const override { return settings_.features; }
  void predict(const MatrixView& rows, std::span<double> out) const override;
  /// The answer of the first 1, 2, 3, … trees for a row.
  std::vector<double> staged(std::span<const double> row) const;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<Regressor>> from_json(const core::JsonView& json,
                                                      std::size_t features);

 private:
  // The children of a node are neighbours. A leaf is its own left child and asks whether a feature
  // is less than infinity, so that a walk of fixed length ends in it without a branch.
  struct FlatNode {
    float threshold = 0;
    std::int32_t feature = 0;
    std::int32_t left = 0;
    float value = 0;
  };

  explicit TreeModel(const Settings& settings) : settings_(settings) {}
  void add(const Tree& tree);
  Tree tree(std::size_t index) const;
  void predict_block(const MatrixView& rows, std::size_t begin, std::span<double> out) const;
  double answer(float sum) const;

  Settings settings_;
  std::vector<FlatNode> nodes_;
  std::vector<std::int32_t> roots_;
  std::vector<int> depths_;
};

/// A linear model times the correction that trees give: the first knows how prices grow beyond
/// what was measured, the second how well the device does what it was measured with.
class ProductModel final : public Regressor {
 public:
  /// Both take rows of the same length.
  ProductModel(LinearModel linear, TreeModel correction)
      : linear_(std::move(linear)), correction_(std::move(correction)) {}

  std::size_t features() const override { return linear_.features(); }
  void predict(const MatrixView& rows, std::span<double> out) const override;
  nlohmann::json to_json() const override;

  static Result<std::unique_ptr<Regressor>> from_json(const core::JsonView& json,
                                                      std::size_t features);

 private:
  LinearModel linear_;
  TreeModel correction_;
};

/// A tree as text, "3<12.5 0<1 =0.25 =-1 =7" in preorder: inner nodes with feature and threshold,
/// leaves with their value.
std::string format_tree(const TreeModel::Tree& tree);

/// Fails with `invalid_input` on anything else.
Result<TreeModel::Tree> parse_tree(std::string_view text);

struct ForestOptions {
  int trees = 10;
  std::vector<double> least_child_samples = {1, 4};  ///< rows on each side of a split
  double subsample = 0.8;                            ///< share of the rows that each tree sees
};

/// Random forest, grown by XGBoost: each tree is fitted to some of the rows, to the logarithm of
/// the time.
Result<FittedRegressor> fit_forest(const TrainingSet& set, const core::Random& random,
                                   core::ThreadPool& pool, const ForestOptions& options = {});

/// What the trees have to explain. The squared error of a logarithm is nearly the squared
/// percentage error; weighting times by 1 / time^2 instead was much less accurate.
enum class BoostTarget {
  logarithm,   ///< the logarithm of the time
  correction,  ///< the logarithm of the factor between the time and what a Lasso model says
};

struct BoostOptions {
  int stages = 200;  ///< cross-validation takes from 1 to this many
  std::vector<int> depths = {3, 5};
  std::vector<double> least_child_samples = {1, 4};  ///< rows on each side of a split
  std::vector<double> leaf_penalties = {0.5, 5};     ///< L2, in rows: small leaves are drawn to 0
  double learning_rate = 0.1;
  double subsample = 0.6;  ///< share of the rows that each tree sees
  BoostTarget target = BoostTarget::correction;
};

/// Gradient-boosted trees, fitted by XGBoost.
Result<FittedRegressor> fit_boosted_trees(const TrainingSet& set, const core::Random& random,
                                          core::ThreadPool& pool, const BoostOptions& options = {});

}  // namespace fleetfit::predict
