#include "fleetfit/graph/tensor_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "fleetfit/core/random.h"

namespace fleetfit::graph {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return 1;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16:
      return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64:
      return 8;
    case DType::unknown:
    case DType::text:
      break;
  }
  return 0;
}

std::string_view to_string(DType type) {
  switch (type) {
    case DType::f32:
      return "float32";
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f64:
      return "float64";
    case DType::i8:
      return "int8";
    case DType::u8:
      return "uint8";
    case DType::i16:
      return "int16";
    case DType::u16:
      return "uint16";
    case DType::i32:
      return "int32";
    case DType::u32:
      return "uint32";
    case DType::i64:
      return "int64";
    case DType::u64:
      return "uint64";
    case DType::boolean:
      return "bool";
    case DType::text:
      return "string";
    case DType::unknown:
      break;
  }
  return "unknown";
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

bool is_integer(DType type) {
  return size_of(type) > 0 && !is_float(type) && type != DType::boolean;
}

namespace {
constexpr std::size_t kAlignment = 8;
}

struct TensorData::Storage {
  std::vector<std::byte> owned;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive when they are somebody else's
  std::span<const std::byte> bytes;
  std::optional<Recipe> recipe;

  // Made once, by the first thread that asks.
  mutable std::once_flag once;
  mutable std::vector<std::byte> made;

  bool is_aligned() const {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0;
  }
};

namespace {

template <class T>
void fill(const Recipe& recipe, std::span<std::byte> out) {
  auto* values = reinterpret_cast<T*>(out.data());
  for (std::size_t i = 0; i < recipe.count; ++i) {
    double value = recipe.center;
    if (recipe.spread != 0) {
      value += recipe.spread * (2 * core::unit_interval(core::mix(recipe.seed, i)) - 1);
    }
    if constexpr (std::is_integral_v<T>) value = std::nearbyint(value);
    values[i] = static_cast<T>(value);
  }
}

void fill(const Recipe& recipe, std::span<std::byte> out) {
  switch (recipe.dtype) {
    case DType::i8:
      return fill<std::int8_t>(recipe, out);
    case DType::u8:
      return fill<std::uint8_t>(recipe, out);
    case DType::i32:
      return fill<std::int32_t>(recipe, out);
    case DType::i64:
      return fill<std::int64_t>(recipe, out);
    default:
      return fill<float>(recipe, out);
  }
}

}  // namespace

TensorData::TensorData(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}

TensorData TensorData::own(std::vector<std::byte> bytes) {
  auto storage = std::make_shared<Storage>();
  storage->owned = std::move(bytes);
  storage->bytes = storage->owned;
  return TensorData(std::move(storage));
}

TensorData TensorData::view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  auto storage = std::make_shared<Storage>();
  storage->owner = std::move(owner);
  storage->bytes = bytes;
  return TensorData(std::move(storage));
}

TensorData TensorData::generate(const Recipe& recipe) {
  auto storage = std::make_shared<Storage>();
  storage->recipe = recipe;
  return TensorData(std::move(storage));
}

std::size_t TensorData::size_bytes() const {
  const auto& recipe = storage_->recipe;
  return recipe ? recipe->count * size_of(recipe->dtype) : storage_->bytes.size();
}

std::span<const std::byte> TensorData::bytes() const {
  if (!storage_->recipe && storage_->is_aligned()) return storage_->bytes;
  std::call_once(storage_->once, [this] {
    storage_->made.resize(size_bytes());
    copy_to(storage_->made);
  });
  return storage_->made;
}

void TensorData::copy_to(std::span<std::byte> out) const {
  if (storage_->recipe) return fill(*storage_->recipe, out);
  std::copy(storage_->bytes.begin(), storage_->bytes.end(), out.begin());
}

bool TensorData::operator==(const TensorData& other) const {
  if (storage_ == other.storage_) return true;
  if (storage_->recipe && storage_->recipe == other.storage_->recipe) return true;
  if (size_bytes() != other.size_bytes()) return false;
  const auto a = storage_->recipe ? bytes() : storage_->bytes;
  const auto b = other.storage_->recipe ? other.bytes() : other.storage_->bytes;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fleetfit::graph
