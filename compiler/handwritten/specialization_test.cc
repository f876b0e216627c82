#include "compiler/handwritten/specialization.h"

#include "base/status_testing.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/handwritten/computation.h"

namespace kiln::handwritten {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

dag::DagPtr Matmul() {
  return *dag::ParseDag(
      "input A: float32[64, 32]\ninput B: float32[32, 48]\n"
      "C[i: 64, j: 48] = sum(k: 32) A[i, k] * B[k, j]\n");
}

constexpr std::string_view kSpace = R"toml(
kernel = "matmul"
operator = "matmul"
arguments = ["B", { int32 = "N * block" }, "C", "A", { float32 = 0.5 }, { float64 = "N" }]
grid = ["ceil_div(N, block)", "extent(A, 0)"]
block = ["block", 2]
shared_bytes = "4 * block"
options = ["--use_fast_math"]
restrictions = ["block % 8 == 0", "48 // (block - 8) > 1"]
[constants]
N = "extent(input1, 1)"
[parameters]
block = [4, 8, 16, 32]
fast = [true, false]
word = ["float", "float4"]
)toml";

StatusOr<KernelText> Kernel(std::string_view space = kSpace) {
  return ParseSpaceFile(space, Language::kCuda, "my.cu", "void matmul();");
}

std::vector<NamedValue> Values(int64_t block) {
  return {{"block", block}, {"fast", true}, {"word", std::string("float4")}};
}

TEST(Specialization, HasTheNumbersOfTheLaunchAndMacros) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Kernel());
  ASSERT_OK_AND_ASSIGN(const Specialization made, Specialize(text, *Matmul(), Values(16)));
  EXPECT_EQ(made.source,
            "#define N 48\n#define block 16\n#define fast 1\n#define word float4\n"
            "#line 1 \"my.cu\"\nvoid matmul();\n");
  EXPECT_THAT(made.grid, ElementsAre(3, 64, 1));
  EXPECT_THAT(made.block, ElementsAre(16, 2, 1));
  EXPECT_EQ(made.threads(), 32);
  EXPECT_EQ(made.shared_bytes, 64);
  ASSERT_EQ(made.arguments.size(), 6u);
  EXPECT_EQ(made.arguments[0].tensor, 1);
  EXPECT_EQ(std::get<int64_t>(made.arguments[1].number), 768);
  EXPECT_EQ(made.arguments[2].tensor, 2);
  EXPECT_EQ(made.arguments[3].tensor, 0);
  EXPECT_EQ(std::get<double>(made.arguments[4].number), 0.5);
  EXPECT_EQ(std::get<double>(made.arguments[5].number), 48);
  EXPECT_OK(CheckBinding(text, *Matmul()));
}

TEST(Specialization, RestrictionsThatHoldOrCannotBeComputed) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Kernel());
  ASSERT_OK_AND_ASSIGN(const Restrictions restrictions, Restrictions::Make(text, Matmul()));
  EXPECT_TRUE(restrictions.Hold(Values(16)));
  EXPECT_FALSE(restrictions.Hold(Values(4))) << "4 % 8";
  EXPECT_FALSE(restrictions.Hold(Values(8))) << "a division by 0";
}

TEST(Specialization, WhatDoesNotFitTheComputationIsNamed) {
  const auto refusal = [](std::string_view what, std::string_view with, int64_t block = 16) {
    std::string space(kSpace);
    space.replace(space.find(what), what.size(), with);
    const StatusOr<KernelText> text = Kernel(space);
    EXPECT_OK(text.status());
    return std::string(Message(Specialize(*text, *Matmul(), Values(block)).status()));
  };
  EXPECT_THAT(refusal("\"B\", ", "\"D\", "),
              HasSubstr("no input or output D, it has A (input0), B (input1), C (output0)"));
  EXPECT_THAT(refusal(" \"C\",", ""), HasSubstr("is not given the output C"));
  EXPECT_THAT(refusal("extent(input1, 1)", "extent(B, 2)"),
              HasSubstr("constant N: line 1, column 1: B has 2 dimensions"));
  EXPECT_THAT(refusal("\"ceil_div(N, block)\"", "\"N // block\"", 64),
              HasSubstr("grid extent x is 0, expected at least 1: N // block"));
  EXPECT_THAT(refusal("N * block", "N * 1000000000"), HasSubstr("is beyond int32"));
  constexpr std::string_view kNumber = "int32 = \"N * block\"";
  EXPECT_EQ(refusal(kNumber, "uint8 = \"N * 5\""), "");
  EXPECT_THAT(refusal(kNumber, "uint8 = \"N * 6\""), HasSubstr("is beyond uint8"));
  EXPECT_THAT(refusal(kNumber, "uint64 = \"0 - N\""), HasSubstr("is beyond uint64"));
  ASSERT_OK_AND_ASSIGN(const KernelText text, Kernel());
  EXPECT_THAT(Specialize(text, *Matmul(), {}).status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("0 values for 3 parameters")));
}

