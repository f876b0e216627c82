#include "scheduler/callbacks/served_search.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/step.h"
#include "scheduler/callbacks/fake_process_testing.h"
#include "search/space/sketch.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kJob[] = "job";
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

FloatMatrix Rows(std::initializer_list<float> values, int columns) {
  FloatMatrix rows(columns);
  int i = 0;
  for (const float value : values) {
    if (i % columns == 0) rows.AddRow();
    rows.row(rows.rows() - 1)[i++ % columns] = value;
  }
  return rows;
}

v1::CallbackReply Values(std::initializer_list<double> values) {
  v1::CallbackReply reply;
  for (const double value : values) reply.add_values(value);
  return reply;
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// Estimates that a row takes as many seconds as its first column says.
class FirstColumn final : public costmodel::CostModel {
 public:
  std::string_view name() const override { return "first column"; }
  Status Update(std::vector<costmodel::Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override {
    return std::vector<double>(programs.size());
  }
  std::vector<double> PredictRows(const FloatMatrix& program) const override {
    std::vector<double> scores;
    for (int i = 0; i < program.rows(); ++i) scores.push_back(-program.row(i)[0]);
    return scores;
  }
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return Internal("no"); }
  Status Load(std::string_view) override { return Internal("no"); }
};

class ServedSearchTest : public testing::Test {
 protected:
  // Serves the search by a function.
  ServedSearch& Serve(FakeProcess::Answer answer) {
    process_ = std::make_unique<FakeProcess>(hub_, kJob, std::move(answer));
    served_.set_timeout_s(5);
    auto search = ServedSearch::Begin(
        hub_, {.job_id = kJob, .served = served_, .stop = stop_.get_token(), .failed = [this] {
                 ++failures_;
                 stop_.request_stop();
               }});
    KILN_CHECK(search.ok(), "{}", search.status().ToString());
    search_ = *std::move(search);
    return *search_;
  }
  void ExpectFailure(StatusCode code, const std::string& message) {
    EXPECT_THAT(search_->failure(), StatusIs(code, HasSubstr(message)));
    EXPECT_EQ(failures_, 1);
  }

  const std::shared_ptr<const costmodel::CostModel> analytic_ = std::make_shared<FirstColumn>();
  CallbackHub hub_;
  v1::ServedCode served_;
  std::stop_source stop_;
  std::atomic<int> failures_{0};
  std::unique_ptr<FakeProcess> process_;
  std::unique_ptr<ServedSearch> search_;
};

TEST_F(ServedSearchTest, WithoutAProcessThereIsNone) {
  EXPECT_THAT(ServedSearch::Begin(hub_, {.job_id = kJob}).status(),
              StatusIs(StatusCode::kUnavailable, "the user's process has disconnected"));
}

// ---- builds

v1::BuildCall BuildOf(const std::string& source) {
  v1::BuildCall call;
  call.set_source(source);
  return call;
}

TEST_F(ServedSearchTest, ABuildThatFailsFailsNothingElse) {
  served_.set_builds(2);
  ServedSearch& search = Serve([](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    const std::string& source = request.build().source();
    if (source == "slow") absl::SleepFor(absl::Milliseconds(100));
    if (source == "bad") {
      reply.set_error("no such flag");
    } else {
      reply.set_binary("binary of " + source);
    }
    return reply;
  });
  const auto build = [&](const std::string& source, absl::Duration limit) {
    return search.Build(BuildOf(source), limit, {});
  };
  ASSERT_OK_AND_ASSIGN(const v1::CallbackReply good, build("good", absl::Seconds(5)));
  EXPECT_EQ(good.binary(), "binary of good");
  ASSERT_OK_AND_ASSIGN(const v1::CallbackReply bad, build("bad", absl::Seconds(5)));
  EXPECT_EQ(bad.error(), "no such flag");
  EXPECT_THAT(build("slow", absl::Milliseconds(20)).status(),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("within 0.02 s")));
  EXPECT_OK(search.failure());
  EXPECT_EQ(failures_, 0);
  process_.reset();
  EXPECT_EQ(build("good", absl::Seconds(5)).status().code(), StatusCode::kUnavailable);
  ExpectFailure(StatusCode::kUnavailable, "the user's process has disconnected");
}

