#include "fleetfit/core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/random.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::core {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::string_view text) { return parse_json(text, "s.json").error().message; }

template <class T>
std::string message_of(const Result<T>& result) {
  return result.error().message;
}

TEST(ParseJson, GivesWhatTheLibraryGives) {
  const std::string text =
      R"({"a": [1, -2, 2.5, true, null, "x\n\u00e4"], "b": {"c": {}, "d": []}, "e": 18446744073709551615})";
  EXPECT_EQ(parse_json(text, "s.json").value(), json::parse(text));
  EXPECT_EQ(parse_json("\xef\xbb\xbf 7 ", "s.json").value(), json(7));
}

TEST(ParseJson, SyntaxErrorsNameLineAndColumnInOneLine) {
  EXPECT_EQ(error_of("{\n  \"a\": 1,\n  \"b\": x\n}"),
            "s.json:3:8: syntax error while parsing value - invalid literal");
  EXPECT_EQ(error_of("[1,\n 2"),
            "s.json:2:3: syntax error while parsing array - unexpected end of input; expected ']'");
  EXPECT_EQ(
      error_of("[1 2]"),
      "s.json:1:4: syntax error while parsing array - unexpected number literal; expected ']'");
  EXPECT_THAT(error_of(""), StartsWith("s.json:1:1: "));
  EXPECT_EQ(error_of("[\"\xc3\xa4\", 1e999]"), "s.json:1:11: a number out of range");
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  for (const auto* text :
       {"{} {}", "[1,]", "nan", "// x\n1", "'a'", "\"\xff\"", "\"a\nb\"", "01"}) {
    const auto message = error_of(text);
    EXPECT_THAT(message, StartsWith("s.json:")) << text;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(ParseJson, LongTokensDoNotGetIntoTheMessage) {
  EXPECT_LT(error_of("\"" + std::string(1'000'000, 'x')).size(), 200u);
}

TEST(ParseJson, RefusesAKeyThatOccursTwice) {
  EXPECT_EQ(error_of("{\"a\": 1,\n \"b\": {\"a\": 2}, \"a\": 3}"),
            "s.json:2:17: the key 'a' occurs twice in one object");
  EXPECT_EQ(error_of(R"({"\\\"": 1, "\\\"": 2})"),
            R"(s.json:1:13: the key '\"' occurs twice in one object)");
}

TEST(ParseJson, LimitsTheDepth) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(error_of(deep), "s.json:1:201: more than 200 levels of nesting");
  const std::string allowed = std::string(200, '[') + std::string(200, ']');
  EXPECT_TRUE(parse_json(allowed, "s.json"));
  EXPECT_EQ(message_of(parse_json("[[1]]", "s.json", {.max_depth = 1})),
            "s.json:1:2: more than 1 levels of nesting");
}

TEST(ParseJson, RandomTextsNeverCrashItAndAgreeWithTheLibrary) {
  Random random(1);
  const std::vector<std::string> parts = {"{",     "}", "[",    "]", ":",  ",", "\"a\"",
                                          "\"b\"", "1", "true", " ", "\\", "\""};
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto left = random.below(12); left > 0; --left) text += parts[random.below(parts.size())];
    const auto parsed = parse_json(text, "s.json");
    const auto reference = json::parse(text, nullptr, false);
    if (parsed) {
      EXPECT_EQ(*parsed, reference) << text;
    } else if (!reference.is_discarded()) {
      EXPECT_THAT(parsed.error().message, HasSubstr("occurs twice")) << text;
    }
  }
}

TEST(ReadJson, NamesTheFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_json(folder.file("a.json", "[1]")).value(), json({1}));
  EXPECT_THAT(message_of(read_json(folder.file("b.json", "[1"))), HasSubstr("b.json:1:"));
  EXPECT_EQ(read_json(folder.path() / "none.json").error().code, ErrorCode::not_found);
}

TEST(WriteJson, WritesAFileThatReadsBack) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.json";
  const json value = {{"x", 0.1}, {"list", {1, 2}}};
  ASSERT_TRUE(write_json(path, value));
  EXPECT_EQ(read_json(path).value(), value);
}

