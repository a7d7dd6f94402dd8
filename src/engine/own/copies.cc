#include "engine/own/copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "engine/own/own.h"
#include "fleetfit/core/vectorize.h"

namespace fleetfit::engine::own {
namespace {

/// Drops dimensions of one element, puts the ones that are far apart in the result first, and
/// merges neighbours that lie one behind the other on both sides.
std::vector<CopyDim> merged(std::vector<CopyDim> dims) {
  std::erase_if(dims, [](const CopyDim& dim) { return dim.extent == 1; });
  std::ranges::stable_sort(dims, [](const CopyDim& a, const CopyDim& b) { return a.to > b.to; });
  std::vector<CopyDim> result;
  for (const CopyDim& dim : dims) {
    const bool follows = !result.empty() && result.back().from == dim.from * dim.extent &&
                         result.back().to == dim.to * dim.extent;
    if (follows) {
      result.back() = {result.back().extent * dim.extent, dim.from, dim.to};
    } else {
      result.push_back(dim);
    }
  }
  if (result.empty()) result.push_back({});
  return result;
}

/// A copy whose result has rows of `columns` neighbours that are `from_step` apart in the source.
struct Block {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;
};

template <class T, int columns>
FLEETFIT_INLINE void interleave(const T* __restrict from, T* __restrict to, const Block& b) {
  for (std::int64_t row = 0; row < b.rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      to[row * columns + column] = from[column * b.from_step + row];
    }
  }
}

template <class T, int rows>
FLEETFIT_INLINE void separate(const T* __restrict from, T* __restrict to, const Block& b) {
  for (int row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < b.columns; ++column) {
      to[row * b.to_step + column] = from[column * rows + row];
    }
  }
}

/// Small squares, so that the lines of both sides stay in the cache.
template <class T>
FLEETFIT_INLINE void transpose_squares(const T* __restrict from, T* __restrict to, const Block& b) {
  constexpr std::int64_t kSide = 16;
  for (std::int64_t column = 0; column < b.columns; column += kSide) {
    const std::int64_t column_end = std::min(column + kSide, b.columns);
    for (std::int64_t row = 0; row < b.rows; ++row) {
      for (std::int64_t c = column; c < column_end; ++c) {
        to[row * b.to_step + c] = from[c * b.from_step + row];
      }
    }
  }
}

template <class T>
FLEETFIT_INLINE void transpose_elements(const std::byte* from_bytes, std::byte* to_bytes,
                                        const Block& b) {
  const auto* from = reinterpret_cast<const T*>(from_bytes);
  auto* to = reinterpret_cast<T*>(to_bytes);
  if (b.columns == 2 && b.to_step == 2) return interleave<T, 2>(from, to, b);
  if (b.columns == 3 && b.to_step == 3) return interleave<T, 3>(from, to, b);
  if (b.columns == 4 && b.to_step == 4) return interleave<T, 4>(from, to, b);
  if (b.rows == 2 && b.from_step == 2) return separate<T, 2>(from, to, b);
  if (b.rows == 3 && b.from_step == 3) return separate<T, 3>(from, to, b);
  if (b.rows == 4 && b.from_step == 4) return separate<T, 4>(from, to, b);
  transpose_squares<T>(from, to, b);
}

FLEETFIT_VECTORIZE void transpose_block(std::size_t size, const std::byte* from, std::byte* to,
                                        const Block& block) {
  switch (size) {
    case 1:
      return transpose_elements<std::uint8_t>(from, to, block);
    case 2:
      return transpose_elements<std::uint16_t>(from, to, block);
    case 4:
      return transpose_elements<std::uint32_t>(from, to, block);
    default:
      return transpose_elements<std::uint64_t>(from, to, block);
  }
}

template <class T>
void scatter_elements(const std::byte* from_bytes, std::byte* to_bytes, const CopyDim& dim) {
  const auto* from = reinterpret_cast<const T*>(from_bytes);
  auto* to = reinterpret_cast<T*>(to_bytes);
  for (std::int64_t i = 0; i < dim.extent; ++i) to[i * dim.to] = from[i * dim.from];
}

