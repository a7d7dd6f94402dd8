#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/tokens.h"

namespace fleetfit::cli {
namespace {

std::string day_text(const std::optional<store::Time>& time) {
  if (!time) return "-";
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(*time));
  return fmt::format("{}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

std::string tokens_text(const app::TokenList& list) {
  TextTable table({{"id", TextTable::Align::right},
                   {"name"},
                   {"role"},
                   {"device"},
                   {"state"},
                   {"created"},
                   {"expires"}});
  for (const auto& token : list.tokens)
    table.add({std::to_string(token.id), token.name, std::string(store::to_string(token.role)),
               token.device.empty() ? "-" : token.device,
               std::string(app::state_of(token, list.now)), day_text(token.created),
               day_text(token.expires)});
  return table.text();
}

Result<int> create(Context& context, const app::NewToken& wanted) {
  FLEETFIT_ASSIGN(const auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto created, app::create_token(workplace, wanted));
  if (context.flags.json) {
    auto document = app::to_json(created.record, created.record.created);
    if (wanted.output.empty()) document["token"] = created.token;
    context.print(document);
  } else if (wanted.output.empty()) {
    context.print(created.token + "\n");
  }
  return 0;
}

void add_create(CLI::App& token, Context& context) {
  auto wanted = std::make_shared<app::NewToken>();
  auto* verb = token.add_subcommand("create", "Make a token and print it, this once");
  verb->add_option("--role", wanted->role,
                   "admin (may do everything), viewer (sees everything but tokens and audit) or "
                   "agent (a device: sees its own jobs)")
      ->capture_default_str();
  verb->add_option("--name", wanted->name, "For people, to tell it from others");
  verb->add_option("--expires", wanted->lifetime,
                   "After how long it is worth nothing: 12h, 30d, 2w; else never");
  verb->add_option("--device", wanted->device, "The only device that an agent with it may be");
  verb->add_option("--output", wanted->output,
                   "A new file for it, which its owner alone can read, instead of printing it");
  verb->footer(
      "Only its hash is kept: who has lost a token makes another one and revokes the old one.\n"
      "Example:\n  fleetfit token create --role admin --name me --expires 30d\n"
      "  fleetfit token create --role agent --device pi4 --output pi4.token");
  verb->callback([wanted, &context] {
    context.action = [wanted, &context] { return create(context, *wanted); };
  });
}

void add_list(CLI::App& token, Context& context) {
  auto* verb = token.add_subcommand("list", "List the tokens, without their secrets");
  verb->footer("Example:\n  fleetfit token list");
  verb->callback([&context] {
    context.action = [&context]() -> Result<int> {
      FLEETFIT_ASSIGN(const auto workplace, context.open_existing_workplace());
      FLEETFIT_ASSIGN(const auto list, app::list_tokens(workplace));
      if (context.flags.json) {
        context.print(app::to_json(list));
      } else {
        context.print(tokens_text(list));
      }
      return 0;
    };
  });
}

void add_revoke(CLI::App& token, Context& context) {
  auto id = std::make_shared<std::int64_t>(0);
  auto* verb = token.add_subcommand("revoke", "Make a token worth nothing, at once");
  verb->add_option("ID", *id, "Its number in the list")->required();
  verb->footer("Example:\n  fleetfit token revoke 3");
  verb->callback([id, &context] {
    context.action = [id, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(const auto workplace, context.open_existing_workplace());
      FLEETFIT_TRY(app::revoke_token(workplace, *id));
      if (context.flags.json) context.print(nlohmann::ordered_json{{"revoked", *id}});
      return 0;
    };
  });
}

}  // namespace

void add_token(CLI::App& program, Context& context) {
  auto* token = program.add_subcommand("token", "Tokens for a fleet's server");
  token->require_subcommand(1);
  add_create(*token, context);
  add_list(*token, context);
  add_revoke(*token, context);
}

}  // namespace fleetfit::cli