// ---- the cost model

TEST_F(ServedSearchTest, AModelGetsRowsAndSteps) {
  served_.set_model_reads_rows(true);
  served_.set_model_reads_steps(true);
  v1::PredictCall seen;
  ServedSearch& search = Serve([&](const v1::CallbackRequest& request) {
    seen = request.predict();
    return Values({0.5, -kInf});
  });
  const auto model = search.Model(3, analytic_);
  EXPECT_TRUE(model->reads_steps());
  const FloatMatrix one = Rows({1, 2, 3, 4}, 2), two = Rows({5, 6}, 2);
  const FloatMatrix* const programs[] = {&one, &two};
  const std::string steps[] = {"[1]", "[2]"};
  EXPECT_THAT(model->PredictSchedules(programs, steps), ElementsAre(0.5, -kInf));
  EXPECT_OK(search.failure());
  EXPECT_EQ(seen.task_index(), 3u);
  EXPECT_EQ(seen.programs(), 2u);
  EXPECT_EQ(seen.rows().columns(), 2u);
  EXPECT_THAT(seen.rows().offsets(), ElementsAre(0, 2, 3));
  EXPECT_THAT(Floats(seen.rows().values()), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Floats(seen.rows().estimates_s()), ElementsAre(1, 3, 5));
  EXPECT_THAT(seen.steps(), ElementsAre("[1]", "[2]"));
}

TEST_F(ServedSearchTest, AModelOfStepsAloneGetsNoRows) {
  served_.set_model_reads_steps(true);
  bool has_rows = true;
  ServedSearch& search = Serve([&](const v1::CallbackRequest& request) {
    has_rows = request.predict().has_rows();
    return Values({1});
  });
  const FloatMatrix one = Rows({1, 2}, 2);
  const FloatMatrix* const programs[] = {&one};
  const std::string steps[] = {"[1]"};
  EXPECT_THAT(search.Model(0, analytic_)->PredictSchedules(programs, steps), ElementsAre(1));
  EXPECT_FALSE(has_rows);
}

TEST_F(ServedSearchTest, AModelOfStepsIsNotAskedWithoutThem) {
  served_.set_model_reads_steps(true);
  ServedSearch& search = Serve([](const v1::CallbackRequest&) { return Values({1}); });
  const FloatMatrix one = Rows({1, 2}, 2);
  const FloatMatrix* const programs[] = {&one};
  EXPECT_THAT(search.Model(0, analytic_)->Predict(programs), ElementsAre(-kInf));
  EXPECT_EQ(process_->calls(), 0);
  ExpectFailure(StatusCode::kInternal, "the cost model reads steps");
}

// A message holds 64 MiB of what the model reads.
TEST_F(ServedSearchTest, ALargeCallIsMadeInParts) {
  struct Case {
    bool rows = false, steps = false;
    std::vector<uint32_t> parts;
  };
  const Case cases[] = {{.rows = true, .parts = {2, 1}},
                        {.steps = true, .parts = {1, 2}},
                        {.rows = true, .steps = true, .parts = {1, 1, 1}}};
  constexpr int kLarge = 40 << 20, kSmall = 8 << 20;
  FloatMatrix large(kLarge / sizeof(float)), small(kSmall / sizeof(float));
  large.AddRow();
  small.AddRow();
  const FloatMatrix* const programs[] = {&small, &large, &large};
  const std::string steps[] = {std::string(kLarge, ' '), std::string(kLarge, ' '), "[]"};
  for (const Case& each : cases) {
    process_.reset();
    served_.set_model_reads_rows(each.rows);
    served_.set_model_reads_steps(each.steps);
    std::vector<uint32_t> parts;
    ServedSearch& search = Serve([&](const v1::CallbackRequest& request) {
      parts.push_back(request.predict().programs());
      v1::CallbackReply reply;
      for (uint32_t i = 0; i < parts.back(); ++i) reply.add_values(1);
      return reply;
    });
    EXPECT_THAT(search.Model(0, analytic_)->PredictSchedules(programs, steps),
                ElementsAre(1, 1, 1));
    EXPECT_EQ(parts, each.parts) << each.rows << each.steps;
  }
}

