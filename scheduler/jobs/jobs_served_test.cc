// Jobs with parts that a process of the user serves.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "scheduler/callbacks/fake_process_testing.h"
#include "scheduler/jobs/jobs_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Stores, JobsTest, testing::Values(false, true), StoreName);

v1::JobSpec ServedJob(uint32_t trials) {
  v1::JobSpec spec = TestJob(trials);
  v1::TuneOptions& options = *spec.mutable_options();
  options.set_policy("sketch.xgb");
  options.set_trials_per_round(8);
  auto& parameters = *options.mutable_policy_parameters();
  parameters["evolutionary_search_population"] = 32;
  parameters["sample_init_population"] = 16;
  spec.mutable_served()->set_model_reads_rows(true);
  return spec;
}

// A model that ranks by the first feature, and remembers what it was told.
class FakeModel {
 public:
  v1::CallbackReply operator()(const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    for (uint32_t i = 0; i < request.predict().programs(); ++i) reply.add_values(i);
    predictions += request.has_predict();
    results += request.update().numbers_size();
    for (const v1::FeatureRows* rows : {&request.predict().rows(), &request.update().rows()}) {
      if (!rows->offsets().empty()) Count(*rows);
    }
    return reply;
  }
  FakeProcess::Answer Answer() {
    return [this](const v1::CallbackRequest& request) { return (*this)(request); };
  }

  std::atomic<int> predictions{0};
  std::atomic<int> results{0};
  // Numbers of rows with an estimate between a nanosecond and a second, and of all others.
  std::atomic<int> estimated{0};
  std::atomic<int> not_estimated{0};

 private:
  void Count(const v1::FeatureRows& rows) {
    const std::string& bytes = rows.estimates_s();
    int good = 0;
    for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
      float estimate_s = 0;
      std::memcpy(&estimate_s, bytes.data() + at, sizeof(estimate_s));
      good += estimate_s > 1e-9f && estimate_s < 1;
    }
    estimated += good;
    not_estimated += static_cast<int>(*rows.offsets().rbegin()) - good;
  }
};

// Returns "2" for a round of which two candidates were chosen by chance, for all rounds.
std::vector<std::string> ChosenByChance(store::Store& store, const std::string& id) {
  std::vector<std::string> chosen;
  const auto rounds = *store.RoundsOfJob(id, 0);
  for (const store::RoundRow& round : rounds) {
    const size_t begin = round.report.find('('), end = round.report.find(" by chance");
    if (end == std::string::npos) continue;
    chosen.push_back(round.report.substr(begin + 1, end - begin - 1));
  }
  return chosen;
}

TEST_P(JobsTest, AJobWaitsForTheProcessThatServesIt) {
  FakeBuilder builder;
  FakeRunner runner;
  AddBuilder(builder);
  AddRunner(runner);
  Start(/*max_running=*/1);
  const std::string id = Submit(ServedJob(24));
  EXPECT_EQ(State(id), v1::QUEUED);
  EXPECT_EQ(Status(id).phase(),
            "waits for the process that serves its cost model; client.serve(job, ...) in Python "
            "goes on with it");
  // Others run meanwhile.
  const std::string other = Submit(TestJob(4));
  ASSERT_TRUE(Ends(other));
  EXPECT_EQ(State(id), v1::QUEUED);
  EXPECT_EQ(Count(id), 0u);

  FakeModel model;
  const FakeProcess process(jobs_->callbacks(), id, model.Answer());
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 24);
  EXPECT_GT(model.predictions, 0);
  EXPECT_GT(model.results, 0);
  EXPECT_GT(model.estimated, 0);
  EXPECT_EQ(model.not_estimated, 0);
  EXPECT_THAT(store_->RoundsOfJob(id, 0)->front().report, HasSubstr("ranked by served"));
}

