#include "client/check/baseline.h"

#include <gmock/gmock.h>

#include <map>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Verdict = ComparedTask::Verdict;

constexpr char kLog[] =
    R"({"i": [["[\"key1\", 8]", "llvm", [2, 64, 64, 0, 0, 0, 0, 0], "", 0, []], [[], [["FU", 0, [0, 1]]]]], )"
    R"("r": [[2e-3], 0, 0.5, 1], "v": "v0.6"})"
    "\n"
    R"({"i": [["[\"key1\", 8]", "llvm", [2, 64, 64, 0, 0, 0, 0, 0], "", 0, []], [[], [["PR", 0, "best"]]]], )"
    R"("r": [[1e-3], 0, 0.5, 1], "v": "v0.6"})"
    "\n"
    R"({"i": [["[\"key1\", 8]", "llvm", [2, 64, 64, 0, 0, 0, 0, 0], "", 0, []], [[], []]], )"
    R"("r": [[1e+10], 4, 0.5, 1], "v": "v0.6"})"
    "\n";
constexpr char kResult[] =
    R"({"event":"start","job":"1"})"
    "\n"
    R"({"event":"end","tasks":[{"workload_key":"[\"key1\", 8]","best_cost_s":3e-3,)"
    R"("confidence_s":1e-5,"steps":"[]"},{"workload_key":"[\"key2\", 8]","best_cost_s":null}]})"
    "\n";

class BaselineTest : public testing::Test {
 protected:
  StatusOr<Baseline> Read(const std::string& text) const {
    KILN_RETURN_IF_ERROR(WriteFile(path_, text));
    return ReadBaseline(path_);
  }
  const TempDir folder_ = *TempDir::Make("kiln-baseline");
  const std::string path_ = folder_.Join("baseline");
};

TEST_F(BaselineTest, TheFasterProgramOfALogCounts) {
  ASSERT_OK_AND_ASSIGN(const Baseline baseline, Read(kLog));
  ASSERT_EQ(baseline.tasks.size(), 1u);
  EXPECT_EQ(baseline.tasks[0].workload_key, R"(["key1", 8])");
  EXPECT_EQ(baseline.tasks[0].cost_s, 1e-3);
  EXPECT_THAT(baseline.tasks[0].steps, HasSubstr("best"));
  EXPECT_EQ(baseline.Find("[]"), nullptr);
}

TEST_F(BaselineTest, ASavedResult) {
  ASSERT_OK_AND_ASSIGN(const Baseline baseline, Read(kResult));
  ASSERT_EQ(baseline.tasks.size(), 1u);
  EXPECT_EQ(baseline.tasks[0].confidence_s, 1e-5);
  EXPECT_EQ(baseline.tasks[0].steps, "[]");
}

TEST_F(BaselineTest, AnythingElseIsRefused) {
  for (const char* text : {"hello", "[1]", R"({"i": 3})", "KILN-NET and no more", "\x01\xff"}) {
    EXPECT_THAT(Read(text), StatusIs(StatusCode::kInvalidArgument,
                                     AllOf(HasSubstr(path_), HasSubstr("expected a log"))))
        << text;
  }
  for (const char* text : {"", "# a comment\n", R"({"event":"end","tasks":[{}, 3]})"}) {
    EXPECT_THAT(Read(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("has no times; expected")))
        << text;
  }
  EXPECT_FALSE(ReadBaseline(folder_.Join("none")).ok());
}

// A job with a task for each key, whose best program is named by its steps.
v1::JobStatus Job(const std::vector<std::string>& keys, std::vector<v1::Record>& best,
                  double cost_s = 2e-3) {
  v1::JobStatus job;
  for (const std::string& key : keys) {
    v1::TaskStatus& task = *job.add_tasks();
    task.set_workload_key(key);
    task.mutable_spec()->set_description("task " + key);
    v1::Record& record = best.emplace_back();
    record.set_task_index(static_cast<uint32_t>(job.tasks_size() - 1));
    record.set_steps("new " + key);
    record.set_dag("dag of " + key);
    record.mutable_result()->add_costs_s(cost_s);
  }
  return job;
}

