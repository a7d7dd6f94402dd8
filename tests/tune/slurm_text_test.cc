#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/tune/executor.h"
#include "fleetfit/tune/study.h"

namespace fleetfit::tune {
namespace {

using std::chrono::seconds;

TEST(SlurmScript, IsOneArrayWithAllThatTheStudyAsksFor) {
  const SlurmOptions options{.job_name = "fleetfit-mnist-0badcafe",
                             .folder = "/shared/studies/slurm",
                             .resources = {.cores = 4,
                                           .memory_bytes = std::int64_t{6} << 30,
                                           .gpus = 1,
                                           .time_min = 90,
                                           .partition = "gpu",
                                           .constraint = "a100&nvlink",
                                           .account = "vision"},
                             .most_at_once = 8};
  const std::vector<WorkerSpec> workers{{.command = {"/opt/fleetfit", "--as", "w1"}},
                                        {.command = {"/opt/fleetfit", "it's", "a b", "$HOME"}}};
  EXPECT_EQ(slurm_script(options, workers), R"(#!/bin/bash
#SBATCH --job-name=fleetfit-mnist-0badcafe
#SBATCH --array=0-1%8
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --output=/shared/studies/slurm/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --cpus-per-task=4
#SBATCH --mem=6291456K
#SBATCH --gpus-per-task=1
#SBATCH --time=90
#SBATCH --signal=B:TERM@60
#SBATCH --partition=gpu
#SBATCH --constraint=a100&nvlink
#SBATCH --account=vision
case $SLURM_ARRAY_TASK_ID in
0) exec '/opt/fleetfit' '--as' 'w1' ;;
1) exec '/opt/fleetfit' 'it'\''s' 'a b' '$HOME' ;;
esac
)");
}

TEST(SlurmScript, LeavesToTheClusterWhatTheStudyDoesNotSay) {
  const std::vector<WorkerSpec> workers{{.command = {"true"}}};
  EXPECT_EQ(slurm_script({.job_name = "n", .folder = "/f"}, workers), R"(#!/bin/bash
#SBATCH --job-name=n
#SBATCH --array=0-0
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --output=/f/%A_%a.log
#SBATCH --open-mode=append
#SBATCH --requeue
case $SLURM_ARRAY_TASK_ID in
0) exec 'true' ;;
esac
)");
}

TEST(SlurmStates, TellWorkersThatWaitRunAndHaveEnded) {
  const auto status = [](std::string_view line) {
    const auto job = parse_squeue_line(line);
    EXPECT_TRUE(job) << line;
    return job ? job->status : WorkerStatus{};
  };
  EXPECT_EQ(parse_squeue_line("17|3|RUNNING|1:05|None|0|")->id, "17_3");
  EXPECT_EQ(status("17|3|PENDING|0:00|Priority|0|").state, WorkerState::starting);
  EXPECT_EQ(status("17|3|RUNNING|1:05|None|0|").state, WorkerState::running);
  EXPECT_EQ(status("17|3|RUNNING|1:05|None|0|").ran, seconds(65));
  EXPECT_EQ(status("17|3|RUNNING|1-02:03:04|None|0|").ran, seconds(93784));
  EXPECT_TRUE(status("17|3|COMPLETED|0:09|None|0|").succeeded);
  const auto failed = status("17|3|FAILED|0:01|NonZeroExitCode|768|");
  EXPECT_EQ(failed.state, WorkerState::ended);
  EXPECT_FALSE(failed.succeeded || failed.killed);
  EXPECT_EQ(failed.ending, "exit status 3");
  EXPECT_TRUE(status("17|3|FAILED|0:01|JobLaunchFailure|9|").killed);
  EXPECT_EQ(status("17|3|NODE_FAIL|0:01|NodeDown|0|").ending, "Slurm says NODE_FAIL (NodeDown)");
  for (const char* state : {"CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"})
    EXPECT_TRUE(status("17|3|" + std::string(state) + "|0:01|None|0|").killed) << state;
  EXPECT_EQ(status("17|3|REQUEUED|0:00|None|0|").state, WorkerState::starting)
      << "Slurm starts it again";
}

TEST(SlurmStates, AreReadFromLinesOfSqueueAlone) {
  for (const char* line :
       {"", "slurm_load_jobs error", "17|[0-7]|PENDING|0:00|x|0|", "17|1|RUNNING|0:01|None"})
    EXPECT_FALSE(parse_squeue_line(line)) << line;
}

TEST(StudyResources, AreReadFromTheStudyFile) {
  const std::string study = R"(
name: s
workload: {command: [train]}
parameters: {training: {x: {range: [0, 1]}}}
objective: {maximize: accuracy}
budget: {kind: epochs, max_epochs: 2}
resources: )";
  EXPECT_EQ(parse_study(study + "{cores: 2, memory: 512M, gpus: 1, time_min: 30, partition: p, "
                                "constraint: avx512, account: a}",
                        "f")
                .value()
                .resources,
            (Resources{.cores = 2,
                       .memory_bytes = 512 << 20,
                       .gpus = 1,
                       .time_min = 30,
                       .partition = "p",
                       .constraint = "avx512",
                       .account = "a"}));
  const auto refusal = [&](const std::string& resources) {
    const auto parsed = parse_study(study + resources, "f");
    return parsed ? "accepted" : parsed.error().message;
  };
  EXPECT_THAT(refusal("{cores: 0}"), testing::HasSubstr("f:7: resources.cores"));
  EXPECT_THAT(refusal("{partition: \"a\\nb\"}"), testing::HasSubstr("f:7: resources.partition"));
  EXPECT_THAT(refusal("{colour: red}"), testing::HasSubstr("colour"));
}

}  // namespace
}  // namespace fleetfit::tune
