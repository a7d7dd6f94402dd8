#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/import.h"
#include "tests/shared_data.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

/// Networks as published, with the number of operators that their files hold.
struct Published {
  std::string file;
  std::size_t operators = 0;
};

const Published kPublished[] = {
    {"coral_deeplabv3_mnv2_dm05_pascal_quant", 72},
    {"coral_mobilenet_v1_0.25_128_quant", 31},
    {"coral_mobilenet_v1_0.5_160_quant", 31},
    {"mediapipe_face_detection_short_range", 164},
    {"mediapipe_hand_recrop", 63},
    {"mediapipe_selfie_segmentation", 246},
    {"mlperftiny_ad01_fp32", 10},
    {"mlperftiny_ad01_int8", 10},
    {"mlperftiny_ic_resnet8_fp32", 16},
    {"mlperftiny_ic_resnet8_int8", 16},
    {"mlperftiny_kws_dscnn_fp32", 13},
    {"mlperftiny_kws_dscnn_int8", 13},
    {"mlperftiny_vww96_fp32", 31},
    {"mlperftiny_vww96_int8", 31},
    {"tflm_micro_speech_int8", 4},
    {"tflm_person_detect_int8", 31},
    {"ultralight_face_slim320", 92},
};

std::vector<std::byte> bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> raw{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(raw));
  return {bytes.begin(), bytes.end()};
}

class TfliteFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "there is no folder of shared data";
    folder_ = *data / "models" / "tflite";
    if (!std::filesystem::is_directory(folder_)) GTEST_SKIP() << "there is no " << folder_;
  }

  ImportedModel model(const std::string& name) {
    auto imported = import_tflite(bytes_of(folder_ / (name + ".tflite")));
    EXPECT_TRUE(imported) << name << ": " << imported.error().message;
    return imported ? std::move(*imported) : ImportedModel{};
  }

  std::filesystem::path folder_;
};

TEST_F(TfliteFiles, AreAllReadWithEveryOperatorKnown) {
  for (const auto& [file, operators] : kPublished) {
    const auto graph = model(file).graph;
    EXPECT_EQ(graph.nodes.size(), operators) << file;
    for (const auto& node : graph.nodes) {
      const auto* unknown = std::get_if<Unknown>(&node.op);
      EXPECT_EQ(unknown, nullptr) << file << ": " << describe(node) << ": " << unknown->reason;
    }
  }
}

TEST_F(TfliteFiles, KeepDeclaredShapesOfTheirOutputs) {
  const auto output = [this](const std::string& name) {
    const auto graph = model(name).graph;
    return graph.tensor(graph.outputs.at(0)).shape;
  };
  EXPECT_EQ(output("coral_deeplabv3_mnv2_dm05_pascal_quant"), (Shape{1, 513, 513}));
  EXPECT_EQ(output("coral_mobilenet_v1_0.25_128_quant"), (Shape{1, 1001}));
  EXPECT_EQ(output("mediapipe_face_detection_short_range"), (Shape{1, 896, 16}));
  EXPECT_EQ(output("mediapipe_hand_recrop"), (Shape{1, 1, 1, 4}));
  EXPECT_EQ(output("mediapipe_selfie_segmentation"), (Shape{1, 256, 256, 1}));
  EXPECT_EQ(output("mlperftiny_ic_resnet8_int8"), (Shape{1, 10}));
  EXPECT_EQ(output("tflm_micro_speech_int8"), (Shape{1, 4}));
}

TEST_F(TfliteFiles, TellInputsOfAQuantizedNetwork) {
  const auto graph = model("coral_mobilenet_v1_0.25_128_quant").graph;
  ASSERT_EQ(graph.inputs.size(), 1U);
  const auto& input = graph.tensor(graph.inputs[0]);
  EXPECT_EQ(input.name, "input");
  EXPECT_EQ(input.dtype, DType::u8);
  EXPECT_EQ(input.shape, (Shape{1, 128, 128, 3}));
  ASSERT_TRUE(input.quantization);
  EXPECT_THAT(input.quantization->scales, ElementsAre(FloatEq(1.0F / 128)));
  EXPECT_THAT(input.quantization->zero_points, ElementsAre(128));
}

TEST_F(TfliteFiles, TellTheOpenBatch) {
  const auto imported = model("mlperftiny_kws_dscnn_int8");
  const auto& input = imported.graph.tensor(imported.graph.inputs.at(0));
  EXPECT_EQ(input.name, "input_1");
  EXPECT_EQ(input.dtype, DType::i8);
  EXPECT_EQ(input.shape, (Shape{1, 49, 10, 1}));
  EXPECT_THAT(input.symbols, ElementsAre("N", "", "", ""));
  ASSERT_EQ(imported.assumed.size(), 1U);
  EXPECT_EQ(imported.assumed[0].extent, 1);
}

TEST_F(TfliteFiles, HaveDepthwiseConvolutionsWithOneGroupForEachChannel) {
  const auto graph = model("tflm_person_detect_int8").graph;
  // The first layer makes 8 channels of one, the others keep the number of channels.
  int depthwise = 0;
  for (const auto& node : graph.nodes) {
    const auto* conv = std::get_if<Conv>(&node.op);
    if (conv == nullptr || conv->groups == 1) continue;
    ++depthwise;
    const auto& weights = graph.tensor(node.inputs[1]);
    EXPECT_EQ(weights.shape->front(), conv->groups);
    EXPECT_EQ(weights.shape->back(), 1);
    EXPECT_EQ(weights.quantization->axis, 0);
  }
  EXPECT_EQ(depthwise, 13);
}

float real_value(std::int8_t stored, const Quantization& quantization) {
  return quantization.scales[0] *
         static_cast<float>(static_cast<int>(stored) - quantization.zero_points[0]);
}

TEST_F(TfliteFiles, SayTheSameAsFloatAndAsInt8) {
  for (const std::string name : {"mlperftiny_ic_resnet8", "mlperftiny_vww96"}) {
    const auto exact = model(name + "_fp32").graph;
    const auto quantized = model(name + "_int8").graph;
    const auto& input = quantized.tensor(quantized.inputs.at(0));
    std::vector<std::int8_t> stored;
    std::vector<float> real;
    for (std::int64_t i = 0; i < elements(*input.shape); ++i) {
      stored.push_back(
          static_cast<std::int8_t>(std::lround(100 * std::sin(0.01 * static_cast<double>(i)))));
      real.push_back(real_value(stored.back(), *input.quantization));
    }
    const Value real_input{DType::f32, *input.shape, TensorData::copy(real), std::nullopt};
    const Value stored_input{DType::i8, *input.shape, TensorData::copy(stored), input.quantization};
    const auto expected = evaluate(exact, std::span(&real_input, 1)).value();
    const auto actual = evaluate(quantized, std::span(&stored_input, 1)).value();

    const auto probabilities = expected.at(0).data.as<float>();
    const auto quantized_probabilities = actual.at(0).data.as<std::int8_t>();
    ASSERT_EQ(probabilities.size(), quantized_probabilities.size());
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
      EXPECT_NEAR(real_value(quantized_probabilities[i], *actual[0].quantization), probabilities[i],
                  0.06)
          << name << " class " << i;
    }
  }
}

}  // namespace
}  // namespace fleetfit::graph
