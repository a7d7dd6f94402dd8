#pragma once

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// Two kinds of layer: "conv" has a kernel of 1 or 3, "none" has nothing; then 4 or 8 or 12 or 16
/// channels. 2 + 1 designs of the layer times 4.
class SmallSpace final : public Space {
 public:
  SmallSpace()
      : Space({.name = "small", .line = "for tests"},
              {{.name = "kind", .choices = {"none", "conv"}},
               {.name = "kernel", .choices = {"1", "3"}, .values = {1, 3}, .before = "-k"},
               {.name = "channels",
                .choices = {"4", "8", "12", "16"},
                .values = {4, 8, 12, 16},
                .before = "-"}}) {}

  bool is_active(Design design, std::size_t gene) const override {
    return gene != 1 || design[0] == 1;
  }
  DesignCount size() const override { return 12; }

 protected:
  Result<graph::Graph> build(Design design) const override {
    graph::NetBuilder net(name(), 1);
    auto x = net.input("x", {1, 4, 8, 8});
    if (design[0] == 1) x = net.conv(x, {.out = 4, .kernel = design[1] == 1 ? 3 : 1});
    net.output(net.conv(x, {.out = 4 * (design[2] + 1)}), "y");
    return std::move(net).finish();
  }
};

}  // namespace fleetfit::space
