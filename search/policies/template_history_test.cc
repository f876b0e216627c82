#include "search/policies/template_history.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "search/policies/policy.h"
#include "search/policies/template_features.h"
#include "search/templates/point_origin.h"
#include "search/templates/tuners/model_tuner.h"

namespace kiln::search {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kTiles = R"(template tiles for cpu
stage C = reduction()
i, j = axes(C)
k = reduce_axes(C)
knob tile_i = split(i, outputs=2)
knob tile_j = split(j, outputs=3)
knob tile_k = split(k, outputs=2)
io, ii = split(i, tile_i)
jo, jm, ji = split(j, tile_j)
ko, ki = split(k, tile_k)
reorder(io, jo, ko, jm, ii, ki, ji)
)";

TemplatePtr Tiles() { return *TextTemplate::Parse(kTiles); }

Task MakeTask(const std::string& sizes) {
  return Task(*dag::BuildOp("matmul", sizes), *target::ParseTarget("llvm"), {}, sizes);
}

// The cost on a made-up machine, on which these are fast: rows of 16, tiles of 512 elements, 8
// steps of the sum at a time, and at least 16 tiles. The best tiles therefore depend on the
// extents.
double Cost(const Config& config, const dag::Dag& dag) {
  const auto sizes = [&](const char* knob) {
    return std::get<SplitEntity>(*config.Find(knob)).sizes;
  };
  const std::vector<int64_t> i = sizes("tile_i"), j = sizes("tile_j"), k = sizes("tile_k");
  const dag::Operator& sum = dag.op(dag.size() - 1);
  const double tile = static_cast<double>(i[1] * j[1] * j[2]);
  const double elements = static_cast<double>(sum.shape()[0] * sum.shape()[1]);
  const auto octaves = [](double x, double best) { return std::abs(std::log2(x / best)); };
  const double slow = 0.3 * octaves(static_cast<double>(j[2]), 16) + 0.2 * octaves(tile, 512) +
                      0.2 * octaves(static_cast<double>(k[1]), 8) +
                      0.4 * std::max(0.0, std::log2(16 * tile / elements));
  return 1e-9 * elements * (1 + slow);
}

Candidate CandidateOf(const TemplatePtr& made, const Task& task, const Config& config) {
  const StatusOr<Instance> instance = made->Instantiate(task.dag, config);
  KILN_CHECK(instance.ok(), "{}", Message(instance.status()));
  return {.steps = instance->state->steps(),
          .hash = instance->Hash(),
          .origin = PrintPointOrigin({"template", std::string(made->name()), config.index})};
}

// Returns trials of random points.
std::vector<EarlierTrial> Trials(const Task& task, size_t group, int count) {
  const TemplatePtr made = Tiles();
  const ConfigSpace space = *made->Space(task.dag);
  Rng rng(group + 1);
  std::vector<EarlierTrial> trials;
  for (int i = 0; i < count; ++i) {
    const Config config = space.Get(*space.Random(rng));
    const Candidate candidate = CandidateOf(made, task, config);
    trials.push_back({.task = &task,
                      .origin = candidate.origin,
                      .steps = candidate.steps,
                      .cost_s = i % 10 == 9 ? std::nullopt : std::optional(Cost(config, *task.dag)),
                      .group = group});
  }
  return trials;
}

Parameters WithFeatures(const char* features) {
  return *MakeParameters({{features, 1}, {"template_least_history", 40}});
}

class TemplateHistoryTest : public testing::Test {
 protected:
  const Task long_ = MakeTask("64,128,256"), wide_ = MakeTask("64,256,64");
  ThreadPool pool_{2};
};

TEST_F(TemplateHistoryTest, LearnsFromPointsOfTheTemplateAlone) {
  std::vector<EarlierTrial> trials = Trials(long_, 0, 30);
  const std::vector<EarlierTrial> wide = Trials(wide_, 1, 30);
  trials.insert(trials.end(), wide.begin(), wide.end());
  trials[0].origin = "template others, config 3";
  trials[1].origin = "sketch 0, random";
  trials[2].origin = "kernel tiles, config 3";
  trials[3].origin = "template tiles, config 99999999";
  trials[4].steps = trials[5].steps;  // the template has changed since this trial
  if (trials[4].origin == trials[5].origin) trials[4].steps.clear();
  for (const char* features : {"template_curve_features", "template_itervar_features"}) {
    ASSERT_OK_AND_ASSIGN(const TemplateHistory history,
                         LearnHistory(*Tiles(), WithFeatures(features), trials, 3, pool_));
    EXPECT_THAT(history.points, ElementsAre(25, 30, 0));
    EXPECT_EQ(history.total(), 55u);
    EXPECT_NE(history.model, nullptr);
  }
}

