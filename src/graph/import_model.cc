#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "fleetfit/core/file.h"
#include "fleetfit/core/names.h"
#include "fleetfit/graph/import.h"
#include "graph/onnx/import_onnx.h"
#include "graph/open_dimensions.h"

namespace fleetfit::graph {
namespace {

using Bytes = std::span<const std::byte>;

bool has_at(Bytes bytes, std::size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() &&
         std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

/// TFLite and ncnn begin with marks of their own, ONNX has none.
ModelFormat format_of(Bytes bytes, const std::filesystem::path& file) {
  if (has_at(bytes, 4, "TFL3")) return ModelFormat::tflite;
  if (has_at(bytes, 0, "7767517")) return ModelFormat::ncnn;
  if (file.extension() == ".tflite") return ModelFormat::tflite;
  if (file.extension() == ".param") return ModelFormat::ncnn;
  return ModelFormat::onnx;
}

Result<ImportedModel> import_bytes(const std::shared_ptr<core::MappedFile>& mapped,
                                   const std::filesystem::path& file,
                                   const ImportOptions& options) {
  const auto bytes = mapped->bytes();
  switch (format_of(bytes, file)) {
    case ModelFormat::tflite:
      return import_tflite(bytes, options);
    case ModelFormat::ncnn:
      return import_ncnn({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options);
    case ModelFormat::onnx:
      break;
  }
  return onnx_format::import(bytes, mapped, file.parent_path(), options);
}

}  // namespace

std::string_view to_string(ModelFormat format) {
  static constexpr core::Name kAll[] = {
      {ModelFormat::tflite, "tflite"}, {ModelFormat::ncnn, "ncnn"}, {ModelFormat::onnx, "onnx"}};
  return core::Names{.all = kAll}.of(static_cast<std::int64_t>(format));
}

Result<ImportedModel> import_model(const std::filesystem::path& file,
                                   const ImportOptions& options) {
  FLEETFIT_ASSIGN(auto mapped, core::MappedFile::open(file));
  if (mapped.bytes().empty())
    return fail(ErrorCode::invalid_input, fmt::format("{}: the file is empty", file.string()));
  FLEETFIT_ASSIGN(auto model,
                  core::within(file.string(),
                               import_bytes(std::make_shared<core::MappedFile>(std::move(mapped)),
                                            file, options)));
  return model;
}

Status close_dimensions(Tensor& tensor, const std::vector<OpenDimension>& dimensions,
                        const ImportOptions& options, std::vector<AssumedDimension>& assumed) {
  tensor.shape.emplace();
  tensor.symbols.clear();
  bool any_open = false;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto& dimension = dimensions[i];
    if (dimension.extent > 0) {
      tensor.shape->push_back(dimension.extent);
      tensor.symbols.emplace_back();
      continue;
    }
    any_open = true;
    tensor.symbols.push_back(!dimension.name.empty() ? dimension.name
                                                     : fmt::format("{}.{}", tensor.name, i));
    const auto given = options.dimensions.find(tensor.symbols.back());
    if (given != options.dimensions.end()) {
      if (given->second < 1) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("dimension {} cannot be {}", given->first, given->second));
      }
      tensor.shape->push_back(given->second);
      continue;
    }
    tensor.shape->push_back(i == 0 ? options.batch : options.open_extent);
    assumed.push_back({tensor.name, tensor.symbols.back(), tensor.shape->back()});
  }
  if (!any_open) tensor.symbols.clear();
  if (const auto count = element_count(*tensor.shape); !count) {
    return core::within(fmt::format("input '{}'", tensor.name), count.error());
  }
  return {};
}

}  // namespace fleetfit::graph
