#include <mutex>
#include <set>
#include <thread>

#include "tests/contract/fleet_store_contract.h"

/// What every store must do with jobs: none is lost, and none counts twice.
namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetJobsContract : public FleetStoreContract {
 protected:
  // An agent that has claimed a job at date(0), until date(100).
  std::int64_t running_job(const JobRecord& wanted = wanted_job()) {
    const auto id = add(wanted);
    EXPECT_THAT(claim(date(0)), ElementsAre(testing::Field(&JobRecord::id, id)));
    return id;
  }
};

// Asking for jobs

TEST_P(FleetJobsContract, KeepsJobsThatWait) {
  auto wanted = wanted_job();
  wanted.key = "k";
  const auto id = add(wanted);
  wanted.id = id;
  EXPECT_EQ(id, 1);
  EXPECT_EQ(job(id), wanted);
  EXPECT_EQ(fleet().find_job(id + 1).value(), std::nullopt);
}

TEST_P(FleetJobsContract, TakesOnlyWhatIsAskedForFromANewJob) {
  auto wanted = wanted_job();
  wanted.id = 77;
  wanted.state = JobState::finished;
  wanted.attempt = 2;
  wanted.result = R"({"ms":1})";
  wanted.ended = date(9);
  const auto id = add(wanted);
  auto expected = wanted_job();
  expected.id = id;
  EXPECT_EQ(id, 1);
  EXPECT_EQ(job(id), expected);
}

TEST_P(FleetJobsContract, HasOneJobOfAKey) {
  auto keyed = wanted_job();
  keyed.key = "k";
  const std::vector jobs{wanted_job(), keyed, keyed, wanted_job()};
  const auto ids = fleet().add_jobs(jobs).value();
  EXPECT_EQ(ids[1], ids[2]);
  EXPECT_EQ((std::set{ids[0], ids[1], ids[3]}).size(), 3u);
  const auto again = fleet().add_jobs(jobs).value();
  EXPECT_EQ(again[1], ids[1]);
  EXPECT_EQ(again[2], ids[1]);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.waiting = 5}));
}

TEST_P(FleetJobsContract, AddsNoneIfAnAgentDoesNotExist) {
  EXPECT_EQ(absence(fleet().add_jobs(std::vector{wanted_job(), wanted_job("gone")})),
            "there is no agent 'gone'");
  EXPECT_EQ(fleet().count_jobs().value(), JobCounts{});
}

TEST_P(FleetJobsContract, RefusesBadJobs) {
  const auto refused = [&](const std::function<void(JobRecord&)>& spoil) {
    auto bad = wanted_job();
    spoil(bad);
    return refusal(fleet().add_jobs(std::vector{wanted_job(), bad}));
  };
  EXPECT_EQ(refused([](auto& job) { job.agent.clear(); }), "job: agent is empty");
  EXPECT_EQ(refused([](auto& job) { job.kind.clear(); }), "job: kind is empty");
  EXPECT_EQ(refused([](auto& job) { job.request = "7"; }), "job: request is not a JSON object");
  EXPECT_THAT(refused([](auto& job) { job.limits = "{"; }), HasSubstr("job: limits"));
  EXPECT_EQ(refused([](auto& job) { job.key = "\xff"; }), "job: key is not UTF-8");
  EXPECT_EQ(refused([](auto& job) { job.most_attempts = 0; }),
            "job: most_attempts is 0, below one");
  EXPECT_EQ(fleet().count_jobs().value(), JobCounts{});
}

