#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/measure/exec_runtime.h"

namespace fleetfit::measure {
namespace {

using ::testing::ElementsAre;

TEST(SplitCommand, BlanksSeparate) {
  EXPECT_THAT(split_command("  node\tx.js  --fast\n").value(),
              ElementsAre("node", "x.js", "--fast"));
}

TEST(SplitCommand, QuotesKeepBlanks) {
  EXPECT_THAT(split_command(R"('my runner' "a b"c '' "")").value(),
              ElementsAre("my runner", "a bc", "", ""));
}

TEST(SplitCommand, BackslashesTakeTheNextCharacterAsItIs) {
  EXPECT_THAT(split_command(R"(a\ b "\"\\" '\' \')").value(),
              ElementsAre("a b", R"("\)", R"(\)", "'"));
}

TEST(SplitCommand, NoShellLooksAtIt) {
  EXPECT_THAT(split_command("a;b $HOME *|c").value(), ElementsAre("a;b", "$HOME", "*|c"));
}

TEST(SplitCommand, RefusesWhatIsNoCommand) {
  EXPECT_EQ(split_command("").error().message, "the command is empty");
  EXPECT_EQ(split_command(" \t").error().code, ErrorCode::invalid_input);
  EXPECT_EQ(split_command("a 'b").error().message, "the command cannot be read: a ' is not closed");
  EXPECT_EQ(split_command("a \"b\\\"").error().code, ErrorCode::invalid_input);
  EXPECT_EQ(split_command("a \\").error().code, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace fleetfit::measure
