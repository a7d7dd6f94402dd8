#include "fleetfit/core/program.h"

#include <gtest/gtest.h>

namespace fleetfit::core {
namespace {

TEST(OneLine, HasNothingThatATerminalWouldObey) {
  EXPECT_EQ(one_line("a\nb\tc\x1b[1md\x7f"), "a b c [1md ");
}

TEST(LastLine, IsTheLastOneThatIsNotBlank) {
  EXPECT_EQ(last_line("first\nsecond \r\n \n"), "second");
  EXPECT_EQ(last_line("only"), "only");
  EXPECT_EQ(last_line("a\n\x1b[1mb"), " [1mb");
  EXPECT_EQ(last_line(" \n\n"), "");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace fleetfit::core
