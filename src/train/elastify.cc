#include "fleetfit/train/elastify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fleetfit/core/random.h"
#include "train/checkpoint.h"
#include "train/elastify_parts.h"
#include "train/subnet_sampler.h"
#include "train/torch/border.h"
#include "train/torch/parameters.h"
#include "train/torch/supernet.h"

namespace fleetfit::train {
namespace {

using elastic::AccuracySample;

constexpr std::size_t kSubnetsPerStep = 6;  // of tuning, from small to large
constexpr std::int64_t kCheapestEvery = 2;  // steps of tuning also have the cheapest subnet
constexpr double kSoftShare = 0.7;          // of tuning's loss
constexpr double kFeatureWeight = 1;        // beside it
constexpr std::size_t kStatisticsSubnets = 200;
constexpr std::size_t kProgressSubnets = 20;  // looked at after each epoch
constexpr std::size_t kSampleSubnets = 60;    // looked at at the end
constexpr std::int64_t kEvaluationBatch = 250;
constexpr std::int64_t kMessagesPerEpoch = 10;

struct Stage {
  std::string_view name;
  int epochs = 0;
  double rate = 0;
};

std::string describe(const std::vector<RangeAccuracy>& ranges) {
  std::string text;
  for (const auto& range : ranges) {
    text += fmt::format("{}{:.0f}-{:.0f} %: {:.1f}", text.empty() ? "" : ", ", range.low * 100,
                        range.high * 100, range.mean * 100);
  }
  return text;
}

std::string subject_of(const ElastifyOptions& options, const ImageSplits& images) {
  return fmt::format(
      "{}; recipe {}, {} + {} epochs of {} images in batches of {}, rates {} and {}, seed {}",
      options.subject, options.recipe == ElastifyRecipe::paper ? "paper" : "standard",
      options.distill_epochs, options.tune_epochs, training_images(options, images), options.batch,
      options.distill_rate, options.tune_rate, options.seed);
}

class Elastifying {
 public:
  struct Parts {
    LoadedImages images;
    SubnetSampler sampler;
    std::unique_ptr<TorchSupernet> net;
  };

  Elastifying(const elastic::Supernet& supernet, Parts parts, const ElastifyOptions& options,
              const TrainingContext& context)
      : images_(std::move(parts.images)),
        sampler_(std::move(parts.sampler)),
        net_(std::move(parts.net)),
        space_(std::vector{supernet}),
        options_(options),
        context_(context),
        random_(options.seed),
        stages_{Stage{"distill", options.distill_epochs, options.distill_rate},
                Stage{"tune", options.tune_epochs, options.tune_rate}},
        start_(context.clock.now()),
        saved_(start_) {}

  /// Goes on from a checkpoint, if it was asked for and there is one of this work.
  Status resume(const std::string& subject);
  Result<Elastified> run();

 private:
  bool is_stopped() const { return context_.stop.stop_requested(); }
  bool is_paper() const { return options_.recipe == ElastifyRecipe::paper; }
  std::int64_t steps_per_epoch() const {
    return images_.of_stage(at_.stage).size() / options_.batch;
  }
  double elapsed_s() const {
    return before_s_ + std::chrono::duration<double>(context_.clock.now() - start_).count();
  }
  core::Random random_of(std::string_view what) const;
  ShuffledBatches batches(std::string_view what) const {
    return {images_.of_stage(at_.stage), {.batch = options_.batch}, random_of(what)};
  }
  std::vector<SubnetPath> draw_subnets() const;

  Status run_stage();
  Status run_epoch(core::ProgressTask& task);
  Result<double> take_step(const TorchBatch& batch) const;
  void tell_loss(core::ProgressTask& task) const;
  std::string time_left() const;
  Status finish_epoch(core::ProgressTask& task);
  Status renew_statistics() const;
  Status save();
  Status save_at_times();

  Result<std::vector<AccuracySample>> accuracies(const TorchImages& images,
                                                 const std::vector<SubnetPath>& subnets) const;
  Status look_at_result(Elastified& result) const;
  std::string text_of(const SubnetPath& path) const;

