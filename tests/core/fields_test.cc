#include "fleetfit/core/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace fleetfit::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

enum class Colour { red, green = 4 };

Names names_of(Colour) {
  static constexpr Name kAll[] = {{Colour::red, "red"}, {Colour::green, "green"}};
  return {.what = "colour", .all = kAll};
}

struct Point {
  double x = 0;
  double y = 0;

  bool operator==(const Point&) const = default;
};

Fields fields_of(const Point*) {
  static constexpr Field kAll[] = {field<&Point::x>("x", "to the right").from(0),
                                   field<&Point::y>("y", "upwards").in_column("height")};
  return {.all = kAll};
}

/// Written as its text backwards.
struct Mirrored {
  std::string text = {};
};

void write_json(Json& json, const Mirrored& from) {
  json = std::string(from.text.rbegin(), from.text.rend());
}

Status read_json(const JsonView& view, Mirrored& into) {
  FLEETFIT_ASSIGN(const auto text, view.as_text());
  into.text.assign(text.rbegin(), text.rend());
  return {};
}

struct Shape {
  std::string name = {};
  Colour colour = Colour::green;
  bool filled = false;
  std::int32_t corners = 3;
  std::uint64_t seed = 0;
  float scale = 1;
  std::optional<double> angle = std::nullopt;
  Time drawn = {};
  Interval within = {};
  std::vector<Point> outline = {};
  std::vector<double> weights = {};
  std::optional<Point> centre = std::nullopt;
  Point origin = {};
  Interval limits = {};
  std::string settings = "{}";
  std::string notes = {};
  Mirrored mirrored = {};
  double bytes = 0;
};

Json area_of(const Shape& shape) { return shape.scale * shape.scale; }

std::optional<std::string> remark_of(const Shape& shape) {
  return shape.filled ? std::optional<std::string>("heavy") : std::nullopt;
}

Status read_doubled(const JsonView& view, Shape& shape) {
  FLEETFIT_ASSIGN(const auto number, view.as_number());
  shape.bytes = number / 2;
  return {};
}

double doubled(const Shape& shape) { return shape.bytes * 2; }

Status check_lower_case(std::string_view text) {
  return text.find('A') == std::string_view::npos ? Status() : refuse("expected small letters");
}

Status check_corners(const Shape& shape) {
  return shape.filled && shape.corners == 8 ? refuse("corners: 8 cannot be filled") : Status();
}

Fields fields_of(const Shape*) {
  static constexpr Field kAll[] = {
      field<&Shape::name>("name").key().at_most(10),
      field<&Shape::colour>("colour").may_be_missing(),
      field<&Shape::filled>("filled").may_be_missing(),
      field<&Shape::corners>("corners").between(3, 8).may_be_missing().omit_default(),
      field<&Shape::seed>("seed").may_be_missing().omit_default(),
      field<&Shape::scale>("scale").above(0).up_to(100).may_be_missing(),
      field<&Shape::angle>("angle"),
      field<&Shape::drawn>("drawn").may_be_missing(),
      field<&Shape::within>("within").may_be_missing().omit_default(),
      field<&Shape::outline>("outline").at_most(3).may_be_missing().omit_default(),
      field<&Shape::weights>("weights").may_be_missing().null_default(),
      field<&Shape::centre>("centre").omit_default(),
      field<&Shape::origin>("origin").may_be_missing().inlined(),
      field<&Shape::limits, &Interval::high>("limit").may_be_missing().omit_default(),
      field<&Shape::settings>("settings").json_object().may_be_missing(),
      field<&Shape::notes>("notes").checked(check_lower_case).may_be_missing().omit_default(),
      field<&Shape::mirrored>("mirrored").may_be_missing(),
      field_by<Shape, read_doubled, doubled>("doubled").may_be_missing(),
      written_field<Shape, area_of>("area"),
      written_field<Shape, remark_of>("remark").omit_default(),
      other_field("comment")};
  return {.all = kAll, .others = OtherKeys::refused, .rule = rule_by<Shape, check_corners>};
}

/// What a shape needs to be read.
Json least() { return {{"name", "a"}, {"x", 0}, {"y", 0}}; }

std::string problem(const Json& change) {
  nlohmann::json document = least();
  document.update(change);
  const auto shape = read<Shape>(JsonView(document, "a.json"));
  return shape ? "" : shape.error().message;
}

