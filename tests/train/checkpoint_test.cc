#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::train {
namespace {

using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "m.onnx.training"; }

  Error error_of(const std::string& bytes) const {
    EXPECT_TRUE(core::write_file(file(), bytes, core::Durability::scratch));
    const auto read = read_checkpoint(file());
    EXPECT_FALSE(read);
    return read ? Error{} : read.error();
  }

  core::TemporaryFolder folder_;
};

TEST_F(CheckpointTest, IsReadBackAsItWasWritten) {
  const Checkpoint written{.notes = R"({"epoch": 3})", .numbers = {{1.5F, -2}, {}, {0.25F}}};
  ASSERT_TRUE(write_checkpoint(file(), written));
  const auto read = read_checkpoint(file()).value();
  EXPECT_EQ(read.notes, written.notes);
  EXPECT_EQ(read.numbers, written.numbers);
}

TEST_F(CheckpointTest, IsRefusedWhenItIsDamaged) {
  ASSERT_TRUE(write_checkpoint(file(), {.notes = "{}", .numbers = {{1, 2, 3}}}));
  const auto whole = core::read_file(file()).value();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_EQ(error_of(damaged).code, ErrorCode::invalid_input) << i;
    EXPECT_EQ(error_of(whole.substr(0, i)).code, ErrorCode::invalid_input) << i;
  }
  EXPECT_THAT(error_of("something else").message, HasSubstr("m.onnx.training"));
}

TEST_F(CheckpointTest, ThatIsNotThereIsNotFound) {
  EXPECT_EQ(read_checkpoint(file()).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace fleetfit::train
