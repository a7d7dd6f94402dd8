#include "cli/program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fleetfit/core/companion.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/text.h"
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/core/version.h"

namespace fleetfit::cli {
namespace {

// A status without its reason does not compile.
static_assert(!std::is_convertible_v<int, Verdict> && !std::is_constructible_v<Verdict, int>);
static_assert(!std::is_convertible_v<Result<int>, Result<Verdict>>);

bool is_shown_in_help(const CLI::App* verb) { return !verb->get_group().empty(); }

void add_global_flags(CLI::App& program, GlobalFlags& flags) {
  program.add_flag("--json", flags.json, "Print one JSON document and nothing else");
  program.add_flag("--quiet", flags.quiet, "No progress on the terminal");
  program.add_flag("--verbose", flags.verbose, "Say more about what is done");
  program
      .add_option("--store", flags.store,
                  "Where results are kept: sqlite:FILE, postgres://… or memory:")
      ->envname("FLEETFIT_STORE");
  program.add_option("--seed", flags.seed, "Seed of everything random");
  program.add_option("--threads", flags.threads, "Threads to use; 0: all that there are")
      ->check(CLI::Range(0, 1024));
}

/// Help shows what an option is preset to, where that says anything.
void show_presets(CLI::App& app) {
  for (auto* option : app.get_options()) {
    if (option->get_required() || !option->get_default_str().empty()) continue;
    option->capture_default_str();
    if (option->get_default_str() == "0" || option->get_default_str() == "[]")
      option->default_str("");
  }
  for (auto* verb : app.get_subcommands(is_shown_in_help)) show_presets(*verb);
}

int run_action(Context& context) {
  if (!context.action)
    return core::report("no verb was given; 'fleetfit --help' lists them", core::kBadInput);
  core::remove_abandoned_scratch_folders();
  const auto result = context.action();
  if (!result) return core::report(result.error());
  if (!result->reason().empty()) core::report(result->reason(), result->status());
  return result->status();
}

int parse_and_run(int argc, char** argv) {
  Context context;
  CLI::App program("Fits a neural network to a fleet of edge devices.", "fleetfit");
  program.set_version_flag("--version", "fleetfit " + std::string(core::version()));
  program.footer(
      "Example:\n  fleetfit model zoo mobilenet_v2 -o mobilenet_v2.onnx\n  fleetfit model inspect "
      "mobilenet_v2.onnx\n  fleetfit measure mobilenet_v2.onnx --ops");
  program.fallthrough();
  add_global_flags(program, context.flags);
  add_fit(program, context);
  add_adapt(program, context);
  add_model(program, context);
  add_device(program, context);
  add_measure(program, context);
  add_kernels(program, context);
  add_infer(program, context);
  add_learn(program, context);
  add_predict(program, context);
  add_search(program, context);
  add_server(program, context);
  add_space(program, context);
  add_store(program, context);
  add_token(program, context);
  add_bundle(program, context);
  add_study(program, context);
  add_transfer(program, context);
  add_tune(program, context);
  add_workload(program, context);
  add_companion_verbs(program, context);
  add_serving_run(program, context);
  add_runtime(program, context);
  add_upload_kind(program, context);
  add_completion(program, context);
  show_presets(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    return core::report(error.what(), core::kBadInput);
  }
  return run_action(context);
}

}  // namespace

int Context::threads() const {
  return flags.threads > 0 ? flags.threads : core::ThreadPool::available_cpus();
}

Result<app::Workplace> Context::open_workplace() const {
  return app::open_workplace(flags.store, clock_, {.stop = stop_});
}

Result<app::Workplace> Context::open_existing_workplace() const {
  constexpr std::string_view kFile = "sqlite:";
  std::error_code ignored;
  const bool missing = flags.store.starts_with(kFile) && flags.store.size() > kFile.size() &&
                       !std::filesystem::exists(flags.store.substr(kFile.size()), ignored);
  return app::open_workplace(missing ? "memory:" : flags.store, clock_, {.stop = stop_},
                             store::StoreUse::look);
}

core::Progress& Context::progress() {
  if (!progress_)
    progress_ = core::make_progress_for_people(clock_, {.quiet = flags.quiet || flags.json});
  return *progress_;
}

void Context::print(const nlohmann::ordered_json& document) const {
  const auto text =
      core::format_json(document);  // is UTF-8; what is visible has no escapes of JSON
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Context::print(const std::string& text) const {
  const auto shown = core::visible(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

CLI::App& add_group(CLI::App& program, Context& context, const std::string& name,
                    const std::string& what, const std::string& footer) {
  auto* group = program.add_subcommand(name, what);
  group->footer(footer);
  group->require_subcommand(0, 1);
  context.on(group, [group]() -> Result<Verdict> {
    const auto verbs = group->get_subcommands(is_shown_in_help);
    std::string names;
    for (const auto* verb : verbs) {
      if (!names.empty()) names += verb == verbs.back() ? " or " : ", ";
      names += verb->get_name();
    }
    return fail(ErrorCode::invalid_input,
                fmt::format("{} needs a verb: {}", group->get_name(), names));
  });
  return *group;
}

Result<std::string> own_program() {
  return core::running_program().map([](const auto& path) { return path.string(); });
}

std::string store_for_others(const Context& context) {
  const auto address = store::without_password(context.flags.store);
  if (!address.password.empty())
    ::setenv("PGPASSWORD", address.password.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  return address.url;
}

int run_program(int argc, char** argv) {
  return core::run_guarded([&] { return parse_and_run(argc, argv); });
}

}  // namespace fleetfit::cli
