#include "graph/tflite/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "graph/open_dimensions.h"

namespace fleetfit::graph::tflite {
namespace {

constexpr std::int64_t kOpen = -1;
constexpr std::size_t kMostDimensions = 16;
constexpr std::size_t kLongestName = 10'000;

std::string dimension_name(std::size_t axis) {
  return axis == 0 ? "N" : fmt::format("dim{}", axis);
}

std::int64_t batch_of(const ImportOptions& options) {
  const auto named = options.dimensions.find(dimension_name(0));
  return named != options.dimensions.end() ? named->second : options.batch;
}

/// The extents in the file, kOpen for those that it leaves open.
Result<Shape> declared_extents(const file::Tensor& tensor) {
  Shape extents;
  const auto* shape = tensor.shape();
  const auto* signature = tensor.shape_signature();
  if (shape == nullptr) return extents;
  if (shape->size() > kMostDimensions)
    return refuse(fmt::format("{} dimensions are absurdly many", shape->size()));
  const bool has_signature = signature != nullptr && signature->size() == shape->size();
  for (flatbuffers::uoffset_t i = 0; i < shape->size(); ++i) {
    const std::int64_t extent = shape->Get(i);
    if (extent < kOpen) return refuse(fmt::format("extent {} is negative", extent));
    extents.push_back(has_signature && signature->Get(i) == kOpen ? kOpen : extent);
  }
  return extents;
}

bool has_open(const Shape& extents) {
  return std::find(extents.begin(), extents.end(), kOpen) != extents.end();
}

/// Whole numbers of 4 bits, two in a byte, the lower half first.
std::vector<std::byte> unpacked_4_bits(std::span<const std::byte> packed, std::size_t count) {
  std::vector<std::byte> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto half = std::to_integer<int>(packed[i / 2] >> (i % 2 * 4)) & 0xF;
    values[i] = static_cast<std::byte>(half < 8 ? half : half - 16);
  }
  return values;
}

class TensorReader {
 public:
  TensorReader(const file::Model& file, const ImportOptions& options, CopyBudget& budget)
      : file_(file), options_(options), budget_(budget) {}

  /// The tensor, without a shape if that is open.
  Result<Tensor> read(const file::Tensor& source) {
    Tensor tensor{.dtype = dtype_of(source.type())};
    if (const auto* name = source.name()) {
      if (!budget_.take(name->size())) return too_large();
      if (name->size() > kLongestName) return refuse("its name is absurdly long");
      tensor.name = name->str();
    }
    FLEETFIT_ASSIGN(auto extents, declared_extents(source));
    const auto* data = constant_bytes(source);
    const bool scalar_or_unknown = extents.empty() && !source.has_rank();
    if (!scalar_or_unknown || data != nullptr) tensor.shape = known_shape(std::move(extents));
    if (tensor.shape) {
      FLEETFIT_TRY(element_count(*tensor.shape));
    }
    FLEETFIT_TRY(read_quantization(source, tensor));
    FLEETFIT_TRY(read_constant(source, tensor));
    return tensor;
  }

 private:
  static tl::unexpected<Error> too_large() {
    return refuse("the file refers to the same bytes again and again");
  }

  /// An open first dimension is the batch; nobody can tell others before shapes are inferred.
  std::optional<Shape> known_shape(Shape extents) const {
    if (!extents.empty() && extents[0] == kOpen) extents[0] = batch_of(options_);
    if (has_open(extents)) return std::nullopt;
    return extents;
  }

  const file::Buffer* buffer_of(const file::Tensor& source) const {
    const auto* buffers = file_.buffers();
    if (source.buffer() == 0 || buffers == nullptr || source.buffer() >= buffers->size())
      return nullptr;
    return buffers->Get(source.buffer());
  }

  const flatbuffers::Vector<std::uint8_t>* constant_bytes(const file::Tensor& source) const {
    const auto* buffer = buffer_of(source);
    const auto* data = buffer == nullptr ? nullptr : buffer->data();
    return data == nullptr || data->size() == 0 ? nullptr : data;
  }

