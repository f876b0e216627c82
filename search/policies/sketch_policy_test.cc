#include "search/policies/sketch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/steps/steps.h"
#include "costmodel/build_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/random_model.h"
#include "costmodel/synthetic_testing.h"
#include "search/evolution/choose.h"
#include "search/evolution/evolution.h"
#include "search/evolution/synthetic_testing.h"
#include "search/policies/pace_model.h"
#include "search/policies/random_policy.h"

namespace kiln::search {
namespace {

Task MakeTask(std::string_view op, std::string_view args, bool gpu = false) {
  auto dag = dag::BuildOp(op, args);
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  target::HardwareParams hardware;
  hardware.num_cores = 4;
  return gpu ? Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]")
             : Task(*dag, target::Target{}, hardware, "[]");
}

Parameters SmallParameters() {
  Parameters parameters;
  parameters.evolutionary_search_population = 128;
  parameters.sample_init_population = 48;
  parameters.sample_init_min_population = 20;
  parameters.max_rejected_draws = 300;
  return parameters;
}

SketchPolicyOptions Options(std::shared_ptr<costmodel::CostModel> model, int threads = 1) {
  return {.models = {.learned = std::move(model)}, .features = TileFeaturesOf, .threads = threads};
}

std::vector<Observation> Measure(std::span<const Candidate> candidates, uint32_t first_trial) {
  std::vector<Observation> observations;
  for (const Candidate& c : candidates)
    observations.push_back({c, true, HiddenCost(c.steps), first_trial++});
  return observations;
}

// Returns the best hidden cost after so many trials in rounds.
double Tune(Policy& policy, int trials, int round) {
  double best = std::numeric_limits<double>::infinity();
  std::set<uint64_t> seen;
  for (int done = 0; done < trials;) {
    const auto candidates = policy.Propose(round);
    KILN_CHECK(candidates.ok(), "{}", Message(candidates.status()));
    if (candidates->empty()) break;
    for (const Candidate& c : *candidates) EXPECT_TRUE(seen.insert(c.hash).second) << c.origin;
    const auto observations = Measure(*candidates, static_cast<uint32_t>(done));
    policy.Observe(observations);
    for (const Observation& o : observations) best = std::min(best, o.cost_s);
    done += static_cast<int>(candidates->size());
  }
  return best;
}

TEST(SketchPolicy, TriesFirstWhatWasFastForATaskWithTheSameSums) {
  const auto make = [](std::vector<std::string> epilogue) {
    auto dag = dag::BuildOp("conv2d_nhwc", "1,14,14,64,64,3,3,1,1", {.epilogue = epilogue});
    KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
    return Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
  };
  const Task plain = make({"bias"}), relu = make({"bias", "relu"});
  SketchPolicy of_plain(plain, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
  SketchPolicy of_relu(relu, SmallParameters(), 2, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto of_another, of_plain.Propose(12));
  const std::vector<Observation> told = Measure(of_another, 100);
  of_relu.Suggest(told);
  of_relu.Suggest(told);
  ASSERT_OK_AND_ASSIGN(const auto proposed, of_relu.Propose(16));
  ASSERT_EQ(proposed.size(), 16u);
  for (size_t i = 0; i < 16; ++i) {
    const bool is_transferred = proposed[i].origin.find("of another task") != std::string::npos;
    EXPECT_EQ(is_transferred, i < 8) << proposed[i].origin;
  }
  EXPECT_THAT(proposed[0].origin, testing::HasSubstr("as trial 100 of another task"));
  of_relu.Observe(Measure(proposed, 0));
  of_relu.Suggest(told);
  ASSERT_OK_AND_ASSIGN(const auto later, of_relu.Propose(16));
  for (const Candidate& candidate : later) {
    EXPECT_THAT(candidate.origin, testing::Not(testing::HasSubstr("of another task")));
  }
}

// The task's heuristic schedule was measured before. The task still follows the others if they are
// faster.
TEST(SketchPolicy, FollowsATaskWithTheSameSumsThoughItHasAResultOfItsOwn) {
  const auto dag = dag::BuildOp("conv2d_nhwc", "1,14,14,64,64,3,3,1,1", {.epilogue = {"relu"}});
  const Task task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
  SketchPolicy leader(task, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
  SketchPolicy follower(task, SmallParameters(), 2, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto found, leader.Propose(5));
  std::vector<Observation> told;
  for (size_t i = 0; i < found.size(); ++i) {
    Observation& o = told.emplace_back();
    o.candidate = found[i];
    o.valid = true;
    o.cost_s = 1e-3 * static_cast<double>(i + 1);
    o.trial = static_cast<uint32_t>(i);
  }
  Observation own = told[4];  // as fast as the third one
  own.cost_s = 3e-3;
  follower.Observe({&own, 1});
  follower.Suggest(told);
  ASSERT_OK_AND_ASSIGN(const auto proposed, follower.Propose(8));
  ASSERT_EQ(proposed.size(), 8u);
  EXPECT_EQ(proposed[0].hash, found[0].hash);
  EXPECT_EQ(proposed[1].hash, found[1].hash);
  for (size_t i = 2; i < 8; ++i)
    EXPECT_THAT(proposed[i].origin, testing::Not(testing::HasSubstr("of another task")));
}

// An eighth of two candidates would be none.
TEST(SketchPolicy, ASmallRoundTakesOverOneScheduleAtLeast) {
  const auto dag = dag::BuildOp("conv2d_nhwc", "1,14,14,64,64,3,3,1,1", {.epilogue = {"relu"}});
  const Task task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
  SketchPolicy leader(task, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
  SketchPolicy follower(task, SmallParameters(), 2, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto own, follower.Propose(12));
  follower.Observe(Measure(own, 0));
  ASSERT_OK_AND_ASSIGN(const auto found, leader.Propose(1));
  Observation told;
  told.candidate = found[0];
  told.valid = true;
  told.cost_s = 1e-9;
  told.trial = 57;
  follower.Suggest({&told, 1});
  ASSERT_OK_AND_ASSIGN(const auto proposed, follower.Propose(2));
  ASSERT_EQ(proposed.size(), 2u);
  EXPECT_EQ(proposed[0].hash, found[0].hash);
  EXPECT_THAT(proposed[0].origin, testing::HasSubstr("as trial 57 of another task"));
}

// The other tasks give the model contrast. A task of few has a quarter of its round by chance.
TEST(SketchPolicy, OneOfManyTasksTriesFewByChanceAtFirst) {
  const Task task = MakeTask("matmul", "256,256,256");
  for (const bool one_of_many : {false, true}) {
    SketchPolicyOptions options = Options(nullptr);
    options.models.prior = std::make_shared<AdditiveModel>();
    options.one_of_many = one_of_many;
    SketchPolicy policy(task, SmallParameters(), 1, std::move(options));
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE(round);
      ASSERT_OK_AND_ASSIGN(const auto proposed, policy.Propose(12));
      const bool few = one_of_many && round < 2;  // until it has 24 results
      EXPECT_EQ(policy.last_round().proposed_by_chance, few ? 1 : 3);
      policy.Observe(Measure(proposed, static_cast<uint32_t>(12 * round)));
    }
  }
}

// A model of few results does not tell many states apart.
TEST(SketchPolicy, LooksAtMoreStatesTheMoreResultsItHas) {
  const Task task = MakeTask("matmul", "512,512,512");
  SketchPolicyOptions options = Options(nullptr);
  options.models.prior = std::make_shared<AdditiveModel>();
  Parameters parameters = SmallParameters();
  parameters.evolutionary_search_population = 256;
  parameters.full_round = 1;
  SketchPolicy policy(task, parameters, 1, std::move(options));
  uint32_t trials = 0;
  // Returns the states that the four generations of a round of n made.
  const auto states_of = [&](int n) {
    const auto proposed = policy.Propose(n);
    KILN_CHECK(proposed.ok(), "{}", Message(proposed.status()));
    policy.Observe(Measure(*proposed, trials));
    trials += static_cast<uint32_t>(proposed->size());
    return policy.last_round().mutated + policy.last_round().crossed;
  };
  const int64_t most = 4 * 218;  // 85% of 256 states in each generation
  EXPECT_LE(states_of(4), most / 4 + 4);
  EXPECT_GT(states_of(32), most / 2 + 4) << "eight states of a generation for each candidate";
  while (trials < kCpuResultsForHalfOfStates) states_of(32);
  const int64_t half = states_of(4);
  EXPECT_GT(half, most / 4 + 4);
  EXPECT_LE(half, most / 2 + 4);
  while (trials < kCpuResultsForAllStates) states_of(128);
  EXPECT_GT(states_of(4), most / 2 + 4);
}

TEST(SketchPolicy, FindsInFewTrialsWhatRandomDoesNotInMany) {
  for (const bool gpu : {false, true}) {
    SCOPED_TRACE(gpu);
    const Task task = MakeTask("matmul", "512,512,512", gpu);
    double logs[3] = {};  // chance is large, so these are means of several runs
    for (const uint64_t seed : {1, 2, 3, 4, 5}) {
      SketchPolicy policy(task, SmallParameters(), seed,
                          Options(std::make_shared<AdditiveModel>(), 2));
      RandomPolicy random(task, SmallParameters(), seed);
      const double learned = Tune(policy, 96, 16);
      const double same_trials = Tune(random, 96, 16), ten_times = Tune(random, 864, 96);
      RecordProperty(fmt::format("{}_{}", gpu ? "gpu" : "cpu", seed),
                     fmt::format("learned {:.3g}, random {:.3g}, of ten times the trials {:.3g}",
                                 learned, same_trials, ten_times));
      logs[0] += std::log2(learned);
      logs[1] += std::log2(std::min(same_trials, ten_times));
      logs[2] += std::log2(same_trials);
    }
    EXPECT_LT(logs[0], logs[1]);
    EXPECT_LT(logs[0], logs[2] - 0.3 * 5);
  }
}

// One schedule is slower than its first reading, and one turns out to be wrong.
TEST(SketchPolicy, ACorrectionChangesParentsAndModel) {
  const Task task = MakeTask("matmul", "512,512,512");
  const auto model = std::make_shared<AdditiveModel>();
  SketchPolicy policy(task, SmallParameters(), 3, Options(model));
  ASSERT_OK_AND_ASSIGN(const auto first, policy.Propose(16));
  std::vector<Observation> observations = Measure(first, 0);
  observations[3].cost_s = 1e-9;
  observations[4].cost_s = 2e-9;
  policy.Observe(observations);
  const auto children_of = [](const std::vector<Candidate>& candidates, int trial) {
    const std::string from = fmt::format("from trial {}", trial);
    return std::ranges::count_if(candidates, [&](const Candidate& c) {
      const size_t at = c.origin.find(from);
      return at != std::string::npos && !std::isdigit(c.origin[at + from.size()]);
    });
  };
  ASSERT_OK_AND_ASSIGN(const auto second, policy.Propose(32));
  EXPECT_GT(children_of(second, 3) + children_of(second, 4), 0);
  std::vector<Observation> corrections(3);
  const int trials[] = {3, 4, 77};
  for (int i = 0; i < 3; ++i) {
    // The third one is not known.
    corrections[i].candidate.hash = i < 2 ? first[trials[i]].hash : 12345;
    corrections[i].trial = static_cast<uint32_t>(trials[i]);
    corrections[i].corrects = true;
    corrections[i].valid = i == 0;
    corrections[i].cost_s = i == 0 ? 1.0 : 0;  // the slowest of all
  }
  policy.Observe(corrections);
  ASSERT_OK_AND_ASSIGN(const auto third, policy.Propose(32));
  // A few children are left over from the second round.
  EXPECT_LT(children_of(third, 3) + children_of(third, 4),
            children_of(second, 3) + children_of(second, 4));
  for (const Candidate& c : third) EXPECT_NE(c.hash, first[3].hash) << "it is known all the same";
  std::vector<double> told_s;
  for (const costmodel::Sample& sample : model->samples()) {
    if (sample.corrects) told_s.push_back(sample.cost_s.value_or(0));
  }
  EXPECT_EQ(told_s, (std::vector<double>{1.0, 0}));
  // A correction replaces a result that the model has not learned yet.
  std::vector<Observation> more = Measure(second, 16);
  policy.Observe(more);
  Observation correction;
  correction.candidate.hash = second[0].hash;
  correction.valid = correction.corrects = true;
  correction.cost_s = 0.125;
  policy.Observe({&correction, 1});
  ASSERT_OK(policy.Propose(4).status());
  EXPECT_EQ(std::ranges::count(model->samples(), true, &costmodel::Sample::corrects), 2);
  EXPECT_EQ(std::ranges::count(model->samples(), std::optional(0.125), &costmodel::Sample::cost_s),
            1);
}

TEST(SketchPolicy, OneOfManyTasksKeepsItsShare) {
  const Task task = MakeTask("conv2d_nhwc", "1,28,28,64,64,3,3,1,1");
  Parameters parameters = SmallParameters();
  parameters.sample_init_population = 256;
  KeptAllowance allowance(kTasksWithoutLess, kLeastKept);
  std::vector<KeptAllowance::Share> others;
  SketchPolicyOptions options = Options(std::make_shared<AdditiveModel>());
  options.allowance = &allowance;
  SketchPolicy policy(task, parameters, 6, std::move(options));
  std::vector<size_t> kept;
  Hashes proposed;
  for (int round = 0; round < 12; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(16));
    EXPECT_EQ(candidates.size(), 16u);
    for (const Candidate& c : candidates) EXPECT_TRUE(proposed.insert(c.hash).second);
    policy.Observe(Measure(candidates, 16 * round));
    kept.push_back(policy.kept());
    // The other tasks come after a few rounds.
    while (round == 5 && others.size() < 4 * kTasksWithoutLess) others.push_back(allowance.Take());
  }
  EXPECT_GT(kept[5], 160u);
  // A round adds results to the share of measured ones before the next one drops the slowest.
  for (size_t round = 6; round < kept.size(); ++round)
    EXPECT_LE(kept[round], 128u + 64u + 16u) << "round " << round;
}

TEST(SketchPolicy, ResultsDoNotDependOnTheNumberOfThreads) {
  for (const bool gpu : {false, true}) {
    const Task task = MakeTask("conv2d_nhwc", "1,14,14,16,16,3,3,1,1", gpu);
    std::vector<std::vector<uint64_t>> runs;
    for (const int threads : {1, 4}) {
      SketchPolicy policy(task, SmallParameters(), 9,
                          Options(std::make_shared<AdditiveModel>(), threads));
      std::vector<uint64_t>& hashes = runs.emplace_back();
      for (int round = 0; round < 3; ++round) {
        ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(12));
        for (const Candidate& c : candidates) hashes.push_back(c.hash);
        policy.Observe(Measure(candidates, 12 * round));
      }
    }
    EXPECT_EQ(runs[0].size(), 36u);
    EXPECT_EQ(runs[0], runs[1]);
  }
}

TEST(SketchPolicy, MeasuresNeighboursOfTheElitesWhateverTheModelSays) {
  const Task task = MakeTask("matmul", "512,512,512", /*gpu=*/true);
  Parameters parameters = SmallParameters();
  parameters.eps_greedy = 0;
  parameters.neighbour_share = 0.5;
  SketchPolicy policy(task, parameters, 4, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto first, policy.Propose(64));
  policy.Observe(Measure(first, 0));
  // The full share of neighbours is proposed from 200 results on, and less before.
  const auto neighbours = [&](uint32_t first_trial, int expected) -> Status {
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy.Propose(50));
    int found = 0;
    for (const Candidate& c : candidates) {
      if (c.rank > 0) continue;
      ++found;
      EXPECT_THAT(c.origin, testing::HasSubstr(", 1 change from trial "));
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(policy.last_round().proposed_near_elites, expected);
    policy.Observe(Measure(candidates, static_cast<int>(first_trial)));
    return OkStatus();
  };
  EXPECT_OK(neighbours(64, 8));    // 50 * 0.5 * 64 / 200
  EXPECT_OK(neighbours(114, 14));  // 50 * 0.5 * 114 / 200
  EXPECT_OK(neighbours(164, 21));
  EXPECT_OK(neighbours(214, 25));
}

// No model foresees a compiler's treatment of a CPU's loops, so neighbours have their full share
// from 32 results on.
TEST(SketchPolicy, MeasuresNeighboursOfTheElitesOnACpuFromEarlyOn) {
  const Task task = MakeTask("matmul", "512,512,512");
  Parameters parameters = SmallParameters();
  parameters.neighbour_share = 0.5;
  SketchPolicy policy(task, parameters, 4, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto first, policy.Propose(16));
  EXPECT_EQ(policy.last_round().proposed_near_elites, 0);
  policy.Observe(Measure(first, 0));
  ASSERT_OK_AND_ASSIGN(const auto second, policy.Propose(16));
  EXPECT_EQ(policy.last_round().proposed_near_elites, 4);  // 16 * 0.5 * 16 / 32
  policy.Observe(Measure(second, 16));
  ASSERT_OK(policy.Propose(16).status());
  EXPECT_EQ(policy.last_round().proposed_near_elites, 8);
}

// The build of a schedule takes the longer the longer its third tile is. The hidden cost wants it
// to be about 10 elements long.
constexpr int kTileOfBuilds = 2;
double MadeUpBuildSeconds(const Candidate& candidate) {
  return 0.05 * std::exp2(TileFeatures(candidate.steps).row(0)[kTileOfBuilds]);
}

// The columns of tiles under the names that the estimate of builds needs: that tile is the number
// of accesses, and the last columns are empty.
std::vector<std::string_view> ColumnsOfBuilds() {
  std::vector<std::string_view> columns(kTileColumns, "tile");
  columns[kTileOfBuilds] = "row_thread_accesses";
  columns[kTileColumns - 2] = "row_serial_trips";
  columns[kTileColumns - 1] = "row_register_bytes";
  return columns;
}

// Returns the mean logarithm of the seconds that the builds of a fourth round take.
StatusOr<double> BuildsOfLateRound(bool awaited, const Task& task) {
  SketchPolicyOptions options = Options(std::make_shared<AdditiveModel>());
  KILN_ASSIGN_OR_RETURN(options.models.builds, costmodel::BuildModel::Make(ColumnsOfBuilds(), 1));
  SketchPolicy policy(task, SmallParameters(), 3, options);
  double mean = 0;
  for (int round = 0; round < 4; ++round) {
    KILN_ASSIGN_OR_RETURN(const auto candidates, policy.Propose(32));
    std::vector<Observation> observations = Measure(candidates, 32 * round);
    mean = 0;
    for (Observation& o : observations) {
      const double build_s = MadeUpBuildSeconds(o.candidate);
      mean += std::log2(build_s) / static_cast<double>(observations.size());
      if (awaited) o.awaited_build_s = build_s;
    }
    policy.Observe(observations);
  }
  return mean;
}

TEST(SketchPolicy, PrefersCheapBuildsWhereDevicesWaitForBuilds) {
  const Task gpu = MakeTask("matmul", "512,512,512", /*gpu=*/true);
  ASSERT_OK_AND_ASSIGN(const double not_awaited, BuildsOfLateRound(false, gpu));
  ASSERT_OK_AND_ASSIGN(const double awaited, BuildsOfLateRound(true, gpu));
  EXPECT_LT(awaited, not_awaited - 0.3);
}

TEST(PaceModel, AProgramWhoseBuildTakesLongIsLessFit) {
  ASSERT_OK_AND_ASSIGN(const auto builds, costmodel::BuildModel::Make(ColumnsOfBuilds(), 1));
  FloatMatrix few(1, kTileColumns), many(1, kTileColumns);
  many.row(0)[kTileOfBuilds] = 10;  // logarithm of the accesses
  const auto scores = [&](const costmodel::CostModel& times) {
    const PaceModel pace(times, *builds, 0.1);
    return pace.Predict(std::vector<const FloatMatrix*>{&few, &many});
  };
  class SameScore final : public costmodel::CostModel {
   public:
    explicit SameScore(double score) : score_(score) {}
    std::string_view name() const override { return "same"; }
    Status Update(std::vector<costmodel::Sample>) override { return OkStatus(); }
    std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override {
      return std::vector<double>(programs.size(), score_);
    }
    std::vector<double> PredictRows(const FloatMatrix&) const override { return {score_}; }
    bool trained() const override { return true; }
    StatusOr<std::string> Save() const override { return std::string(); }
    Status Load(std::string_view) override { return OkStatus(); }

   private:
    const double score_;
  };
  const std::vector<double> of_seconds = scores(SameScore(-1e-5));
  EXPECT_GT(of_seconds[0], of_seconds[1]);
  EXPECT_LT(of_seconds[0], 0);
  const std::vector<double> of_throughputs = scores(SameScore(0.5));
  EXPECT_GT(of_throughputs[0], of_throughputs[1]);
  EXPECT_GT(of_throughputs[1], 0);
}

TEST(SketchPolicy, BuildsForACpuCountAlike) {
  const Task cpu = MakeTask("matmul", "512,512,512");
  ASSERT_OK_AND_ASSIGN(const double not_awaited, BuildsOfLateRound(false, cpu));
  ASSERT_OK_AND_ASSIGN(const double awaited, BuildsOfLateRound(true, cpu));
  EXPECT_EQ(awaited, not_awaited);
}

TEST(SketchPolicy, ProposalsInFlightAreKnown) {
  const Task task = MakeTask("matmul", "64,64,64");
  SketchPolicy policy(task, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
  std::set<uint64_t> seen;
  std::vector<Candidate> waiting;
  for (int round = 0; round < 6; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(10));
    ASSERT_EQ(candidates.size(), 10u);
    for (const Candidate& c : candidates) EXPECT_TRUE(seen.insert(c.hash).second);
    // Results are a round late, and the newest come first.
    std::reverse(waiting.begin(), waiting.end());
    policy.Observe(Measure(waiting, 10 * round));
    waiting = candidates;
  }
}

// A process that goes on with a job trains its model again after the first process has died.
TEST(SketchPolicy, AModelThatLearnsEverythingAgainRanksAsWell) {
  const Task task = MakeTask("matmul", "512,512,512");
  const auto make_model = [] {
    auto model = costmodel::MakeCostModel("xgb", {.seed = 5, .feature_version = 1});
    KILN_CHECK(model.ok(), "{}", Message(model.status()));
    return std::shared_ptr<costmodel::CostModel>(*std::move(model));
  };
  const auto lived = make_model(), resumed = make_model();
  std::vector<Observation> all;
  SketchPolicy first(task, SmallParameters(), 1, Options(lived));
  std::set<uint64_t> measured;
  for (int round = 0; round < 8; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto candidates, first.Propose(16));
    const auto observations = Measure(candidates, static_cast<uint32_t>(all.size()));
    first.Observe(observations);
    all.insert(all.end(), observations.begin(), observations.end());
    for (const Candidate& c : candidates) measured.insert(c.hash);
  }
  ASSERT_OK(first.Propose(1).status());  // trains on the latest results

