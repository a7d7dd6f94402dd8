#include "graph/zoo/rows.h"
#include "graph/zoo/transformer.h"

namespace fleetfit::graph {
namespace {

// Without the token for distillation.
constexpr VisionTransformerSpec kNetworks[] = {
    {.name = "deit_tiny", .patch = 16, .depth = 12, .heads = 3},
    {.name = "deit_small", .patch = 16, .depth = 12, .heads = 6},
    {.name = "deit_base", .patch = 16, .depth = 12, .heads = 12},
};

}  // namespace

void add_deit(ZooList& zoo) { add_rows(zoo, {.family = "deit"}, kNetworks, vision_transformer); }

}  // namespace fleetfit::graph
