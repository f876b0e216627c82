#include "costmodel/cost_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "base/status_testing.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/synthetic_testing.h"

namespace kiln::costmodel {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::unique_ptr<CostModel> NewModel(std::string_view name,
                                    const std::map<std::string, double>& parameters = {}) {
  auto model = MakeCostModel(
      name, {.seed = 7, .feature_version = 1, .threads = 1, .parameters = parameters});
  EXPECT_OK(model.status());
  return *std::move(model);
}
std::unique_ptr<CostModel> NewXgb() { return NewModel("xgb"); }

TEST(MakeCostModelTest, NamesWhatThereIs) {
  for (const std::string& name : CostModelNames()) EXPECT_EQ(NewModel(name)->name(), name);
  EXPECT_THAT(MakeCostModel("tarot"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("xgb")));
  EXPECT_THAT(MakeCostModel("xgb", {.parameters = {{"depth", 3}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("max_depth")));
  EXPECT_THAT(MakeCostModel("xgb", {.parameters = {{"eta", 3}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("0.001 to 1")));
  EXPECT_THAT(MakeCostModel("random", {.parameters = {{"eta", 0.1}}}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("")));
}

TEST(RandomModelTest, ScoresBySeedAndRows) {
  Rng rng(1);
  const auto samples = SyntheticSamples(rng, 200);
  auto a = NewModel("random"), b = NewModel("random");
  const auto scores = a->Predict(Programs(samples));
  EXPECT_EQ(scores, b->Predict(Programs(samples)));
  ASSERT_OK_AND_ASSIGN(auto other, MakeCostModel("random", {.seed = 8}));
  EXPECT_NE(scores, other->Predict(Programs(samples)));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, a->Save());
  ASSERT_OK(other->Load(bytes));
  EXPECT_EQ(scores, other->Predict(Programs(samples)));
  EXPECT_FALSE(a->trained());
}

TEST(XgbModelTest, AStopEndsTheTraining) {
  Rng rng(3);
  std::stop_source stop;
  ASSERT_OK_AND_ASSIGN(const auto model, MakeCostModel("xgb", {.stop = stop.get_token()}));
  stop.request_stop();
  EXPECT_THAT(model->Update(SyntheticSamples(rng, 400)),
              StatusIs(StatusCode::kCancelled, testing::_));
  EXPECT_FALSE(model->trained());
}

TEST(XgbModelTest, RanksProgramsItHasNotSeen) {
  Rng rng(2);
  auto model = NewXgb();
  const auto held_out = SyntheticSamples(rng, 300);
  ASSERT_OK(model->Update(SyntheticSamples(rng, 400)));
  EXPECT_TRUE(model->trained());
  EXPECT_GT(RankQuality(*model, held_out), 0.9);
}

TEST(XgbModelTest, TasksAreNormalisedEachByItsBest) {
  Rng rng(3);
  auto model = NewXgb();
  auto samples = SyntheticSamples(rng, 200, 1, 1.0);
  for (Sample& sample : SyntheticSamples(rng, 200, 2, 1e4)) samples.push_back(std::move(sample));
  ASSERT_OK(model->Update(samples));
  EXPECT_GT(RankQuality(*model, SyntheticSamples(rng, 300, 1, 1.0)), 0.9);
  // Both tasks teach on one scale, so a third task is ranked well.
  EXPECT_GT(RankQuality(*model, SyntheticSamples(rng, 300, 3, 1e-3)), 0.9);
}

TEST(XgbModelTest, ProgramsLikeFailedOnesScoreLow) {
  Rng rng(4);
  const auto fails = [](const Sample& sample) {
    for (int i = 0; i < sample.rows->rows(); ++i) {
      if (sample.rows->row(i)[9] >= 10) return true;
    }
    return false;
  };
  auto samples = SyntheticSamples(rng, 400);
  for (Sample& sample : samples) {
    if (fails(sample)) sample.cost_s.reset();
  }
  auto model = NewXgb();
  ASSERT_OK(model->Update(samples));
  const auto held_out = SyntheticSamples(rng, 400);
  const auto scores = model->Predict(Programs(held_out));
  double good = 0, bad = 0;
  int num_good = 0, num_bad = 0;
  for (size_t i = 0; i < held_out.size(); ++i) {
    (fails(held_out[i]) ? bad : good) += scores[i];
    ++(fails(held_out[i]) ? num_bad : num_good);
  }
  ASSERT_GT(num_good, 20);
  ASSERT_GT(num_bad, 20);
  EXPECT_LT(bad / num_bad, 0.5 * good / num_good);
}

TEST(XgbModelTest, AllFailedIsNoError) {
  Rng rng(5);
  auto samples = SyntheticSamples(rng, 64);
  for (Sample& sample : samples) sample.cost_s.reset();
  auto model = NewXgb();
  ASSERT_OK(model->Update(samples));
  EXPECT_THAT(model->Predict(Programs(samples)), Each(testing::Lt(0.05)));
}

TEST(XgbModelTest, EqualProgramsAreNoError) {
  Rng rng(5);
  std::vector<Sample> samples(64, SyntheticSamples(rng, 1)[0]);
  auto model = NewXgb();
  ASSERT_OK(model->Update(samples));
  EXPECT_OK(model->Update(samples));
}

TEST(XgbModelTest, ACorrectionReplacesWhatWasSaidBefore) {
  Rng rng(23);
  auto right = SyntheticSamples(rng, 100);
  const auto more = SyntheticSamples(rng, 400);
  for (size_t i = 0; i < right.size(); ++i) right[i].id = i + 1;
  auto lucky = right;
  *lucky[7].cost_s /= 100;  // makes all others seem slow by this factor
  lucky[8].cost_s = *right[8].cost_s / 50;
  auto told = NewXgb(), corrected = NewXgb();
  ASSERT_OK(told->Update(right));
  ASSERT_OK(corrected->Update(lucky));
  for (const size_t i : {7, 8}) {
    Sample correction = right[i];
    correction.corrects = true;
    ASSERT_OK(corrected->Update({correction}));
  }
  ASSERT_OK(told->Update(more));
  EXPECT_NE(told->Predict(Programs(right)), corrected->Predict(Programs(right)));
  ASSERT_OK(corrected->Update(more));
  EXPECT_EQ(told->Predict(Programs(right)), corrected->Predict(Programs(right)));
  // A correction of a sample that is not known is ignored, and so is one of another task.
  Sample stranger = SyntheticSamples(rng, 1)[0], of_another = right[7];
  stranger.corrects = of_another.corrects = true;
  stranger.id = right.size() + 1;
  ++of_another.task;
  ASSERT_OK(corrected->Update({of_another}));
  ASSERT_OK(corrected->Update({stranger}));
  EXPECT_EQ(told->Predict(Programs(right)), corrected->Predict(Programs(right)));
}

TEST(XgbModelTest, RowsOfSamplesArePacked) {
  Rng rng(29);
  const auto samples = SyntheticSamples(rng, 40);
  auto model = NewXgb();
  ASSERT_OK(model->Update(samples));
  for (const Sample& sample : samples)
    EXPECT_EQ(sample.rows.use_count(), 1) << "the model holds the rows";
}

TEST(XgbModelTest, WaitsForEnoughSamples) {
  Rng rng(6);
  auto model = NewXgb();
  const auto samples = SyntheticSamples(rng, 32);
  ASSERT_OK(model->Update({samples.begin(), samples.begin() + 31}));
  EXPECT_FALSE(model->trained());
  EXPECT_THAT(model->Predict(Programs(samples)), Each(0));
  EXPECT_THAT(model->Save(), StatusIs(StatusCode::kFailedPrecondition, HasSubstr("31 samples")));
  ASSERT_OK(model->Update({samples.back()}));
  EXPECT_TRUE(model->trained());
}

TEST(XgbModelTest, ProgramsWithoutRowsScoreLast) {
  Rng rng(7);
  auto model = NewXgb();
  const FloatMatrix empty(200);
  const FloatMatrix* const programs[] = {&empty};
  EXPECT_THAT(model->Predict(programs), Each(-kInfinity));
  auto samples = SyntheticSamples(rng, 40);
  samples.push_back({.rows = std::make_shared<const FloatMatrix>(200), .task = 1, .cost_s = 1e-9});
  ASSERT_OK(model->Update(samples));
  EXPECT_THAT(model->Predict(programs), Each(-kInfinity));
  EXPECT_TRUE(model->PredictRows(empty).empty());
}

TEST(XgbModelTest, RowScoresAreTheirShareOfTheTime) {
  Rng rng(8);
  auto model = NewXgb();
  const auto samples = SyntheticSamples(rng, 100);
  ASSERT_OK(model->Update(samples));
  const auto scores = model->Predict(Programs(samples));
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto rows = model->PredictRows(*samples[i].rows);
    ASSERT_EQ(rows.size(), static_cast<size_t>(samples[i].rows->rows()));
    EXPECT_NEAR(-1 / std::accumulate(rows.begin(), rows.end(), 0.0), scores[i], 1e-5 * scores[i]);
  }
}

TEST(XgbModelTest, RefusesBadSamplesAndStaysAsItWas) {
  Rng rng(9);
  auto model = NewXgb();
  const auto samples = SyntheticSamples(rng, 100);
  ASSERT_OK(model->Update(samples));
  const auto before = model->Predict(Programs(samples));
  const auto refuse = [&](Sample bad, std::string_view why) {
    auto more = SyntheticSamples(rng, 100);
    more.push_back(std::move(bad));
    EXPECT_THAT(model->Update(more),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(why))));
    EXPECT_EQ(model->Predict(Programs(samples)), before);
  };
  FloatMatrix nan = SyntheticProgram(rng);
  nan.row(1)[5] = std::numeric_limits<float>::quiet_NaN();
  refuse({.rows = std::make_shared<const FloatMatrix>(nan), .task = 1, .cost_s = 1}, "column 5");
  refuse({.rows = std::make_shared<const FloatMatrix>(1, 3), .task = 1, .cost_s = 1}, "3 columns");
  refuse({.rows = nullptr, .task = 1, .cost_s = 1}, "without feature rows");
  refuse({.rows = samples[0].rows, .task = 1, .cost_s = kInfinity}, "costs inf");
  refuse({.rows = samples[0].rows, .task = 1, .cost_s = -1}, "costs -1");
}

TEST(XgbModelTest, LoadsWhatItSaved) {
  Rng rng(10);
  auto model = NewXgb();
  const auto samples = SyntheticSamples(rng, 200);
  ASSERT_OK(model->Update(samples));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, model->Save());
  auto loaded = NewXgb();
  ASSERT_OK(loaded->Load(bytes));
  EXPECT_TRUE(loaded->trained());
  EXPECT_EQ(loaded->Predict(Programs(samples)), model->Predict(Programs(samples)));
  // A few new samples do not wipe out the loaded model.
  const auto held_out = SyntheticSamples(rng, 300);
  const double before = RankQuality(*loaded, held_out);
  ASSERT_OK(loaded->Update(SyntheticSamples(rng, 8)));
  EXPECT_GT(RankQuality(*loaded, held_out), before - 0.05);
}