  SketchPolicy second(task, SmallParameters(), 2, Options(resumed));
  second.Observe(all);
  ASSERT_OK_AND_ASSIGN(const auto next, second.Propose(64));
  ASSERT_EQ(next.size(), 64u);
  EXPECT_EQ(second.last_round().ranked_by, "xgb");
  for (const Candidate& c : next) EXPECT_FALSE(measured.contains(c.hash)) << c.origin;

  RandomPolicy random(task, SmallParameters(), 77);
  ASSERT_OK_AND_ASSIGN(const auto fresh, random.Propose(300));
  std::vector<FloatMatrix> rows;
  std::vector<const FloatMatrix*> programs;
  std::vector<double> speeds;
  for (const Candidate& c : fresh) {
    rows.push_back(TileFeatures(c.steps));
    speeds.push_back(1 / HiddenCost(c.steps));
  }
  for (const FloatMatrix& program : rows) programs.push_back(&program);
  const double of_lived = costmodel::Spearman(lived->Predict(programs), speeds);
  const double of_resumed = costmodel::Spearman(resumed->Predict(programs), speeds);
  RecordProperty("spearman", fmt::format("{:.3f} lived, {:.3f} resumed", of_lived, of_resumed));
  EXPECT_GT(of_lived, 0.3);
  EXPECT_GT(of_resumed, of_lived - 0.1);
}

