#include "fleetfit/data/texts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/core/temporary_folder.h"
#include "tests/shared_data.h"

namespace fleetfit::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += "\"" + std::to_string(i % 4 + 1) + "\",\"Title " + std::to_string(i) +
            "\",\"He said \"\"no\"\", twice\"\n";
  return text;
}

class News : public ::testing::Test {
 protected:
  std::string spec(const std::string& name) const {
    return "ag-news:" + (folder_.path() / name).string();
  }
  std::string message(const std::string& content) {
    folder_.file("bad.csv", content);
    return open_texts(spec("bad.csv"), Split::all).error().message;
  }

  core::TemporaryFolder folder_;
};

TEST_F(News, RowIsClassTitleAndDescription) {
  folder_.file("news.csv", rows(8));
  const auto texts = open_texts(spec("news.csv"), Split::all).value();
  ASSERT_EQ(texts.texts.size(), 8U);
  EXPECT_EQ(texts.texts[1], "Title 1 He said \"no\", twice");
  EXPECT_THAT(texts.labels, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(texts.classes, ElementsAre("World", "Sports", "Business", "Sci/Tech"));
}

TEST_F(News, OneFileIsSplitWithoutOverlap) {
  folder_.file("news.csv", rows(100));
  std::set<std::string> seen;
  for (const auto& [split, count] :
       {std::pair(Split::train, 72U), {Split::validation, 8U}, {Split::test, 20U}}) {
    const auto texts = open_texts(spec("news.csv"), split).value();
    EXPECT_EQ(texts.texts.size(), count);
    for (const auto& text : texts.texts) EXPECT_TRUE(seen.insert(text).second) << text;
  }
}

TEST_F(News, FolderSaysWhatIsForTesting) {
  folder_.file("train.csv", rows(10));
  folder_.file("test.csv", rows(3));
  folder_.file("classes.txt", "a\nb\r\nc\nd\n");
  const auto test = open_texts(spec(""), Split::test).value();
  EXPECT_EQ(test.texts.size(), 3U);
  EXPECT_THAT(test.classes, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(open_texts(spec(""), Split::train).value().texts.size(), 9U);
}

TEST_F(News, RefusalsNameTheLine) {
  EXPECT_THAT(message("\"1\",\"a\",\"b\"\n\"5\",\"a\",\"b\"\n"),
              HasSubstr("bad.csv:2:2: class 5 is none of 1 to 4"));
  EXPECT_THAT(message("\"x\",\"a\",\"b\"\n"), HasSubstr("bad.csv:1:"));
  EXPECT_THAT(message("1,a,b\n1,a\n"), HasSubstr("bad.csv:2:1"));
  EXPECT_THAT(message("1,a,\"b\n"), HasSubstr("never closed"));
  EXPECT_THAT(message(""), HasSubstr("there are no texts"));
  EXPECT_EQ(open_texts(spec("none.csv"), Split::all).error().code, ErrorCode::not_found);
  EXPECT_THAT(open_texts("news:x", Split::all).error().message, HasSubstr("ag-news:PATH"));
}

TEST(Texts, AgNewsIsAsPublished) {
  const auto shared = shared_data();
  const auto file = shared.value_or("") / "datasets/ag_news_test.csv.gz";
  if (!shared || !std::filesystem::exists(file)) GTEST_SKIP() << "no AG News here";
  const auto texts = open_texts("ag-news:" + file.string(), Split::all).value();
  EXPECT_EQ(texts.texts.size(), 7600U);
  for (std::int64_t label = 0; label < 4; ++label)
    EXPECT_EQ(std::ranges::count(texts.labels, label), 1900) << label;
}

TEST(Words, AreLowerCaseRunsOfLettersAndDigits) {
  EXPECT_THAT(words_of("U.S. stocks' 5% rise -- don't\tpanic, Caf\xC3\xA9!"),
              ElementsAre("u", "s", "stocks", "5", "rise", "dont", "panic", "caf\xC3\xA9"));
  EXPECT_TRUE(words_of(" ... ").empty());
}

TEST(Vocabulary, NumbersTheMostFrequentWords) {
  const std::vector<std::string> texts{"b a c", "a b", "a d"};
  const auto vocabulary = Vocabulary::most_frequent(texts, 5);
  EXPECT_EQ(vocabulary.size(), 5U);
  EXPECT_EQ(vocabulary.number("a"), 2);
  EXPECT_EQ(vocabulary.number("b"), 3);
  EXPECT_EQ(vocabulary.number("c"), 4);
  EXPECT_EQ(vocabulary.number("d"), Vocabulary::kUnknown);
  EXPECT_THAT(vocabulary.encode("A d b", 5), ElementsAre(2, 1, 3, 0, 0));
  EXPECT_THAT(vocabulary.encode("a a a", 2), ElementsAre(2, 2));
}

TEST(Vocabulary, IsReadAsItWasWritten) {
  const std::vector<std::string> texts{"b a c", "a b", "a d"};
  const auto written = Vocabulary::most_frequent(texts, 100).text();
  EXPECT_EQ(written, "a\nb\nc\nd\n");
  EXPECT_EQ(Vocabulary::parse(written).value().number("d"), 5);
  EXPECT_THAT(Vocabulary::parse("a\nb\na\n").error().message, HasSubstr("line 3: 'a'"));
}

}  // namespace
}  // namespace fleetfit::data