  LoadedImages images_;
  SubnetSampler sampler_;
  std::unique_ptr<TorchSupernet> net_;
  elastic::SubnetSpace space_;
  const ElastifyOptions& options_;
  const TrainingContext& context_;
  core::Random random_;
  std::array<Stage, 2> stages_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds saved_;
  std::chrono::nanoseconds stage_start_{};
  std::int64_t stage_steps_ = 0;  // since then
  double before_s_ = 0;           // spent before the checkpoint that was resumed
  ElastifyPlace at_;
};

/// Depends on the place in the work alone, so that resumed work draws what it would have drawn.
core::Random Elastifying::random_of(std::string_view what) const {
  return random_.split(what).split(at_.stage).split(static_cast<std::uint64_t>(at_.epoch));
}

/// Subnets for one step of tuning. They visit all costs alike, and the cheapest more often: its
/// branches stand for most of the network and have the most to learn.
std::vector<SubnetPath> Elastifying::draw_subnets() const {
  auto random = random_of("subnets").split(static_cast<std::uint64_t>(at_.step));
  if (is_paper()) return {sampler_.draw(random)};
  const double least = sampler_.least_cost();
  std::vector<SubnetPath> subnets;
  if (at_.step % kCheapestEvery == 0) subnets.push_back(sampler_.draw_near(least, random));
  for (std::size_t i = 0; i < kSubnetsPerStep; ++i) {
    const double part = (static_cast<double>(i) + random.uniform()) / kSubnetsPerStep;
    subnets.push_back(sampler_.draw_near(least + part * (sampler_.most_cost() - least), random));
  }
  return subnets;
}

// ---- learning

Result<double> Elastifying::take_step(const TorchBatch& batch) const {
  const auto& stage = stages_[at_.stage];
  const auto steps = steps_per_epoch();
  const double rate =
      one_cycle_rate(stage.rate, at_.epoch * steps + at_.step, stage.epochs * steps);
  if (at_.stage == 0 && !is_paper()) return net_->distill(batch, rate);
  const auto subnets = draw_subnets();
  if (at_.stage == 0) return net_->distill_subnet(batch, subnets.front(), rate);
  return net_->tune(batch, {.subnets = subnets,
                            .rate = rate,
                            .soft_share = is_paper() ? 0.0 : kSoftShare,
                            .feature_weight = is_paper() ? 0.0 : kFeatureWeight,
                            .statistics = is_paper() ? Statistics::follow : Statistics::stay});
}

Status Elastifying::run_epoch(core::ProgressTask& task) {
  const auto epoch = batches("order");
  while (at_.step < epoch.size() && !is_stopped()) {
    FLEETFIT_ASSIGN(const auto images, epoch.batch(at_.step));
    FLEETFIT_ASSIGN(const auto loss, take_step(images));
    if (!std::isfinite(loss))
      return fail(ErrorCode::unstable,
                  fmt::format("{}: the loss became infinite in step {} of epoch {}; smaller steps "
                              "may help",
                              stages_[at_.stage].name, at_.step + 1, at_.epoch + 1));
    at_.loss_sum += loss;
    ++at_.step;
    ++stage_steps_;
    task.advance(static_cast<std::uint64_t>(options_.batch));
    if (at_.step * kMessagesPerEpoch / epoch.size() >
        (at_.step - 1) * kMessagesPerEpoch / epoch.size())
      tell_loss(task);
    FLEETFIT_TRY(save_at_times());
  }
  if (at_.step < epoch.size()) return save();
  auto finished = finish_epoch(task);
  // Stopped while the epoch was looked at: it is looked at again when the work is taken up.
  if (!finished && finished.error().code == ErrorCode::cancelled) return save();
  return finished;
}

void Elastifying::tell_loss(core::ProgressTask& task) const {
  const auto& stage = stages_[at_.stage];
  const auto steps = static_cast<double>(steps_per_epoch());
  task.message(fmt::format("{} {}/{}: {:.0f} %, loss {:.4f}, {} left", stage.name, at_.epoch + 1,
                           stage.epochs, 100 * static_cast<double>(at_.step) / steps,
                           at_.loss_sum / static_cast<double>(at_.step), time_left()));
}

/// Of the stage.
std::string Elastifying::time_left() const {
  const auto left = (stages_[at_.stage].epochs - at_.epoch) * steps_per_epoch() - at_.step;
  const double stage_s = std::chrono::duration<double>(context_.clock.now() - stage_start_).count();
  const auto seconds = static_cast<std::int64_t>(stage_s * static_cast<double>(left) /
                                                 static_cast<double>(stage_steps_));
  return fmt::format("{}:{:02} min", seconds / 60, seconds % 60);
}

Status Elastifying::finish_epoch(core::ProgressTask& task) {
  const auto& stage = stages_[at_.stage];
  if (at_.stage == 1 && !is_paper()) {
    FLEETFIT_TRY(renew_statistics());
  }
  auto random = random_.split("progress");
  FLEETFIT_ASSIGN(const auto samples,
                  accuracies(images_.validation, sampler_.draw_spread(kProgressSubnets, random)));
  at_.epochs.push_back({.stage = std::string(stage.name),
                        .epoch = at_.epoch + 1,
                        .loss = at_.loss_sum / static_cast<double>(at_.step),
                        .validation = accuracy_by_share(samples)});
  task.message(fmt::format("{} {}/{}: accuracy by share of multiply-accumulates: {}", stage.name,
                           at_.epoch + 1, stage.epochs, describe(at_.epochs.back().validation)));
  ++at_.epoch;
  at_.step = 0;
  at_.loss_sum = 0;
  return save();
}

/// Batch norm sees other numbers in a subnet than it did in the original: its statistics become
/// those over random subnets.
Status Elastifying::renew_statistics() const {
  auto random = random_of("statistics");
  const auto subnets = sampler_.draw_spread(kStatisticsSubnets, random);
  const auto epoch = batches("statistics");
  net_->renew_statistics();
  for (std::size_t i = 0; i < subnets.size(); ++i) {
    FLEETFIT_ASSIGN(const auto images, epoch.batch(static_cast<std::int64_t>(i) % epoch.size()));
    FLEETFIT_TRY(net_->add_statistics(images, subnets[i]));
  }
  return {};
}

Status Elastifying::run_stage() {
  const auto& stage = stages_[at_.stage];
  if (at_.epoch >= stage.epochs) return {};
  const auto images = [&](std::int64_t epochs, std::int64_t steps) {
    return static_cast<std::uint64_t>((epochs * steps_per_epoch() + steps) * options_.batch);
  };
  core::ProgressTask task(
      context_.progress,
      {.name = std::string(stage.name), .total = images(stage.epochs, 0), .unit = "images"});
  task.advance(images(at_.epoch, at_.step));
  stage_start_ = context_.clock.now();
  stage_steps_ = 0;
  while (at_.epoch < stage.epochs && !is_stopped()) {
    FLEETFIT_TRY(run_epoch(task));
  }
  return {};
}

// ---- checkpoints

Status Elastifying::save() {
  saved_ = context_.clock.now();
  if (!options_.checkpoint) return {};
  at_.elapsed_s = elapsed_s();
  return write_checkpoint(*options_.checkpoint, {.notes = to_notes(at_), .numbers = net_->state()});
}

Status Elastifying::save_at_times() {
  return context_.clock.now() - saved_ < kBetweenCheckpoints ? Status{} : save();
}

Status Elastifying::resume(const std::string& subject) {
  at_.subject = subject;
  if (!options_.resume || !options_.checkpoint) return {};
  const auto checkpoint = read_checkpoint(*options_.checkpoint);
  if (!checkpoint && checkpoint.error().code == ErrorCode::not_found) return {};
  FLEETFIT_TRY(checkpoint);
  const auto file = options_.checkpoint->string();
  FLEETFIT_ASSIGN(auto place, read_notes(checkpoint->notes, file));
  if (place.subject != subject)
    return refuse(fmt::format("{} is of other work ({}); without --resume it begins again", file,
                              place.subject));
  if (auto restored = net_->restore(checkpoint->numbers); !restored)
    return core::within(file, restored.error());
  at_ = std::move(place);
  before_s_ = at_.elapsed_s;
  return {};
}

// ---- results

Result<std::vector<AccuracySample>> Elastifying::accuracies(
    const TorchImages& images, const std::vector<SubnetPath>& subnets) const {
  std::vector<ClassCounts> counts(subnets.size());
  bool of_pixels = false;
  const OrderedBatches batches(images, kEvaluationBatch);
  for (std::int64_t b = 0; b < batches.size(); ++b) {
    if (is_stopped()) return fail(ErrorCode::cancelled, "interrupted while looking at subnets");
    FLEETFIT_ASSIGN(const auto batch, batches.batch(b));
    FLEETFIT_ASSIGN(const auto found, net_->count_classes(batch, subnets));
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i].add(found[i]);
    of_pixels = batch.labels.dim() > 1;
  }
  std::vector<AccuracySample> samples;
  for (std::size_t i = 0; i < subnets.size(); ++i) {
    samples.push_back({.subnet = text_of(subnets[i]),
                       .accuracy = counts[i].accuracy(),
                       .mac_share = sampler_.mac_share(subnets[i])});
    if (of_pixels) samples.back().mean_iou = counts[i].mean_iou();
  }
  return samples;
}

std::string Elastifying::text_of(const SubnetPath& path) const {
  auto design = space_.original();
  for (const auto& step : path) {
    if (const auto gene = space_.gene_of(0, step.block))
      design[*gene] = static_cast<space::Choice>(step.branch);
  }
  return space_.format(design);
}

Status Elastifying::look_at_result(Elastified& result) const {
  core::ProgressTask task(context_.progress, {.name = "test", .total = 2, .unit = "steps"});
  FLEETFIT_ASSIGN(const auto original, accuracies(images_.test, {sampler_.original()}));
  result.original_accuracy = original.front().accuracy;
  result.original_mean_iou = original.front().mean_iou;
  task.advance();
  auto random = random_.split("samples");
  auto subnets = sampler_.draw_spread(kSampleSubnets, random);
  subnets.push_back(sampler_.original());
  FLEETFIT_ASSIGN(result.samples, accuracies(images_.sample, subnets));
  result.sample_images = images_.sample.size();
  result.by_share = accuracy_by_share(result.samples);
  return {};
}

Result<Elastified> Elastifying::run() {
  for (; at_.stage < stages_.size() && !is_stopped(); ++at_.stage, at_.epoch = 0) {
    FLEETFIT_TRY(run_stage());
    if (is_stopped()) break;
  }
  Elastified result{.epochs = at_.epochs};
  if (!is_stopped()) {
    auto looked = look_at_result(result);
    if (!looked && looked.error().code != ErrorCode::cancelled)
      return tl::unexpected(std::move(looked.error()));
  } else if (at_.stage == 1 && at_.step > 0 && !is_paper()) {
    FLEETFIT_TRY(renew_statistics());
  }
  result.is_interrupted = is_stopped();
  result.supernet = net_->supernet();
  result.elapsed_s = elapsed_s();
  return result;
}

Result<Elastified> learn(const elastic::Supernet& supernet, const ImageSplits& images,
                         const ElastifyOptions& options, const TrainingContext& context) {
  FLEETFIT_ASSIGN(auto sampler, SubnetSampler::create(supernet));
  FLEETFIT_ASSIGN(auto loaded, LoadedImages::load(supernet, images, options, context));
  FLEETFIT_ASSIGN(auto net,
                  TorchSupernet::create(supernet, device_of(options.compute), context.pool));
  const auto takes = [&](const ImageForm& form) { return net->takes(form); };
  FLEETFIT_TRY(loaded.load_first(takes, options, context));
  Elastifying work(supernet, {std::move(loaded), std::move(sampler), std::move(net)}, options,
                   context);
  FLEETFIT_TRY(work.resume(subject_of(options, images)));
  return work.run();
}

}  // namespace

