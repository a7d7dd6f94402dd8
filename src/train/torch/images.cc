#include "train/torch/images.h"

#include <ATen/TensorIndexing.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/where.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "fleetfit/core/counting.h"
#include "fleetfit/core/parallel.h"
#include "train/torch/parameters.h"

namespace fleetfit::train {
namespace {

constexpr std::int64_t kDecodedAtOnce = 1024;

std::int64_t bytes_of(const ImageForm& form) { return form.channels * form.height * form.width; }

std::int64_t half_of_memory() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) / 2 * ::sysconf(_SC_PAGESIZE);
}

/// Where images come from: those of a data set that were chosen.
struct Source {
  const data::Dataset& data;
  std::vector<std::size_t> chosen;
  ImageForm kept;     // as they are kept: their own form if all have it, else the network's
  ImageForm network;  // as the network takes them
  bool has_masks = false;

  std::int64_t size() const { return std::ssize(chosen); }
};

/// Bytes of images and labels, on the CPU. Labels are whole numbers, or bytes of each pixel.
struct Decoded {
  at::Tensor pixels;
  at::Tensor labels;
};

Decoded room_for(const Source& source, std::int64_t count) {
  const auto& form = source.kept;
  return {.pixels = at::empty({count, form.channels, form.height, form.width}, at::kByte),
          .labels = source.has_masks ? at::empty({count, form.height, form.width}, at::kByte)
                                     : at::empty({count}, at::kLong)};
}

ImageForm form_of_image(const data::Image& image) {
  return {.channels = image.channels, .height = image.height, .width = image.width};
}

bool has_form(const data::Image& image, const ImageForm& form) {
  return form_of_image(image) == form;
}

void separate_channels(const data::Image& image, std::uint8_t* out) {
  const auto pixels = image.height * image.width;
  for (std::int64_t c = 0; c < image.channels; ++c) {
    for (std::int64_t i = 0; i < pixels; ++i)
      *out++ = image.pixels[static_cast<std::size_t>(i * image.channels + c)];
  }
}

Status put_pixels(const data::Item& item, const ImageForm& form, std::uint8_t* out) {
  if (has_form(item.image, form)) {
    separate_channels(item.image, out);
    return {};
  }
  FLEETFIT_ASSIGN(
      const auto stretched,
      data::make_batch(
          std::span(&item, 1),
          {.height = form.height, .width = form.width, .channels = form.channels, .scale = 1}));
  std::ranges::transform(stretched.values, out, [](float value) {
    return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0F, 255.0F)));
  });
  return {};
}

Status put_mask(const data::Item& item, const ImageForm& form, std::uint8_t* out) {
  FLEETFIT_ASSIGN(const auto labels, data::make_batch(std::span(&item, 1), {.height = form.height,
                                                                            .width = form.width}));
  if (std::ssize(labels.labels) != form.height * form.width)
    return refuse("only some of the images have a class for each pixel");
  std::ranges::transform(labels.labels, out,
                         [](std::int64_t label) { return static_cast<std::uint8_t>(label); });
  return {};
}

/// Puts item number `place` of a part where it belongs.
Status put(const data::Item& item, const Source& source, std::int64_t place, Decoded& part) {
  const auto& form = source.kept;
  auto* const pixels = part.pixels.data_ptr<std::uint8_t>() + place * bytes_of(form);
  FLEETFIT_TRY(put_pixels(item, form, pixels));
  if (source.has_masks)
    return put_mask(item, form,
                    part.labels.data_ptr<std::uint8_t>() + place * form.height * form.width);
  part.labels.data_ptr<std::int64_t>()[place] = item.label;
  return {};
}

Result<Decoded> decode(const Source& source, std::span<const std::int64_t> places,
                       core::ThreadPool& pool) {
  auto decoded = room_for(source, std::ssize(places));
  FLEETFIT_TRY(core::try_each(pool, places.size(), [&](std::size_t i) -> Status {
    FLEETFIT_ASSIGN(const auto item,
                    source.data.item(source.chosen[static_cast<std::size_t>(places[i])]));
    return put(item, source, static_cast<std::int64_t>(i), decoded);
  }));
  return decoded;
}

std::vector<std::size_t> choose(const data::Dataset& data, std::int64_t limit) {
  const auto all = static_cast<std::int64_t>(data.size());
  auto chosen = core::counting(data.size());
  if (limit <= 0 || limit >= all) return chosen;
  chosen.clear();
  auto random = core::Random(1).split("limit");
  for (const auto place : random.sample(data.size(), static_cast<std::size_t>(limit)))
    chosen.push_back(place);
  std::ranges::sort(chosen);
  return chosen;
}

