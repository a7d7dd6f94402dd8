#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "fleetfit/app/models.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/data/dataset.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/measure/device.h"

namespace fleetfit::app {

graph::ImportOptions import_options(const ModelOptions& options);

/// A file that a runtime can load.
struct RuntimeFile {
  std::filesystem::path path;
  std::string note = {};  ///< what a reader of numbers should know of it; may be ""
};

/// A model in the forms that runtimes and precisions ask for. Each is made once, when first asked
/// for, and lives as long as the object. Belongs to one thread.
class ModelFiles {
 public:
  /// Fails as `graph::import_model` does.
  static Result<ModelFiles> open(const std::filesystem::path& file,
                                 const ModelOptions& options = {}, int threads = 1);

  /// A network that no file holds. Its hash is given: it stands for all that the network is.
  struct Made {
    graph::Graph graph;
    std::string name;    ///< for people
    std::string origin;  ///< where it comes from
    std::string hash;
  };
  static Result<ModelFiles> of_graph(Made made, int threads = 1);

  const graph::Graph& graph() const { return model_.graph; }
  const std::filesystem::path& source() const { return source_; }

  /// SHA-256 of the file's content; if extents were given for open dimensions, of the ONNX file
  /// with these extents, as that is another model.
  Result<std::string> hash();
  std::uintmax_t bytes() const;  ///< of the file; 0 if there was none

  /// Where the model comes from, for records: the file's absolute path, or what was given.
  std::string origin() const;

  /// The file for a device: the original where its runtime reads that; ONNX for those that read
  /// nothing else or want fixed extents; quantized, with ranges of random inputs, if the device
  /// computes with int8 and the model does not.
  Result<RuntimeFile> for_device(const measure::Device& device);

 private:
  ModelFiles(std::filesystem::path source, graph::ImportedModel model, core::ScratchFolder scratch)
      : source_(std::move(source)), model_(std::move(model)), scratch_(std::move(scratch)) {}

  bool reads_original(const measure::Device& device) const;
  Result<std::filesystem::path> with_fixed_extents();
  Result<std::filesystem::path> quantized();
  Result<std::filesystem::path> make_quantized(const std::filesystem::path& file) const;

  std::filesystem::path source_;
  graph::ImportedModel model_;
  core::ScratchFolder scratch_;
  bool extents_given_ = false;
  int threads_ = 1;
  std::optional<std::string> origin_ = {};  // of a network that no file holds, with its hash
  std::string hash_ = {};
  std::map<std::string, Result<std::filesystem::path>> made_ = {};
};

/// How images become the model's input: its size and channels, pixels as numbers from 0 to 1.
/// Fails with `invalid_input`, saying why, if it does not take one image or a batch of them.
Result<data::Preprocessing> image_preprocessing(const graph::Graph& graph);

}  // namespace fleetfit::app
