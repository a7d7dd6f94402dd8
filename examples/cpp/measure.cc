// measure FILE [SECONDS]: how long a model takes on this machine.
#include <fleetfit/app/measuring.h>
#include <fleetfit/core/clock.h>
#include <fleetfit/core/progress.h>

#include <cstdio>
#include <cstdlib>

namespace app = fleetfit::app;

namespace {

int report(const fleetfit::Error& error) {
  std::fprintf(stderr, "measure: %s\n", error.message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: measure FILE [SECONDS]\n");
    return 2;
  }
  const double seconds = argc > 2 ? std::atof(argv[2]) : 10;

  const fleetfit::core::SystemClock clock;
  // Nothing is kept; "sqlite:FILE" would keep it.
  auto workplace = app::open_workplace("memory:", clock, {.self = FLEETFIT_PROGRAM});
  if (!workplace) return report(workplace.error());

  const auto progress = fleetfit::core::make_terminal_progress(clock);
  const auto measured = app::measure_models(
      *workplace, {.models = {argv[1]}, .protocol = fleetfit::measure::protocol_within(seconds)},
      *progress, {});
  if (!measured) return report(measured.error());

  const auto& one = measured->front().measurement;
  std::printf("status %s\n", std::string(to_string(one.status)).c_str());
  if (!one.latency) return report({fleetfit::ErrorCode::device_failed, one.reason});
  std::printf("median %.4f ms (95 %%: %.4f to %.4f)\n", one.latency->median_ms,
              one.latency->ci95_ms.low, one.latency->ci95_ms.high);
  return 0;
}
