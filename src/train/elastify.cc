#include "fleetfit/train/elastify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "fleetfit/core/random.h"
#include "train/elastify_checkpoint.h"
#include "train/subnet_sampler.h"
#include "train/torch_supernet.h"

namespace fleetfit::train {
namespace {

using elastic::AccuracySample;

constexpr std::size_t kSubnetsPerStep = 2;  // of tuning, one small and one large
constexpr double kSoftShare = 0.5;          // of tuning's loss
constexpr std::size_t kStatisticsSubnets = 96;
constexpr std::size_t kProgressSubnets = 24;  // looked at after each epoch
constexpr std::size_t kProgressImages = 1000;
constexpr std::size_t kSampleSubnets = 60;  // looked at at the end
constexpr std::size_t kSampleImages = 2000;
constexpr std::size_t kEvaluationBatch = 250;
constexpr double kWarmUp = 0.05;  // share of a stage's steps
constexpr std::chrono::seconds kCheckpointEvery{60};
constexpr std::size_t kMessagesPerEpoch = 10;

struct Stage {
  std::string_view name;
  int epochs = 0;
  double rate = 0;
};

/// Of the optimizer: rises at the beginning of a stage, then falls to nothing along a cosine.
double rate_at(double peak, double part) {
  const double rise = std::min(1.0, part / kWarmUp);
  return peak * rise * 0.5 * (1 + std::cos(std::numbers::pi * part));
}

std::string describe(const std::vector<RangeAccuracy>& ranges) {
  std::string text;
  for (const auto& range : ranges) {
    text += fmt::format("{}{:.0f}-{:.0f} %: {:.1f}", text.empty() ? "" : ", ", range.low * 100,
                        range.high * 100, range.mean * 100);
  }
  return text;
}

std::string minutes(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string subject_of(const ElastifyOptions& options, const ElastifyImages& images) {
  return fmt::format(
      "{}; recipe {}, {} + {} epochs of {} images in batches of {}, rates {} and {}, seed {}",
      options.subject, options.recipe == ElastifyRecipe::paper ? "paper" : "standard",
      options.distill_epochs, options.tune_epochs,
      options.limit > 0 ? std::min(options.limit, images.training.size()) : images.training.size(),
      options.batch, options.distill_rate, options.tune_rate, options.seed);
}

/// Checks what learning relies on.
Status check_images(const elastic::Supernet& supernet, const ElastifyImages& images,
                    const ElastifyOptions& options) {
  const auto& last = supernet.blocks.back().branches.front().graph;
  const auto& output = last.tensor(last.outputs.front()).shape;
  const auto classes = std::ssize(images.training.classes());
  if (!output || output->size() < 2)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: its output has no classes", supernet.name));
  if ((*output)[1] != classes)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: it tells {} classes apart, the data has {}", supernet.name,
                            (*output)[1], classes));
  const auto count =
      options.limit > 0 ? std::min(options.limit, images.training.size()) : images.training.size();
  if (std::cmp_less(count, options.batch))
    return fail(
        ErrorCode::invalid_input,
        fmt::format("there are {} images to learn from, a batch has {}", count, options.batch));
  return {};
}

class Elastifying {
 public:
  Elastifying(const elastic::Supernet& supernet, const ElastifyImages& images,
              const ElastifyOptions& options, const TrainingContext& context, SubnetSampler sampler,
              std::unique_ptr<TorchSupernet> net)
      : images_(images),
        options_(options),
        context_(context),
        sampler_(std::move(sampler)),
        net_(std::move(net)),
        space_({supernet}),
        random_(options.seed),
        stages_{Stage{"distill", options.distill_epochs, options.distill_rate},
                Stage{"tune", options.tune_epochs, options.tune_rate}},
        start_(context.clock.now()),
        saved_(start_) {
    choose_images();
    at_.subject = subject_of(options, images);
  }

  Status resume();
  Result<Elastified> run();

 private:
  bool is_stopped() const { return context_.stop.stop_requested(); }
  bool is_paper() const { return options_.recipe == ElastifyRecipe::paper; }
  std::size_t steps_per_epoch() const {
    return chosen_.size() / static_cast<std::size_t>(options_.batch);
  }
  double elapsed_s() const {
    return before_s_ + std::chrono::duration<double>(context_.clock.now() - start_).count();
  }

