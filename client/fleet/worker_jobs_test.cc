#include "client/fleet/worker_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WorkerJobs, ARunnerIsARequestOfSbatch) {
  const WorkerProgram program = {.program = "/opt/my kiln",
                                 .tracker = "head:9190",
                                 .listen = "0.0.0.0:0",
                                 .keys_folder = "/home/ada/keys",
                                 .log_folder = "/home/ada/logs"};
  const WorkerJob job = {.kind = v1::RUNNER,
                         .partition = "gpu",
                         .constraint = "h200&nvlink",
                         .gres = "gpu:1",
                         .account = "acc",
                         .qos = "low",
                         .time = "4:00:00",
                         .cpus = 2,
                         .sbatch_arguments = {"--mem=8G"},
                         .worker_arguments = {"--device", "cuda", "--hours", "sat-sun $(id)"}};
  const SlurmJobRequest request = RequestOf("night", program, job);
  EXPECT_EQ(request.name, "kiln-night-runner");
  EXPECT_THAT(
      request.arguments,
      ElementsAre("--nodes=1", "--ntasks=1", "--requeue", "--signal=B:TERM@60",
                  "--open-mode=append", "--output=/home/ada/logs/kiln-night-runner-%j.log",
                  "--partition=gpu", "--constraint=h200&nvlink", "--gres=gpu:1", "--account=acc",
                  "--qos=low", "--time=4:00:00", "--cpus-per-task=2", "--mem=8G"));
  EXPECT_EQ(request.script,
            "#!/bin/sh\nexec '/opt/my kiln' runner --tracker head:9190 --listen 0.0.0.0:0 --keys "
            "/home/ada/keys --device cuda --hours 'sat-sun $(id)' --name "
            "\"kiln-night-$SLURM_JOB_ID\"\n");
}

TEST(WorkerJobs, WhatIsNotGivenIsLeftToSlurm) {
  const SlurmJobRequest request = RequestOf(
      "kiln", {.program = "kiln", .tracker = "t:1", .listen = "0.0.0.0:0", .secret_file = "/s"},
      {.kind = v1::BUILDER});
  EXPECT_EQ(request.name, "kiln-kiln-builder");
  EXPECT_THAT(request.arguments,
              ElementsAre("--nodes=1", "--ntasks=1", "--requeue", "--signal=B:TERM@60",
                          "--open-mode=append", "--output=kiln-kiln-builder-%j.log"));
  EXPECT_THAT(request.script, HasSubstr(" builder --tracker t:1 --listen 0.0.0.0:0 --secret-file "
                                        "/s --name \"kiln-kiln-$SLURM_JOB_ID\"\n"));
}

TEST(WorkerJobs, AFleetHasAShortWordAsItsName) {
  EXPECT_OK(CheckFleetName("night_2-b"));
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("a.b"),
                                 std::string("$x"), std::string(41, 'a')}) {
    EXPECT_THAT(CheckFleetName(bad), StatusIs(StatusCode::kInvalidArgument, HasSubstr(bad)));
  }
}

TEST(WorkerJobs, ArgumentsThatHideAJobFromItsFleetAreRefused) {
  for (const char* good : {"--mem=8G", "--exclusive", "-x", "--account=a", "-A", "--comment=x",
                           "--wait-all-nodes=1", "-wnode3", "--cluster-constraint=x"}) {
    EXPECT_EQ(CheckSbatchArgument(good), OkStatus()) << good;
  }
  for (const char* bad :
       {"--job-name=x", "-Jx", "-J", "--array=1-4", "--arr=1-4", "-a1-4", "--clusters=b", "-Mb",
        "--wrap=true", "--wait", "-W", "8G", "", "--parsable", "--test-only"}) {
    EXPECT_THAT(CheckSbatchArgument(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace kiln::client