TEST(XgbModelTest, RefusesToLoadWhatItCannotRead) {
  Rng rng(11);
  auto model = NewXgb();
  const auto samples = SyntheticSamples(rng, 64);
  ASSERT_OK(model->Update(samples));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, model->Save());
  const auto scores = model->Predict(Programs(samples));
  for (size_t at :
       {size_t{0}, size_t{12}, bytes.find('\n') + 1, bytes.size() / 2, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(model->Load(damaged).ok()) << at;
    EXPECT_THAT(model->Load(bytes.substr(0, at)), StatusIs(StatusCode::kDataLoss, HasSubstr("")))
        << at;
  }
  ASSERT_OK_AND_ASSIGN(auto other_features, MakeCostModel("xgb", {.feature_version = 2}));
  EXPECT_THAT(other_features->Load(bytes),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("features of version 1")));
  EXPECT_THAT(NewModel("random")->Load(bytes),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("kind xgb")));
  EXPECT_EQ(model->Predict(Programs(samples)), scores);
}

// Estimates that are about right, except for products and the smooth part.
class RoughEstimate final : public CostModel {
 public:
  std::string_view name() const override { return "rough"; }
  Status Update(std::vector<Sample>) override { return OkStatus(); }
  std::vector<double> Predict(std::span<const FloatMatrix* const> programs) const override {
    std::vector<double> scores;
    for (const FloatMatrix* program : programs) {
      const std::vector<double> rows = PredictRows(*program);
      scores.push_back(std::accumulate(rows.begin(), rows.end(), 0.0));
    }
    return scores;
  }
  std::vector<double> PredictRows(const FloatMatrix& program) const override {
    std::vector<double> scores;
    for (int r = 0; r < program.rows(); ++r) {
      const std::span<const float> row = program.row(r);
      scores.push_back(-1e-6 * (1 + (row[0] > 8 ? 2 : 0) + (row[2] < 3 ? 1 : 0)));
    }
    return scores;
  }
  bool trained() const override { return true; }
  StatusOr<std::string> Save() const override { return std::string(); }
  Status Load(std::string_view) override { return OkStatus(); }
};

