#include "fleetfit/train/learned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/sha256.h"
#include "fleetfit/learned/lessons.h"
#include "train/checkpoint.h"
#include "train/tiny_is_zero.h"
#include "train/torch/fits.h"
#include "train/torch/learned.h"

namespace fleetfit::train {
namespace {

using learned::DesignNetwork;
using learned::DeviceVector;
using learned::Model;
using learned::OptimizerNetwork;
using learned::Samples;
using predict::DenseLayer;

constexpr std::uint64_t kUnits = 100;  // of progress for each network

std::string_view bytes_of(const auto& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(*numbers.data())};
}

/// The same for the same training, and for no other.
std::string identity_of(const Samples& samples, const LearnOptions& options) {
  std::string all =
      fmt::format("{} {} {} {} {} {} {} {}", samples.space->name(), samples.space->version(),
                  to_string(options.method), options.members, options.accuracy_members,
                  options.optimizers, options.effort, options.seed);
  all += bytes_of(samples.designs.batch().choices());
  all += bytes_of(samples.accuracy);
  all += bytes_of(samples.features.values);
  for (const auto& name : samples.features.names) all += name;
  for (const auto& cost : samples.costs) all += bytes_of(cost.values);
  return core::sha256_hex(all);
}

std::size_t steps_of(std::size_t steps, const LearnOptions& options) {
  return static_cast<std::size_t>(
      std::max(std::lround(static_cast<double>(steps) * options.effort), 20L));
}

std::vector<DenseLayer> layers_of(const DesignNetwork::Parts& parts) {
  auto layers = parts.layers;
  layers.push_back(parts.skip);
  return layers;
}

DesignNetwork::Parts design_parts(std::vector<DenseLayer> layers) {
  DesignNetwork::Parts parts{.layers = {}, .skip = std::move(layers.back())};
  layers.pop_back();
  parts.layers = std::move(layers);
  return parts;
}

std::vector<DenseLayer> layers_of(const OptimizerNetwork::Parts& parts) {
  auto layers = parts.context;
  layers.push_back(parts.hidden);
  for (const auto& gene : parts.genes) {
    layers.push_back(gene.place);
    layers.push_back(gene.choices);
    layers.push_back(gene.out);
  }
  return layers;
}

OptimizerNetwork::Parts optimizer_parts(std::vector<DenseLayer> layers, std::size_t genes) {
  OptimizerNetwork::Parts parts;
  const std::size_t context = layers.size() - 3 * genes - 1;
  const auto first = layers.begin();
  parts.context.assign(first, first + static_cast<std::ptrdiff_t>(context));
  parts.hidden = layers[context];
  for (std::size_t i = context + 1; i < layers.size(); i += 3)
    parts.genes.push_back({.place = layers[i], .choices = layers[i + 1], .out = layers[i + 2]});
  return parts;
}

/// One training of everything.
class Learning {
 public:
  Learning(const Samples& samples, const LearnOptions& options, const TrainingContext& context)
      : samples_(samples),
        options_(options),
        context_(context),
        random_(core::Random(options.seed).split("learned")),
        finished_(options.checkpoint, identity_of(samples, options)),
        columns_(*samples.space) {}

  Result<Model> run();

 private:
  using Fit = std::function<Result<std::vector<DenseLayer>>(const FitProgress& progress)>;
  struct Job {
    std::string name;
    Fit fit;
  };

  std::size_t networks() const {
    const std::size_t optimizers = options_.method == LearnMethod::none ? 0 : options_.optimizers;
    return samples_.costs.size() * options_.members + options_.accuracy_members + optimizers;
  }