TEST_P(FleetJobsContract, ListsJobsNewestFirst) {
  save({{.name = "b"}});
  const std::vector jobs{wanted_job(), wanted_job("b"), wanted_job(), wanted_job("b")};
  ASSERT_TRUE(fleet().add_jobs(jobs));
  claim(date(0), 1);
  EXPECT_THAT(ids(fleet().list_jobs({})), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(ids(fleet().list_jobs({.before = 4, .limit = 2})), ElementsAre(3, 2));
  EXPECT_THAT(ids(fleet().list_jobs({.agent = "b"})), ElementsAre(4, 2));
  EXPECT_THAT(ids(fleet().list_jobs({.agent = "b", .before = 4})), ElementsAre(2));
  EXPECT_THAT(ids(fleet().list_jobs({.state = JobState::waiting})), ElementsAre(4, 3, 2));
  EXPECT_THAT(ids(fleet().list_jobs({.agent = "pi4", .state = JobState::running})), ElementsAre(1));
  EXPECT_THAT(ids(fleet().list_jobs({.agent = "nobody"})), IsEmpty());
}

TEST_P(FleetJobsContract, LeavesDetailsOutWhereTheyAreNotWanted) {
  auto expected = job(add(wanted_job()));
  EXPECT_THAT(fleet().list_jobs({}).value(), ElementsAre(expected));
  expected.request = expected.limits = "{}";
  EXPECT_THAT(fleet().list_jobs({.details = false}).value(), ElementsAre(expected));
}

// Claims and leases

TEST_P(FleetJobsContract, GivesAnAgentItsOldestJobsOnce) {
  save({{.name = "b"}});
  const std::vector jobs{wanted_job(), wanted_job("b"), wanted_job(), wanted_job()};
  ASSERT_TRUE(fleet().add_jobs(jobs));
  const auto claimed = claim(date(5), 2);
  EXPECT_THAT(ids<JobRecord>(claimed), ElementsAre(1, 3));
  EXPECT_EQ(claimed[0].state, JobState::running);
  EXPECT_EQ(claimed[0].attempt, 1);
  EXPECT_EQ(claimed[0].lease, date(105));
  EXPECT_EQ(claimed[0].started, date(5));
  EXPECT_EQ(claimed[0], job(1));
  EXPECT_THAT(ids<JobRecord>(claim(date(5), 9)), ElementsAre(4));
  EXPECT_THAT(claim(date(5)), IsEmpty());
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.waiting = 1, .running = 3}));
  EXPECT_EQ(fleet().count_jobs_of("pi4").value(), (JobCounts{.running = 3}));
  EXPECT_EQ(fleet().count_jobs_of("b").value(), (JobCounts{.waiting = 1}));
  EXPECT_EQ(fleet().count_jobs_of("nobody").value(), JobCounts{});
}

TEST_P(FleetJobsContract, KnowsNoAgentThatWasNeverSaved) {
  EXPECT_EQ(absence(fleet().claim_jobs("gone", date(), date(), 1)), "there is no agent 'gone'");
  EXPECT_EQ(absence(fleet().heartbeat("gone", "{}", {}, date(), date())),
            "there is no agent 'gone'");
}

TEST_P(FleetJobsContract, ProlongsLeasesByHeartbeats) {
  const auto id = running_job();
  EXPECT_THAT(heartbeat({{.job = id, .attempt = 1}}, date(90)), IsEmpty());
  EXPECT_EQ(job(id).lease, date(190));
  EXPECT_THAT(fleet().take_back_jobs(date(150)).value(), IsEmpty());
  EXPECT_THAT(ids(fleet().take_back_jobs(date(190))), ElementsAre(id));
}

TEST_P(FleetJobsContract, SeesAnAgentByItsHeartbeats) {
  const auto stop = fleet().heartbeat("pi4", R"({"bundle":"c"})", {}, date(90), date(99));
  ASSERT_TRUE(stop);
  EXPECT_EQ(fleet().find_agent("pi4").value()->last_seen, date(90));
  EXPECT_EQ(fleet().find_agent("pi4").value()->serving, R"({"bundle":"c"})");
  EXPECT_EQ(refusal(fleet().heartbeat("pi4", "[]", {}, date(91), date(99))),
            "heartbeat: serving is not a JSON object");
  EXPECT_EQ(fleet().find_agent("pi4").value()->last_seen, date(90));
}

