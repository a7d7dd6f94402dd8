#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/store_file.h"
#include "fleetfit/app/tokens.h"
#include "fleetfit/core/program.h"
#include "fleetfit/server/fleet_api.h"
#include "fleetfit/server/fleet_http.h"
#include "fleetfit/server/upload_kind.h"

namespace fleetfit::cli {
namespace {

struct ServerFlags {
  std::string listen = "127.0.0.1:8080";
  std::string certificate;
  std::string key;
  std::string files = "fleetfit-files";
  double keep_events_days = 30;
  std::vector<std::string> trusted_proxies;
  std::size_t connections_of_address = server::ClientLimits().connections;
};

void log_line(const std::string& message) { core::say(message); }

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
  std::vector<server::Network> proxies;
  for (const auto& text : flags.trusted_proxies) {
    FLEETFIT_ASSIGN(auto proxy, core::within("--trusted-proxy", server::parse_network(text)));
    proxies.push_back(proxy);
  }
  server::ClientLimits limits{.connections = flags.connections_of_address,
                              .requests = flags.connections_of_address};
  return server::ListenOptions{.address = std::move(address),
                               .certificate = flags.certificate,
                               .key = flags.key,
                               .incoming = std::filesystem::path(flags.files) / "incoming",
                               .limits = limits,
                               .trusted_proxies = std::move(proxies),
                               .log = log_line};
}

void announce(Context& context, const std::string& url, const std::string& advice) {
  context.show(nlohmann::ordered_json{{"url", url}},
               fmt::format("listening on {}\n{}", url, advice));
  std::fflush(stdout);
}

Result<Verdict> run_server(Context& context, const ServerFlags& flags,
                           const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto options, listen_options(flags));
  if (const auto warning = app::keep_from_others(context.flags.store)) log_line(*warning);
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  server::Bell bell;
  constexpr double kDayS = 24 * 3600;
  FLEETFIT_ASSIGN(const auto api, server::make_fleet_api(
                                      workplace, {.folder = flags.files,
                                                  .secure = !flags.certificate.empty(),
                                                  .keep_events_s = flags.keep_events_days * kDayS,
                                                  .look = {.program = "/proc/self/exe"},
                                                  .log = log_line,
                                                  .events_added = [&bell] { bell.ring(); }}));
  FLEETFIT_ASSIGN(const auto admin, api->has_admin());
  const std::string advice =
      admin ? "" : "there is no token to sign in with yet: fleetfit token create --role admin\n";
  FLEETFIT_TRY(server::serve_fleet(
      *api, bell, options, [&](const std::string& url) { announce(context, url, advice); }, stop));
  return done();
}

// --- token ---