TEST(SketchPolicy, AModelThatOthersTaughtMayHaveToWait) {
  const Task task = MakeTask("matmul", "256,256,256"), other = MakeTask("matmul", "64,64,64");
  const auto model = std::make_shared<AdditiveModel>();
  SketchPolicy teacher(other, SmallParameters(), 1, Options(model));
  ASSERT_OK_AND_ASSIGN(const auto lesson, teacher.Propose(16));
  teacher.Observe(Measure(lesson, 0));
  ASSERT_OK(teacher.Propose(1).status());
  ASSERT_TRUE(model->trained());
  for (const int wait : {0, 16}) {
    SketchPolicyOptions options = Options(model);
    options.min_own_results = wait;
    SketchPolicy policy(task, SmallParameters(), 1, options);
    ASSERT_OK_AND_ASSIGN(const auto first, policy.Propose(16));
    EXPECT_EQ(policy.last_round().ranked_by, wait == 0 ? "additive" : "");
    policy.Observe(Measure(first, 0));
    ASSERT_OK(policy.Propose(16).status());
    EXPECT_EQ(policy.last_round().ranked_by, "additive");
  }
}

TEST(SketchPolicy, AModelThatOthersTaughtLeavesTheSecondRoundToThePrior) {
  const Task task = MakeTask("matmul", "256,256,256"), other = MakeTask("matmul", "64,64,64");
  const auto model = std::make_shared<AdditiveModel>();
  SketchPolicy teacher(other, SmallParameters(), 1, Options(model));
  ASSERT_OK_AND_ASSIGN(const auto lesson, teacher.Propose(16));
  teacher.Observe(Measure(lesson, 0));
  ASSERT_OK(teacher.Propose(1).status());
  for (const int known : {0, 64}) {
    SketchPolicyOptions options = Options(model);
    ASSERT_OK_AND_ASSIGN(options.models.prior, costmodel::MakeCostModel("random", {.seed = 5}));
    SketchPolicy policy(task, SmallParameters(), 1, options);
    if (known > 0) {
      RandomPolicy random(task, SmallParameters(), 5);
      ASSERT_OK_AND_ASSIGN(const auto records, random.Propose(known));
      policy.Observe(Measure(records, 0));
    }
    std::vector<std::string> ranked_by;
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK(policy.Propose(8).status());
      ranked_by.emplace_back(policy.last_round().ranked_by);
    }
    EXPECT_THAT(ranked_by,
                testing::ElementsAre("additive", known > 0 ? "additive" : "random", "additive"));
  }
}

