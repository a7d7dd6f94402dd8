#include "train/checkpoint.h"

#include <gmock/gmock.h>

#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::train {
namespace {

std::vector<predict::DenseLayer> two_layers() {
  return {{.inputs = 2, .outputs = 1, .weights = {1, 2}, .bias = {3}},
          {.inputs = 1, .outputs = 2, .weights = {4, 5}, .bias = {6, 7}}};
}

TEST(FinishedNetworks, AreFoundAgainByTheSameTraining) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "part";
  {
    FinishedNetworks first(file, "this");
    EXPECT_FALSE(first.find("a"));
    ASSERT_TRUE(first.keep("a", two_layers()));
    ASSERT_TRUE(first.keep("b", {two_layers()[0]}));
  }
  const FinishedNetworks again(file, "this");
  const auto found = again.find("a");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2);
  EXPECT_THAT((*found)[1].weights, testing::ElementsAre(4, 5));
  EXPECT_THAT((*found)[1].bias, testing::ElementsAre(6, 7));
  EXPECT_EQ(again.find("b")->size(), 1);
}

TEST(FinishedNetworks, OfAnotherTrainingOrDamagedCountForNothing) {
  const core::TemporaryFolder folder;
  const auto file = folder.path() / "part";
  ASSERT_TRUE(FinishedNetworks(file, "this").keep("a", two_layers()));
  EXPECT_FALSE(FinishedNetworks(file, "other").find("a"));
  auto bytes = core::read_file(file).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(core::write_file(file, bytes));
  EXPECT_FALSE(FinishedNetworks(file, "this").find("a"));
}

}  // namespace
}  // namespace fleetfit::train
