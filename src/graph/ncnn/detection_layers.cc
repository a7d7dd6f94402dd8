#include <array>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

struct Named {
  int id = 0;
  std::string_view name;
};

/// The parameters that the layer has, under their names.
std::map<std::string, Attribute> named_attributes(Conversion& c, std::span<const Named> names) {
  std::map<std::string, Attribute> attributes;
  for (const auto& [id, name] : names) {
    const auto& all = c.params().all();
    const auto found = all.find(id);
    if (found == all.end()) continue;
    const auto& param = found->second;
    const Ints whole = param.is_integer ? Ints(param.numbers.begin(), param.numbers.end()) : Ints();
    auto& attribute = attributes[std::string(name)];
    if (param.is_array && param.is_integer) attribute = whole;
    if (param.is_array && !param.is_integer) attribute = param.numbers;
    if (!param.is_array && param.is_integer) attribute = whole.front();
    if (!param.is_array && !param.is_integer) attribute = param.numbers.front();
  }
  return attributes;
}

void post_processing(Conversion& c, std::span<const Named> names) {
  c.unknown("detection post-processing is not run by fleetfit", named_attributes(c, names));
}

constexpr std::array<Named, 14> kPriorBox = {{{0, "min_sizes"},
                                              {1, "max_sizes"},
                                              {2, "aspect_ratios"},
                                              {3, "variance0"},
                                              {4, "variance1"},
                                              {5, "variance2"},
                                              {6, "variance3"},
                                              {7, "flip"},
                                              {8, "clip"},
                                              {9, "image_width"},
                                              {10, "image_height"},
                                              {11, "step_width"},
                                              {12, "step_height"},
                                              {13, "offset"}}};
constexpr std::array<Named, 9> kDetectionOutput = {{{0, "num_class"},
                                                    {1, "nms_threshold"},
                                                    {2, "nms_top_k"},
                                                    {3, "keep_top_k"},
                                                    {4, "confidence_threshold"},
                                                    {5, "variance0"},
                                                    {6, "variance1"},
                                                    {7, "variance2"},
                                                    {8, "variance3"}}};
constexpr std::array<Named, 5> kYoloDetectionOutput = {{{0, "num_class"},
                                                        {1, "num_box"},
                                                        {2, "confidence_threshold"},
                                                        {3, "nms_threshold"},
                                                        {4, "biases"}}};
constexpr std::array<Named, 7> kYolov3DetectionOutput = {{{0, "num_class"},
                                                          {1, "num_box"},
                                                          {2, "confidence_threshold"},
                                                          {3, "nms_threshold"},
                                                          {4, "biases"},
                                                          {5, "mask"},
                                                          {6, "anchors_scale"}}};

constexpr std::array<LayerType, 4> kLayers = {{
    {"PriorBox", [](Conversion& c) { post_processing(c, kPriorBox); }},
    {"DetectionOutput", [](Conversion& c) { post_processing(c, kDetectionOutput); }},
    {"YoloDetectionOutput", [](Conversion& c) { post_processing(c, kYoloDetectionOutput); }},
    {"Yolov3DetectionOutput", [](Conversion& c) { post_processing(c, kYolov3DetectionOutput); }},
}};

}  // namespace

std::span<const LayerType> detection_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
