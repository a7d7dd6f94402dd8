#include "fleetfit/core/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fleetfit::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> take_all(LineSplitter& lines) {
  std::vector<std::string> all;
  while (const auto line = lines.next()) all.push_back(line->too_long ? "too long" : line->text);
  return all;
}

TEST(LineSplitter, PutsLinesTogetherFromPieces) {
  LineSplitter lines(100);
  lines.add("on");
  EXPECT_THAT(take_all(lines), IsEmpty());
  lines.add("e\n\ntwo\r\nth");
  EXPECT_THAT(take_all(lines), ElementsAre("one", "", "two\r"));
  EXPECT_EQ(lines.held_bytes(), 2u);
  EXPECT_EQ(lines.rest()->text, "th");
  EXPECT_FALSE(lines.rest());
  EXPECT_EQ(lines.held_bytes(), 0u);
}

TEST(LineSplitter, KeepsNothingOfALineThatIsTooLong) {
  LineSplitter lines(5);
  lines.add("12345\n123");
  EXPECT_FALSE(lines.runs_over());
  lines.add("456");
  EXPECT_TRUE(lines.runs_over());
  EXPECT_EQ(lines.held_bytes(), 5u);
  lines.add("789\nnext\n");
  EXPECT_FALSE(lines.runs_over());
  EXPECT_THAT(take_all(lines), ElementsAre("12345", "too long", "next"));
}

TEST(LineSplitter, TheLastLineMayBeTooLongAndLackItsEnd) {
  LineSplitter lines(2);
  lines.add("abc");
  EXPECT_TRUE(lines.rest()->too_long);
  EXPECT_FALSE(lines.rest());
}

}  // namespace
}  // namespace fleetfit::core