std::string day_text(const std::optional<store::Time>& time) {
  if (!time) return "-";
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(*time));
  return fmt::format("{}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

std::string devices_text(const store::TokenRecord& token) {
  if (const auto most = app::most_devices(token)) return fmt::format("up to {}", *most);
  return token.device.empty() ? "-" : token.device;
}

std::string tokens_text(const app::TokenList& list) {
  TextTable table("id {} | name | role | device | state | created | expires");
  for (const auto& token : list.tokens)
    table.add(token.id, token.name, store::to_string(token.role), devices_text(token),
              app::state_of(token, list.now), day_text(token.created), day_text(token.expires));
  return table.text();
}

Result<Verdict> create(Context& context, const app::NewToken& wanted) {
  FLEETFIT_ASSIGN(const auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto created, app::create_token(workplace, wanted));
  if (context.flags.json) {
    auto document = app::to_json(created.record, created.record.created);
    if (wanted.output.empty()) document["token"] = created.token;
    context.print(document);
  } else if (wanted.output.empty()) {
    context.print(created.token + "\n");
  }
  return done();
}

void add_create(CLI::App& token, Context& context) {
  auto [verb, wanted] =
      add_verb<app::NewToken>(token, "create", "Make a token and print it, this once");
  verb->add_option("--role", wanted->role,
                   "admin (may do everything), viewer (sees everything but tokens and audit) or "
                   "agent (a device: sees its own jobs)");
  verb->add_option("--name", wanted->name, "For people, to tell it from others");
  verb->add_option("--expires", wanted->lifetime,
                   "After how long it is worth nothing: 12h, 30d, 2w; else never");
  verb->add_option("--device", wanted->device, "The only device that an agent with it may be");
  verb->add_option("--devices", wanted->devices,
                   "How many new devices an agent's token may register that is bound to none; 100 "
                   "unless given")
      ->type_name("N");
  verb->add_option("--output", wanted->output,
                   "A new file for it, which its owner alone can read, instead of printing it");
  verb->footer(
      "Only its hash is kept: who has lost a token makes another one and revokes the old one.\n"
      "Example:\n  fleetfit token create --role admin --name me --expires 30d\n"
      "  fleetfit token create --role agent --device pi4 --output pi4.token\n"
      "  fleetfit token create --role agent --devices 500");
  context.on(verb, wanted, create);
}

void add_list(CLI::App& token, Context& context) {
  auto* verb = token.add_subcommand("list", "List the tokens, without their secrets");
  verb->footer("Example:\n  fleetfit token list");
  context.on(verb, [&context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(const auto workplace, context.open_existing_workplace());
    return context.show(app::list_tokens(workplace), tokens_text);
  });
}

void add_revoke(CLI::App& token, Context& context) {
  auto [verb, id] = add_verb<std::int64_t>(token, "revoke", "Make a token worth nothing, at once");
  verb->add_option("ID", *id, "Its number in the list")->required();
  verb->footer("Example:\n  fleetfit token revoke 3");
  context.on(verb, [id, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(const auto workplace, context.open_existing_workplace());
    FLEETFIT_TRY(app::revoke_token(workplace, *id));
    if (context.flags.json) context.print(nlohmann::ordered_json{{"revoked", *id}});
    return done();
  });
}

}  // namespace

void add_server(CLI::App& program, Context& context) {
  auto [verb, flags] = add_verb<ServerFlags>(
      program, "server", "Keep a fleet's devices, jobs and results, with an API and a web page");
  verb->add_option("--listen", flags->listen,
                   "Where; addresses that others reach need a certificate")
      ->type_name("ADDRESS:PORT");
  verb->add_option("--tls-cert", flags->certificate, "Certificate with its chain, PEM")
      ->type_name("FILE");
  verb->add_option("--tls-key", flags->key, "Its private key, PEM")->type_name("FILE");
  verb->add_option("--files", flags->files, "Folder for models and bundles that jobs need")
      ->type_name("DIR");
  verb->add_option("--keep-events", flags->keep_events_days, "Forget events after so many days")
      ->type_name("DAYS")
      ->check(CLI::PositiveNumber);
  verb->add_option("--trusted-proxy", flags->trusted_proxies,
                   "Proxies whose X-Forwarded-For or Forwarded says which address asks")
      ->type_name("ADDRESS[/BITS]");
  verb->add_option("--address-connections", flags->connections_of_address,
                   "How many connections one address may have, and requests on their way")
      ->type_name("N")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100'000}));
  verb->footer(
      "Stops at SIGINT or SIGTERM, after the requests that it has. docs/fleet.md describes the "
      "API.\n\nExample:\n"
      "  fleetfit token create --role admin\n"
      "  fleetfit server\n"
      "  fleetfit server --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem");
  context.on(verb, flags, run_server);
}

// Not for people: the server starts itself with this verb for each file that it gets.
void add_upload_kind(CLI::App& program, Context& context) {
  struct Flags {
    std::string file;
    std::string name;
  };
  auto [verb, flags] =
      add_verb<Flags>(program, "upload-kind", "Say what a file is that was sent to the server");
  verb->group("");
  verb->add_option("--file", flags->file, "The file")->required();
  verb->add_option("--name", flags->name, "What it was sent as")->required();
  verb->footer("Example:\n  fleetfit upload-kind --file=x.onnx --name=net.onnx");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    context.print(server::describe_upload(flags->file, flags->name));
    return done();
  });
}

void add_token(CLI::App& program, Context& context) {
  auto* token = program.add_subcommand("token", "Tokens for a fleet's server");
  token->require_subcommand(1);
  add_create(*token, context);
  add_list(*token, context);
  add_revoke(*token, context);
}

}  // namespace fleetfit::cli