at::Tensor with_channels(const at::Tensor& images, std::int64_t channels) {
  if (images.size(1) == channels) return images;
  if (images.size(1) == 1) return images.expand({-1, channels, -1, -1});
  const auto part = [&](std::int64_t c) { return images.slice(1, c, c + 1); };
  return part(0).mul(0.299).add(part(1), 0.587).add(part(2), 0.114);
}

/// Bytes as a network's input.
at::Tensor as_input(const at::Tensor& pixels, const ImageForm& form) {
  auto images = with_channels(pixels.to(at::kFloat).mul_(1.0 / 255), form.channels);
  if (images.size(2) != form.height || images.size(3) != form.width)
    images = at::upsample_bilinear2d(images, {form.height, form.width}, /*align_corners=*/false);
  return images;
}

/// Where each row or column of each image comes from, counted in the padded image.
at::Tensor shifted(const std::vector<std::int64_t>& offsets, std::int64_t extent,
                   const at::Device& device) {
  const auto along = at::arange(extent, at::TensorOptions().dtype(at::kLong).device(device));
  return along.unsqueeze(0).add(tensor_of(offsets).to(device).unsqueeze(1));
}

at::Tensor augmented(const at::Tensor& images, const Augmentation& augmentation,
                     core::Random random) {
  const auto count = images.size(0);
  const auto height = images.size(2);
  const auto width = images.size(3);
  std::vector<std::int64_t> down;
  std::vector<std::int64_t> right;
  std::vector<std::int64_t> flipped;
  for (std::int64_t i = 0; i < count; ++i) {
    down.push_back(random.between(0, 2 * augmentation.shift));
    right.push_back(random.between(0, 2 * augmentation.shift));
    flipped.push_back(augmentation.flip && random.chance(0.5) ? 1 : 0);
  }
  const auto device = images.device();
  const auto rows = shifted(down, height, device).unsqueeze(2);
  const auto straight = shifted(right, width, device);
  const auto flip = tensor_of(flipped).to(device).eq(1).unsqueeze(1);
  const auto columns = at::where(flip, straight.flip(1), straight).unsqueeze(1);
  const auto pad = augmentation.shift;
  const auto padded = at::constant_pad_nd(images, {pad, pad, pad, pad}, 0).movedim(1, -1);
  const auto image =
      at::arange(count, at::TensorOptions().dtype(at::kLong).device(device)).reshape({-1, 1, 1});
  using at::indexing::TensorIndex;
  return padded.index({TensorIndex(image), TensorIndex(rows), TensorIndex(columns)}).movedim(-1, 1);
}

}  // namespace

struct TorchImages::Parts {
  Source source;
  core::ThreadPool& pool;
  at::Device device;
  std::optional<Decoded> kept;  // on the device

  Result<TorchBatch> bytes(std::span<const std::int64_t> places) const;
};

Result<TorchBatch> TorchImages::Parts::bytes(std::span<const std::int64_t> places) const {
  if (kept) {
    const auto chosen = tensor_of(places).to(device);
    return TorchBatch{.images = kept->pixels.index_select(0, chosen),
                      .labels = kept->labels.index_select(0, chosen)};
  }
  FLEETFIT_ASSIGN(const auto decoded, decode(source, places, pool));
  return TorchBatch{.images = decoded.pixels.to(device), .labels = decoded.labels.to(device)};
}

Result<ImageForm> form_of(const data::Dataset& data) {
  return data.item(0).map([](const data::Item& first) { return form_of_image(first.image); });
}

