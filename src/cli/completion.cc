#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command_tree.h"
#include "cli/program.h"

namespace fleetfit::cli {
namespace {

using Writer = std::string (*)(const std::vector<Command>&);

void add_writer(CLI::App& verb, const CLI::App& program, Context& context, Writer writer) {
  verb.callback([&program, &context, writer] {
    context.action = [&program, &context, writer]() -> Result<int> {
      context.print(writer(command_tree(program)));
      return 0;
    };
  });
}

}  // namespace

void add_completion(CLI::App& program, Context& context) {
  auto* completion =
      program.add_subcommand("completion", "Write a script that completes command lines");
  completion->require_subcommand(1);
  auto* bash = completion->add_subcommand("bash", "For bash");
  bash->footer("Example:\n  source <(fleetfit completion bash)");
  add_writer(*bash, program, context, &bash_completion);
  auto* zsh = completion->add_subcommand("zsh", "For zsh");
  zsh->footer("Example:\n  source <(fleetfit completion zsh)");
  add_writer(*zsh, program, context, &zsh_completion);

  // For the build, which writes the manual's page with it.
  auto* man = program.add_subcommand("man-page", "Write the manual's page fleetfit(1)");
  man->group("");
  const auto date = std::make_shared<std::string>();  // shared by the verb and its action
  man->add_option("--date", *date, "The page's date")->required();
  man->callback([&program, &context, date] {
    context.action = [&program, &context, date]() -> Result<int> {
      context.print(man_page(command_tree(program), *date));
      return 0;
    };
  });
}

}  // namespace fleetfit::cli
