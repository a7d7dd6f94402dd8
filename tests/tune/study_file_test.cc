#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fleetfit/core/file.h"
#include "fleetfit/tune/study.h"
#include "tests/source_dir.h"

namespace fleetfit::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kStudy = R"(name: fashion
workload:
  command: [python3, train.py]
parameters:
  model:    {layers: {values: [18, 34, 50]}}
  training: {batch_size: {range: [32, 512], integer: true, log: true}, learning_rate: {range: [1.0e-4, 1.0e-1], log: true}}
  system:   {threads: {values: [1, 2]}}
inference:
  devices: [local]
  parameters: {batch_size: {range: [1, 32], integer: true}, cores: {values: [1, 2]}}
  scenario: {kind: single}
  objective: latency
objective: {kind: ratio, of: time}
constraints: {accuracy: 0.8, latency_ms: {local: 20}}
budget: {kind: multi, min_epochs: 2, max_epochs: 10, min_data: 0.1, eta: 2, max_trials: 64}
algorithm: {model: bohb, inference: grid}
)";

/// The study with a part of its text replaced.
std::string study_with(std::string_view old, std::string_view replacement) {
  std::string text(kStudy);
  const auto at = text.find(old);
  if (at == std::string::npos) return "the test replaces what is not there";
  return text.replace(at, old.size(), replacement);
}

std::string error_of(std::string_view text) {
  const auto study = parse_study(text, "a.yaml");
  if (study) return "";
  EXPECT_EQ(study.error().code, ErrorCode::invalid_input);
  return study.error().message;
}

std::string error_with(std::string_view old, std::string_view replacement) {
  return error_of(study_with(old, replacement));
}

TEST(StudyFile, HoldsWhatItSays) {
  const Study study = parse_study(kStudy, "a.yaml").value();

  EXPECT_EQ(study.name, "fashion");
  EXPECT_THAT(study.workload.command, ElementsAre("python3", "train.py"));
  EXPECT_FALSE(study.workload.writes_untrained);
  ASSERT_EQ(study.parameters.size(), 4U);
  const Parameter& layers = study.parameters.all()[0];
  EXPECT_EQ(layers.group, Group::model);
  EXPECT_THAT(layers.values, ElementsAre(Value(std::int64_t{18}), Value(std::int64_t{34}),
                                         Value(std::int64_t{50})));
  EXPECT_TRUE(layers.ordered);
  const Parameter& rate = study.parameters.all()[2];
  EXPECT_EQ(rate.name, "learning_rate");
  EXPECT_EQ(rate.low, 1e-4);
  EXPECT_EQ(rate.high, 1e-1);
  EXPECT_TRUE(rate.log && !rate.integer);
  EXPECT_EQ(study.parameters.all()[3].group, Group::system);
  ASSERT_TRUE(study.inference);
  EXPECT_THAT(study.inference->devices, ElementsAre("local"));
  EXPECT_EQ(study.inference->parameters.all()[0].group, Group::inference);
  EXPECT_THAT(study.objective.goals, ElementsAre(Goal{.metric = Metric::ratio_of_time}));
  EXPECT_EQ(study.constraints.accuracy, 0.8);
  EXPECT_THAT(study.constraints.devices,
              ElementsAre(Constraints::PerDevice{"local", Metric::latency, 20}));
  EXPECT_EQ(study.budget, (BudgetOptions{.kind = BudgetKind::multi,
                                         .min_epochs = 2,
                                         .max_epochs = 10,
                                         .min_data = 0.1,
                                         .eta = 2,
                                         .max_trials = 64}));
  EXPECT_EQ(study.algorithm, (Algorithm{.sampler = SamplerKind::bohb,
                                        .scheduler = SchedulerKind::hyperband,
                                        .inference = SamplerKind::grid}));
  EXPECT_EQ(study.seed, 1U);
}

