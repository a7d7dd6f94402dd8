#include "bench/ncnn_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <regex>

#include "fleetfit/core/csv.h"
#include "fleetfit/graph/import.h"

namespace fleetfit::bench {
namespace {

using learned::FeatureKind;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

struct Rule {
  const char* pattern;
  const char* name;
};

// The first that occurs in the board's name.
constexpr auto kGpuClasses =
    std::to_array<Rule>({{"RTX|GTX|Tesla|Radeon|Volta|M1", "GPU, large"}, {"", "GPU, small"}});
constexpr auto kCpuClasses = std::to_array<Rule>({
    {"Azure|EPYC|i7|Threadripper|Ryzen", "x86, large"},
    {"Atom|Celeron|Phi", "x86, small"},
    {"Loongson|Sunway|Ingenic", "MIPS and kin"},
    {"RISC|SiFive|C906|Spacemit", "RISC-V"},
    {"A7[2-8]|A720|X1|Kyro|Kun[pP]eng|Oryon|M1|Carmel|FTC664|BCM2712", "arm, out of order"},
    {"A5[35]|Snapdragon 410", "arm, in order"},
    {"A9|A17|A7 ", "arm, 32 bits or old"},
    {"", "other"},
});
constexpr auto kLittleClass = "arm, in order";

// Boards of one chip are one device for a fleet that meets a new one.
constexpr auto kChips = std::to_array<const char*>(
    {"RK3588", "RK3399", "RK3568", "RK3328", "RK3288", "BCM2712", "BCM2711", "BCM2837", "RTX3090",
     "Kunpeng 920", "KunPeng 920", "Azure", "3A4000", "2K1000", "Snapdragon 855", "i7-11800H",
     "i7-7700K", "M1, 2020"});

// The input sizes of ncnn's benchmark program; all others take 224.
const std::map<std::string, std::int64_t> kSizes = {
    {"squeezenet", 227},     {"alexnet", 227},
    {"blazeface", 128},      {"squeezenet_ssd", 300},
    {"mobilenet_ssd", 300},  {"mobilenet_yolo", 416},
    {"yolov4-tiny", 416},    {"mobilenetv2_yolov3", 352},
    {"nanodet_m", 320},      {"yolo-fastest-1.1", 320},
    {"yolo-fastestv2", 352}, {"vision_transformer", 384},
    {"FastestDet", 352}};

bool occurs(const char* pattern, const std::string& text) {
  return std::regex_search(text, std::regex(pattern));
}

std::string class_of(const std::string& board, bool gpu, bool little) {
  const std::span<const Rule> rules = gpu ? std::span<const Rule>(kGpuClasses) : kCpuClasses;
  if (!gpu && little && occurs("A5[35]", board)) return kLittleClass;
  return std::ranges::find_if(rules, [&](const Rule& rule) { return occurs(rule.pattern, board); })
      ->name;
}

std::string chip_of(const std::string& board) {
  for (const char* chip : kChips)
    if (board.find(chip) != std::string::npos) return chip;
  return board;
}

/// The highest clock frequency in the name, of small cores the lowest.
double ghz_of(const std::string& board, bool little) {
  static const std::regex pattern(R"((\d+(?:\.\d+)?)\s*([GM])[Hh]z)");
  std::vector<double> found;
  for (std::sregex_iterator match(board.begin(), board.end(), pattern), end; match != end; ++match)
    found.push_back(std::stod((*match)[1]) * ((*match)[2] == "G" ? 1 : 0.001));
  if (found.empty()) return kMissing;
  return little ? std::ranges::min(found) : std::ranges::max(found);
}

std::string architecture_of(std::string network) {
  constexpr std::string_view kInt8 = "_int8";
  if (network.ends_with(kInt8)) network.resize(network.size() - kInt8.size());
  return network;
}

Status add_network(const std::filesystem::path& file, NcnnTable& ncnn) {
  const auto name = file.stem().string();
  const auto architecture = architecture_of(file.filename().stem().string());
  const auto size = kSizes.contains(architecture) ? kSizes.at(architecture) : 224;
  FLEETFIT_ASSIGN(const auto model,
                  graph::import_model(file, {.dimensions = {{"height", size}, {"width", size}}}));
  FLEETFIT_ASSIGN(
      auto features,
      core::within(name, learned::network_features(model.graph, architecture == name ? 0 : 1)));
  ncnn.table.networks.push_back(name);
  ncnn.table.network_features.push_back(std::move(features));
  ncnn.architectures.push_back(architecture);
  return {};
}

Status read_networks(const std::filesystem::path& folder, NcnnTable& ncnn) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".param") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files) FLEETFIT_TRY(add_network(file, ncnn));
  return {};
}

