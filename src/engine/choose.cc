#include "engine/choose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "engine/aligned_memory.h"
#include "engine/libraries.h"
#include "engine/own/own.h"
#include "engine/threads.h"
#include "fleetfit/graph/operator_facts.h"

namespace fleetfit::engine {
namespace {

constexpr int kRounds = 8;
// Work that takes long is not timed as often: its shortest time is soon known well enough.
constexpr int kRoundsOfLongWork = 4;
constexpr std::chrono::milliseconds kLongWork{50};

/// How many times slower than the best a candidate is that need not be tried again. At first it may
/// just have been disturbed.
double hopeless_ratio(int round) {
  constexpr std::array kRatios{3.0, 1.6, 1.25};
  return kRatios[std::min<std::size_t>(static_cast<std::size_t>(round), kRatios.size() - 1)];
}

struct Candidate {
  std::string label;
  std::function<KernelPtr()> make;
};

/// Activations with an exponential are slow inside of oneDNN's convolutions; a pass of our own over
/// the result may be faster.
bool has_costly_activation(const Task& task) {
  using Kind = graph::ActivationKind;
  constexpr std::array kCostly{Kind::silu, Kind::sigmoid, Kind::tanh,     Kind::gelu,
                               Kind::mish, Kind::elu,     Kind::gelu_tanh};
  return task.outputs[0].dtype == graph::DType::f32 &&
         std::ranges::find(kCostly, task.node.activation.kind) != kCostly.end();
}

/// Ways to do a task, best guess first.
std::vector<Candidate> candidates(const Task& task, Library library) {
  std::vector<Candidate> list;
  const auto add_onednn = [&] {
    for (const std::string& way : onednn_ways(task)) {
      list.push_back({"onednn" + (way.empty() ? "" : " " + way),
                      [&task, way] { return make_onednn_kernel(task, way); }});
      if (has_costly_activation(task)) {
        list.push_back({"onednn then own" + (way.empty() ? "" : " " + way), [&task, way] {
                          Task linear = task;
                          linear.node.activation = {};
                          return own::activated(make_onednn_kernel(linear, way),
                                                task.node.activation, task.outputs[0]);
                        }});
      }
    }
  };
  const auto add_xnnpack = [&] {
    list.push_back({"xnnpack", [&task] { return make_xnnpack_kernel(task); }});
  };
  if (library == Library::automatic || library == Library::onednn) add_onednn();
  if (library == Library::automatic || library == Library::xnnpack) add_xnnpack();
  if (library != Library::reference) {
    list.push_back({"own", [&task] { return make_own_kernel(task); }});
  }
  return list;
}

/// Runs on one thread, whatever the program has: starting and joining threads takes longer than a
/// small task does.
class OneThreadKernel final : public Kernel {
 public:
  OneThreadKernel(KernelPtr kernel, int threads_after)
      : kernel_(std::move(kernel)), threads_after_(threads_after) {}

  std::string name() const override { return kernel_->name() + ", one thread"; }
  std::size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  std::size_t weight_bytes() const override { return kernel_->weight_bytes(); }
  std::optional<std::size_t> output_shares_input() const override {
    return kernel_->output_shares_input();
  }
  void bind(const Bindings& bindings) override { kernel_->bind(bindings); }
  Status run() override {
    use_threads(1);
    auto status = kernel_->run();
    use_threads(threads_after_);
    return status;
  }

 private:
  KernelPtr kernel_;
  int threads_after_;
};

/// Whether the work is so little that one thread may be the fastest.
bool is_small(const Task& task) {
  constexpr std::int64_t kElements = 1 << 17;
  std::int64_t elements = 0;
  for (const Operand& input : task.inputs) {
    if (input.present) elements += graph::elements(input.shape);
  }
  for (const Operand& output : task.outputs) elements += graph::elements(output.shape);
  return elements < kElements;
}

/// The same candidates on one thread each.
std::vector<Candidate> on_one_thread(const Task& one_thread, int threads_after, Library library) {
  std::vector<Candidate> list = candidates(one_thread, library);
  for (Candidate& candidate : list) {
    candidate.label += " on one thread";
    candidate.make = [make = std::move(candidate.make), threads_after]() -> KernelPtr {
      use_threads(1);
      auto kernel = make();
      use_threads(threads_after);
      if (!kernel) return nullptr;
      return std::make_unique<OneThreadKernel>(std::move(kernel), threads_after);
    };
  }
  return list;
}

/// Memory for one task alone, so that its kernels can be timed.
class TrialRun {
 public:
  explicit TrialRun(const Task& task) {
    for (const Operand& input : task.inputs) {
      const bool bound = input.present && !input.constant;
      inputs_.emplace_back(bound ? storage_bytes(input) : 0);
    }
    for (const Operand& output : task.outputs) outputs_.emplace_back(storage_bytes(output));
  }

  void bind(Kernel& kernel) {
    scratch_ = AlignedMemory(kernel.scratch_bytes());
    Bindings bindings{.scratch = scratch_.data()};
    for (auto& memory : inputs_) bindings.inputs.push_back(memory.data());
    for (auto& memory : outputs_) bindings.outputs.push_back(memory.data());
    if (const auto shared = kernel.output_shares_input()) {
      bindings.outputs[0] = inputs_[*shared].data();
    }
    kernel.bind(bindings);
  }