// A model learns from contrast, wherever it is.
TEST_P(JobsTest, AsMuchIsChosenByChanceAsWithTheBuiltInModel) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = ServedJob(40);
  spec.mutable_options()->set_no_warm_start(true);
  auto& parameters = *spec.mutable_options()->mutable_policy_parameters();
  parameters["evolutionary_search_population"] = 128;
  parameters["sample_init_population"] = 64;
  const std::string served = Submit(spec);
  FakeModel model;
  const FakeProcess process(jobs_->callbacks(), served, model.Answer());
  ASSERT_TRUE(Ends(served));
  spec.clear_served();
  const std::string built_in = Submit(spec);
  ASSERT_TRUE(Ends(built_in));
  const std::vector<std::string> chosen = ChosenByChance(*store_, served);
  EXPECT_EQ(chosen, ChosenByChance(*store_, built_in));
  ASSERT_EQ(chosen.size(), 5u);
  EXPECT_EQ(chosen[0], "2");
  EXPECT_EQ(chosen[4], "0");
}

TEST_P(JobsTest, AProcessThatDiesPausesTheJobAndAnotherOneLearnsAllResults) {
  FakeBuilder builder;
  FakeRunner runner(Slow(3));
  Serve(builder, runner);
  const std::string id = Submit(ServedJob(64));
  FakeModel model;
  auto process = std::make_unique<FakeProcess>(jobs_->callbacks(), id, model.Answer());
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 12; }));
  process.reset();
  // The job is queued in the store before it is in the queue, which tells its phase.
  ASSERT_TRUE(Eventually([&] {
    return Status(id).phase().find("waits for the process that serves its cost model") !=
           std::string::npos;
  }));
  EXPECT_EQ(State(id), v1::QUEUED);
  const size_t before = Count(id);
  EXPECT_LT(before, 64u);

  // A restart of the scheduler changes nothing.
  Restart();
  EXPECT_EQ(State(id), v1::QUEUED);
  EXPECT_THAT(Status(id).phase(), HasSubstr("waits for the process"));
  EXPECT_EQ(Count(id), before);

  FakeModel next;
  process = std::make_unique<FakeProcess>(jobs_->callbacks(), id, next.Answer());
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 64);
  // The first candidates are those of the heuristic, which teach nothing of the sketches.
  EXPECT_GE(next.results, static_cast<int>(before) - 8);
  process.reset();
}

TEST_P(JobsTest, AnErrorOfTheUsersCodeFailsTheJobWhichCanGoOn) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  const std::string id = Submit(ServedJob(24));
  {
    FakeModel model;
    const FakeProcess process(jobs_->callbacks(), id, [&](const v1::CallbackRequest& request) {
      v1::CallbackReply reply = model(request);
      if (request.has_update()) reply.set_error("KeyError: 'conv2d' (model.py:17)");
      return reply;
    });
    ASSERT_TRUE(Ends(id));
  }
  EXPECT_EQ(State(id), v1::FAILED);
  EXPECT_EQ(Status(id).message(),
            "the cost model of the user raised an error: KeyError: 'conv2d' (model.py:17)");
  EXPECT_GT(Count(id), 0u);
  ASSERT_OK(jobs_->Resume(id));
  FakeModel model;
  const FakeProcess process(jobs_->callbacks(), id, model.Answer());
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 24);
}

TEST_P(JobsTest, ACancelEndsAJobThatWaitsOrIsServed) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  const std::string waiting = Submit(ServedJob(24));
  ASSERT_OK(jobs_->Cancel(waiting));
  EXPECT_EQ(State(waiting), v1::CANCELLED);

  const std::string served = Submit(ServedJob(1000));
  FakeModel model;
  std::atomic<bool> hold{true}, called{false};
  const FakeProcess process(jobs_->callbacks(), served, [&](const v1::CallbackRequest& request) {
    called = true;
    while (hold) absl::SleepFor(absl::Milliseconds(2));
    return model(request);
  });
  ASSERT_TRUE(Eventually([&] { return called.load(); }));
  ASSERT_OK(jobs_->Cancel(served));
  EXPECT_EQ(State(served), v1::CANCELLED);
  // The run ends although the call has no answer.
  jobs_->Stop();
  hold = false;
}

TEST_P(JobsTest, AnObjectiveOfTheUserIgnoresATask) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(60);
  *spec.add_tasks() = TestTask(32);
  spec.mutable_options()->set_trials_per_round(4);
  spec.mutable_served()->set_objective(true);
  const std::string id = Submit(spec);
  const FakeProcess process(jobs_->callbacks(), id, [](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    const auto& latencies = request.objective().latencies_s();
    for (int i = 0; i < latencies.size(); i += 2) reply.add_values(latencies[i]);
    return reply;
  });
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  EXPECT_GT(Status(id).tasks(0).trials(), 40u);
  EXPECT_LT(Status(id).tasks(1).trials(), 20u);
  EXPECT_NEAR(store_->RoundsOfJob(id, 0)->back().total_latency_s.value(),
              Status(id).tasks(0).best_cost_s(), 1e-9);
}