TEST(StudyFile, EveryExampleOfTheManualIsAStudy) {
  const std::string page = core::read_file(source_dir() + "/docs/formats/study.md").value();
  const std::string_view begin = "```yaml\n";
  std::vector<Study> studies;
  for (auto at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const auto text = at + begin.size();
    const auto study =
        parse_study(std::string_view(page).substr(text, page.find("```", text) - text), "study.md");
    ASSERT_TRUE(study) << study.error().message;
    studies.push_back(*study);
  }
  ASSERT_EQ(studies.size(), 4U);

  const Study& conditional = studies[1];
  EXPECT_EQ(conditional.seed, 7U);
  EXPECT_TRUE(conditional.workload.writes_untrained);
  EXPECT_EQ(conditional.workload.timeout_s, 3600);
  EXPECT_EQ(conditional.workload.memory_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(conditional.parameters.all()[2].when,
            (Parameter::Condition{.parameter = 1, .choices = {0}}));
  EXPECT_EQ(conditional.parameters.all()[3].when,
            (Parameter::Condition{.parameter = 1, .choices = {0}}));
  EXPECT_EQ(conditional.algorithm.sampler, SamplerKind::tpe);
  EXPECT_EQ(conditional.algorithm.scheduler, SchedulerKind::asha);

  const Study& pareto = studies[2];
  EXPECT_THAT(pareto.objective.goals,
              ElementsAre(Goal{.metric = Metric::accuracy, .maximize = true},
                          Goal{.metric = Metric::latency, .device = "phone"}));
  EXPECT_EQ(pareto.objective.count(), 2U);
  EXPECT_THAT(pareto.constraints.devices,
              ElementsAre(Constraints::PerDevice{"local", Metric::latency, 50},
                          Constraints::PerDevice{"phone", Metric::latency, 50},
                          Constraints::PerDevice{"phone", Metric::energy, 5}));
  EXPECT_EQ(pareto.inference->scenario,
            (Scenario{.kind = ScenarioKind::server, .samples = 32, .period_ms = 100}));

  const Study& weighted = studies[3];
  EXPECT_TRUE(weighted.objective.weighted_sum);
  EXPECT_EQ(weighted.objective.count(), 1U);
  EXPECT_THAT(
      weighted.objective.goals,
      ElementsAre(Goal{.metric = Metric::other, .name = "f1", .maximize = true, .weight = 10},
                  Goal{.metric = Metric::training_time, .weight = 0.01}));
  EXPECT_EQ(weighted.algorithm.scheduler, SchedulerKind::median);
}

TEST(StudyFile, MayLeaveOutWhatHasADefault) {
  const Study study = parse_study(R"(
name: whole
workload: {command: [python3, /tmp/train.py]}
parameters:
  model: {layers: {values: [18, 34, 50]}}
  training: {batch_size: {range: [32, 512], integer: true, log: true}}
inference:
  devices: [local]
  parameters: {batch_size: {values: [1, 4]}}
  scenario: {kind: single}
  objective: latency
objective: {kind: ratio, of: time}
constraints: {accuracy: 0.7}
budget: {kind: multi, min_epochs: 2, max_epochs: 10, min_data: 0.1, eta: 2, max_trials: 40}
algorithm: {model: bohb, inference: grid}
)",
                                  "a.yaml")
                          .value();
  EXPECT_EQ(study.budget.max_trials, 40U);

  const Study least =
      parse_study(
          "{name: a, workload: {command: [a]}, parameters: {model: {x: {range: [0, 1]}}}, "
          "objective: {minimize: loss}, budget: {max_epochs: 3}, constraints: }",
          "a.yaml")
          .value();
  EXPECT_EQ(least.budget, (BudgetOptions{.max_epochs = 3}));
  EXPECT_EQ(least.algorithm, Algorithm{});
  EXPECT_FALSE(least.inference);
}

