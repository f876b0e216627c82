#include "search/policies/template_policy.h"

#include <algorithm>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "search/space/gpu_validity.h"
#include "search/templates/point_origin.h"
#include "search/templates/shipped.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

constexpr const char* kPolicies[] = {"template.xgb", "template.genetic", "template.coordinate",
                                     "template.random", "template.grid"};

Task MakeTask(const char* op, const char* args, const char* target = "llvm") {
  return Task(*dag::BuildOp(op, args), *target::ParseTarget(target), {}, "[]");
}

TemplatePtr Parse(std::string_view body) {
  return *TextTemplate::Parse("template mine for cpu\n" + std::string(body));
}

Observation Measured(const Candidate& candidate, double cost_s) {
  return {.candidate = candidate, .valid = true, .cost_s = cost_s};
}

int64_t ConfigOf(const Candidate& candidate) {
  return ParsePointOrigin(candidate.origin).value().index;
}

TEST(TemplatePolicy, ProposesWhatReplaysAndLowers) {
  for (const char* target : {"llvm", "cuda -arch=sm_90"}) {
    const Task task = MakeTask("conv2d_nchw", "1,14,14,64,32,3,3,1,1", target);
    for (const char* name : kPolicies) {
      ASSERT_OK_AND_ASSIGN(const auto policy, MakePolicy(name, task, 1));
      std::set<uint64_t> seen;
      for (int round = 0; round < 3; ++round) {
        ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(8));
        ASSERT_EQ(candidates.size(), 8u) << name;
        for (const Candidate& candidate : candidates) {
          EXPECT_TRUE(seen.insert(candidate.hash).second);
          EXPECT_THAT(candidate.origin, HasSubstr("template conv2d_nchw_direct, config "));
          ASSERT_OK_AND_ASSIGN(const schedule::State state,
                               schedule::Replay(task.dag, candidate.steps));
          EXPECT_EQ(schedule::HashSteps(state.steps()), candidate.hash);
          EXPECT_OK(lower::Lower(state, {.gpu = task.target.is_gpu()}));
        }
        if (round == 0) continue;  // the results of the first round come late
        for (const Candidate& candidate : candidates) {
          const Observation observation = Measured(candidate, 1e-3);
          policy->Observe({&observation, 1});
        }
      }
      EXPECT_EQ(policy->last_round().proposed, 8);
    }
  }
}

// The knob `same` has no effect, so two points of four have the same steps.
constexpr std::string_view kTwice =
    "stage C = reduction()\ni, j = axes(C)\nknob tile = split(i, outputs=2, max_factor=2)\n"
    "knob same = [0, 1]\na, b = split(i, tile)\n";

TEST(TemplatePolicy, PointsOfTheSameStepsAreOneCandidate) {
  const Task task = MakeTask("matmul", "8,8,8");
  for (const char* name : kPolicies) {
    ASSERT_OK_AND_ASSIGN(const auto policy,
                         MakePolicy(name, task, 1, {.schedule_template = Parse(kTwice)}));
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(10));
    EXPECT_EQ(candidates.size(), 2u) << name;
    const Observation observation = Measured(candidates[0], 1);
    policy->Observe({&observation, 1});
    ASSERT_OK_AND_ASSIGN(const auto none, policy->Propose(10));
    EXPECT_TRUE(none.empty());
  }
}

TEST(TemplatePolicy, WhatIsKnownIsNotProposed) {
  const Task task = MakeTask("matmul", "8,8,8");
  ASSERT_OK_AND_ASSIGN(const auto first,
                       MakePolicy("template.grid", task, 1, {.schedule_template = Parse(kTwice)}));
  ASSERT_OK_AND_ASSIGN(const auto candidates, first->Propose(2));
  ASSERT_EQ(candidates.size(), 2u);
  ASSERT_OK_AND_ASSIGN(const auto second,
                       MakePolicy("template.grid", task, 1, {.schedule_template = Parse(kTwice)}));
  const Observation observation = Measured(candidates[0], 1);
  second->Observe({&observation, 1});
  ASSERT_OK_AND_ASSIGN(const auto left, second->Propose(2));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].hash, candidates[1].hash);
  ASSERT_OK_AND_ASSIGN(const auto third,
                       MakePolicy("template.grid", task, 1, {.schedule_template = Parse(kTwice)}));
  third->Avoid({&candidates[1].hash, 1});
  ASSERT_OK_AND_ASSIGN(const auto others, third->Propose(2));
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].hash, candidates[0].hash);
}