TEST(SketchPolicy, EveryOtherRoundOfANewTaskDoubtsTheModel) {
  const Task task = MakeTask("matmul", "512,512,512");
  SketchPolicyOptions options = Options(std::make_shared<AdditiveModel>());
  ASSERT_OK_AND_ASSIGN(options.models.blended, costmodel::MakeCostModel("random", {.seed = 5}));
  SketchPolicy policy(task, SmallParameters(), 1, options);
  std::vector<std::string> ranked_by;
  int trials = 0;
  for (const int n : {16, 16, 16, 16, 200, 16, 16, 16}) {
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(n));
    policy.Observe(Measure(candidates, static_cast<uint32_t>(trials)));
    trials += n;
    ranked_by.emplace_back(policy.last_round().ranked_by);
  }
  EXPECT_THAT(ranked_by, testing::ElementsAre("", "random", "additive", "random", "additive",
                                              "additive", "additive", "additive"));
}

TEST(SketchPolicy, WhatIsToBeAvoidedIsNotProposed) {
  const Task task = MakeTask("matmul", "4,4,4");
  SketchPolicy first(task, SmallParameters(), 1, Options(nullptr));
  ASSERT_OK_AND_ASSIGN(const auto seen, first.Propose(30));
  std::set<uint64_t> hashes;
  for (const Candidate& c : seen) hashes.insert(c.hash);
  SketchPolicy second(task, SmallParameters(), 1, Options(nullptr));
  second.Avoid(std::vector<uint64_t>(hashes.begin(), hashes.end()));
  ASSERT_OK_AND_ASSIGN(const auto others, second.Propose(30));
  EXPECT_FALSE(others.empty());
  for (const Candidate& c : others) EXPECT_FALSE(hashes.contains(c.hash));
}

