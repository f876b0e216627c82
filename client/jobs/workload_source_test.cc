#include "client/jobs/workload_source.h"

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WorkloadSourceTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = folder_.Join(name);
    KILN_CHECK(WriteFile(path, text).ok());
    return path;
  }
  TempDir folder_ = *TempDir::Make("workload-source-test");
};

TEST_F(WorkloadSourceTest, AnOperatorWithItsEpilogue) {
  ASSERT_OK_AND_ASSIGN(
      const Workload workload,
      LoadWorkload({.op = "matmul", .args = "8,16,32", .out_dtype = "", .epilogue = "bias,relu"}));
  EXPECT_EQ(workload.description, "matmul 8,16,32 + bias + relu");
  EXPECT_GE(workload.dag->flop_count(), 2 * 8 * 16 * 32);
}

TEST_F(WorkloadSourceTest, AnOperatorWithoutArgumentsSaysTheFlag) {
  EXPECT_THAT(LoadWorkload({.op = "matmul"}),
              StatusIs(StatusCode::kInvalidArgument,
                       "matmul takes M,N,K: got 0 arguments; say them with --args, for instance "
                       "`matmul --args 512,512,512`; `kiln ops matmul` says what each of them is"));
  // Other mistakes say what is wrong with them.
  EXPECT_THAT(LoadWorkload({.op = "matmul", .args = "8"}),
              StatusIs(StatusCode::kInvalidArgument, "matmul takes M,N,K: got 1 arguments"));
}

TEST_F(WorkloadSourceTest, VariantsOfAConvolution) {
  const WorkloadArguments arguments = {
      .op = "conv2d_nhwc", .args = "1,9,9,4,8,3,3,1,1", .epilogue = "bias"};
  ASSERT_OK_AND_ASSIGN(const auto direct, LoadVariants(arguments, kDirectVariants, false));
  ASSERT_EQ(direct.size(), 1u);
  EXPECT_EQ(direct[0].name, "");
  ASSERT_OK_AND_ASSIGN(const auto all, LoadVariants(arguments, kAllVariants, false));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "direct");
  EXPECT_EQ(all[0].preparation, "");
  EXPECT_EQ(all[1].name, "winograd F(4,3)");
  EXPECT_EQ(all[1].preparation, "p1 = conv2d_winograd_weights 4,8,tile=4,by_rows=1");
  EXPECT_EQ(all[1].workload.description, "conv2d_nhwc 1,9,9,4,8,3,3,1,1 + bias, winograd F(4,3)");
  ASSERT_OK_AND_ASSIGN(const auto winograd, LoadVariants(arguments, kWinogradVariants, true));
  ASSERT_EQ(winograd.size(), 1u);
  EXPECT_EQ(winograd[0].name, "winograd F(2,3)");
  // The preparation of a variant is an operator.
  ASSERT_OK(LoadWorkload({.op = "conv2d_winograd_weights", .args = "4,8,tile=4,by_rows=1"}));

  const WorkloadArguments matmul = {.op = "matmul", .args = "8,8,8"};
  EXPECT_EQ(LoadVariants(matmul, kAllVariants, false)->size(), 1u);
  EXPECT_THAT(LoadVariants(matmul, kWinogradVariants, false),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("matmul has no winograd variant")));
}

TEST_F(WorkloadSourceTest, ATextFile) {
  const std::string path = File("my_op.te",
                                "input A: float32[4, 8]\n"
                                "B[i: 4] = sum(k: 8) A[i, k] * 2.0\n");
  ASSERT_OK_AND_ASSIGN(const Workload workload, LoadWorkload({.op = path, .args = ""}));
  EXPECT_EQ(workload.description, "my_op.te");
  EXPECT_EQ(workload.dag->size(), 2);
}

