#include "fleetfit/adapt/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "adapt/batch_walk.h"
#include "adapt/search/scores.h"
#include "fleetfit/core/report_fields.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::adapt {
namespace {

class DatasetBatches final : public ImageBatches {
 public:
  explicit DatasetBatches(ImageChoice choice) : choice_(std::move(choice)) {}

  std::size_t images() const override { return choice_.indices.size(); }
  std::size_t batch_size() const override { return choice_.batch_size; }

  Result<data::Batch> batch(std::size_t index) const override {
    const std::size_t first = index * choice_.batch_size;
    const std::size_t count = std::min(choice_.batch_size, images() - first);
    return data::make_batch(*choice_.dataset, std::span(choice_.indices).subspan(first, count),
                            choice_.preprocessing);
  }

 private:
  ImageChoice choice_;
};

using elastic::BranchId;

std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::size_t output_bytes(const graph::Graph& graph) {
  const auto& output = graph.tensor(graph.outputs.front());
  if (!output.shape) return 0;
  return static_cast<std::size_t>(graph::elements(*output.shape)) * graph::size_of(output.dtype);
}

Status check_input(const graph::Graph& first, const data::Batch& batch, std::size_t batch_size) {
  if (first.inputs.size() != 1)
    return fail(ErrorCode::invalid_input,
                fmt::format("the model has {} inputs, images are one", first.inputs.size()));
  auto shape = batch.shape;
  shape[0] = static_cast<std::int64_t>(batch_size);
  const auto& input = first.tensor(first.inputs.front());
  if (input.dtype == graph::DType::f32 && input.shape == shape) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("the model takes {} {}, the images are {}", graph::to_string(input.dtype),
                          input.shape ? graph::to_string(*input.shape) : "of an unknown shape",
                          graph::to_string(shape)));
}

/// Classes of each image or, where labels are of pixels, of each of these.
Result<ScoreForm> score_form(const graph::Graph& last, std::size_t batch_size,
                             std::size_t labels_of_image) {
  const auto& output = last.tensor(last.outputs.front());
  const auto count = output.shape ? static_cast<std::size_t>(graph::elements(*output.shape)) : 0;
  if (output.dtype != graph::DType::f32 || count == 0 || count % batch_size != 0)
    return fail(ErrorCode::invalid_input, "the model's first output has no scores for each image");
  const std::size_t of_image = count / batch_size;
  const auto& shape = *output.shape;
  constexpr std::size_t kMapRank = 4;  // batch, classes, height, width
  const auto pixels = shape.size() == kMapRank ? static_cast<std::size_t>(shape[2] * shape[3]) : 1;
  if (pixels != labels_of_image)
    return fail(ErrorCode::invalid_input,
                fmt::format("the model has classes for {} places of an image, the data for {}",
                            pixels, labels_of_image));
  return ScoreForm{.classes = of_image / pixels, .pixels = pixels};
}

std::size_t labels_of_image(const data::Batch& batch) {
  return batch.labels.size() / static_cast<std::size_t>(batch.shape[0]);
}

class TreeEvaluator final : public Evaluator {
 public:
  TreeEvaluator(const EvaluatorParts& parts, const EvaluatorOptions& options)
      : parts_(parts),
        options_(options),
        pool_(std::clamp(options.threads, 1, static_cast<int>(parts.images.batches()))),
        known_(parts.space),
        store_(parts.images.batches()) {
    for (std::size_t w = 0; w < workers(); ++w)
      programs_.emplace_back(parts.models, options.program_bytes / workers());
  }

  Status prepare() {
    const std::size_t size = parts_.images.batch_size();
    FLEETFIT_ASSIGN(const auto first, parts_.images.batch(0));
    for (const auto& model : parts_.models) {
      const auto& blocks = model.blocks;
      if (auto ok = check_input(blocks.front().branches.front().graph, first, size); !ok)
        return core::within("model " + model.name, ok.error());
      const auto form =
          score_form(blocks.back().branches.front().graph, size, labels_of_image(first));
      if (!form) return core::within("model " + model.name, form.error());
      forms_.push_back(*form);
    }
    return options_.labels == Labels::original ? label_by_original() : check_labels();
  }