void scatter(std::size_t size, const std::byte* from, std::byte* to, const CopyDim& dim) {
  with_word(size, [&]<class T>(T) { scatter_elements<T>(from, to, dim); });
}

/// Strips of a long dimension are work for several threads, and fit the cache.
std::int64_t strip_of(std::int64_t extent) {
  for (std::int64_t strip = 64; strip >= 8; --strip) {
    if (extent % strip == 0) return strip;
  }
  return extent;
}

/// Walks the outer dimensions, the last one fastest.
class Walk {
 public:
  Walk(const std::vector<CopyDim>& dims, std::int64_t start) : dims_(dims) {
    for (std::size_t i = dims.size(); i-- > 0;) {
      index_[i] = start % dims[i].extent;
      start /= dims[i].extent;
      from += index_[i] * dims[i].from;
      to += index_[i] * dims[i].to;
    }
  }

  void next() {
    for (std::size_t i = dims_.size(); i-- > 0;) {
      from += dims_[i].from;
      to += dims_[i].to;
      if (++index_[i] < dims_[i].extent) return;
      from -= dims_[i].from * dims_[i].extent;
      to -= dims_[i].to * dims_[i].extent;
      index_[i] = 0;
    }
  }

  std::int64_t from = 0;
  std::int64_t to = 0;

 private:
  static constexpr std::size_t kMostDims = 40;

  const std::vector<CopyDim>& dims_;
  std::int64_t index_[kMostDims] = {};
};

void fill_bytes(std::byte* to, std::int64_t bytes, const std::vector<std::byte>& element) {
  const auto size = static_cast<std::int64_t>(element.size());
  if (size == 1) {
    std::memset(to, std::to_integer<int>(element[0]), static_cast<std::size_t>(bytes));
    return;
  }
  for (std::int64_t i = 0; i < bytes; i += size)
    std::memcpy(to + i, element.data(), element.size());
}

}  // namespace

StridedCopy::StridedCopy(std::vector<CopyDim> dims, std::size_t element_bytes)
    : outer_(merged(std::move(dims))), inner_(outer_.back()), size_(element_bytes) {
  outer_.pop_back();
  if (inner_.to != 1 && inner_.extent > 1) {
    way_ = Way::scattered;
  } else if (inner_.from == 1 || inner_.extent == 1) {
    way_ = Way::rows;
  } else if (inner_.from == 0) {
    way_ = Way::fill;
  } else {
    const auto dense = std::ranges::find(outer_, std::int64_t{1}, &CopyDim::from);
    way_ = dense == outer_.end() ? Way::scattered : Way::transpose;
    if (dense == outer_.end()) return;
    across_ = *dense;
    outer_.erase(dense);
    const std::int64_t strip = strip_of(across_.extent);
    outer_.push_back({across_.extent / strip, strip, strip * across_.to});
    across_.extent = strip;
  }
}

std::int64_t StridedCopy::outer_count() const {
  std::int64_t count = 1;
  for (const CopyDim& dim : outer_) count *= dim.extent;
  return count;
}

void StridedCopy::copy_line(const std::byte* from, std::byte* to) const {
  switch (way_) {
    case Way::rows:
      std::memcpy(to, from, static_cast<std::size_t>(inner_.extent) * size_);
      return;
    case Way::transpose:
      transpose_block(size_, from, to, {across_.extent, inner_.extent, inner_.from, across_.to});
      return;
    case Way::fill:
    case Way::scattered:
      scatter(size_, from, to, inner_);
      return;
  }
}

void StridedCopy::run(const std::byte* from, std::byte* to) const {
  const auto size = static_cast<std::int64_t>(size_);
  const std::int64_t cost = inner_.extent * across_.extent * size / 4;
  parallel(outer_count(), grain_of(cost), [&](std::int64_t begin, std::int64_t end) {
    Walk at(outer_, begin);
    for (std::int64_t i = begin; i < end; ++i, at.next()) {
      copy_line(from + at.from * size, to + at.to * size);
    }
  });
}

