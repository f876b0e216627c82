#include "training/wire/model_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "training/measured_testing.h"

namespace kiln::training {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class ModelCallsTest : public testing::Test {
 protected:
  ModelCallsTest() {
    KILN_CHECK(store_->AddJob({.id = "j"}).ok());
    AddMeasured(*store_, "j", TestTask("matmul", "64,64,64"), 64);
  }

  static v1::TrainModelRequest Request() {
    v1::TrainModelRequest request;
    request.set_name("m");
    request.mutable_records()->set_include_errors(true);
    (*request.mutable_parameters())["max_rounds"] = 10;
    return request;
  }

  StatusOr<v1::TrainModelReply> Train(const v1::TrainModelRequest& request, int64_t now_s = 5) {
    return TrainModel(*store_, request, {"a store"}, now_s, {});
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
};

TEST_F(ModelCallsTest, ATrainedModelIsKeptUnderItsName) {
  ASSERT_OK_AND_ASSIGN(const v1::TrainModelReply reply, Train(Request()));
  EXPECT_EQ(reply.model().name(), "m");
  EXPECT_EQ(reply.model().created_s(), 5);
  EXPECT_EQ(reply.records(), 64);
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelInfo info,
                       costmodel::ParseModelInfo(reply.model().info()));
  EXPECT_EQ(info.sources, std::vector<std::string>{"a store"});
  EXPECT_EQ(info.records, 64);
  EXPECT_GT(info.programs(), 40);
  ASSERT_TRUE(info.held_out.has_value());
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile kept, ReadModel(*store_, "m"));
  EXPECT_EQ(kept.info, info);
}

TEST_F(ModelCallsTest, ANameIsReplacedOnlyIfThatIsSaid) {
  ASSERT_OK(Train(Request()).status());
  EXPECT_THAT(Train(Request()), StatusIs(StatusCode::kAlreadyExists, HasSubstr("'m'")));
  v1::TrainModelRequest request = Request();
  request.set_replace(true);
  ASSERT_OK_AND_ASSIGN(const v1::TrainModelReply reply, Train(request, 6));
  EXPECT_EQ(reply.model().created_s(), 6);
  request.set_name("no name");
  EXPECT_THAT(Train(request), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'no name'")));
}

TEST_F(ModelCallsTest, TrainsAgainOnceThereAreSoManyMoreRecords) {
  v1::TrainModelRequest request = Request();
  request.set_if_grown(0.25);
  ASSERT_OK_AND_ASSIGN(const v1::TrainModelReply first, Train(request, 5));
  EXPECT_FALSE(first.kept()) << "there was none";
  AddMeasured(*store_, "j", TestTask("matmul", "32,32,32"), 15, 64);
  ASSERT_OK_AND_ASSIGN(const v1::TrainModelReply kept, Train(request, 6));
  EXPECT_TRUE(kept.kept());
  EXPECT_EQ(kept.model().created_s(), 5);
  EXPECT_EQ(kept.records(), 79);
  AddMeasured(*store_, "j", TestTask("matmul", "16,16,16"), 1, 79);
  ASSERT_OK_AND_ASSIGN(const v1::TrainModelReply again, Train(request, 7));
  EXPECT_FALSE(again.kept());
  EXPECT_EQ(again.model().created_s(), 7);
}

TEST_F(ModelCallsTest, TestsAModelOnTheRecordsThatAreAskedFor) {
  ASSERT_OK(Train(Request()).status());
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, ReadModel(*store_, "m"));
  v1::TestModelRequest request;
  ASSERT_OK_AND_ASSIGN(const v1::TestModelReply reply, TestFile(*store_, file, request, {}));
  ASSERT_THAT(reply.tasks(), SizeIs(1));
  EXPECT_EQ(reply.tasks(0).programs(), 56) << "those that worked";
  EXPECT_GT(reply.tasks(0).spearman(), 0.6);
  request.mutable_records()->set_target("cuda");
  ASSERT_OK_AND_ASSIGN(const v1::TestModelReply none, TestFile(*store_, file, request, {}));
  EXPECT_THAT(none.tasks(), SizeIs(0));
}

TEST_F(ModelCallsTest, PredictsEachProgramOrSaysWhyNot) {
  ASSERT_OK(Train(Request()).status());
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, ReadModel(*store_, "m"));
  const search::Task task = TestTask("matmul", "64,64,64");
  v1::PredictRequest request;
  v1::ScheduledProgram& program = *request.add_programs();
  program.set_dag(dag::PrintDag(*task.dag));
  program.set_target("llvm");
  program.set_steps("[]");
  *request.add_programs() = program;
  request.mutable_programs(1)->set_steps("[[\"SP\", 99, 0, 8, [2], 1]]");
  *request.add_programs() = program;
  request.mutable_programs(2)->set_dag("no computation");
  ASSERT_OK_AND_ASSIGN(const v1::PredictReply reply, PredictWith(file, request, {}));
  ASSERT_THAT(reply.predictions(), SizeIs(3));
  EXPECT_EQ(reply.predictions(0).error(), "");
  EXPECT_GT(reply.predictions(0).seconds(), 0);
  ASSERT_THAT(reply.predictions(0).stages(), SizeIs(1));
  EXPECT_EQ(reply.predictions(0).stages(0).share(), 1);
  EXPECT_THAT(reply.predictions(1).error(), HasSubstr("99"));
  EXPECT_NE(reply.predictions(2).error(), "");
}

TEST_F(ModelCallsTest, AFileThatIsNoModelIsNotKept) {
  EXPECT_THAT(ModelRowOf("m", "bytes", 1),
              StatusIs(StatusCode::kDataLoss, HasSubstr("no cost model")));
  ASSERT_OK(Train(Request()).status());
  ASSERT_OK_AND_ASSIGN(costmodel::ModelFile file, ReadModel(*store_, "m"));
  EXPECT_OK(ModelRowOf("n", costmodel::PrintModelFile(file), 1).status());
  EXPECT_FALSE(ModelRowOf("n n", costmodel::PrintModelFile(file), 1).ok());
  file.info.feature_version = 1;
  EXPECT_THAT(ModelRowOf("n", costmodel::PrintModelFile(file), 1),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("version 1")));
}

TEST_F(ModelCallsTest, AModelOfCpusIsNotForAGpu) {
  ASSERT_OK(Train(Request()).status());
  ASSERT_OK_AND_ASSIGN(const costmodel::ModelFile file, ReadModel(*store_, "m"));
  EXPECT_OK(CheckKindOfTarget(file.info, "llvm -mcpu=znver4"));
  EXPECT_THAT(CheckKindOfTarget(file.info, "cuda -arch=sm_90"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("was trained on llvm")));
}

}  // namespace
}  // namespace kiln::training