TEST(Specialization, WhatADeviceCannotLaunchIsKnownBefore) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Kernel());
  ASSERT_OK_AND_ASSIGN(Specialization made, Specialize(text, *Matmul(), Values(512)));
  target::HardwareParams hardware;
  hardware.max_threads_per_block = 1024;
  hardware.max_shared_memory_per_block_bytes = 2048;
  EXPECT_OK(CheckLaunch(made, hardware));
  made.block[0] = 513;
  EXPECT_THAT(CheckLaunch(made, hardware),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("1026 threads per block")));
  made.block = {1, 1, 65};
  EXPECT_THAT(Message(CheckLaunch(made, hardware)), HasSubstr("65 threads along z"));
  made.block = {1, 1, 1};
  made.shared_bytes = 2049;
  EXPECT_THAT(Message(CheckLaunch(made, hardware)), HasSubstr("2049 bytes of shared memory"));
  made.shared_bytes = 0;
  made.grid = {1, 65536, 1};
  EXPECT_THAT(Message(CheckLaunch(made, hardware)), HasSubstr("65536 blocks along y"));
}

TEST(Computation, HasAnIdentityOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(KernelText text, Kernel());
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr tagged, TaggedComputation(text, Matmul()));
  EXPECT_NE(dag::WorkloadId(*tagged), dag::WorkloadId(*Matmul()));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr twice, TaggedComputation(text, tagged));
  EXPECT_EQ(dag::WorkloadId(*twice), dag::WorkloadId(*tagged));
  text.code.source += "// changed";
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr other, TaggedComputation(text, Matmul()));
  EXPECT_NE(dag::WorkloadId(*other), dag::WorkloadId(*tagged));
}

TEST(Computation, OfAReferenceKernelIsWhatTheTextDeclares) {
  ASSERT_OK_AND_ASSIGN(const KernelText text, Kernel(R"toml(
kernel = "f"
grid = ["ceil_div(M, block_size_x)"]
flops = "2 * N"
[constants]
N = 64
M = "extent(x, 0)"
[parameters]
block_size_x = [32, 64]
[tensors]
x = "input int32[N]"
y = "output float32[N, 2]"
z = "output bool[]"
[reference]
kernel = "g"
[reference.parameters]
block_size_x = 64
)toml"));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, DeclaredComputation(text));
  EXPECT_EQ(dag->arguments().size(), 3u);
  EXPECT_EQ(dag->flop_count(), 128);
  ASSERT_OK_AND_ASSIGN(const Specialization reference, SpecializeReference(text, *dag));
  EXPECT_EQ(reference.function, "g");
  EXPECT_THAT(reference.grid, ElementsAre(1, 1, 1));
  EXPECT_THAT(reference.block, ElementsAre(64, 1, 1));
  EXPECT_THAT(reference.source, HasSubstr("#define block_size_x 64\n"));
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr tagged, TaggedComputation(text, dag));
  KernelText other = text;
  other.reference->parameters[0].second = int64_t{32};
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr by_other, TaggedComputation(other, dag));
  EXPECT_NE(dag::WorkloadId(*by_other), dag::WorkloadId(*tagged));
}

}  // namespace
}  // namespace kiln::handwritten
