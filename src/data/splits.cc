#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/sources.h"
#include "fleetfit/core/random.h"

namespace fleetfit::data {
namespace {

class Subset : public Dataset {
 public:
  Subset(std::unique_ptr<Dataset> data, std::vector<std::size_t> indices)
      : data_(std::move(data)), indices_(std::move(indices)) {}

  std::size_t size() const override { return indices_.size(); }
  const std::vector<std::string>& classes() const override { return data_->classes(); }
  Result<Item> item(std::size_t index) const override { return data_->item(indices_[index]); }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::size_t> indices_;
};

std::size_t share_of(std::size_t count, double share) {
  return static_cast<std::size_t>(std::round(share * static_cast<double>(count)));
}

}  // namespace

std::unique_ptr<Dataset> subset(std::unique_ptr<Dataset> data, std::vector<std::size_t> indices) {
  return std::make_unique<Subset>(std::move(data), std::move(indices));
}

std::vector<std::size_t> chosen_items(std::size_t count, Split split, const SplitOptions& options) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (split == Split::all) return order;
  core::Random(options.seed).shuffle(order);
  const auto test = share_of(count, options.test_share);
  const auto validation = share_of(count - test, options.validation_share);
  const std::span all(order);
  auto part = all.subspan(test + validation);
  if (split == Split::test) part = all.first(test);
  if (split == Split::validation) part = all.subspan(test, validation);
  std::vector<std::size_t> chosen(part.begin(), part.end());
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace fleetfit::data