TEST_F(ServedSearchTest, ResultsAreToldByNumberAndCorrectedByIt) {
  served_.set_model_reads_rows(true);
  std::vector<v1::UpdateCall> seen;
  ServedSearch& search = Serve([&](const v1::CallbackRequest& request) {
    seen.push_back(request.update());
    return v1::CallbackReply();
  });
  const auto model = search.Model(0, analytic_);
  const auto one = std::make_shared<const FloatMatrix>(Rows({1, 2}, 2));
  const auto two = std::make_shared<const FloatMatrix>(Rows({3, 4}, 2));
  EXPECT_FALSE(model->trained());
  EXPECT_OK(model->Update({{.rows = one, .cost_s = 1e-3, .id = 7}, {.rows = two, .id = 8}}));
  EXPECT_TRUE(model->trained());
  EXPECT_OK(model->Update({{.rows = one, .cost_s = 2e-3, .id = 7, .corrects = true}}));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_THAT(seen[0].numbers(), ElementsAre(0, 1));
  EXPECT_EQ(seen[0].costs_s(0), 1e-3);
  EXPECT_TRUE(std::isnan(seen[0].costs_s(1)));
  EXPECT_THAT(Floats(seen[0].rows().estimates_s()), ElementsAre(1, 3));
  EXPECT_THAT(seen[1].numbers(), ElementsAre(0));
  EXPECT_THAT(seen[1].costs_s(), ElementsAre(2e-3));
}

TEST_F(ServedSearchTest, ScoresThatDoNotFitEndTheSearch) {
  struct Case {
    v1::CallbackReply reply;
    std::string why;
  };
  v1::CallbackReply raised;
  raised.set_error("ValueError: no such column");
  const Case cases[] = {
      {Values({1}), "the cost model returned 1 scores for 2 states, expected one for each"},
      {Values({1, 2, 3}), "the cost model returned 3 scores for 2 states"},
      {Values({1, kNan}), "the cost model returned nan for state 1 of 2, expected a finite number"},
      {Values({kInf, 1}), "the cost model returned inf for state 0 of 2"},
      {raised, "the cost model of the user raised an error: ValueError: no such column"},
  };
  served_.set_model_reads_rows(true);
  const FloatMatrix one = Rows({1, 2}, 2);
  const FloatMatrix* const programs[] = {&one, &one};
  for (const Case& each : cases) {
    process_.reset();
    stop_ = std::stop_source();
    failures_ = 0;
    ServedSearch& search = Serve([&](const v1::CallbackRequest&) { return each.reply; });
    EXPECT_THAT(search.Model(0, analytic_)->Predict(programs), ElementsAre(-kInf, -kInf))
        << each.why;
    EXPECT_THAT(search.failure(), StatusIs(testing::_, HasSubstr(each.why)));
    EXPECT_NE(search.failure().code(), StatusCode::kUnavailable);
    EXPECT_EQ(failures_, 1);
    EXPECT_TRUE(stop_.stop_requested());
  }
}

TEST_F(ServedSearchTest, AProcessThatHasGoneIsAFailureOfItsOwnKind) {
  served_.set_model_reads_rows(true);
  ServedSearch& search = Serve([](const v1::CallbackRequest&) { return Values({1}); });
  process_.reset();
  const FloatMatrix one = Rows({1, 2}, 2);
  const FloatMatrix* const programs[] = {&one};
  EXPECT_THAT(search.Model(0, analytic_)->Predict(programs), ElementsAre(-kInf));
  ExpectFailure(StatusCode::kUnavailable, "the user's process has disconnected");
}

// ---- the objective