TEST_F(WorkloadSourceTest, ParamsOfATextFile) {
  const std::string path = File("my_op.te",
                                "param n\nparam m = 4\ninput A: float32[n, m]\n"
                                "B[i: n] = sum(k: m) A[i, k]\n");
  ASSERT_OK_AND_ASSIGN(const Workload workload, LoadWorkload({.op = path, .lets = {"n=7"}}));
  EXPECT_EQ(workload.description, "my_op.te n=7");
  EXPECT_EQ(workload.dag->op(0).shape(), (std::vector<int64_t>{7, 4}));
  const auto message = [&](const WorkloadArguments& arguments) {
    return std::string(Message(LoadWorkload(arguments).status()));
  };
  EXPECT_THAT(message({.op = path}),
              testing::EndsWith("my_op.te:1:7: n has no value: give it with --let n=..."));
  EXPECT_THAT(message({.op = path, .lets = {"n=7", "z=1"}}), HasSubstr("no param z; it has n, m"));
  EXPECT_THAT(message({.op = path, .lets = {"n=7", "n=8"}}), HasSubstr("n has a value already"));
  EXPECT_THAT(message({.op = path, .lets = {"n"}}), HasSubstr("expected NAME=NUMBER"));
  EXPECT_THAT(message({.op = "matmul", .args = "1,2,3", .lets = {"n=7"}}),
              HasSubstr("--let n=7: matmul is an operator"));
}

TEST_F(WorkloadSourceTest, AMistakeInAFileHasItsPlace) {
  const std::string path = File("bad.te",
                                "input A: float32[4, 8]\n"
                                "B[i: 4] = sum(k: 8) A[i, k] *\n");
  const Status status = LoadTextFile(path).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(status)), testing::MatchesRegex(".*/bad.te:[23]:[0-9]+: .*"));
}

TEST_F(WorkloadSourceTest, RangesGoToTheTasksThatHaveTheInput) {
  const std::string path =
      File("log.te",
           "@range(3, 4) input x: float32[4]\n@range(1, 2) input z: float32[4]\n"
           "y[i: 4] = log(x[i]) + z[i]\n");
  ASSERT_OK_AND_ASSIGN(Workload log, LoadWorkload({.op = path, .args = ""}));
  ASSERT_OK_AND_ASSIGN(Workload other, LoadWorkload({.op = "matmul", .args = "2,2,2"}));
  const auto give = [&](const std::vector<std::string>& ranges) {
    return GiveRanges(ranges, std::vector<Workload*>{&other, &log});
  };
  EXPECT_OK(give({"x=0.5:2"}));
  EXPECT_THAT(log.ranges, testing::UnorderedElementsAre(dag::InputRange{"x", 0.5, 2},
                                                        dag::InputRange{"z", 1, 2}));
  EXPECT_TRUE(other.ranges.empty());
  EXPECT_THAT(give({"w=0.5:2"}),
              StatusIs(StatusCode::kNotFound, HasSubstr("no input w, expected one of: x, z")));
  EXPECT_THAT(give({"x=2:1"}), StatusIs(StatusCode::kInvalidArgument, HasSubstr("range [2, 1)")));
  EXPECT_THAT(give({"x"}), StatusIs(StatusCode::kInvalidArgument, HasSubstr("NAME=LOW:HIGH")));
}

TEST_F(WorkloadSourceTest, AFileSaysItsOwnShapes) {
  const std::string path = File("my_op.te", "input A: float32[4]\nB[i: 4] = A[i]\n");
  EXPECT_THAT(std::string(Message(LoadWorkload({.op = path, .args = "4"}).status())),
              HasSubstr("leave out --args"));
}

TEST_F(WorkloadSourceTest, Refusals) {
  auto message = [](const WorkloadArguments& arguments) {
    const auto workload = LoadWorkload(arguments);
    EXPECT_FALSE(workload.ok());
    return std::string(Message(workload.status()));
  };
  EXPECT_THAT(message({.op = "", .args = ""}), StartsWith("no operator"));
  EXPECT_THAT(message({.op = "conv2d_ncwh", .args = "1"}), HasSubstr("conv2d_nchw"));
  EXPECT_THAT(message({.op = "none.te", .args = ""}), HasSubstr("cannot"));
  EXPECT_THAT(message({.op = "matmul", .args = "1,2,3", .dtype = "float33"}), HasSubstr("float33"));
}

TEST_F(WorkloadSourceTest, NetworksAreNoWorkloads) {
  for (const char* network : {"network:resnet-18", "x.onnx", "models/resnet.onnx"}) {
    EXPECT_THAT(LoadWorkload({.op = network}),
                StatusIs(StatusCode::kInvalidArgument,
                         testing::AllOf(StartsWith(std::string(network) + " is a network"),
                                        HasSubstr("kiln tune"))));
  }
  EXPECT_THAT(LoadWorkload({.op = "net.pt"}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("export it as net.onnx")));
  EXPECT_FALSE(IsForeignNetwork("my_op.te"));
  EXPECT_FALSE(IsForeignNetwork("matmul"));
}

}  // namespace
}  // namespace kiln::client