TEST(SketchPolicy, TellsWhereCandidatesComeFrom) {
  const Task task = MakeTask("matmul", "256,256,256");
  SketchPolicy policy(task, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto first, policy.Propose(16));
  for (const Candidate& c : first) {
    EXPECT_THAT(c.origin, testing::MatchesRegex("sketch [0-9], random"));
    EXPECT_EQ(c.rank, 0);
    EXPECT_EQ(c.score, kNoScore);
  }
  EXPECT_EQ(policy.last_round().ranked_by, "");
  policy.Observe(Measure(first, 100));
  ASSERT_OK_AND_ASSIGN(const auto second, policy.Propose(32));
  ASSERT_EQ(second.size(), 32u);
  int changed = 0, of_trials = 0;
  for (size_t i = 0; i < second.size(); ++i) {
    const Candidate& c = second[i];
    changed += c.origin.find("change") != std::string::npos;
    of_trials += c.origin.find("from trial 1") != std::string::npos;
    if (c.rank > 0) {
      EXPECT_GT(c.score, kNoScore);
      if (i > 0) {
        EXPECT_LT(second[i - 1].rank, c.rank);
      }
    }
  }
  EXPECT_GT(changed, 15);
  EXPECT_GT(of_trials, 0);
  const RoundReport& report = policy.last_round();
  EXPECT_EQ(report.round, 2);
  EXPECT_EQ(report.ranked_by, "additive");
  EXPECT_EQ(report.proposed, 32);
  EXPECT_EQ(report.proposed_by_chance, 2);
  EXPECT_GT(report.mutated, 100);
  EXPECT_GT(report.crossed, 5);
  EXPECT_THAT(PrintRound(report), testing::HasSubstr("ranked by additive"));
}