TEST_F(ServedSearchTest, AnObjectiveIsAskedOnceForValueAndSlopes) {
  served_.set_objective(true);
  ServedSearch& search = Serve([](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    const auto& at = request.objective().latencies_s();
    for (int i = 0; i < at.size(); i += 3) reply.add_values(2 * at[i] + 5 * at[i + 1]);
    return reply;
  });
  const search::Objective objective = search.Objective(0);
  const double at[] = {1e-3, 2e-3, 3e-3};
  EXPECT_DOUBLE_EQ(objective.value(at), 0.012);
  EXPECT_NEAR(objective.slopes(at)[0], 2, 1e-6);
  EXPECT_NEAR(objective.slopes(at)[1], 5, 1e-6);
  EXPECT_EQ(objective.slopes(at)[2], 0);  // the function does not look at it
  EXPECT_EQ(process_->calls(), 1);
  const double later[] = {1e-3, 1e-3, 3e-3};
  EXPECT_DOUBLE_EQ(objective.value(later), 0.007);
  EXPECT_EQ(process_->calls(), 2);
}

TEST_F(ServedSearchTest, EqualLargestLatenciesHaveASlopeTogether) {
  served_.set_objective(true);
  ServedSearch& search = Serve([](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    const auto& at = request.objective().latencies_s();
    for (int i = 0; i < at.size(); i += 2) reply.add_values(std::max(at[i], at[i + 1]));
    return reply;
  });
  const search::Objective objective = search.Objective(0);
  const double none[] = {1e10, 1e10};
  EXPECT_GT(objective.slopes(none)[0], 0);
  EXPECT_EQ(objective.slopes(none)[0], objective.slopes(none)[1]);
  const double at[] = {2, 1};
  EXPECT_NEAR(objective.slopes(at)[0], 1, 1e-9);
  EXPECT_EQ(objective.slopes(at)[1], 0);
}

TEST_F(ServedSearchTest, ATargetIsReached) {
  served_.set_objective(true);
  ServedSearch& search = Serve([](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    for (const double at : request.objective().latencies_s()) reply.add_values(at);
    return reply;
  });
  const search::Objective objective = search.Objective(2);
  const double above[] = {3.0}, below[] = {1.0};
  EXPECT_GT(objective.slopes(above)[0], 0);
  EXPECT_EQ(objective.slopes(below)[0], 0);
  EXPECT_EQ(objective.value(below), 2);
}

TEST_F(ServedSearchTest, AnObjectiveThatIsNoNumberEndsTheSearch) {
  served_.set_objective(true);
  ServedSearch& search = Serve([](const v1::CallbackRequest&) { return Values({1, kNan, 1}); });
  const double at[] = {1.0};
  EXPECT_EQ(search.Objective(0).slopes(at)[0], 0);
  ExpectFailure(StatusCode::kInvalidArgument,
                "the objective returned nan, expected a finite number");
}

// ---- the sketch rules

class ServedRulesTest : public ServedSearchTest {
 protected:
  ServedRulesTest() {
    served_.add_sketch_rules("halves");
    const auto dag = dag::ParseDag(
        "input A: float32[64, 64]\ninput B: float32[64, 64]\n"
        "C[i: 64, j: 64] = sum(k: 64) A[i, k] * B[k, j]\n");
    KILN_CHECK(dag.ok(), "{}", dag.status().ToString());
    task_.emplace(*dag, *target::ParseTarget("llvm"), target::HardwareParams(), "key");
  }
  // Answers for the sum as it is at first: it is made by the steps, and `stage` is next.
  static FakeProcess::Answer ForSum(const std::string& steps, int stage) {
    return [=](const v1::CallbackRequest& request) {
      v1::CallbackReply reply;
      const v1::RuleCall& call = request.rules();
      for (int i = 0; i < call.states_size(); ++i) {
        if (call.states(i).stage() != 2 || call.states(i).steps() != "[]") continue;
        v1::AppliedRule& applied = *reply.add_applied();
        applied.set_state(static_cast<uint32_t>(i));
        applied.set_skip_rest(true);
        applied.add_made()->set_steps(steps);
        applied.mutable_made(0)->set_stage(stage);
      }
      return reply;
    };
  }
  std::vector<search::Sketch> Sketches(FakeProcess::Answer answer) {
    ServedSearch& search = Serve(std::move(answer));
    task_->stop = stop_.get_token();
    const auto rules = search.Rules(0);
    const search::Parameters parameters;
    return search::GenerateSketches({*task_, parameters, rules.get()});
  }

