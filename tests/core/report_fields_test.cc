#include "fleetfit/core/report_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fleetfit::core {
namespace {

using Json = nlohmann::ordered_json;

enum class State { good, bad };

Names names_of(State) {
  static constexpr Name kAll[] = {{State::good, "good"}, {State::bad, "bad"}};
  return {.what = "state", .all = kAll};
}

struct Part {
  std::string name = {};
  std::optional<int> count = std::nullopt;
  State state = State::good;
};
FLEETFIT_REPORT(Part, name, state, count)

struct Whole {
  std::vector<Part> parts = {};
  std::string note = {};
  double total = 0;
  int shown = 0;

  double mean() const { return total / static_cast<double>(parts.size()); }
};

Fields fields_of(const Whole*) {
  static constexpr Field kAll[] = {
      FLEETFIT_MEMBERS(Whole, total, parts),
      field<&Whole::note>("remark").omit_default(),
      computed<&Whole::mean>("mean"),
      computed("size", [](const Whole& whole) { return whole.parts.size(); }),
      computed("first", [](const Whole& whole) -> const Part& { return whole.parts.front(); }),
      computed("kind", [](const Whole&) { return "whole"; }),
      computed("shown", [](const Whole& whole) { return Json{{"times", whole.shown}}; }),
      computed("left", [](const Whole&) { return std::optional<int>(); }).omit_default()};
  return {.all = kAll};
}

TEST(ReportFields, AreNamedAsTheirMembers) {
  EXPECT_EQ(to_json(Part{.name = "a", .state = State::bad}).dump(),
            R"({"name":"a","state":"bad","count":null})");
  EXPECT_EQ(to_json(std::vector<Part>{{.count = 2}}).dump(),
            R"([{"name":"","state":"good","count":2}])");
}

TEST(ReportFields, AreWorkedOutByFunctions) {
  const Whole whole{.parts = {{.name = "a"}, {.name = "b"}}, .total = 3, .shown = 7};
  EXPECT_EQ(to_json(whole).dump(),
            R"({"total":3.0,"parts":[{"name":"a","state":"good","count":null},)"
            R"({"name":"b","state":"good","count":null}],"mean":1.5,"size":2,)"
            R"("first":{"name":"a","state":"good","count":null},"kind":"whole",)"
            R"("shown":{"times":7}})");
}

struct Long {
  int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10, k = 11, l = 12, m = 13,
      n = 14, o = 15, p = 16, q = 17, r = 18, s = 19, t = 20, u = 21, v = 22, w = 23, x = 24;
};
FLEETFIT_REPORT(Long, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)

TEST(ReportFields, OfLongRecordsAreAllWritten) {
  const auto json = to_json(Long{});
  EXPECT_EQ(json.size(), 24U);
  EXPECT_EQ(json.back(), 24);
}

}  // namespace
}  // namespace fleetfit::core
