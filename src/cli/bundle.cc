#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/bundles.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::cli {
namespace {

std::string bytes_text(std::uintmax_t bytes) { return with_prefix(bytes, "B"); }

std::string count_text(std::int64_t count) { return with_prefix(count); }

/// "15625", "2.26e+21".
std::string subnets_text(const std::string& exact, double approximate) {
  constexpr std::size_t kLong = 12;
  return exact.size() <= kLong ? exact : fmt::format("{:.3g}", approximate);
}

// --- show ---

std::string kind_text(const app::BranchSummary& branch) {
  if (branch.kind == elastic::BranchKind::shrunk) return fmt::format("shrunk to {}", branch.share);
  if (branch.kind == elastic::BranchKind::merged)
    return fmt::format("for {} blocks{}", branch.span,
                       branch.share < 1 ? fmt::format(", shrunk to {}", branch.share) : "");
  return std::string(elastic::to_string(branch.kind));
}

std::string model_text(const app::ElasticModelSummary& model) {
  TextTable table(
      "block {} | name | branch | what it is | MACs {} | params {} | weights {} | output");
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const auto& block = model.blocks[b];
    for (const auto& branch : block.branches) {
      const bool first = &branch == &block.branches.front();
      table.add(first ? std::to_string(b) : "", first ? block.name : "", branch.code,
                kind_text(branch), count_text(branch.macs), count_text(branch.params),
                bytes_text(static_cast<std::uintmax_t>(branch.weight_bytes)),
                first ? fmt::format("{}", fmt::join(block.output, "x")) : "");
    }
  }
  return fmt::format("\n{}: {} multiply-accumulates, {} parameters\n{}", model.name,
                     count_text(model.macs), count_text(model.params), table.text());
}

std::string samples_text(const std::vector<elastic::AccuracySample>& samples) {
  if (samples.empty()) return "";
  TextTable table("MACs {:.0f} % | accuracy {:.2f} % | subnet");
  for (const auto& s : samples) table.add(100 * s.mac_share, 100 * s.accuracy, s.subnet);
  return "\n" + table.text();
}

std::string summary_text(const app::BundleSummary& summary) {
  const auto& info = summary.info;
  std::string text = fmt::format("bundle     {} by {}, {} in {} sections, signature: {}\n",
                                 summary.file, info.created_by, bytes_text(summary.check.bytes),
                                 summary.check.sections.size(), summary.check.signature);
  text +=
      fmt::format("subnets    {}\n", subnets_text(summary.subnets, summary.subnets_approximate));
  if (!info.data.empty())
    text += fmt::format("data       {}, {} classes\n", info.data, info.classes.size());
  if (info.model_bytes > 0)
    text += fmt::format(
        "size       {:.2f} times the original's file\n",
        static_cast<double>(summary.check.bytes) / static_cast<double>(info.model_bytes));
  for (const auto& model : summary.models) text += model_text(model);
  return text + samples_text(info.samples);
}

void add_show(CLI::App& bundle, Context& context) {
  auto [verb, file] =
      add_verb<std::string>(bundle, "show", "Say what is in a bundle: blocks, branches, subnets");
  verb->add_option("FILE", *file, "A bundle (.ffb)")->required();
  verb->footer("Example:\n  fleetfit bundle show resnet20.ffb");
  context.on(verb,
             [file, &context] { return context.show(app::show_bundle(*file), summary_text); });
}

// --- verify and sign ---

std::string verified_text(const app::VerifiedBundle& bundle) {
  return fmt::format("{}: {} sections, {}, all as they were written; signature: {}\n", bundle.file,
                     bundle.check.sections.size(), bytes_text(bundle.check.bytes),
                     bundle.check.signature);
}

struct KeyFlags {
  std::string file;
  std::string key;
};

void add_verify(CLI::App& bundle, Context& context) {
  auto [verb, flags] =
      add_verb<KeyFlags>(bundle, "verify", "Check that a bundle is whole, and who signed it");
  verb->add_option("FILE", flags->file, "A bundle (.ffb)")->required();
  verb->add_option("--key", flags->key,
                   "Public key (Ed25519, PEM): refuse a bundle that is not signed by it")
      ->type_name("PEM");
  verb->footer(
      "Example:\n  fleetfit bundle verify resnet20.ffb\n  fleetfit bundle verify resnet20.ffb "
      "--key public.pem");
  context.on(verb, [flags, &context] {
    std::optional<std::filesystem::path> key;
    if (!flags->key.empty()) key = flags->key;
    return context.show(app::verify_bundle(flags->file, key), verified_text);
  });
}

