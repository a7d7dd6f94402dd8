#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/spaces.h"

namespace fleetfit::cli {
namespace {

constexpr std::size_t kLongNumber = 12;
constexpr std::size_t kShownChoices = 12;

/// "15625", "2.26e+21".
std::string designs_text(const app::SpaceSummary& space) {
  if (space.designs.size() <= kLongNumber) return space.designs;
  return fmt::format("{:.3g}", std::strtod(space.designs.c_str(), nullptr));
}

std::string spaces_text(const std::vector<app::SpaceSummary>& spaces) {
  TextTable table("space | designs {} | key columns | what it is");
  for (const auto& space : spaces) {
    table.add(space.name, designs_text(space), fmt::format("{}", fmt::join(space.columns, ",")),
              space.description);
  }
  return table.text();
}

std::string choices_text(const std::vector<std::string>& choices) {
  if (choices.size() <= kShownChoices) return fmt::format("{}", fmt::join(choices, " "));
  return fmt::format("{} {} … {} ({})", choices[0], choices[1], choices.back(), choices.size());
}

std::string details_text(const app::SpaceDetails& details) {
  const auto& space = details.space;
  std::string text = fmt::format("{}: {}\n\n", space.name, space.description);
  text += fmt::format("designs      {}\nkey columns  {}\nexample      {}\n", space.designs,
                      fmt::join(space.columns, ", "), details.example);
  std::vector<std::string> encodings;
  for (const auto& [name, features] : details.encodings)
    encodings.push_back(fmt::format("{} ({})", name, features));
  text += fmt::format("encodings    {}\n\n", fmt::join(encodings, ", "));
  TextTable table("gene | choices");
  for (const auto& [name, choices] : details.genes) table.add(name, choices_text(choices));
  return text + table.text();
}

std::string cells_text(const app::DesignText& text) {
  std::vector<std::string> cells;
  for (const auto& [column, cell] : text.cells) cells.push_back(fmt::format("{} {}", column, cell));
  return fmt::format("{}", fmt::join(cells, ", "));
}

std::string design_text(const app::DesignSummary& design) {
  std::string text = fmt::format("design     {}\n", design.text.design);
  if (design.text.cells.size() > 1) text += fmt::format("cells      {}\n", cells_text(design.text));
  text += fmt::format("input      {}\n", fmt::join(design.input, " x "));
  text += fmt::format("size       {} FLOPs, {} parameters, activations of {}\n",
                      with_prefix(design.flops), with_prefix(design.params),
                      with_prefix(design.peak_activation_bytes, "B"));
  text += fmt::format("operators  {}\n", design.operators);
  if (design.live_slots < design.slots) {
    text += fmt::format("live       {} of {} places; the others are empty or work for nothing\n",
                        design.live_slots, design.slots);
  }
  std::vector<std::string> counts;
  for (const auto& [kind, count] : design.counts)
    counts.push_back(fmt::format("{} {}", kind, count));
  return text + fmt::format("counts     {}\n", fmt::join(counts, ", "));
}

std::string sample_text(const std::vector<app::DesignText>& designs) {
  std::string text;
  for (const auto& design : designs) text += design.design + "\n";
  return text;
}

void add_list(CLI::App& space, Context& context) {
  auto* verb = space.add_subcommand("list", "List the spaces");
  verb->footer("Example:\n  fleetfit space list");
  context.on(verb, [&context] { return context.show(app::list_spaces(), spaces_text); });
}

void add_show(CLI::App& space, Context& context) {
  struct Flags {
    std::string space;
    std::string design;
    std::string output;
  };
  auto [verb, flags] = add_verb<Flags>(space, "show", "Describe a space, or one of its designs");
  verb->add_option("NAME", flags->space, "The space")->required();
  auto* design =
      verb->add_option("DESIGN", flags->design,
                       "A design's text, or the cells of its key columns: 753…,346…,22223,204");
  verb->add_option("-o", flags->output, "Write the design's network as ONNX")
      ->type_name("FILE.onnx")
      ->needs(design);
  verb->footer(
      "Example:\n  fleetfit space show fbnet\n  fleetfit space show nasbench201 421211 -o "
      "cell.onnx");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    if (flags->design.empty()) return context.show(app::show_space(flags->space), details_text);
    std::optional<std::filesystem::path> file;
    if (!flags->output.empty()) file = flags->output;
    return context.show(app::show_design(flags->space, flags->design, file), design_text);
  });
}

void add_sample(CLI::App& space, Context& context) {
  struct Flags {
    app::DesignSampleRequest request;
    std::string output;
  };
  auto [verb, flags] = add_verb<Flags>(space, "sample", "Draw random designs, those of --seed");
  auto& request = flags->request;
  verb->add_option("NAME", request.space, "The space")->required();
  verb->add_option("--samples", request.samples, "How many designs")
      ->required()
      ->check(CLI::Range(1, 10'000'000));
  verb->add_option("--first", request.first, "Number of the first design, from 0")
      ->check(CLI::Range(0, 10'000'000));
  verb->add_option("-o", flags->output, "Write a table of the designs with its key columns alone")
      ->type_name("FILE.csv");
  verb->footer("Example:\n  fleetfit space sample ofa-mbv3 --samples 20 -o designs.csv");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    flags->request.seed = context.flags.seed;
    const auto designs = app::sample_space(flags->request);
    if (designs && !flags->output.empty()) {
      FLEETFIT_TRY(app::write_designs(*designs, flags->output));
    }
    return context.show(designs, sample_text);
  });
}

}  // namespace

void add_space(CLI::App& program, Context& context) {
  auto& space = add_group(program, context, "space", "Look at spaces of networks and their designs",
                          "Example:\n  fleetfit space list");
  add_list(space, context);
  add_show(space, context);
  add_sample(space, context);
}

}  // namespace fleetfit::cli