std::unique_ptr<CostModel> NewXgbOverEstimates(const std::map<std::string, double>& parameters = {
                                                   {"min_samples", 8}}) {
  auto model = MakeCostModel("xgb", {.seed = 7,
                                     .feature_version = 1,
                                     .parameters = parameters,
                                     .estimate = std::make_shared<RoughEstimate>()});
  EXPECT_OK(model.status());
  return *std::move(model);
}

TEST(XgbOverEstimatesTest, LearnsFromFewWhatEstimatesLack) {
  Rng rng(21);
  // All programs have the same number of rows: otherwise that number alone would rank well.
  const auto draw = [&](int count) {
    std::vector<Sample> samples;
    for (int i = 0; i < count; ++i) {
      auto rows = std::make_shared<const FloatMatrix>(SyntheticProgram(rng, 200, 6, 6));
      const double cost_s = SyntheticCost(*rows);
      samples.push_back({.rows = std::move(rows), .task = 1, .cost_s = cost_s});
    }
    return samples;
  };
  const auto held_out = draw(300), few = draw(32), many = draw(800);
  auto alone = NewModel("xgb", {{"min_samples", 8}}), over = NewXgbOverEstimates();
  ASSERT_OK(alone->Update(few));
  ASSERT_OK(over->Update(few));
  const double rough = RankQuality(RoughEstimate(), held_out);
  EXPECT_GT(RankQuality(*over, held_out), RankQuality(*alone, held_out) + 0.1);
  EXPECT_GT(RankQuality(*over, held_out), rough);
  ASSERT_OK(over->Update(many));
  EXPECT_GT(RankQuality(*over, held_out), rough + 0.03);
}

