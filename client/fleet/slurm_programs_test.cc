#include "client/fleet/slurm_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SlurmPrograms, ReadsTheNumberOfASubmittedJob) {
  EXPECT_EQ(*ParseSubmittedJob("17\n"), 17);
  EXPECT_EQ(*ParseSubmittedJob("17;cluster\n"), 17);
  for (const char* bad : {"", "\n", "Submitted batch job 17\n", "-3", "0", "17x", ";cluster"}) {
    EXPECT_THAT(ParseSubmittedJob(bad).status(),
                StatusIs(StatusCode::kInternal, HasSubstr("sbatch --parsable printed")))
        << bad;
  }
}

TEST(SlurmPrograms, ReadsTheQueue) {
  const auto jobs = ParseQueue(
      "17|RUNNING|node3|kiln-night-runner\n"
      "18|PENDING|(Resources)|kiln-night-runner\n"
      "19|COMPLETING|node3|kiln-night-builder\n"
      "20|CONFIGURING|node[4-5]|a|b\n"
      "21|REQUEUE_HOLD|(launch failed requeued held)|x\n"
      "22|SUSPENDED|node3|x\n");
  ASSERT_OK(jobs.status());
  EXPECT_THAT(*jobs,
              ElementsAre(SlurmJob{17, SlurmJobState::kRunning, "kiln-night-runner", "node3"},
                          SlurmJob{18, SlurmJobState::kPending, "kiln-night-runner", "Resources"},
                          SlurmJob{19, SlurmJobState::kEnding, "kiln-night-builder", "node3"},
                          SlurmJob{20, SlurmJobState::kRunning, "a|b", "node[4-5]"},
                          SlurmJob{21, SlurmJobState::kPending, "x", "launch failed requeued held"},
                          SlurmJob{22, SlurmJobState::kRunning, "x", "node3"}));
  EXPECT_THAT(*ParseQueue(""), IsEmpty());
  for (const char* bad : {"17", "x|RUNNING|n|a", "17|RUNNING|n", "17|RUNNING|n|", "|||"}) {
    EXPECT_EQ(ParseQueue(bad).status().code(), StatusCode::kInternal) << bad;
  }
}

TEST(SlurmPrograms, GivesEachArgumentAsAWordOfItsOwn) {
  EXPECT_THAT(SbatchCommand({"n", {"--comment=a b", "--gres=gpu:1"}, "#!/bin/sh\n"}),
              ElementsAre("sbatch", "--parsable", "--job-name=n", "--comment=a b", "--gres=gpu:1"));
  EXPECT_THAT(SqueueCommand({"a", "b"}),
              ElementsAre("squeue", "--me", "--noheader", "--name=a,b", "--format=%A|%T|%R|%j"));
}

TEST(SlurmPrograms, SaysWhatToDoAboutARefusal) {
  EXPECT_THAT(SlurmAdvice("sbatch: error: invalid partition specified: gpu"), HasSubstr("sinfo"));
  EXPECT_THAT(SlurmAdvice("Requested node configuration is not available"), HasSubstr("no node"));
  EXPECT_THAT(SlurmAdvice("Unable to contact slurm controller (connect failure)"),
              HasSubstr("scontrol ping"));
  EXPECT_THAT(SlurmAdvice("something new"), HasSubstr("--dry-run"));
}

// A faked program keeps what it got, and answers as a test says.
class SlurmProgramsTest : public testing::Test {
 protected:
  SlurmPrograms programs_{[this](const SubprocessOptions& options, std::string_view input) {
    commands_.push_back(options.argv);
    input_ = input;
    return answer_;
  }};
  StatusOr<RunResult> answer_ = RunResult();
  std::vector<std::vector<std::string>> commands_;
  std::string input_;
};

TEST_F(SlurmProgramsTest, SubmitsTheScriptAsInput) {
  answer_->output = "41\n";
  EXPECT_EQ(*programs_.Submit({"n", {"--requeue"}, "#!/bin/sh\nexec true\n"}), 41);
  EXPECT_THAT(commands_,
              ElementsAre(ElementsAre("sbatch", "--parsable", "--job-name=n", "--requeue")));
  EXPECT_EQ(input_, "#!/bin/sh\nexec true\n");
}

TEST_F(SlurmProgramsTest, CancelsAllInOneCall) {
  EXPECT_OK(programs_.Cancel({3, 4}));
  EXPECT_THAT(commands_, ElementsAre(ElementsAre("scancel", "--quiet", "3", "4")));
}

TEST_F(SlurmProgramsTest, AnErrorHasSlurmsWordsAndAdvice) {
  answer_->exit.code = 1;
  answer_->error =
      "sbatch: error: invalid partition specified: gpu\n"
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n";
  EXPECT_THAT(programs_.Submit({}).status(),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("sbatch ended with exit status 1: sbatch: error: invalid "
                                       "partition specified: gpu"),
                             HasSubstr("`sinfo` lists the partitions"))));
  EXPECT_EQ(programs_.List({"n"}).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(programs_.Cancel({1}).code(), StatusCode::kFailedPrecondition);
}

TEST_F(SlurmProgramsTest, AMissingProgramIsNamed) {
  answer_ = NotFound("no such file");
  EXPECT_THAT(programs_.List({"n"}).status(),
              StatusIs(StatusCode::kNotFound, HasSubstr("there is no program squeue")));
}

TEST_F(SlurmProgramsTest, AProgramThatHangsIsAnError) {
  answer_ = DeadlineExceeded("it runs still");
  EXPECT_THAT(programs_.List({"n"}).status(),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("squeue: it runs still")));
}

// A script in a folder of PATH stands for squeue.
TEST(SlurmProgramsInPath, RunWithoutTheUsersVariablesForSqueue) {
  const TempDir folder = *TempDir::Make("kiln-slurm");
  const std::string squeue = folder.Join("squeue");
  ASSERT_OK(WriteFile(squeue, "#!/bin/sh\necho \"7|RUNNING|$SQUEUE_PARTITION$SLURM_CONF|$4\"\n"));
  ASSERT_EQ(chmod(squeue.c_str(), 0755), 0);
  const std::string path = folder.path() + ":" + getenv("PATH");
  setenv("PATH", path.c_str(), 1);
  setenv("SQUEUE_PARTITION", "other", 1);
  setenv("SLURM_CONF", "/etc/x.conf", 1);
  SlurmPrograms programs;
  const auto jobs = programs.List({"a b"});
  ASSERT_OK(jobs.status());
  EXPECT_THAT(*jobs, ElementsAre(SlurmJob{7, SlurmJobState::kRunning, "--format=%A|%T|%R|%j",
                                          "/etc/x.conf"}));
}

}  // namespace
}  // namespace kiln::client