TEST(Fields, WriteInTheOrderOfTheirDescription) {
  EXPECT_EQ(to_json(Shape{.name = "a", .scale = 2}).dump(),
            R"({"name":"a","colour":"green","filled":false,"scale":2.0,"angle":null,)"
            R"("drawn":"1970-01-01T00:00:00.000Z","weights":null,"x":0.0,"y":0.0,"settings":{},)"
            R"("mirrored":"","doubled":0.0,"area":4.0})");
  EXPECT_EQ(to_json<nlohmann::json>(Point{.x = 1}).dump(), R"({"x":1.0,"y":0.0})");
  EXPECT_EQ(to_json(std::vector<Point>{{1, 2}}).dump(), R"([{"x":1.0,"y":2.0}])");
}

TEST(Fields, AreReadAsTheyWereWritten) {
  const Shape shape{.name = "star",
                    .colour = Colour::red,
                    .filled = true,
                    .corners = 5,
                    .seed = std::numeric_limits<std::uint32_t>::max(),
                    .scale = 0.5,
                    .angle = 30,
                    .drawn = Time(std::chrono::milliseconds(1'500'000'000'123)),
                    .within = {-1, 1},
                    .outline = {{1, 2}, {3, 4}},
                    .weights = {0.1, 0.2},
                    .centre = Point{5, 6},
                    .origin = {7, 8},
                    .limits = {.high = 9},
                    .settings = R"({"b":1,"a":[2]})",
                    .notes = "none",
                    .mirrored = {"abc"},
                    .bytes = 4};
  const auto written = to_json(shape);
  EXPECT_EQ(written["drawn"], "2017-07-14T02:40:00.123Z");
  EXPECT_EQ(written["within"], Json::array({-1.0, 1.0}));
  EXPECT_EQ(written["settings"].dump(), R"({"b":1,"a":[2]})");
  EXPECT_EQ(written["mirrored"], "cba");
  EXPECT_EQ(written["x"], 7.0);
  EXPECT_EQ(written["remark"], "heavy");
  EXPECT_EQ(written["limit"], 9.0);

  nlohmann::json document = written;
  const auto again = read<Shape>(JsonView(document, "a.json"));
  ASSERT_TRUE(again) << again.error().message;
  auto expected = written;
  expected["settings"] = Json::parse(R"({"a":[2],"b":1})");
  EXPECT_EQ(to_json(*again), expected);
}

TEST(Fields, KeepTheirDefaultsWhereTheDocumentHasNone) {
  const nlohmann::json document = least();
  const auto shape = read<Shape>(JsonView(document, "a.json"));
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_EQ(shape->colour, Colour::green);
  EXPECT_EQ(shape->corners, 3);
  EXPECT_EQ(shape->angle, std::nullopt);
  EXPECT_EQ(problem({{"corners", nullptr}}), "");
}

TEST(Fields, NameThePlaceOfWhatIsWrong) {
  EXPECT_EQ(problem({{"name", nullptr}}), "a.json: the field 'name' is missing");
  EXPECT_EQ(problem({{"name", ""}}), "a.json: name: is empty");
  EXPECT_EQ(problem({{"name", "abcdefghijk"}}), "a.json: name: has more than 10 bytes");
  EXPECT_EQ(problem({{"colour", "blue"}}), "a.json: colour: \"blue\" is none of red, green");
  EXPECT_EQ(problem({{"corners", 9}}),
            "a.json: corners: expected a whole number from 3 to 8, found 9");
  EXPECT_EQ(problem({{"seed", -1}}), "a.json: seed: expected a whole number from 0, found -1");
  EXPECT_EQ(problem({{"scale", 0}}), "a.json: scale: is 0, not above 0 and up to 100");
  EXPECT_EQ(problem({{"within", {1}}}), "a.json: within: expected 2 elements, found 1");
  EXPECT_EQ(problem({{"outline", {{{"x", 1}}}}}), "a.json: outline[0]: the field 'y' is missing");
  EXPECT_EQ(problem({{"outline", {1, 2, 3, 4}}}), "a.json: outline: has more than 3 elements");
  EXPECT_EQ(problem({{"centre", {{"x", -1}, {"y", 1}}}}), "a.json: centre.x: is -1, below zero");
  EXPECT_EQ(problem({{"x", -1}}), "a.json: x: is -1, below zero");
  EXPECT_EQ(problem({{"drawn", "today"}}),
            "a.json: drawn: expected a time such as 2026-11-16T08:00:00.000Z, not \"today\"");
  EXPECT_EQ(problem({{"settings", "{}"}}), "a.json: settings: expected an object");
  EXPECT_EQ(problem({{"notes", "A"}}), "a.json: notes: expected small letters");
  EXPECT_EQ(problem({{"notes", ""}, {"comment", 1}}), "");
  EXPECT_EQ(problem({{"filled", true}, {"corners", 8}}), "a.json: corners: 8 cannot be filled");
  EXPECT_EQ(problem({{"other", 1}}), "a.json: unknown field 'other'");
}