TEST(StudyFile, UnknownAndMissingKeysAreNamedWithTheirLine) {
  EXPECT_THAT(error_with("algorithm:", "algoritm:"),
              StartsWith("a.yaml:16: algoritm: there is no such key"));
  EXPECT_THAT(error_with("eta: 2", "etha: 2"),
              StartsWith("a.yaml:15: budget.etha: there is no such key"));
  EXPECT_THAT(error_with("integer: true, log", "whole: true, log"),
              StartsWith("a.yaml:6: parameters.training.batch_size.whole: there is no such key"));
  EXPECT_THAT(error_with("name: fashion", ""), StartsWith("a.yaml:2: name is missing"));
  EXPECT_THAT(error_with("  devices: [local]\n", ""),
              StartsWith("a.yaml:8: inference: devices is missing"));
  EXPECT_THAT(error_with("max_epochs: 10, ", ""),
              StartsWith("a.yaml:15: budget: max_epochs is missing"));
  EXPECT_THAT(error_of(""), StartsWith("a.yaml:1: expected keys with values, found nothing"));
  EXPECT_THAT(error_of("[1, 2]"), StartsWith("a.yaml:1: expected keys with values, found a list"));
}

TEST(StudyFile, WrongTypesAreNamed) {
  EXPECT_THAT(error_with("[python3, train.py]", "python3 train.py"),
              StartsWith("a.yaml:3: workload.command: expected a list such as"));
  EXPECT_THAT(error_with("max_epochs: 10", "max_epochs: ten"),
              StartsWith(R"(a.yaml:15: budget.max_epochs: expected a whole number, found "ten")"));
  EXPECT_THAT(error_with("max_epochs: 10", "max_epochs: 2.5"),
              HasSubstr("expected a whole number"));
  EXPECT_THAT(error_with("max_epochs: 10", "max_epochs: 99999999999999999999"),
              HasSubstr("expected a whole number"));
  EXPECT_THAT(error_with("eta: 2", "eta: .nan"), HasSubstr("budget.eta: expected a finite number"));
  EXPECT_THAT(error_with("eta: 2", "eta: 1e999"),
              HasSubstr("budget.eta: expected a finite number"));
  EXPECT_THAT(error_with("integer: true", "integer: yes"),
              HasSubstr("batch_size.integer: expected true or false"));
  EXPECT_THAT(error_with("fashion", "{a: b}"),
              StartsWith("a.yaml:1: name: expected a text, found keys"));
  EXPECT_THAT(error_with("fashion", "a/b"), HasSubstr("without a slash"));
  EXPECT_THAT(error_with("kind: multi", "kind: both"),
              HasSubstr("budget.kind: expected one of multi, epochs, data"));
  EXPECT_THAT(error_with("objective: latency", "objective: speed"),
              HasSubstr("inference.objective: expected one of latency"));
  EXPECT_THAT(error_with("model: bohb", "model: magic"),
              HasSubstr("algorithm.model: expected one of bohb"));
  EXPECT_THAT(error_with("model: bohb", "model: {sampler: tpe}"),
              HasSubstr("algorithm.model: scheduler is missing"));
  EXPECT_THAT(error_with("algorithm:", "seed: -1\nalgorithm:"),
              HasSubstr("seed: -1 is less than 0"));
  EXPECT_THAT(error_with("layers: {values: [18, 34, 50]}", "layers: [18, 34]"),
              StartsWith("a.yaml:5: parameters.model.layers: expected keys"));
  EXPECT_THAT(error_with("[18, 34, 50]", "[18, [34]]"),
              HasSubstr("layers.values[1]: expected a number or a text"));
}

TEST(StudyFile, ParametersWithoutMeaningAreNamed) {
  EXPECT_THAT(
      error_with("[32, 512]", "[512, 32]"),
      StartsWith(
          "a.yaml:6: parameters.training.batch_size.range: the range from 512 to 32 is empty"));
  EXPECT_THAT(error_with("[32, 512]", "[0, 512]"),
              HasSubstr("batch_size.range: a logarithm needs"));
  EXPECT_THAT(error_with("[32, 512]", "[32.5, 512]"), HasSubstr("have to be whole numbers"));
  EXPECT_THAT(error_with("[32, 512]", "[32]"), HasSubstr("expected two numbers"));
  EXPECT_THAT(error_with("[18, 34, 50]", "[18, 34, 18]"), HasSubstr("the value 18 occurs twice"));
  EXPECT_THAT(error_with("[18, 34, 50]", "[]"), HasSubstr("a value at least"));
  EXPECT_THAT(error_with("{values: [18, 34, 50]}", "{values: [1], range: [1, 2]}"),
              HasSubstr("expected either values"));
  EXPECT_THAT(error_with("{values: [18, 34, 50]}", "{values: [1], log: true}"),
              HasSubstr("layers.log: there is no such key"));
  EXPECT_THAT(error_with("threads: {", "layers: {"),
              HasSubstr("parameters.system.layers: there is a parameter of this name"));
  EXPECT_THAT(error_with("  system: ", "  inference: "),
              HasSubstr("parameters.inference: there is no such key"));
  EXPECT_THAT(error_of("name: a\nworkload: {command: [a]}\nparameters: {model: {}}\nobjective: "
                       "{maximize: accuracy}\nbudget: {max_epochs: 3}\n"),
              StartsWith("a.yaml:3: parameters: there has to be a parameter"));
}