TEST(SketchPolicy, GoesOnFromTheRecordsOfAnEarlierRun) {
  const Task task = MakeTask("matmul", "256,256,256");
  SketchPolicy first(task, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
  ASSERT_OK_AND_ASSIGN(const auto measured, first.Propose(40));
  auto observations = Measure(measured, 0);
  for (Observation& o : observations) o.candidate.origin.clear();  // some records have only steps
  observations[7].valid = false;
  auto model = std::make_shared<AdditiveModel>();
  SketchPolicy second(task, SmallParameters(), 2, Options(model));
  second.Observe(observations);
  ASSERT_OK_AND_ASSIGN(const auto next, second.Propose(20));
  ASSERT_EQ(model->samples().size(), 40u);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(model->samples()[i].cost_s.has_value(), i != 7);
  std::set<uint64_t> known;
  for (const Candidate& c : measured) known.insert(c.hash);
  for (const Candidate& c : next) EXPECT_FALSE(known.contains(c.hash));
  EXPECT_EQ(second.last_round().ranked_by, "additive");
}

TEST(SketchPolicy, TrainsOncePerRoundHoweverResultsArrive) {
  const Task task = MakeTask("matmul", "64,64,64");
  auto model = std::make_shared<AdditiveModel>();
  SketchPolicy policy(task, SmallParameters(), 1, Options(model));
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(8));
    for (const Observation& o : Measure(candidates, 0)) policy.Observe({&o, 1});
    EXPECT_EQ(model->updates, round + 1) << "behind the last result";
  }
  EXPECT_EQ(model->samples().size(), 24u);
  // Results of a round of which one is missing are learned in the next round.
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(8));
  policy.Observe(std::span<const Observation>(Measure(candidates, 0)).first(7));
  EXPECT_EQ(model->updates, 3);
  ASSERT_OK(policy.Propose(8).status());
  EXPECT_EQ(model->updates, 4);
  EXPECT_EQ(model->samples().size(), 31u);
}

