#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "fleetfit/core/counting.h"
#include "fleetfit/learned/lessons.h"
#include "fleetfit/space/design_index.h"

namespace fleetfit::learned {
namespace {

using space::Choice;

/// Designs with what the networks say about them whatever the device.
class Pool {
 public:
  explicit Pool(const Model& model) : model_(model), index_(model.space()) {}

  std::size_t size() const { return index_.size(); }
  space::Design design(std::size_t i) const { return index_.designs()[i]; }
  std::span<const float> row(std::size_t i) const {
    return std::span(rows_).subspan(i * model_.row_size(), model_.row_size());
  }

  void add(space::Design design) { index_.add(design); }

  /// After some were added.
  void describe(core::ThreadPool& threads) {
    constexpr std::size_t kChunk = 512;
    const std::size_t size = model_.row_size();
    const std::size_t before = rows_.size() / size;
    rows_.resize(index_.size() * size);
    const auto fresh = index_.designs().batch().part(before, index_.size() - before);
    const auto rows = std::span(rows_).subspan(before * size);
    threads.parallel_chunks(fresh.size(), kChunk, [&](std::size_t begin, std::size_t end) {
      model_.describe(fresh.part(begin, end - begin),
                      rows.subspan(begin * size, (end - begin) * size));
    });
  }

 private:
  const Model& model_;
  space::DesignIndex index_;
  std::vector<float> rows_;
};

void add_all(const space::Space& space, Pool& pool) {
  std::vector<Choice> design(space.genes().size());
  do {
    pool.add(design);
  } while (space.next(design));
}

void add_some(const space::Space& space, const Samples& samples, std::size_t count,
              core::Random random, Pool& pool) {
  const std::size_t step = std::max<std::size_t>(2 * samples.designs.size() / count, 1);
  for (std::size_t i = 0; i < samples.designs.size(); i += step) pool.add(samples.designs[i]);
  std::vector<Choice> design(space.genes().size());
  for (std::size_t tries = 0; tries < 2 * count && pool.size() < count; ++tries) {
    space.sample(random, design);
    pool.add(design);
  }
}

/// Limits and weights for a device whose designs cost between these, in ln.
Goal draw_goal(std::span<const double> low, std::span<const double> high, core::Random& random) {
  constexpr double kWeighted = 0.3;
  Goal goal;
  const std::size_t costs = low.size();
  if (random.chance(kWeighted)) {
    const double common = random.uniform(std::log(1e-2), std::log(30.0));
    for (std::size_t i = 0; i < costs; ++i) {
      const bool counts = i == 0 || random.chance(0.7);
      const double own = i == 0 ? common : common + random.uniform(-2, 2);
      goal.weights.push_back(counts ? std::exp(own) : 0);
    }
    return goal;
  }
  for (std::size_t i = 0; i < costs; ++i) {
    const double reach = high[i] - low[i];
    const double limit = std::exp(random.uniform(low[i] - 0.03 * reach, high[i] + 0.05 * reach));
    goal.limits.push_back(i == 0 || random.chance(0.5) ? limit : INFINITY);
  }
  return goal;
}

/// One device with its goals.
struct Client {
  DeviceVector device;
  std::vector<Goal> goals;
  std::vector<std::size_t> best;  // places in the pool
};

class Judgements {
 public:
  Judgements(const Model& model, const DeviceVector& device, const Pool& pool)
      : judge_(model, device), costs_(model.parts().costs.size()) {
    all_.reserve(pool.size());
    for (std::size_t i = 0; i < pool.size(); ++i) all_.push_back(judge_.judge_row(pool.row(i)));
  }

  std::vector<double> least() const { return extreme(-1); }
  std::vector<double> most() const { return extreme(1); }

  std::size_t best(const Goal& goal) const {
    std::size_t best = 0;
    Fitness least = fitness(judge_, goal, all_[0]);
    for (std::size_t i = 1; i < all_.size(); ++i) {
      const auto one = fitness(judge_, goal, all_[i]);
      if (!(one < least)) continue;
      least = one;
      best = i;
    }
    return best;
  }

 private:
  std::vector<double> extreme(int sign) const {
    std::vector<double> found(costs_, -std::numeric_limits<double>::infinity());
    for (const auto& judged : all_)
      for (std::size_t i = 0; i < costs_; ++i)
        found[i] = std::max(found[i], sign * judge_.safe(judged, i));
    for (double& value : found) value *= sign;
    return found;
  }

