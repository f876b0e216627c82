#include "builder/build.h"

#include "base/status_testing.h"
#include "builder/requests_testing.h"
#include "compiler/codegen/cuda/compile.h"
#include "rpc/artifact_digest.h"

namespace kiln::builder {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

v1::BuildReply BuildOrDie(const v1::BuildRequest& request) {
  auto outcome = Build(request);
  KILN_CHECK(outcome.ok(), "{}", Message(outcome.status()));
  return outcome->reply;
}

TEST(BuildTest, NullTarget) {
  const v1::BuildReply reply = BuildOrDie(MatmulRequest("null"));
  EXPECT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
  EXPECT_EQ(reply.artifact().device(), "null");
  EXPECT_FALSE(reply.artifact().binary().empty());
  EXPECT_EQ(reply.artifact().plan().args_size(), 3);
  EXPECT_GT(reply.build_s(), 0);
  EXPECT_FALSE(reply.cached());
}

TEST(BuildTest, LlvmTarget) {
  const v1::BuildReply reply = BuildOrDie(MatmulRequest("llvm -mcpu=native"));
  ASSERT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
  const v1::Artifact& artifact = reply.artifact();
  EXPECT_EQ(artifact.device(), "cpu");
  EXPECT_EQ(artifact.binary().substr(0, 4),
            "\x7f"
            "ELF");
  EXPECT_EQ(artifact.digest().size(), 64);
  EXPECT_EQ(artifact.digest(), DigestOf(artifact));
  const v1::LaunchPlan& plan = artifact.plan();
  ASSERT_EQ(plan.args_size(), 3);
  EXPECT_THAT(plan.args(0).shape(), ElementsAre(16, 24));
  EXPECT_THAT(plan.args(1).shape(), ElementsAre(24, 8));
  EXPECT_THAT(plan.args(2).shape(), ElementsAre(16, 8));
  for (const v1::ArgSpec& spec : plan.args()) EXPECT_EQ(spec.dtype(), "float32");
  EXPECT_EQ(plan.args(0).role(), v1::ArgSpec::INPUT);
  EXPECT_EQ(plan.args(2).role(), v1::ArgSpec::OUTPUT);
  ASSERT_EQ(plan.launches_size(), 1);
  EXPECT_EQ(plan.launches(0).symbol(), "kiln_entry");
  EXPECT_THAT(plan.launches(0).args(), ElementsAre(0, 1, 2));
}

// Whoever compiles the source gets the program that is built otherwise: the two have one interface.
TEST(BuildTest, TheSourceAloneHasTheInterfaceOfTheBuiltProgram) {
  for (const char* const target : {"null", "llvm -mcpu=native"}) {
    v1::BuildRequest request = MatmulRequest(target, SplitRows(4));
    const v1::BuildReply built = BuildOrDie(request);
    EXPECT_EQ(built.source(), "");
    request.set_source_only(true);
    v1::BuildReply reply = BuildOrDie(request);
    ASSERT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
    EXPECT_THAT(reply.source(), HasSubstr("A"));
    EXPECT_EQ(reply.artifact().binary(), "");
    EXPECT_EQ(reply.artifact().digest(), DigestOf(reply.artifact()));
    EXPECT_EQ(reply.artifact().plan().SerializeAsString(),
              built.artifact().plan().SerializeAsString());
    EXPECT_EQ(reply.times().compile_s(), 0);
    reply.mutable_artifact()->set_binary(built.artifact().binary());
    EXPECT_EQ(DigestOf(reply.artifact()), built.artifact().digest());
  }
}

TEST(BuildTest, TheSourceForACpuIsLlvmIrBeforeTheOptimizer) {
  v1::BuildRequest request = MatmulRequest("llvm -mcpu=x86-64-v3");
  request.set_source_only(true);
  const v1::BuildReply reply = BuildOrDie(request);
  ASSERT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
  EXPECT_THAT(reply.source(), AllOf(HasSubstr("define"), HasSubstr("@kiln_entry("),
                                    HasSubstr("\"target-cpu\"=\"x86-64-v3\""),
                                    HasSubstr("fmul contract float"), HasSubstr("target triple")));
}

TEST(BuildTest, ACandidateThatFailsHasNoSource) {
  v1::BuildRequest request = MatmulRequest("llvm", R"([["SP", 9, 0, 16, [4], 1]])");
  request.set_source_only(true);
  const v1::BuildReply reply = BuildOrDie(request);
  EXPECT_EQ(reply.error(), v1::INSTANTIATION_ERROR);
  EXPECT_EQ(reply.source(), "");
}

TEST(BuildTest, InputsHaveTheRangesOfTheText) {
  v1::BuildRequest request = MatmulRequest("null");
  const std::string plain = BuildOrDie(request).artifact().digest();
  request.set_dag(
      "input A: float32[16, 24]\n@range(0.5, 2)\ninput B: float32[24, 8]\n"
      "C[i: 16, j: 8] = sum(k: 24) A[i, k] * B[k, j]\n");
  const v1::Artifact artifact = BuildOrDie(request).artifact();
  ASSERT_EQ(artifact.plan().args_size(), 3);
  EXPECT_FALSE(artifact.plan().args(0).has_range());
  EXPECT_EQ(artifact.plan().args(1).range().low(), 0.5);
  EXPECT_EQ(artifact.plan().args(1).range().high(), 2);
  EXPECT_FALSE(artifact.plan().args(2).has_range());
  EXPECT_EQ(artifact.digest(), DigestOf(artifact));
  EXPECT_NE(artifact.digest(), plain);
}

// The shapes are those of the text, whatever axes the program has merged.
TEST(BuildTest, ArgumentsHaveTheShapesOfTheText) {
  v1::BuildRequest request = MatmulRequest("llvm", R"([["MA", 1, 0, 2]])");
  request.set_dag("input A: float32[4, 6]\nB[i: 4, j: 6] = A[i, j] * 2.0\n");
  const v1::BuildReply reply = BuildOrDie(request);
  ASSERT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
  ASSERT_EQ(reply.artifact().plan().args_size(), 2);
  for (const v1::ArgSpec& spec : reply.artifact().plan().args())
    EXPECT_THAT(spec.shape(), ElementsAre(4, 6));
  EXPECT_EQ(reply.artifact().digest(), DigestOf(reply.artifact()));
}

TEST(BuildTest, SameRequestSameDigest) {
  for (const char* target : {"null", "llvm"}) {
    const std::string digest = BuildOrDie(MatmulRequest(target)).artifact().digest();
    EXPECT_EQ(BuildOrDie(MatmulRequest(target)).artifact().digest(), digest);
    EXPECT_NE(BuildOrDie(MatmulRequest(target, SplitRows(4))).artifact().digest(), digest);
    EXPECT_EQ(BuildOrDie(MatmulRequest(target)).artifact().digest(), digest);
  }
}

TEST(BuildTest, BadDagsAndTargetsAreTheRequestersFault) {
  v1::BuildRequest request = MatmulRequest("null");
  request.set_dag("input A: float32[16, 24]\nC[i: 16] = B[i]\n");
  EXPECT_THAT(Build(request),
              StatusIs(StatusCode::kInvalidArgument, AllOf(HasSubstr("dag: "), HasSubstr("2"))));
  request.set_dag("");
  EXPECT_THAT(Build(request), StatusIs(StatusCode::kInvalidArgument, HasSubstr("dag: ")));
  for (const char* target : {"", "vax", "llvm -mcpu=9000", "llvm -no-such-option=1"}) {
    EXPECT_THAT(Build(MatmulRequest(target)),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("target: ")))
        << target;
  }
}