TEST(SketchPolicy, SmallSpacesAreExhaustedAndEnd) {
  for (const bool gpu : {false, true}) {
    for (const char* size : {"1", "4", "40"}) {
      SCOPED_TRACE(fmt::format("{} {}", gpu, size));
      const Task task = MakeTask("relu", size, gpu);
      RandomPolicy random(task, SmallParameters(), 1);
      SketchPolicy policy(task, SmallParameters(), 1, Options(std::make_shared<AdditiveModel>()));
      std::set<uint64_t> all, found;
      for (int round = 0; round < 60; ++round) {
        ASSERT_OK_AND_ASSIGN(const auto some, random.Propose(8));
        for (const Candidate& c : some) all.insert(c.hash);
        ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(8));
        for (const Candidate& c : candidates) EXPECT_TRUE(found.insert(c.hash).second);
        policy.Observe(Measure(candidates, 0));
        if (candidates.empty() && some.empty()) break;
      }
      ASSERT_OK_AND_ASSIGN(const auto last, policy.Propose(8));
      EXPECT_TRUE(last.empty());
      for (uint64_t hash : all) EXPECT_TRUE(found.contains(hash));
    }
  }
}

// Says that it is trained, but its scores are of no use.
class BrokenModel final : public costmodel::CostModel {
 public:
  explicit BrokenModel(double score) : score_(score) {}
  std::string_view name() const override { return "broken"; }
  Status Update(std::vector<costmodel::Sample>) override { return Internal("no memory"); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override {
    return std::vector<double>(programs.size(), score_);
  }
  std::vector<double> PredictRows(const FloatMatrix& program) const override {
    return std::vector<double>(program.rows(), score_);
  }
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return Internal("no"); }
  Status Load(std::string_view) override { return Internal("no"); }

 private:
  double score_;
};

TEST(SketchPolicy, AModelThatFailsLeavesASearch) {
  const Task task = MakeTask("matmul", "64,64,64");
  for (const double score : {std::nan(""), -std::numeric_limits<double>::infinity(), 0.0, -3.0}) {
    SCOPED_TRACE(score);
    SketchPolicy policy(task, SmallParameters(), 1, Options(std::make_shared<BrokenModel>(score)));
    std::set<uint64_t> seen;
    for (int round = 0; round < 3; ++round) {
      ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(16));
      EXPECT_EQ(candidates.size(), 16u);
      for (const Candidate& c : candidates) EXPECT_TRUE(seen.insert(c.hash).second);
      policy.Observe(Measure(candidates, 0));
    }
  }
}

TEST(SketchPolicy, FeaturesThatAreEmptyAreNotProposed) {
  const Task task = MakeTask("matmul", "64,64,64");
  SketchPolicyOptions options = Options(std::make_shared<AdditiveModel>());
  options.features = [](const schedule::State&, const ir::Program&) { return FloatMatrix(3); };
  SketchPolicy policy(task, SmallParameters(), 1, options);
  EXPECT_THAT(policy.Propose(4), StatusIs(StatusCode::kFailedPrecondition,
                                          testing::HasSubstr("no sampled candidate is legal")));
}

TEST(SketchPolicy, APriorModelRanksUntilTheOtherIsTrained) {
  const Task task = MakeTask("matmul", "256,256,256");
  auto prior = std::make_shared<AdditiveModel>();  // is trained for the task already
  RandomPolicy random(task, SmallParameters(), 5);
  ASSERT_OK_AND_ASSIGN(const auto known, random.Propose(64));
  for (const Observation& o : Measure(known, 0)) {
    ASSERT_OK(prior->Update(
        {{std::make_shared<FloatMatrix>(TileFeatures(o.candidate.steps)), 1, o.cost_s}}));
  }
  SketchPolicyOptions options = Options(std::make_shared<AdditiveModel>());
  options.models.prior = prior;
  SketchPolicy drafted(task, SmallParameters(), 1, options);
  SketchPolicy without_prior(task, SmallParameters(), 1,
                             Options(std::make_shared<AdditiveModel>()));
  EXPECT_LT(Tune(drafted, 16, 16), Tune(without_prior, 16, 16));
  ASSERT_OK(drafted.Propose(4).status());
  EXPECT_EQ(drafted.last_round().ranked_by, "additive");
}

TEST(SketchPolicy, ARoundOfFewLooksAtFewerStates) {
  const Task task = MakeTask("matmul", "256,256,256");
  const auto evaluated = [&](int round) {
    SketchPolicyOptions options = Options(nullptr);
    options.models.prior = std::make_shared<AdditiveModel>();
    SketchPolicy policy(task, {}, 1, std::move(options));
    KILN_CHECK(policy.Propose(round).ok(), "a round of {}", round);
    return policy.last_round().evaluated;
  };
  const int64_t full = evaluated(16);
  EXPECT_GT(evaluated(64), full * 3 / 4);
  EXPECT_LT(evaluated(4), full / 3);
  EXPECT_LT(evaluated(1), full / 5);
  EXPECT_GT(evaluated(1), full / 16);
}

TEST(ChooseDiverse, LimitsEqualTilesAndEqualOuterTiles) {
  const auto individual = [](int outer, int inner, int unroll) {
    Individual i;
    i.sketch = 0;
    i.steps = {std::make_shared<schedule::SplitStep>(
                   0, 0, 64, std::vector<int64_t>{64 / outer / inner, inner}, true),
               schedule::HintStep(0, ir::Hint::kUnroll, unroll)};
    i.hash = schedule::HashSteps(i.steps);
    return i;
  };
  std::vector<Individual> ranked;
  for (int unroll : {0, 16, 64, 512}) ranked.push_back(individual(2, 2, unroll));  // equal tiles
  for (int inner : {4, 8, 16}) ranked.push_back(individual(2, inner, 0));  // equal outermost tile
  for (int outer : {4, 8, 16}) ranked.push_back(individual(outer, 2, 0));
  RoundReport report;
  const Parameters parameters{.max_same_tiles = 2, .max_same_outer_tiles = 0.5};
  EXPECT_EQ(ChooseDiverse(ranked, 6, parameters, {}, report), (std::vector<int>{0, 1, 4, 7, 8, 9}));
  EXPECT_EQ(report.count(Drop::kSimilar), 4);
  // Similar ones are better than none.
  EXPECT_EQ(ChooseDiverse(ranked, 8, parameters, {}, report).size(), 8u);
  EXPECT_EQ(ChooseDiverse(ranked, 50, parameters, {}, report).size(), ranked.size());
}