void add_sign(CLI::App& bundle, Context& context) {
  auto [verb, flags] = add_verb<KeyFlags>(bundle, "sign", "Sign a bundle in its place");
  verb->add_option("FILE", flags->file, "A bundle (.ffb)")->required();
  verb->add_option("--key", flags->key, "Private key (Ed25519, PEM without a passphrase)")
      ->type_name("PEM")
      ->required();
  verb->footer(
      "Example:\n  openssl genpkey -algorithm ed25519 -out private.pem\n  openssl pkey -in "
      "private.pem -pubout -out public.pem\n  fleetfit bundle sign resnet20.ffb --key private.pem");
  context.on(verb, [flags, &context] {
    return context.show(app::sign_bundle(flags->file, flags->key), verified_text);
  });
}

// --- extract ---

std::string extracted_text(const app::WrittenSubnet& subnet) {
  return fmt::format("{}: {}, {} multiply-accumulates, {} parameters, {}\n", subnet.file,
                     subnet.subnet, count_text(subnet.macs), count_text(subnet.params),
                     bytes_text(subnet.bytes));
}

void add_extract(CLI::App& bundle, Context& context) {
  struct Flags {
    std::string file;
    std::string subnet;
    std::string output;
  };
  auto [verb, flags] =
      add_verb<Flags>(bundle, "extract", "Write a subnet as an ordinary ONNX file");
  verb->add_option("FILE", flags->file, "A bundle (.ffb)")->required();
  verb->add_option("--subnet", flags->subnet,
                   "Which, as adapt and show write it: o-s1-m1; without: the original")
      ->type_name("CODE");
  verb->add_option("-o,--output", flags->output, "The ONNX file to write")->required();
  verb->footer(
      "Example:\n  fleetfit bundle extract resnet20.ffb -o original.onnx\n  fleetfit bundle "
      "extract "
      "resnet20.ffb --subnet o-s1-m1-o-o-o-s2 -o small.onnx");
  context.on(verb, [flags, &context] {
    std::optional<std::string> subnet;
    if (!flags->subnet.empty()) subnet = flags->subnet;
    return context.show(app::extract_subnet(flags->file, subnet, flags->output), extracted_text);
  });
}

// --- join and draft ---

std::string written_text(const app::WrittenBundle& bundle) {
  return fmt::format("{}: {}, {} models, {} blocks, {} branches, {} subnets\n", bundle.file,
                     bytes_text(bundle.bytes), bundle.models, bundle.blocks, bundle.branches,
                     subnets_text(bundle.subnets, bundle.subnets_approximate));
}

void add_join(CLI::App& bundle, Context& context) {
  struct Flags {
    std::vector<std::string> files;
    std::string output;
  };
  auto [verb, flags] =
      add_verb<Flags>(bundle, "join", "Put the models of several bundles into one");
  verb->add_option("FILES", flags->files, "Bundles (.ffb)")->required();
  verb->add_option("-o,--output", flags->output, "The bundle to write")->required();
  verb->footer("Example:\n  fleetfit bundle join resnet20.ffb mobilenet.ffb -o both.ffb");
  context.on(verb, [flags, &context] {
    return context.show(
        app::join_bundles({flags->files.begin(), flags->files.end()}, flags->output), written_text);
  });
}

void add_draft(CLI::App& bundle, Context& context) {
  struct Flags {
    std::string model;
    std::string output;
    elastic::ExpandOptions options;
  };
  auto [verb, flags] =
      add_verb<Flags>(bundle, "draft",
                      "Write an untrained bundle, to look at blocks and latencies before elastify");
  verb->add_option("MODEL", flags->model, "A trained model")->required();
  verb->add_option("-o,--output", flags->output, "The bundle to write")->required();
  verb->add_option("--granularity", flags->options.granularity,
                   "Most parameters of a block, as a share of the network's");
  verb->add_option("--merge", flags->options.merge,
                   "Most neighbours that a merged branch stands for beside its own block");
  verb->add_option("--shrink", flags->options.shrink, "Shares of channels that branches keep")
      ->delimiter(',');
  verb->add_option("--merge-shrink", flags->options.merge_shrink,
                   "Share of channels that a second branch for the most blocks keeps; 1: none");
  verb->footer("Example:\n  fleetfit bundle draft resnet20.onnx -o draft.ffb --merge 0");
  context.on(verb, [flags, &context] {
    flags->options.seed = context.flags.seed;
    return context.show(
        app::draft_bundle(flags->model, flags->options, core::SystemClock(), flags->output),
        written_text);
  });
}

}  // namespace

void add_bundle(CLI::App& program, Context& context) {
  auto& bundle =
      add_group(program, context, "bundle", "Look into elastic models, check and sign them",
                "Example:\n  fleetfit bundle show resnet20.ffb");
  add_show(bundle, context);
  add_verify(bundle, context);
  add_sign(bundle, context);
  add_extract(bundle, context);
  add_join(bundle, context);
  add_draft(bundle, context);
}

}  // namespace fleetfit::cli
