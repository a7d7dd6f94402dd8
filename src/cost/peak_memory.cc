#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <unordered_map>

#include "fleetfit/cost/cost.h"
#include "fleetfit/graph/operator_facts.h"

namespace fleetfit::cost {
namespace {

using namespace graph;  // the operators

// Beyond these the search settles for the best order that it has.
constexpr std::size_t kMostStates = 50'000;
constexpr std::size_t kMostStepsCompared = 20'000;

bool is_view(const Node& node) { return only_reshapes(node.op); }

/// A set of steps.
class StepSet {
 public:
  explicit StepSet(std::size_t size) : words_((size + 63) / 64) {}

  bool has(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void add(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void add(const StepSet& other) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  std::size_t count() const {
    std::size_t sum = 0;
    for (const auto word : words_) sum += static_cast<std::size_t>(__builtin_popcountll(word));
    return sum;
  }
  bool operator==(const StepSet&) const = default;

  struct Hash {
    std::size_t operator()(const StepSet& set) const {
      std::size_t hash = 0;
      for (const auto word : set.words_) hash = (hash ^ word) * 0x9e3779b97f4a7c15u + (hash >> 29);
      return hash;
    }
  };

 private:
  std::vector<std::uint64_t> words_;
};

/// A piece of memory: a tensor and all that are views of it.
struct Block {
  std::int64_t bytes = 0;
  int maker = -1;            ///< step, -1: an input of the network
  std::vector<int> readers;  ///< steps, each once
  bool is_kept = false;      ///< an output of the network
};

/// A node that computes something, views left out.
struct Step {
  int node = 0;
  std::vector<int> reads;
  std::vector<int> makes;
};

/// The graph as far as memory is concerned.
struct Schedule {
  std::vector<Block> blocks;
  std::vector<Step> steps;
};

Schedule schedule_of(const Graph& graph) {
  Schedule schedule;
  const auto is_static = static_tensors(graph);
  std::vector<int> block_of(graph.tensors.size(), -1);
  const auto place = [&](TensorId id, int maker) {
    const auto& tensor = graph.tensor(id);
    const auto bytes =
        tensor.shape ? elements(*tensor.shape) * static_cast<std::int64_t>(size_of(tensor.dtype))
                     : 0;
    block_of[static_cast<std::size_t>(id)] = static_cast<int>(schedule.blocks.size());
    schedule.blocks.push_back({.bytes = bytes, .maker = maker});
    return block_of[static_cast<std::size_t>(id)];
  };
  for (const auto id : graph.inputs) place(id, -1);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    const auto moves = [&](TensorId id) {
      return id != kNoTensor && !is_static[static_cast<std::size_t>(id)];
    };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), moves)) continue;
    const int source = node.inputs.empty() || !moves(node.inputs[0])
                           ? -1
                           : block_of[static_cast<std::size_t>(node.inputs[0])];
    if (is_view(node) && source >= 0) {
      block_of[static_cast<std::size_t>(node.outputs[0])] = source;
      continue;
    }
    Step step{.node = static_cast<int>(n)};
    const int index = static_cast<int>(schedule.steps.size());
    for (const auto id : node.inputs) {
      if (!moves(id)) continue;
      const int block = block_of[static_cast<std::size_t>(id)];
      if (block < 0 || std::find(step.reads.begin(), step.reads.end(), block) != step.reads.end())
        continue;
      step.reads.push_back(block);
      schedule.blocks[static_cast<std::size_t>(block)].readers.push_back(index);
    }
    for (const auto id : node.outputs) {
      if (moves(id)) step.makes.push_back(place(id, index));
    }
    schedule.steps.push_back(std::move(step));
  }
  for (const auto id : graph.outputs) {
    if (const int block = block_of[static_cast<std::size_t>(id)]; block >= 0)
      schedule.blocks[static_cast<std::size_t>(block)].is_kept = true;
  }
  return schedule;
}

/// Executes steps one by one and reports the memory.
class Machine {
 public:
  explicit Machine(const Schedule& schedule) : schedule_(&schedule) {
    for (const auto& block : schedule.blocks) {
      left_.push_back(static_cast<int>(block.readers.size()));
      if (block.maker < 0) live_ += block.bytes;
    }
  }

  /// Memory while a step runs.
  std::int64_t during(const Step& step) const {
    auto bytes = live_;
    for (const int block : step.makes) bytes += at(block).bytes;
    return bytes;
  }

