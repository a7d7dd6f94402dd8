#include "engine/own/picked_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "engine/own/own.h"
#include "engine/threads.h"

namespace fleetfit::engine::own {
namespace {

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