 private:
  std::vector<AlignedMemory> inputs_;
  std::vector<AlignedMemory> outputs_;
  AlignedMemory scratch_{0};
};

double seconds_of_run(Kernel& kernel) {
  const auto start = std::chrono::steady_clock::now();
  if (!kernel.run()) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string shape_text(const Operand& operand) {
  if (!operand.present) return "-";
  return fmt::format("{}:{}{}{}", graph::to_string(operand.dtype), graph::to_string(operand.shape),
                     operand.format == Format::blocked ? "b" : "", operand.constant ? "c" : "");
}

std::string window_text(const graph::Window& window) {
  const auto join = [](const graph::Ints& values) { return graph::to_string(values); };
  return fmt::format("k{}s{}d{}p{}-{}a{}", join(window.kernel), join(window.strides),
                     join(window.dilations), join(window.pads_begin), join(window.pads_end),
                     static_cast<int>(window.auto_pad));
}

std::string attribute_text(const graph::Operator& op) {
  return std::visit(
      graph::Overloaded{
          [](const graph::Conv& conv) {
            return fmt::format("{}g{}", window_text(conv.window), conv.groups);
          },
          [](const graph::ConvTranspose& conv) {
            return fmt::format("{}g{}", window_text(conv.window), conv.groups);
          },
          [](const graph::Pool& pool) { return window_text(pool.window); },
          [](const graph::Concat& concat) { return fmt::format("axis{}", concat.axis); },
          [](const auto&) { return std::string(); },
      },
      op);
}

/// The value of a field of the first processor in the kernel's list; "" if it has none.
std::string processor_field(std::string_view key) {
  std::ifstream list("/proc/cpuinfo");
  std::string line;
  while (std::getline(list, line) && !line.empty()) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    const auto value = line.find_first_not_of(" \t", colon + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

std::string processor() {
  std::string text = processor_field("model name");
  for (const std::string_view key :
       {"cpu family", "model\t", "stepping", "CPU implementer", "CPU part"}) {
    if (const std::string value = processor_field(key); !value.empty()) text += " " + value;
  }
  return text.empty() ? "unknown CPU" : text;
}

}  // namespace

std::string describe_task(const Task& task) {
  std::string text =
      fmt::format("{} {}", graph::type_name(task.node.op), attribute_text(task.node.op));
  for (const Operand& input : task.inputs) text += " " + shape_text(input);
  text += " >";
  for (const Operand& output : task.outputs) text += " " + shape_text(output);
  if (task.node.activation) text += fmt::format(" {}", graph::type_name(task.node.activation.kind));
  if (task.adds_last_input) text += " +";
  return text + fmt::format(" t{}", task.threads);
}

std::optional<std::string> Chooser::known_answer(const std::string& question) {
  if (const auto known = options_.known.find(question); known != options_.known.end()) {
    used_.insert(*known);
    return known->second;
  }
  const auto found = found_.find(question);
  return found == found_.end() ? std::nullopt : std::optional(found->second);
}

std::string Chooser::fastest(const std::string& question, const std::vector<std::string>& labels,
                             const std::function<double(std::size_t)>& seconds) {
  if (labels.size() < 2 || options_.choosing == Choosing::fixed) return labels.at(0);
  if (const auto known = known_answer(question);
      known && std::ranges::find(labels, *known) != labels.end()) {
    return *known;
  }
  std::vector<double> best(labels.size(), std::numeric_limits<double>::infinity());
  std::vector<std::size_t> running(labels.size());
  std::iota(running.begin(), running.end(), std::size_t{0});
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; round < kRounds && (round == 0 || running.size() > 1); ++round) {
    const bool takes_long = std::chrono::steady_clock::now() - start > kLongWork;
    if (takes_long && round >= kRoundsOfLongWork) break;
    for (const std::size_t i : running) best[i] = std::min(best[i], seconds(i));
    const double limit = std::ranges::min(best) * hopeless_ratio(round);
    std::erase_if(running, [&](std::size_t i) { return best[i] > limit; });
  }
  const auto winner = static_cast<std::size_t>(std::ranges::min_element(best) - best.begin());
  found_[question] = labels[winner];
  return labels[winner];
}

KernelPtr Chooser::kernel_for(const Task& task) {
  const std::string question = describe_task(task);
  const auto known = known_answer(question);
  use_threads(task.threads);
  std::vector<Candidate> all = candidates(task, options_.library);
  Task one_thread = task;
  one_thread.threads = 1;
  if (task.threads > 1 && is_small(task)) {
    std::ranges::move(on_one_thread(one_thread, task.threads, options_.library),
                      std::back_inserter(all));
  }
  std::vector<std::string> labels;
  std::vector<KernelPtr> kernels;
  for (const Candidate& candidate : all) {
    const bool declined = kernels.empty();
    if (candidate.label == "own" && !declined && graph::is_layer(task.node.op)) continue;
    auto kernel = candidate.make();
    if (!kernel) continue;
    if (options_.choosing == Choosing::fixed || candidate.label == known) return kernel;
    labels.push_back(candidate.label);
    kernels.push_back(std::move(kernel));
  }
  if (kernels.empty()) return make_reference_kernel(task);
  TrialRun trial(task);
  const std::string label = fastest(question, labels, [&](std::size_t i) {
    trial.bind(*kernels[i]);
    static_cast<void>(kernels[i]->run());  // brings its weights into the cache
    return seconds_of_run(*kernels[i]);
  });
  const auto chosen = std::ranges::find(labels, label) - labels.begin();
  return std::move(kernels[static_cast<std::size_t>(chosen)]);
}

std::string kernel_identity() {
  return fmt::format("{}; {}; {}", processor(), onednn_identity(), xnnpack_identity());
}

}  // namespace fleetfit::engine
