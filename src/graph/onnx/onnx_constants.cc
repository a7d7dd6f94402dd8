#include "graph/onnx/onnx_constants.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <array>
#include <utility>

namespace fleetfit::graph::onnx_format {
namespace {

using TensorProto = onnx::TensorProto;

constexpr std::array<std::pair<int, DType>, 14> kTypes = {{
    {TensorProto::FLOAT, DType::f32},
    {TensorProto::FLOAT16, DType::f16},
    {TensorProto::BFLOAT16, DType::bf16},
    {TensorProto::DOUBLE, DType::f64},
    {TensorProto::INT8, DType::i8},
    {TensorProto::UINT8, DType::u8},
    {TensorProto::INT16, DType::i16},
    {TensorProto::UINT16, DType::u16},
    {TensorProto::INT32, DType::i32},
    {TensorProto::UINT32, DType::u32},
    {TensorProto::INT64, DType::i64},
    {TensorProto::UINT64, DType::u64},
    {TensorProto::BOOL, DType::boolean},
    {TensorProto::STRING, DType::text},
}};

/// The field of a tensor message that holds elements of a type when they are not raw.
int value_field(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return TensorProto::kFloatDataFieldNumber;
    case DType::f64:
      return TensorProto::kDoubleDataFieldNumber;
    case DType::i64:
      return TensorProto::kInt64DataFieldNumber;
    case DType::u32:
    case DType::u64:
      return TensorProto::kUint64DataFieldNumber;
    default:
      return TensorProto::kInt32DataFieldNumber;
  }
}

/// Whole numbers from varints, each cut to the size of an element.
std::optional<TensorData> from_varints(const std::vector<Field>& fields, DType dtype,
                                       std::size_t count) {
  std::vector<std::int64_t> values;
  values.reserve(count);
  for (const auto& field : fields) {
    // A varint takes at least a byte; more bytes than this cannot be the wanted numbers.
    if (field.payload.size() > 10 * count || !append_ints(field, values) || values.size() > count)
      return std::nullopt;
  }
  if (values.size() != count) return std::nullopt;
  const auto size = size_of(dtype);
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes.data() + i * size, &values[i], size);
  return TensorData::own(std::move(bytes));
}

/// Floats from fields of which each holds one or more.
std::optional<TensorData> from_fixed(const std::vector<Field>& fields, DType dtype,
                                     std::size_t count) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (const auto& field : fields) {
    const bool ok =
        dtype == DType::f32 ? append_floats(field, floats) : append_doubles(field, doubles);
    if (!ok) return std::nullopt;
  }
  if (floats.size() + doubles.size() != count) return std::nullopt;
  return dtype == DType::f32 ? TensorData::copy(floats) : TensorData::copy(doubles);
}

bool leaves_folder(const std::filesystem::path& location) {
  if (location.empty() || location.is_absolute()) return true;
  const auto normal = location.lexically_normal();
  return normal.empty() || *normal.begin() == "..";
}

}  // namespace

DType dtype_of(std::int64_t data_type) {
  for (const auto& [number, dtype] : kTypes) {
    if (number == data_type) return dtype;
  }
  return DType::unknown;
}

int data_type_of(DType dtype) {
  for (const auto& [number, type] : kTypes) {
    if (type == dtype) return number;
  }
  return TensorProto::UNDEFINED;
}

TensorData ConstantReader::refer(Bytes bytes) const {
  return owner_ ? TensorData::view(bytes, owner_) : TensorData::own({bytes.begin(), bytes.end()});
}

Result<std::shared_ptr<core::MappedFile>> ConstantReader::open(std::string_view location) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  if (!folder_) return refuse("tensors in files of their own are not allowed here");
  const std::filesystem::path relative(location);
  if (leaves_folder(relative)) {
    return refuse(fmt::format("external data '{}' lies outside of the model's folder", location));
  }
  std::error_code error;
  const auto folder = std::filesystem::weakly_canonical(folder_->empty() ? "." : *folder_, error);
  const auto file = std::filesystem::weakly_canonical(folder / relative, error);
  // A link inside the folder may still lead out of it.
  if (error || leaves_folder(file.lexically_relative(folder))) {
    return refuse(fmt::format("external data '{}' lies outside of the model's folder", location));
  }
  FLEETFIT_ASSIGN(auto mapped, core::MappedFile::open(file));
  auto shared = std::make_shared<core::MappedFile>(std::move(mapped));
  files_.emplace(std::string(location), shared);
  return shared;
}

Result<TensorData> ConstantReader::external(const TensorMessage& message, std::size_t bytes) {
  FLEETFIT_ASSIGN(auto file, open(message.location));
  const auto all = file->bytes();
  const auto offset = static_cast<std::uint64_t>(message.offset);
  const auto length = message.length ? static_cast<std::uint64_t>(*message.length) : bytes;
  if (length != bytes)
    return refuse(fmt::format("{} bytes of external data where the shape wants {}", length, bytes));
  if (offset > all.size() || length > all.size() - offset) {
    return refuse(
        fmt::format("external data '{}' ends before byte {}", message.location, offset + length));
  }
  return TensorData::view(all.subspan(static_cast<std::size_t>(offset), bytes), file);
}

Result<TensorData> ConstantReader::data(const TensorMessage& message, DType dtype,
                                        std::size_t count) {
  const auto bytes = count * size_of(dtype);
  if (message.external) return external(message, bytes);
  if (message.raw) {
    if (message.raw->size() != bytes) {
      return refuse(
          fmt::format("{} bytes of data where the shape wants {}", message.raw->size(), bytes));
    }
    return refer(*message.raw);
  }
  std::vector<Field> fields;
  for (const auto& field : message.values) {
    if (field.number == value_field(dtype)) fields.push_back(field);
  }
  // Packed floats lie in the file just as they do in memory.
  const bool fixed = dtype == DType::f32 || dtype == DType::f64;
  if (fixed && fields.size() == 1 && fields[0].is_bytes && fields[0].payload.size() == bytes)
    return refer(fields[0].payload);
  std::size_t held = 0;
  for (const auto& field : fields) held += field.is_bytes ? field.payload.size() : 1;
  if (held < (fixed ? fields.size() : count))
    return refuse(fmt::format("less data than the shape's {} elements", count));
  auto values = fixed ? from_fixed(fields, dtype, count) : from_varints(fields, dtype, count);
  if (!values) return refuse(fmt::format("data does not have the shape's {} elements", count));
  return std::move(*values);
}

Result<Tensor> ConstantReader::read(const TensorMessage& message) {
  Tensor tensor{.name = std::string(message.name),
                .dtype = dtype_of(message.data_type),
                .shape = message.dims};
  const auto place = fmt::format("tensor '{}'", message.name);
  if (size_of(tensor.dtype) == 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} has elements of type {}, which is not supported", place,
                            message.data_type));
  }
  FLEETFIT_ASSIGN(const auto count, core::within(place, element_count(*tensor.shape)));
  FLEETFIT_ASSIGN(auto bytes, core::within(place, data(message, tensor.dtype,
                                                       static_cast<std::size_t>(count))));
  tensor.data = std::move(bytes);
  return tensor;
}

}  // namespace fleetfit::graph::onnx_format
