#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/measure/hardware.h"

namespace fleetfit::measure {

/// What one vector register of the widest kind holds, and a line of most caches.
struct alignas(64) Line {
  using Words = std::uint64_t __attribute__((vector_size(64)));
  Words words;
};
inline constexpr std::size_t kWordsPerLine = sizeof(Line) / sizeof(std::uint64_t);

/// The sum of all words, modulo 2^64: reads every byte once.
std::uint64_t sum_of(std::span<const Line> lines);

/// Writes every word plus one: reads and writes every byte once. As long as each other, and apart.
void copy_incremented(std::span<const Line> from, std::span<Line> to);

enum class Stream : std::uint8_t { read, copy };

struct BandwidthOptions {
  Stream stream = Stream::read;
  std::size_t bytes_per_thread = 0;  ///< source and destination of a copy together
  int threads = 1;
};

/// Streams through a working set of its own on each thread. Belongs to one thread.
class BandwidthMeter {
 public:
  explicit BandwidthMeter(const BandwidthOptions& options);

  /// All threads at once, for about two milliseconds. A copy counts what it reads and what it
  /// writes.
  double sample_gb_per_s();

 private:
  struct Share {
    std::unique_ptr<Line[]> lines;
    std::uint64_t sum = 0;  // kept so that no pass can be left out by the compiler
  };

  void stream_through(Share& share, int passes) const;
  double seconds_for(int passes);
  int enough_passes();  // for a sample, found on one thread: threads may start late

  Stream stream_;
  std::size_t lines_per_thread_;
  std::vector<Share> shares_;
  int passes_ = 0;
};

/// A level of memory and the bytes for each thread that lie within it and not within the one below.
struct MemoryLevel {
  std::string name;  ///< "l1", "l2", …, "memory"
  std::size_t bytes_per_thread = 0;
};

/// Half of each thread's part of each cache level, and four times the last one for memory.
std::vector<MemoryLevel> memory_levels(const Hardware& hardware, int threads);

/// The smallest cache for data on that level; 0 if there is none.
std::int64_t data_cache_bytes(const Hardware& hardware, int level);

}  // namespace fleetfit::measure
