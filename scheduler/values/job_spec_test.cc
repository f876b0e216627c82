#include "scheduler/values/job_spec.h"

#include <functional>
#include <limits>

#include "base/status_testing.h"
#include "proto/job_defaults.h"
#include "rpc/field_limits.h"
#include "scheduler/values/job_testing.h"
#include "scheduler/values/served_code.h"
#include "search/templates/shipped.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(JobSpecTest, FillsInTheDefaults) {
  v1::JobSpec spec = TestJob(0);
  spec.mutable_options()->clear_trials();
  spec.mutable_options()->clear_policy();
  ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckJobSpec(spec));
  EXPECT_EQ(job.spec.options().trials(), kDefaultTrials);
  EXPECT_EQ(job.spec.options().policy(), "sketch.xgb");
  EXPECT_EQ(job.spec.options().trials_per_round(), kDefaultTrialsPerRound);
  EXPECT_EQ(job.spec.options().measure().early_stop_ratio(), kDefaultEarlyStopRatio);
  EXPECT_EQ(job.spec.tasks(0).weight(), 1);
  EXPECT_EQ(job.spec.name(), "matmul");
  ASSERT_EQ(job.tasks.size(), 1u);
  EXPECT_EQ(job.tasks[0].flop_count, 2.0 * 64 * 64 * 64);
  EXPECT_THAT(job.tasks[0].workload_key, HasSubstr("[64, 64]"));
}

TEST(JobSpecTest, IsCanonical) {
  v1::JobSpec spec = TestJob(5);
  spec.mutable_tasks(0)->set_target("llvm   -num-cores=2  -mcpu=znver4");
  spec.mutable_tasks(0)->set_dag("# a comment\n" + spec.tasks(0).dag());
  ASSERT_OK_AND_ASSIGN(const CheckedJob once, CheckJobSpec(spec));
  EXPECT_EQ(once.spec.tasks(0).target(), "llvm -mcpu=znver4 -num-cores=2");
  EXPECT_THAT(once.spec.tasks(0).dag(), testing::Not(HasSubstr("comment")));
  EXPECT_EQ(once.spec.options().trials_per_round(), 5u);
  ASSERT_OK_AND_ASSIGN(const CheckedJob twice, CheckJobSpec(once.spec));
  EXPECT_EQ(once.spec.SerializeAsString(), twice.spec.SerializeAsString());
}

TEST(JobSpecTest, TemplatesStayAsTheyAre) {
  v1::JobSpec spec = TestJob(5);
  const std::string text =
      "# mine\ntemplate t for cpu\nstage C = reduction()\ni, j = axes(C)\n"
      "knob tile = split(i, outputs=2)\na, b = split(i, tile)\n";
  spec.mutable_options()->set_policy("template.grid");
  spec.mutable_options()->set_schedule_template(text);
  ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckJobSpec(spec));
  EXPECT_EQ(job.spec.options().schedule_template(), text);
  spec.mutable_options()->clear_schedule_template();  // Kiln ships a template for it
  EXPECT_OK(CheckJobSpec(spec));
}

TEST(JobSpecTest, NumbersOfTheGradientHaveDefaults) {
  v1::JobSpec spec = TestJob(5);
  ASSERT_OK_AND_ASSIGN(const CheckedJob plain, CheckJobSpec(spec));
  EXPECT_EQ(plain.spec.options().task_alpha(), 0.2);
  EXPECT_EQ(plain.spec.options().task_beta(), 2);
  EXPECT_EQ(plain.spec.options().task_window(), 3u);
  // 0 is a share.
  spec.mutable_options()->set_task_alpha(0);
  ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckJobSpec(spec));
  EXPECT_EQ(job.spec.options().task_alpha(), 0);
  ASSERT_OK_AND_ASSIGN(const CheckedJob again, CheckJobSpec(job.spec));
  EXPECT_EQ(again.spec.options().task_alpha(), 0);
}

TEST(JobSpecTest, EveryTemplateThatShipsCanBeSent) {
  for (const search::ShippedTemplate& shipped : search::ShippedTemplates()) {
    v1::SubmitRequest request;
    request.mutable_spec()->mutable_options()->set_schedule_template(std::string(shipped.text));
    EXPECT_OK(CheckFields(request));
  }
}