  void choose_images();
  core::Random random_of(std::string_view what) const;
  std::vector<std::size_t> order() const;
  Result<data::Batch> batch(std::span<const std::size_t> indices) const;
  std::vector<SubnetPath> draw_subnets() const;

  Status run_stage();
  Status run_epoch(core::ProgressTask& task);
  Result<double> take_step(const data::Batch& batch) const;
  void tell_loss(core::ProgressTask& task) const;
  Status finish_epoch(core::ProgressTask& task);
  Status renew_statistics() const;
  Status save();
  Status save_at_times();

  Result<std::vector<AccuracySample>> accuracies(const data::Dataset& dataset,
                                                 std::vector<std::size_t> indices,
                                                 const std::vector<SubnetPath>& subnets) const;
  Status look_at_result(Elastified& result) const;
  std::string text_of(const SubnetPath& path) const;

  ElastifyImages images_;
  const ElastifyOptions& options_;
  const TrainingContext& context_;
  SubnetSampler sampler_;
  std::unique_ptr<TorchSupernet> net_;
  elastic::SubnetSpace space_;
  core::Random random_;
  std::array<Stage, 2> stages_;
  std::chrono::nanoseconds start_;
  std::chrono::nanoseconds saved_;
  double before_s_ = 0;  // spent before the checkpoint that was resumed
  std::vector<std::size_t> chosen_;
  ElastifyCheckpoint at_;
};

// ---- images and subnets

std::vector<std::size_t> some_of(std::size_t size, std::size_t most, core::Random random) {
  if (size <= most) {
    std::vector<std::size_t> all(size);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const auto drawn = random.sample(size, most);
  return {drawn.begin(), drawn.end()};
}

void Elastifying::choose_images() {
  const std::size_t size = images_.training.size();
  chosen_ = some_of(size, options_.limit > 0 ? options_.limit : size, random_.split("images"));
}

/// Depends on the place in the work alone, so that resumed work draws what it would have drawn.
core::Random Elastifying::random_of(std::string_view what) const {
  return random_.split(what).split(at_.stage).split(static_cast<std::uint64_t>(at_.epoch));
}

std::vector<std::size_t> Elastifying::order() const {
  auto order = chosen_;
  random_of("order").shuffle(order);
  return order;
}

Result<data::Batch> Elastifying::batch(std::span<const std::size_t> indices) const {
  return data::make_batch(images_.training, indices, images_.preprocessing);
}

/// Subnets for one step of tuning. Together they visit all sizes alike.
std::vector<SubnetPath> Elastifying::draw_subnets() const {
  auto random = random_of("subnets").split(at_.step);
  if (is_paper()) return {sampler_.draw(random)};
  std::vector<SubnetPath> subnets;
  const double least = sampler_.least_share();
  for (std::size_t i = 0; i < kSubnetsPerStep; ++i) {
    const double part = (static_cast<double>(i) + random.uniform()) / kSubnetsPerStep;
    subnets.push_back(sampler_.draw_near(least + part * (sampler_.most_share() - least), random));
  }
  return subnets;
}

// ---- learning

Result<double> Elastifying::take_step(const data::Batch& batch) const {
  const auto& stage = stages_[at_.stage];
  const double steps = static_cast<double>(steps_per_epoch());
  const double done = at_.epoch * steps + static_cast<double>(at_.step) + 0.5;
  const double rate = rate_at(stage.rate, done / (steps * stage.epochs));
  if (at_.stage == 0 && !is_paper()) return net_->distill(batch, rate);
  const auto subnets = draw_subnets();
  if (at_.stage == 0) return net_->distill_subnet(batch, subnets.front(), rate);
  return net_->tune(batch, {.subnets = subnets,
                            .rate = rate,
                            .soft_share = is_paper() ? 0.0 : kSoftShare,
                            .statistics = is_paper() ? Statistics::follow : Statistics::stay});
}

Status Elastifying::run_epoch(core::ProgressTask& task) {
  const auto order = this->order();
  const auto size = static_cast<std::size_t>(options_.batch);
  const std::size_t steps = steps_per_epoch();
  while (at_.step < steps && !is_stopped()) {
    const auto images = batch(std::span(order).subspan(at_.step * size, size));
    if (!images) return tl::unexpected(images.error());
    const auto loss = take_step(*images);
    if (!loss) return tl::unexpected(loss.error());
    if (!std::isfinite(*loss))
      return fail(ErrorCode::unstable,
                  fmt::format("{}: the loss became infinite in step {} of epoch {}; smaller steps "
                              "may help",
                              stages_[at_.stage].name, at_.step + 1, at_.epoch + 1));
    at_.loss_sum += *loss;
    ++at_.step;
    task.advance(size);
    if (at_.step * kMessagesPerEpoch / steps > (at_.step - 1) * kMessagesPerEpoch / steps)
      tell_loss(task);
    if (auto saved = save_at_times(); !saved) return saved;
  }
  return at_.step < steps ? save() : finish_epoch(task);
}

void Elastifying::tell_loss(core::ProgressTask& task) const {
  const auto& stage = stages_[at_.stage];
  const auto steps = static_cast<double>(steps_per_epoch());
  task.message(fmt::format("{} {}/{}: {:.0f} %, loss {:.4f}, {} since the start", stage.name,
                           at_.epoch + 1, stage.epochs, 100 * static_cast<double>(at_.step) / steps,
                           at_.loss_sum / static_cast<double>(at_.step), minutes(elapsed_s())));
}

Status Elastifying::finish_epoch(core::ProgressTask& task) {
  const auto& stage = stages_[at_.stage];
  if (at_.stage == 1 && !is_paper()) {
    if (auto renewed = renew_statistics(); !renewed) return renewed;
  }
  auto random = random_.split("progress");
  const auto samples =
      accuracies(images_.validation,
                 some_of(images_.validation.size(), kProgressImages, random.split("images")),
                 sampler_.draw_spread(kProgressSubnets, random));
  if (!samples) return tl::unexpected(samples.error());
  at_.epochs.push_back({.stage = std::string(stage.name),
                        .epoch = at_.epoch + 1,
                        .loss = at_.loss_sum / static_cast<double>(at_.step),
                        .validation = accuracy_by_share(*samples)});
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
  const auto size = static_cast<std::size_t>(options_.batch);
  const auto subnets = sampler_.draw_spread(kStatisticsSubnets, random);
  net_->renew_statistics();
  for (const auto& subnet : subnets) {
    const auto drawn = random.sample(chosen_.size(), size);
    std::vector<std::size_t> indices;
    for (const auto i : drawn) indices.push_back(chosen_[i]);
    const auto images = batch(indices);
    if (!images) return tl::unexpected(images.error());
    if (auto added = net_->add_statistics(*images, subnet); !added) return added;
  }
  return {};
}

Status Elastifying::run_stage() {
  const auto& stage = stages_[at_.stage];
  if (at_.epoch >= stage.epochs) return {};
  const auto size = static_cast<std::size_t>(options_.batch);
  const std::size_t per_epoch = steps_per_epoch() * size;
  core::ProgressTask task(context_.progress,
                          {.name = std::string(stage.name),
                           .total = static_cast<std::size_t>(stage.epochs) * per_epoch,
                           .unit = "images"});
  task.advance(static_cast<std::size_t>(at_.epoch) * per_epoch + at_.step * size);
  while (at_.epoch < stage.epochs && !is_stopped()) {
    if (auto done = run_epoch(task); !done) return done;
  }
  return {};
}

// ---- checkpoints

Status Elastifying::save() {
  saved_ = context_.clock.now();
  if (options_.checkpoint.empty()) return {};
  at_.elapsed_s = elapsed_s();
  at_.weights = net_->state();
  auto written = write_checkpoint(at_, options_.checkpoint);
  at_.weights.clear();
  return written;
}

Status Elastifying::save_at_times() {
  return context_.clock.now() - saved_ < kCheckpointEvery ? Status{} : save();
}

Status Elastifying::resume() {
  std::error_code ignored;
  if (!options_.resume || !std::filesystem::exists(options_.checkpoint, ignored)) return {};
  auto checkpoint = read_checkpoint(options_.checkpoint);
  if (!checkpoint) return tl::unexpected(std::move(checkpoint.error()));
  const auto file = options_.checkpoint.string();
  if (checkpoint->subject != at_.subject)
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: is of other work ({}); without --resume it begins anew", file,
                            checkpoint->subject));
  if (auto restored = net_->restore(checkpoint->weights); !restored)
    return core::within(file, restored.error());
  at_ = *std::move(checkpoint);
  at_.weights.clear();
  before_s_ = at_.elapsed_s;
  return {};
}

