#include "cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "fleetfit/app/spaces.h"

namespace fleetfit::cli {
namespace {

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// Without what the checks of a value have added: "INT:INT in [1 - 9]".
std::string type_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

ArgumentKind kind_of(const std::string& name, const std::string& type) {
  if (one_of(type, {"INT", "UINT", "FLOAT"})) return ArgumentKind::number;
  if (one_of(name, {"--space", "SPACE"}) || type == "SPACE") return ArgumentKind::space;
  if (one_of(name, {"--device", "--devices"})) return ArgumentKind::device;
  if (name == "--precision") return ArgumentKind::precision;
  if (one_of(name, {"NAME", "DESIGN", "TRIAL", "--worker", "--as", "--seed"}))
    return ArgumentKind::word;
  return ArgumentKind::file;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag{.preset = option.get_default_str(),
            .description = option.get_description(),
            .is_required = option.get_required(),
            .is_repeated = option.get_expected_max() > 1};
  for (const auto& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) flag.names.push_back("--" + name);
  if (flag.names.empty()) flag.names.push_back(option.get_name(/*positional=*/true));
  if (option.get_type_size_max() == 0 || option.get_expected_max() == 0) return flag;
  flag.placeholder = type_of(option);
  flag.kind = kind_of(flag.names.back(), flag.placeholder);
  return flag;
}

bool is_listed(const CLI::App* verb) { return !verb->get_group().empty(); }

void add_command(const CLI::App& app, const std::vector<std::string>& path,
                 std::vector<Command>& commands) {
  Command command{.path = path, .description = app.get_description(), .footer = app.get_footer()};
  for (const auto* option : app.get_options({})) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? command.arguments : command.flags).push_back(flag_of(*option));
  }
  const auto verbs = app.get_subcommands(is_listed);
  for (const auto* verb : verbs) command.verbs.push_back(verb->get_name());
  commands.push_back(std::move(command));
  for (const auto* verb : verbs) {
    auto longer = path;
    longer.push_back(verb->get_name());
    add_command(*verb, longer, commands);
  }
}

}  // namespace

std::vector<std::string> offered(ArgumentKind kind) {
  if (kind == ArgumentKind::device) return {"local"};
  if (kind == ArgumentKind::precision) return {"fp32", "int8"};
  std::vector<std::string> names;
  if (kind == ArgumentKind::space)
    for (const auto& space : app::list_spaces()) names.push_back(space.name);
  return names;
}

std::vector<Command> command_tree(const CLI::App& program) {
  std::vector<Command> commands;
  add_command(program, {}, commands);
  return commands;
}

}  // namespace fleetfit::cli
