// Tests the JSON of jobs, workers and records.
#include "base/status_testing.h"
#include "scheduler/pages/fleet_json.h"
#include "scheduler/pages/job_json.h"
#include "scheduler/pages/record_json.h"
#include "scheduler/values/job_testing.h"
#include "store/record_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

v1::JobStatus RunningJob() {
  v1::JobStatus job;
  job.set_id("4f3a");
  *job.mutable_spec() = TestJob(100);
  job.mutable_spec()->set_name("resnet");
  job.set_state(v1::RUNNING);
  job.set_trials_done(25);
  (*job.mutable_error_counts())[5] = 3;
  v1::TaskStatus& task = *job.add_tasks();
  *task.mutable_spec() = TestTask();
  task.mutable_spec()->set_weight(2);
  task.set_best_cost_s(1e-3);
  task.set_best_record_id(7);
  task.set_reference_cost_s(20e-3);
  return job;
}

TEST(JobJsonTest, HasWhatAListShows) {
  const Json row = JobRowJson(RunningJob(), RoundCurve());
  EXPECT_EQ(row["id"], "4f3a");
  EXPECT_EQ(row["name"], "resnet");
  EXPECT_EQ(row["state"], "running");
  EXPECT_EQ(row["is_final"], false);
  EXPECT_EQ(row["trials_done"], 25);
  EXPECT_EQ(row["trials_limit"], 100);
  EXPECT_EQ(row["errors"], 3);
  EXPECT_DOUBLE_EQ(row["total_s"].get<double>(), 2e-3);
  EXPECT_DOUBLE_EQ(row["speed_up"].get<double>(), 20);
  EXPECT_DOUBLE_EQ(row["progress"].get<double>(), 0.25);
  EXPECT_EQ(row["task_count"], 1);
}

TEST(JobJsonTest, TextsOfUsersStayWhatTheyAre) {
  v1::JobStatus job = RunningJob();
  job.mutable_spec()->set_name("<img src=x onerror=alert(1)>\"\\\x01");
  const std::string text = TextOf(JobRowJson(job, RoundCurve()));
  EXPECT_EQ(Json::parse(text)["name"], job.spec().name());
}