TEST_P(FleetJobsContract, TakesJobsBackWhoseLeasesHaveEnded) {
  const auto id = running_job();
  EXPECT_THAT(fleet().take_back_jobs(date(99)).value(), IsEmpty());
  const auto taken = fleet().take_back_jobs(date(100)).value();
  ASSERT_THAT(ids<JobRecord>(taken), ElementsAre(id));
  EXPECT_EQ(taken[0].state, JobState::waiting);
  EXPECT_EQ(taken[0].lease, std::nullopt);
  EXPECT_THAT(taken[0].reason, HasSubstr("lease of attempt 1 ended"));
  EXPECT_EQ(taken[0], job(id));
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.waiting = 1}));
  EXPECT_EQ(claim(date(200)).at(0).attempt, 2);
  EXPECT_EQ(job(id).reason, "");
}

TEST_P(FleetJobsContract, GivesUpAfterTheLastAttempt) {
  const auto id = running_job();  // of two
  ASSERT_TRUE(fleet().take_back_jobs(date(100)));
  claim(date(200));
  const auto taken = fleet().take_back_jobs(date(300)).value();
  ASSERT_THAT(ids<JobRecord>(taken), ElementsAre(id));
  EXPECT_EQ(taken[0].state, JobState::failed);
  EXPECT_THAT(taken[0].reason, HasSubstr("lease of attempt 2 ended"));
  EXPECT_EQ(taken[0].ended, date(300));
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.failed = 1}));
  EXPECT_THAT(claim(date(400)), IsEmpty());
  EXPECT_EQ(end({.job = id, .attempt = 2}), Ended::lost) << "it has failed for all to see";
  EXPECT_THAT(heartbeat({{.job = id, .attempt = 2}}, date(400)), ElementsAre(id));
}

TEST_P(FleetJobsContract, GivesAJobBackToTheAgentThatStillRunsIt) {
  const auto id = running_job();
  ASSERT_TRUE(fleet().take_back_jobs(date(100)));
  EXPECT_THAT(heartbeat({{.job = id, .attempt = 1}}, date(150)), IsEmpty());
  EXPECT_EQ(job(id).state, JobState::running);
  EXPECT_EQ(job(id).attempt, 1);
  EXPECT_EQ(job(id).lease, date(250));
  EXPECT_EQ(fleet().count_jobs_of("pi4").value(), (JobCounts{.running = 1}));
  EXPECT_THAT(claim(date(160)), IsEmpty());
}

TEST_P(FleetJobsContract, TellsAnAgentToStopWhatIsNotItsOwn) {
  save({{.name = "b"}});
  const auto others = add(wanted_job("b"));
  ASSERT_TRUE(fleet().claim_jobs("b", date(0), date(100), 1));
  const auto id = running_job();
  EXPECT_THAT(heartbeat({{.job = id, .attempt = 1},
                         {.job = id, .attempt = 2},
                         {.job = others, .attempt = 1},
                         {.job = 99, .attempt = 1},
                         {.job = id, .attempt = 0}},
                        date(50)),
              ElementsAre(id, others, 99, id));
  EXPECT_EQ(job(others).lease, date(100));
  EXPECT_EQ(job(id).lease, date(150));
}

// Results

TEST_P(FleetJobsContract, KeepsTheResultOfAnAttempt) {
  const auto id = running_job();
  EXPECT_EQ(end({.job = id, .attempt = 1, .result = R"({"ms":2})"}, date(60)), Ended::now);
  auto expected = wanted_job();
  expected.id = id;
  expected.state = JobState::finished;
  expected.attempt = 1;
  expected.result = R"({"ms":2})";
  expected.started = date(0);
  expected.ended = date(60);
  EXPECT_EQ(job(id), expected);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.finished = 1}));
  EXPECT_THAT(fleet().take_back_jobs(date(9999)).value(), IsEmpty());
}