// A resumed run begins with the points of the earlier run, and learns from them at once.
TEST(TemplatePolicy, ResultsOfAnEarlierRunAreToldAtOnce) {
  const Task task = MakeTask("dense", "64,64,64");
  const std::map<std::string, double> parameters = {{"template_plan_size", 16}};
  ASSERT_OK_AND_ASSIGN(const auto first,
                       MakePolicy("template.xgb", task, 1, {.parameters = parameters}));
  std::vector<Observation> observations;
  ASSERT_OK_AND_ASSIGN(const auto candidates, first->Propose(64));
  // A point is fast if the innermost length of tile_k is large.
  ASSERT_OK_AND_ASSIGN(const TemplatePtr made, ShippedTemplateFor(task.dag, false));
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made->Space(task.dag));
  const auto cost_s = [&](const Candidate& candidate) {
    const Config config = space.Get(ConfigOf(candidate));
    return 1.0 / static_cast<double>(std::get<SplitEntity>(*config.Find("tile_k")).sizes.back());
  };
  double before_s = 0, after_s = 0;
  for (const Candidate& candidate : candidates) {
    observations.push_back(Measured(candidate, cost_s(candidate)));
    before_s += cost_s(candidate) / static_cast<double>(candidates.size());
  }
  ASSERT_OK_AND_ASSIGN(const auto second,
                       MakePolicy("template.xgb", task, 2, {.parameters = parameters}));
  second->Observe(observations);
  ASSERT_OK_AND_ASSIGN(const auto others, second->Propose(16));
  ASSERT_EQ(others.size(), 16u);
  for (const Candidate& other : others) {
    after_s += cost_s(other) / static_cast<double>(others.size());
    for (const Candidate& candidate : candidates) EXPECT_NE(other.hash, candidate.hash);
  }
  EXPECT_LT(after_s, 0.5 * before_s);
}

TEST(TemplatePolicy, ConfigurationsThatCannotBeAreCounted) {
  const Task task = MakeTask("matmul", "64,8,8");
  const TemplatePtr made = Parse(
      "stage C = reduction()\ni, j = axes(C)\nknob tile = split(i, outputs=2)\n"
      "require tile[1] <= 4\na, b = split(i, tile)\n");
  ASSERT_OK_AND_ASSIGN(const auto policy,
                       MakePolicy("template.grid", task, 1, {.schedule_template = made}));
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(10));
  EXPECT_EQ(candidates.size(), 3u);
  RoundReport report = policy->last_round();
  EXPECT_EQ(report.count(Drop::kIllegal), 4);
  // The report has a line for each of them, with its values.
  const std::string text = PrintRound(report);
  EXPECT_THAT(text, HasSubstr("line 5, column 1: the configuration does not meet"));
  for (const char* tile : {"8", "16", "32", "64"})
    EXPECT_THAT(text, HasSubstr(fmt::format(": tile=[-1,{}]: line 5, column 1", tile)));
  EXPECT_THAT(candidates[1].origin, HasSubstr(", config 1: tile=[-1,2]"));

  const TemplatePtr never = Parse(
      "stage C = reduction()\ni, j = axes(C)\nknob tile = split(i, outputs=2)\nrequire false\n");
  ASSERT_OK_AND_ASSIGN(const auto hopeless,
                       MakePolicy("template.grid", task, 1, {.schedule_template = never}));
  EXPECT_THAT(hopeless->Propose(10),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("no configuration of template")));
}

