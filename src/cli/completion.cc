#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "cli/command_tree.h"
#include "cli/program.h"

namespace fleetfit::cli {
namespace {

/// "/model/zoo", as the scripts call a verb's place.
std::string place_of(const Command& command) {
  std::string place;
  for (const auto& word : command.path) place += "/" + word;
  return place;
}

/// Patterns of a `case` for all verbs: the script follows the words of the line from one to the
/// next.
std::string places(const std::vector<Command>& commands) {
  std::vector<std::string> all;
  for (const auto& command : commands)
    if (!command.path.empty()) all.push_back(place_of(command));
  return fmt::format("{}", fmt::join(all, " | "));
}

bool takes_files(const Command& command) {
  // A verb that hands its arguments on knows nothing of them.
  const bool hands_on = command.flags.empty() && command.arguments.empty() && command.verbs.empty();
  return hands_on || std::ranges::any_of(command.arguments, [](const Flag& argument) {
           return argument.kind == ArgumentKind::file;
         });
}

/// Words that a shell offers in the place of a verb's arguments.
std::vector<std::string> argument_words(const Command& command) {
  std::vector<std::string> words;
  for (const auto& argument : command.arguments)
    std::ranges::copy(offered(argument.kind), std::back_inserter(words));
  return words;
}

/// Flags by what stands behind them. A name that means different things to different verbs is
/// taken as a file.
std::map<ArgumentKind, std::vector<std::string>> flags_by_kind(
    const std::vector<Command>& commands) {
  std::map<std::string, ArgumentKind> kinds;
  for (const auto& command : commands) {
    for (const auto& flag : command.flags) {
      for (const auto& name : flag.names) {
        const auto [place, is_new] = kinds.emplace(name, flag.kind);
        if (!is_new && place->second != flag.kind) place->second = ArgumentKind::file;
      }
    }
  }
  std::map<ArgumentKind, std::vector<std::string>> flags;
  for (const auto& [name, kind] : kinds) flags[kind].push_back(name);
  return flags;
}

/// Flags of a verb; those of the program stand behind every verb as well.
std::vector<Flag> flags_of(const Command& command, const Command& program) {
  auto flags = command.flags;
  if (!command.path.empty()) {
    for (const auto& flag : program.flags)
      if (std::ranges::find(flag.names, "--version") == flag.names.end()) flags.push_back(flag);
  }
  return flags;
}

std::string bash_case(const Command& command, const Command& program) {
  std::set<std::string> flags;
  for (const auto& flag : flags_of(command, program))
    flags.insert(flag.names.begin(), flag.names.end());
  auto words = command.verbs;
  std::ranges::copy(argument_words(command), std::back_inserter(words));
  return fmt::format("    '{}') flags='{}' words='{}' files={} ;;\n", place_of(command),
                     fmt::join(flags, " "), fmt::join(words, " "), takes_files(command) ? 1 : 0);
}

std::string bash_values(const std::vector<Command>& commands) {
  std::string text;
  for (const auto& [kind, names] : flags_by_kind(commands)) {
    if (kind == ArgumentKind::nothing) continue;
    text += fmt::format("    {}) flags='' words='{}' files={} ;;\n", fmt::join(names, " | "),
                        fmt::join(offered(kind), " "), kind == ArgumentKind::file ? 1 : 0);
  }
  return text;
}

/// Safe between apostrophes.
std::string in_apostrophes(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result;
}

/// An entry of zsh's _describe: the word, a colon, what it means.
std::string described(const std::string& word, std::string_view description) {
  std::string escaped;
  for (const char c : word) {
    if (c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("'{}:{}'", in_apostrophes(escaped), in_apostrophes(description));
}

std::string_view description_of(const std::vector<Command>& commands, const Command& above,
                                const std::string& verb) {
  auto path = above.path;
  path.push_back(verb);
  const auto found = std::ranges::find(commands, path, &Command::path);
  return found == commands.end() ? std::string_view() : found->description;
}

std::string zsh_case(const std::vector<Command>& commands, const Command& command) {
  std::vector<std::string> flags;
  for (const auto& flag : flags_of(command, commands.front()))
    for (const auto& name : flag.names) flags.push_back(described(name, flag.description));
  std::vector<std::string> words;
  for (const auto& verb : command.verbs)
    words.push_back(described(verb, description_of(commands, command, verb)));
  for (const auto& word : argument_words(command)) words.push_back(described(word, ""));
  return fmt::format("    '{}')\n      flags=({})\n      words_here=({})\n      files={} ;;\n",
                     place_of(command), fmt::join(flags, " "), fmt::join(words, " "),
                     takes_files(command) ? 1 : 0);
}

std::string zsh_values(const std::vector<Command>& commands) {
  std::string text;
  for (const auto& [kind, names] : flags_by_kind(commands)) {
    if (kind == ArgumentKind::nothing) continue;
    text += fmt::format("    ({}) flags=() words_here=({}) files={} ;;\n", fmt::join(names, "|"),
                        fmt::join(offered(kind), " "), kind == ArgumentKind::file ? 1 : 0);
  }
  return text;
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string text = fmt::format(
      R"(# Completes fleetfit's command lines in bash; written by: fleetfit completion bash
_fleetfit() {{
  local place= word flags= words= files=0 current=${{COMP_WORDS[COMP_CWORD]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place/$word" in
      {}) place="$place/$word" ;;
    esac
  done
  case "$place" in
)",
      places(commands));
  for (const auto& command : commands) text += bash_case(command, commands.front());
  text += R"(  esac
  # What stands behind a flag.
  case "${COMP_WORDS[COMP_CWORD-1]}" in
)";
  text += bash_values(commands);
  text += R"(  esac
  COMPREPLY=()
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if ((files)); then
    compopt -o filenames 2>/dev/null
    local found
    while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen -f -- "$current")
  fi
}
complete -F _fleetfit fleetfit
)";
  return text;
}

std::string zsh_completion(const std::vector<Command>& commands) {
  std::string text = fmt::format(R"(#compdef fleetfit
# Completes fleetfit's command lines in zsh; written by: fleetfit completion zsh
_fleetfit() {{
  local place= word
  local -a flags words_here
  local -i files=0
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$place/$word" in
      {}) place="$place/$word" ;;
    esac
  done
  case "$place" in
)",
                                 places(commands));
  for (const auto& command : commands) text += zsh_case(commands, command);
  text += R"(  esac
  # What stands behind a flag.
  case "${words[CURRENT-1]}" in
)";
  text += zsh_values(commands);
  text += R"(  esac
  if [[ "${words[CURRENT]}" == -* ]]; then
    _describe -o 'flag' flags
    return
  fi
  (( $#words_here )) && _describe 'word' words_here
  (( files )) && _files
  return 0
}
if [[ "${funcstack[1]}" == _fleetfit ]]; then
  _fleetfit "$@"
else
  compdef _fleetfit fleetfit
fi
)";
  return text;
}

void add_completion(CLI::App& program, Context& context) {
  auto* completion =
      program.add_subcommand("completion", "Write a script that completes command lines");
  completion->require_subcommand(1);
  for (const auto& [shell, script] :
       {std::pair("bash", &bash_completion), std::pair("zsh", &zsh_completion)}) {
    auto* verb = completion->add_subcommand(shell, fmt::format("For {}", shell));
    verb->footer(fmt::format("Example:\n  source <(fleetfit completion {})", shell));
    context.on(verb, [&program, &context, script]() -> Result<Verdict> {
      context.print(script(command_tree(program)));
      return done();
    });
  }

  // For the build, which writes the manual's page with it.
  auto [man, date] =
      add_verb<std::string>(program, "man-page", "Write the manual's page fleetfit(1)");
  man->group("");
  man->add_option("--date", *date, "The page's date")->required();
  context.on(man, [&program, &context, date]() -> Result<Verdict> {
    context.print(man_page(command_tree(program), *date));
    return done();
  });
}

}  // namespace fleetfit::cli