// Returns a hand-written kernel for a product of matrices. `more` is put before its text.
std::string KernelText(std::string_view more = "") {
  return fmt::format(
      "{}language = \"c\"\nkernel = \"f\"\noperator = \"matmul\"\nsource = \"void f();\"\n"
      "[parameters]\ntile = [1, 2]\n",
      more);
}

TEST(JobSpecTest, HandWrittenKernelsHaveComputationsOfTheirOwn) {
  v1::JobSpec spec = TestJob(5);
  ASSERT_OK_AND_ASSIGN(const CheckedJob plain, CheckJobSpec(spec));
  spec.mutable_options()->set_policy("template.random");
  spec.mutable_options()->set_kernel(KernelText());
  ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckJobSpec(spec));
  EXPECT_NE(job.tasks[0].workload_id, plain.tasks[0].workload_id);
  EXPECT_EQ(job.tasks[0].workload_key, plain.tasks[0].workload_key);
  ASSERT_OK_AND_ASSIGN(const CheckedJob again, CheckJobSpec(job.spec));
  EXPECT_EQ(again.spec.SerializeAsString(), job.spec.SerializeAsString());
}

TEST(JobSpecTest, RangesOfInputsStayWithTheText) {
  v1::JobSpec spec = TestJob(5);
  const std::string plain = CheckJobSpec(spec)->spec.tasks(0).dag();
  const size_t input = plain.find("input ");
  const std::string ranged = plain.substr(0, input) + "@range(0.5, 2.0)\n" + plain.substr(input);
  spec.mutable_tasks(0)->set_dag(ranged);
  ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckJobSpec(spec));
  EXPECT_EQ(job.spec.tasks(0).dag(), ranged);
}

TEST(JobSpecTest, AnAlternativeHasWeightAndNetworkOfItsTask) {
  v1::JobSpec spec = TestJob(5);
  spec.mutable_tasks(0)->set_weight(3);
  spec.mutable_tasks(0)->set_network("net");
  *spec.add_tasks() = TestAlternative(0);
  spec.mutable_tasks(1)->set_weight(7);
  ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckJobSpec(spec));
  EXPECT_EQ(job.spec.tasks(1).weight(), 3);
  EXPECT_EQ(job.spec.tasks(1).network(), "net");
  EXPECT_EQ(job.spec.tasks(1).alternative_of(), 0u);
  EXPECT_EQ(job.spec.options().objective(), "weighted-sum");
  EXPECT_NE(job.tasks[0].workload_key, job.tasks[1].workload_key);
}

struct Refusal {
  const char* name;
  std::function<void(v1::JobSpec&)> spoil;
  std::vector<const char*> words;
};

class JobSpecRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(JobSpecRefusalTest, SaysWhatIsWrong) {
  v1::JobSpec spec = TestJob(64);
  GetParam().spoil(spec);
  const Status status = CheckJobSpec(spec).status();
  for (const char* word : GetParam().words) {
    EXPECT_THAT(status, StatusIs(StatusCode::kInvalidArgument, HasSubstr(word)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, JobSpecRefusalTest,
    testing::Values(
        Refusal{"NoTask", [](v1::JobSpec& s) { s.clear_tasks(); }, {"no task"}},
        Refusal{"NoDag",
                [](v1::JobSpec& s) { s.mutable_tasks(0)->clear_dag(); },
                {"task 0 (matmul)", "no DAG text"}},
        Refusal{"BadDag",
                [](v1::JobSpec& s) { s.mutable_tasks(0)->set_dag("input A: float99[2]\n"); },
                {"task 0", "float99"}},
        Refusal{"ParameterThatIsNoNumber",
                [](v1::JobSpec& s) {
                  (*s.mutable_options()
                        ->mutable_policy_parameters())["disable_change_compute_location"] =
                      std::numeric_limits<double>::quiet_NaN();
                },
                {"disable_change_compute_location is nan, expected 0 or 1"}},
        Refusal{"HistoryOfKnobsAlone",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_policy("template.xgb");
                  (*s.mutable_options()->mutable_policy_parameters())["template_history"] = 1;
                },
                {"knob values alone", "set template_curve_features"}},
        Refusal{"TooManyAxes",
                [](v1::JobSpec& s) {
                  std::string axes = "a: 1";
                  for (int i = 1; i < 100'000; ++i) axes += fmt::format(", a{}: 1", i);
                  s.mutable_tasks(0)->set_dag(
                      fmt::format("input A: float32[1]\nC[{}] = A[0] + 1.0\n", axes));
                },
                {"task 0", "C has 100000 axes, expected at most 32"}},
        Refusal{"TooLarge",
                [](v1::JobSpec& s) {
                  s.mutable_tasks(0)->set_dag(
                      "input A: float32[1000000, 1000000]\n"
                      "C[i: 1000000, j: 1000000] = A[i, j] + 1.0\n");
                },
                {"task 0", "7.3 TiB", "at most 1 TiB"}},
        Refusal{"NoTarget",
                [](v1::JobSpec& s) { s.mutable_tasks(0)->clear_target(); },
                {"task 0", "no target"}},
        Refusal{"BadTarget",
                [](v1::JobSpec& s) { s.mutable_tasks(0)->set_target("vax -m"); },
                {"task 0", "vax"}},
        Refusal{"TwoTargets",
                [](v1::JobSpec& s) {
                  *s.add_tasks() = s.tasks(0);
                  s.mutable_tasks(1)->set_target("llvm");
                },
                {"task 1", "'llvm'", "'null'", "one target"}},
        Refusal{"Weight",
                [](v1::JobSpec& s) { s.mutable_tasks(0)->set_weight(-1); },
                {"task 0", "weight is -1"}},
        Refusal{"Objective",
                [](v1::JobSpec& s) { s.mutable_options()->set_objective("median"); },
                {"objective 'median' is unknown", "weighted-sum, geometric-mean, max"}},
        Refusal{"AlternativeOfItself",
                [](v1::JobSpec& s) { s.mutable_tasks(0)->set_alternative_of(0); },
                {"task 0 (matmul)", "an alternative of task 0, expected a task before it"}},
        Refusal{"AlternativeOfAnAlternative",
                [](v1::JobSpec& s) {
                  *s.add_tasks() = TestAlternative(0);
                  *s.add_tasks() = TestAlternative(1);
                },
                {"task 2", "an alternative of task 1, expected"}},
        Refusal{"AlternativeThatIsNone",
                [](v1::JobSpec& s) { *s.add_tasks() = TestAlternative(0, 32); },
                {"makes float32[32, 32] of 2 inputs, expected float32[64, 64] of 2 inputs"}},
        Refusal{"AlphaOutOfItsRange",
                [](v1::JobSpec& s) { s.mutable_options()->set_task_alpha(1.5); },
                {"task_alpha is 1.5, expected 0 to 1"}},
        Refusal{"AlphaThatIsNoNumber",
                [](v1::JobSpec& s) { s.mutable_options()->set_task_alpha(std::nan("")); },
                {"task_alpha is nan, expected 0 to 1"}},
        Refusal{"BetaBelowZero",
                [](v1::JobSpec& s) { s.mutable_options()->set_task_beta(-1); },
                {"task_beta is -1"}},
        Refusal{"WindowOfTooManyRounds",
                [](v1::JobSpec& s) { s.mutable_options()->set_task_window(1001); },
                {"task_window is 1001, expected at most 1000"}},
        Refusal{"TemplateOfAnotherPolicy",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_schedule_template("template t for cpu");
                },
                {"policy", "cannot search a template"}},
        Refusal{"TemplateThatIsNone",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_policy("template.random");
                  s.mutable_options()->set_schedule_template("template t for cpu\nspilt(x)");
                },
                {"the template: line 2, column 1: unknown step 'spilt'"}},
        Refusal{"TemplateThatDoesNotFit",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_policy("template.random");
                  s.mutable_options()->set_schedule_template(
                      "template t for cpu\nstage C = reduction()\na, b, c = axes(C)\nknob k = [1]");
                },
                {"task 0 (matmul): template t: line 3, column 11: axes gives 2 loops, found 3"}},
        Refusal{"KernelOfAnotherPolicy",
                [](v1::JobSpec& s) { s.mutable_options()->set_kernel(KernelText()); },
                {"cannot search a hand-written kernel"}},
        Refusal{"KernelThatIsNone",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_policy("template.random");
                  s.mutable_options()->set_kernel(KernelText("kernal = 1\n"));
                },
                {"the kernel: line 1, column 1: unknown key 'kernal'"}},
        Refusal{"KernelThatDoesNotFit",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_policy("template.random");
                  s.mutable_options()->set_kernel(KernelText("arguments = [\"X\"]\n"));
                },
                {"task 0 (matmul): kernel f: the computation has no input or output X"}},
        Refusal{"KernelAndTemplate",
                [](v1::JobSpec& s) {
                  s.mutable_options()->set_policy("template.random");
                  s.mutable_options()->set_kernel(KernelText());
                  s.mutable_options()->set_schedule_template("template t for cpu");
                },
                {"there are a template and a hand-written kernel"}},
        Refusal{"WarpSize",
                [](v1::JobSpec& s) {
                  s.mutable_tasks(0)->set_target("cuda -arch=sm_90 -thread_warp_size=16");
                },
                {"-thread_warp_size=16", "the warps of a GPU have 32 threads"}},
        Refusal{"Policy",
                [](v1::JobSpec& s) { s.mutable_options()->set_policy("oracle"); },
                {"'oracle'", "sketch.random"}},
        Refusal{"Trials",
                [](v1::JobSpec& s) { s.mutable_options()->set_trials(4'000'000'000); },
                {"trials is 4000000000", "at most"}},
        Refusal{"ReferenceLimit",
                [](v1::JobSpec& s) { s.mutable_options()->set_reference_limit_s(1e6); },
                {"reference_limit_s is 1000000", "at most 86400"}},
        Refusal{"TimeBudget",
                [](v1::JobSpec& s) { s.mutable_options()->set_time_budget_s(-60); },
                {"time_budget_s is -60"}},
        Refusal{"Repeat",
                [](v1::JobSpec& s) {
                  s.mutable_options()->mutable_measure()->set_repeat(4'000'000'000);
                },
                {"repeat is 4000000000"}},
        Refusal{"EarlyStop",
                [](v1::JobSpec& s) {
                  s.mutable_options()->mutable_measure()->set_early_stop_ratio(
                      std::numeric_limits<double>::quiet_NaN());
                },
                {"early_stop_ratio"}},
        Refusal{"Tolerance",
                [](v1::JobSpec& s) { s.mutable_options()->mutable_tolerance()->set_relative(-1); },
                {"tolerance.relative is -1"}},
        Refusal{"Fault",
                [](v1::JobSpec& s) { (*s.mutable_options()->mutable_faults())[1] = 77; },
                {"trial 1", "fault 77"}},
        Refusal{"FaultBeyond",
                [](v1::JobSpec& s) { (*s.mutable_options()->mutable_faults())[64] = 1; },
                {"trial 64", "below 64"}}),
    [](const auto& info) { return info.param.name; });

TEST(JobSpecTest, AServedObjectiveIsOfFewerTasks) {
  v1::JobSpec spec = TestJob(64);
  spec.mutable_served()->set_objective(true);
  while (spec.tasks_size() < kMostTasksOfServedObjective) *spec.add_tasks() = spec.tasks(0);
  EXPECT_OK(CheckServed(spec));
  *spec.add_tasks() = spec.tasks(0);
  EXPECT_THAT(
      CheckJobSpec(spec).status(),
      StatusIs(StatusCode::kInvalidArgument,
               HasSubstr("2001 tasks and serves an objective, expected at most 2000: each call")));
  spec.mutable_served()->set_objective(false);
  EXPECT_OK(CheckServed(spec));
}

TEST(JobSpecTest, ServedBuildsAreLimitedAndNotThoseOfAKernel) {
  v1::JobSpec spec = TestJob(64);
  spec.mutable_served()->set_builds(kMostServedBuilds);
  EXPECT_OK(CheckServed(spec));
  ASSERT_TRUE(spec.has_served());
  EXPECT_EQ(spec.served().timeout_s(), kDefaultCallbackTimeout_s);
  EXPECT_EQ(ServedParts(spec.served()), "build function");
  spec.mutable_served()->set_builds(kMostServedBuilds + 1);
  EXPECT_THAT(CheckServed(spec),
              StatusIs(StatusCode::kInvalidArgument, "served.builds is 257, expected 0 to 256"));
  spec.mutable_served()->set_builds(1);
  spec.mutable_options()->set_kernel("kernel c");
  EXPECT_THAT(CheckServed(spec), StatusIs(StatusCode::kInvalidArgument,
                                          HasSubstr("has a hand-written kernel and serves builds, "
                                                    "expected one of them")));
}

TEST(JobSpecTest, AStopEndsTheCheck) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(CheckJobSpec(TestJob(4), stop.get_token()),
              StatusIs(StatusCode::kCancelled, testing::_));
}

}  // namespace
}  // namespace kiln::scheduler
