#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "fleetfit/predict/tree_model.h"

namespace fleetfit::predict {
namespace {

// A tree that was grown as far as it goes and remembers how many rows each node had, so that the
// tree which stops earlier is a part of it: one growth serves all limits.
struct GrownNode {
  std::int32_t feature = -1;
  float threshold = 0;
  float mean = 0;
  int rows = 0;
  std::size_t right = 0;  // the left child comes next
};
using GrownTree = std::vector<GrownNode>;

struct WeightedSum {
  double weight = 0;
  double sum = 0;

  void add(double w, double y) {
    weight += w;
    sum += w * y;
  }
  // What the mean explains of the squares.
  double gain() const { return weight > 0 ? sum * sum / weight : 0; }
  double mean() const { return sum / weight; }
};

struct Split {
  std::int32_t feature = -1;
  float threshold = 0;
  double gain = 0;
};

// Keeps the rows in the order of every feature. A node is a range of these lists, the same in each,
// so that no node needs to sort.
class TreeGrower {
 public:
  TreeGrower(const TrainingSet& set, const std::vector<std::uint32_t>& rows)
      : set_(set), goes_left_(set.x.rows()), spare_(rows.size()) {
    orders_.assign(set.x.columns, rows);
    for (std::size_t feature = 0; feature < orders_.size(); ++feature) {
      std::ranges::sort(orders_[feature], [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(value(a, feature), a) < std::pair(value(b, feature), b);
      });
    }
  }

  GrownTree grow() {
    struct Waiting {
      Range range;
      std::size_t parent;  // whose right child this is; none for left children
    };
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    GrownTree tree;
    std::vector<Waiting> waiting = {{{0, spare_.size()}, kNone}};
    while (!waiting.empty()) {
      const auto [range, parent] = waiting.back();
      waiting.pop_back();
      if (parent != kNone) tree[parent].right = tree.size();
      const WeightedSum all = total(range);
      const Split split = best_split(range, all);
      tree.push_back({.feature = split.feature,
                      .threshold = split.threshold,
                      .mean = static_cast<float>(all.mean()),
                      .rows = static_cast<int>(range.size())});
      if (split.feature < 0) continue;
      const std::size_t middle = part(range, split);
      waiting.push_back({{middle, range.end}, tree.size() - 1});
      waiting.push_back({{range.begin, middle}, kNone});
    }
    return tree;
  }

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;

    std::size_t size() const { return end - begin; }
  };

  float value(std::uint32_t row, std::size_t feature) const {
    return static_cast<float>(set_.x.values[row * set_.x.columns + feature]);
  }
  // The squared percentage error is a squared error weighted by 1/y^2.
  void add(WeightedSum& sum, std::uint32_t row) const {
    sum.add(1 / (set_.y[row] * set_.y[row]), set_.y[row]);
  }
  std::span<std::uint32_t> rows(const Range& range, std::size_t feature) {
    return std::span(orders_[feature]).subspan(range.begin, range.size());
  }

  WeightedSum total(const Range& range) {
    WeightedSum sum;
    for (const auto row : rows(range, 0)) add(sum, row);
    return sum;
  }

  Split best_split(const Range& range, const WeightedSum& all) {
    Split best;
    if (range.size() < 2) return best;
    best.gain = all.gain() * (1 + 1e-12);
    for (std::size_t feature = 0; feature < orders_.size(); ++feature)
      look_at(range, feature, all, best);
    return best;
  }

  void look_at(const Range& range, std::size_t feature, const WeightedSum& all, Split& best) {
    const auto sorted = rows(range, feature);
    WeightedSum left;
    float next = value(sorted.front(), feature);
    if (next == value(sorted.back(), feature)) return;
    for (std::size_t i = 0; i + 1 < sorted.size(); ++i) {
      add(left, sorted[i]);
      const float here = next;
      next = value(sorted[i + 1], feature);
      if (here == next) continue;
      const WeightedSum right{.weight = all.weight - left.weight, .sum = all.sum - left.sum};
      const double gain = left.gain() + right.gain();
      if (gain <= best.gain) continue;
      const float middle = std::midpoint(here, next);
      best = {.feature = static_cast<std::int32_t>(feature),
              .threshold = middle > here ? middle : next,
              .gain = gain};
    }
  }

  // Brings what goes left to the front of each list; gives where the rest begins.
  std::size_t part(const Range& range, const Split& split) {
    const auto by = static_cast<std::size_t>(split.feature);
    for (const auto row : rows(range, by))
      goes_left_[row] = static_cast<char>(value(row, by) < split.threshold);
    std::size_t left = 0;
    for (std::size_t feature = 0; feature < orders_.size(); ++feature) {
      const auto list = rows(range, feature);
      left = 0;
      std::size_t right = 0;
      for (const auto row : list) {
        if (goes_left_[row] != 0) {
          list[left++] = row;
        } else {
          spare_[right++] = row;
        }
      }
      std::copy_n(spare_.begin(), right, list.begin() + static_cast<std::ptrdiff_t>(left));
    }
    return range.begin + left;
  }

  const TrainingSet& set_;
  std::vector<std::vector<std::uint32_t>> orders_;  // by feature
  std::vector<char> goes_left_;                     // by row of the set
  std::vector<std::uint32_t> spare_;
};

// As many rows as there are outside of the fold, drawn with repetition from them.
std::vector<std::uint32_t> draw_rows(const TrainingSet& set, int without, core::Random random) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < set.x.rows(); ++i)
    if (set.fold[i] != without) rows.push_back(i);
  std::vector<std::uint32_t> drawn;
  for (std::size_t i = 0; i < rows.size(); ++i) drawn.push_back(rows[random.below(rows.size())]);
  return drawn;
}