TEST_P(FleetJobsContract, ChangesNothingWhenAResultComesAgain) {
  const auto id = running_job();
  const JobEnd failed{.job = id, .attempt = 1, .state = JobState::failed, .reason = "it crashed"};
  EXPECT_EQ(end(failed, date(60)), Ended::now);
  const auto before = job(id);
  EXPECT_EQ(end(failed, date(70)), Ended::already);
  EXPECT_EQ(end({.job = id, .attempt = 1}, date(70)), Ended::lost) << "it has failed, not finished";
  EXPECT_EQ(job(id), before);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.failed = 1}));
}

TEST_P(FleetJobsContract, AnswersEachOfManyResults) {
  ASSERT_TRUE(fleet().add_jobs(std::vector(3, wanted_job())));
  claim(date(0), 2);
  const std::vector<JobEnd> ends{{.job = 1, .attempt = 1}, {.job = 3, .attempt = 1},
                                 {.job = 2, .attempt = 1}, {.job = 2, .attempt = 1},
                                 {.job = 9, .attempt = 1}, {.job = 3, .attempt = 0}};
  EXPECT_THAT(
      fleet().end_jobs("pi4", ends, date(50)).value(),
      ElementsAre(Ended::now, Ended::lost, Ended::now, Ended::already, Ended::lost, Ended::lost));
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.waiting = 1, .finished = 2}));
}

TEST_P(FleetJobsContract, TakesResultsFromTheAttemptThatHasTheJobAlone) {
  const auto id = running_job();
  ASSERT_TRUE(fleet().take_back_jobs(date(100)));
  claim(date(200));
  EXPECT_EQ(end({.job = id, .attempt = 1, .result = R"({"old":1})"}), Ended::lost);
  EXPECT_EQ(job(id).state, JobState::running);
  EXPECT_EQ(end({.job = id, .attempt = 3}), Ended::lost);
  const JobEnd mine{.job = id, .attempt = 2};
  EXPECT_EQ(fleet().end_jobs("other", std::span(&mine, 1), date(50)).value().at(0), Ended::lost);
  EXPECT_EQ(end(mine), Ended::now);
}

TEST_P(FleetJobsContract, TakesALateResultWhileNobodyElseHasTheJob) {
  const auto id = running_job();
  ASSERT_TRUE(fleet().take_back_jobs(date(100)));
  EXPECT_EQ(end({.job = id, .attempt = 1, .result = R"({"ms":3})"}, date(150)), Ended::now);
  EXPECT_EQ(job(id).state, JobState::finished);
  EXPECT_EQ(job(id).reason, "");
  EXPECT_THAT(claim(date(200)), IsEmpty());
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.finished = 1}));
}

TEST_P(FleetJobsContract, RefusesResultsThatAreNone) {
  const auto id = running_job();
  const auto refused = [&](JobEnd bad) {
    bad.attempt = 1;
    const std::vector<JobEnd> ends{{.job = id, .attempt = 1}, bad};
    return refusal(fleet().end_jobs("pi4", ends, date(50)));
  };
  EXPECT_EQ(refused({.job = 9, .state = JobState::cancelled, .reason = "x"}),
            "job 9: state is cancelled, which an agent cannot say");
  EXPECT_EQ(refused({.job = 9, .state = JobState::failed}),
            "job 9: reason is empty though the job is failed");
  EXPECT_EQ(refused({.job = 9, .result = "null"}), "job 9: result is not a JSON object");
  EXPECT_EQ(job(id).state, JobState::running);
}

// Cancelling

TEST_P(FleetJobsContract, CancelsAWaitingJobAtOnce) {
  const auto id = add(wanted_job());
  EXPECT_EQ(fleet().cancel_job(id, date(30)), true);
  EXPECT_EQ(job(id).state, JobState::cancelled);
  EXPECT_EQ(job(id).ended, date(30));
  EXPECT_NE(job(id).reason, "");
  EXPECT_THAT(claim(date(40)), IsEmpty());
  EXPECT_EQ(fleet().cancel_job(id, date(50)), false);
  EXPECT_EQ(fleet().cancel_job(99, date(50)), false);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.cancelled = 1}));
}

