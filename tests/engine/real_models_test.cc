// Models that people use, on the engine against the plain interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "fleetfit/data/dataset.h"
#include "fleetfit/data/image.h"
#include "fleetfit/graph/import.h"
#include "tests/engine/compare.h"
#include "tests/sanitized.h"
#include "tests/shared_data.h"

namespace fleetfit::engine {
namespace {

namespace fs = std::filesystem;

struct RealModel {
  std::string file;
  bool is_large = false;  ///< takes too long under sanitizers
  /// A convolution that adds at once rounds once where the interpreter rounds twice. Noise instead
  /// of an image, and a steep softmax, may make much of it.
  int fused_quanta = 2;
};

class RealModels : public testing::TestWithParam<RealModel> {};

TEST_P(RealModels, GiveWhatTheInterpreterGives) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "the shared data folder is not there";
  if (kSanitized && GetParam().is_large) GTEST_SKIP() << "takes too long under sanitizers";
  const auto model = graph::import_model(*data / "models" / GetParam().file);
  ASSERT_TRUE(model) << model.error().message;
  const auto inputs = graph::random_inputs(model->graph, 7);
  const auto expected = graph::evaluate(model->graph, inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  for (const auto library : {Library::automatic, Library::xnnpack}) {
    SCOPED_TRACE(static_cast<int>(library));
    const auto actual = run_on_engine(
        model->graph, inputs, {.threads = 2, .library = library, .choosing = Choosing::fixed});
    ASSERT_TRUE(actual) << actual.error().message;
    ASSERT_EQ(actual->size(), expected->size());
    const int quanta = library == Library::automatic ? GetParam().fused_quanta : 2;
    for (std::size_t i = 0; i < expected->size(); ++i)
      expect_alike((*expected)[i], (*actual)[i], {.relative = 1e-3, .quanta = quanta});
  }
}

TEST_P(RealModels, NeedTheInterpreterForNothing) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "the shared data folder is not there";
  const auto model = graph::import_model(*data / "models" / GetParam().file);
  ASSERT_TRUE(model) << model.error().message;
  const auto program = Program::prepare(model->graph, {.choosing = Choosing::fixed});
  ASSERT_TRUE(program) << program.error().message;
  for (const auto& step : program->step_times()) {
    EXPECT_NE(step.kernel, "reference") << step.name << " (" << step.type << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RealModels,
    testing::Values(RealModel{"onnx/fastestdet.onnx", true},
                    RealModel{"onnx/ppocr_mobile_v2_cls.onnx"},
                    RealModel{"onnx/super_resolution.onnx", true},
                    RealModel{"onnx/ultralight_face_slim320.onnx", true},
                    RealModel{"onnx/yunet_n_320.onnx", true},
                    RealModel{"tflite/coral_deeplabv3_mnv2_dm05_pascal_quant.tflite", true},
                    RealModel{"tflite/coral_mobilenet_v1_0.25_128_quant.tflite"},
                    RealModel{"tflite/coral_mobilenet_v1_0.5_160_quant.tflite", true},
                    RealModel{"tflite/mediapipe_face_detection_short_range.tflite"},
                    RealModel{"tflite/mediapipe_hand_recrop.tflite"},
                    RealModel{"tflite/mediapipe_selfie_segmentation.tflite"},
                    RealModel{"tflite/mlperftiny_ad01_fp32.tflite"},
                    RealModel{"tflite/mlperftiny_ad01_int8.tflite"},
                    RealModel{"tflite/mlperftiny_ic_resnet8_fp32.tflite"},
                    RealModel{.file = "tflite/mlperftiny_ic_resnet8_int8.tflite",
                              .fused_quanta = 64},
                    RealModel{"tflite/mlperftiny_kws_dscnn_fp32.tflite"},
                    RealModel{"tflite/mlperftiny_kws_dscnn_int8.tflite"},
                    RealModel{"tflite/mlperftiny_vww96_fp32.tflite"},
                    RealModel{"tflite/mlperftiny_vww96_int8.tflite"},
                    RealModel{"tflite/tflm_micro_speech_int8.tflite"},
                    RealModel{"tflite/tflm_person_detect_int8.tflite"},
                    RealModel{"tflite/ultralight_face_slim320.tflite", true}),
    [](const auto& test) {
      std::string name = fs::path(test.param.file).stem().string();
      for (char& letter : name) letter = letter == '.' || letter == '-' ? '_' : letter;
      return name + "_" + fs::path(test.param.file).extension().string().substr(1);
    });

/// The image stretched to a square of bytes, as the network takes them.
Result<std::vector<std::uint8_t>> bytes_of(const data::Image& image, std::int64_t size) {
  const data::Item item{.image = image};
  const auto batch = data::make_batch(
      std::span(&item, 1),
      {.height = size, .width = size, .channels = 3, .order = data::PixelOrder::nhwc, .scale = 1});
  if (!batch) return tl::unexpected(batch.error());
  std::vector<std::uint8_t> bytes;
  for (const float value : batch->values)
    bytes.push_back(static_cast<std::uint8_t>(std::lround(value)));
  return bytes;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class BirdClassifier : public testing::TestWithParam<std::string> {};

TEST_P(BirdClassifier, PutsTheChickadeeFirst) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "the shared data folder is not there";
  const auto model = graph::import_model(*data / "models/tflite" / (GetParam() + ".tflite"));
  ASSERT_TRUE(model) << model.error().message;
  const auto image = data::read_image(*data / "images/bird.bmp");
  ASSERT_TRUE(image) << image.error().message;
  const auto labels = lines_of(*data / "images/imagenet_labels.txt");
  const auto& input = model->graph.tensor(model->graph.inputs[0]);
  ASSERT_EQ(input.dtype, graph::DType::u8);
  const auto pixels = bytes_of(*image, (*input.shape)[1]);
  ASSERT_TRUE(pixels) << pixels.error().message;
  const std::vector<graph::Value> inputs{
      {input.dtype, *input.shape, graph::TensorData::copy(*pixels), input.quantization}};
  for (const auto library : {Library::automatic, Library::xnnpack}) {
    const auto outputs =
        run_on_engine(model->graph, inputs, {.library = library, .choosing = Choosing::fixed});
    ASSERT_TRUE(outputs) << outputs.error().message;
    const auto scores = outputs->at(0).data.as<std::uint8_t>();
    ASSERT_EQ(scores.size(), labels.size());
    const auto first = std::ranges::max_element(scores) - scores.begin();
    EXPECT_EQ(labels[static_cast<std::size_t>(first)], "chickadee");
  }
}

INSTANTIATE_TEST_SUITE_P(Coral, BirdClassifier,
                         testing::Values("coral_mobilenet_v1_0.25_128_quant",
                                         "coral_mobilenet_v1_0.5_160_quant"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace fleetfit::engine