std::vector<CopyDim> permuted_dims(const Shape& shape, const Ints& perm) {
  const Ints from = strides_of(shape);
  Shape result;
  for (const auto axis : perm) result.push_back(shape[static_cast<std::size_t>(axis)]);
  const Ints to = strides_of(result);
  std::vector<CopyDim> dims;
  for (std::size_t i = 0; i < perm.size(); ++i) {
    dims.push_back({result[i], from[static_cast<std::size_t>(perm[i])], to[i]});
  }
  return dims;
}

Ints counting(std::int64_t count) {
  Ints all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

PickedCopy::PickedCopy(const Shape& source, const std::vector<Ints>& indices,
                       std::vector<std::byte> fill)
    : fill_(std::move(fill)) {
  // Innermost dimensions that are taken as they are make up the smallest piece that is copied.
  std::size_t rank = source.size();
  auto piece = static_cast<std::int64_t>(fill_.size());
  while (rank > 1 && indices[rank - 1] == counting(source[rank - 1])) piece *= source[--rank];
  if (rank == 0) {
    set_runs({0}, piece);
    return;
  }
  set_runs(indices[rank - 1], piece);
  std::int64_t stride = piece * source[rank - 1];
  outer_.resize(rank - 1);
  for (std::size_t axis = rank - 1; axis-- > 0;) {
    outer_[axis] = indices[axis];
    for (auto& index : outer_[axis]) index = index < 0 ? kFill : index * stride;
    stride *= source[axis];
    lines_ *= std::ssize(indices[axis]);
  }
}

void PickedCopy::set_runs(const Ints& indices, std::int64_t bytes) {
  for (const auto index : indices) {
    const std::int64_t from = index < 0 ? kFill : index * bytes;
    if (!runs_.empty()) {
      Run& last = runs_.back();
      const bool follows =
          from == kFill ? last.from == kFill : last.from != kFill && last.from + last.bytes == from;
      if (follows) {
        last.bytes += bytes;
        line_bytes_ += bytes;
        continue;
      }
    }
    runs_.push_back({from, line_bytes_, bytes});
    line_bytes_ += bytes;
  }
}

std::int64_t PickedCopy::line_offset(std::int64_t line) const {
  std::int64_t offset = 0;
  for (std::size_t axis = outer_.size(); axis-- > 0;) {
    const auto extent = std::ssize(outer_[axis]);
    const auto part = outer_[axis][static_cast<std::size_t>(line % extent)];
    if (part == kFill) return kFill;
    offset += part;
    line /= extent;
  }
  return offset;
}

void PickedCopy::copy_run(const std::byte* line, std::byte* to, const Run& run) const {
  if (line == nullptr || run.from == kFill) {
    fill_bytes(to + run.to, run.bytes, fill_);
  } else if (run.bytes == 4) {
    std::memcpy(to + run.to, line + run.from, 4);
  } else if (run.bytes == 1) {
    to[run.to] = line[run.from];
  } else {
    std::memcpy(to + run.to, line + run.from, static_cast<std::size_t>(run.bytes));
  }
}

void PickedCopy::run(const std::byte* from, std::byte* to) const {
  const auto count = std::ssize(runs_);
  if (count == 0) return;
  const std::int64_t cost = line_bytes_ / count / 4 + 4;
  parallel(lines_ * count, grain_of(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t line = i / count;
      const std::int64_t offset = line_offset(line);
      const std::byte* source = offset == kFill ? nullptr : from + offset;
      for (const std::int64_t stop = std::min(end, (line + 1) * count); i < stop; ++i) {
        copy_run(source, to + line * line_bytes_, runs_[static_cast<std::size_t>(i % count)]);
      }
    }
  });
}

}  // namespace fleetfit::engine::own
