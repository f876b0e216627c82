#include "compiler/ir/interpreter.h"

#include "base/status_testing.h"
#include "compiler/ir/program_text.h"

namespace kiln::ir {
namespace {
using testing::AllOf;
using testing::HasSubstr;

// Runs program text. The arrays are made from the arguments, and inputs are filled with small
// integers.
struct Outcome {
  Status status;
  std::vector<NDArray> arrays;
};

Outcome RunText(std::string_view text, const InterpreterOptions& options = {}) {
  const StatusOr<Program> program = ParseProgram(text);
  if (!program.ok()) return {program.status(), {}};
  Outcome outcome;
  for (const Buffer& buffer : program->buffers) {
    if (buffer.scope > Scope::kOutput) continue;
    NDArray& array = outcome.arrays.emplace_back(buffer.type, buffer.shape);
    if (buffer.scope == Scope::kInput) {
      array.FillRandom(outcome.arrays.size(), RandomKind::kSmallIntegers, buffer.index_limit);
    } else {
      array.Poison();
    }
  }
  std::vector<NDArray*> arguments;
  for (NDArray& array : outcome.arrays) arguments.push_back(&array);
  outcome.status = Interpret(*program, arguments, options);
  return outcome;
}

// Runs one CPU kernel. The buffers are a: float32[8], b: float32[8] and a workspace w: float32[8].
Outcome RunBody(std::string_view body, const InterpreterOptions& options = {}) {
  return RunText(
      fmt::format(
          "program(a: input float32[8], b: output float32[8], w: workspace float32[8]) {{ stage s "
          "kernel k {{ {} }} }}",
          body),
      options);
}

// Runs the same program on a grid of 2 blocks of 4 threads.
Outcome RunGpuBody(std::string_view body, const InterpreterOptions& options = {}) {
  return RunText(
      fmt::format(
          "program(a: input float32[8], b: output float32[8], w: workspace float32[8]) {{ stage s "
          "kernel k grid [2, 1, 1] block [4, 1, 1] {{ blockIdx.x x in 0..2 {{ {} }} }} }}",
          body),
      options);
}

void ExpectFails(const Outcome& outcome, std::string_view message) {
  EXPECT_THAT(outcome.status,
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr(std::string(message))));
}

TEST(InterpreterTest, MatrixProductByHandAndTiledInParallel) {
  constexpr std::string_view kHead =
      "program(a: input float32[6, 5], b: input float32[5, 8], c: output float32[6, 8]) { stage c "
      "kernel main {";
  const Outcome plain =
      RunText(fmt::format("{} for i in 0..6 {{ for j in 0..8 {{ c[i, j] = 0 @ c for k in 0..5 {{ "
                          "c[i, j] = c[i, j] + a[i, k]*b[k, j] "
                          "@ c }} }} }} }} }}",
                          kHead));
  ASSERT_OK(plain.status);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 8; ++j) {
      double sum = 0;
      for (int k = 0; k < 5; ++k) {
        sum += plain.arrays[0].GetDouble(i * 5 + k) * plain.arrays[1].GetDouble(k * 8 + j);
      }
      EXPECT_EQ(plain.arrays[2].GetDouble(i * 8 + j), sum);
    }
  }
  const Outcome tiled =
      RunText(fmt::format("{} parallel ij in 0..12 {{ alloc t: local float32[4] vectorize z in "
                          "0..4 {{ t[z] = 0 @ c }} for k in 0..5 {{ "
                          "vectorize j in 0..4 {{ t[j] = t[j] + a[ij // 2, k]*b[k, ij % 2 * 4 + j] "
                          "@ c }} }} unroll o in 0..4 {{ "
                          "c[ij // 2, ij % 2 * 4 + o] = t[o] @ c }} }} }} }}",
                          kHead));
  ASSERT_OK(tiled.status);
  EXPECT_EQ(tiled.arrays[2], plain.arrays[2]);
}

