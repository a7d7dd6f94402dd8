#include <gmock/gmock.h>

#include <algorithm>

#include "fleetfit/tune/study.h"
#include "fleetfit/workloads/workloads.h"

namespace fleetfit::tune {
namespace {

using ::testing::StartsWith;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string example() {
  return workloads::example_study(*workloads::find_workload("resnet-fashion-mnist").value());
}

TEST(StudyOfWorkload, ExamplesAreStudies) {
  for (const auto& workload : workloads::all_workloads()) {
    const auto study = parse_study(workloads::example_study(workload), "a.yaml");
    ASSERT_TRUE(study.has_value()) << workload.name << ": " << study.error().message;
    EXPECT_EQ(study->workload.builtin, workload.name);
    EXPECT_TRUE(study->workload.writes_untrained);
    for (const auto& parameter : study->parameters.all()) {
      const auto setting =
          std::ranges::find(workload.settings, parameter.name, &workloads::Setting::name);
      ASSERT_NE(setting, workload.settings.end()) << parameter.name;
      EXPECT_EQ(setting->group, to_string(parameter.group)) << parameter.name;
    }
  }
}

TEST(StudyOfWorkload, UnknownWorkloadIsNamedWithItsLine) {
  const auto text = replaced(example(), "builtin: resnet-fashion-mnist", "builtin: resnet-mars");
  EXPECT_THAT(
      parse_study(text, "a.yaml").error().message,
      StartsWith("a.yaml:2: workload.builtin: there is no built-in workload 'resnet-mars'"));
}

TEST(StudyOfWorkload, ParameterThatItDoesNotTakeIsNamedWithItsLine) {
  const auto text = replaced(example(), "layers:", "layer:");
  EXPECT_THAT(parse_study(text, "a.yaml").error().message,
              StartsWith("a.yaml:5: parameters.model.layer: resnet-fashion-mnist takes no such"));
}

}  // namespace
}  // namespace fleetfit::tune