TEST(BuildTest, CudaWhereNvrtcIs) {
  const auto outcome = Build(MatmulRequest("cuda -arch=sm_90"));
  if (!codegen::FindNvrtc().ok()) {
    EXPECT_THAT(outcome, StatusIs(StatusCode::kUnimplemented, HasSubstr("it serves llvm, null: ")));
    return;
  }
  ASSERT_OK(outcome);
  ASSERT_EQ(outcome->reply.error(), v1::NO_ERROR) << outcome->reply.message();
  EXPECT_EQ(outcome->reply.artifact().device(), "cuda");
  ASSERT_GE(outcome->reply.artifact().plan().launches_size(), 1);
  EXPECT_EQ(outcome->reply.artifact().plan().launches(0).grid_size(), 3);
  // The source says what it is compiled for; the plan lacks the compiler's figures alone.
  v1::BuildRequest request = MatmulRequest("cuda -arch=sm_90");
  request.set_source_only(true);
  const v1::BuildReply source = BuildOrDie(request);
  v1::LaunchPlan plan = outcome->reply.artifact().plan();
  EXPECT_THAT(source.source(), StartsWith("// For --gpu-architecture=sm_90\n"));
  EXPECT_THAT(source.source(), HasSubstr(plan.launches(0).symbol() + "("));
  for (v1::KernelLaunch& launch : *plan.mutable_launches()) launch.clear_registers();
  EXPECT_EQ(source.artifact().plan().SerializeAsString(), plan.SerializeAsString());
}