TEST(InterpreterTest, GuardsAreLazyAndIndicesComeFromMemory) {
  const Outcome outcome = RunText(
      "program(x: input int32[4] below 8, a: input float32[8], b: output float32[4]) { stage s "
      "kernel k { for i in "
      "0..4 { b[i] = if(i > 0, a[x[i - 1]], -1) @ s } } }");
  ASSERT_OK(outcome.status);
  EXPECT_EQ(outcome.arrays[2].GetDouble(0), -1);
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(outcome.arrays[2].GetDouble(i),
              outcome.arrays[1].GetDouble(outcome.arrays[0].Get(i - 1).i));
  }
}

TEST(InterpreterTest, Float16IsRoundedAtStores) {
  const Outcome outcome = RunText(
      "program(b: output float16[2]) { stage s kernel k { b[0] = 2048 + 1 + 1 @ s b[1] = 2048 @ s "
      "for i in 0..2 { "
      "b[1] = b[1] + 1 @ s } } }");
  ASSERT_OK(outcome.status);
  EXPECT_EQ(outcome.arrays[0].GetDouble(0), 2050);
  EXPECT_EQ(outcome.arrays[0].GetDouble(1), 2048);
}

TEST(InterpreterTest, AccessesStayInside) {
  ExpectFails(RunBody("for i in 0..8 { for j in 0..2 { b[i] = a[i + j] @ s } }"),
              "kernel 'k': load of a[8] is outside its shape [8]; stage s; at i=7, j=1");
  ExpectFails(RunBody("for i in 0..8 { b[i - 1] = a[i] @ s }"),
              "store of b[-1] is outside its shape [8]; stage s; at i=0");
  ExpectFails(RunBody("for i in 0..8 { if a[i + 1] > 0.0 { b[i] = 1 @ s } }"),
              "load of a[8] is outside");
  ExpectFails(RunBody("for i in 0..8 { b[i] = a[7 // i] @ s }"),
              "7 // 0 has no value; stage s; at i=0");
}

TEST(InterpreterTest, NothingIsReadBeforeItIsWritten) {
  ExpectFails(RunBody("for i in 0..8 { b[i] = w[i] @ s }"),
              "load of w[0], which has not been written; stage s; at i=0");
  ExpectFails(RunBody("for i in 0..8 { b[i] = b[i] + 1 @ s }"),
              "load of b[0], which has not been written");
  ExpectFails(RunBody("for i in 0..8 { alloc t: local float32[1] if i < 3 { t[0] = a[i] @ s } b[i] "
                      "= t[0] @ s }"),
              "load of t[0], which has not been written; stage s; at i=3");
  EXPECT_OK(RunBody("for i in 0..8 { w[i] = a[i] @ s } for j in 0..8 { b[j] = w[j] @ s }").status);
}

TEST(InterpreterTest, OutputsAreWritten) {
  const std::string_view body = "for i in 0..7 { b[i] = 1 @ s }";
  ExpectFails(RunBody(body), "b[7] of shape [8] is never written");
  EXPECT_OK(RunBody(body, {.check_outputs_written = false}).status);
}

TEST(InterpreterTest, ParallelIterationsDoNotMeet) {
  ExpectFails(
      RunBody("parallel i in 0..8 { b[i // 2] = a[i] @ s }"),
      "store of b[0] by parallel iteration 1 races with parallel iteration 0; stage s; at i=1");
  ExpectFails(
      RunBody(
          "for j in 0..8 { w[j] = 1 @ s } parallel i in 0..8 { w[i] = 2 @ s b[i] = w[7 - i] @ s }"),
      "store of w[4] by parallel iteration 4 races with parallel iteration 3");
  ExpectFails(RunBody("for j in 0..8 { w[j] = 1 @ s } parallel i in 0..8 { b[i] = w[(i + 1) % 8] @ "
                      "s w[i] = 2 @ s }"),
              "store of w[1] by parallel iteration 1 races with parallel iteration 0");
  // All iterations share one local buffer.
  ExpectFails(
      RunBody("alloc t: local float32[1] parallel i in 0..8 { t[0] = a[i] @ s b[i] = t[0] @ s }"),
      "store of t[0] by parallel iteration 1 races");
  EXPECT_OK(
      RunBody("parallel i in 0..8 { alloc t: local float32[1] t[0] = a[i] @ s b[i] = t[0] @ s }")
          .status);
  EXPECT_OK(
      RunBody("parallel i in 0..8 { w[i] = a[i] @ s } parallel j in 0..8 { b[j] = w[7 - j] @ s }")
          .status);
  EXPECT_OK(RunBody("parallel i in 0..8 { b[i // 2] = a[i] @ s }",
                    {.check_races = false, .check_outputs_written = false})
                .status);
}

