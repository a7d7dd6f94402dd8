#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/data/dataset.h"

/// Scenes: images of a classification data set composed on a larger canvas, with what is where. A
/// real task of detection and segmentation for which nothing must be downloaded.
namespace fleetfit::data {

/// The box around an object's own pixels, also those that a later one hides. In pixels of the
/// scene; the top left corner is inside, the bottom right one outside.
struct SceneObject {
  std::int64_t label = 0;
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;

  bool operator==(const SceneObject&) const = default;
};

struct Scene {
  Image image;                            ///< grey, or colours if one of its images has them
  std::vector<SceneObject> objects = {};  ///< in the order in which they were put there
  /// For each pixel 0 for the background, or 1 + the label of the object that is seen there.
  std::vector<std::uint8_t> mask = {};
};

struct SceneOptions {
  std::int64_t size = 64;  ///< of the square scene, in pixels
  int min_objects = 1;
  int max_objects = 4;     ///< those that find no place are left out, but for the first
  double min_scale = 0.6;  ///< of the objects' own size; what would not fit is made smaller
  double max_scale = 1.2;
  double max_overlap = 0.2;  ///< share of an object that a later one may hide
  std::size_t count = 0;     ///< scenes; 0: as many as there are images
  std::uint64_t seed = 1;
};

/// Scenes on a dim background, in a fixed order, each composed when it is asked for. Immutable;
/// safe to use from many threads. The same options give the same scenes.
class Scenes {
 public:
  /// The data set is kept alive. Fails with `invalid_input`, naming the option, on what makes no
  /// sense.
  /// Of images on black the object is what is not black, of others the whole image.
  static Result<Scenes> create(std::shared_ptr<const Dataset> data, const SceneOptions& options);

  std::size_t size() const;

  /// Of the objects, by label; the background is not one of them.
  const std::vector<std::string>& classes() const;

  /// Fails if a file cannot be read, naming it. `index` is below size().
  Result<Scene> scene(std::size_t index) const;

 private:
  Scenes(std::shared_ptr<const Dataset> data, const SceneOptions& options);

  std::shared_ptr<const Dataset> data_;
  SceneOptions options_;
};

/// Whether this is the spec of scenes, `scenes:SPEC` with the spec of a data set of images.
bool is_scenes_spec(std::string_view spec);

/// Opens scenes of the images of a split by such a spec. Scenes of different splits share no image.
/// Fails as `open_dataset` and `Scenes::create` do.
Result<Scenes> open_scenes(std::string_view spec, Split split, const SceneOptions& options = {},
                           const SplitOptions& splits = {});

/// Scenes as images with a class for each pixel: "background", then those of the objects.
std::unique_ptr<Dataset> as_dataset(Scenes scenes);

}  // namespace fleetfit::data