// B takes 128 KiB of shared memory. The program is refused or built by the limits of the device
// that runs it.
TEST(BuildTest, LimitsAreTheDevices) {
  v1::BuildRequest request = MatmulRequest(
      "cuda -arch=sm_90",
      R"([["CHR", 1, "shared", [2]], ["FU", 3, [0, 1]], ["SP", 3, 0, 1024, [32], 1], )"
      R"(["AN", 3, 0, 5], ["AN", 3, 1, 6], ["CA", 2, 3, 0], ["FU", 2, [0, 1]], )"
      R"(["SP", 2, 0, 32768, [32], 1], ["AN", 2, 1, 6]])");
  request.set_dag(
      "input A: float32[32, 1024]\n"
      "input B: float32[1024, 32]\n"
      "C[i: 32, j: 32] = sum(k: 1024) A[i, k] * B[k, j]\n");
  if (!codegen::FindNvrtc().ok()) GTEST_SKIP() << "no NVRTC";
  const v1::BuildReply refused = BuildOrDie(request);
  EXPECT_EQ(refused.error(), v1::INSTANTIATION_ERROR);
  EXPECT_THAT(refused.message(), HasSubstr("131072 bytes of shared memory, there are 49152"));
  request.mutable_hardware()->set_max_shared_memory_per_block_bytes(232448);
  request.mutable_hardware()->set_max_threads_per_block(1024);
  const v1::BuildReply built = BuildOrDie(request);
  ASSERT_EQ(built.error(), v1::NO_ERROR) << built.message();
  const v1::KernelLaunch& launch = built.artifact().plan().launches(0);
  EXPECT_EQ(launch.dynamic_shared_bytes(), 131072);
  EXPECT_EQ(launch.shared_bytes(), 131072);
  EXPECT_GT(launch.registers(), 8);
  EXPECT_EQ(launch.spilled_bytes(), 0);
  request.mutable_hardware()->set_max_threads_per_block(16);
  EXPECT_THAT(BuildOrDie(request).message(), HasSubstr("32 threads, at most 16"));
}

TEST(BuildTest, StepsThatDoNotParseReplayOrLower) {
  const struct {
    const char* steps;
    const char* message;
  } cases[] = {
      {"", ""},
      {"[[", ""},
      {"[[\"XX\", 2, 0]]", "XX"},
      {"[[\"SP\", 2, 9, 16, [4], 1]]", "loop 9"},
      {"[[\"SP\", 7, 0, 16, [4], 1]]", "7"},
      // A sketch.
      {"[[\"SP\", 2, 0, 16, [null], 1]]", ""},
      // The steps replay, but a CPU has no blocks.
      {"[[\"AN\", 2, 0, 5]]", "blockIdx.x"},
  };
  for (const char* target : {"null", "llvm"}) {
    for (const auto& c : cases) {
      const v1::BuildReply reply = BuildOrDie(MatmulRequest(target, c.steps));
      EXPECT_EQ(reply.error(), v1::INSTANTIATION_ERROR) << c.steps;
      EXPECT_THAT(reply.message(), AllOf(HasSubstr(c.message), testing::Not(""))) << c.steps;
      EXPECT_FALSE(reply.has_artifact()) << c.steps;
    }
  }
}

TEST(BuildTest, CodeGeneratorRefuses) {
  // The program keeps a row of C on the stack while it sums it up, and the row is too long for
  // that.
  v1::BuildRequest request = MatmulRequest("llvm", R"([["CHW", 2, "local"], ["CA", 2, 3, 0]])");
  request.set_dag(
      "input A: float32[2, 3]\n"
      "input B: float32[3, 16777216]\n"
      "C[i: 2, j: 16777216] = sum(k: 3) A[i, k] * B[k, j]\n");
  ASSERT_OK_AND_ASSIGN(const BuildOutcome outcome, Build(request));
  EXPECT_EQ(outcome.reply.error(), v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(outcome.reply.message(), HasSubstr("stack"));
  EXPECT_TRUE(outcome.repeatable);
}

TEST(BuildTest, LongMessagesAreCut) {
  std::string steps = "[[\"" + std::string(5000, 'x') + "\", 2, 0]]";
  const v1::BuildReply reply = BuildOrDie(MatmulRequest("null", steps));
  EXPECT_EQ(reply.error(), v1::INSTANTIATION_ERROR);
  EXPECT_LE(reply.message().size(), 512);
}

TEST(BuildTest, FaultsMakeOtherPrograms) {
  const std::string sound = BuildOrDie(MatmulRequest("llvm")).artifact().digest();
  for (const v1::Fault fault :
       {v1::FAULT_NULL_STORE, v1::FAULT_INFINITE_LOOP, v1::FAULT_WRONG_ANSWER}) {
    const v1::BuildReply reply = BuildOrDie(FaultRequest(fault));
    EXPECT_EQ(reply.error(), v1::NO_ERROR) << reply.message();
    EXPECT_NE(reply.artifact().digest(), sound) << v1::Fault_Name(fault);
  }
  EXPECT_THAT(Build(FaultRequest(static_cast<v1::Fault>(99))),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown fault 99")));
  v1::BuildRequest null_fault = MatmulRequest("null");
  null_fault.set_fault(v1::FAULT_WRONG_ANSWER);
  EXPECT_THAT(Build(null_fault), StatusIs(StatusCode::kInvalidArgument, HasSubstr("never run")));
}

TEST(BuildDeathTest, CompilerCrash) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT((void)Build(FaultRequest(v1::FAULT_COMPILER_CRASH)), testing::KilledBySignal(SIGABRT),
              "");
}

}  // namespace
}  // namespace kiln::builder