TEST(StudyFile, ConditionsHaveToNameWhatStandsBefore) {
  const auto with = [](std::string_view when) {
    return error_with("threads: {values: [1, 2]}",
                      "threads: {values: [1, 2], when: " + std::string(when) + "}");
  };
  EXPECT_EQ(with("{layers: [18, 50]}"), "");
  EXPECT_THAT(
      with("{threads: 1}"),
      StartsWith("a.yaml:7: parameters.system.threads.when.threads: there is no parameter"));
  EXPECT_THAT(with("{layers: [19]}"), HasSubstr("when.layers: is none of the parameter's values"));
  EXPECT_THAT(with("{learning_rate: 1}"), HasSubstr("is a range"));
  EXPECT_THAT(with("{layers: 18, batch_size: 3}"), HasSubstr("expected one parameter"));
  EXPECT_THAT(with("{layers: [18, 18]}"), HasSubstr("no value of layers"));
  EXPECT_THAT(with("18"), HasSubstr("expected keys with values"));
}

TEST(StudyFile, ImpossibleBudgetsAreNamed) {
  EXPECT_THAT(error_with("max_epochs: 10", "max_epochs: 1"),
              StartsWith("a.yaml:15: budget.max_epochs: 1 is less than min_epochs (2)"));
  EXPECT_THAT(error_with("min_epochs: 2", "min_epochs: 0"),
              HasSubstr("budget.min_epochs: 0 is less than 1"));
  EXPECT_THAT(error_with("min_data: 0.1", "min_data: 1.5"),
              HasSubstr("budget.min_data: 1.5 is not"));
  EXPECT_THAT(error_with("min_data: 0.1", "min_data: 1e-300"), HasSubstr("budget.min_data"));
  EXPECT_THAT(error_with("eta: 2", "eta: 1"), HasSubstr("budget.eta: 1 is not"));
  EXPECT_THAT(error_with("max_trials: 64", "max_trials: 0"),
              HasSubstr("budget.max_trials: 0 is less than 1"));
}

TEST(StudyFile, WorkloadsAreAProgramOrBuiltIn) {
  EXPECT_THAT(error_with("[python3, train.py]", "[]"), HasSubstr("workload.command: is empty"));
  EXPECT_THAT(error_with("command: [python3, train.py]", "timeout_s: 3"),
              StartsWith("a.yaml:2: workload: expected either command"));
  EXPECT_THAT(error_with("[python3, train.py]", "[a]\n  builtin: b"),
              HasSubstr("expected either command"));
  EXPECT_THAT(error_with("train.py]", "train.py]\n  timeout_s: 0"),
              StartsWith("a.yaml:4: workload.timeout_s: 0 is not above 0"));
  EXPECT_THAT(error_with("train.py]", "train.py]\n  memory: lots"),
              StartsWith("a.yaml:4: workload.memory: \"lots\" is not"));
}

