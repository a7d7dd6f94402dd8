#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

/// All verbs with their flags as plain values, for what is generated from them: completions and the
/// man page.
namespace fleetfit::cli {

/// What stands behind a flag, or as an argument, as far as a shell can help with it.
enum class ArgumentKind : std::uint8_t {
  nothing,    ///< a flag alone
  number,     ///< nothing to offer
  word,       ///< a name that only the user knows
  device,     ///< the name of a device
  space,      ///< the name of a space
  precision,  ///< fp32 or int8
  file,       ///< or a text of which nothing is known
};

/// What a shell offers for it besides files.
std::vector<std::string> offered(ArgumentKind kind);

struct Flag {
  std::vector<std::string> names = {};  ///< "-o", "--output"; the name alone of an argument
  std::string placeholder = {};         ///< "TEXT", "FILE", …; "" if there is no value
  std::string preset = {};              ///< "": none
  std::string description = {};
  ArgumentKind kind = ArgumentKind::nothing;
  bool is_required = false;
  bool is_repeated = false;
};

struct Command {
  std::vector<std::string> path = {};  ///< {"model", "zoo"}; empty for the program
  std::string description = {};
  std::string footer = {};  ///< with its example
  std::vector<Flag> flags = {};
  std::vector<Flag> arguments = {};
  std::vector<std::string> verbs = {};  ///< names of its subcommands, in their order
};

/// The program, then all of its verbs, each before its own; without those that help does not list.
std::vector<Command> command_tree(const CLI::App& program);

/// Scripts that complete the program's command lines.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);

/// The manual's page fleetfit(1), in troff's language.
std::string man_page(const std::vector<Command>& commands, std::string_view date);

}  // namespace fleetfit::cli