std::vector<GrownTree> grow_forest(const TrainingSet& set, int without, int trees,
                                   const core::Random& random) {
  std::vector<GrownTree> forest;
  for (int t = 0; t < trees; ++t) {
    const auto rows = draw_rows(set, without, random.split(static_cast<std::uint64_t>(t)));
    if (!rows.empty()) forest.push_back(TreeGrower(set, rows).grow());
  }
  return forest;
}

std::vector<int> limits_of(const ForestOptions& options) {
  std::vector<int> limits;
  for (int limit = 2; limit <= options.most_samples_to_split;
       limit = std::max(limit + 1, limit * 3 / 2))
    limits.push_back(limit);
  return limits;
}

// The answer of a tree in which only nodes with `limit` rows or more were split.
float answer(const GrownTree& tree, std::span<const double> row, int limit) {
  std::size_t at = 0;
  while (tree[at].feature >= 0 && tree[at].rows >= limit) {
    const auto x = static_cast<float>(row[static_cast<std::size_t>(tree[at].feature)]);
    at = x < tree[at].threshold ? at + 1 : tree[at].right;
  }
  return tree[at].mean;
}

TreeModel::Tree cut(const GrownTree& grown, int limit, int trees) {
  TreeModel::Tree tree;
  std::vector<std::size_t> waiting = {0};
  while (!waiting.empty()) {
    const std::size_t at = waiting.back();
    waiting.pop_back();
    const GrownNode& node = grown[at];
    if (node.feature < 0 || node.rows < limit) {
      tree.push_back({.feature = -1, .value = node.mean / static_cast<float>(trees)});
      continue;
    }
    tree.push_back({.feature = node.feature, .value = node.threshold});
    waiting.push_back(node.right);
    waiting.push_back(at + 1);
  }
  return tree;
}

struct Choice {
  int trees = 1;
  int limit = 2;
};

// Out-of-fold predictions of every choice: by limit, then by number of trees, then by row.
class ForestGrid {
 public:
  ForestGrid(const TrainingSet& set, const ForestOptions& options)
      : set_(set), limits_(limits_of(options)), trees_(options.trees) {
    predictions_.resize(limits_.size() * static_cast<std::size_t>(trees_),
                        std::vector<double>(set.x.rows()));
  }

  void take(int fold, std::span<const GrownTree> forest) {
    for (std::size_t i = 0; i < set_.x.rows(); ++i)
      if (set_.fold[i] == fold) take_row(i, forest);
  }

  Choice best() const {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < predictions_.size(); ++i) {
      const double error = mape_percent(predictions_[i], set_.y);
      if (error >= least) continue;
      least = error;
      best = i;
    }
    const auto trees = static_cast<std::size_t>(trees_);
    return {.trees = static_cast<int>(best % trees) + 1, .limit = limits_[best / trees]};
  }

  std::vector<double> predictions(const Choice& choice) const {
    const auto limit = std::ranges::find(limits_, choice.limit) - limits_.begin();
    return predictions_[static_cast<std::size_t>(limit * trees_ + choice.trees - 1)];
  }

 private:
  void take_row(std::size_t row, std::span<const GrownTree> forest) {
    for (std::size_t l = 0; l < limits_.size(); ++l) {
      double sum = 0;
      for (std::size_t t = 0; t < forest.size(); ++t) {
        sum += answer(forest[t], set_.x.row(row), limits_[l]);
        predictions_[l * static_cast<std::size_t>(trees_) + t][row] =
            sum / static_cast<double>(t + 1);
      }
    }
  }

  const TrainingSet& set_;
  std::vector<int> limits_;
  int trees_;
  std::vector<std::vector<double>> predictions_;
};

}  // namespace

Result<FittedRegressor> fit_forest(const TrainingSet& set, const core::Random& random,
                                   core::ThreadPool& pool, const ForestOptions& options) {
  FLEETFIT_TRY(check_set(set));
  if (options.trees < 1 || options.most_samples_to_split < 2)
    return fail(ErrorCode::invalid_input, "a forest needs a tree, and a split two rows");
  std::vector<std::vector<GrownTree>> forests(static_cast<std::size_t>(set.folds) + 1);
  pool.parallel_for(forests.size(), [&](std::size_t i) {
    const int fold = i == 0 ? -1 : static_cast<int>(i) - 1;
    forests[i] = grow_forest(set, fold, options.trees, random.split(i));
    if (forests[i].empty()) forests[i] = grow_forest(set, -1, options.trees, random.split(i));
  });

  ForestGrid grid(set, options);
  for (int fold = 0; fold < set.folds; ++fold)
    grid.take(fold, forests[static_cast<std::size_t>(fold) + 1]);
  const Choice choice = grid.best();
  std::vector<TreeModel::Tree> trees;
  for (int t = 0; t < choice.trees; ++t)
    trees.push_back(cut(forests[0][static_cast<std::size_t>(t)], choice.limit, choice.trees));
  FLEETFIT_ASSIGN(auto model, TreeModel::build(trees, {.features = set.x.columns}));
  return FittedRegressor{
      .model = std::make_unique<TreeModel>(std::move(model)),
      .out_of_fold = grid.predictions(choice),
      .settings = fmt::format("{} trees, {} samples to split", choice.trees, choice.limit)};
}

}  // namespace fleetfit::predict
