#include "graph/zoo/rows.h"
#include "graph/zoo/transformer.h"

namespace fleetfit::graph {
namespace {

constexpr VisionTransformerSpec kNetworks[] = {
    {.name = "vit_b_16", .patch = 16, .depth = 12, .heads = 12},
    {.name = "vit_b_32", .patch = 32, .depth = 12, .heads = 12},
    {.name = "vit_l_32", .patch = 32, .depth = 24, .heads = 16},
};

}  // namespace

void add_vit(ZooList& zoo) { add_rows(zoo, {.family = "vit"}, kNetworks, vision_transformer); }

}  // namespace fleetfit::graph