  Result<std::vector<Evaluation>> evaluate(space::DesignBatch designs) override {
    space::DesignIndex fresh(parts_.space);
    for (std::size_t i = 0; i < designs.size(); ++i)
      if (!known_.find(designs[i])) fresh.add(designs[i]);
    if (fresh.size() > 0) {
      FLEETFIT_TRY(evaluate_fresh(fresh.designs()));
    }
    std::vector<Evaluation> evaluations;
    for (std::size_t i = 0; i < designs.size(); ++i)
      evaluations.push_back(evaluations_[*known_.find(designs[i])]);
    return evaluations;
  }

  std::size_t evaluated() const override { return known_.size(); }

  ReuseReport reuse() const override {
    ReuseReport report{.peak_bytes = store_.peak_bytes()};
    for (const auto& [id, time] : times_) {
      report.spent_s += time.seconds;
      report.runs += time.runs;
      const auto without = runs_without_.find(id);
      if (without == runs_without_.end()) continue;
      report.runs_without += without->second;
      report.without_s +=
          time.seconds / static_cast<double>(time.runs) * static_cast<double>(without->second);
    }
    if (report.without_s > 0) report.saved_fraction = 1 - report.spent_s / report.without_s;
    return report;
  }

  void watch(core::Progress* progress, std::stop_token stop) override {
    progress_ = progress;
    stop_ = std::move(stop);
  }

 private:
  /// The subnets of a round: the ends of their ways in the tree, and the order to walk them in.
  struct Round {
    std::vector<std::size_t> order;                     // of ends
    std::map<std::size_t, std::size_t> subnet_of = {};  // by end
  };

  std::size_t workers() const { return static_cast<std::size_t>(pool_.workers()); }

  Status check_labels() const {
    const auto classes = std::ranges::min(forms_, {}, &ScoreForm::classes).classes;
    for (std::size_t b = 0; b < parts_.images.batches(); ++b) {
      FLEETFIT_ASSIGN(const auto batch, parts_.images.batch(b));
      for (const std::int64_t label : batch.labels) {
        if (label >= 0 && static_cast<std::size_t>(label) < classes) continue;
        return fail(ErrorCode::invalid_input,
                    fmt::format("the model knows {} classes, {} is of class {}", classes,
                                forms_[0].pixels == 1 ? "an image" : "a pixel", label));
      }
    }
    return {};
  }

  Status label_by_original() {
    const auto path = parts_.space.path(parts_.space.original());
    tree_.begin_round();
    const std::size_t end = tree_.add(path, costs_of(path));
    for (std::size_t b = 0; b < parts_.images.batches(); ++b) {
      FLEETFIT_ASSIGN(const auto batch, load(b));
      BatchWalk walk({tree_, store_, programs_.front(), batch.values, b});
      FLEETFIT_ASSIGN(const auto feature, walk.feature(end));
      labels_.push_back(best_classes(floats(feature.bytes), forms_[0], batch.labels.size()));
    }
    return {};
  }

  std::vector<PrefixTree::Cost> costs_of(std::span<const BranchId> path) const {
    std::vector<PrefixTree::Cost> costs;
    for (const auto& [model, block, branch] : path) {
      const auto& graph = parts_.models[model].blocks[block].branches[branch].graph;
      costs.push_back({.ms = parts_.table.ms[model][block][branch], .bytes = output_bytes(graph)});
    }
    return costs;
  }

  /// Filled up to the size of a batch; the labels are those of the images alone.
  Result<data::Batch> load(std::size_t number) const {
    auto batch = parts_.images.batch(number);
    if (!batch) return batch;
    const auto images = static_cast<std::size_t>(batch->shape[0]);
    batch->values.resize(batch->values.size() / images * parts_.images.batch_size());
    if (number < labels_.size()) batch->labels = labels_[number];
    return batch;
  }

