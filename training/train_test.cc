#include "training/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "training/measured_testing.h"
#include "training/predict.h"

namespace kiln::training {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

// Returns 96 programs of each of four sizes, measured once for all tests.
const TrainingSet& SmallTrainingSet() {
  static const TrainingSet& set = *[] {
    const auto store = store::NewMemoryStore();
    KILN_CHECK(store->AddJob({.id = "j"}).ok());
    uint32_t trial = 0;
    for (const char* args : {"64,64,64", "128,64,32", "32,128,64", "96,48,64"}) {
      AddMeasured(*store, "j", TestTask("matmul", args), 96, trial);
      trial += 96;
    }
    TrainingSetReader reader(*store, {});
    const Status read = store->ForEachRecord(
        {.include_errors = true}, [&](const store::Record& record) { return reader.Add(record); });
    KILN_CHECK(read.ok());
    ThreadPool pool(2);
    auto finished = reader.Finish(pool);
    KILN_CHECK(finished.ok());
    return new TrainingSet(*std::move(finished));
  }();
  return set;
}

TrainOptions Quick() {
  return {.seed = 2, .parameters = {{"max_rounds", 40}}, .sources = {"kiln.db"}, .now_s = 17};
}

TEST(TrainTest, TheFileSaysWhatTheModelIsAndRanksWhatItHasNotSeen) {
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), Quick()));
  const costmodel::ModelInfo& info = file.info;
  EXPECT_EQ(info.kind, "xgb");
  EXPECT_THAT(info.calibration, HasSubstr("cpu_clock_hz="));
  EXPECT_OK(costmodel::CheckColumns(info, features::kFeatureVersion, features::FeatureNames()));
  EXPECT_THAT(info.tasks, SizeIs(4));
  EXPECT_EQ(info.sources, std::vector<std::string>{"kiln.db"});
  EXPECT_EQ(info.trained_s, 17);
  ASSERT_TRUE(info.held_out.has_value());
  EXPECT_FALSE(info.held_out->by_computation);
  EXPECT_THAT(info.held_out->tasks, SizeIs(4));
  int64_t held_out = 0;
  for (const costmodel::TaskQuality& tested : info.held_out->tasks)
    held_out += tested.task.programs;
  EXPECT_EQ(info.programs() + held_out, 384);
  EXPECT_GT(costmodel::MeanOf(info.held_out->tasks).spearman, 0.6);
  EXPECT_GT(costmodel::MeanOf(info.held_out->tasks).pairwise, 0.7);
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile parsed,
                       costmodel::ParseModelFile(costmodel::PrintModelFile(file)));
  EXPECT_EQ(parsed, file);
}

TEST(TrainTest, TheSameSeedGivesTheSameFile) {
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), Quick()));
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile again, Train(SmallTrainingSet(), Quick()));
  EXPECT_EQ(again, file);
  TrainOptions options = Quick();
  options.seed = 3;
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile other, Train(SmallTrainingSet(), options));
  EXPECT_NE(other.model, file.model);
}

TEST(TrainTest, WholeComputationsMayBeHeldOut) {
  TrainOptions options = Quick();
  options.split = Split::kComputations;
  options.held_out = 0.5;
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), options));
  const costmodel::HeldOut held_out = file.info.held_out.value_or(costmodel::HeldOut());
  EXPECT_TRUE(held_out.by_computation);
  for (const costmodel::TaskQuality& tested : held_out.tasks) {
    EXPECT_EQ(tested.task.programs, 96);
    for (const costmodel::ModelTask& learned : file.info.tasks)
      EXPECT_NE(learned.workload_id, tested.task.workload_id);
  }
  EXPECT_EQ(file.info.tasks.size() + held_out.tasks.size(), 4u);
}

TEST(TrainTest, NothingHeldOutIsNoFigure) {
  TrainOptions options = Quick();
  options.held_out = 0;
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), options));
  EXPECT_FALSE(file.info.held_out.has_value());
  EXPECT_EQ(file.info.programs(), 384);
}

TEST(TrainTest, OfTenProgramsEachIsTestedByAModelOfTheOthers) {
  TrainingSet ten = SmallTrainingSet();
  std::erase_if(ten.programs, [](const TrainingProgram& p) { return p.task != 0; });
  ten.programs.resize(10);
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(ten, Quick()));
  EXPECT_EQ(file.info.programs(), 10) << "it learns from all of them";
  ASSERT_TRUE(file.info.held_out.has_value());
  const costmodel::HeldOut& tested = *file.info.held_out;
  EXPECT_EQ(tested.turns, 5);
  EXPECT_GE(tested.k, 2);  // a third of the programs that worked
  EXPECT_LE(tested.k, 4);
  ASSERT_THAT(tested.tasks, SizeIs(1));
  EXPECT_LE(std::abs(tested.tasks[0].quality.spearman), 1);
  EXPECT_GT(tested.tasks[0].quality.pairwise, 0);
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile again,
                       costmodel::ParseModelFile(costmodel::PrintModelFile(file)));
  EXPECT_EQ(again, file);
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile same, Train(ten, Quick()));
  EXPECT_EQ(same, file);
  // Four programs are too few to rank, but enough to learn from.
  ten.programs.resize(4);
  TrainOptions options = Quick();
  options.held_out = 0;
  EXPECT_OK(Train(ten, options));
}

