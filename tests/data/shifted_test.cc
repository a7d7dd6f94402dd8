#include "data/sources.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

namespace fleetfit::data {
namespace {

using ::testing::HasSubstr;

/// Items without pixels whose classes take turns.
class Turns : public Dataset {
 public:
  Turns(std::size_t classes, std::size_t each) : size_(classes * each) {
    for (std::size_t i = 0; i < classes; ++i) classes_.push_back(std::to_string(i));
  }

  std::size_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<Item> item(std::size_t index) const override {
    return Item{.label = static_cast<std::int64_t>(index % classes_.size())};
  }

 private:
  std::size_t size_;
  std::vector<std::string> classes_;
};

std::vector<double> counts_of(const Dataset& data) {
  std::vector<double> counts(data.classes().size());
  for (std::size_t i = 0; i < data.size(); ++i)
    ++counts[static_cast<std::size_t>(data.item(i).value().label)];
  return counts;
}

TEST(Shifted, KeepsAsManyItemsAsTheSharesAllow) {
  const Shift shift{.alpha = 0.7, .seed = 3};
  const auto shares = draw_shares(4, shift);
  const auto data = shift_classes(std::make_unique<Turns>(4, 1000), shift).value();
  const auto counts = counts_of(*data);
  const double most = std::ranges::max(shares);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(counts[i], 1000 * shares[i] / most, 0.51);
}

TEST(Shifted, SharesHaveTheMomentsOfDirichletsDistribution) {
  // Mean 1/k, variance (1/k)(1 - 1/k) / (k alpha + 1); 4,000 draws.
  for (const double alpha : {0.3, 1.0, 5.0}) {
    constexpr std::size_t kClasses = 5;
    double sum = 0;
    double squares = 0;
    for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
      const auto shares = draw_shares(kClasses, {.alpha = alpha, .seed = seed});
      EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 1, 1e-12);
      sum += shares[2];
      squares += shares[2] * shares[2];
    }
    const double mean = sum / 4000;
    const double variance = 0.2 * 0.8 / (kClasses * alpha + 1);
    EXPECT_NEAR(mean, 0.2, 5 * std::sqrt(variance / 4000));
    EXPECT_NEAR(squares / 4000 - mean * mean, variance, 0.15 * variance);
  }
}

TEST(Shifted, AllSplitsHaveTheSameShares) {
  const Shift shift{.alpha = 2, .seed = 9};
  const auto train = counts_of(*shift_classes(std::make_unique<Turns>(3, 900), shift).value());
  const auto test = counts_of(*shift_classes(std::make_unique<Turns>(3, 300), shift).value());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(train[i], 3 * test[i], 2.1);
}

TEST(Shifted, TinyParametersLeaveOneClass) {
  const auto data =
      shift_classes(std::make_unique<Turns>(4, 50), {.alpha = 0.001, .seed = 5}).value();
  EXPECT_GE(std::ranges::max(counts_of(*data)), 50);
}

TEST(Shifted, ReadsItsSpec) {
  const auto shift = parse_shift("shifted:0.5@7:idx:some/folder").value();
  EXPECT_DOUBLE_EQ(shift.alpha, 0.5);
  EXPECT_EQ(shift.seed, 7U);
  EXPECT_EQ(shift.spec, "idx:some/folder");
  EXPECT_EQ(parse_shift("shifted:2:fashion-mnist").value().seed, 1U);
}

TEST(Shifted, NamesWhatIsWrong) {
  for (const auto* spec : {"shifted:", "shifted:1", "shifted:0:idx:a", "shifted:-1:idx:a",
                           "shifted:nan:idx:a", "shifted:1@:idx:a", "shifted:1@x:idx:a",
                           "shifted:1@-2:idx:a", "shifted:1:", "shifted:1e9:idx:a"}) {
    const auto data = open_dataset(spec, Split::test);
    ASSERT_FALSE(data) << spec;
    EXPECT_THAT(data.error().message, HasSubstr(spec));
  }
  const auto twice = open_dataset("shifted:1:shifted:1:idx:a", Split::test);
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message, HasSubstr("twice"));
}

}  // namespace
}  // namespace fleetfit::data