TEST(InterpreterTest, BlocksAndThreads) {
  const Outcome outcome = RunGpuBody(
      "alloc t: shared float32[4] threadIdx.x y in 0..4 { t[y] = a[x*4 + y] @ s } barrier "
      "threadIdx.x z in 0..4 { "
      "alloc l: local float32[1] l[0] = t[3 - z] @ s b[x*4 + z] = l[0] + t[0] @ s }");
  ASSERT_OK(outcome.status);
  for (int i = 0; i < 8; ++i) {
    const NDArray& a = outcome.arrays[0];
    EXPECT_EQ(outcome.arrays[1].GetDouble(i),
              a.GetDouble(i / 4 * 4 + 3 - i % 4) + a.GetDouble(i / 4 * 4));
  }
}

TEST(InterpreterTest, LocalsAreOneForEachThread) {
  const Outcome outcome = RunGpuBody(
      "threadIdx.x y in 0..4 { alloc l: local float32[1] l[0] = float32(y) @ s for k in 0..3 { "
      "l[0] = l[0] + 1 @ s } "
      "b[x*4 + y] = l[0] @ s }");
  ASSERT_OK(outcome.status);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(outcome.arrays[1].GetDouble(i), i % 4 + 3);
}

TEST(InterpreterTest, AMissingBarrierIsARace) {
  ExpectFails(
      RunGpuBody(
          "alloc t: shared float32[4] threadIdx.x y in 0..4 { t[y] = a[x*4 + y] @ s b[x*4 + y] = "
          "t[3 - y] @ s }"),
      "load of t[3] by thread 0 of block 0 races with thread 3 of block 0, no barrier between "
      "them; stage "
      "s; at x=0, y=0");
  // The first barrier is there, but the one before the next iteration is missing.
  ExpectFails(RunGpuBody("alloc t: shared float32[4] for k in 0..2 { threadIdx.x y in 0..4 { t[y] "
                         "= a[x*4 + y] @ s "
                         "barrier b[x*4 + y] = t[3 - y] @ s } }"),
              "store of t[0] by thread 0 of block 0 races with thread 3");
  EXPECT_OK(RunGpuBody("alloc t: shared float32[4] for k in 0..2 { threadIdx.x y in 0..4 { t[y] = "
                       "a[x*4 + y] @ s "
                       "barrier b[x*4 + y] = t[3 - y] @ s barrier } }")
                .status);
}

TEST(InterpreterTest, BlocksDoNotMeet) {
  // Barriers do not order blocks.
  ExpectFails(RunGpuBody("threadIdx.x y in 0..4 { w[y] = 1 @ s barrier b[x*4 + y] = 1 @ s }"),
              "store of w[0] by thread 0 of block 1 races with thread 0 of block 0");
  ExpectFails(
      RunGpuBody("threadIdx.x y in 0..4 { w[x*4 + y] = 1 @ s barrier b[x*4 + y] = w[y] @ s }"),
      "load of w[0] by thread 0 of block 1 races with thread 0 of block 0");
}

TEST(InterpreterTest, EqualWritesMayBeAllowed) {
  const std::string_view same =
      "alloc t: shared float32[1] t[0] = 1 @ s barrier threadIdx.x y in 0..4 { b[x*4 + y] = t[0] @ "
      "s }";
  const std::string_view other =
      "alloc t: shared float32[1] threadIdx.x y in 0..4 { t[0] = float32(y) @ s b[x*4 + y] = 0 @ s "
      "}";
  ExpectFails(RunGpuBody(same), "store of t[0] by thread 1 of block 0 races with thread 0");
  EXPECT_OK(RunGpuBody(same, {.allow_equal_writes = true}).status);
  ExpectFails(RunGpuBody(other, {.allow_equal_writes = true}),
              "store of t[0] by thread 1 of block 0 races");
}

