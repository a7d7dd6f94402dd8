#include "fleetfit/graph/task_networks.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/tensor_data.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Op>
std::int64_t count(const Graph& graph) {
  return std::ranges::count_if(
      graph.nodes, [](const Node& node) { return std::holds_alternative<Op>(node.op); });
}

const Shape& output_shape(const Graph& graph) { return *graph.tensor(graph.outputs[0]).shape; }

std::int64_t weights(const Graph& graph, std::string_view begin) {
  std::int64_t sum = 0;
  for (const auto& tensor : graph.tensors)
    if (tensor.name.starts_with(begin)) sum += element_count(*tensor.shape).value();
  return sum;
}

TEST(M5, HasTheLayersOfTheUsualOne) {
  const auto m5 = build_m5({.channels = 32, .classes = 35}).value();
  EXPECT_THAT(output_shape(m5), ElementsAre(1, 35));
  EXPECT_EQ(count<Conv>(m5), 4);
  // 80 x 32, then kernels of 3: 32 x 32, 32 x 64, 64 x 64.
  EXPECT_EQ(weights(m5, "Conv.weight"), 80 * 32 + 3 * (32 * 32 + 32 * 64 + 64 * 64));
  EXPECT_EQ(weights(m5, "Gemm.weight"), 64 * 35);
}

TEST(M5, RefusesRecordingsThatItsPoolingsUseUp) {
  EXPECT_TRUE(build_m5({.length = 255 * 16 + 1}).has_value());
  EXPECT_THAT(build_m5({.length = 255 * 16}).error().message, HasSubstr("it needs 4081"));
}

TEST(TextRnn, StrideIsTheNumberOfWordsOfAStep) {
  for (const auto& [stride, steps] : {std::pair(1, 12), {3, 4}, {5, 2}, {12, 1}}) {
    const auto rnn =
        build_text_rnn(
            {.length = 12, .vocabulary = 100, .embedding = 8, .hidden = 6, .stride = stride})
            .value();
    EXPECT_THAT(output_shape(rnn), ElementsAre(1, 4));
    EXPECT_EQ(count<Activate>(rnn), steps);
    EXPECT_EQ(weights(rnn, "Rnn.weight"), 36) << "steps share their weights";
  }
  EXPECT_THAT(build_text_rnn({.length = 8, .stride = 9}).error().message, HasSubstr("stride of 9"));
}

TEST(TextRnn, OrderOfWordsMatters) {
  const auto rnn =
      build_text_rnn({.length = 4, .vocabulary = 10, .embedding = 8, .hidden = 6, .stride = 1})
          .value();
  const auto logits = [&](std::vector<std::int64_t> words) {
    const std::vector<Value> inputs{{.dtype = DType::i64,
                                     .shape = {1, 4},
                                     .data = TensorData::copy(words),
                                     .quantization = {}}};
    const auto outputs = evaluate(rnn, inputs).value();
    std::vector<float> numbers(4);
    outputs[0].data.copy_to(std::as_writable_bytes(std::span(numbers)));
    return numbers;
  };
  EXPECT_EQ(logits({1, 2, 3, 4}), logits({1, 2, 3, 4}));
  EXPECT_NE(logits({1, 2, 3, 4}), logits({4, 3, 2, 1}));
}

TEST(SmallYolo, SpeaksOfEveryCell) {
  const auto yolo = build_small_yolo({.size = 96, .channels = 3, .classes = 7}).value();
  EXPECT_THAT(output_shape(yolo), ElementsAre(1, 12, 12, 12));
  EXPECT_THAT(build_small_yolo({.size = 60}).error().message, HasSubstr("no multiple of 8"));
  EXPECT_THAT(build_small_yolo({.classes = 0}).error().message, HasSubstr("classes is 0"));
}

}  // namespace
}  // namespace fleetfit::graph