TEST(JobJsonTest, LongTextsAreCutAndBadBytesReplaced) {
  v1::JobStatus job = RunningJob();
  job.set_message(std::string(1'000'000, 'x'));
  job.mutable_spec()->set_name("caf\xe9");
  const std::string text = TextOf(JobRowJson(job, RoundCurve()));
  EXPECT_LT(text.size(), 10'000u);
  EXPECT_THAT(Json::parse(text)["name"].get<std::string>(), HasSubstr("caf"));
}

TEST(JobJsonTest, TasksAndNoticesAreLimited) {
  v1::JobStatus job = RunningJob();
  for (int i = 0; i < 2'000; ++i) *job.add_tasks() = job.tasks(0);
  for (int i = 0; i < 2'000; ++i) job.add_notices("a notice");
  EXPECT_EQ(TasksJson(job).size(), kMostTasks);
  EXPECT_EQ(JobRowJson(job, RoundCurve())["notices"].size(), 20u);
}

TEST(JobJsonTest, NoTaskHasMoreThanTheWholeTotal) {
  v1::JobStatus job = RunningJob();
  *job.add_tasks() = job.tasks(0);
  job.mutable_tasks(0)->set_best_cost_s(50e-3);
  job.mutable_tasks(1)->mutable_spec()->set_alternative_of(0);
  const Json tasks = TasksJson(job);
  EXPECT_EQ(tasks[0]["share"], 0);
  EXPECT_DOUBLE_EQ(tasks[1]["share"].get<double>(), 1);
}

TEST(JobJsonTest, SaysWhyInWords) {
  v1::JobStatus job = RunningJob();
  job.set_state(v1::PAUSED);
  const Json why = WhyJsonOf(job, {});
  ASSERT_EQ(why["reasons"].size(), 1u);
  EXPECT_EQ(why["reasons"][0]["kind"], "paused");
  EXPECT_FALSE(why["reasons"][0]["text"].get<std::string>().empty());
}

TEST(JobJsonTest, ATrialHasItsCommand) {
  const Json trial = TrialJson(store::FailedRecord("4f3a", 12, 5));
  EXPECT_EQ(trial["error_name"], "wrong answer");
  EXPECT_EQ(trial["command"], "kiln trial 4f3a/12");
  EXPECT_EQ(trial["cost_s"], 0);
}

TEST(FleetJsonTest, HasWorkersWithTheirDevices) {
  v1::ListReply reply;
  v1::WorkerState& worker = *reply.add_workers();
  worker.set_id("r1");
  worker.set_kind(v1::RUNNER);
  worker.set_slots(1);
  worker.set_mode(v1::WORKER_QUARANTINED);
  worker.set_mode_reason("the canary fails");
  worker.mutable_device_state()->set_sm_clock_mhz(1980);
  worker.add_drifts()->set_reason("the canary took 1.31 ms");
  reply.add_busy_slots(1);
  v1::KeyState& key = *reply.add_keys();
  key.set_key("cuda");
  key.set_kind(v1::RUNNER);
  key.set_pending(2);
  const Json fleet = FleetJson(reply);
  const Json& first = fleet["workers"][0];
  EXPECT_EQ(first["kind"], "runner");
  EXPECT_EQ(first["mode"], "quarantined");
  EXPECT_EQ(first["busy"], 1);
  EXPECT_EQ(first["state"]["sm_clock_mhz"], 1980);
  EXPECT_EQ(first["drifts"][0]["reason"], "the canary took 1.31 ms");
  EXPECT_EQ(fleet["keys"][0]["pending"], 2);
  EXPECT_EQ(fleet["more"], false);
}

TEST(FleetJsonTest, IsLimited) {
  v1::ListReply reply;
  for (int i = 0; i < 2 * kMostWorkers; ++i) reply.add_workers()->set_id("w");
  const Json fleet = FleetJson(reply);
  EXPECT_EQ(fleet["workers"].size(), static_cast<size_t>(kMostWorkers));
  EXPECT_EQ(fleet["more"], true);
}

store::Record Product() {
  store::Record record = store::TestRecord("4f3a", 3, 1e-3);
  record.dag = TestTask().dag();
  record.target = "null";
  record.steps = R"([["SP", 2, 0, 64, [8], 1]])";
  return record;
}

TEST(RecordJsonTest, HasStepsRoofAndCommands) {
  const Json json = RecordJson(Product(), "matmul", nullptr);
  EXPECT_EQ(json["description"], "matmul");
  ASSERT_EQ(json["steps"].size(), 1u);
  EXPECT_EQ(json["steps"][0]["name"], "split");
  EXPECT_EQ(json["steps"][0]["code"], "SP");
  EXPECT_EQ(json["steps"][0]["values"], "[2, 0, 64, [8], 1]");
  EXPECT_EQ(json["roof"]["known"], true);
  EXPECT_EQ(json["commands"][1], "kiln trial 4f3a/3");
  EXPECT_EQ(json["best_record"], 0);
}

TEST(RecordJsonTest, NamesAFormThatTheTargetHas) {
  store::Record record = Product();
  EXPECT_EQ(RecordJson(record, "", nullptr)["commands"][0], "kiln show 4f3a/3 --as program");
  record.target = "cuda -arch=sm_90";
  EXPECT_EQ(RecordJson(record, "", nullptr)["commands"][0], "kiln show 4f3a/3 --as cuda");
  record.target = "llvm -mcpu=native";
  EXPECT_EQ(RecordJson(record, "", nullptr)["commands"][0], "kiln show 4f3a/3 --as llvm");
}

TEST(RecordJsonTest, ShowsStepsThatItCannotReadAsTheyAre) {
  store::Record record = Product();
  record.steps = R"({"block_size_x": 32})";
  EXPECT_EQ(RecordJson(record, "", nullptr)["steps"][0]["values"], record.steps);
}

TEST(ProgramTextTest, MakesEachForm) {
  for (const std::string_view form : ProgramForms()) {
    const auto text = ProgramText(Product(), form, {});
    SCOPED_TRACE(form);
    ASSERT_OK(text);
    EXPECT_THAT(*text, HasSubstr("C")) << form;
  }
  EXPECT_THAT(*ProgramText(Product(), "loops", {}), HasSubstr("for i.0"));
}

TEST(ProgramTextTest, RefusesWhatItCannotMake) {
  EXPECT_THAT(ProgramText(Product(), "cuda", {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected one of: loops")));
  store::Record record = Product();
  record.steps = R"([["SP", 9, 0, 64, [8], 1]])";
  EXPECT_FALSE(ProgramText(record, "loops", {}).ok());
  record.dag = "";
  EXPECT_THAT(ProgramText(record, "loops", {}), StatusIs(StatusCode::kNotFound, testing::_));
}

}  // namespace
}  // namespace kiln::scheduler