  Status evaluate_fresh(space::DesignBatch designs) {
    tree_.begin_round();
    std::vector<std::size_t> ends;
    Round round;
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto path = parts_.space.path(designs[i]);
      ends.push_back(tree_.add(path, costs_of(path)));
      round.subnet_of[ends.back()] = i;
    }
    round.order = tree_.in_order(ends);
    const std::size_t on_the_way = tree_.plan(
        {.bytes = options_.reuse_bytes, .workers = workers(), .batches = parts_.images.batches()});
    store_.follow_plan(tree_, on_the_way);
    FLEETFIT_ASSIGN(const auto sums, run_batches(round));
    for (std::size_t i = 0; i < designs.size(); ++i) {
      known_.add(designs[i]);
      evaluations_.push_back(mean_of(sums, i));
      for (const std::size_t node : tree_.way_to(ends[i]))
        runs_without_[tree_.node(node).branch] += parts_.images.batches();
    }
    return {};
  }

  /// In the order of batches, so that the sum does not depend on who was first.
  Evaluation mean_of(const std::vector<std::vector<ScoreSums>>& sums, std::size_t subnet) const {
    ScoreSums all;
    for (const auto& batch : sums) {
      all.hits += batch[subnet].hits;
      all.confidence += batch[subnet].confidence;
      all.labels += batch[subnet].labels;
    }
    const auto labels = static_cast<double>(all.labels);
    return {.accuracy = all.hits / labels, .confidence = all.confidence / labels};
  }

  /// Sums of each subnet, for each batch.
  Result<std::vector<std::vector<ScoreSums>>> run_batches(const Round& round) {
    const std::size_t batches = parts_.images.batches();
    std::vector<std::vector<ScoreSums>> sums(batches);
    std::vector<RunTimes> times(workers());
    std::vector<Status> failures(workers());
    std::atomic<std::size_t> next = 0;
    std::optional<core::ProgressTask> task;
    if (progress_ != nullptr)
      task.emplace(*progress_, core::ProgressTaskOptions{.name = "evaluate", .total = batches});
    pool_.parallel_for(workers(), [&](std::size_t worker) {
      for (std::size_t b = next++; b < batches && failures[worker]; b = next++) {
        auto of_batch = run_batch(b, programs_[worker], round, times[worker]);
        if (!of_batch) {
          failures[worker] = tl::unexpected(std::move(of_batch.error()));
          next = batches;
        } else {
          sums[b] = *std::move(of_batch);
        }
        if (task) task->advance();
      }
    });
    for (const auto& of_worker : times)
      for (const auto& [id, time] : of_worker) times_[id].add(time);
    for (auto& failure : failures) FLEETFIT_TRY(failure);
    return sums;
  }

  Result<std::vector<ScoreSums>> run_batch(std::size_t number, BranchPrograms& programs,
                                           const Round& round, RunTimes& times) {
    FLEETFIT_ASSIGN(const auto batch, load(number));
    BatchWalk walk({tree_, store_, programs, batch.values, number});
    std::vector<ScoreSums> sums(round.order.size());
    for (const std::size_t end : round.order) {
      if (stop_.stop_requested()) return fail(ErrorCode::cancelled, "the evaluation was stopped");
      FLEETFIT_ASSIGN(const auto scores, walk.feature(end));
      sums[round.subnet_of.at(end)] =
          sum_scores(floats(scores.bytes), batch.labels, forms_[tree_.node(end).branch.model]);
    }
    for (const auto& [id, time] : walk.times()) times[id].add(time);
    return sums;
  }

  const EvaluatorParts parts_;
  EvaluatorOptions options_;
  core::ThreadPool pool_;
  std::vector<BranchPrograms> programs_;           // of each worker
  std::vector<ScoreForm> forms_;                   // of each model
  std::vector<std::vector<std::int64_t>> labels_;  // of each batch, if they are the original's
  space::DesignIndex known_;
  std::vector<Evaluation> evaluations_;  // by number of the design
  PrefixTree tree_;
  FeatureStore store_;
  RunTimes times_;
  std::map<BranchId, std::size_t> runs_without_;
  core::Progress* progress_ = nullptr;
  std::stop_token stop_;
};

}  // namespace

std::unique_ptr<ImageBatches> make_image_batches(ImageChoice choice) {
  return std::make_unique<DatasetBatches>(std::move(choice));
}

FLEETFIT_REPORT(ReuseReport, saved_fraction, peak_bytes, runs, runs_without, spent_s, without_s)

Result<std::unique_ptr<Evaluator>> Evaluator::create(const EvaluatorParts& parts,
                                                     const EvaluatorOptions& options) {
  if (parts.images.images() == 0) return fail(ErrorCode::invalid_input, "there are no images");
  auto evaluator = std::make_unique<TreeEvaluator>(parts, options);
  FLEETFIT_TRY(evaluator->prepare());
  return evaluator;
}

}  // namespace fleetfit::adapt
