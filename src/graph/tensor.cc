#include "fleetfit/graph/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/tensor_data.h"

namespace fleetfit::graph {
namespace {

constexpr std::size_t kMostDimensions = 16;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

}  // namespace

Result<std::int64_t> element_count(const Shape& shape) {
  if (shape.size() > kMostDimensions) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} dimensions are more than {}", shape.size(), kMostDimensions));
  }
  // An extent of zero would hide absurd ones beside it, so those count as one here.
  std::int64_t bound = 1;
  bool empty = false;
  for (const auto extent : shape) {
    if (extent < 0)
      return fail(ErrorCode::invalid_input, fmt::format("extent {} is negative", extent));
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(bound, extent == 0 ? 1 : extent, &bound) || bound > kMostElements) {
      return fail(ErrorCode::invalid_input, fmt::format("{} is absurdly large", to_string(shape)));
    }
  }
  return empty ? 0 : bound;
}

std::int64_t elements(const Shape& shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

std::string to_string(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes = 0;
};

/// In the order of DType.
constexpr std::array<TypeFacts, 15> kTypes = {{{"unknown", 0},
                                               {"float32", 4},
                                               {"float16", 2},
                                               {"bfloat16", 2},
                                               {"float64", 8},
                                               {"int8", 1},
                                               {"uint8", 1},
                                               {"int16", 2},
                                               {"uint16", 2},
                                               {"int32", 4},
                                               {"uint32", 4},
                                               {"int64", 8},
                                               {"uint64", 8},
                                               {"bool", 1},
                                               {"string", 0}}};

}  // namespace

std::size_t size_of(DType type) { return kTypes[static_cast<std::size_t>(type)].bytes; }

std::string_view to_string(DType type) { return kTypes[static_cast<std::size_t>(type)].name; }

bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::f64;
}

bool is_integer(DType type) {
  return size_of(type) > 0 && !is_float(type) && type != DType::boolean;
}

namespace {

constexpr std::size_t kAlignment = 8;
// Constants derived from one another are made, and let go, one inside of the other.
constexpr int kMostDerived = 32;

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

void fill_by(const Recipe& recipe, std::span<std::byte> out) {
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

struct TensorData::Storage {
  /// Values that are made when somebody asks for them. Most constants have none of this.
  struct Making {
    std::optional<Recipe> recipe;

    std::mutex mutex;  // of what follows
    std::optional<TensorData> from;
    Change change;
    std::optional<std::vector<std::byte>> made;  // once, by the first thread that asks
  };

  std::vector<std::byte> owned;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive when they are somebody else's
  std::span<const std::byte> bytes;   // empty where the values have to be made
  std::size_t size = 0;
  int derived = 0;                 // how many times, at least, from values that are known
  std::unique_ptr<Making> making;  // of bytes that are not at hand, or not aligned

  bool at_hand() const { return bytes.size() == size; }

  // The mutex must be held.
  void write(std::span<std::byte> out) const {
    if (making->made) {
      std::ranges::copy(*making->made, out.begin());
    } else if (at_hand()) {
      std::ranges::copy(bytes, out.begin());
    } else if (making->recipe) {
      fill_by(*making->recipe, out);
    } else {
      making->from->copy_to(out);
      making->change(out);
    }
  }
};

TensorData::TensorData(std::shared_ptr<const Storage> storage) : storage_(std::move(storage)) {}

TensorData TensorData::own(std::vector<std::byte> bytes) {
  auto storage = std::make_shared<Storage>();
  storage->owned = std::move(bytes);
  storage->bytes = storage->owned;
  storage->size = storage->bytes.size();
  return TensorData(std::move(storage));
}

TensorData TensorData::view(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  auto storage = std::make_shared<Storage>();
  storage->owner = std::move(owner);
  storage->bytes = bytes;
  storage->size = bytes.size();
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0;
  if (!aligned) storage->making = std::make_unique<Storage::Making>();
  return TensorData(std::move(storage));
}

TensorData TensorData::generate(const Recipe& recipe) {
  auto storage = std::make_shared<Storage>();
  storage->size = recipe.count * size_of(recipe.dtype);
  storage->making = std::make_unique<Storage::Making>();
  storage->making->recipe = recipe;
  return TensorData(std::move(storage));
}

TensorData TensorData::derive(const TensorData& from, Change change) {
  auto storage = std::make_shared<Storage>();
  storage->size = from.size_bytes();
  storage->derived = from.storage_->derived + 1;
  if (storage->derived > kMostDerived) {
    from.bytes();
    storage->derived = 1;
  }
  storage->making = std::make_unique<Storage::Making>();
  storage->making->from = from;
  storage->making->change = std::move(change);
  return TensorData(std::move(storage));
}

std::size_t TensorData::size_bytes() const { return storage_->size; }

std::span<const std::byte> TensorData::bytes() const {
  if (!storage_->making) return storage_->bytes;
  auto& making = *storage_->making;
  const std::lock_guard lock(making.mutex);
  if (!making.made) {
    std::vector<std::byte> values(storage_->size);
    storage_->write(values);
    making.made = std::move(values);
    making.from.reset();  // not needed any more
    making.change = nullptr;
  }
  return *making.made;
}

void TensorData::copy_to(std::span<std::byte> out) const {
  if (storage_->at_hand()) {
    std::ranges::copy(storage_->bytes, out.begin());
    return;
  }
  const std::lock_guard lock(storage_->making->mutex);
  storage_->write(out);
}

bool TensorData::operator==(const TensorData& other) const {
  if (storage_ == other.storage_) return true;
  const auto recipe = [](const Storage& storage) {
    return storage.making ? storage.making->recipe : std::nullopt;
  };
  if (recipe(*storage_) && recipe(*storage_) == recipe(*other.storage_)) return true;
  if (size_bytes() != other.size_bytes()) return false;
  const auto a = storage_->at_hand() ? storage_->bytes : bytes();
  const auto b = other.storage_->at_hand() ? other.storage_->bytes : other.bytes();
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace fleetfit::graph
