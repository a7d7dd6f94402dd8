#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fleetfit/learned/samples.h"
#include "fleetfit/train/learned.h"
#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

struct Flags {
  CommonFlags common;
  std::string samples;
  std::string output;
  std::string method = "supervised";
  LearnOptions options;
};

Result<int> run_learned(Flags flags) {
  FLEETFIT_ASSIGN(flags.options.method, core::parse_name<LearnMethod>(flags.method));
  FLEETFIT_TRY(check_available(flags.options.compute));
  flags.options.seed = flags.common.seed;
  flags.options.checkpoint = flags.output + ".part";
  FLEETFIT_ASSIGN(const auto samples, learned::read_samples(flags.samples));
  Work work(flags.common);
  const auto model = train_learned(samples, flags.options, work.context());
  if (!model && model.error().code == ErrorCode::cancelled) {
    return work.finish(fmt::format(
        "interrupted; the networks that are finished are in {}, and the same command goes on",
        flags.options.checkpoint.string()));
  }
  if (!model) return core::within(flags.samples, model.error());
  FLEETFIT_TRY(learned::write_model(*model, flags.output));
  const auto& latency = model->parts().costs[0];
  if (flags.common.json) {
    print({{"rank_correlation", latency.rank_correlation},
           {"margin", latency.margin},
           {"usual_spread", latency.usual_spread},
           {"elapsed_s", work.elapsed_s()}});
  } else {
    fmt::print(
        "rank correlation {:.3f} on devices not learned from; margin {:.1f} times the "
        "spread\n",
        latency.rank_correlation, latency.margin);
  }
  return 0;
}

}  // namespace

void add_learned(CLI::App& program, Action& action) {
  auto* verb = program.add_subcommand("learned", "Networks that learn to optimize");
  const auto flags = std::make_shared<Flags>();  // shared by the verb and its action
  verb->add_option("SAMPLES", flags->samples, "File of samples")->required();
  verb->add_option("-o,--output", flags->output, "File to write")->required();
  verb->add_option("--method", flags->method, "supervised, unsupervised or none")
      ->capture_default_str();
  add_compute_flag(*verb, flags->options.compute);
  verb->add_option("--members", flags->options.members, "Networks for each cost")
      ->check(CLI::Range(2, 50))
      ->capture_default_str();
  verb->add_option("--optimizers", flags->options.optimizers, "Optimizer networks")
      ->check(CLI::Range(1, 50))
      ->capture_default_str();
  verb->add_option("--effort", flags->options.effort, "Multiplies the steps of all trainings")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  add_common_flags(*verb, flags->common);
  verb->footer("Example:\n  fleetfit-train learned samples.json -o model.json");
  verb->callback([&action, flags] { action = [flags] { return run_learned(*flags); }; });
}

}  // namespace fleetfit::train