TEST(StudyFile, GoalsOfInferenceNeedInference) {
  const std::string_view without =
      "name: a\nworkload: {command: [a]}\nparameters: {model: {x: {range: [0, 1]}}}\nbudget: "
      "{max_epochs: 3}\n";
  const auto with = [&](std::string_view more) {
    return error_of(std::string(without) + std::string(more));
  };
  EXPECT_EQ(with("objective: {maximize: f1}"), "");
  EXPECT_THAT(with("objective: {kind: ratio, of: time}"),
              StartsWith("a.yaml:5: objective: needs inference"));
  EXPECT_THAT(with("objective: [{maximize: accuracy}, {minimize: latency}]"),
              HasSubstr("objective[1].minimize: needs inference"));
  EXPECT_THAT(with("objective: {maximize: accuracy}\nconstraints: {latency_ms: 3}"),
              StartsWith("a.yaml:6: constraints.latency_ms: needs inference"));
  EXPECT_THAT(with("objective: {maximize: accuracy}\nalgorithm: {mode: hierarchical}"),
              HasSubstr("hierarchical needs inference"));
}

TEST(StudyFile, GoalsHaveToMakeSense) {
  const auto with = [](std::string_view goal) {
    return error_with("{kind: ratio, of: time}", goal);
  };
  EXPECT_THAT(with("{kind: ratio}"), StartsWith("a.yaml:13: objective: of is missing"));
  EXPECT_THAT(with("{kind: ratio, of: luck}"),
              HasSubstr("objective.of: expected one of time, energy"));
  EXPECT_THAT(with("{kind: product, of: []}"), HasSubstr("objective.kind: expected one of ratio"));
  EXPECT_THAT(with("{minimize: latency, device: phone}"),
              HasSubstr("objective.device: phone is none of inference.devices: local"));
  EXPECT_THAT(with("{maximize: accuracy, device: local}"), HasSubstr("only numbers of inference"));
  EXPECT_THAT(with("{maximize: accuracy, minimize: loss}"), HasSubstr("expected maximize"));
  EXPECT_THAT(with("{maximize: accuracy, weight: 2}"),
              HasSubstr("objective.weight: there is no such key"));
  EXPECT_THAT(with("[]"), HasSubstr("a goal at least"));
  EXPECT_THAT(with("[{maximize: a}, {minimize: a}]"), HasSubstr("objective[1]: the same number"));
  EXPECT_THAT(with("{kind: sum, of: [{maximize: a, weight: -1}]}"),
              HasSubstr("objective.of[0].weight: -1 is not above 0"));
  EXPECT_THAT(error_with("latency_ms: {local: 20}", "latency_ms: {phone: 20}"),
              StartsWith("a.yaml:14: constraints.latency_ms.phone: phone is none of"));
  EXPECT_THAT(error_with("latency_ms: {local: 20}", "latency_ms: {local: 0}"),
              HasSubstr("0 is not above 0"));
  EXPECT_THAT(error_with("accuracy: 0.8", "accuracy: 80"),
              HasSubstr("constraints.accuracy: 80 is more than 1"));
}

TEST(StudyFile, HierarchicalTuningKnowsInferenceOnlyAtTheEnd) {
  const std::string mode = study_with("inference: grid}", "inference: grid, mode: hierarchical}");
  EXPECT_THAT(error_of(mode), HasSubstr("constraints.latency_ms: is not known before the end"));
  std::string without = mode;
  without.replace(without.find(", latency_ms: {local: 20}"), 25, "");
  EXPECT_TRUE(parse_study(without, "a.yaml").value().algorithm.hierarchical);
}

TEST(StudyFile, InferenceParametersAreThoseOfDevices) {
  EXPECT_THAT(error_with("cores: {values: [1, 2]}", "colour: {values: [1]}"),
              HasSubstr("inference.parameters.colour: there is no such key"));
  EXPECT_THAT(error_with("cores: {values: [1, 2]}", "cores: {values: [0, 2]}"),
              HasSubstr("inference.parameters.cores: expected whole numbers"));
  EXPECT_THAT(error_with("{range: [1, 32], integer: true}", "{range: [1, 32]}"),
              HasSubstr("a range needs integer: true"));
  EXPECT_THAT(error_with("cores: {values: [1, 2]}", "precision: {values: [fp8]}"),
              HasSubstr("inference.parameters.precision: "));
  EXPECT_THAT(error_with("devices: [local]", "devices: [local, local]"),
              HasSubstr("inference.devices: local occurs twice"));
  EXPECT_THAT(error_with("{kind: single}", "{kind: server, samples: 3}"),
              HasSubstr("inference.scenario: period_ms is missing"));
  EXPECT_THAT(error_with("{kind: single}", "{kind: single, rate_hz: 3}"),
              HasSubstr("inference.scenario.rate_hz: there is no such key"));
  EXPECT_THAT(error_with("{kind: single}", "{kind: multistream, rate_hz: 0}"),
              HasSubstr("inference.scenario.rate_hz: 0 is not above 0"));
}

