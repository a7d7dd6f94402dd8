#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <type_traits>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/interrupt.h"
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

  /// The verb's work. It gives the exit status, or what went wrong; one that takes a stop token may
  /// be interrupted by the user.
  template <class Action>
  void on(CLI::App* verb, Action work) {
    verb->callback([this, verb, work = std::move(work)] {
      if (!verb->get_subcommands().empty()) return;
      if constexpr (std::is_invocable_v<const Action&, std::stop_token>) {
        action = [work]() -> Result<int> {
          const core::Interrupt interrupt;
          return work(interrupt.token());
        };
      } else {
        action = work;
      }
    });
  }

  /// The same of a function of this context and the verb's flags, which it keeps.
  template <class Flags, class Run>
  void on(CLI::App* verb, std::shared_ptr<Flags> verb_flags, Run run) {
    if constexpr (std::is_invocable_v<Run, Context&, Flags&, std::stop_token>) {
      on(verb, [this, verb_flags, run](const std::stop_token& stop) {
        return run(*this, *verb_flags, stop);
      });
    } else {
      on(verb, [this, verb_flags, run] { return run(*this, *verb_flags); });
    }
  }

  /// A bar on stderr when that is a terminal, else only the messages there.
  core::Progress& progress();

  void print(const nlohmann::ordered_json& document) const;
  void print(const std::string& text) const;

  /// Prints a report as JSON where that is asked for, else for people: `text`, or what it makes of
  /// the report. Gives the exit status 0.
  template <class Report, class Text>
  int show(const Report& report, Text&& text) const {
    if (flags.json) {
      if constexpr (std::is_same_v<Report, nlohmann::ordered_json>) {
        print(report);
      } else {
        using core::to_json;  // of records that are described
        print(to_json(report));
      }
    } else if constexpr (std::is_invocable_v<Text, const Report&>) {
      print(text(report));
    } else {
      print(std::string(text));
    }
    return 0;
  }
  template <class Report, class Text>
  Result<int> show(const Result<Report>& report, Text&& text) const {
    FLEETFIT_TRY(report);
    return show(*report, std::forward<Text>(text));
  }

 private:
  core::SystemClock clock_;
  std::unique_ptr<core::Progress> progress_;
};

/// A verb and where its options are kept, which lives as long as the verb's work may be called.
template <class Flags>
struct Verb {
  CLI::App* verb;
  std::shared_ptr<Flags> flags;
};

template <class Flags>
Verb<Flags> add_verb(CLI::App& parent, const std::string& name, const std::string& what) {
  return {parent.add_subcommand(name, what), std::make_shared<Flags>()};
}

/// A verb that has verbs, and by itself only names them.
CLI::App& add_group(CLI::App& program, Context& context, const std::string& name,
                    const std::string& what, const std::string& footer);

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

// Of `learn`.
void add_learn_features(CLI::App& learn, Context& context);

// Of `predict`.
void add_predict_spec(CLI::App& predict, Context& context);

// Of `transfer`.
void add_transfer_fewshot(CLI::App& transfer, Context& context);

// Of `study`, each in a file of its own.
void add_study_dialogue(CLI::App& study, Context& context);
void add_study_work(CLI::App& study, Context& context);

// Of `model`, those that write and run models.
void add_model_convert(CLI::App& model, Context& context);
void add_model_run(CLI::App& model, Context& context);
void add_model_check(CLI::App& model, Context& context);

}  // namespace fleetfit::cli
