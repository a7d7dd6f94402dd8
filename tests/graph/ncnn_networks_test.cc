// The 35 networks of ncnn's benchmark: whether they are all read, with the extents that their files
// note beside most layers, and with the parameters that are published.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "fleetfit/graph/import.h"
#include "tests/shared_data.h"

namespace fleetfit::graph {
namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

ImportOptions options_for(const std::filesystem::path& file) {
  // 145 positions are 12 x 12 patches of 32 pixels and a class token.
  if (file.stem() == "vision_transformer") return {.dimensions = {{"height", 384}, {"width", 384}}};
  if (file.stem() == "FastestDet") return {.dimensions = {{"height", 352}, {"width", 352}}};
  return {};
}

/// Extents by blob as the file notes them: outermost first, without a batch.
std::map<std::string, Shape> noted_shapes(const std::string& text) {
  std::map<std::string, Shape> shapes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string type;
    std::string name;
    int inputs = 0;
    int outputs = 0;
    if (!(words >> type >> name >> inputs >> outputs)) continue;
    std::vector<std::string> blobs(static_cast<std::size_t>(inputs + outputs));
    for (auto& blob : blobs) words >> blob;
    const auto start = line.find("-23330=");
    if (start == std::string::npos) continue;
    std::istringstream numbers(line.substr(start + 7));
    char comma = 0;
    int count = 0;
    numbers >> count;
    for (int i = 0; i < outputs; ++i) {
      std::int64_t dims = 0;
      std::int64_t w = 0;
      std::int64_t h = 0;
      std::int64_t c = 0;
      numbers >> comma >> dims >> comma >> w >> comma >> h >> comma >> c;
      const auto blob = blobs[static_cast<std::size_t>(inputs + i)];
      shapes[blob] = dims == 3 ? Shape{c, h, w} : dims == 2 ? Shape{h, w} : Shape{w};
    }
  }
  return shapes;
}

/// The shape of a tensor as ncnn would say it.
Shape without_batch(Shape shape, std::size_t dims) {
  shape.erase(shape.begin());
  const bool one_by_one = dims == 1 && shape.size() == 3 && shape[1] == 1 && shape[2] == 1;
  if (one_by_one) shape.resize(1);
  return shape;
}

class NcnnNetworks : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "there is no folder of shared data";
    folder_ = *data / "models" / "ncnn_params";
  }

  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().extension() == ".param") found.push_back(entry.path());
    }
    return found;
  }

  Result<ImportedModel> import(const std::filesystem::path& file) const {
    return import_ncnn(read(file), options_for(file));
  }

  std::filesystem::path folder_;
};

TEST_F(NcnnNetworks, AreAllReadWithNothingUnknownButDetection) {
  ASSERT_EQ(files().size(), 35u);
  for (const auto& file : files()) {
    const auto model = import(file);
    ASSERT_TRUE(model.has_value()) << file << ": " << model.error().message;
    for (const auto& node : model->graph.nodes) {
      const auto* unknown = std::get_if<Unknown>(&node.op);
      if (unknown == nullptr) continue;
      EXPECT_THAT(unknown->type, testing::AnyOf("PriorBox", testing::EndsWith("DetectionOutput")));
      EXPECT_FALSE(unknown->attributes.empty()) << file << ": " << node.name;
    }
  }
}

TEST_F(NcnnNetworks, HaveTheExtentsThatTheirFilesNote) {
  int compared = 0;
  for (const auto& file : files()) {
    const auto model = import(file);
    ASSERT_TRUE(model.has_value()) << file << ": " << model.error().message;
    const auto noted = noted_shapes(read(file));
    for (const auto& tensor : model->graph.tensors) {
      const auto found = noted.find(tensor.name);
      if (found == noted.end()) continue;
      ASSERT_TRUE(tensor.shape.has_value()) << file << ": " << tensor.name;
      EXPECT_EQ(without_batch(*tensor.shape, found->second.size()), found->second)
          << file << ": " << tensor.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 2300);
}

TEST_F(NcnnNetworks, HaveThePublishedNumberOfParameters) {
  // In millions, from the papers and model zoos; batch normalization is folded in these files.
  const std::map<std::string, double> published = {
      {"alexnet", 60.97},      {"vgg16", 138.36},         {"squeezenet", 1.235},
      {"googlenet", 7.0},      {"resnet18", 11.69},       {"resnet50", 25.56},
      {"mobilenet", 4.23},     {"mobilenet_v2", 3.50},    {"mnasnet", 4.38},
      {"shufflenet_v2", 2.28}, {"efficientnet_b0", 5.29}, {"efficientnetv2_b0", 7.14},
      {"regnety_400m", 4.34},  {"yolov4-tiny", 6.06},     {"vision_transformer", 88.3}};
  for (const auto& [name, millions] : published) {
    const auto model = import(folder_ / (name + ".param"));
    ASSERT_TRUE(model.has_value()) << name << ": " << model.error().message;
    double count = 0;
    for (const auto& tensor : model->graph.tensors) {
      if (tensor.is_constant() && is_float(tensor.dtype))
        count += static_cast<double>(elements(*tensor.shape));
    }
    EXPECT_NEAR(count / 1e6 / millions, 1, 0.01) << name;
  }
}

TEST_F(NcnnNetworks, HaveAsManyWeightsInInt8AsInFloat) {
  const auto weights = [&](const std::string& name, DType type) {
    std::int64_t count = 0;
    const auto model = import(folder_ / (name + ".param"));
    EXPECT_TRUE(model.has_value()) << name;
    for (const auto& node : model->graph.nodes) {
      for (const auto id : node.inputs) {
        const auto& tensor = model->graph.tensor(id);
        if (tensor.is_constant() && tensor.dtype == type && tensor.shape->size() > 1)
          count += elements(*tensor.shape);
      }
    }
    return count;
  };
  for (const std::string name : {"googlenet", "mobilenet", "resnet18", "resnet50", "squeezenet"}) {
    EXPECT_EQ(weights(name, DType::f32),
              weights(name + "_int8", DType::i8) + weights(name + "_int8", DType::f32))
        << name;
    EXPECT_GT(weights(name + "_int8", DType::i8), weights(name + "_int8", DType::f32)) << name;
  }
}

TEST_F(NcnnNetworks, SayWhichLayerDoesNotFitAGuessedSize) {
  const auto model = import_ncnn(read(folder_ / "vision_transformer.param"));

  ASSERT_FALSE(model.has_value());
  EXPECT_THAT(model.error().message, testing::HasSubstr("layer Add_11"));
  EXPECT_THAT(model.error().message, testing::HasSubstr("--dim height="));
}

}  // namespace
}  // namespace fleetfit::graph