// ---- results

Result<std::vector<AccuracySample>> Elastifying::accuracies(
    const data::Dataset& dataset, std::vector<std::size_t> indices,
    const std::vector<SubnetPath>& subnets) const {
  std::vector<std::size_t> correct(subnets.size());
  std::size_t labels = 0;
  for (std::size_t first = 0; first < indices.size(); first += kEvaluationBatch) {
    const auto part =
        std::span(indices).subspan(first, std::min(kEvaluationBatch, indices.size() - first));
    const auto images = data::make_batch(dataset, part, images_.preprocessing);
    if (!images) return tl::unexpected(images.error());
    const auto found = net_->count_correct(*images, subnets);
    if (!found) return tl::unexpected(found.error());
    for (std::size_t i = 0; i < correct.size(); ++i) correct[i] += (*found)[i];
    labels += images->labels.size();
  }
  std::vector<AccuracySample> samples;
  for (std::size_t i = 0; i < subnets.size(); ++i) {
    samples.push_back({.subnet = text_of(subnets[i]),
                       .accuracy = static_cast<double>(correct[i]) / static_cast<double>(labels),
                       .mac_share = sampler_.share(subnets[i])});
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
  const auto& test = images_.test;
  const auto original =
      accuracies(test, some_of(test.size(), test.size(), random_), {sampler_.original()});
  if (!original) return tl::unexpected(original.error());
  result.original_accuracy = original->front().accuracy;
  task.advance();
  auto random = random_.split("samples");
  const auto images = some_of(test.size(), kSampleImages, random.split("images"));
  auto subnets = sampler_.draw_spread(kSampleSubnets, random);
  subnets.push_back(sampler_.original());
  auto samples = accuracies(test, images, subnets);
  if (!samples) return tl::unexpected(std::move(samples.error()));
  result.samples = *std::move(samples);
  result.sample_images = images.size();
  result.by_share = accuracy_by_share(result.samples);
  return {};
}

Result<Elastified> Elastifying::run() {
  for (; at_.stage < stages_.size() && !is_stopped(); ++at_.stage, at_.epoch = 0) {
    if (auto done = run_stage(); !done) return tl::unexpected(std::move(done.error()));
    if (is_stopped()) break;
  }
  Elastified result{.epochs = at_.epochs, .is_interrupted = is_stopped()};
  if (result.is_interrupted) {
    if (at_.stage == 1 && at_.step > 0 && !is_paper()) {
      if (auto renewed = renew_statistics(); !renewed) return tl::unexpected(renewed.error());
    }
  } else if (auto looked = look_at_result(result); !looked) {
    return tl::unexpected(std::move(looked.error()));
  }
  result.supernet = net_->supernet();
  result.elapsed_s = elapsed_s();
  return result;
}

}  // namespace