TEST_F(BaselineTest, BothProgramsAreMeasuredInTurns) {
  const Baseline baseline{.path = "b",
                          .tasks = {{.workload_key = "slow", .steps = "old slow", .cost_s = 1},
                                    {.workload_key = "fast", .steps = "old fast", .cost_s = 1},
                                    {.workload_key = "same", .steps = "old same", .cost_s = 1}}};
  std::vector<v1::Record> best;
  const v1::JobStatus job = Job({"slow", "fast", "same"}, best);
  const std::map<std::string, double> seconds = {{"old slow", 1.0}, {"new slow", 1.2},
                                                 {"old fast", 1.0}, {"new fast", 0.5},
                                                 {"old same", 1.0}, {"new same", 1.004}};
  std::vector<std::string> calls;
  double drift = 1;
  const MeasureSteps measure = [&](const std::string& dag,
                                   const std::string& steps) -> StatusOr<double> {
    EXPECT_EQ(dag, "dag of " + steps.substr(4));
    calls.push_back(steps);
    // The device becomes slower all the time.
    drift *= 1.0005;
    return drift * seconds.at(steps);
  };
  const auto tasks = CompareWithBaseline(baseline, job, best, measure, "", 5);
  EXPECT_EQ(tasks[0].verdict, Verdict::kSlower);
  EXPECT_NEAR(tasks[0].ratio, 1.2, 0.01);
  EXPECT_TRUE(tasks[0].measured);
  EXPECT_EQ(tasks[1].verdict, Verdict::kFaster);
  EXPECT_EQ(tasks[2].verdict, Verdict::kSame);
  EXPECT_TRUE(AnySlower(tasks));
  ASSERT_EQ(calls.size(), 30u);
  EXPECT_EQ(calls[0], "old slow");
  EXPECT_EQ(calls[1], "new slow");
  EXPECT_THAT(ComparedTable(tasks, "b", 0),
              AllOf(HasSubstr("SLOWER"), HasSubstr("3 tasks: 1 faster, 1 as fast, 1 slower")));
  EXPECT_THAT(ComparedJson(tasks, "b"), HasSubstr(R"("verdict":"SLOWER","measured":true)"));
}

// Readings that scatter are no verdict.
TEST_F(BaselineTest, NoiseIsNoChange) {
  const Baseline baseline{.path = "b",
                          .tasks = {{.workload_key = "k", .steps = "old k", .cost_s = 1}}};
  std::vector<v1::Record> best;
  const v1::JobStatus job = Job({"k"}, best);
  int call = 0;
  const std::vector<double> noise = {1.0, 1.3, 1.2, 1.0, 1.0, 1.1, 1.2, 0.9, 1.1, 1.2};
  const auto tasks = CompareWithBaseline(
      baseline, job, best,
      [&](const std::string&, const std::string&) -> StatusOr<double> { return noise.at(call++); },
      "", 5);
  EXPECT_EQ(tasks[0].verdict, Verdict::kSame) << tasks[0].ratio << " " << tasks[0].confidence;
}

TEST_F(BaselineTest, RecordedTimesWhereTheProgramsCannotRun) {
  const Baseline baseline{
      .path = "b",
      .tasks = {{.workload_key = "k", .cost_s = 1e-3}, {.workload_key = "gone", .cost_s = 1e-3}}};
  std::vector<v1::Record> best;
  v1::JobStatus job = Job({"k", "other", "gone"}, best);
  best.pop_back();
  const auto never = [](const std::string&, const std::string&) -> StatusOr<double> {
    return Internal("the device is gone");
  };
  const auto tasks = CompareWithBaseline(baseline, job, best, never, "", 5);
  EXPECT_EQ(tasks[0].verdict, Verdict::kSlower);
  EXPECT_FALSE(tasks[0].measured);
  EXPECT_EQ(tasks[0].remark, "the baseline has no program, its time is recorded");
  EXPECT_EQ(tasks[1].remark, "the baseline does not have it");
  EXPECT_EQ(tasks[2].remark, "the job has no program for it");
  EXPECT_EQ(tasks[2].verdict, Verdict::kNotCompared);
  const Baseline with_program{.path = "b",
                              .tasks = {{.workload_key = "k", .steps = "old", .cost_s = 2e-3}}};
  EXPECT_THAT(CompareWithBaseline(with_program, job, best, never, "", 5)[0].remark,
              HasSubstr("recorded ones: the device is gone"));
  EXPECT_EQ(CompareWithBaseline(with_program, job, best, nullptr, "elsewhere", 5)[0].verdict,
            Verdict::kSame);
}

}  // namespace
}  // namespace kiln::client
