#include "fleetfit/adapt/requests.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleetfit/core/base64.h"
#include "fleetfit/graph/npy.h"
#include "tests/adapt/fake_subnets.h"

namespace fleetfit::adapt {
namespace {

using nlohmann::json;

const std::vector<std::int64_t> kShape = {1, 3};

std::string problem(std::string_view text) {
  const auto request = parse_predict_request(text, kShape);
  if (request) return "";
  EXPECT_EQ(request.error().code, ErrorCode::invalid_input);
  return request.error().message;
}

std::string npy_request(const std::vector<float>& values, const graph::Shape& shape) {
  const auto npy = graph::format_npy({.dtype = graph::DType::f32,
                                      .shape = shape,
                                      .data = graph::TensorData::copy(values),
                                      .quantization = {}});
  return json{{"id", 1}, {"input", {{"npy_base64", core::encode_base64(npy.value())}}}}.dump();
}

TEST(PredictRequests, TakeFlatAndNestedNumbers) {
  const std::vector<float> expected = {1, 2.5, -3};
  EXPECT_EQ(parse_predict_request(R"({"id": 7, "input": [1, 2.5, -3]})", kShape)->input, expected);
  EXPECT_EQ(parse_predict_request(R"({"input": [[1, 2.5, -3]]})", kShape)->input, expected);
}

TEST(PredictRequests, TakeNumpyWithAndWithoutTheBatchDimension) {
  const std::vector<float> values = {1, 2, 3};
  EXPECT_EQ(parse_predict_request(npy_request(values, {1, 3}), kShape)->input, values);
  EXPECT_EQ(parse_predict_request(npy_request(values, {3}), kShape)->input, values);
}

TEST(PredictRequests, KeepTheIdAsItIs) {
  EXPECT_EQ(parse_predict_request(R"({"id": "a\"b", "input": [1, 2, 3]})", kShape)->id,
            R"("a\"b")");
  EXPECT_EQ(parse_predict_request(R"({"input": [1, 2, 3]})", kShape)->id, "null");
}

TEST(PredictRequests, AreRefusedWithTheFieldThatIsWrong) {
  EXPECT_EQ(problem(R"({"input": [1, 2]})"), "request: input: expected 3 values, found 2");
  EXPECT_EQ(problem(R"({"input": [1, 2, 3, 4, 5]})"),
            "request: input: expected 3 values, found more");
  EXPECT_EQ(problem(R"({"input": [1, "2", 3]})"), "request: input: value 1 is not a number");
  EXPECT_EQ(problem(R"({"input": [1, 2, 1e99]})"),
            "request: input: value 2 is not a finite number");
  EXPECT_EQ(problem(R"({"input": {"npy_base64": "?"}})"),
            "request: input: npy_base64: it is not base64");
  EXPECT_EQ(problem(npy_request({1, 2}, {2})),
            "request: input: expected float32 [1, 3], found float32 [2]");
  for (const auto* text : {"", "{", "[]", "3", "{}", R"({"input": null})", R"({"input": "x"})",
                           R"({"input": {}})", R"({"input": {"npy_base64": 1}})", "\xff\xfe"}) {
    EXPECT_NE(problem(text), "") << text;
  }
  EXPECT_NE(problem(std::string(100'000, '[')), "");
  EXPECT_NE(problem("[" + std::string(100'000, ' ') + "]"), "");
}

class Answering : public testing::Test {
 protected:
  void SetUp() override {
    SubnetPool pool;
    pool.entries = {{.subnet = "only", .latency_ms = 1, .accuracy = 0.9}};
    server = SubnetServer::start(pool, subnets, clock, {.budget_ms = 2}).value();
  }

  json ask(std::string_view text) {
    const auto reply = answer_request(*server, classes, text);
    const auto answer = json::parse(reply.json);
    EXPECT_EQ(reply.ok, !answer.contains("error"));
    EXPECT_EQ(reply.json.find('\n'), std::string::npos);
    return answer;
  }

  core::FakeClock clock;
  FakeSubnets subnets{clock};
  std::unique_ptr<SubnetServer> server;
  std::vector<std::string> classes = {"cat", "dog", "tree"};
};

TEST_F(Answering, GivesClassScoresLatencyAndSubnet) {
  EXPECT_EQ(ask(R"({"id": 5, "input": [0.5, 2, 1]})"),
            json::parse(R"({"id": 5, "class": 1, "label": "dog", "scores": [0.5, 2.0, 1.0],
                            "latency_ms": 1.0, "subnet": "only"})"));
}

TEST_F(Answering, SaysWhatIsWrongAndGoesOn) {
  const auto refused = ask(R"({"id": "x", "input": [1]})");
  EXPECT_EQ(refused,
            json::parse(R"({"id": "x", "error": "request: input: expected 3 values, found 1"})"));
  EXPECT_TRUE(ask("garbage\n").at("id").is_null());
  EXPECT_EQ(ask(R"({"id": 6, "input": [3, 2, 1]})").at("class"), 0);
  EXPECT_EQ(server->report().requests, 1u);
}

}  // namespace
}  // namespace fleetfit::adapt