TEST(StudyFile, BrokenYamlIsNamedWithItsLine) {
  EXPECT_THAT(error_with("fashion", "fashion\nname: again"),
              StartsWith("a.yaml:2: the key name occurs twice"));
  EXPECT_THAT(error_with("[18, 34, 50]", "[18, 34"), StartsWith("a.yaml:5: "));
  EXPECT_THAT(error_with("fashion", "!!str fashion"), HasSubstr("a.yaml:1: the tag"));
  EXPECT_THAT(error_with("fashion", "\xff"), StartsWith("a.yaml:1: the byte 0xff does not belong"));
  EXPECT_THAT(error_with("train.py", "\xc0\x80"), StartsWith("a.yaml:3: the byte 0xc0"));
  EXPECT_THAT(error_with("train.py", "\xed\xa0\x80"), StartsWith("a.yaml:3: the byte 0xed"));
  EXPECT_THAT(error_with("train.py", std::string_view("\0", 1)),
              StartsWith("a.yaml:3: the byte 0x00"));
  EXPECT_EQ(error_with("fashion", "größe-😀"), "");
  EXPECT_THAT(error_with("fashion", R"("a\0b")"), StartsWith("a.yaml:1: a text with a zero byte"));
  EXPECT_THAT(error_with("fashion", R"("a\eb")"), HasSubstr("has to be one line"));
  EXPECT_EQ(error_with("eta: 2", R"("e\nta": 2)"),
            "a.yaml:15: budget.e ta: there is no such key; there are kind, min_epochs, max_epochs, "
            "min_data, eta, max_trials");
  EXPECT_THAT(error_of(std::string(kStudy) + "---\nname: b\n"),
              HasSubstr("more than one document"));
  EXPECT_THAT(error_with("fashion", "*nowhere"), StartsWith("a.yaml:1: "));
  EXPECT_THAT(error_with("name", "[a, b]"), StartsWith("a.yaml:1: a key that is not a plain word"));
  EXPECT_THAT(error_with("model:    ", "model: &m [*m]\n  training: "),
              HasSubstr("a.yaml:5: an alias of what it is part of"));
}

TEST(StudyFile, AliasesStandForWhatTheyName) {
  const std::string text =
      study_with("{values: [1, 2]}}\ninference", "&two {values: [1, 2]}}\ninference");
  const auto at = text.find("cores: {values: [1, 2]}");
  const Study study =
      parse_study(std::string(text).replace(at, 23, "cores: *two"), "a.yaml").value();
  EXPECT_EQ(study, parse_study(kStudy, "a.yaml").value());
}

TEST(StudyFile, FilesThatWouldEatMemoryAreRefused) {
  EXPECT_THAT(error_of(std::string(std::size_t{1} << 21, ' ')), HasSubstr("larger than"));
  EXPECT_THAT(error_of("name: " + std::string(100, '[')), HasSubstr("levels inside each other"));
  EXPECT_THAT(error_of("name: " + std::string(100'000, '[')), StartsWith("a.yaml:1: "));
  std::string laughs = "a0: &a0 [x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below + ", " + below +
              ", " + below + "]\n";
  }
  EXPECT_THAT(error_of(laughs), HasSubstr("aliases counted"));
}

TEST(StudyFile, AMissingFileIsNamed) {
  const auto study = read_study("/nowhere/study.yaml");
  ASSERT_FALSE(study);
  EXPECT_THAT(study.error().message, HasSubstr("/nowhere/study.yaml"));
}

}  // namespace
}  // namespace fleetfit::tune