TEST(TemplatePolicy, KernelsThatADeviceCannotRunAreNotProposed) {
  const Task task = MakeTask("dense", "512,512,512", "cuda -arch=sm_90");
  ASSERT_OK_AND_ASSIGN(const auto policy, MakePolicy("template.random", task, 1));
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(100));
  EXPECT_EQ(candidates.size(), 100u);
  for (const Candidate& candidate : candidates) {
    ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(task.dag, candidate.steps));
    SCOPED_TRACE(candidate.origin);
    EXPECT_OK(CheckGpuLimits(state, task.hardware, task.device.max_cluster_blocks));
  }
  RoundReport report = policy->last_round();
  EXPECT_GT(report.count(Drop::kSharedMemory) + report.count(Drop::kThreads), 0);
}

TEST(TemplatePolicy, TemplatesThatDoNotFitAreRefused) {
  EXPECT_THAT(MakePolicy("template.random", MakeTask("softmax", "8,8"), 1),
              StatusIs(StatusCode::kNotFound, HasSubstr("no template that Kiln ships")));
  EXPECT_THAT(MakePolicy("template.random", MakeTask("softmax", "8,8"), 1,
                         {.schedule_template = Parse(kTwice)}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("template mine: line 2, column 1")));
  EXPECT_THAT(
      MakePolicy("template.random", MakeTask("matmul", "8,8,8", "cuda"), 1,
                 {.schedule_template = Parse(kTwice)}),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("is for a CPU, the target is a GPU")));
}

// On this made-up device large inner tiles are fast.
TEST(TemplatePolicy, SearchesFindWhatIsFast) {
  const Task task = MakeTask("conv2d_nchw", "1,7,7,512,512,3,3,1,1", "cuda -arch=sm_90");
  ASSERT_OK_AND_ASSIGN(const TemplatePtr made, ShippedTemplateFor(task.dag, true));
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made->Space(task.dag));
  const auto cost_s = [&](const Candidate& candidate) {
    const Config config = space.Get(ConfigOf(candidate));
    double cost = 1;
    for (const char* knob : {"tile_f", "tile_rc"}) {
      const double inner =
          static_cast<double>(std::get<SplitEntity>(*config.Find(knob)).sizes.back());
      cost += std::abs(std::log2(inner / 8));
    }
    return cost;
  };
  std::map<std::string, double> best_s;
  for (const char* name : {"template.random", "template.genetic", "template.xgb"}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      ASSERT_OK_AND_ASSIGN(
          const auto policy,
          MakePolicy(name, task, seed,
                     {.parameters = {{"template_population", 32}, {"template_plan_size", 32}}}));
      double last_s = 0;
      for (int round = 0; round < 6; ++round) {
        ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(32));
        last_s = 0;
        for (const Candidate& candidate : candidates) {
          last_s += cost_s(candidate) / static_cast<double>(candidates.size());
          const Observation observation = Measured(candidate, cost_s(candidate));
          policy->Observe({&observation, 1});
        }
      }
      best_s[name] += last_s / 3;  // the mean of the last round over three seeds
    }
  }
  EXPECT_LT(best_s["template.genetic"], 0.9 * best_s["template.random"]);
  EXPECT_LT(best_s["template.xgb"], 0.7 * best_s["template.random"]);
}

// Tests all kinds of features with both losses.
TEST(TemplatePolicy, ModelsOfEveryKind) {
  const Task task = MakeTask("dense", "64,64,64");
  struct Kind {
    double loops, curves, rank;
  };
  for (const Kind& kind :
       {Kind{0, 0, 0}, Kind{0, 0, 1}, Kind{1, 0, 1}, Kind{0, 1, 0}, Kind{1, 1, 1}}) {
    ASSERT_OK_AND_ASSIGN(const auto policy,
                         MakePolicy("template.xgb", task, 1,
                                    {.parameters = {{"template_plan_size", 8},
                                                    {"template_itervar_features", kind.loops},
                                                    {"template_curve_features", kind.curves},
                                                    {"template_rank_loss", kind.rank},
                                                    {"template_diversity", 2}}}));
    for (int round = 0; round < 2; ++round) {
      ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(8));
      EXPECT_EQ(candidates.size(), 8u);
      for (const Candidate& candidate : candidates) {
        const Observation observation =
            Measured(candidate, 1e-3 * static_cast<double>(1 + candidate.hash % 10));
        policy->Observe({&observation, 1});
      }
    }
  }
}

}  // namespace
}  // namespace kiln::search
