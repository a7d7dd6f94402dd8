#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "fleetfit/adapt/requests.h"

namespace {

using namespace fleetfit;
using namespace fleetfit::adapt;

/// Gives its input back.
class EchoServer final : public SubnetServer {
 public:
  const std::vector<std::int64_t>& input_shape() const override { return shape_; }
  const std::vector<std::int64_t>& output_shape() const override { return shape_; }
  Result<Answer> serve(std::span<const float> input, std::optional<std::int64_t>) override {
    if (input.size() != 4) std::abort();
    return Answer{.best_class = 2, .scores = {input.begin(), input.end()}, .subnet = "o"};
  }
  ServingReport report() const override { return {}; }
  void wait_until_prepared() override {}

 private:
  std::vector<std::int64_t> shape_ = {1, 1, 2, 2};
};

}  // namespace

// Whatever the line, there is one line of JSON with an id, and a class or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  EchoServer server;
  const std::vector<std::string> classes = {"a", "b", "c"};
  const auto reply =
      answer_request(server, classes, std::string_view(reinterpret_cast<const char*>(data), size));
  const auto read = nlohmann::json::parse(reply.json, nullptr, /*allow_exceptions=*/false);
  if (reply.json.find('\n') != std::string::npos || !read.is_object() || !read.contains("id") ||
      reply.ok == read.contains("error")) {
    std::abort();
  }
  return 0;
}