TEST(XgbOverEstimatesTest, ScoresAreSecondsOfAnyTask) {
  Rng rng(22);
  auto model = NewXgbOverEstimates();
  auto samples = SyntheticSamples(rng, 300, 1);
  // Programs of another task take much longer because they have more rows, which the estimates
  // know.
  for (int i = 0; i < 100; ++i) {
    auto rows = std::make_shared<const FloatMatrix>(SyntheticProgram(rng, 200, 40, 60));
    const double cost_s = SyntheticCost(*rows);
    samples.push_back({.rows = std::move(rows), .task = 2, .cost_s = cost_s});
  }
  ASSERT_OK(model->Update(samples));
  const auto scores = model->Predict(Programs(samples));
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_NEAR(-scores[i], *samples[i].cost_s, 0.25 * *samples[i].cost_s) << i;
    const auto rows = model->PredictRows(*samples[i].rows);
    EXPECT_NEAR(std::accumulate(rows.begin(), rows.end(), 0.0), scores[i], 1e-4 * -scores[i]);
  }
}

TEST(XgbOverEstimatesTest, FailuresAndTasksThatOnlyFailAreNoError) {
  Rng rng(23);
  auto model = NewXgbOverEstimates();
  auto samples = SyntheticSamples(rng, 40, 1);
  for (Sample& sample : SyntheticSamples(rng, 20, 2)) {
    sample.cost_s.reset();
    samples.push_back(std::move(sample));
  }
  ASSERT_OK(model->Update(samples));
  EXPECT_TRUE(model->trained());
  for (const double score : model->Predict(Programs(samples))) EXPECT_TRUE(std::isfinite(score));
}

TEST(XgbOverEstimatesTest, IsAnotherKindOfModel) {
  Rng rng(24);
  auto model = NewXgbOverEstimates();
  const auto samples = SyntheticSamples(rng, 100);
  ASSERT_OK(model->Update(samples));
  ASSERT_OK_AND_ASSIGN(const std::string bytes, model->Save());
  EXPECT_THAT(NewXgb()->Load(bytes),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("kind xgb-over-estimates")));
  auto loaded = NewXgbOverEstimates();
  ASSERT_OK(loaded->Load(bytes));
  EXPECT_EQ(loaded->Predict(Programs(samples)), model->Predict(Programs(samples)));
  EXPECT_THAT(MakeCostModel("xgb", {.parameters = {{"objective", 0}},
                                    .estimate = std::make_shared<RoughEstimate>()}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("only times can be corrected")));
}

TEST(XgbModelTest, TheSameCallsGiveTheSameScores) {
  std::vector<double> first;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Rng rng(12);
    auto model = NewXgb();
    for (int i = 0; i < 4; ++i) ASSERT_OK(model->Update(SyntheticSamples(rng, 40)));
    const auto scores = model->Predict(Programs(SyntheticSamples(rng, 100)));
    if (repeat == 0) first = scores;
    EXPECT_EQ(scores, first);
  }
}