  DeviceJudge judge_;
  std::size_t costs_;
  std::vector<Judged> all_;
};

void serve(const Model& model, const Pool& pool, std::span<Client> clients,
           core::ThreadPool& threads) {
  threads.parallel_for(clients.size(), [&](std::size_t i) {
    auto& client = clients[i];
    const Judgements judgements(model, client.device, pool);
    client.best.clear();
    for (const auto& goal : client.goals) client.best.push_back(judgements.best(goal));
  });
}

/// Children of what was best for anybody.
void breed(const space::Space& space, std::span<const Client> clients, core::Random& random,
           Pool& pool) {
  constexpr int kMutants = 4;
  constexpr int kChildren = 3;
  std::set<std::size_t> unique;
  for (const auto& client : clients) unique.insert(client.best.begin(), client.best.end());
  const std::vector<std::size_t> parents(unique.begin(), unique.end());
  const double probability = 1.5 / static_cast<double>(space.genes().size());
  std::vector<Choice> child(space.genes().size());
  std::vector<std::vector<Choice>> children;
  for (const auto parent : parents) {
    const auto design = pool.design(parent);
    for (int i = 0; i < kMutants; ++i) {
      std::ranges::copy(design, child.begin());
      space.mutate(random, probability, child);
      children.push_back(child);
    }
    for (int i = 0; i < kChildren; ++i) {
      const auto other = parents[static_cast<std::size_t>(random.below(parents.size()))];
      space.crossover(random, design, pool.design(other), child);
      children.push_back(child);
    }
  }
  for (const auto& one : children) pool.add(one);
}

std::vector<Client> make_clients(const Model& model, std::span<const DeviceVector> known,
                                 const Pool& yardstick, const TaskOptions& options,
                                 core::ThreadPool& threads) {
  const auto random = core::Random(options.seed).split("clients");
  std::vector<Client> clients(options.devices);
  threads.parallel_for(clients.size(), [&](std::size_t i) {
    auto own = random.split(i);
    auto& client = clients[i];
    client.device = own.chance(options.synthetic_share)
                        ? synthetic_device(model.parts().device, known, own)
                        : known[static_cast<std::size_t>(own.below(known.size()))];
    const Judgements judgements(model, client.device, yardstick);
    const auto low = judgements.least();
    const auto high = judgements.most();
    for (std::size_t g = 0; g < options.goals; ++g)
      client.goals.push_back(draw_goal(low, high, own));
  });
  return clients;
}

bool is_small(const space::Space& space, std::size_t most) {
  const auto size = space.size().exact();
  return size && *size <= most;
}

}  // namespace

DeviceVector synthetic_device(const DeviceInputs& inputs, std::span<const DeviceVector> known,
                              core::Random& random) {
  constexpr double kNoise = 0.15;
  constexpr double kLevelNoise = 0.3;
  constexpr double kBeyond = 0.2;  // how far outside of the known ones a mixture may lie
  const auto pick = [&]() -> const DeviceVector& {
    return known[static_cast<std::size_t>(random.below(known.size()))];
  };
  const auto& a = pick();
  const auto& b = pick();
  const auto& c = pick();
  const double wb = random.uniform(-kBeyond, 1 + kBeyond);
  const double wc = random.chance(0.5) ? random.uniform(0, 0.5) : 0;
  const auto mix = [&](double va, double vb, double vc) {
    return (1 - wc) * ((1 - wb) * va + wb * vb) + wc * vc;
  };
  std::vector<float> mixed;
  for (std::size_t i = 0; i < a.inputs.size(); ++i) {
    mixed.push_back(
        static_cast<float>(mix(a.inputs[i], b.inputs[i], c.inputs[i]) + kNoise * random.normal()));
  }
  return inputs.at(std::move(mixed),
                   mix(a.level, b.level, c.level) + kLevelNoise * random.normal());
}

std::vector<Task> make_tasks(const Model& model, const Samples& samples,
                             std::span<const DeviceVector> known, const TaskOptions& options,
                             core::ThreadPool& threads) {
  constexpr std::size_t kYardstick = 1000;
  const auto& space = model.space();
  auto random = core::Random(options.seed).split("tasks");
  Pool yardstick(model);
  add_some(space, samples, kYardstick, random.split("probe"), yardstick);
  yardstick.describe(threads);
  auto clients = make_clients(model, known, yardstick, options, threads);

  Pool pool(model);
  if (options.wants_best) {
    if (is_small(space, options.small)) {
      add_all(space, pool);
      pool.describe(threads);
    } else {
      add_some(space, samples, options.pool, random.split("pool"), pool);
      pool.describe(threads);
      const auto few = std::span(clients).first(std::min<std::size_t>(clients.size(), 150));
      for (std::size_t round = 0; round < options.rounds; ++round) {
        serve(model, pool, few, threads);
        breed(space, few, random, pool);
        pool.describe(threads);
      }
    }
    serve(model, pool, clients, threads);
  }
  std::vector<Task> tasks;
  for (auto& client : clients) {
    for (std::size_t g = 0; g < client.goals.size(); ++g) {
      Task task{.device = client.device, .goal = std::move(client.goals[g])};
      if (options.wants_best) {
        const auto design = pool.design(client.best[g]);
        task.best.assign(design.begin(), design.end());
      }
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

std::vector<std::size_t> choose_exploration(const Model& model,
                                            std::span<const DeviceVector> devices,
                                            space::DesignBatch candidates, std::size_t count) {
  std::vector<double> scores(candidates.size());
  std::vector<Judged> judged(candidates.size());
  for (const auto& device : devices) {
    const DeviceJudge judge(model, device);
    judge.judge(candidates, judged);
    for (std::size_t i = 0; i < judged.size(); ++i)
      for (std::size_t c = 0; c < model.parts().costs.size(); ++c)
        scores[i] += judged[i].spread[c] / model.parts().costs[c].scale /
                     static_cast<double>(devices.size());
  }
  for (std::size_t i = 0; i < judged.size(); ++i)
    scores[i] += judged[i].accuracy_spread / model.parts().accuracy.spread90;
  auto order = core::counting(candidates.size());
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](auto i) { return scores[i]; });
  const auto is_near = [&](std::size_t a, std::size_t b) {
    std::size_t differ = 0;
    for (std::size_t g = 0; g < candidates.genes(); ++g)
      differ += candidates[a][g] != candidates[b][g] ? 1 : 0;
    return differ < 2;
  };
  std::vector<std::size_t> chosen;
  std::vector<std::size_t> passed_over;
  for (const auto i : order) {
    if (chosen.size() == count) break;
    const bool is_like_another =
        std::ranges::any_of(chosen, [&](std::size_t other) { return is_near(i, other); });
    (is_like_another ? passed_over : chosen).push_back(i);
  }
  for (const auto i : passed_over)
    if (chosen.size() < count) chosen.push_back(i);
  return chosen;
}

}  // namespace fleetfit::learned
