#include "fleetfit/data/scenes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "data/picture.h"
#include "fleetfit/core/random.h"

namespace fleetfit::data {
namespace {

constexpr std::string_view kScenes = "scenes:";
constexpr float kBlack = 16;             // the brightest that still counts as black
constexpr double kBlackEdge = 0.5;       // share of an image's edge from which it stands on black
constexpr double kBrightestGround = 64;  // objects are mostly brighter
constexpr int kTries = 30;               // to find a place for an object
constexpr std::int64_t kMostExtent = 4096;
constexpr int kMostObjects = 1000;

/// An object that can be put somewhere: its pixels, and which of them are its own.
struct Cutout {
  Picture picture;
  std::vector<bool> own;
  std::int64_t label = 0;

  std::size_t place(std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>(y * picture.width + x);
  }
};

struct Point {
  std::int64_t y = 0;
  std::int64_t x = 0;
};

bool is_black(const Picture& picture, std::int64_t y, std::int64_t x) {
  for (std::int64_t c = 0; c < picture.channels; ++c)
    if (picture.at(y, x, c) > kBlack) return false;
  return true;
}

bool stands_on_black(const Picture& picture) {
  std::int64_t edge = 0;
  std::int64_t black = 0;
  for (std::int64_t y = 0; y < picture.height; ++y) {
    for (std::int64_t x = 0; x < picture.width; ++x) {
      const bool inside = y > 0 && x > 0 && y + 1 < picture.height && x + 1 < picture.width;
      if (inside) continue;
      ++edge;
      black += is_black(picture, y, x) ? 1 : 0;
    }
  }
  return static_cast<double>(black) > kBlackEdge * static_cast<double>(edge);
}

std::vector<bool> own_pixels(const Picture& picture, bool on_black) {
  std::vector<bool> own;
  for (std::int64_t y = 0; y < picture.height; ++y)
    for (std::int64_t x = 0; x < picture.width; ++x)
      own.push_back(!on_black || !is_black(picture, y, x));
  return own;
}

/// The image at `scale` of its size, or as large as the scene takes.
Cutout cut_out(const Item& item, std::int64_t channels, double scale, std::int64_t scene_size) {
  auto picture = with_channels(item.image, channels);
  const bool on_black = stands_on_black(picture);
  const auto longest = static_cast<double>(std::max(picture.height, picture.width));
  const double factor = std::min(scale, static_cast<double>(scene_size) / longest);
  const auto scaled = [&](std::int64_t extent) {
    const double wanted = std::round(static_cast<double>(extent) * factor);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, scene_size);
  };
  const auto height = scaled(picture.height);
  const auto width = scaled(picture.width);
  Cutout object{.picture = resized(std::move(picture), height, width), .label = item.label};
  object.own = own_pixels(object.picture, on_black);
  return object;
}

template <class Visit>
void for_own_pixels(const Cutout& object, const Visit& visit) {
  for (std::int64_t y = 0; y < object.picture.height; ++y)
    for (std::int64_t x = 0; x < object.picture.width; ++x)
      if (object.own[object.place(y, x)]) visit(y, x);
}

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::round(value), 0.0, 255.0));
}

/// A scene in the making.
class Canvas {
 public:
  Canvas(std::int64_t size, std::int64_t channels, core::Random random);

  /// Whether no earlier object would lose more than `share` of its pixels, and the new one be seen.
  bool has_room(const Cutout& object, Point at, double share) const;
  void put(const Cutout& object, Point at);
  Scene finished() &&;

 private:
  static constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

  std::size_t place(std::int64_t y, std::int64_t x) const {
    return static_cast<std::size_t>(y * scene_.image.width + x);
  }

  Scene scene_;
  std::vector<std::size_t> owner_;   // of each pixel
  std::vector<std::size_t> pixels_;  // of each object, when it was put there
  std::vector<std::size_t> seen_;    // of those, still
};

