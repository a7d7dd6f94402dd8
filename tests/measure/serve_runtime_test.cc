#include "fleetfit/measure/exec_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "fleetfit/graph/npy.h"
#include "tests/core/temporary_folder.h"
#include "tests/measure/echo_runtime.h"

namespace fleetfit::measure {
namespace {

using nlohmann::json;

/// Replies to requests of one session.
std::vector<json> session(const std::string& requests) {
  EchoRuntime runtime;
  std::istringstream in(requests);
  std::ostringstream out;
  EXPECT_TRUE(serve_runtime(runtime, in, out));
  std::istringstream lines(out.str());
  std::vector<json> replies;
  for (std::string line; std::getline(lines, line);) replies.push_back(json::parse(line));
  return replies;
}

TEST(ServeRuntime, AnswersAWholeSession) {
  const core::TemporaryFolder folder;
  const auto model = folder.file("m.onnx", "x").string();
  const graph::Value value{.dtype = graph::DType::f32,
                           .shape = {2},
                           .data = graph::TensorData::copy(std::vector<float>{3, 4})};
  ASSERT_TRUE(graph::write_npy(folder.path() / "in.npy", value));
  const json load = {{"id", 2}, {"op", "load"}, {"model", model}, {"threads", 3}, {"choices", "c"}};
  const json compute = {{"id", 4},
                        {"op", "compute"},
                        {"inputs", {{"image", (folder.path() / "in.npy").string()}}},
                        {"folder", folder.path().string()}};

  const auto replies = session(R"({"id":1,"op":"info"})"
                               "\n" +
                               load.dump() + "\n" +
                               R"({"id":3,"op":"run","runs":2,"per_operator":true})"
                               "\n" +
                               compute.dump() + "\n" + R"({"id":5,"op":"unload"})");

  ASSERT_EQ(replies.size(), 5U);
  EXPECT_EQ(replies[0], json::parse(R"({"id":1,"ok":true,"protocol":1,"name":"echo",
                                        "version":"1.2","build":"test"})"));
  EXPECT_EQ(replies[1], json::parse(R"({"id":2,"ok":true,"choices":"3 auto c"})"));
  EXPECT_EQ(replies[2], json::parse(R"({"id":3,"ok":true,"times_ms":[1.0,2.0],
                          "peak_memory_bytes":4096,"operators":[
                          {"name":"a","type":"Conv","kernel":"fast","ms":0.25},
                          {"name":"b+c","type":"Relu","kernel":"","ms":0.0}]})"));
  EXPECT_EQ(replies[3], json::parse(R"({"id":4,"ok":true,"outputs":[
                                        {"name":"image","file":"output_0.npy"}]})"));
  EXPECT_EQ(replies[4], json::parse(R"({"id":5,"ok":true})"));
  const auto output = graph::read_npy(folder.path() / "output_0.npy");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->data, value.data);
}

TEST(ServeRuntime, SurvivesWhatIsNoRequest) {
  const auto replies = session("\n{\n[1]\n{\"op\":\"info\"}\n{\"id\":\"1\",\"op\":\"info\"}\n" +
                               std::string(2'000'000, '[') + "\n" + std::string(10'000, '[') +
                               "\n\xff\xfe\n{\"id\":9,\"op\":\"info\"}\n");
  ASSERT_EQ(replies.size(), 9U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(replies[i]["id"], nullptr) << i;
    EXPECT_EQ(replies[i]["ok"], false) << i;
    EXPECT_EQ(replies[i]["error"]["code"], "invalid_input") << i;
  }
  EXPECT_EQ(replies[8]["ok"], true);
}

TEST(ServeRuntime, NamesWhatIsWrongWithARequest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"id":1,"op":"walk"})", "there is no op 'walk'"},
      {R"({"id":1})", "request: the field 'op' is missing"},
      {R"({"id":1,"op":"load"})", "request: the field 'model' is missing"},
      {R"({"id":1,"op":"load","model":"m","threads":0})", "request: threads: "},
      {R"({"id":1,"op":"load","model":"/no/such.onnx"})", "there is no such model"},
      {R"({"id":1,"op":"run","runs":-1})", "request: runs: "},
      {R"({"id":1,"op":"run","runs":1e9})", "request: runs: "},
      {R"({"id":1,"op":"run","runs":1,"per_operator":1})", "request: per_operator: "},
      {R"({"id":1,"op":"run","runs":1})", "no model is loaded"},
      {R"({"id":1,"op":"compute","inputs":[]})", "request: inputs: "},
      {R"({"id":1,"op":"compute","inputs":{"x":1},"folder":"/tmp"})", "request: inputs.x: "},
      {R"({"id":1,"op":"compute","inputs":{"x":"/no/such.npy"},"folder":"/tmp"})", "/no/such.npy"}};
  for (const auto& [request, message] : cases) {
    const auto reply = session(request).at(0);
    EXPECT_EQ(reply["id"], 1) << request;
    EXPECT_EQ(reply["ok"], false) << request;
    EXPECT_THAT(reply["error"]["message"].get<std::string>(), ::testing::HasSubstr(message));
  }
}

TEST(ServeRuntime, SaysSoWhenNobodyReadsItsReplies) {
  EchoRuntime runtime;
  std::istringstream in("{}\n");
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(serve_runtime(runtime, in, out).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace fleetfit::measure
