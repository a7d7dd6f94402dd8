#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

namespace fleetfit::cli {

/// Flags that every verb takes.
struct GlobalFlags {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::string store = "sqlite:fleetfit.db";
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: as many as the machine has
};

/// What a verb is given to do its work.
class Context {
 public:
  GlobalFlags flags;

  /// Set by the verb that was chosen. Gives the exit status.
  std::function<Result<int>()> action;

  int threads() const;

  /// The store that the flags name, and what else devices need.
  Result<app::Workplace> open_workplace() const;

  /// The same for verbs that only look: a file that does not exist is not created.
  Result<app::Workplace> open_existing_workplace() const;

  /// A bar on stderr when that is a terminal, else only the messages there.
  core::Progress& progress();

  void print(const nlohmann::ordered_json& document) const;
  void print(const std::string& text) const;

 private:
  core::SystemClock clock_;
  std::unique_ptr<core::Progress> progress_;
};

/// The program that is running, for processes that do a part of the work.
Result<std::string> own_program();

/// The store for such a process: its password, if it has one, goes by the environment, as everybody
/// sees command lines.
std::string store_for_others(const Context& context);

/// Parses the arguments, runs the verb, prints errors as one line; gives the exit status.
int run_program(int argc, char** argv);

// One for each verb: adds its subcommands, which set context.action.
void add_model(CLI::App& program, Context& context);
void add_device(CLI::App& program, Context& context);
void add_measure(CLI::App& program, Context& context);
void add_kernels(CLI::App& program, Context& context);
void add_infer(CLI::App& program, Context& context);
void add_learn(CLI::App& program, Context& context);
void add_predict(CLI::App& program, Context& context);
void add_transfer(CLI::App& program, Context& context);
void add_search(CLI::App& program, Context& context);
void add_serving_run(CLI::App& program, Context& context);
void add_runtime(CLI::App& program, Context& context);
void add_space(CLI::App& program, Context& context);
void add_fit(CLI::App& program, Context& context);
void add_server(CLI::App& program, Context& context);
void add_store(CLI::App& program, Context& context);
void add_token(CLI::App& program, Context& context);
void add_adapt(CLI::App& program, Context& context);
void add_bundle(CLI::App& program, Context& context);
void add_study(CLI::App& program, Context& context);
void add_tune(CLI::App& program, Context& context);
void add_workload(CLI::App& program, Context& context);
void add_completion(CLI::App& program, Context& context);

// Those whose work fleetfit-train does.
void add_companion_verbs(CLI::App& program, Context& context);

// Of `learn`, each in a file of its own.
void add_learn_features(CLI::App& learn, Context& context);
void add_learn_networks(CLI::App& learn, Context& context);

// Of `transfer`.
void add_transfer_fewshot(CLI::App& transfer, Context& context);

// Of `study`, each in a file of its own.
void add_study_dialogue(CLI::App& study, Context& context);
void add_study_work(CLI::App& study, Context& context);
void add_study_import(CLI::App& study, Context& context);
void add_study_confirm(CLI::App& study, Context& context);

// Of `device`.
void add_device_probe(CLI::App& device, Context& context);

// Of `model`, those that write and run models.
void add_model_convert(CLI::App& model, Context& context);
void add_model_run(CLI::App& model, Context& context);
void add_model_check(CLI::App& model, Context& context);

}  // namespace fleetfit::cli
