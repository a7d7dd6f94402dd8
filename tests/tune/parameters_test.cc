#include "fleetfit/tune/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fleetfit::tune {
namespace {

using testing::HasSubstr;

Parameter choice(std::string name, std::vector<Value> values) {
  return {.name = std::move(name), .values = std::move(values)};
}

Parameter range(std::string name, double low, double high) {
  return {.name = std::move(name), .low = low, .high = high};
}

/// optimizer: sgd or adam; momentum only of sgd; nesterov only where there is a momentum of 0.9.
Parameters conditional() {
  Parameter momentum = choice("momentum", {0.0, 0.9});
  momentum.when = {.parameter = 0, .choices = {0}};
  Parameter nesterov = choice("nesterov", {false, true});
  nesterov.when = {.parameter = 1, .choices = {1}};
  return Parameters::create({choice("optimizer", {"sgd", "adam"}), momentum, nesterov}).value();
}

std::string refusal(std::vector<Parameter> parameters) {
  const auto created = Parameters::create(std::move(parameters));
  return created ? "" : created.error().message;
}

Result<Point> parse(const Parameters& parameters, std::string_view text) {
  const auto json = core::parse_json(text, "a.json").value();
  return parameters.from_json(core::JsonView(json, "a.json"));
}

TEST(Parameters, RefuseWhatHasNoMeaning) {
  EXPECT_THAT(refusal({choice("a", {1, 2}), choice("a", {3})}), HasSubstr("a: there are two"));
  EXPECT_THAT(refusal({choice("a", {std::int64_t{1}, 1.0})}), HasSubstr("occurs twice"));
  EXPECT_THAT(refusal({range("r", 2, 1)}), HasSubstr("r: the range from 2 to 1 is empty"));
  EXPECT_THAT(refusal({range("r", 0, INFINITY)}), HasSubstr("not finite"));
  EXPECT_THAT(refusal({{.name = "r", .low = 0, .high = 1, .log = true}}), HasSubstr("logarithm"));
  EXPECT_THAT(refusal({{.name = "r", .low = 0.5, .high = 2, .integer = true}}),
              HasSubstr("whole numbers"));
  EXPECT_THAT(refusal({{.name = "c", .values = {3, 2}, .ordered = true}}), HasSubstr("increasing"));
  EXPECT_THAT(refusal({{.name = ""}}), HasSubstr("no name"));
}

TEST(Parameters, RefuseConditionsOnWhatIsNotThere) {
  Parameter dependent = range("r", 0, 1);
  dependent.when = {.parameter = 1, .choices = {0}};
  EXPECT_THAT(refusal({choice("a", {1}), dependent}), HasSubstr("stand before it"));
  dependent.when = {.parameter = 0, .choices = {1}};
  EXPECT_THAT(refusal({choice("a", {1}), dependent}), HasSubstr("no value of a"));
  EXPECT_THAT(refusal({range("a", 0, 1), dependent}), HasSubstr("which is a range"));
}

TEST(Parameters, EveryWholeNumberIsDrawnEquallyOften) {
  const auto parameters =
      Parameters::create({{.name = "n", .low = 1, .high = 4, .integer = true}}).value();
  core::Random random(7);
  std::array<int, 5> drawn{};
  for (int i = 0; i < 8000; ++i) {
    ++drawn.at(static_cast<std::size_t>(parameters.sample(random)[0]));
  }
  EXPECT_EQ(drawn[0], 0);
  for (int n = 1; n <= 4; ++n) EXPECT_NEAR(drawn.at(n), 2000, 200) << n;
}

TEST(Parameters, LogarithmicRangesGiveEachDecadeTheSame) {
  const auto parameters =
      Parameters::create({{.name = "lr", .low = 1e-4, .high = 1e-1, .log = true}}).value();
  core::Random random(3);
  int lowest = 0;
  for (int i = 0; i < 6000; ++i) lowest += parameters.sample(random)[0] < 1e-3 ? 1 : 0;
  EXPECT_NEAR(lowest, 2000, 200);  // one of three decades
}

TEST(Parameters, UnitsAreTheInverseOfEachOther) {
  const auto parameters =
      Parameters::create({range("x", -2, 6),
                          {.name = "lr", .low = 1, .high = 100, .log = true},
                          {.name = "n", .low = 2, .high = 9, .integer = true},
                          {.name = "b", .low = 1, .high = 64, .integer = true, .log = true},
                          range("one", 3, 3)})
          .value();
  EXPECT_DOUBLE_EQ(parameters.to_unit(0, 0), 0.25);
  EXPECT_DOUBLE_EQ(parameters.to_unit(1, 10), 0.5);
  EXPECT_DOUBLE_EQ(parameters.from_unit(1, 0.5), 10);
  EXPECT_DOUBLE_EQ(parameters.to_unit(2, 2), 0.5 / 8);  // the first of eight, in its middle
  for (double n = 2; n <= 9; ++n) EXPECT_EQ(parameters.from_unit(2, parameters.to_unit(2, n)), n);
  for (double b = 1; b <= 64; ++b) EXPECT_EQ(parameters.from_unit(3, parameters.to_unit(3, b)), b);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    EXPECT_GE(parameters.from_unit(p, 0), parameters.all()[p].low);
    EXPECT_LE(parameters.from_unit(p, 1), parameters.all()[p].high);
  }
}