TEST_P(FleetJobsContract, CancelsARunningJobWhenItsAgentHearsOfIt) {
  const auto id = running_job();
  EXPECT_EQ(fleet().cancel_job(id, date(30)), true);
  EXPECT_EQ(job(id).state, JobState::running);
  EXPECT_TRUE(job(id).cancel_requested);
  EXPECT_THAT(heartbeat({{.job = id, .attempt = 1}}, date(40)), ElementsAre(id));
  EXPECT_EQ(job(id).state, JobState::cancelled);
  EXPECT_EQ(job(id).ended, date(40));
  EXPECT_THAT(heartbeat({{.job = id, .attempt = 1}}, date(45)), ElementsAre(id))
      << "if the answer was lost on the way";
  EXPECT_EQ(end({.job = id, .attempt = 1, .state = JobState::failed, .reason = "stopped"}),
            Ended::lost);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.cancelled = 1}));
}

TEST_P(FleetJobsContract, KeepsAResultThatCameBeforeTheAgentHeardOfTheCancelling) {
  const auto id = running_job();
  ASSERT_EQ(fleet().cancel_job(id, date(30)), true);
  EXPECT_EQ(end({.job = id, .attempt = 1}), Ended::now);
  EXPECT_EQ(job(id).state, JobState::finished);
  EXPECT_FALSE(job(id).cancel_requested);
}

TEST_P(FleetJobsContract, CancelsAJobWhoseAgentIsNotHeardOfAgain) {
  const auto id = running_job();
  ASSERT_EQ(fleet().cancel_job(id, date(30)), true);
  EXPECT_EQ(fleet().take_back_jobs(date(100)).value().at(0).state, JobState::cancelled);
  EXPECT_EQ(job(id).ended, date(100));
}

// Many at once

TEST_P(FleetJobsContract, GivesNoJobTwiceToManyThatClaimAtOnce) {
  constexpr int kJobs = 120;
  ASSERT_TRUE(fleet().add_jobs(std::vector(kJobs, wanted_job())));
  std::mutex mutex;
  std::multiset<std::int64_t> claimed;
  std::multiset<Ended> answers;
  // Stores in memory are of one process; of the others each thread has a handle of its own.
  const auto work = [&] {
    std::unique_ptr<Store> own = url() == "memory:" ? nullptr : open_store(url()).value();
    auto& mine = own ? own->fleet() : fleet();
    for (;;) {
      const auto jobs = mine.claim_jobs("pi4", date(0), date(100), 3);
      ASSERT_TRUE(jobs) << jobs.error().message;
      if (jobs->empty()) return;
      for (const auto& job : *jobs) {
        const JobEnd result{.job = job.id, .attempt = job.attempt};
        const auto ended = mine.end_jobs("pi4", std::span(&result, 1), date(50));
        ASSERT_TRUE(ended) << ended.error().message;
        const std::scoped_lock lock(mutex);
        claimed.insert(job.id);
        answers.insert(ended->front());
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  }
  EXPECT_EQ(claimed.size(), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(std::set(claimed.begin(), claimed.end()).size(), claimed.size())
      << "one was given twice";
  EXPECT_EQ(answers.count(Ended::now), static_cast<std::size_t>(kJobs));
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.finished = kJobs}));
  EXPECT_EQ(fleet().count_jobs_of("pi4").value(), (JobCounts{.finished = kJobs}));
}

