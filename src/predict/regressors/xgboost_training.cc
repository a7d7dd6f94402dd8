#include "predict/regressors/xgboost_training.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <limits>
#include <memory>
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

template <auto free>
struct Free {
  void operator()(void* handle) const { free(handle); }
};
using Matrix = std::unique_ptr<void, Free<XGDMatrixFree>>;
using Booster = std::unique_ptr<void, Free<XGBoosterFree>>;

// Null if XGBoost refuses, as the booster below.
Matrix matrix_of(std::span<const float> x, std::size_t columns) {
  DMatrixHandle created = nullptr;
  XGDMatrixCreateFromMat(x.data(), x.size() / columns, columns,
                         std::numeric_limits<float>::quiet_NaN(), &created);
  return Matrix(created);
}

bool configure(const Booster& booster, const BoostSettings& settings, std::size_t rows) {
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
  return std::ranges::all_of(parameters, [&](const auto& parameter) {
    return XGBoosterSetParam(booster.get(), parameter.first, parameter.second.c_str()) == 0;
  });
}

Booster train(const BoostRows& rows, const BoostSettings& settings) {
  const auto matrix = matrix_of(rows.x, rows.columns);
  if (!matrix ||
      XGDMatrixSetFloatInfo(matrix.get(), "label", rows.target.data(), rows.target.size()) != 0)
    return nullptr;
  const DMatrixHandle handle = matrix.get();
  BoosterHandle created = nullptr;
  XGBoosterCreate(&handle, 1, &created);
  Booster booster(created);
  if (!booster || !configure(booster, settings, rows.target.size())) return nullptr;
  for (int i = 0; i < settings.stages; ++i)
    if (XGBoosterUpdateOneIter(booster.get(), i, matrix.get()) != 0) return nullptr;
  return booster;
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
  const auto booster = train(rows, settings);
  if (!booster) return refused();
  bst_ulong length = 0;
  const char* text = nullptr;
  if (XGBoosterSaveModelToBuffer(booster.get(), R"({"format":"json"})", &length, &text) != 0)
    return refused();
  return read_trees({text, length});
}

Result<std::vector<float>> answers_of_xgboost(const BoostRows& trained,
                                              const BoostSettings& settings,
                                              std::span<const float> x) {
  const auto booster = train(trained, settings);
  if (!booster) return refused();
  const auto asked = matrix_of(x, trained.columns);
  bst_ulong length = 0;
  const float* answers = nullptr;
  if (!asked || XGBoosterPredict(booster.get(), asked.get(), 0, 0, 0, &length, &answers) != 0)
    return refused();
  return std::vector<float>(answers, answers + length);
}

}  // namespace fleetfit::predict