  /// Memory after it.
  std::int64_t after(const Step& step) const {
    auto bytes = during(step);
    for (const int block : step.reads) {
      if (left_[static_cast<std::size_t>(block)] == 1 && !at(block).is_kept)
        bytes -= at(block).bytes;
    }
    for (const int block : step.makes) {
      if (left_[static_cast<std::size_t>(block)] == 0 && !at(block).is_kept)
        bytes -= at(block).bytes;
    }
    return bytes;
  }

  std::int64_t run(const Step& step) {
    const auto peak = during(step);
    live_ = after(step);
    for (const int block : step.reads) --left_[static_cast<std::size_t>(block)];
    return peak;
  }

 private:
  const Block& at(int block) const { return schedule_->blocks[static_cast<std::size_t>(block)]; }

  const Schedule* schedule_;
  std::int64_t live_ = 0;
  std::vector<int> left_;
};

/// Steps between two points that every order passes: they may be executed in several orders.
struct Stretch {
  std::vector<int> steps;
};

/// Cuts the schedule wherever a step is comparable to all others, i.e. comes before or after each
/// of them in every order.
std::vector<Stretch> stretches_of(const Schedule& schedule) {
  const auto count = schedule.steps.size();
  if (count > kMostStepsCompared) {
    Stretch all;
    for (std::size_t s = 0; s < count; ++s) all.steps.push_back(static_cast<int>(s));
    return {all};
  }
  std::vector<StepSet> before(count, StepSet(count));
  std::vector<std::size_t> after(count, 0);
  for (std::size_t s = 0; s < count; ++s) {
    for (const int block : schedule.steps[s].reads) {
      const int maker = schedule.blocks[static_cast<std::size_t>(block)].maker;
      if (maker < 0) continue;
      before[s].add(before[static_cast<std::size_t>(maker)]);
      before[s].add(static_cast<std::size_t>(maker));
    }
  }
  for (std::size_t s = 0; s < count; ++s) {
    for (std::size_t other = 0; other < s; ++other) after[other] += before[s].has(other) ? 1 : 0;
  }
  std::vector<Stretch> stretches(1);
  for (std::size_t s = 0; s < count; ++s) {
    const bool is_cut = before[s].count() + after[s] == count - 1;
    if (is_cut && !stretches.back().steps.empty()) stretches.emplace_back();
    stretches.back().steps.push_back(static_cast<int>(s));
    if (is_cut) stretches.emplace_back();
  }
  if (stretches.back().steps.empty()) stretches.pop_back();
  return stretches;
}

struct Order {
  std::vector<int> steps;
  std::int64_t peak = std::numeric_limits<std::int64_t>::max();
  bool is_least = true;
};

/// Finds orders of one stretch, given the memory at its beginning.
class StretchSearch {
 public:
  StretchSearch(const Schedule& schedule, const Stretch& stretch, const Machine& start)
      : schedule_(schedule), stretch_(stretch), start_(start), needs_(stretch.steps.size()) {
    std::unordered_map<int, int> position;
    for (std::size_t i = 0; i < stretch.steps.size(); ++i)
      position[stretch.steps[i]] = static_cast<int>(i);
    for (std::size_t i = 0; i < stretch.steps.size(); ++i) {
      for (const int block : step(i).reads) {
        const auto found = position.find(schedule.blocks[static_cast<std::size_t>(block)].maker);
        if (found != position.end()) needs_[i].push_back(static_cast<std::size_t>(found->second));
      }
    }
  }

  Order as_in_file() const {
    Order order{.steps = stretch_.steps, .peak = 0};
    auto machine = start_;
    for (std::size_t i = 0; i < stretch_.steps.size(); ++i)
      order.peak = std::max(order.peak, machine.run(step(i)));
    return order;
  }

  /// Always the step that leaves the least memory.
  Order greedy() const {
    Order order{.peak = 0};
    auto machine = start_;
    StepSet done(needs_.size());
    for (std::size_t n = 0; n < needs_.size(); ++n) {
      std::size_t best = needs_.size();
      for (std::size_t i = 0; i < needs_.size(); ++i) {
        if (!is_ready(done, i)) continue;
        if (best == needs_.size() || machine.after(step(i)) < machine.after(step(best))) best = i;
      }
      order.peak = std::max(order.peak, machine.run(step(best)));
      order.steps.push_back(stretch_.steps[best]);
      done.add(best);
    }
    return order;
  }

