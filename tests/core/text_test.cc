#include "fleetfit/core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "fleetfit/core/random.h"

namespace fleetfit::core {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// By another reader of UTF-8.
bool is_utf8(const std::string& text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

TEST(Visible, KeepsWhatPeopleWrite) {
  const std::string text = "naïve café, 速い, 🙂\n\tand so on";
  EXPECT_EQ(visible(text), text);
}

TEST(Visible, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(visible("a\xff\xfe"), "a\\xff\\xfe");
  EXPECT_EQ(visible("\xc3("), "\\xc3(");
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a pair
  EXPECT_EQ(visible("\xc0\xaf"), "\\xc0\\xaf");           // longer than need be
  EXPECT_EQ(visible("\xe2\x82"), "\\xe2\\x82");           // ends too soon
}

TEST(Visible, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(visible("\x1b[1m\x7f"), "\\x1b[1m\\x7f");
  EXPECT_EQ(visible("\xc2\x9b"), "\\xc2\\x9b");           // one of the second set of controls
  EXPECT_EQ(visible("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // writes from right to left
  EXPECT_EQ(visible(std::string("\0", 1)), "\\x00");
}

TEST(VisibleInLine, NamesLineEndsAndTabs) { EXPECT_EQ(visible_in_line("a\r\n\tb"), "a\\r\\n\\tb"); }

TEST(Visible, IsUtf8WhateverTheBytes) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(12, ' ');
    for (auto& byte : bytes) byte = static_cast<char>(random.below(256));
    EXPECT_TRUE(is_utf8(visible(bytes)));
    const auto line = visible_in_line(bytes);
    EXPECT_TRUE(is_utf8(line));
    EXPECT_TRUE(std::ranges::none_of(
        line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }));
  }
}

TEST(Shortened, LeavesShortMessagesAlone) { EXPECT_EQ(shortened("a 'b' c", 7), "a 'b' c"); }

TEST(Shortened, CutsTheMiddleOfWhatIsQuoted) {
  const auto text = shortened("a.csv:3: '" + std::string(3000, 'x') + "' is no number", 100);
  EXPECT_THAT(text, StartsWith("a.csv:3: 'xxx"));
  EXPECT_THAT(text, HasSubstr("x…x"));
  EXPECT_THAT(text, EndsWith("xxx' is no number"));
  EXPECT_EQ(text.size(), 100U + std::string("…").size() - 1);
}

TEST(Shortened, KeepsBothEndsIfNothingIsQuoted) {
  const auto text = shortened("a.csv:3: " + std::string(3000, 'x') + " is no number", 100);
  EXPECT_THAT(text, StartsWith("a.csv:3: xxx"));
  EXPECT_THAT(text, EndsWith("xxx is no number"));
}

TEST(Shortened, CountsCharactersAndCutsNone) {
  std::string many;
  for (int i = 0; i < 500; ++i) many += "é";
  const auto text = shortened("'" + many + "'", 101);
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(std::ranges::count_if(text, [](char c) { return (c & '\xc0') != '\x80'; }), 101);
}

}  // namespace
}  // namespace fleetfit::core
