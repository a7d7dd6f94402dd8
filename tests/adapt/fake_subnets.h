#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/adapt/prepared_subnet.h"
#include "tests/core/fake_clock.h"

namespace fleetfit::adapt {

/// Subnets that take as long as the test says, on a clock that the test can see. A subnet gives its
/// input back as scores.
class FakeSubnets final : public SubnetPreparer {
 public:
  explicit FakeSubnets(core::FakeClock& clock) : clock_(clock) {}

  struct Behaviour {
    double ms = 1;
    std::size_t bytes = 100;
  };

  /// To be filled before subnets are prepared.
  std::map<std::string, Behaviour> behaviours;
  std::set<std::string> broken;
  double load = 1;  ///< multiplies all times

  /// Holds the preparation of a subnet back until `release` is called.
  void hold(const std::string& subnet) {
    const std::lock_guard lock(mutex_);
    held_.insert(subnet);
  }
  void release(const std::string& subnet) {
    const std::lock_guard lock(mutex_);
    held_.erase(subnet);
    released_.notify_all();
  }

  /// In the order in which they were prepared.
  std::vector<std::string> prepared() const {
    const std::lock_guard lock(mutex_);
    return prepared_;
  }

  Result<std::unique_ptr<PreparedSubnet>> prepare(const std::string& subnet) override {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return !held_.contains(subnet); });
    prepared_.push_back(subnet);
    if (broken.contains(subnet)) return fail(ErrorCode::unsupported, subnet + " is broken");
    return std::make_unique<Subnet>(*this, behaviours[subnet]);
  }

 private:
  class Subnet final : public PreparedSubnet {
   public:
    Subnet(FakeSubnets& owner, Behaviour behaviour) : owner_(owner), behaviour_(behaviour) {}

    Status run(std::span<const float> input) override {
      if (input.size() != 3) return fail(ErrorCode::invalid_input, "input: expected 3 values");
      output_.assign(input.begin(), input.end());
      owner_.clock_.advance(
          std::chrono::nanoseconds(static_cast<std::int64_t>(behaviour_.ms * owner_.load * 1e6)));
      return {};
    }
    std::span<const float> output() const override { return output_; }
    const std::vector<std::int64_t>& input_shape() const override { return shape_; }
    const std::vector<std::int64_t>& output_shape() const override { return shape_; }
    std::size_t bytes() const override { return behaviour_.bytes; }

   private:
    FakeSubnets& owner_;
    Behaviour behaviour_;
    std::vector<float> output_ = {0, 0, 0};
    std::vector<std::int64_t> shape_ = {1, 3};
  };

  core::FakeClock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  std::set<std::string> held_;
  std::vector<std::string> prepared_;
};

}  // namespace fleetfit::adapt