TEST(ChooseDiverse, EachSketchGetsItsLeastAndRowsAreNotMeasuredOverAndOver) {
  std::vector<Individual> ranked;
  for (int i = 0; i < 12; ++i) {
    Individual individual;
    individual.sketch = i < 9 ? 0 : i - 8;  // 9 of sketch 0, then one each of 1, 2, 3
    individual.steps = {std::make_shared<schedule::SplitStep>(
        0, 0, 4096, std::vector<int64_t>{int64_t{1} << i, 2}, true)};
    individual.hash = schedule::HashSteps(individual.steps);
    auto rows = std::make_shared<FloatMatrix>(1, 1);
    rows->row(0)[0] = i < 3 ? 0.0f : static_cast<float>(i);
    individual.rows = rows;
    ranked.push_back(std::move(individual));
  }
  RoundReport report;
  const Parameters parameters{.max_same_tiles = 2, .max_same_outer_tiles = 1};
  EXPECT_EQ(ChooseDiverse(ranked, 5, parameters, {}, report), (std::vector<int>{0, 1, 3, 4, 5}));
  // Gives the values to the sketches' niches of products by threads.
  const auto of_sketches = [](const std::vector<int>& values) {
    std::vector<int> of_niches(values.size() * kUnitKinds);
    for (size_t i = 0; i < values.size(); ++i) of_niches[i * kUnitKinds] = values[i];
    return of_niches;
  };
  EXPECT_EQ(ChooseDiverse(ranked, 5, parameters, {.least = of_sketches({1, 1, 0, 2})}, report),
            (std::vector<int>{0, 1, 3, 9, 11}));
  EXPECT_EQ(ChooseDiverse(ranked, 5, parameters,
                          {.least = of_sketches({0, 1, 1, 1}), .most_for_least = 1}, report),
            (std::vector<int>{0, 1, 3, 4, 9}))
      << "one for all that have their least";
  EXPECT_EQ(ChooseDiverse(ranked, 5, parameters, {.most = of_sketches({2, 9, 0, 9})}, report),
            (std::vector<int>{0, 1, 2, 9, 11}))
      << "rather too many of sketch 0 than too few";
  EXPECT_EQ(ChooseDiverse(ranked, 3, parameters, {.same_rows = {{RowsHash(ranked[0]), 2}}}, report),
            (std::vector<int>{3, 4, 5}));
}

// Each kind of units that computes the products is a niche of its own within a sketch.
TEST(ChooseDiverse, EachKindOfUnitsGetsItsLeast) {
  std::vector<Individual> ranked(6);
  for (int i = 0; i < 6; ++i) {
    ranked[i].sketch = 1;
    ranked[i].unit_kind = i < 4 ? 1 : i - 2;
    ranked[i].steps = {std::make_shared<schedule::SplitStep>(
        0, 0, 4096, std::vector<int64_t>{int64_t{1} << i, 2}, true)};
    ranked[i].hash = schedule::HashSteps(ranked[i].steps);
  }
  RoundReport report;
  const Parameters parameters{.max_same_outer_tiles = 1};
  std::vector<int> least(2 * kUnitKinds, 0);
  least[*ranked[4].niche()] = least[*ranked[5].niche()] = 1;
  EXPECT_EQ(ChooseDiverse(ranked, 3, parameters, {.least = least}, report),
            (std::vector<int>{0, 4, 5}));
}

TEST(CutToBest, KeepsSomeOfEachSketch) {
  std::vector<Individual> sorted(10);
  for (int i = 0; i < 10; ++i) {
    sorted[i].sketch = i < 6 ? 0 : 1;
    sorted[i].hash = static_cast<uint64_t>(i);
  }
  CutToBest(4, 2, sorted);
  std::vector<uint64_t> kept;
  for (const Individual& individual : sorted) kept.push_back(individual.hash);
  EXPECT_EQ(kept, (std::vector<uint64_t>{0, 1, 2, 3, 6, 7}));
}

// A stopped task ends the policy at any point of its work.
TEST(SketchPolicy, EndsWhenTheTaskIsStopped) {
  for (const int stop_after : {0, 3, 40, 200}) {
    Task task = MakeTask("matmul", "64,64,64");
    std::stop_source stop;
    task.stop = stop.get_token();
    std::atomic<int> featurized = 0;
    SketchPolicyOptions options = Options(nullptr);
    options.models.prior = std::make_shared<costmodel::RandomModel>(1);
    options.features = [&](const schedule::State& state, const ir::Program& program) {
      if (++featurized > stop_after) stop.request_stop();
      return TileFeaturesOf(state, program);
    };
    if (stop_after == 0) stop.request_stop();
    SketchPolicy policy(task, SmallParameters(), 1, std::move(options));
    EXPECT_THAT(policy.Propose(16), StatusIs(StatusCode::kCancelled, "stopped"));
    EXPECT_LE(featurized, stop_after + 1);
  }
}

}  // namespace
}  // namespace kiln::search