void add_device(const core::CsvTable& runs, std::size_t row, NcnnTable& ncnn) {
  const auto cell = [&](const char* column) {
    return std::string(runs.cell(row, *runs.find_column(column)));
  };
  const auto board = cell("device");
  const bool gpu = cell("gpu") != "-1";
  const bool little = cell("powersave") == "1";
  const double threads = std::stod(cell("threads"));
  ncnn.table.devices.devices.push_back(fmt::format("{} | {}{}", board,
                                                   gpu ? "GPU" : cell("threads") + " threads",
                                                   little ? ", small cores" : ""));
  ncnn.chips.push_back(chip_of(board));
  ncnn.classes.push_back(class_of(board, gpu, little));
  auto& values = ncnn.table.devices.values;
  values.push_back(gpu ? kMissing : ghz_of(board, little));
  values.push_back(gpu ? kMissing : threads);
  for (const auto& rule : kCpuClasses) values.push_back(ncnn.classes.back() == rule.name ? 1 : 0);
  for (const auto& rule : kGpuClasses) values.push_back(ncnn.classes.back() == rule.name ? 1 : 0);
}

void name_columns(NcnnTable& ncnn) {
  auto& columns = ncnn.table.devices.columns;
  const auto add = [&](std::string name) {
    columns.push_back({.kind = FeatureKind::specification, .name = std::move(name)});
  };
  add("ghz");
  add("threads");
  for (const auto& rule : kCpuClasses) add(rule.name);
  for (const auto& rule : kGpuClasses) add(rule.name);
}

}  // namespace

Result<NcnnTable> read_ncnn(const std::filesystem::path& folder) {
  NcnnTable ncnn;
  ncnn.table.devices.name = "ncnn";
  FLEETFIT_TRY(read_networks(folder / "models/ncnn_params", ncnn));
  name_columns(ncnn);
  FLEETFIT_ASSIGN(const auto runs, core::read_csv(folder / "latency/ncnn_runs.csv"));
  FLEETFIT_ASSIGN(const auto times, core::read_csv(folder / "latency/ncnn_latency.csv"));
  std::map<std::string, std::size_t> rows;
  for (std::size_t row = 0; row < runs.rows(); ++row) {
    add_device(runs, row, ncnn);
    rows[std::string(runs.cell(row, *runs.find_column("run_id")))] = row;
    ncnn.table.latency_ms.emplace_back(ncnn.table.networks.size(), kMissing);
  }
  for (std::size_t row = 0; row < times.rows(); ++row) {
    const auto network =
        std::ranges::find(ncnn.table.networks, times.cell(row, *times.find_column("model")));
    const auto ms = times.number(row, *times.find_column("min_ms"));
    if (network == ncnn.table.networks.end() || !ms || *ms <= 0) continue;
    const auto run = rows.at(std::string(times.cell(row, *times.find_column("run_id"))));
    ncnn.table.latency_ms[run][static_cast<std::size_t>(network - ncnn.table.networks.begin())] =
        *ms;
  }
  return ncnn;
}

}  // namespace fleetfit::bench
