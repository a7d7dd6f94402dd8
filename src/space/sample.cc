#include <fmt/format.h>

#include <set>

#include "fleetfit/space/space.h"

namespace fleetfit::space {

Result<Population> sample_designs(const Space& space, const SampleOptions& options) {
  const auto there_are = space.size().exact();
  if (there_are && (options.first > *there_are || options.count > *there_are - options.first)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("the space {} has {} designs, {} from number {} on were asked for",
                            space.name(), *there_are, options.count, options.first));
  }
  // Candidates have a stream each; those that were drawn before are passed over.
  const auto streams = core::Random(options.seed).split(space.name());
  const std::size_t genes = space.genes().size();
  Population designs(genes);
  std::set<std::vector<Choice>> seen;
  std::vector<Choice> design(genes);
  for (std::uint64_t candidate = 0; designs.size() < options.count; ++candidate) {
    auto random = streams.split(candidate);
    space.sample(random, design);
    if (seen.insert(design).second && seen.size() > options.first) designs.add(design);
  }
  return designs;
}

}  // namespace fleetfit::space
