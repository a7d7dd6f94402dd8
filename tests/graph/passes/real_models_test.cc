#include "fleetfit/core/file.h"
#include "fleetfit/graph/import.h"
#include "pass_testing.h"
#include "tests/sanitized.h"
#include "tests/shared_data.h"

namespace fleetfit::graph {
namespace {

std::optional<Graph> load(const std::string& name) {
  const auto folder = shared_data();
  if (!folder) return std::nullopt;
  const auto mapped = core::MappedFile::open(*folder / "models" / "onnx" / name).value();
  return import_onnx(mapped.bytes(), *folder).value().graph;
}

bool is_too_slow(const std::string& name) { return kSanitized && name == "super_resolution.onnx"; }

class RealModel : public testing::TestWithParam<std::string> {};

TEST_P(RealModel, ComputesTheSameAfterSimplify) {
  if (is_too_slow(GetParam())) GTEST_SKIP() << "large images take a minute under sanitizers";
  const auto before = load(GetParam());
  if (!before) GTEST_SKIP() << "the shared data folder is not there";
  auto after = *before;
  ASSERT_TRUE(simplify(after));
  EXPECT_LT(after.nodes.size(), before->nodes.size());
  expect_equivalent(*before, after);
}

TEST_P(RealModel, ComputesTheSameInBothLayouts) {
  if (is_too_slow(GetParam())) GTEST_SKIP() << "large images take a minute under sanitizers";
  auto before = load(GetParam());
  if (!before) GTEST_SKIP() << "the shared data folder is not there";
  ASSERT_TRUE(simplify(*before));
  auto nhwc = *before;
  ASSERT_TRUE(convert_layout(nhwc, Layout::nhwc));
  expect_equivalent(*before, nhwc);
  auto nchw = nhwc;
  ASSERT_TRUE(convert_layout(nchw, Layout::nchw));
  EXPECT_EQ(nchw.nodes.size(), before->nodes.size());
  expect_equivalent(*before, nchw);
}

INSTANTIATE_TEST_SUITE_P(Onnx, RealModel,
                         testing::Values("fastestdet.onnx", "yunet_n_320.onnx",
                                         "ultralight_face_slim320.onnx", "super_resolution.onnx",
                                         "ppocr_mobile_v2_cls.onnx"),
                         [](const auto& model) {
                           return model.param.substr(0, model.param.find('.'));
                         });

}  // namespace
}  // namespace fleetfit::graph