TEST_P(FleetJobsContract, LosesNoEventAndNoJobWhenManyWriteAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10;
  const auto write = [&](int thread) {
    std::unique_ptr<Store> own = url() == "memory:" ? nullptr : open_store(url()).value();
    auto& mine = own ? own->fleet() : fleet();
    for (int i = 1; i <= kRounds; ++i) {
      auto keyed = wanted_job();
      keyed.key = "round " + std::to_string(i);  // the same of all threads
      const EventRecord event{
          .agent = "agent" + std::to_string(thread), .sequence = i, .kind = "a"};
      const EventRecord others{.agent = "shared", .sequence = i, .kind = "b"};
      ASSERT_TRUE(mine.add_jobs(std::vector{wanted_job(), keyed}));
      ASSERT_TRUE(mine.add_events(std::vector{event, others}));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(write, i);
  }
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.waiting = kThreads * kRounds + kRounds}));
  EXPECT_EQ(fleet().list_events({.kind = "a"})->size(),
            static_cast<std::size_t>(kThreads * kRounds));
  EXPECT_EQ(fleet().last_sequence("shared"), kRounds);
  const auto all = ids(fleet().list_events({.limit = 1000}));
  EXPECT_EQ(static_cast<std::int64_t>(all.size()), fleet().newest_event()) << "ids have no gaps";
}

// Bringing records from elsewhere

TEST_P(FleetJobsContract, RestoresRecordsWithTheirIds) {
  auto token = example_token('b');
  token.id = 5;
  auto running = wanted_job();
  running.id = 8;
  running.state = JobState::running;
  running.attempt = 1;
  running.lease = date(90);
  running.started = date(5);
  auto event = example_event(3);
  event.id = 20;
  auto entry = example_entry();
  entry.id = 4;
  const FleetRecords records{.tokens = {token},
                             .agents = {{.name = "b"}},
                             .jobs = {running},
                             .events = {event},
                             .files = {example_file()},
                             .audit = {entry},
                             .sequences = {{"b", 9}}};
  ASSERT_TRUE(fleet().restore(records));
  EXPECT_THAT(fleet().list_tokens().value(), ElementsAre(token));
  EXPECT_EQ(job(8), running);
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.running = 1}));
  EXPECT_THAT(fleet().list_events({}).value(), ElementsAre(event));
  EXPECT_THAT(fleet().list_audit(0, 9).value(), ElementsAre(entry));
  EXPECT_EQ(fleet().last_sequence("pi4"), 3);
  EXPECT_EQ(fleet().last_sequence("b"), 9);
  EXPECT_EQ(fleet().newest_event(), 20);
  EXPECT_EQ(add(wanted_job()), 9) << "ids go on";
  EXPECT_EQ(fleet().add_token(example_token('c')).value(), 6);
  EXPECT_EQ(end({.job = 8, .attempt = 1}), Ended::now);
  EXPECT_FALSE(fleet().restore(records)) << "they are there";
  EXPECT_EQ(fleet().count_jobs().value(), (JobCounts{.waiting = 1, .finished = 1}));
}

TEST_P(FleetJobsContract, RestoresNothingThatIsBad) {
  const auto refused = [&](const std::function<void(JobRecord&)>& spoil) {
    auto bad = wanted_job();
    bad.id = 8;
    spoil(bad);
    return refusal(fleet().restore({.agents = {{.name = "b"}}, .jobs = {bad}}));
  };
  EXPECT_EQ(refused([](auto& job) { job.id = 0; }), "job: id is 0, below one");
  EXPECT_EQ(refused([](auto& job) { job.state = JobState::running; }),
            "job 8: lease is missing though the job is running");
  EXPECT_EQ(refused([](auto& job) { job.state = JobState::failed; }),
            "job 8: reason is empty though the job is failed");
  EXPECT_EQ(refused([](auto& job) { job.ended = date(); }),
            "job 8: ended is there though the job is waiting");
  EXPECT_EQ(refused([](auto& job) { job.attempt = -1; }), "job 8: attempt is -1, below zero");
  EXPECT_EQ(fleet().find_agent("b").value(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FleetJobsContract, all_kinds(), name_of_kind);

}  // namespace
}  // namespace fleetfit::store