TEST(InterpreterTest, ABarrierIsForAllThreads) {
  ExpectFails(RunGpuBody("threadIdx.x y in 0..4 { if y < 3 { barrier } b[x*4 + y] = 1 @ s }"),
              "3 of 4 threads of the block reach a barrier; at x=0, y=0");
}

TEST(InterpreterTest, EndlessProgramsAreRefused) {
  EXPECT_THAT(RunBody("for i in 0..1000000000 { for j in 0..1000000000 { b[0] = 1 @ s } }",
                      {.max_steps = 1000})
                  .status,
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("takes more than 1000 steps")));
  // A loop that stores nothing is stopped too.
  EXPECT_THAT(
      RunBody("for i in 0..1000000000000 { if i < 0 { b[0] = 1 @ s } }", {.max_steps = 1'000'000})
          .status,
      StatusIs(StatusCode::kResourceExhausted, HasSubstr("more than 1000000 steps")));
  EXPECT_THAT(RunBody("for i in 0..1000000 { alloc t: local float32[1000000] t[0] = 1 @ s }",
                      {.max_steps = 10'000'000})
                  .status,
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("more than 10000000 steps")));
  EXPECT_THAT(RunBody("alloc t: local float32[1000000000000] t[0] = 1 @ s").status,
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("more than 4294967296 bytes")));
}