TEST_F(TemplateHistoryTest, FewAreNotEnoughAndKnobsAloneTeachNothing) {
  const std::vector<EarlierTrial> trials = Trials(long_, 0, 39);
  ASSERT_OK_AND_ASSIGN(
      const TemplateHistory few,
      LearnHistory(*Tiles(), WithFeatures("template_curve_features"), trials, 1, pool_));
  EXPECT_EQ(few.model, nullptr);
  EXPECT_THAT(few.points, ElementsAre(39));
  ASSERT_OK_AND_ASSIGN(
      const TemplateHistory knobs,
      LearnHistory(*Tiles(), *MakeParameters({{"template_least_history", 1}}), trials, 1, pool_));
  EXPECT_EQ(knobs.model, nullptr);

  EXPECT_OK(CheckHistoryFeatures({}));
  EXPECT_OK(CheckHistoryFeatures({{"template_history", 0}}));
  EXPECT_OK(CheckHistoryFeatures({{"template_history", 1}, {"template_curve_features", 1}}));
  EXPECT_THAT(CheckHistoryFeatures({{"template_history", 1}}),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("knob values alone, which say nothing of other computations")));
  EXPECT_THAT(MakePolicy("template.xgb", long_, 1,
                         {.parameters = {{"template_history", 1}}, .schedule_template = Tiles()}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("set template_curve_features")));
}

// Returns the number of trials until a search finds a point within 5% of the best one.
int TrialsToNearBest(const TemplatePtr& made, const Task& task, const FeatureChoice& choice,
                     std::shared_ptr<const BaseModel> base, uint64_t seed) {
  const ConfigSpace space = *made->Space(task.dag);
  double best_s = Cost(space.Get(0), *task.dag);
  for (int64_t index = 1; index < space.range(); ++index)
    best_s = std::min(best_s, Cost(space.Get(index), *task.dag));
  ModelTuner tuner(
      space, [&](int64_t index) { return FeaturesOfPoint(choice, *made, task, space.Get(index)); },
      seed,
      {.plan_size = 16, .annealing = {.chains = 32, .iterations = 60}, .base = std::move(base)});
  for (int trial = 1;; ++trial) {
    const std::optional<int64_t> index = tuner.Next();
    if (!index) return trial;
    const double cost_s = Cost(space.Get(*index), *task.dag);
    if (cost_s <= 1.05 * best_s) return trial;
    tuner.Tell(*index, 1 / cost_s);
  }
}

// From similar computations a search learns which points are fast for its own.
TEST_F(TemplateHistoryTest, FindsGoodPointsInFewerTrials) {
  const Task task = MakeTask("128,128,128");
  const TemplatePtr made = Tiles();
  std::vector<EarlierTrial> trials = Trials(long_, 0, 150);
  const std::vector<EarlierTrial> wide = Trials(wide_, 1, 150);
  trials.insert(trials.end(), wide.begin(), wide.end());
  for (const char* features : {"template_curve_features", "template_itervar_features"}) {
    const Parameters parameters = WithFeatures(features);
    ASSERT_OK_AND_ASSIGN(const TemplateHistory history,
                         LearnHistory(*made, parameters, trials, 2, pool_));
    int with = 0, without = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const FeatureChoice choice = FeaturesOf(parameters);
      const int knowing = TrialsToNearBest(made, task, choice, history.model, seed);
      const int alone = TrialsToNearBest(made, task, choice, nullptr, seed);
      fmt::print("{}, seed {}: {} trials with history, {} without\n", features, seed, knowing,
                 alone);
      with += knowing;
      without += alone;
    }
    EXPECT_LT(2 * with, without) << features;
  }
}

// A scheduler that starts again learns the same from the same records, and proposes the same
// points.
TEST_F(TemplateHistoryTest, TheSameHistoryGivesTheSamePoints) {
  const Task task = MakeTask("128,128,128");
  const std::vector<EarlierTrial> trials = Trials(long_, 0, 60);
  std::vector<std::vector<std::string>> runs;
  for (int run = 0; run < 2; ++run) {
    ThreadPool pool(run + 1);
    const std::map<std::string, double> parameters = {
        {"template_curve_features", 1}, {"template_least_history", 40}, {"template_plan_size", 8}};
    ASSERT_OK_AND_ASSIGN(const TemplateHistory history,
                         LearnHistory(*Tiles(), *MakeParameters(parameters), trials, 1, pool));
    std::vector<std::string>& origins = runs.emplace_back();
    std::vector<Observation> observations;
    for (const uint64_t seed : {3, 4}) {  // the second policy goes on after the end of the first
      ASSERT_OK_AND_ASSIGN(const auto policy, MakePolicy("template.xgb", task, seed,
                                                         {.parameters = parameters,
                                                          .schedule_template = Tiles(),
                                                          .base_model = history.model}));
      policy->Observe(observations);
      for (int round = 0; round < 2; ++round) {
        ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(8));
        ASSERT_EQ(candidates.size(), 8u);
        for (const Candidate& candidate : candidates) {
          EXPECT_EQ(std::ranges::count(origins, candidate.origin), 0) << candidate.origin;
          origins.push_back(candidate.origin);
          const Observation& o = observations.emplace_back(
              Observation{.candidate = candidate,
                          .valid = true,
                          .cost_s = 1e-3 * static_cast<double>(1 + candidate.hash % 100)});
          policy->Observe({&o, 1});
        }
      }
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
}

}  // namespace
}  // namespace kiln::search