TEST(FormatJson, WritesNullForWhatJsonCannotSay) {
  EXPECT_EQ(format_json_line({NAN, INFINITY, 1.5}), "[null,null,1.5]");
  EXPECT_EQ(format_json_line("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(format_json(nlohmann::json{{"a", 1}}), "{\n  \"a\": 1\n}\n");
}

class JsonViewTest : public testing::Test {
 protected:
  const json document_ = json::parse(R"({
    "name": "fleet", "share": 0.5, "whole": 3.0, "fast": true, "nothing": null, "weights": [1, 2.5],
    "tags": ["a", "b"],
    "devices": [{"threads": 1}, {"threads": 2}, {"threads": "four"}]})");
  const JsonView view_{document_, "a.json"};
};

TEST_F(JsonViewTest, GivesFieldsAsCppTypes) {
  EXPECT_EQ(view_.text("name").value(), "fleet");
  EXPECT_EQ(view_.number("share").value(), 0.5);
  EXPECT_EQ(view_.integer("whole").value(), 3);
  EXPECT_EQ(view_.number("whole").value(), 3.0);
  EXPECT_TRUE(view_.boolean("fast").value());
  EXPECT_THAT(view_.numbers("weights").value(), ElementsAre(1, 2.5));
  EXPECT_THAT(view_.texts("tags").value(), ElementsAre("a", "b"));
}

TEST_F(JsonViewTest, ErrorsNameThePathOfTheField) {
  const auto devices = view_.items("devices").value();
  EXPECT_EQ(devices[1].integer("threads").value(), 2);
  EXPECT_EQ(message_of(devices[2].integer("threads")),
            "a.json: devices[2].threads: expected a whole number, found a string");
  EXPECT_EQ(message_of(devices[0].text("name")), "a.json: devices[0]: the field 'name' is missing");
  EXPECT_EQ(message_of(view_.integer("share")),
            "a.json: share: expected a whole number, found 0.5");
  EXPECT_EQ(message_of(view_.numbers("tags")),
            "a.json: tags[0]: expected a number, found a string");
  EXPECT_EQ(message_of(view_.boolean("nothing")), "a.json: the field 'nothing' is missing");
  EXPECT_EQ(message_of(view_.at("name").value().number("x")),
            "a.json: name: expected an object, found a string");
  EXPECT_EQ(message_of(view_.as_text()), "a.json: expected a string, found an object");
}

TEST_F(JsonViewTest, ChecksTheRangeOfWholeNumbers) {
  EXPECT_EQ(message_of(view_.integer("whole", {.min = 4})),
            "a.json: whole: expected a whole number from 4, found 3.0");
  EXPECT_EQ(message_of(view_.integer("whole", {.min = 0, .max = 2})),
            "a.json: whole: expected a whole number from 0 to 2, found 3.0");
  const json huge = 18446744073709551615u;
  EXPECT_FALSE(JsonView(huge, "h").as_integer());
  const json wide = 1e300;
  EXPECT_FALSE(JsonView(wide, "w").as_integer());
}

TEST_F(JsonViewTest, FallsBackForAbsentFieldsOnly) {
  EXPECT_EQ(view_.text_or("missing", "x").value(), "x");
  EXPECT_EQ(view_.integer_or("nothing", 8).value(), 8);
  EXPECT_EQ(message_of(view_.boolean_or("name", true)),
            "a.json: name: expected a boolean, found a string");
}

TEST_F(JsonViewTest, RefusesUnknownFields) {
  const JsonView device = view_.items("devices").value()[0];
  EXPECT_TRUE(device.allow_only({"threads", "cores"}));
  EXPECT_EQ(message_of(device.allow_only({"thread"})),
            "a.json: devices[0]: unknown field 'threads'");
}

TEST_F(JsonViewTest, ListsMembersWithTheirPaths) {
  const auto members = view_.members().value();
  EXPECT_EQ(members.size(), 7u);
  EXPECT_EQ(members[0].key, "devices");
  EXPECT_EQ(members[0].value.place(), "a.json: devices");
}

}  // namespace
}  // namespace fleetfit::core
