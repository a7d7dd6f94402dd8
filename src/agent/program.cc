#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "agent/running_job.h"
#include "fleetfit/agent/agent.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/file.h"
#include "fleetfit/core/interrupt.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/version.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/hardware.h"

namespace fleetfit::agent {
namespace {

namespace fs = std::filesystem;

struct Flags {
  fleet::ClientOptions connection;
  std::string token_file;
  std::string name;
  std::string state;
  std::string public_key;
  std::string cache = "2G";
  double heartbeat_s = 10;
  bool allow_exec = false;
  std::string job_folder;
};

Result<std::string> read_token(const std::string& file) {
  if (file.empty()) return refuse("--token-file: nothing says which token to use");
  struct stat about = {};
  if (::stat(file.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return refuse(fmt::format("--token-file {}: others may read it; chmod 600 {}", file, file));
  auto text = core::read_file(file, {.max_bytes = 10'000});
  if (!text) return text;
  while (!text->empty() && text->back() <= ' ') text->pop_back();
  return text;
}

std::string environment(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Result<fs::path> state_folder(const std::string& given) {
  if (!given.empty()) return fs::absolute(given);
  if (const auto state = environment("XDG_STATE_HOME"); !state.empty())
    return fs::path(state) / "fleetfit-agent";
  if (const auto home = environment("HOME"); !home.empty())
    return fs::path(home) / ".local/state/fleetfit-agent";
  return refuse("--state: nothing says where to keep files");
}

/// The machine's name, less what no name of a device has.
std::string name_of_this_device() {
  auto name = core::host_name();
  std::erase_if(name, [](unsigned char c) {
    return (std::isalnum(c) == 0) && c != '.' && c != '_' && c != '-';
  });
  return name;
}

void log_line(std::string_view text) {
  fmt::print(stderr, "{} {}\n", time_text(std::chrono::system_clock::now()),
             core::message_line(text));
}

/// As it registers.
Result<fleet::Registration> describe_this_device(std::string name) {
  if (auto ok = fleet::check_name(name); !ok) return core::within("name", ok.error());
  FLEETFIT_ASSIGN(const auto hardware, measure::read_hardware());
  constexpr double kGibi = 1 << 30;
  const auto line =
      fmt::format("{}, {}, {} {}, {:.1f} GiB", hardware.cpu_model, hardware.architecture,
                  hardware.cores.size(), hardware.cores.size() == 1 ? "core" : "cores",
                  static_cast<double>(hardware.memory_bytes) / kGibi);
  return fleet::Registration{
      .name = std::move(name),
      .version = std::string(core::version()),
      .hardware = line,
      .probe = core::format_json_line({{"hardware", measure::to_json(hardware)}})};
}

Result<AgentOptions> options_of(Flags& flags) {
  if (flags.connection.server.empty()) return refuse("--server: nothing says which server to ask");
  FLEETFIT_ASSIGN(flags.connection.token, read_token(flags.token_file));
  FLEETFIT_ASSIGN(auto registration,
                  describe_this_device(flags.name.empty() ? name_of_this_device() : flags.name));
  flags.connection.device = registration.name;
  if (!flags.connection.authority.empty())
    flags.connection.authority = fs::absolute(flags.connection.authority);
  FLEETFIT_ASSIGN(auto state, state_folder(flags.state));
  const auto cache = measure::parse_bytes(flags.cache);
  if (!cache) return core::within("--cache", cache.error());
  AgentOptions options{
      .registration = std::move(registration),
      .jobs = {.state = std::move(state), .cache_bytes = *cache, .allow_exec = flags.allow_exec},
      .connection = connection_text(flags.connection),
      .heartbeat_s = flags.heartbeat_s,
      .seed = std::random_device{}()};
  if (!flags.public_key.empty()) {
    FLEETFIT_TRY(core::read_file(flags.public_key));
    options.jobs.public_key = fs::absolute(flags.public_key);
  }
  return options;
}

Result<int> run(Flags& flags) {
  core::remove_abandoned_scratch_folders();
  FLEETFIT_ASSIGN(auto options, options_of(flags));
  FLEETFIT_ASSIGN(const auto client, fleet::make_client(flags.connection));
  const core::Interrupt interrupt;
  const core::SystemClock clock;
  const auto processes = make_job_processes("/proc/self/exe");
  FLEETFIT_ASSIGN(const auto agent,
                  open_agent(std::move(options), *client, *processes, clock, log_line));
  log_line(fmt::format("fleetfit-agent {} for {}", core::version(), flags.connection.server));
  run_agent(*agent, clock, interrupt.token());
  log_line("stopped");
  return core::kDone;
}

/// A job must not fill the disk when it crashes, and be the one that the kernel ends when memory is
/// short.
void become_a_job() {
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

Result<int> run_job(const std::string& folder) {
  become_a_job();
  std::string connection;
  std::getline(std::cin, connection);
  const core::Interrupt interrupt;
  const core::SystemClock clock;
  const auto write_line = [](std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    std::fflush(stdout);
  };
  return do_job(folder, connection, clock, write_line, interrupt.token()).map([] {
    return core::kDone;
  });
}

void add_flags(CLI::App& program, Flags& flags) {
  program.add_option("--server", flags.connection.server, "The fleet's server")
      ->type_name("https://HOST:PORT");
  program
      .add_option("--token-file", flags.token_file,
                  "Holds the token of this device; only its owner may read it")
      ->type_name("FILE");
  program.add_option("--name", flags.name, "The device's name; not said: the machine's");
  program
      .add_option("--authority", flags.connection.authority,
                  "Trust the server if this certificate says so, instead of the system's")
      ->type_name("FILE.pem");
  program
      .add_option("--public-key", flags.public_key,
                  "Refuse bundles that are not signed by this key")
      ->type_name("FILE.pem");
  program
      .add_option("--state", flags.state,
                  "Where results, files and pools are kept; not said: "
                  "$XDG_STATE_HOME/fleetfit-agent")
      ->type_name("FOLDER");
  program.add_option("--cache", flags.cache, "Most bytes for files of jobs")->capture_default_str();
  program.add_option("--heartbeat", flags.heartbeat_s, "Seconds between two signs of life")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  program.add_flag("--allow-exec", flags.allow_exec,
                   "Jobs may name programs to measure with: who sends jobs may then run any "
                   "program on this device");
}

int parse_and_run(int argc, char** argv) {
  Flags flags;
  CLI::App program(
      "Takes jobs of a fleet's server, does them on this device, and sends what was "
      "found",
      "fleetfit-agent");
  program.set_version_flag("--version", fmt::format("fleetfit-agent {}", core::version()));
  add_flags(program, flags);
  program.footer(
      "Only outgoing connections are made. docs/agents.md says more.\n\nExample:\n"
      "  fleetfit-agent --server https://fleet.example:8443 --token-file token --name pi4");
  program.require_subcommand(0, 1);
  auto* job = program.add_subcommand("job", "Do a job (the agent starts itself with this)");
  job->group("");
  job->add_option("FOLDER", flags.job_folder)->required();
  auto* runtime = program.add_subcommand("runtime", "Execute models for another process");
  runtime->group("");
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    return core::report(error.what(), core::kBadInput);
  }
  auto status = [&]() -> Result<int> {
    if (runtime->parsed())
      return app::serve_engine(std::cin, std::cout).map([] { return core::kDone; });
    return job->parsed() ? run_job(flags.job_folder) : run(flags);
  }();
  return status ? *status : core::report(status.error());
}

}  // namespace
}  // namespace fleetfit::agent

int main(int argc, char** argv) {
  return fleetfit::core::run_guarded([&] { return fleetfit::agent::parse_and_run(argc, argv); });
}
