#include <cmath>
#include <set>

#include "base/status_testing.h"
#include "search/templates/tuners/coordinate_tuner.h"
#include "search/templates/tuners/genetic_tuner.h"
#include "search/templates/tuners/model_tuner.h"

namespace kiln::search {
namespace {

// Returns a space of three tile sizes and an option: 10 * 10 * 10 * 4 points.
ConfigSpace Space() {
  ConfigSpace space;
  for (const char* name : {"a", "b", "c"}) KILN_CHECK(space.Add(Knob::Split(name, 512, {})).ok());
  KILN_CHECK(
      space.Add(Knob::Option("d", {{int64_t{0}}, {int64_t{1}}, {int64_t{2}}, {int64_t{3}}})).ok());
  return space;
}

// The highest throughput is 1, at the digits 5, 3, 7, 2. The throughput falls with each knob's
// distance from there.
double Throughput(const ConfigSpace& space, int64_t index) {
  const std::vector<int> d = space.Digits(index);
  const double distance =
      std::abs(d[0] - 5) + std::abs(d[1] - 3) + 0.5 * std::abs(d[2] - 7) + 0.5 * std::abs(d[3] - 2);
  return std::exp(-0.3 * distance);
}

using Make = std::function<std::unique_ptr<ConfigTuner>(const ConfigSpace&, uint64_t seed)>;

std::unique_ptr<ConfigTuner> MakeModel(const ConfigSpace& space, uint64_t seed, bool rank = false,
                                       double diversity = 0) {
  const auto features = [&space](int64_t index) { return KnobFeatures(space.Get(index)); };
  return std::make_unique<ModelTuner>(
      space, features, seed,
      ModelOptions{.plan_size = 32, .rank_loss = rank, .diversity_ratio = diversity});
}

// Makes a tuner with a base model of a similar space, whose best points differ: 4, any, any, 1.
std::unique_ptr<ConfigTuner> MakeWithBase(const ConfigSpace& space, uint64_t seed) {
  Rng rng(11);
  std::vector<EarlierPoint> points;
  for (int i = 0; i < 200; ++i) {
    const std::vector<int> d = space.Digits(UniformInt(rng, space.range()));
    const double distance = std::abs(d[0] - 4) + 0.5 * std::abs(d.back() - 1);
    points.push_back(
        {KnobFeatures(space.Get(space.Index(d))), static_cast<float>(std::exp(-0.3 * distance))});
  }
  const auto base = BaseModel::Learn(points, {});
  KILN_CHECK(base.ok(), "{}", Message(base.status()));
  const auto features = [&space](int64_t index) { return KnobFeatures(space.Get(index)); };
  return std::make_unique<ModelTuner>(space, features, seed,
                                      ModelOptions{.plan_size = 32, .base = *base});
}

const std::pair<const char*, Make> kTuners[] = {
    {"random",
     [](const ConfigSpace& s, uint64_t seed) { return std::make_unique<RandomTuner>(s, seed); }},
    {"grid", [](const ConfigSpace& s, uint64_t) { return std::make_unique<GridTuner>(s); }},
    {"genetic",
     [](const ConfigSpace& s, uint64_t seed) { return std::make_unique<GeneticTuner>(s, seed); }},
    {"coordinate", [](const ConfigSpace& s,
                      uint64_t seed) { return std::make_unique<CoordinateTuner>(s, seed); }},
    {"model", [](const ConfigSpace& s, uint64_t seed) { return MakeModel(s, seed); }},
    {"model with a base", MakeWithBase},
    {"rank model", [](const ConfigSpace& s, uint64_t seed) { return MakeModel(s, seed, true, 2); }},
};

struct Tuned {
  std::vector<int64_t> points;
  double best = 0;
};

// `delay` results are outstanding while the next point is asked for.
Tuned Tune(const Make& make, const ConfigSpace& space, uint64_t seed, int trials,
           size_t delay = 0) {
  const std::unique_ptr<ConfigTuner> tuner = make(space, seed);
  Tuned run;
  size_t told = 0;
  while (static_cast<int>(run.points.size()) < trials) {
    const std::optional<int64_t> index = tuner->Next();
    if (!index) break;
    run.points.push_back(*index);
    for (; told + delay < run.points.size(); ++told) {
      const double throughput = Throughput(space, run.points[told]);
      tuner->Tell(run.points[told], throughput);
      run.best = std::max(run.best, throughput);
    }
  }
  return run;
}

TEST(Tuners, GiveEachPointOnceAndTheSameOnesAgain) {
  const ConfigSpace space = Space();
  for (const auto& [name, make] : kTuners) {
    for (const size_t delay : {0u, 16u}) {
      const Tuned run = Tune(make, space, 7, 300, delay);
      EXPECT_EQ(run.points.size(), 300u) << name;
      EXPECT_EQ(std::set<int64_t>(run.points.begin(), run.points.end()).size(), 300u) << name;
      EXPECT_EQ(Tune(make, space, 7, 300, delay).points, run.points) << name;
    }
  }
}

TEST(Tuners, FindTheBestPointsOfASmoothSpace) {
  const ConfigSpace space = Space();
  for (const auto& [name, make] : kTuners) {
    if (std::string_view(name) == "grid") continue;
    int found = 0, near = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Tuned run = Tune(make, space, seed, 300, 8);
      found += run.best == 1 ? 1 : 0;
      near += run.best > 0.8 ? 1 : 0;
    }
    if (std::string_view(name) == "random") {
      EXPECT_LE(found, 2);  // 300 of 4,000 points
    } else {
      EXPECT_GE(near, 4) << name;
      EXPECT_GE(found, std::string_view(name) == "genetic" ? 2 : 4) << name;
    }
  }
}

TEST(Tuners, UseUpASmallSpaceAndEnd) {
  ConfigSpace space;
  ASSERT_OK(space.Add(Knob::Split("a", 16, {})));
  ASSERT_OK(space.Add(Knob::Split("b", 8, {})));
  space.AddFilter([](std::span<const Entity* const> entities) {
    return std::get<SplitEntity>(*entities[0]).sizes[1] > 1;
  });
  for (const auto& [name, make] : kTuners) {
    const std::unique_ptr<ConfigTuner> tuner = make(space, 3);
    std::set<int64_t> seen;
    while (const std::optional<int64_t> index = tuner->Next()) {
      EXPECT_TRUE(space.IsValid(*index)) << name;
      EXPECT_TRUE(seen.insert(*index).second) << name;
      tuner->Tell(*index, 1.0 / (1 + static_cast<double>(*index)));
    }
    EXPECT_EQ(seen.size(), 16u) << name;
    EXPECT_EQ(tuner->Next(), std::nullopt) << name;
  }
}

// Points that earlier searches told are not given again, and failures stop no tuner.
TEST(Tuners, KnowWhatTheyWereTold) {
  const ConfigSpace space = Space();
  for (const auto& [name, make] : kTuners) {
    const std::unique_ptr<ConfigTuner> tuner = make(space, 5);
    for (int64_t index = 0; index < 100; ++index) tuner->Tell(index, 0);
    for (int i = 0; i < 200; ++i) {
      const std::optional<int64_t> index = tuner->Next();
      ASSERT_TRUE(index.has_value()) << name;
      EXPECT_GE(*index, 100) << name;
      tuner->Tell(*index, 0);
    }
  }
}

TEST(GridTuner, AscendsByIndex) {
  const ConfigSpace space = Space();
  GridTuner tuner(space);
  tuner.Tell(1, 1);
  EXPECT_EQ(tuner.Next(), 0);
  EXPECT_EQ(tuner.Next(), 2);
}

TEST(ModelTuner, LearnsAfterEveryPlan) {
  const ConfigSpace space = Space();
  ModelTuner tuner(space, [&](int64_t index) { return KnobFeatures(space.Get(index)); }, 1,
                   {.plan_size = 32});
  double random = 0, planned = 0;
  for (int i = 0; i < 96; ++i) {
    const int64_t index = *tuner.Next();
    (i < 32 ? random : planned) += Throughput(space, index) / (i < 32 ? 32 : 64);
    tuner.Tell(index, Throughput(space, index));
  }
  EXPECT_EQ(tuner.trainings(), 2);  // the third is due when a point is asked for
  EXPECT_GT(planned, 2 * random);
}

TEST(BaseModel, CountsLessWithEveryResult) {
  EXPECT_EQ(BaseModel::Weight(0), 1);
  EXPECT_EQ(BaseModel::Weight(64), 0.5);
  EXPECT_EQ(BaseModel::Weight(128), 0.25);
  EXPECT_EQ(BaseModel::Weight(277), 0);  // below 0.05
}

// The base model plans the first points.
TEST(BaseModel, IsAskedBeforeThereAreResults) {
  const ConfigSpace space = Space();
  std::vector<EarlierPoint> points;
  for (int64_t index = 0; index < space.range(); index += 7)
    points.push_back(
        {KnobFeatures(space.Get(index)), static_cast<float>(Throughput(space, index))});
  ASSERT_OK_AND_ASSIGN(const auto base, BaseModel::Learn(points, {}));
  ModelTuner tuner(space, [&](int64_t index) { return KnobFeatures(space.Get(index)); }, 1,
                   {.plan_size = 32, .base = base});
  double planned = 0, all = 0;
  for (int i = 0; i < 16; ++i) planned += Throughput(space, *tuner.Next()) / 16;
  for (int64_t index = 0; index < space.range(); ++index)
    all += Throughput(space, index) / static_cast<double>(space.range());
  EXPECT_EQ(tuner.trainings(), 0);
  EXPECT_GT(planned, 3 * all);
}

// The tuner's own results correct a base model that is wrong.
TEST(BaseModel, IsCorrected) {
  const ConfigSpace space = Space();
  std::vector<EarlierPoint> points;
  for (int64_t index = 0; index < space.range(); index += 7)
    points.push_back(
        {KnobFeatures(space.Get(index)), static_cast<float>(1 - Throughput(space, index))});
  ASSERT_OK_AND_ASSIGN(const auto base, BaseModel::Learn(points, {}));
  ModelTuner tuner(space, [&](int64_t index) { return KnobFeatures(space.Get(index)); }, 1,
                   {.plan_size = 32, .base = base});
  double best = 0;
  for (int i = 0; i < 320; ++i) {
    const int64_t index = *tuner.Next();
    best = std::max(best, Throughput(space, index));
    tuner.Tell(index, Throughput(space, index));
  }
  EXPECT_GT(best, 0.8);
}

TEST(KnobFeatures, AreTheValuesInOrder) {
  Config config;
  config.entities = {{"s", SplitEntity{{-1, 2, 8}}},
                     {"r", ReorderEntity{{1, 0}}},
                     {"a", AnnotateEntity{{"vec", "none"}, {}}},
                     {"o", OptionEntity{int64_t{1500}}},
                     {"b", OptionEntity{true}}};
  EXPECT_EQ(KnobFeatures(config), (std::vector<float>{-1,   2, 8, 1, 0,                    //
                                                      0,    1, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                                      1,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  //
                                                      1500, 1}));
}

TEST(Annealing, KeepsTheBestThatItMeets) {
  const ConfigSpace space = Space();
  Rng rng(2);
  std::vector<int64_t> chains;
  const auto score = [&](std::span<const int64_t> indices) {
    std::vector<double> scores;
    for (const int64_t index : indices) scores.push_back(Throughput(space, index));
    return scores;
  };
  const int64_t best = space.Index(std::vector<int>{5, 3, 7, 2});
  const auto never = [] { return false; };
  const std::vector<Scored> found =
      Anneal(space, score, 10, [](int64_t) { return true; }, {}, chains, rng, never);
  ASSERT_EQ(found.size(), 10u);
  EXPECT_EQ(found[0].index, best);
  EXPECT_EQ(chains.size(), 128u);
  std::set<int64_t> distinct;
  for (size_t i = 0; i < found.size(); ++i) {
    distinct.insert(found[i].index);
    EXPECT_EQ(found[i].score, Throughput(space, found[i].index));
    EXPECT_LE(found[i].score, i > 0 ? found[i - 1].score : 1);
  }
  EXPECT_EQ(distinct.size(), 10u);
  const std::vector<Scored> others =
      Anneal(space, score, 3, [&](int64_t index) { return index != best; }, {}, chains, rng, never);
  ASSERT_EQ(others.size(), 3u);
  EXPECT_LT(others[0].score, 1);
}

TEST(PickDiverse, PrefersNewValues) {
  const ConfigSpace space = Space();
  const auto at = [&](int a, int b, int c, int d) {
    return space.Index(std::vector<int>{a, b, c, d});
  };
  const std::vector<Scored> points = {
      {0.9, at(1, 1, 1, 1)}, {0.8, at(1, 1, 1, 2)}, {0.7, at(2, 2, 2, 2)}, {0.6, at(2, 2, 1, 3)}};
  EXPECT_EQ(PickDiverse(space, points, 3),
            (std::vector<int64_t>{at(1, 1, 1, 1), at(2, 2, 2, 2), at(2, 2, 1, 3)}));
  EXPECT_EQ(PickDiverse(space, points, 9).size(), 4u);
}

}  // namespace
}  // namespace kiln::search