TorchImages::TorchImages(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TorchImages::TorchImages(TorchImages&&) noexcept = default;
TorchImages& TorchImages::operator=(TorchImages&&) noexcept = default;
TorchImages::~TorchImages() = default;

std::int64_t TorchImages::size() const { return parts_->source.size(); }

const ImageForm& TorchImages::form() const { return parts_->source.network; }

bool TorchImages::is_in_memory() const { return parts_->kept.has_value(); }

namespace {

/// Reads everything, piece by piece so that it can be stopped.
Result<Decoded> decode_all(const Source& source, core::ThreadPool& pool,
                           const std::stop_token& stop) {
  auto all = room_for(source, source.size());
  auto places = core::counting(source.size());
  for (std::int64_t first = 0; first < source.size(); first += kDecodedAtOnce) {
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "interrupted while reading data");
    const auto count = std::min(kDecodedAtOnce, source.size() - first);
    FLEETFIT_ASSIGN(const auto part,
                    decode(source,
                           std::span<const std::int64_t>(places).subspan(
                               static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                           pool));
    all.pixels.narrow(0, first, count).copy_(part.pixels);
    all.labels.narrow(0, first, count).copy_(part.labels);
  }
  return all;
}

/// Whether all images are of this form; looks at all of them only if it has to.
Result<bool> all_have_form(const data::Dataset& data, std::span<const std::size_t> chosen,
                           const ImageForm& form, core::ThreadPool& pool) {
  std::atomic<bool> same = true;
  FLEETFIT_TRY(core::try_each(pool, chosen.size(), [&](std::size_t i) -> Status {
    if (!same) return {};
    FLEETFIT_ASSIGN(const auto item, data.item(chosen[i]));
    if (!has_form(item.image, form)) same = false;
    return {};
  }));
  return same.load();
}

}  // namespace

Result<TorchImages> TorchImages::load(const data::Dataset& data, const TorchImageOptions& options,
                                      core::ThreadPool& pool, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto first, data.item(0));
  const auto own = form_of_image(first.image);
  Source source{.data = data,
                .chosen = choose(data, options.limit),
                .kept = own,
                .network = options.form == ImageForm{} ? own : options.form,
                .has_masks = !first.mask.empty()};
  const auto limit = options.max_bytes > 0 ? options.max_bytes : half_of_memory();
  if (source.network != own) {
    FLEETFIT_ASSIGN(const auto same, all_have_form(data, source.chosen, own, pool));
    const bool fits = source.size() * bytes_of(own) <= limit;
    // Their own form is kept, as bytes of stretched images are rounded ones. Masks are stretched
    // with them.
    if (!same || source.has_masks || (!fits && bytes_of(source.network) < bytes_of(own)))
      source.kept = source.network;
  }
  auto parts = std::make_unique<Parts>(
      Parts{.source = std::move(source), .pool = pool, .device = options.device, .kept = {}});
  if (parts->source.size() * bytes_of(parts->source.kept) <= limit) {
    FLEETFIT_ASSIGN(auto all, decode_all(parts->source, pool, stop));
    parts->kept =
        Decoded{.pixels = all.pixels.to(options.device), .labels = all.labels.to(options.device)};
  }
  return TorchImages(std::move(parts));
}

Result<TorchBatch> TorchImages::batch(std::span<const std::int64_t> places) const {
  const at::NoGradGuard no_gradients;
  auto batch = parts_->bytes(places);
  if (!batch) return batch;
  batch->images = as_input(batch->images, form());
  batch->labels = batch->labels.to(at::kLong);
  return batch;
}

Result<TorchBatch> TorchImages::batch(std::span<const std::int64_t> places,
                                      const Augmentation& augmentation, core::Random random) const {
  const at::NoGradGuard no_gradients;
  auto plain = batch(places);
  const bool changes = augmentation.shift > 0 || augmentation.flip;
  if (!plain || !changes) return plain;
  if (plain->labels.dim() > 1)
    plain->labels = augmented(plain->labels.unsqueeze(1), augmentation, random).squeeze(1);
  plain->images = augmented(plain->images, augmentation, random);
  return plain;
}

ShuffledBatches::ShuffledBatches(const TorchImages& images, const EpochOptions& options,
                                 const core::Random& random)
    : images_(images), options_(options), random_(random), order_(core::counting(images.size())) {
  random_.split("order").shuffle(order_);
  options_.batch = std::min(options_.batch, images.size());
}

std::int64_t ShuffledBatches::size() const { return images_.size() / options_.batch; }

Result<TorchBatch> ShuffledBatches::batch(std::int64_t number) const {
  const auto places = std::span<const std::int64_t>(order_).subspan(
      static_cast<std::size_t>(number * options_.batch), static_cast<std::size_t>(options_.batch));
  return images_.batch(places, options_.augmentation,
                       random_.split(static_cast<std::uint64_t>(number)));
}

Result<TorchBatch> ShuffledBatches::next(std::int64_t number) {
  if (images_.is_in_memory()) return batch(number);
  auto wanted = reading_.valid() ? reading_.get() : batch(number);
  if (ahead_ >= 0 && ahead_ != number) wanted = batch(number);
  ahead_ = number + 1 < size() ? number + 1 : -1;
  if (ahead_ >= 0) reading_ = std::async(std::launch::async, [this] { return batch(ahead_); });
  return wanted;
}

Result<TorchBatch> OrderedBatches::batch(std::int64_t number) const {
  const auto first = number * batch_;
  auto places = core::counting(std::min(batch_, images_.size() - first), first);
  return images_.batch(places);
}

}  // namespace fleetfit::train
