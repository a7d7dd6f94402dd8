#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fleetfit/search/strategy.h"
#include "search/fresh.h"

namespace fleetfit::search {
namespace {

class RandomDesigns final : public Strategy {
 public:
  RandomDesigns(const space::Space& space, core::Random random, const RandomOptions& options)
      : random_(random), options_(options), fresh_(moves_of(space)) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    const std::size_t left = options_.designs - std::min(options_.designs, fresh_.seen().size());
    fresh_.sample(random_, std::min(left, options_.batch), designs);
  }

  void tell(const Outcome& /*outcome*/) override {}

 private:
  core::Random random_;
  RandomOptions options_;
  Fresh fresh_;
};

class AllDesigns final : public Strategy {
 public:
  AllDesigns(const space::Space& space, std::size_t batch)
      : space_(space), batch_(batch), next_(space.genes().size()) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    while (!at_end_ && designs.size() < batch_) {
      designs.add(next_);
      at_end_ = !space_.next(next_);
    }
  }

  void tell(const Outcome& /*outcome*/) override {}

 private:
  const space::Space& space_;
  std::size_t batch_;
  std::vector<space::Choice> next_;
  bool at_end_ = false;
};

class ListedDesigns final : public Strategy {
 public:
  ListedDesigns(space::Population listed, std::size_t batch)
      : listed_(std::move(listed)), batch_(batch) {}

  void propose(space::Population& designs) override {
    designs.resize(0);
    const std::size_t end = std::min(next_ + batch_, listed_.size());
    for (; next_ < end; ++next_) designs.add(std::as_const(listed_)[next_]);
  }

  void tell(const Outcome& /*outcome*/) override {}

 private:
  space::Population listed_;
  std::size_t batch_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<Strategy>> make_random(const space::Space& space, core::Random random,
                                              const RandomOptions& options) {
  if (options.batch < 1) return fail(ErrorCode::invalid_input, "batch: less than 1");
  return std::make_unique<RandomDesigns>(space, random.split("random"), options);
}

Result<std::unique_ptr<Strategy>> make_exhaustive(const space::Space& space,
                                                  const ExhaustiveOptions& options) {
  if (options.batch < 1) return fail(ErrorCode::invalid_input, "batch: less than 1");
  const auto size = space.size();
  const auto exact = size.exact();
  if (!exact || *exact > options.most) {
    return fail(
        ErrorCode::unsupported,
        fmt::format("the space {} has {} designs, too many to try them all (at most {})",
                    space.name(), exact ? size.decimal() : fmt::format("10^{:.1f}", size.log10()),
                    options.most));
  }
  return std::make_unique<AllDesigns>(space, options.batch);
}

std::unique_ptr<Strategy> make_listed(space::Population designs, std::size_t batch) {
  return std::make_unique<ListedDesigns>(std::move(designs), std::max<std::size_t>(batch, 1));
}

}  // namespace fleetfit::search