std::vector<RangeAccuracy> accuracy_by_share(const std::vector<AccuracySample>& samples) {
  constexpr int kRanges = 10;
  std::vector<RangeAccuracy> ranges;
  for (int i = 0; i < kRanges; ++i) {
    RangeAccuracy range{.low = i / 10.0, .high = (i + 1) / 10.0};
    double sum = 0;
    double iou_sum = 0;
    for (const auto& sample : samples) {
      const bool last = i + 1 == kRanges;  // which also has the original, and what is dearer
      if (sample.mac_share < range.low || (sample.mac_share >= range.high && !last)) continue;
      sum += sample.accuracy;
      iou_sum += sample.mean_iou.value_or(0);
      ++range.subnets;
    }
    if (range.subnets == 0) continue;
    range.mean = sum / static_cast<double>(range.subnets);
    if (samples.front().mean_iou) range.mean_iou = iou_sum / static_cast<double>(range.subnets);
    ranges.push_back(range);
  }
  return ranges;
}

Result<Elastified> elastify(const elastic::Supernet& supernet, const ImageSplits& images,
                            const ElastifyOptions& options, const TrainingContext& context) {
  FLEETFIT_TRY(check_available(options.compute));
  return guarded([&] { return learn(supernet, images, options, context); });
}

}  // namespace fleetfit::train
