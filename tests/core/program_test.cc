#include "fleetfit/core/program.h"

#include <gtest/gtest.h>

namespace fleetfit::core {
namespace {

TEST(OneLine, HasNothingThatATerminalWouldObey) {
  EXPECT_EQ(one_line("a\nb\tc\x1b[1md\x7f"), "a b c [1md ");
}

TEST(OneLine, IsUtf8WhateverIsInIt) { EXPECT_EQ(one_line("\xff 'é\xc3'"), "\\xff 'é\\xc3'"); }

TEST(MessageLine, HasAtMostAThousandCharacters) {
  const auto line = message_line("a.csv:3: '" + std::string(100'000, '\xff') + "' is no number");
  EXPECT_LE(line.size(), 1000U + 2);  // "…" has three octets
  EXPECT_TRUE(line.starts_with("a.csv:3: '\\xff"));
  EXPECT_TRUE(line.ends_with("' is no number"));
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