/// The background brightens evenly in a random direction: neither empty nor something to learn.
Canvas::Canvas(std::int64_t size, std::int64_t channels, core::Random random) {
  scene_.image = {.height = size, .width = size, .channels = channels};
  owner_.assign(static_cast<std::size_t>(size * size), kNobody);
  scene_.mask.assign(owner_.size(), 0);
  const std::array corners{random.uniform(0, kBrightestGround), random.uniform(0, kBrightestGround),
                           random.uniform(0, kBrightestGround)};
  const auto extent = static_cast<double>(size);
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      const double value = corners[0] +
                           (corners[1] - corners[0]) * static_cast<double>(y) / extent +
                           (corners[2] - corners[0]) * static_cast<double>(x) / extent;
      scene_.image.pixels.insert(scene_.image.pixels.end(), static_cast<std::size_t>(channels),
                                 to_byte(value));
    }
  }
}

bool Canvas::has_room(const Cutout& object, Point at, double share) const {
  std::vector<std::size_t> hidden(pixels_.size());
  bool is_seen = false;
  for_own_pixels(object, [&](std::int64_t y, std::int64_t x) {
    is_seen = true;
    if (const auto owner = owner_[place(at.y + y, at.x + x)]; owner != kNobody) ++hidden[owner];
  });
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const auto lost = static_cast<double>(pixels_[i] - seen_[i] + hidden[i]);
    if (lost > share * static_cast<double>(pixels_[i])) return false;
  }
  return is_seen;
}

void Canvas::put(const Cutout& object, Point at) {
  const auto size = scene_.image.width;
  SceneObject box{.label = object.label, .left = size, .top = size};
  const auto number = pixels_.size();
  std::size_t count = 0;
  for_own_pixels(object, [&](std::int64_t y, std::int64_t x) {
    const auto here = place(at.y + y, at.x + x);
    if (owner_[here] != kNobody) --seen_[owner_[here]];
    owner_[here] = number;
    ++count;
    scene_.mask[here] = static_cast<std::uint8_t>(object.label + 1);
    for (std::int64_t c = 0; c < object.picture.channels; ++c)
      scene_.image.pixels[here * static_cast<std::size_t>(object.picture.channels) +
                          static_cast<std::size_t>(c)] = to_byte(object.picture.at(y, x, c));
    box.left = std::min(box.left, at.x + x);
    box.top = std::min(box.top, at.y + y);
    box.right = std::max(box.right, at.x + x + 1);
    box.bottom = std::max(box.bottom, at.y + y + 1);
  });
  pixels_.push_back(count);
  seen_.push_back(count);
  scene_.objects.push_back(box);
}

Scene Canvas::finished() && { return std::move(scene_); }

Status check(const Dataset& data, const SceneOptions& options) {
  const auto refuse = [](std::string problem) {
    return fail(ErrorCode::invalid_input, "scenes: " + std::move(problem));
  };
  if (data.size() == 0) return refuse("there are no images to compose them of");
  if (data.classes().size() > std::numeric_limits<std::uint8_t>::max())
    return refuse(fmt::format("{} classes; at most 255 have numbers", data.classes().size()));
  if (options.size < 1 || options.size > kMostExtent)
    return refuse(
        fmt::format("a size of {} pixels is not between 1 and {}", options.size, kMostExtent));
  if (options.min_objects < 0 || options.max_objects < std::max(options.min_objects, 1) ||
      options.max_objects > kMostObjects)
    return refuse(fmt::format("{} to {} objects (at most {})", options.min_objects,
                              options.max_objects, kMostObjects));
  // Written so that numbers that are none are refused as well.
  if (!(options.min_scale > 0 && options.min_scale <= options.max_scale &&
        std::isfinite(options.max_scale)))
    return refuse(fmt::format("scales of {} to {}", options.min_scale, options.max_scale));
  if (!(options.max_overlap >= 0 && options.max_overlap <= 1))
    return refuse(fmt::format("an overlap of {} is not between 0 and 1", options.max_overlap));
  return {};
}