TEST(InterpreterTest, ArgumentsMustFit) {
  ASSERT_OK_AND_ASSIGN(
      const Program program,
      ParseProgram(
          "program(b: output float32[4]) { stage s kernel k { for i in 0..4 { b[i] = 1 @ s } } }"));
  NDArray right(kFloat32, {4}), wrong(kFloat32, {5});
  NDArray* const two[] = {&right, &right};
  NDArray* const bad[] = {&wrong};
  EXPECT_THAT(Interpret(program, {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("argument 0 ('b') is missing")));
  EXPECT_THAT(Interpret(program, two), StatusIs(StatusCode::kInvalidArgument,
                                                HasSubstr("2 arguments, the program takes 1")));
  EXPECT_THAT(Interpret(program, bad), StatusIs(StatusCode::kInvalidArgument,
                                                HasSubstr("is float32[5], expected float32[4]")));
}

// Runs two clusters of 2 blocks of 2 threads. The buffer `c` belongs to a cluster and has 2
// elements in each block.
Outcome RunClusterBody(std::string_view body) {
  return RunText(fmt::format(
      "program(a: input float32[8], b: output float32[8]) {{ stage s kernel k grid [2, 1, 1] block "
      "[2, 1, 1] cluster 2 {{ blockIdx.x x in 0..2 {{ alloc c: cluster float32[2, 2] {} }} }} }}",
      body));
}

TEST(InterpreterTest, BlocksOfAClusterReadEachOther) {
  constexpr std::string_view kFill =
      "cluster p in 0..2 { threadIdx.x t in 0..2 { c[p, t] = a[x*4 + p*2 + t] @ s } }";
  constexpr std::string_view kTurn =
      "cluster q in 0..2 { threadIdx.x u in 0..2 { b[x*4 + q*2 + u] = c[1 - q, 1 - u] @ s } }";
  const Outcome outcome =
      RunClusterBody(fmt::format("{} cluster_barrier {} cluster_barrier", kFill, kTurn));
  ASSERT_OK(outcome.status);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(outcome.arrays[1].GetDouble(i), outcome.arrays[0].GetDouble(i / 4 * 4 + 3 - i % 4));
  ExpectFails(RunClusterBody(fmt::format("{} barrier {} cluster_barrier", kFill, kTurn)),
              "load of c[1, 1] by thread 0 of block 0 races with thread 1 of block 1");
  ExpectFails(RunClusterBody(fmt::format("{} cluster_barrier {}", kFill, kTurn)),
              "blocks read c in other blocks of their cluster, which may have ended");
  // A block overwrites elements that another block may still read.
  constexpr std::string_view kAgain =
      "cluster r in 0..2 { threadIdx.x v in 0..2 { c[r, v] = 0 @ s } }";
  ExpectFails(RunClusterBody(fmt::format("{} cluster_barrier {} barrier {} cluster_barrier", kFill,
                                         kTurn, kAgain)),
              "store of c[0, 0] by thread 0 of block 0 races with thread 1 of block 1");
  ExpectFails(RunClusterBody("cluster p in 0..2 { if p < 1 { cluster_barrier } }"),
              "2 of 4 threads of the cluster reach a barrier");
}

TEST(InterpreterTest, EachBlockOfAClusterHasItsSharedMemory) {
  const Outcome outcome = RunClusterBody(
      "alloc m: shared float32[2] cluster p in 0..2 { threadIdx.x t in 0..2 { m[t] = a[x*4 + p*2 + "
      "t] @ s } } barrier cluster q in 0..2 { threadIdx.x u in 0..2 { b[x*4 + q*2 + u] = m[u] @ s "
      "} "
      "}");
  ASSERT_OK(outcome.status);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(outcome.arrays[1].GetDouble(i), outcome.arrays[0].GetDouble(i));
}

// Runs 64 threads; `c` is shared.
Outcome RunWarpsBody(std::string_view body) {
  return RunText(fmt::format(
      "program(a: input float32[64], b: output float32[64]) {{ stage s kernel k grid [1, 1, 1] "
      "block [64, 1, 1] {{ alloc c: shared float32[64] threadIdx.x t in 0..64 {{ {} }} }} }}",
      body));
}

TEST(InterpreterTest, WarpsWaitForThemselves) {
  constexpr std::string_view kFill = "c[t] = a[t] @ s";
  constexpr std::string_view kTurn = "b[t] = c[t // 32 * 32 + 31 - t % 32] @ s";
  constexpr std::string_view kOther = "b[t] = c[(t + 32) % 64] @ s";
  const Outcome outcome = RunWarpsBody(fmt::format("{} warp_barrier {}", kFill, kTurn));
  ASSERT_OK(outcome.status);
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(outcome.arrays[1].GetDouble(i),
              outcome.arrays[0].GetDouble(i / 32 * 32 + 31 - i % 32));
  ExpectFails(RunWarpsBody(fmt::format("{} {}", kFill, kTurn)),
              "load of c[31] by thread 0 of block 0 races with thread 31 of block 0");
  ExpectFails(RunWarpsBody(fmt::format("{} warp_barrier {}", kFill, kOther)),
              "load of c[32] by thread 0 of block 0 races with thread 32 of block 0");
  EXPECT_OK(RunWarpsBody(fmt::format("{} barrier {}", kFill, kOther)).status);
  // Each case writes an element after it was read by a thread of another warp, and then by two
  // threads of the writer's own warp.
  constexpr std::string_view kFirst = "b[t] = c[0] @ s";
  ExpectFails(RunWarpsBody(fmt::format("{} barrier {} warp_barrier if t < 1 {{ c[0] = 0 @ s }}",
                                       kFill, kFirst)),
              "store of c[0] by thread 0 of block 0 races with thread 63 of block 0");
  ExpectFails(RunWarpsBody(fmt::format("{} barrier {} warp_barrier if t > 62 {{ c[0] = 0 @ s }}",
                                       kFill, kFirst)),
              "store of c[0] by thread 63 of block 0 races with thread 0 of block 0");
  EXPECT_OK(
      RunWarpsBody(fmt::format("{} barrier {} barrier if t > 62 {{ c[0] = 0 @ s }}", kFill, kFirst))
          .status);
  EXPECT_OK(RunWarpsBody(fmt::format("{} barrier if t > 31 {{ b[t] = c[0] @ s }} warp_barrier if t "
                                     "> 62 {{ c[0] = 0 @ s }} if t < 32 {{ b[t] = a[t] @ s }}",
                                     kFill))
                .status);
  ExpectFails(RunWarpsBody("if t < 32 { warp_barrier }"),
              "32 of 64 threads of the block reach a barrier");
}

}  // namespace
}  // namespace kiln::ir