TEST(XgbModelTest, KeepsNoMoreSamplesThanItMay) {
  // The bound falls from 400 samples to 60 after two of four updates.
  const auto scores_with = [](const CostModelOptions& options) {
    Rng rng(31);
    auto model = *MakeCostModel("xgb", options);
    for (int i = 0; i < 4; ++i) EXPECT_OK(model->Update(SyntheticSamples(rng, 40)));
    return model->Predict(Programs(SyntheticSamples(rng, 50)));
  };
  const CostModelOptions all = {.seed = 7, .feature_version = 1};
  CostModelOptions falling = all, equal = all, few = all;
  std::vector<size_t> wanted;
  falling.kept_samples = [&wanted](size_t most) {
    wanted.push_back(most);
    return wanted.size() <= 2 ? size_t{400} : size_t{60};
  };
  equal.kept_samples = [](size_t most) { return most; };
  few.kept_samples = [](size_t) { return size_t{60}; };
  const auto scores = scores_with(falling);
  EXPECT_EQ(wanted, std::vector<size_t>(4, 10'000));
  EXPECT_NE(scores, scores_with(all));
  EXPECT_EQ(scores_with(equal), scores_with(all));
  CostModelOptions by_parameter = all;
  by_parameter.parameters = {{"max_samples", 60}};
  EXPECT_EQ(scores_with(few), scores_with(by_parameter));
}

TEST(XgbModelTest, LittleByLittleIsAsGoodAsAtOnce) {
  Rng rng(13);
  const auto samples = SyntheticSamples(rng, 400);
  const auto held_out = SyntheticSamples(rng, 300);
  auto once = NewXgb(), steps = NewXgb();
  ASSERT_OK(once->Update(samples));
  for (size_t i = 0; i < samples.size(); i += 50) {
    ASSERT_OK(steps->Update({samples.begin() + static_cast<ptrdiff_t>(i),
                             samples.begin() + static_cast<ptrdiff_t>(i + 50)}));
  }
  EXPECT_GT(RankQuality(*steps, held_out), RankQuality(*once, held_out) - 0.03);
}

// Returns programs of six rows each, because otherwise the number of rows would tell much. If
// `misleading`, slow programs get short times.
std::vector<Sample> OfSixRows(Rng& rng, int count, bool misleading = false) {
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    auto rows = std::make_shared<const FloatMatrix>(SyntheticProgram(rng, 200, 6, 6));
    const double cost = SyntheticCost(*rows);
    samples.push_back({.rows = std::move(rows),
                       .task = misleading ? 9u : 1u,
                       .cost_s = misleading ? 30e-5 - cost : cost,
                       .prior = misleading});
  }
  return samples;
}

TEST(XgbModelTest, PriorSamplesTeachWhatNothingElseDoes) {
  Rng rng(15);
  auto model = NewXgb();
  auto samples = SyntheticSamples(rng, 300);
  for (Sample& sample : samples) sample.prior = true;
  ASSERT_OK(model->Update(samples));
  EXPECT_GT(RankQuality(*model, SyntheticSamples(rng, 300, 2)), 0.85);
}

TEST(XgbModelTest, FewOwnSamplesOutweighManyPriorOnes) {
  Rng rng(16);
  auto model = NewModel("xgb", {{"prior_weight", 64}}),
       trusting = NewModel("xgb", {{"prior_weight", 1e6}});
  const auto prior = OfSixRows(rng, 800, true), held_out = OfSixRows(rng, 300);
  ASSERT_OK(model->Update(prior));
  ASSERT_OK(trusting->Update(prior));
  EXPECT_LT(RankQuality(*model, held_out), 0);
  for (int i = 0; i < 4; ++i) {
    const auto own = OfSixRows(rng, 60);
    ASSERT_OK(model->Update(own));
    ASSERT_OK(trusting->Update(own));
  }
  EXPECT_GT(RankQuality(*model, held_out), 0.2);
  EXPECT_GT(RankQuality(*model, held_out), RankQuality(*trusting, held_out) + 0.1);
}

TEST(XgbModelTest, PredictsWhileItLearns) {
  Rng rng(14);
  auto model = NewXgb();
  const auto samples = SyntheticSamples(rng, 100);
  ASSERT_OK(model->Update(samples));
  std::atomic<bool> done{false};
  std::atomic<int> predictions{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!done) {
        const auto scores = model->Predict(Programs(samples));
        EXPECT_EQ(scores.size(), samples.size());
        ++predictions;
      }
    });
  }
  while (predictions == 0) std::this_thread::yield();
  EXPECT_OK(model->Update(SyntheticSamples(rng, 100)));
  done = true;
}

}  // namespace
}  // namespace kiln::costmodel