TEST_P(JobsTest, ASketchRuleOfTheUserMakesWhatIsMeasured) {
  FakeBuilder builder;
  FakeRunner runner;
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(12);
  spec.mutable_served()->add_sketch_rules("sevenths");
  const std::string id = Submit(spec);
  const FakeProcess process(jobs_->callbacks(), id, [](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    const v1::RuleCall& call = request.rules();
    for (int i = 0; i < call.states_size(); ++i) {
      if (call.states(i).stage() != 2 || call.states(i).steps() != "[]") continue;
      v1::AppliedRule& applied = *reply.add_applied();
      applied.set_state(static_cast<uint32_t>(i));
      applied.set_skip_rest(true);
      applied.add_made()->set_steps(R"([["SP", 2, 1, 64, [7], 1]])");
      applied.mutable_made(0)->set_stage(1);
    }
    return reply;
  });
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  int of_rule = 0;
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const store::Record& record : records)
    of_rule += record.steps.find(R"(["SP", 2, 1, 64, [7], 1])") != std::string::npos;
  EXPECT_GT(of_rule, 3);
}

TEST_P(JobsTest, AJobOfABuildFunctionPausesWithItsProcessAndGoesOnWithAnother) {
  FakeBuilder builder;
  FakeRunner runner(Slow(3));
  Serve(builder, runner);
  v1::JobSpec spec = TestJob(40);
  spec.mutable_served()->set_builds(2);
  const std::string id = Submit(spec);
  const auto build = [](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    reply.set_binary("binary from " + request.build().source());
    return reply;
  };
  auto process = std::make_unique<FakeProcess>(jobs_->callbacks(), id, build);
  ASSERT_TRUE(Eventually([&] { return Count(id) >= 8; }));
  process.reset();
  ASSERT_TRUE(Eventually([&] {
    return Status(id).phase().find("waits for the process that serves its build function") !=
           std::string::npos;
  }));
  EXPECT_EQ(State(id), v1::QUEUED);
  EXPECT_LT(Count(id), 40u);
  process = std::make_unique<FakeProcess>(jobs_->callbacks(), id, build);
  ASSERT_TRUE(Ends(id));
  EXPECT_EQ(State(id), v1::SUCCEEDED) << Status(id).message();
  ExpectExactly(id, 40);
  const auto records = *store_->RecordsOfJob(id, 0);
  for (const store::Record& record : records) EXPECT_EQ(record.error, v1::NO_ERROR);
  process.reset();
}

TEST_P(JobsTest, ServedCodeIsCheckedWhenAJobIsSubmitted) {
  Start();
  const auto refused = [&](const v1::JobSpec& spec) {
    return std::string(Message(jobs_->Submit(spec).status()));
  };
  v1::JobSpec spec = ServedJob(8);
  spec.mutable_options()->set_policy("sketch.random");
  EXPECT_EQ(refused(spec),
            "policy sketch.random ranks by no cost model of schedules, and the job serves one; "
            "expected policy sketch.xgb");
  spec = ServedJob(8);
  (*spec.mutable_options()->mutable_model_parameters())["max_depth"] = 3;
  EXPECT_THAT(refused(spec), HasSubstr("expected one of them"));
  spec = ServedJob(8);
  spec.mutable_served()->add_sketch_rules("a");
  spec.mutable_served()->add_sketch_rules("a");
  EXPECT_EQ(refused(spec), "two served sketch rules are named a, expected different names");
  spec = TestJob(8);
  spec.mutable_options()->set_policy("empty");
  spec.mutable_served()->add_sketch_rules("a");
  EXPECT_THAT(refused(spec), HasSubstr("policy empty makes no sketches"));
  spec = ServedJob(8);
  spec.mutable_served()->set_timeout_s(std::nan(""));
  EXPECT_THAT(refused(spec), HasSubstr("served.timeout_s is nan, expected 0 to 86400"));
}

}  // namespace
}  // namespace kiln::scheduler
