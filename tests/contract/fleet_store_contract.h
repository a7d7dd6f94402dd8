#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fleetfit/store/store.h"
#include "tests/contract/store_kinds.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_fleet.h"

namespace fleetfit::store {

/// A store of each kind in which there is the agent "pi4", and short ways to ask for its jobs.
class FleetStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    url_ = GetParam().url(folder_.path());
    if (url_.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    auto opened = open_store(url_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    save({example_agent()});
  }

  const std::string& url() const { return url_; }
  FleetStore& fleet() { return store_->fleet(); }

  void save(const std::vector<AgentRecord>& agents) {
    const auto saved = fleet().save_agents(agents);
    ASSERT_TRUE(saved) << saved.error().message;
  }

  std::int64_t add(const JobRecord& job) {
    const auto ids = fleet().add_jobs(std::span(&job, 1));
    EXPECT_TRUE(ids) << ids.error().message;
    return ids ? ids->front() : 0;
  }

  JobRecord job(std::int64_t id) {
    const auto found = fleet().find_job(id);
    EXPECT_TRUE(found && *found) << "job " << id;
    return found.value().value_or(JobRecord{});
  }

  // Until 100 ms later.
  std::vector<JobRecord> claim(Time now, std::size_t most = 10) {
    const auto claimed = fleet().claim_jobs("pi4", now, now + std::chrono::milliseconds(100), most);
    EXPECT_TRUE(claimed) << claimed.error().message;
    return claimed.value_or(std::vector<JobRecord>{});
  }

  Ended end(const JobEnd& end, Time now = date(50)) {
    const auto ended = fleet().end_jobs("pi4", std::span(&end, 1), now);
    EXPECT_TRUE(ended) << ended.error().message;
    return ended ? ended->front() : Ended::lost;
  }

  // Until 100 ms later. What is to be stopped.
  std::vector<std::int64_t> heartbeat(const std::vector<FleetStore::Running>& running, Time now) {
    const auto stop =
        fleet().heartbeat("pi4", "{}", running, now, now + std::chrono::milliseconds(100));
    EXPECT_TRUE(stop) << stop.error().message;
    return stop.value_or(std::vector<std::int64_t>{-1});
  }

  void add_events(const std::vector<EventRecord>& events) {
    const auto added = fleet().add_events(events);
    ASSERT_TRUE(added) << added.error().message;
    ASSERT_EQ(*added, events.size());
  }

  template <class Record>
  static std::vector<std::int64_t> ids(const Result<std::vector<Record>>& list) {
    std::vector<std::int64_t> ids;
    EXPECT_TRUE(list) << list.error().message;
    if (list)
      for (const auto& record : *list) ids.push_back(record.id);
    return ids;
  }
  static std::vector<std::string> names(const Result<std::vector<AgentRecord>>& list) {
    std::vector<std::string> names;
    EXPECT_TRUE(list) << list.error().message;
    if (list)
      for (const auto& agent : *list) names.push_back(agent.name);
    return names;
  }

  template <class T>
  static std::string refusal(const Result<T>& result) {
    if (result) return "accepted";
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
    return result.error().message;
  }
  template <class T>
  static std::string absence(const Result<T>& result) {
    if (result) return "found";
    EXPECT_EQ(result.error().code, ErrorCode::not_found);
    return result.error().message;
  }

 private:
  core::TemporaryFolder folder_;
  std::string url_;
  std::unique_ptr<Store> store_;
};

}  // namespace fleetfit::store