  std::optional<search::Task> task_;
};

TEST_F(ServedRulesTest, ARuleStandsBeforeTheBuiltInOnes) {
  const std::string split = R"([["SP", 2, 0, 64, [0, 2], 1]])";
  const auto sketches = Sketches(ForSum(split, 1));
  EXPECT_OK(search_->failure());
  ASSERT_EQ(sketches.size(), 1u);
  EXPECT_EQ(schedule::PrintSteps(sketches[0].steps), split);
  // A call for each level: the sum and its two inputs.
  EXPECT_EQ(process_->calls(), 3);
}

TEST_F(ServedRulesTest, ARuleThatLetsOthersTryAddsItsSketch) {
  const search::Parameters parameters;
  const size_t built_in = search::GenerateSketches({*task_, parameters}).size();
  const auto answer = ForSum(R"([["SP", 2, 0, 64, [0, 2], 1]])", 1);
  const auto sketches = Sketches([&](const v1::CallbackRequest& request) {
    v1::CallbackReply reply = answer(request);
    for (v1::AppliedRule& applied : *reply.mutable_applied()) applied.set_skip_rest(false);
    return reply;
  });
  EXPECT_EQ(sketches.size(), built_in + 1);
}

TEST_F(ServedRulesTest, StepsThatDoNotApplyEndTheSearch) {
  EXPECT_TRUE(Sketches(ForSum(R"([["SP", 2, 9, 64, [2], 1]])", 1)).empty());
  ExpectFailure(StatusCode::kInvalidArgument,
                "sketch rule halves, stage 2: state 0 that it made: ");
  EXPECT_THAT(search_->failure(), StatusIs(testing::_, HasSubstr("loop 9 does not exist")));
}

TEST_F(ServedRulesTest, TextsThatAreNoStepsEndTheSearch) {
  EXPECT_TRUE(Sketches(ForSum("[", 1)).empty());
  EXPECT_THAT(search_->failure(), StatusIs(testing::_, HasSubstr("state 0 that it made: ")));
  EXPECT_EQ(failures_, 1);
}

TEST_F(ServedRulesTest, AStageThatIsNotThereEndsTheSearch) {
  EXPECT_TRUE(Sketches(ForSum("[]", 7)).empty());
  ExpectFailure(StatusCode::kInvalidArgument, "goes on with stage 7, expected -1 to 2");
}

TEST_F(ServedRulesTest, RulesThatNeverDecideAStageEndTheSearch) {
  EXPECT_TRUE(Sketches(ForSum("[]", 2)).empty());
  ExpectFailure(StatusCode::kFailedPrecondition, "have not decided all stages after 88 calls");
}

TEST_F(ServedRulesTest, StepsOfAnotherStateEndTheSearch) {
  const auto answer = [](const v1::CallbackRequest& request) {
    v1::CallbackReply reply;
    v1::AppliedRule& applied = *reply.add_applied();
    const int stage = request.rules().states(0).stage();
    const std::string half = stage == 2 ? "[0, 2]" : "[0, 4]";
    applied.set_skip_rest(true);
    applied.add_made()->set_steps(R"([["SP", 2, 0, 64, )" + half + ", 1]]");
    applied.mutable_made(0)->set_stage(stage - 1);
    return reply;
  };
  EXPECT_TRUE(Sketches(answer).empty());
  ExpectFailure(StatusCode::kInvalidArgument,
                "its steps do not begin with the 1 steps of the state");
}

}  // namespace
}  // namespace kiln::scheduler