  Status prepare();
  void encode_designs();
  Result<std::vector<std::vector<DenseLayer>>> run_jobs(std::vector<Job> jobs);
  Result<std::vector<DenseLayer>> run_job(const Job& job);
  Job cost_job(std::size_t cost, std::size_t member) const;
  Job accuracy_job(std::size_t member) const;
  std::vector<std::size_t> devices_of_member(std::size_t member) const;
  Status train_performance(Model::Parts& parts);
  Result<std::vector<OptimizerNetwork>> train_optimizers(const Model& model);
  Job optimizer_job(const Model& model, const std::vector<learned::Task>& tasks,
                    std::size_t number) const;

  const Samples& samples_;
  const LearnOptions& options_;
  const TrainingContext& context_;
  core::Random random_;
  FinishedNetworks finished_;
  learned::DesignColumns columns_;
  core::ProgressTask* progress_ = nullptr;
  std::vector<std::size_t> folds_;
  double ridge_ = 0;
  std::optional<learned::DeviceInputs> inputs_;
  std::vector<DeviceVector> devices_;
  std::vector<learned::CostTargets> costs_;
  learned::AccuracyTargets accuracy_;
  std::vector<float> encoded_;  // a row of columns for each design
};

Status Learning::prepare() {
  const std::size_t folds = std::clamp<std::size_t>(options_.members, 2, samples_.devices.size());
  folds_ = learned::device_folds(samples_, folds);
  FLEETFIT_ASSIGN(ridge_, learned::choose_ridge(samples_, folds_));
  FLEETFIT_ASSIGN(inputs_, learned::fit_device_inputs(samples_.features, ridge_));
  FLEETFIT_ASSIGN(devices_, learned::read_devices(*inputs_, samples_));
  for (std::size_t cost = 0; cost < samples_.costs.size(); ++cost)
    costs_.push_back(learned::cost_targets(samples_, cost, devices_));
  accuracy_ = learned::accuracy_targets(samples_);
  encode_designs();
  return {};
}

void Learning::encode_designs() {
  const std::size_t width = columns_.count();
  encoded_.assign(samples_.designs.size() * width, 0.0F);
  std::vector<std::uint32_t> room(columns_.most_taken());
  for (std::size_t i = 0; i < samples_.designs.size(); ++i) {
    const std::size_t count = columns_.taken(samples_.designs[i], room);
    for (const auto column : std::span(room).first(count)) encoded_[i * width + column] = 1;
  }
}

Result<std::vector<DenseLayer>> Learning::run_job(const Job& job) {
  if (auto found = finished_.find(job.name)) {
    progress_->advance(kUnits);
    return *std::move(found);
  }
  std::uint64_t reported = 0;
  const auto progress = [&](double share) {
    const auto now = static_cast<std::uint64_t>(share * static_cast<double>(kUnits));
    progress_->advance(now - reported);
    reported = now;
    return !context_.stop.stop_requested();
  };
  const TinyIsZero while_training;
  auto layers = job.fit(progress);
  if (!layers) return layers;
  FLEETFIT_TRY(finished_.keep(job.name, *layers));
  return layers;
}

Result<std::vector<std::vector<DenseLayer>>> Learning::run_jobs(std::vector<Job> jobs) {
  std::vector<Result<std::vector<DenseLayer>>> done(
      jobs.size(), fail(ErrorCode::cancelled, "training was interrupted"));
  context_.pool.parallel_chunks(jobs.size(), 1, [&](std::size_t i, std::size_t) {
    if (!context_.stop.stop_requested()) done[i] = run_job(jobs[i]);
  });
  std::vector<std::vector<DenseLayer>> networks;
  for (auto& one : done) {
    FLEETFIT_TRY(one);
    networks.push_back(*std::move(one));
  }
  return networks;
}

/// All but those of its fold, if that leaves enough.
std::vector<std::size_t> Learning::devices_of_member(std::size_t member) const {
  std::vector<std::size_t> devices;
  for (std::size_t d = 0; d < devices_.size(); ++d)
    if (folds_[d] != member) devices.push_back(d);
  return devices;
}

Learning::Job Learning::cost_job(std::size_t cost, std::size_t member) const {
  const auto fit = [this, cost,
                    member](const FitProgress& progress) -> Result<std::vector<DenseLayer>> {
    DesignFitData data{
        .columns = columns_.count(), .designs = encoded_, .outputs = inputs_->size() + 1};
    const std::size_t designs = samples_.designs.size();
    double squares = 0;
    const auto devices = devices_of_member(member);
    for (const auto d : devices) {
      data.devices.push_back(1);
      for (const float input : devices_[d].inputs) {
        data.devices.push_back(input);
        squares += static_cast<double>(input) * input;
      }
      const auto first = costs_[cost].numbers.begin() + static_cast<std::ptrdiff_t>(d * designs);
      data.numbers.insert(data.numbers.end(), first, first + static_cast<std::ptrdiff_t>(designs));
    }
    const auto count = static_cast<double>(devices.size());
    data.ridge = ridge_ * squares / count / count;
    FLEETFIT_ASSIGN(
        const auto parts,
        fit_design_network(data, {.steps = steps_of(2500, options_), .compute = options_.compute},
                           random_.split("cost").split(cost).split(member), progress));
    return layers_of(parts);
  };
  return {.name = fmt::format("{} {}", samples_.costs[cost].name, member), .fit = fit};
}

Learning::Job Learning::accuracy_job(std::size_t member) const {
  const auto fit = [this, member](const FitProgress& progress) -> Result<std::vector<DenseLayer>> {
    const DesignFitData data{.columns = columns_.count(),
                             .designs = encoded_,
                             .outputs = 1,
                             .devices = {1.0F},
                             .numbers = accuracy_.numbers};
    FLEETFIT_ASSIGN(
        const auto parts,
        fit_design_network(
            data,
            {.widths = {96, 48}, .steps = steps_of(4000, options_), .compute = options_.compute},
            random_.split("accuracy").split(member), progress));
    return layers_of(parts);
  };
  return {.name = fmt::format("accuracy {}", member), .fit = fit};
}

Status Learning::train_performance(Model::Parts& parts) {
  std::vector<Job> jobs;
  for (std::size_t cost = 0; cost < samples_.costs.size(); ++cost)
    for (std::size_t member = 0; member < options_.members; ++member)
      jobs.push_back(cost_job(cost, member));
  for (std::size_t member = 0; member < options_.accuracy_members; ++member)
    jobs.push_back(accuracy_job(member));
  FLEETFIT_ASSIGN(auto networks, run_jobs(std::move(jobs)));
  auto next = networks.begin();
  const auto take = [&] {
    return DesignNetwork::make(design_parts(*std::move(next++)), columns_.count());
  };
  for (std::size_t cost = 0; cost < samples_.costs.size(); ++cost) {
    parts.costs.push_back({.name = samples_.costs[cost].name,
                           .offset = costs_[cost].offset,
                           .scale = costs_[cost].scale});
    for (std::size_t member = 0; member < options_.members; ++member) {
      FLEETFIT_ASSIGN(auto network, take());
      parts.costs.back().members.push_back({.network = std::move(network)});
    }
  }
  parts.accuracy = {
      .centre = accuracy_.centre, .scale = accuracy_.scale, .spread90 = accuracy_.spread90};
  for (std::size_t member = 0; member < options_.accuracy_members; ++member) {
    FLEETFIT_ASSIGN(auto network, take());
    parts.accuracy.members.push_back(std::move(network));
  }
  return {};
}

Learning::Job Learning::optimizer_job(const Model& model, const std::vector<learned::Task>& tasks,
                                      std::size_t number) const {
  const auto random = random_.split("optimizer").split(number);
  const auto to_layers = [](const OptimizerNetwork::Parts& parts) { return layers_of(parts); };
  if (options_.method == LearnMethod::supervised) {
    const auto fit = [this, &model, &tasks, random, to_layers](const FitProgress& progress) {
      OptimizerLessons lessons{.space = &model.space(),
                               .inputs = model.optimizer_inputs(),
                               .best = space::Population(model.space().genes().size())};
      for (const auto& task : tasks) {
        const auto row =
            learned::optimizer_inputs(learned::DeviceJudge(model, task.device), task.goal);
        lessons.rows.insert(lessons.rows.end(), row.begin(), row.end());
        lessons.best.add(task.best);
      }
      return fit_optimizer_to_best(lessons,
                                   {.steps = steps_of(2500, options_), .compute = options_.compute},
                                   random, progress)
          .map(to_layers);
    };
    return {.name = fmt::format("optimizer {}", number), .fit = fit};
  }
  const auto fit = [this, &model, &tasks, random, to_layers](const FitProgress& progress) {
    OptimizerTasks given{.model = &model};
    for (const auto& task : tasks) {
      given.devices.push_back(task.device);
      given.goals.push_back(task.goal);
    }
    return fit_optimizer_through(
               given, {.steps = steps_of(1500, options_), .batch = 64, .compute = options_.compute},
               random, progress)
        .map(to_layers);
  };
  return {.name = fmt::format("optimizer {}", number), .fit = fit};
}

Result<std::vector<OptimizerNetwork>> Learning::train_optimizers(const Model& model) {
  const bool wants_best = options_.method == LearnMethod::supervised;
  const auto tasks =
      learned::make_tasks(model, samples_, devices_,
                          {.devices = steps_of(1500, options_),
                           .pool = std::min<std::size_t>(steps_of(20'000, options_), 40'000),
                           .wants_best = wants_best,
                           .seed = options_.seed},
                          context_.pool);
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < options_.optimizers; ++i)
    jobs.push_back(optimizer_job(model, tasks, i));
  FLEETFIT_ASSIGN(auto networks, run_jobs(std::move(jobs)));
  std::vector<OptimizerNetwork> optimizers;
  for (auto& layers : networks) {
    FLEETFIT_ASSIGN(
        auto network,
        OptimizerNetwork::make(optimizer_parts(std::move(layers), model.space().genes().size()),
                               model.space(), model.optimizer_inputs()));
    optimizers.push_back(std::move(network));
  }
  return optimizers;
}

Result<Model> Learning::run() {
  FLEETFIT_TRY(prepare());
  core::ProgressTask progress(
      context_.progress,
      {.name = "learn to optimize", .total = networks() * kUnits, .unit = "steps"});
  progress_ = &progress;
  Model::Parts parts{.space = samples_.space, .device = *inputs_};
  FLEETFIT_TRY(train_performance(parts));
  learned::fill_in_typical(parts, options_.seed);
  learned::calibrate(parts, samples_, folds_, ridge_, context_.pool);
  parts.lineage = {
      .method = options_.method == LearnMethod::none ? "" : std::string(to_string(options_.method)),
      .devices = samples_.devices,
      .designs = samples_.designs.size(),
      .seed = options_.seed};
  auto model = Model::make(std::move(parts));
  if (!model || options_.method == LearnMethod::none) {
    finished_.remove();
    return model;
  }
  FLEETFIT_ASSIGN(auto optimizers, train_optimizers(*model));
  auto whole = model->parts();
  whole.optimizers = std::move(optimizers);
  finished_.remove();
  return Model::make(std::move(whole));
}

}  // namespace

core::Names names_of(LearnMethod) {
  static constexpr core::Name kAll[] = {{LearnMethod::supervised, "supervised"},
                                        {LearnMethod::unsupervised, "unsupervised"},
                                        {LearnMethod::none, "none"}};
  return {.what = "method", .all = kAll};
}

Result<Model> train_learned(const Samples& samples, const LearnOptions& options,
                            const TrainingContext& context) {
  FLEETFIT_TRY(learned::check(samples));
  use_one_thread_per_fit();
  return Learning(samples, options, context).run();
}

}  // namespace fleetfit::train