std::vector<RangeAccuracy> accuracy_by_share(const std::vector<AccuracySample>& samples) {
  constexpr int kRanges = 10;
  std::vector<RangeAccuracy> ranges;
  for (int i = 0; i < kRanges; ++i) {
    RangeAccuracy range{.low = i / 10.0, .high = (i + 1) / 10.0};
    double sum = 0;
    for (const auto& sample : samples) {
      const bool last = i + 1 == kRanges;  // which also has the original, and what is dearer
      if (sample.mac_share < range.low || (sample.mac_share >= range.high && !last)) continue;
      sum += sample.accuracy;
      ++range.subnets;
    }
    if (range.subnets == 0) continue;
    range.mean = sum / static_cast<double>(range.subnets);
    ranges.push_back(range);
  }
  return ranges;
}

Result<Elastified> elastify(const elastic::Supernet& supernet, const ElastifyImages& images,
                            const ElastifyOptions& options, const TrainingContext& context) {
  if (auto fits = check_images(supernet, images, options); !fits)
    return tl::unexpected(std::move(fits.error()));
  auto sampler = SubnetSampler::create(supernet);
  if (!sampler) return tl::unexpected(std::move(sampler.error()));
  auto net = TorchSupernet::create(supernet, options.cuda ? Processor::cuda : Processor::cpu,
                                   context.pool);
  if (!net) return tl::unexpected(std::move(net.error()));
  Elastifying work(supernet, images, options, context, *std::move(sampler), *std::move(net));
  if (auto resumed = work.resume(); !resumed) return tl::unexpected(std::move(resumed.error()));
  return work.run();
}

}  // namespace fleetfit::train
