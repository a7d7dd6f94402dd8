#include "train/checkpoint.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "fleetfit/core/file.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::train {
namespace {

constexpr std::string_view kMagic = "fleetfit-training 1\n";
constexpr std::size_t kDigest = 64;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

void append_count(std::string& bytes, std::uint64_t count) {
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((count >> (8 * i)) & 0xFF);
}

/// Takes pieces off the front of bytes; gives nothing once they are used up.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::string_view> take(std::uint64_t count) {
    if (count > bytes_.size()) return std::nullopt;
    const auto piece = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return piece;
  }

  std::optional<std::uint64_t> take_count() {
    const auto piece = take(8);
    if (!piece) return std::nullopt;
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < 8; ++i)
      count |= std::uint64_t{static_cast<std::uint8_t>((*piece)[i])} << (8 * i);
    return count;
  }

  std::optional<std::vector<float>> take_numbers() {
    const auto count = take_count();
    if (!count || *count > bytes_.size() / sizeof(float)) return std::nullopt;
    const auto piece = take(*count * sizeof(float));
    std::vector<float> numbers(*count);
    if (*count > 0) std::memcpy(numbers.data(), piece->data(), piece->size());
    return numbers;
  }

 private:
  std::string_view bytes_;
};

std::optional<Checkpoint> parse(std::string_view bytes) {
  Reader reader(bytes);
  const auto notes = reader.take(reader.take_count().value_or(kMostBytes));
  const auto count = reader.take_count();
  if (!notes || !count) return std::nullopt;
  Checkpoint checkpoint{.notes = std::string(*notes), .numbers = {}};
  for (std::uint64_t i = 0; i < *count; ++i) {
    auto numbers = reader.take_numbers();
    if (!numbers) return std::nullopt;
    checkpoint.numbers.push_back(*std::move(numbers));
  }
  return checkpoint;
}

using predict::DenseLayer;

/// Takes a network's layers from the front of the numbers; nothing if they do not fit.
std::optional<std::vector<DenseLayer>> take_layers(const nlohmann::json& sizes,
                                                   std::vector<std::vector<float>>& numbers,
                                                   std::size_t& at) {
  std::vector<DenseLayer> layers;
  for (const auto& size : sizes) {
    if (at + 2 > numbers.size()) return std::nullopt;
    DenseLayer layer{.inputs = size[0].get<std::size_t>(), .outputs = size[1].get<std::size_t>()};
    layer.weights = std::move(numbers[at++]);
    layer.bias = std::move(numbers[at++]);
    if (layer.weights.size() != layer.inputs * layer.outputs || layer.bias.size() != layer.outputs)
      return std::nullopt;
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

Status write_checkpoint(const std::filesystem::path& file, const Checkpoint& checkpoint) {
  std::string body;
  append_count(body, checkpoint.notes.size());
  body += checkpoint.notes;
  append_count(body, checkpoint.numbers.size());
  for (const auto& numbers : checkpoint.numbers) {
    append_count(body, numbers.size());
    body.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
  }
  return core::write_file(file, std::string(kMagic) + core::sha256_hex(body) + body);
}

Result<Checkpoint> read_checkpoint(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto bytes, core::read_file(file, {.max_bytes = kMostBytes}));
  const std::string_view all = bytes;
  const auto unusable = [&](std::string_view what) {
    return refuse(fmt::format("{}: {}", file.string(), what));
  };
  if (!all.starts_with(kMagic) || all.size() < kMagic.size() + kDigest)
    return unusable("this is no training of this version of fleetfit");
  const auto digest = all.substr(kMagic.size(), kDigest);
  const auto body = all.substr(kMagic.size() + kDigest);
  if (core::sha256_hex(body) != digest) return unusable("the file is damaged");
  auto checkpoint = parse(body);
  if (!checkpoint) return unusable("the file is damaged");
  return *std::move(checkpoint);
}

Status check_identity(const nlohmann::json& then, const nlohmann::json& now,
                      const std::string& file) {
  for (const auto& [key, value] : now.items()) {
    const auto found = then.find(key);
    if (found == then.end() || *found != value) {
      return refuse(fmt::format("{} is of another training: its {} is {}, not {}", file, key,
                                found == then.end() ? "absent" : found->dump(), value.dump()));
    }
  }
  return {};
}

FinishedNetworks::FinishedNetworks(std::filesystem::path file, std::string identity)
    : file_(std::move(file)), identity_(std::move(identity)) {
  if (!file_.empty()) read();
}

/// A file that cannot be read, or is of another training, counts as none.
void FinishedNetworks::read() {
  auto checkpoint = read_checkpoint(file_);
  if (!checkpoint) return;
  const auto notes = nlohmann::json::parse(checkpoint->notes, nullptr, /*allow_exceptions=*/false);
  if (!notes.is_object() || notes.value("identity", "") != identity_) return;
  std::size_t at = 0;
  for (const auto& network : notes.value("networks", nlohmann::json::array())) {
    auto layers = take_layers(network.at("sizes"), checkpoint->numbers, at);
    if (!layers) return;
    networks_.emplace(network.at("name").get<std::string>(), *std::move(layers));
  }
}

std::optional<std::vector<DenseLayer>> FinishedNetworks::find(const std::string& name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = networks_.find(name);
  if (found == networks_.end()) return std::nullopt;
  return found->second;
}

Status FinishedNetworks::write() const {
  Checkpoint checkpoint;
  auto networks = nlohmann::json::array();
  for (const auto& [name, layers] : networks_) {
    auto sizes = nlohmann::json::array();
    for (const auto& layer : layers) {
      sizes.push_back({layer.inputs, layer.outputs});
      checkpoint.numbers.push_back(layer.weights);
      checkpoint.numbers.push_back(layer.bias);
    }
    networks.push_back({{"name", name}, {"sizes", std::move(sizes)}});
  }
  checkpoint.notes =
      nlohmann::json{{"identity", identity_}, {"networks", std::move(networks)}}.dump();
  return write_checkpoint(file_, checkpoint);
}

Status FinishedNetworks::keep(const std::string& name, std::vector<DenseLayer> layers) {
  if (file_.empty()) return {};
  const std::scoped_lock lock(mutex_);
  networks_.insert_or_assign(name, std::move(layers));
  return write();
}

void FinishedNetworks::remove() const {
  std::error_code ignored;
  if (!file_.empty()) std::filesystem::remove(file_, ignored);
}

}  // namespace fleetfit::train