  Status read_quantization(const file::Tensor& source, Tensor& tensor) {
    const auto* given = source.quantization();
    if (given == nullptr || !is_integer(tensor.dtype)) return {};
    if (given->details_type() != 0)
      return fail(ErrorCode::unsupported, "its quantization is not by scales and zero points");
    const auto* scales = given->scale();
    if (scales == nullptr || scales->size() == 0) return {};
    if (!budget_.take(scales->size() * (sizeof(float) + sizeof(std::int32_t)))) return too_large();

    Quantization quantization;
    quantization.scales.assign(scales->begin(), scales->end());
    const bool positive = std::all_of(quantization.scales.begin(), quantization.scales.end(),
                                      [](float s) { return std::isfinite(s) && s > 0; });
    if (!positive) return refuse("a scale of its quantization is not a positive number");
    FLEETFIT_TRY(read_zero_points(*given, quantization));
    if (quantization.scales.size() > 1) {
      const auto rank = tensor.shape ? static_cast<std::int64_t>(tensor.shape->size()) : 0;
      // Some converters give a bias, which has one dimension only, the axis of its weights.
      const auto axis = rank == 1 ? 0 : given->quantized_dimension();
      if (axis < 0 || axis >= rank ||
          (*tensor.shape)[static_cast<std::size_t>(axis)] !=
              static_cast<std::int64_t>(quantization.scales.size())) {
        return refuse(
            fmt::format("{} scales do not fit its dimension {}", quantization.scales.size(), axis));
      }
      quantization.axis = axis;
    }
    tensor.quantization = std::move(quantization);
    return {};
  }

  static Status read_zero_points(const file::QuantizationParameters& given,
                                 Quantization& quantization) {
    const auto* points = given.zero_point();
    if (points == nullptr || points->size() == 0) {
      quantization.zero_points.assign(quantization.scales.size(), 0);
      return {};
    }
    if (points->size() != quantization.scales.size()) {
      return refuse(fmt::format("it has {} zero points and {} scales", points->size(),
                                quantization.scales.size()));
    }
    for (flatbuffers::uoffset_t i = 0; i < points->size(); ++i) {
      // Copied, since the check of a FlatBuffer leaves out the alignment of lists.
      std::int64_t point = 0;
      std::memcpy(&point, points->Data() + i * sizeof(point), sizeof(point));
      if (point < std::numeric_limits<std::int32_t>::min() ||
          point > std::numeric_limits<std::int32_t>::max())
        return refuse(fmt::format("zero point {} is out of range", point));
      quantization.zero_points.push_back(static_cast<std::int32_t>(point));
    }
    return {};
  }

  Status read_constant(const file::Tensor& source, Tensor& tensor) {
    const auto* buffer = buffer_of(source);
    if (source.buffer() != 0 && buffer == nullptr)
      return refuse(fmt::format("there is no buffer {}", source.buffer()));
    if (buffer == nullptr) return {};
    if (buffer->offset() > 1)
      return fail(ErrorCode::unsupported, "its data is stored outside of the FlatBuffer");
    const auto* data = constant_bytes(source);
    if (data == nullptr) return {};
    if (source.sparsity() != nullptr) return fail(ErrorCode::unsupported, "it is a sparse tensor");
    if (!tensor.shape) return refuse("it is a constant with an open dimension");
    FLEETFIT_ASSIGN(auto bytes,
                    copied(source, tensor, std::as_bytes(std::span(data->data(), data->size()))));
    tensor.data = std::move(bytes);
    return {};
  }

  /// The buffer's bytes as the tensor's elements; tensors with one buffer share them.
  Result<TensorData> copied(const file::Tensor& source, const Tensor& tensor,
                            std::span<const std::byte> stored) {
    const bool packed = source.type() == file::TensorType::INT4;
    const auto count = static_cast<std::size_t>(elements(*tensor.shape));
    const bool sized = size_of(tensor.dtype) > 0;
    const auto expected = packed ? (count + 1) / 2 : count * size_of(tensor.dtype);
    if (sized && stored.size() != expected) {
      return refuse(fmt::format("it is a constant {} of {} with {} bytes, not {}",
                                to_string(*tensor.shape), to_string(tensor.dtype), stored.size(),
                                expected));
    }
    const bool as_stored = !packed && tensor.dtype != DType::boolean;
    const auto known = copied_.find(source.buffer());
    if (as_stored && known != copied_.end()) return known->second;
    if (!budget_.take(packed ? count : stored.size())) return too_large();
    if (packed) return TensorData::own(unpacked_4_bits(stored, count));

    std::vector<std::byte> bytes(stored.begin(), stored.end());
    if (!as_stored) {
      // Any other value than 0 and 1 must not be read as a bool.
      for (auto& value : bytes) value = std::byte{value != std::byte{0}};
      return TensorData::own(std::move(bytes));
    }
    return copied_.emplace(source.buffer(), TensorData::own(std::move(bytes))).first->second;
  }

