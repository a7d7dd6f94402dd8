#include "measure/bandwidth.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>

#include "fleetfit/core/vectorize.h"

namespace fleetfit::measure {
namespace {

constexpr double kSampleSeconds = 0.002;
constexpr int kMaxPasses = 1 << 24;

// Lines that are summed apart, so that additions do not wait for each other.
constexpr std::size_t kChains = 4;

bool holds_data(const Cache& cache) { return cache.type != "Instruction" && cache.bytes > 0; }

std::size_t whole_lines(std::size_t bytes, std::size_t parts) {
  const auto unit = kChains * parts;
  return std::max<std::size_t>(1, bytes / sizeof(Line) / unit) * unit;
}

}  // namespace

// With the oldest vector instructions a core cannot drain its first cache.
[[gnu::noinline]] FLEETFIT_VECTORIZE std::uint64_t sum_of(std::span<const Line> lines) {
  Line::Words a{};
  Line::Words b{};
  Line::Words c{};
  Line::Words d{};
  std::size_t i = 0;
  for (; i + kChains <= lines.size(); i += kChains) {
    a += lines[i].words;
    b += lines[i + 1].words;
    c += lines[i + 2].words;
    d += lines[i + 3].words;
  }
  for (; i < lines.size(); ++i) a += lines[i].words;
  const Line::Words all = (a + b) + (c + d);
  std::uint64_t sum = 0;
  for (std::size_t word = 0; word < kWordsPerLine; ++word) sum += all[word];
  return sum;
}

[[gnu::noinline]] FLEETFIT_VECTORIZE void copy_incremented(std::span<const Line> from,
                                                           std::span<Line> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i].words = from[i].words + 1;
}

BandwidthMeter::BandwidthMeter(const BandwidthOptions& options)
    : stream_(options.stream),
      lines_per_thread_(
          whole_lines(options.bytes_per_thread, options.stream == Stream::copy ? 2 : 1)),
      shares_(static_cast<std::size_t>(options.threads)) {
  for (auto& share : shares_) share.lines = std::make_unique<Line[]>(lines_per_thread_);
}

void BandwidthMeter::stream_through(Share& share, int passes) const {
  const std::span<Line> lines(share.lines.get(), lines_per_thread_);
  const auto half = lines.size() / 2;
  for (int pass = 0; pass < passes; ++pass) {
    if (stream_ == Stream::read) {
      share.sum += sum_of(lines);
    } else {
      copy_incremented(lines.first(half), lines.last(half));
    }
    asm volatile("" ::: "memory");
  }
}

double BandwidthMeter::seconds_for(int passes) {
  using SteadyClock = std::chrono::steady_clock;
  std::vector<SteadyClock::time_point> begins(shares_.size());
  std::vector<SteadyClock::time_point> ends(shares_.size());
  std::barrier together(static_cast<std::ptrdiff_t>(shares_.size()));
  const auto work = [&](std::size_t i) {
    together.arrive_and_wait();
    begins[i] = SteadyClock::now();
    stream_through(shares_[i], passes);
    ends[i] = SteadyClock::now();
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < shares_.size(); ++i) helpers.emplace_back(work, i);
    work(0);
  }
  return std::chrono::duration<double>(std::ranges::max(ends) - std::ranges::min(begins)).count();
}

int BandwidthMeter::enough_passes() {
  using SteadyClock = std::chrono::steady_clock;
  const auto seconds_alone = [&](int passes) {
    const auto begin = SteadyClock::now();
    stream_through(shares_[0], passes);
    return std::chrono::duration<double>(SteadyClock::now() - begin).count();
  };
  int passes = 1;
  while (passes < kMaxPasses) {
    const auto tries = {seconds_alone(passes), seconds_alone(passes), seconds_alone(passes)};
    if (std::ranges::min(tries) >= kSampleSeconds) break;
    passes *= 2;
  }
  return passes;
}

double BandwidthMeter::sample_gb_per_s() {
  if (passes_ == 0) passes_ = enough_passes();
  const double bytes = static_cast<double>(lines_per_thread_) * sizeof(Line) *
                       static_cast<double>(shares_.size()) * passes_;
  return bytes / seconds_for(passes_) / 1e9;
}

std::int64_t data_cache_bytes(const Hardware& hardware, int level) {
  std::int64_t smallest = 0;
  for (const auto& cache : hardware.caches) {
    if (cache.level != level || !holds_data(cache)) continue;
    smallest = smallest == 0 ? cache.bytes : std::min(smallest, cache.bytes);
  }
  return smallest;
}

std::vector<MemoryLevel> memory_levels(const Hardware& hardware, int threads) {
  constexpr std::int64_t kMost = std::int64_t{512} << 20;
  constexpr std::int64_t kUnknownCache = std::int64_t{32} << 20;
  std::vector<MemoryLevel> levels;
  std::int64_t last = kUnknownCache;
  int deepest = 0;
  for (const auto& cache : hardware.caches) deepest = std::max(deepest, cache.level);
  for (int level = 1; level <= deepest; ++level) {
    const auto bytes = data_cache_bytes(hardware, level);
    if (bytes == 0) continue;
    const auto caches = std::ranges::count_if(
        hardware.caches, [&](const Cache& c) { return c.level == level && holds_data(c); });
    const auto sharing = (threads + caches - 1) / caches;
    levels.push_back({fmt::format("l{}", level), static_cast<std::size_t>(bytes / 2 / sharing)});
    last = bytes * std::min<std::int64_t>(caches, threads);
  }
  const auto all = std::min({4 * last, kMost, hardware.memory_bytes / 4});
  levels.push_back({"memory", static_cast<std::size_t>(all / threads)});
  return levels;
}

}  // namespace fleetfit::measure
