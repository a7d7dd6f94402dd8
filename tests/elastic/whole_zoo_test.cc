#include <gtest/gtest.h>

#include "fleetfit/core/random.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::elastic {
namespace {

class WholeZoo : public ::testing::TestWithParam<graph::ZooEntry> {};

TEST_P(WholeZoo, IsExpandedOrRefusedPlainly) {
  const auto model = graph::build_zoo_network(GetParam().name).value();
  const auto supernet = expand(model);
  if (!supernet) {
    EXPECT_NE(supernet.error().message.find("cannot be made elastic"), std::string::npos)
        << supernet.error().message;
    return;
  }
  const SubnetSpace space({*supernet});
  core::Random random(1);
  std::vector<space::Choice> design = space.original();
  for (int i = 0; i < 4; ++i) {
    auto subnet = space.lower(design);
    ASSERT_TRUE(subnet) << space.format(design) << ": " << subnet.error().message;
    const auto inferred = graph::infer_shapes(*subnet);
    ASSERT_TRUE(inferred) << space.format(design) << ": " << inferred.error().message;
    EXPECT_EQ(subnet->tensor(subnet->outputs[0]).shape, model.tensor(model.outputs[0]).shape);
    space.sample(random, design);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, WholeZoo, ::testing::ValuesIn(graph::zoo()),
                         [](const auto& instance) {
                           std::string name = instance.param.name;
                           for (char& c : name) {
                             if (c == '.' || c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace fleetfit::elastic
