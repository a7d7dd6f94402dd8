#include "train/finished_networks.h"

#include <nlohmann/json.hpp>

#include "train/checkpoint.h"

namespace fleetfit::train {
namespace {

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
