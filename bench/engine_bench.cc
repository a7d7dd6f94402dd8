// The engine against ONNX Runtime and OpenCV's dnn: the same files, in turns, one table.
//   engine_bench [--quick] [NETWORK…]      networks of the zoo; without: those of
//   docs/benchmarks.md
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fleetfit/app/measuring.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::bench {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kNetworks{"mobilenet_v2",       "resnet50",
                                         "squeezenet1_1",      "efficientnet_b0",
                                         "shufflenet_v2_x1_0", "mobilenet_v3_small"};

struct Options {
  std::vector<std::string> networks;
  double seconds = 8;  ///< for each device, network, precision and number of threads
  int rounds = 3;      ///< the best of so many medians counts: the machine is not ours alone
};

fs::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

/// Ratios of all networks in one class, for the geometric mean.
struct Ratios {
  std::vector<double> values;

  double geometric_mean() const {
    double sum = 0;
    for (const double value : values) sum += std::log(value);
    return std::exp(sum / static_cast<double>(values.size()));
  }
};

class Bench {
 public:
  Bench(app::Workplace workplace, Options options, fs::path folder)
      : workplace_(std::move(workplace)),
        options_(std::move(options)),
        folder_(std::move(folder)) {}

  Status run() {
    fmt::print("{:<20} {:<5} {:>7} {:>12} {:>12} {:>8} {:>12} {:>8}\n", "network", "type",
               "threads", "fleetfit ms", "ORT ms", "ratio", "OpenCV ms", "ratio");
    for (const auto& network : options_.networks) {
      const fs::path file = folder_ / (network + ".onnx");
      FLEETFIT_ASSIGN(const auto graph, graph::build_zoo_network(network));
      FLEETFIT_TRY(graph::export_onnx_file(graph, file));
      for (const std::string precision : {"fp32", "int8"}) {
        for (const int threads : {1, 2}) {
          FLEETFIT_TRY(compare(network, file, precision, threads));
        }
      }
    }
    for (const auto& [name, ratios] : ratios_) {
      fmt::print("{}: geometric mean of {} ratios {:.3f}\n", name, ratios.values.size(),
                 ratios.geometric_mean());
    }
    return {};
  }

 private:
  using Medians = std::map<std::string, double>;

  Result<std::string> device(const std::string& runtime, const std::string& precision,
                             int threads) {
    const std::string word = runtime.substr(0, runtime.find(':'));
    const std::string name = fmt::format("{}-{}-{}", word, precision, threads);
    FLEETFIT_TRY(add_device(workplace_, {.name = name,
                                         .runtime = runtime,
                                         .threads = threads,
                                         .precision = precision,
                                         .existing = app::ExistingDevice::replace}));
    return name;
  }

  /// The best median of each device over the rounds.
  Result<Medians> measure(const fs::path& file, const std::vector<std::string>& devices) {
    Medians best;
    const auto progress = core::make_silent_progress();
    app::MeasureRequest request;
    request.models = {file};
    request.devices = devices;
    request.protocol.max_time_s = options_.seconds / options_.rounds;
    for (int round = 0; round < options_.rounds; ++round) {
      FLEETFIT_ASSIGN(const auto measured, measure_models(workplace_, request, *progress, {}));
      for (const auto& one : measured) {
        if (!one.measurement.latency) continue;
        const double median = one.measurement.latency->median_ms;
        const auto [known, is_new] = best.try_emplace(one.measurement.device, median);
        if (!is_new) known->second = std::min(known->second, median);
      }
    }
    return best;
  }

  Status compare(const std::string& network, const fs::path& file, const std::string& precision,
                 int threads) {
    std::vector<std::string> runtimes{"auto", "onnxruntime"};
    const fs::path opencv = program_folder() / "opencv_runtime";
    if (precision == "fp32" && fs::exists(opencv)) runtimes.push_back("exec:" + opencv.string());
    std::vector<std::string> devices;
    for (const auto& runtime : runtimes) {
      FLEETFIT_ASSIGN(const auto name, device(runtime, precision, threads));
      devices.push_back(name);
    }
    FLEETFIT_ASSIGN(const auto best, measure(file, devices));
    std::string line = fmt::format("{:<20} {:<5} {:>7}", network, precision, threads);
    const auto ours = best.find(devices[0]);
    line += ours == best.end() ? fmt::format(" {:>12}", "failed")
                               : fmt::format(" {:>12.3f}", ours->second);
    for (std::size_t i = 1; i < devices.size(); ++i) {
      const auto theirs = best.find(devices[i]);
      if (theirs == best.end() || ours == best.end()) {
        line += fmt::format(" {:>12} {:>8}", "-", "-");
        continue;
      }
      const double ratio = ours->second / theirs->second;
      line += fmt::format(" {:>12.3f} {:>8.3f}", theirs->second, ratio);
      ratios_[fmt::format("{} against {}", precision, i == 1 ? "ONNX Runtime" : "OpenCV")]
          .values.push_back(ratio);
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
    return {};
  }

  app::Workplace workplace_;
  Options options_;
  fs::path folder_;
  std::map<std::string, Ratios> ratios_;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      options.seconds = 2;
    } else {
      options.networks.push_back(argument);
    }
  }
  if (options.networks.empty()) options.networks = kNetworks;
  return options;
}

Status run(int argc, char** argv) {
  const core::SystemClock clock;
  FLEETFIT_ASSIGN(auto workplace,
                  app::open_workplace("memory:", clock, {.self = program_folder() / "fleetfit"}));
  const fs::path folder = fs::temp_directory_path() / fmt::format("engine_bench.{}", ::getpid());
  fs::create_directories(folder);
  const Status status = Bench(std::move(workplace), parse(argc, argv), folder).run();
  fs::remove_all(folder);
  return status;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  const auto status = fleetfit::bench::run(argc, argv);
  if (status) return 0;
  fmt::print(stderr, "engine_bench: {}\n", status.error().message);
  return 1;
}