TEST(TrainTest, AModelWithoutEstimatesGivesThroughputs) {
  TrainOptions options = Quick();
  options.estimates.reset();
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), options));
  EXPECT_EQ(file.info.calibration, "");
  ASSERT_OK_AND_ASSIGN(const search::TrainedModel model, search::OpenTrainedModel(file));
  EXPECT_FALSE(model.gives_seconds());
  ASSERT_OK_AND_ASSIGN(const Prediction prediction,
                       Predict(model, TestTask("matmul", "64,64,64"), {}));
  EXPECT_EQ(prediction.seconds, std::nullopt);
  EXPECT_GT(prediction.score, 0);
}

TEST(TrainTest, WhatCannotBeTrainedIsRefusedWithTheReason) {
  EXPECT_THAT(Train(TrainingSet(), Quick()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no record is one to learn from")));
  TrainOptions options = Quick();
  options.parameters["depth"] = 3;
  EXPECT_THAT(Train(SmallTrainingSet(), options),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown parameter 'depth'")));
  options = Quick();
  options.held_out = 0.95;
  EXPECT_THAT(Train(SmallTrainingSet(), options),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("0.95 held out")));
  TrainingSet few = SmallTrainingSet();
  few.programs.resize(3);
  options = Quick();
  options.held_out = 0;
  EXPECT_THAT(Train(few, options),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("3 programs are too few")));
  TrainingSet one = SmallTrainingSet();
  std::erase_if(one.programs, [](const TrainingProgram& p) { return p.task != 0; });
  one.tasks.resize(1), one.devices.resize(1), one.gpu.resize(1);
  options.held_out = 0.3;
  options.split = Split::kComputations;
  EXPECT_THAT(Train(one, options), StatusIs(StatusCode::kFailedPrecondition,
                                            HasSubstr("of 1 computations a share of 0.3")));
  TrainingSet mixed = SmallTrainingSet();
  mixed.gpu[0] = true;
  EXPECT_THAT(Train(mixed, Quick()),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("GPUs (1 of 4"), HasSubstr("choose by the target"))));
}

TEST(TrainTest, APredictionIsOfTheProgramAndOfEachStage) {
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), Quick()));
  ASSERT_OK_AND_ASSIGN(const search::TrainedModel model, search::OpenTrainedModel(file));
  const search::Task task = TestTask("softmax", "16,64");
  ASSERT_OK_AND_ASSIGN(const Prediction prediction, Predict(model, task, {}));
  ASSERT_TRUE(prediction.seconds.has_value());
  EXPECT_EQ(*prediction.seconds, -prediction.score);
  EXPECT_THAT(prediction.stages, SizeIs(4));  // maximum, exponentials, their sum, quotient
  double sum_s = 0, share = 0;
  for (const StagePrediction& stage : prediction.stages) {
    EXPECT_LT(stage.score, 0);
    sum_s -= stage.score;
    share += stage.share.value();
  }
  EXPECT_NEAR(sum_s, *prediction.seconds, 1e-4 * sum_s);
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_GE(prediction.rows.size(), prediction.stages.size());
  ASSERT_OK_AND_ASSIGN(const auto steps, schedule::ParseSteps("[[\"SP\", 99, 0, 8, [2], 1]]"));
  EXPECT_FALSE(Predict(model, task, steps).ok());
}

TEST(TrainTest, ASearchBeginsWithAModelOfTheKindThatItLearnsWith) {
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, Train(SmallTrainingSet(), Quick()));
  ASSERT_OK_AND_ASSIGN(const search::Models models,
                       search::MakeModels("sketch.xgb", 1, {}, {}, {.trained = &file}));
  EXPECT_TRUE(models.learned->trained());
  EXPECT_NE(models.blended, nullptr);
  const auto samples = SamplesOf(SmallTrainingSet());
  const FloatMatrix* const programs[] = {samples[0].rows.get(), samples[1].rows.get()};
  ASSERT_OK_AND_ASSIGN(const search::TrainedModel opened, search::OpenTrainedModel(file));
  EXPECT_EQ(models.learned->Predict(programs), opened.model->Predict(programs));
  EXPECT_FALSE(opened.model->Importance().empty());
  EXPECT_THAT(search::MakeModels("sketch.analytic", 1, {}, {}, {.trained = &file}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("learns with no cost model")));
  costmodel::ModelFile other = file;
  other.info.columns = "0000000000000000";
  EXPECT_THAT(search::OpenTrainedModel(other),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("other feature columns")));
  other = file;
  other.info.calibration = "fish=1";
  EXPECT_FALSE(search::OpenTrainedModel(other).ok());
  other = file;
  other.model.pop_back();
  EXPECT_THAT(search::OpenTrainedModel(other), StatusIs(StatusCode::kDataLoss, HasSubstr("")));
}

}  // namespace
}  // namespace kiln::training
