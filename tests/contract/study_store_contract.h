#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fleetfit/store/store.h"
#include "tests/contract/store_kinds.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_studies.h"

namespace fleetfit::store {

/// A store of each kind that holds the study "s", and short ways to ask for its trials.
class StudyStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    const auto url = GetParam().url(folder_.path());
    if (url.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    auto opened = open_store(url);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    ASSERT_TRUE(studies().create_study(example_study("s")));
  }

  StudyStore& studies() { return store_->studies(); }

  void add(const std::vector<TrialRecord>& trials) {
    ASSERT_EQ(studies().add_trials("s", trials), true);
  }

  TrialRecord trial(std::int64_t number) {
    const auto found = studies().find_trial("s", number);
    EXPECT_TRUE(found && *found) << "trial " << number;
    return found.value().value_or(TrialRecord{});
  }

  // The claim of a trial that is taken now, for a second.
  Claim take(const std::string& worker, Time now = date()) {
    using namespace std::chrono_literals;
    const auto claimed = studies().claim_trial("s", worker, now, now + 1s).value();
    EXPECT_TRUE(claimed) << "nothing to take";
    if (!claimed) return {};
    return {.study = "s", .trial = claimed->number, .worker = worker, .attempt = claimed->attempts};
  }

  std::vector<std::int64_t> best(std::size_t limit) {
    return numbers(studies().best_trials("s", limit).value());
  }

  static std::vector<std::int64_t> numbers(const std::vector<TrialRecord>& trials) {
    std::vector<std::int64_t> numbers;
    for (const auto& trial : trials) numbers.push_back(trial.number);
    return numbers;
  }

  std::vector<std::int64_t> changes_since(std::int64_t change) {
    return numbers(studies().list_changes("s", change, 1000).value());
  }

  std::int64_t last_change() {
    const auto changes = studies().list_changes("s", 0, 1000).value();
    return changes.empty() ? 0 : changes.back().change;
  }

 private:
  core::TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

template <class T>
std::string refusal(const Result<T>& result) {
  if (result) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
  return result.error().message;
}

template <class T>
std::string absence(const Result<T>& result) {
  if (result) return "found";
  EXPECT_EQ(result.error().code, ErrorCode::not_found);
  return result.error().message;
}

}  // namespace fleetfit::store
