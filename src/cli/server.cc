#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "fleetfit/core/interrupt.h"
#include "fleetfit/core/program.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/server/fleet_http.h"

namespace fleetfit::cli {
namespace {

struct ServerFlags {
  std::string listen = "127.0.0.1:8080";
  std::string certificate;
  std::string key;
  std::string files = "fleetfit-files";
  double keep_events_days = 30;
};

void log_line(const std::string& message) { fmt::print(stderr, "fleetfit: {}\n", message); }

Result<server::ListenOptions> listen_options(const ServerFlags& flags) {
  if (flags.certificate.empty() != flags.key.empty())
    return fail(ErrorCode::invalid_input, "--tls-cert and --tls-key belong together");
  FLEETFIT_ASSIGN(auto address, server::parse_address(flags.listen));
  if (flags.certificate.empty() && !server::is_loopback(address)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("--listen {}: others could reach it: --tls-cert and --tls-key are "
                            "needed",
                            flags.listen));
  }
  return server::ListenOptions{.address = std::move(address),
                               .certificate = flags.certificate,
                               .key = flags.key,
                               .incoming = std::filesystem::path(flags.files) / "incoming",
                               .log = log_line};
}

void announce(Context& context, const std::string& url, const std::string& advice) {
  if (context.flags.json) {
    context.print(nlohmann::ordered_json{{"url", url}});
  } else {
    context.print(fmt::format("listening on {}\n{}", url, advice));
  }
  std::fflush(stdout);
}

Result<int> run_server(Context& context, const ServerFlags& flags) {
  FLEETFIT_ASSIGN(const auto options, listen_options(flags));
  const core::Interrupt interrupt;
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  server::Bell bell;
  constexpr double kDayS = 24 * 3600;
  FLEETFIT_ASSIGN(const auto api, server::make_fleet_api(
                                      workplace, {.folder = flags.files,
                                                  .secure = !flags.certificate.empty(),
                                                  .keep_events_s = flags.keep_events_days * kDayS,
                                                  .log = log_line,
                                                  .events_added = [&bell] { bell.ring(); }}));
  FLEETFIT_ASSIGN(const auto admin, api->has_admin());
  const std::string advice =
      admin ? "" : "there is no token to sign in with yet: fleetfit token create --role admin\n";
  FLEETFIT_TRY(server::serve_fleet(
      *api, bell, options, [&](const std::string& url) { announce(context, url, advice); },
      interrupt.token()));
  return core::kDone;
}

}  // namespace

void add_server(CLI::App& program, Context& context) {
  auto flags = std::make_shared<ServerFlags>();
  auto* verb = program.add_subcommand(
      "server", "Keep a fleet's devices, jobs and results, with an API and a web page");
  verb->add_option("--listen", flags->listen,
                   "Where; addresses that others reach need a certificate")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  verb->add_option("--tls-cert", flags->certificate, "Certificate with its chain, PEM")
      ->type_name("FILE");
  verb->add_option("--tls-key", flags->key, "Its private key, PEM")->type_name("FILE");
  verb->add_option("--files", flags->files, "Folder for models and bundles that jobs need")
      ->type_name("DIR")
      ->capture_default_str();
  verb->add_option("--keep-events", flags->keep_events_days, "Forget events after so many days")
      ->type_name("DAYS")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->footer(
      "Stops at SIGINT or SIGTERM, after the requests that it has. docs/fleet.md describes the "
      "API.\n\nExample:\n"
      "  fleetfit token create --role admin\n"
      "  fleetfit server\n"
      "  fleetfit server --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem");
  verb->callback([flags, &context] {
    context.action = [flags, &context] { return run_server(context, *flags); };
  });
}

}  // namespace fleetfit::cli