  const file::Model& file_;
  const ImportOptions& options_;
  CopyBudget& budget_;
  std::map<std::uint32_t, TensorData> copied_;
};

/// Names an input's open dimensions and gives them an extent.
Status open_input(const file::Tensor& source, const ImportOptions& options, Tensor& tensor,
                  std::vector<AssumedDimension>& assumed) {
  tensor.data.reset();
  FLEETFIT_ASSIGN(const auto extents, declared_extents(source));
  std::vector<OpenDimension> dimensions;
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    dimensions.push_back({extents[axis], dimension_name(axis)});
  return close_dimensions(tensor, dimensions, options, assumed);
}

std::string describe_tensor(const file::Tensor& tensor, std::size_t index) {
  constexpr std::size_t kLongEnough = 100;
  const auto* name = tensor.name();
  return fmt::format("tensor {} '{}'", index,
                     name == nullptr ? "" : name->string_view().substr(0, kLongEnough));
}

Status read_inputs(const file::SubGraph& subgraph, const ImportOptions& options,
                   ImportedModel& model) {
  if (subgraph.inputs() == nullptr) return {};
  std::vector<bool> seen(model.graph.tensors.size());
  for (const auto id : *subgraph.inputs()) {
    const auto index = static_cast<std::size_t>(id);
    if (id < 0 || index >= seen.size())
      return refuse(fmt::format("input {} of the graph is no tensor", id));
    if (seen[index]) return refuse(fmt::format("tensor {} is an input of the graph twice", id));
    seen[index] = true;
    const auto& source = *subgraph.tensors()->Get(static_cast<flatbuffers::uoffset_t>(id));
    if (auto opened = open_input(source, options, model.graph.tensor(id), model.assumed); !opened)
      return core::within(describe_tensor(source, index), opened.error());
    model.graph.inputs.push_back(id);
  }
  return {};
}

}  // namespace

DType dtype_of(file::TensorType type) {
  switch (type) {
    case file::TensorType::FLOAT32:
      return DType::f32;
    case file::TensorType::FLOAT16:
      return DType::f16;
    case file::TensorType::BFLOAT16:
      return DType::bf16;
    case file::TensorType::FLOAT64:
      return DType::f64;
    case file::TensorType::INT4:
    case file::TensorType::INT8:
      return DType::i8;
    case file::TensorType::UINT8:
      return DType::u8;
    case file::TensorType::INT16:
      return DType::i16;
    case file::TensorType::UINT16:
      return DType::u16;
    case file::TensorType::INT32:
      return DType::i32;
    case file::TensorType::UINT32:
      return DType::u32;
    case file::TensorType::INT64:
      return DType::i64;
    case file::TensorType::UINT64:
      return DType::u64;
    case file::TensorType::BOOL:
      return DType::boolean;
    case file::TensorType::STRING:
      return DType::text;
    default:
      return DType::unknown;
  }
}

Status read_tensors(const file::Model& file, const ImportOptions& options, CopyBudget& budget,
                    ImportedModel& model) {
  const auto& subgraph = *file.subgraphs()->Get(0);
  const auto* sources = subgraph.tensors();
  TensorReader reader(file, options, budget);
  for (flatbuffers::uoffset_t i = 0; sources != nullptr && i < sources->size(); ++i) {
    auto tensor = reader.read(*sources->Get(i));
    if (!tensor) return core::within(describe_tensor(*sources->Get(i), i), tensor.error());
    model.graph.tensors.push_back(std::move(*tensor));
  }

  return read_inputs(subgraph, options, model);
}

}  // namespace fleetfit::graph::tflite