TEST(Parameters, OnlyWhatMeansSomethingIsDrawn) {
  const Parameters parameters = conditional();
  core::Random random(1);
  for (int i = 0; i < 50; ++i) {
    const Point point = parameters.sample(random);
    EXPECT_EQ(std::isnan(point[1]), point[0] == 1);
    EXPECT_EQ(std::isnan(point[2]), point[0] == 1 || point[1] == 0);
  }
}

TEST(Parameters, CountsOnlyPointsThatDiffer) {
  EXPECT_EQ(conditional().count(),
            4U);  // adam; sgd without momentum; sgd with, and nesterov or not
  EXPECT_EQ(Parameters::create(
                {choice("a", {1, 2, 3}), {.name = "n", .low = 1, .high = 5, .integer = true}})
                .value()
                .count(),
            15U);
  EXPECT_EQ(Parameters::create({range("x", 0, 1)}).value().count(), std::nullopt);
  const Parameter many = {.name = "a", .low = 0, .high = 0x1p52, .integer = true};
  Parameter more = many;
  more.name = "b";
  EXPECT_EQ(Parameters::create({many, more}).value().count(), std::nullopt);
}

TEST(Parameters, RepairBringsValuesIntoTheirRange) {
  const auto parameters = Parameters::create({{.name = "n", .low = 1, .high = 5, .integer = true},
                                              choice("a", {1, 2, 3}),
                                              range("x", 0, 1)})
                              .value();
  core::Random random(1);
  Point point = {7.2, -3, kInactive};
  parameters.repair(random, point);
  EXPECT_EQ(point[0], 5);
  EXPECT_EQ(point[1], 0);
  EXPECT_TRUE(point[2] >= 0 && point[2] <= 1);
}

TEST(Parameters, JsonHoldsTheValuesThatMeanSomething) {
  const Parameters parameters = conditional();
  const Point with_momentum = {0, 1, 0};
  EXPECT_EQ(parameters.to_json(with_momentum).dump(),
            R"({"optimizer":"sgd","momentum":0.9,"nesterov":false})");
  const Point adam = {1, kInactive, kInactive};
  EXPECT_EQ(parameters.to_json(adam).dump(), R"({"optimizer":"adam"})");
  EXPECT_TRUE(same_point(parse(parameters, parameters.to_json(adam).dump()).value(), adam));
  EXPECT_TRUE(same_point(parse(parameters, parameters.to_json(with_momentum).dump()).value(),
                         with_momentum));
}

TEST(Parameters, WrongJsonIsNamed) {
  const Parameters parameters = conditional();
  EXPECT_THAT(parse(parameters, R"({"optimizer":"lion"})").error().message,
              HasSubstr("a.json: optimizer: is none of"));
  EXPECT_THAT(parse(parameters, R"({})").error().message, HasSubstr("optimizer is missing"));
  EXPECT_THAT(parse(parameters, R"({"optimizer":"adam","momentum":0.9})").error().message,
              HasSubstr("momentum: means nothing"));
  EXPECT_THAT(parse(parameters, R"({"lr":1})").error().message, HasSubstr("no parameter lr"));
  const auto numbers =
      Parameters::create({{.name = "n", .low = 1, .high = 5, .integer = true}}).value();
  EXPECT_THAT(parse(numbers, R"({"n":2.5})").error().message, HasSubstr("no whole number"));
  EXPECT_THAT(parse(numbers, R"({"n":6})").error().message, HasSubstr("not in the range"));
  EXPECT_EQ(parse(numbers, R"({"n":3.0})").value()[0], 3);
}

TEST(Parameters, SameNetworkMeansSameKeyOfTheModelGroup) {
  const auto parameters =
      Parameters::create({{.name = "layers", .group = Group::model, .values = {18, 34}},
                          {.name = "lr", .low = 0, .high = 1}})
          .value();
  EXPECT_EQ(parameters.key(Point{1, 0.5}, Group::model),
            parameters.key(Point{1, 0.7}, Group::model));
  EXPECT_NE(parameters.key(Point{1, 0.5}, Group::model),
            parameters.key(Point{0, 0.5}, Group::model));
}

}  // namespace
}  // namespace fleetfit::tune
