#include "predict/regressors/xgboost_training.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "fleetfit/core/json.h"

namespace fleetfit::predict {
namespace {

// Every value is tried as a threshold where that is quick, else 64 quantiles.
constexpr std::size_t kRowsForExactSplits = 500;

tl::unexpected<Error> refused() {
  return fail(ErrorCode::internal, fmt::format("XGBoost: {}", XGBGetLastError()));
}

class Matrix {
 public:
  Matrix() = default;
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() {
    if (handle_ != nullptr) XGDMatrixFree(handle_);
  }

  bool fill(std::span<const float> x, std::size_t columns) {
    return XGDMatrixCreateFromMat(x.data(), x.size() / columns, columns,
                                  std::numeric_limits<float>::quiet_NaN(), &handle_) == 0;
  }
  bool set(const char* field, std::span<const float> values) {
    return XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()) == 0;
  }
  DMatrixHandle handle() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

class Booster {
 public:
  Booster() = default;
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  ~Booster() {
    if (handle_ != nullptr) XGBoosterFree(handle_);
  }

  bool create(const Matrix& matrix) {
    const DMatrixHandle rows = matrix.handle();
    return XGBoosterCreate(&rows, 1, &handle_) == 0;
  }
  bool set(const char* name, const std::string& value) {
    return XGBoosterSetParam(handle_, name, value.c_str()) == 0;
  }
  bool boost(const Matrix& matrix, int stages) {
    for (int i = 0; i < stages; ++i)
      if (XGBoosterUpdateOneIter(handle_, i, matrix.handle()) != 0) return false;
    return true;
  }
  BoosterHandle handle() const { return handle_; }

 private:
  BoosterHandle handle_ = nullptr;
};

bool configure(Booster& booster, const BoostSettings& settings, std::size_t rows) {
  const bool exact = settings.splits == Splits::all || rows <= kRowsForExactSplits;
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", "reg:squarederror"},
      {"tree_method", exact ? "exact" : "hist"},
      {"max_bin", "64"},
      {"nthread", "1"},
      {"verbosity", "0"},
      {"seed", std::to_string(settings.seed)},
      {"base_score", fmt::format("{}", settings.base)},
      {"max_depth", std::to_string(settings.depth)},
      {"min_child_weight", fmt::format("{}", settings.least_child_weight)},
      {"eta", fmt::format("{}", settings.learning_rate)},
      {"num_parallel_tree", std::to_string(settings.trees_per_stage)},
      {"subsample", fmt::format("{}", settings.subsample)},
      {"lambda", fmt::format("{}", settings.leaf_penalty)},
  };
  for (const auto& [name, value] : parameters)
    if (!booster.set(name, value)) return false;
  return true;
}

bool train(const BoostRows& rows, const BoostSettings& settings, Matrix& matrix, Booster& booster) {
  return matrix.fill(rows.x, rows.columns) && matrix.set("label", rows.target) &&
         booster.create(matrix) && configure(booster, settings, rows.target.size()) &&
         booster.boost(matrix, settings.stages);
}

// A node and what hangs from it, in preorder.
TreeModel::Tree read_tree(const nlohmann::json& json) {
  const auto& left = json.at("left_children");
  const auto& right = json.at("right_children");
  const auto& feature = json.at("split_indices");
  const auto& value = json.at("split_conditions");
  TreeModel::Tree tree;
  std::vector<std::size_t> waiting = {0};
  while (!waiting.empty()) {
    const std::size_t at = waiting.back();
    waiting.pop_back();
    const bool leaf = left.at(at).get<int>() < 0;
    tree.push_back({.feature = leaf ? -1 : feature.at(at).get<std::int32_t>(),
                    .value = value.at(at).get<float>()});
    if (leaf) continue;
    waiting.push_back(right.at(at).get<std::size_t>());
    waiting.push_back(left.at(at).get<std::size_t>());
  }
  return tree;
}

Result<std::vector<TreeModel::Tree>> read_trees(std::string_view text) {
  FLEETFIT_ASSIGN(const auto json, core::parse_json(text, "XGBoost's model"));
  try {
    std::vector<TreeModel::Tree> trees;
    for (const auto& tree : json.at("learner").at("gradient_booster").at("model").at("trees"))
      trees.push_back(read_tree(tree));
    return trees;
  } catch (const nlohmann::json::exception& problem) {
    return fail(ErrorCode::internal, fmt::format("XGBoost's model: {}", problem.what()));
  }
}

}  // namespace

Result<std::vector<TreeModel::Tree>> grow_trees(const BoostRows& rows,
                                                const BoostSettings& settings) {
  Matrix matrix;
  Booster booster;
  if (!train(rows, settings, matrix, booster)) return refused();
  bst_ulong length = 0;
  const char* text = nullptr;
  if (XGBoosterSaveModelToBuffer(booster.handle(), R"({"format":"json"})", &length, &text) != 0)
    return refused();
  return read_trees({text, length});
}

Result<std::vector<float>> answers_of_xgboost(const BoostRows& trained,
                                              const BoostSettings& settings,
                                              std::span<const float> x) {
  Matrix matrix;
  Booster booster;
  if (!train(trained, settings, matrix, booster)) return refused();
  Matrix asked;
  bst_ulong length = 0;
  const float* answers = nullptr;
  if (!asked.fill(x, trained.columns) ||
      XGBoosterPredict(booster.handle(), asked.handle(), 0, 0, 0, &length, &answers) != 0)
    return refused();
  return std::vector<float>(answers, answers + length);
}

}  // namespace fleetfit::predict
