#include "client/jobs/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "proto/builder.pb.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

JobDescription Product() {
  JobDescription job;
  job.arguments.op = "matmul";
  job.arguments.args = "32,16,24";
  job.target = "null";
  return job;
}

TEST(JobSpecTest, AnOperatorIsATaskWithTheOptionsOfTheDescription) {
  JobDescription job = Product();
  job.name = "mine";
  job.weights = {3};
  job.options.set_trials(7);
  job.parameters = {"eps_greedy=0.5"};
  job.faults = {"3:null-store"};
  const auto spec = MakeJobSpec(job);
  ASSERT_OK(spec.status());
  ASSERT_EQ(spec->tasks_size(), 1);
  EXPECT_EQ(spec->tasks(0).description(), "matmul 32,16,24");
  EXPECT_EQ(spec->tasks(0).weight(), 3);
  EXPECT_EQ(spec->name(), "mine");
  EXPECT_NE(spec->user(), "");
  EXPECT_EQ(spec->options().trials(), 7u);
  EXPECT_EQ(spec->options().policy_parameters().at("eps_greedy"), 0.5);
  EXPECT_EQ(spec->options().faults().at(3), v1::FAULT_NULL_STORE);
}

TEST(JobSpecTest, APolicyIsChosenUnlessItIsNamed) {
  JobDescription job = Product();
  EXPECT_EQ(MakeJobSpec(job)->options().policy(), "sketch.xgb");
  job.schedule_template = "dense";
  job.target = "llvm";
  const auto spec = MakeJobSpec(job);
  ASSERT_OK(spec.status());
  EXPECT_EQ(spec->options().policy(), "template.xgb");
  job.options.set_policy("template.random");
  EXPECT_EQ(MakeJobSpec(job)->options().policy(), "template.random");
}

TEST(JobSpecTest, TextsBecomeTasksAndATextAfterAnOperatorIsRefused) {
  const TempDir folder = *TempDir::Make("job-spec-test");
  const std::string path = folder.Join("twice.te");
  ASSERT_OK(WriteFile(path, "input x: float32[8]\ny[i: 8] = x[i] + x[i]\n"));
  JobDescription job = Product();
  job.more = {path};
  EXPECT_THAT(std::string(Message(MakeJobSpec(job).status())), HasSubstr("after 'matmul'"));
  job.arguments = {.op = path};
  const auto spec = MakeJobSpec(job);
  ASSERT_OK(spec.status());
  EXPECT_EQ(spec->tasks_size(), 2);
}

TEST(JobSpecTest, TheOperatorsOfAListHaveTheTypeOfTheDescription) {
  const TempDir folder = *TempDir::Make("job-spec-test");
  ASSERT_OK(WriteFile(folder.Join("twice.te"), "input x: float32[8]\ny[i: 8] = x[i] + x[i]\n"));
  const std::string list = folder.Join("list.txt");
  ASSERT_OK(WriteFile(list, "1 matmul 32,16,24\n2 twice.te\n"));
  JobDescription job = Product();
  job.arguments = {.dtype = "float16"};
  job.tasks_path = list;
  const auto spec = MakeJobSpec(job);
  ASSERT_OK(spec.status());
  ASSERT_EQ(spec->tasks_size(), 2);
  EXPECT_EQ(spec->tasks(0).description(), "matmul 32,16,24 float16");
  EXPECT_THAT(spec->tasks(0).dag(), HasSubstr("float16"));
  EXPECT_THAT(spec->tasks(1).dag(), testing::Not(HasSubstr("float16")));
}

TEST(JobSpecTest, AWholeNetworkHasATaskForEachKindOfLayer) {
  JobDescription job = Product();
  job.arguments = {.op = "network:mlp"};
  const auto spec = MakeJobSpec(job);
  ASSERT_OK(spec.status());
  EXPECT_GT(spec->tasks_size(), 1);
  EXPECT_EQ(spec->tasks(0).network(), "network:mlp");
}

}  // namespace
}  // namespace kiln::client
