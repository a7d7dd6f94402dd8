// inspect FILE: the operators of a model, and what they cost.
#include <fleetfit/app/models.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: inspect FILE\n");
    return 2;
  }
  const auto model = fleetfit::app::inspect_model(argv[1]);
  if (!model) {
    std::fprintf(stderr, "inspect: %s\n", model.error().message.c_str());
    return 2;
  }
  for (const auto& op : model->ops) {
    std::printf("%-12s %-30s %12lld FLOPs\n", op.type.c_str(), op.name.c_str(),
                static_cast<long long>(op.flops.value_or(0)));
  }
  std::printf("flops %lld params %lld\n", static_cast<long long>(model->totals.flops),
              static_cast<long long>(model->totals.params));
  return model->unsupported.empty() ? 0 : 1;
}