struct Stored {
  std::string name = "a";
  std::string hash = std::string(64, 'f');
  std::string list = "[]";
  double number = 0;
  std::int64_t attempts = 1;
  std::optional<Point> point = std::nullopt;
  std::vector<Point> points = {};
};

Fields fields_of(const Stored*) {
  static constexpr Field kAll[] = {field<&Stored::name>("name").key(),
                                   field<&Stored::hash>("hash").hash(),
                                   field<&Stored::list>("list").json_list(),
                                   field<&Stored::number>("number").between(0, 1),
                                   field<&Stored::attempts>("attempts").from(1),
                                   field<&Stored::point>("point").inlined(),
                                   field<&Stored::points>("points")};
  return {.all = kAll};
}

template <class Change>
std::string refused(Change change) {
  Stored record;
  change(record);
  const auto checked = check(record, "record");
  return checked ? "" : checked.error().message;
}

TEST(Fields, AreCheckedByTheirRules) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refused([](auto&) {}), "");
  EXPECT_EQ(refused([](auto& r) { r.name = ""; }), "record: name is empty");
  EXPECT_EQ(refused([](auto& r) { r.name = std::string(1, '\0'); }),
            "record: name contains a NUL character");
  EXPECT_EQ(refused([](auto& r) { r.name = "\xff"; }), "record: name is not UTF-8");
  EXPECT_EQ(refused([](auto& r) { r.hash = "0"; }),
            "record: hash is not a SHA-256 of 64 small hexadecimal digits");
  EXPECT_EQ(refused([](auto& r) { r.list = "{}"; }), "record: list is not a JSON array");
  EXPECT_THAT(refused([](auto& r) { r.list = "["; }), HasSubstr("record: list:1:"));
  EXPECT_EQ(refused([](auto& r) { r.number = 2; }), "record: number is 2, not from 0 to 1");
  EXPECT_EQ(refused([](auto& r) { r.attempts = 0; }), "record: attempts is 0, below one");
  EXPECT_EQ(refused([](auto& r) { r.point = Point{.y = kNan}; }),
            "record: height is nan, which is no finite number");
  EXPECT_EQ(refused([](auto& r) { r.points = {{}, {.x = -2}}; }),
            "record: points[1]: x is -2, below zero");
}

TEST(Fields, KnowTheirKeys) {
  EXPECT_THAT(keys_of(fields_of(static_cast<const Stored*>(nullptr))),
              ElementsAre("name", "hash", "list", "number", "attempts", "x", "y", "points"));
}

TEST(Names, AreReadAsTheyAreWritten) {
  EXPECT_EQ(to_string(Colour::green), "green");
  EXPECT_EQ(to_string(static_cast<Colour>(7)), "");
  EXPECT_EQ(parse_name<Colour>("green"), Colour::green);
  EXPECT_EQ(parse_name<Colour>("blue").error().message, "'blue' is no colour (red, green)");
}

TEST(Time, IsReadAsItIsWritten) {
  const Time time(std::chrono::milliseconds(1'500'000'000'007));
  EXPECT_EQ(time_text(time), "2017-07-14T02:40:00.007Z");
  EXPECT_EQ(parse_time(time_text(time)), time);
  EXPECT_EQ(parse_time("2017-07-14T02:40:00Z"), time - std::chrono::milliseconds(7));
  EXPECT_FALSE(parse_time("2017-02-30T02:40:00Z"));
  EXPECT_FALSE(parse_time("2017-07-14"));
}

}  // namespace
}  // namespace fleetfit::core