/// The images of one scene, drawn at random.
Result<std::vector<Item>> draw_items(const Dataset& data, const SceneOptions& options,
                                     core::Random random) {
  std::vector<Item> items;
  const auto count = random.between(options.min_objects, options.max_objects);
  for (std::int64_t i = 0; i < count; ++i) {
    FLEETFIT_ASSIGN(auto item, data.item(static_cast<std::size_t>(random.below(data.size()))));
    items.push_back(std::move(item));
  }
  return items;
}

std::int64_t channels_of(const std::vector<Item>& items) {
  std::int64_t channels = 1;
  for (const auto& item : items) channels = std::max(channels, item.image.channels);
  return channels;
}

/// Puts the object where there is room for it, if such a place is found.
void place_somewhere(Canvas& canvas, const Item& item, const SceneOptions& options,
                     std::int64_t channels, core::Random random) {
  for (int i = 0; i < kTries; ++i) {
    const double scale = random.uniform(options.min_scale, options.max_scale);
    const auto object = cut_out(item, channels, scale, options.size);
    const Point at{.y = random.between(0, options.size - object.picture.height),
                   .x = random.between(0, options.size - object.picture.width)};
    if (!canvas.has_room(object, at, options.max_overlap)) continue;
    canvas.put(object, at);
    return;
  }
}

class SegmentedScenes final : public Dataset {
 public:
  explicit SegmentedScenes(Scenes scenes) : scenes_(std::move(scenes)), classes_{"background"} {
    classes_.insert(classes_.end(), scenes_.classes().begin(), scenes_.classes().end());
  }

  std::size_t size() const override { return scenes_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<Item> item(std::size_t index) const override {
    auto scene = scenes_.scene(index);
    FLEETFIT_TRY(scene);
    return Item{.image = std::move(scene->image), .mask = std::move(scene->mask)};
  }

 private:
  Scenes scenes_;
  std::vector<std::string> classes_;
};

}  // namespace

Scenes::Scenes(std::shared_ptr<const Dataset> data, const SceneOptions& options)
    : data_(std::move(data)), options_(options) {}

Result<Scenes> Scenes::create(std::shared_ptr<const Dataset> data, const SceneOptions& options) {
  FLEETFIT_TRY(check(*data, options));
  return Scenes(std::move(data), options);
}

std::size_t Scenes::size() const { return options_.count > 0 ? options_.count : data_->size(); }

const std::vector<std::string>& Scenes::classes() const { return data_->classes(); }

Result<Scene> Scenes::scene(std::size_t index) const {
  const auto random = core::Random(options_.seed).split(index);
  FLEETFIT_ASSIGN(const auto items, draw_items(*data_, options_, random.split("images")));
  const auto channels = channels_of(items);
  Canvas canvas(options_.size, channels, random.split("background"));
  for (std::size_t i = 0; i < items.size(); ++i)
    place_somewhere(canvas, items[i], options_, channels, random.split("places").split(i));
  return std::move(canvas).finished();
}

bool is_scenes_spec(std::string_view spec) { return spec.starts_with(kScenes); }

Result<Scenes> open_scenes(std::string_view spec, Split split, const SceneOptions& options,
                           const SplitOptions& splits) {
  if (!is_scenes_spec(spec))
    return fail(ErrorCode::invalid_input,
                fmt::format("'{}' are no scenes; they are scenes:DATASET, such as "
                            "scenes:fashion-mnist",
                            spec));
  FLEETFIT_ASSIGN(auto images, open_dataset(spec.substr(kScenes.size()), split, splits));
  return Scenes::create(std::move(images), options);
}

std::unique_ptr<Dataset> as_dataset(Scenes scenes) {
  return std::make_unique<SegmentedScenes>(std::move(scenes));
}

}  // namespace fleetfit::data