  /// Best first over the sets of executed steps: the least peak, unless there are too many sets.
  /// Anything at or below `enough` will do, as other parts of the network need that much anyway.
  Order exact(Order best, std::int64_t enough) const {
    struct State {
      std::int64_t peak;
      std::size_t done_count;
      std::size_t entry;
      bool operator<(const State& other) const {
        return peak != other.peak ? peak > other.peak : done_count < other.done_count;
      }
    };
    struct Entry {
      StepSet done;
      std::size_t parent;
      std::size_t step;
    };
    std::vector<Entry> entries{{StepSet(needs_.size()), 0, 0}};
    const auto path_to = [&](std::size_t entry) {
      std::vector<std::size_t> path;
      for (auto e = entry; e != 0; e = entries[e].parent) path.push_back(entries[e].step);
      std::reverse(path.begin(), path.end());
      return path;
    };
    std::unordered_map<StepSet, std::int64_t, StepSet::Hash> seen;
    std::priority_queue<State> open;
    open.push({0, 0, 0});
    while (!open.empty()) {
      const auto state = open.top();
      open.pop();
      if (state.done_count == needs_.size()) {
        Order order{.steps = {}, .peak = state.peak};
        for (const auto i : path_to(state.entry)) order.steps.push_back(stretch_.steps[i]);
        return order;
      }
      if (entries.size() > kMostStates) {
        best.is_least = false;
        return best;
      }
      auto machine = start_;
      for (const auto i : path_to(state.entry)) machine.run(step(i));
      for (std::size_t i = 0; i < needs_.size(); ++i) {
        if (!is_ready(entries[state.entry].done, i)) continue;
        const auto peak = std::max({state.peak, machine.during(step(i)), enough});
        if (peak >= best.peak) continue;
        Entry next = entries[state.entry];
        next.done.add(i);
        const auto [found, fresh] = seen.try_emplace(next.done, peak);
        if (!fresh && found->second <= peak) continue;
        found->second = peak;
        next.parent = state.entry;
        next.step = i;
        entries.push_back(std::move(next));
        open.push({peak, state.done_count + 1, entries.size() - 1});
      }
    }
    return best;
  }

 private:
  const Step& step(std::size_t i) const {
    return schedule_.steps[static_cast<std::size_t>(stretch_.steps[i])];
  }

  bool is_ready(const StepSet& done, std::size_t i) const {
    return !done.has(i) && std::all_of(needs_[i].begin(), needs_[i].end(),
                                       [&](std::size_t n) { return done.has(n); });
  }

  const Schedule& schedule_;
  const Stretch& stretch_;
  const Machine& start_;
  std::vector<std::vector<std::size_t>> needs_;
};

}  // namespace

PeakMemory peak_activation_memory(const Graph& graph) {
  const auto schedule = schedule_of(graph);
  const auto stretches = stretches_of(schedule);

  // First the parts without a choice: no order of the others can bring the whole below them.
  std::vector<Order> orders;
  std::vector<Machine> starts;
  Machine machine(schedule);
  std::int64_t unavoidable = 0;
  for (const auto& stretch : stretches) {
    starts.push_back(machine);
    orders.push_back(StretchSearch(schedule, stretch, machine).as_in_file());
    if (stretch.steps.size() == 1) unavoidable = std::max(unavoidable, orders.back().peak);
    for (const int s : stretch.steps) machine.run(schedule.steps[static_cast<std::size_t>(s)]);
  }

  PeakMemory result;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const StretchSearch search(schedule, stretches[i], starts[i]);
    if (stretches[i].steps.size() > 1 && orders[i].peak > unavoidable &&
        schedule.steps.size() <= kMostStepsCompared) {
      auto greedy = search.greedy();
      if (greedy.peak < orders[i].peak) orders[i] = std::move(greedy);
      if (orders[i].peak > unavoidable) orders[i] = search.exact(orders[i], unavoidable);
    }
    result.bytes = std::max(result.bytes, orders[i].peak);
  }
  for (const auto& order : orders) {
    for (const int s : order.steps)
      result.order.push_back(schedule.steps[static_cast<std::size_t>(s)].node);
    result.is_least = result.is_least && (order.is_least || order.peak < result.bytes);
  }
  // A network without activations still holds its inputs.
  for (const auto& block : schedule.blocks) {
    if (schedule.steps.empty() && block.maker < 0) result.bytes += block.bytes;
  }
  return result;
}

}  // namespace fleetfit::cost
