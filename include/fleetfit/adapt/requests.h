#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/adapt/serving.h"
#include "fleetfit/core/result.h"

/// Requests to a server of subnets as JSON (docs/serving.md).
namespace fleetfit::adapt {

struct PredictRequest {
  std::string id = "null";  ///< as JSON: a number, a text, or null if it has none
  std::vector<float> input = {};
};

/// The longest request that makes sense for an input of this shape.
std::size_t most_request_bytes(std::span<const std::int64_t> input_shape);

/// {"id", "input": numbers, in lists inside of lists or not, or {"npy_base64": text}}. Every error
/// is `invalid_input` and names the field.
Result<PredictRequest> parse_predict_request(std::string_view text,
                                             std::span<const std::int64_t> input_shape);

/// The answer to a request, whatever it is, as JSON on one line without a line end.
struct Reply {
  std::string json = {};
  bool ok = true;
};

/// Serves the request that the text is. `classes` are the names of the classes, if they are known.
Reply answer_request(SubnetServer& server, std::span<const std::string> classes,
                     std::string_view text);

/// What is answered to a request that cannot even be read: {"id": null, "error"}.
Reply refusal(std::string_view message);

}  // namespace fleetfit::adapt
