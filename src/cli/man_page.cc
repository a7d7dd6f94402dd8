#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "cli/command_tree.h"
#include "fleetfit/core/version.h"

namespace fleetfit::cli {
namespace {

/// Text that troff shows as it is: hyphens stay hyphens, and no line is taken for a request.
std::string plain(std::string_view text) {
  std::string result;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) result += "\\&";
    at_begin = c == '\n';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

std::string words_of(const Command& command) {
  return command.path.empty() ? "fleetfit"
                              : fmt::format("fleetfit {}", fmt::join(command.path, " "));
}

std::string synopsis(const Command& command) {
  std::string text = fmt::format(".B {}\n", plain(words_of(command)));
  text += "[\\fIflags\\fR]";
  for (const auto& argument : command.arguments) {
    const auto name = fmt::format("\\fI{}\\fR{}", plain(argument.names.front()),
                                  argument.is_repeated ? "..." : "");
    text += argument.is_required ? " " + name : fmt::format(" [{}]", name);
  }
  return text + "\n";
}

/// A paragraph with a tag, for a flag or an argument.
std::string entry(const Flag& flag) {
  std::vector<std::string> names;
  for (const auto& name : flag.names) names.push_back(fmt::format("\\fB{}\\fR", plain(name)));
  std::string text = fmt::format(".TP\n{}", fmt::join(names, ", "));
  const bool is_argument = !flag.names.front().starts_with('-');
  if (!flag.placeholder.empty() && !is_argument)
    text += fmt::format(" \\fI{}\\fR", plain(flag.placeholder));
  text += "\n" + plain(flag.description);
  if (!flag.preset.empty()) text += fmt::format(" (by default {})", plain(flag.preset));
  if (flag.is_required) text += " (required)";
  return text + "\n";
}

/// Footers are paragraphs and, behind "Example:", lines to be shown as they are.
std::string footer(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  std::string line;
  bool verbatim = false;
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    const bool is_indented = line.starts_with("  ");
    if (is_indented && !verbatim) result += ".PP\n.nf\n";
    if (!is_indented) result += verbatim ? ".fi\n.PP\n" : ".PP\n";
    verbatim = is_indented;
    result += plain(line) + "\n";
  }
  return verbatim ? result + ".fi\n" : result;
}

std::string section(const Command& command) {
  std::string text = fmt::format(".SS {}\n{}\n.PP\n{}", plain(words_of(command)),
                                 plain(command.description), synopsis(command));
  for (const auto& argument : command.arguments) text += entry(argument);
  for (const auto& flag : command.flags) {
    if (flag.names.back() == "--help") continue;
    text += entry(flag);
  }
  return text + footer(command.footer);
}

constexpr std::string_view kEnd = R"(.SH EXIT STATUS
.TP
0
Done.
.TP
1
The work failed, or a goal was not met: a budget that cannot be kept, a measurement that did not settle. What was found so far is printed.
.TP
2
Bad input or usage; one line on the standard error stream names the file, node or field.
.SH ENVIRONMENT
.TP
\fBFLEETFIT_RUNTIMES\fR
The folder of programs that drive other runtimes, if they are not where they were installed.
.SH FILES
.TP
\fIfleetfit.db\fR
The store, in the working folder unless
.B \-\-store
names another one.
)";

}  // namespace

std::string man_page(const std::vector<Command>& commands, std::string_view date) {
  const auto& program = commands.front();
  std::string text = fmt::format(
      ".TH FLEETFIT 1 \"{}\" \"fleetfit {}\" \"User Commands\"\n.SH NAME\nfleetfit \\- fits a "
      "neural "
      "network to a fleet of edge devices\n.SH SYNOPSIS\n.B fleetfit\n[\\fIflags\\fR] \\fIverb\\fR "
      "[\\fIarguments\\fR]\n.SH DESCRIPTION\n{}\n{}.SH FLAGS OF EVERY VERB\n",
      date, plain(core::version()), plain(program.description), footer(program.footer));
  for (const auto& flag : program.flags) text += entry(flag);
  text += ".SH VERBS\n";
  for (std::size_t i = 1; i < commands.size(); ++i) text += section(commands[i]);
  return text.append(kEnd);
}

}  // namespace fleetfit::cli
