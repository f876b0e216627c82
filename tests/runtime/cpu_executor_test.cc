// Compares compiled networks on this CPU with the definition of their computations.
#include <pthread.h>

#include <cfenv>
#include <thread>

#include "base/status_testing.h"
#include "runtime/executor.h"
#include "tests/runtime/made_network.h"

namespace kiln {
namespace {

using ir::NDArray;
using runtime::Executor;
using runtime::ExecutorOptions;
using testing::HasSubstr;

constexpr ir::Tolerance kTolerance{.relative = 1e-5, .absolute = 1e-5};
constexpr std::string_view kDouble = "input A: float32[6]\nB[i: 6] = A[i] * 2.0\n";

Status Check(MadeNetwork& made, Executor& executor, uint64_t seed) {
  const std::vector<NDArray> inputs = made.RandomInputs(seed);
  const std::vector<NDArray> wanted = made.Reference(inputs);
  KILN_ASSIGN_OR_RETURN(const auto outputs, RunNetwork(executor, inputs, wanted));
  for (size_t i = 0; i < wanted.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        ir::Compare(outputs[i], wanted[i], kTolerance, executor.outputs()[i].name));
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Executor>> Load(MadeNetwork& made, ExecutorOptions options = {}) {
  KILN_ASSIGN_OR_RETURN(auto file, made.File());
  if (options.threads == 0) options.threads = 2;
  options.pin = false;
  return Executor::Load(std::move(file), options);
}

TEST(CpuExecutorTest, RunsAPerceptron) {
  MadeNetwork made = MakeSmallPerceptron();
  for (int threads : {1, 2, 5}) {
    ASSERT_OK_AND_ASSIGN(auto executor, Load(made, {.threads = threads}));
    for (uint64_t seed = 0; seed < 4; ++seed) EXPECT_OK(Check(made, *executor, seed));
    EXPECT_EQ(executor->memory_use().constants, 16 * 8 * 4);
    EXPECT_GT(executor->memory_use().arena, 0);
  }
}

TEST(CpuExecutorTest, ChainsReuseMemory) {
  MadeNetwork made;
  int32_t last = made.Input("x", {6});
  for (int i = 0; i < 6; ++i) last = made.Call(kDouble, {last})[0];
  made.Output("y", last);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  EXPECT_OK(Check(made, *executor, 1));
  EXPECT_EQ(executor->memory_use().arena, 64 + 24);
}

TEST(CpuExecutorTest, OutputsOfEveryPlace) {
  MadeNetwork made;
  const int32_t x = made.Input("x", {6});
  NDArray weights(ir::kFloat32, {6});
  weights.FillRandom(2);
  const int32_t w = made.Constant(weights);
  const int32_t twice = made.Call(kDouble, {x})[0];
  const int32_t view = made.View(twice, {2, 3});
  // The output is in the arena.
  made.Output("view", view);
  made.Output("again", view);
  made.Output("w", w);
  made.Output("x", x);
  const int32_t last = made.Call(kDouble, {w})[0];
  made.Output("last", last);
  made.Output("last_again", last);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  EXPECT_OK(Check(made, *executor, 1));
}

TEST(CpuExecutorTest, ANetworkMayHaveNoKernels) {
  MadeNetwork made;
  made.Output("y", made.Input("x", {3, 2}, ir::kInt64));
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  EXPECT_OK(Check(made, *executor, 1));
  EXPECT_OK(executor->Bench());
}

TEST(CpuExecutorTest, UnalignedMemoryIsCopied) {
  MadeNetwork made;
  made.Output("y", made.Call(kDouble, {made.Input("x", {6})})[0]);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  alignas(64) float memory[64] = {};
  for (int shift = 0; shift < 8; ++shift) {
    float *x = memory + shift, *y = memory + 32 + shift;
    for (int i = 0; i < 6; ++i) x[i] = static_cast<float>(i + shift);
    const void* inputs[] = {x};
    void* outputs[] = {y};
    ASSERT_OK(executor->Run(inputs, outputs));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], 2 * x[i]);
    EXPECT_EQ(executor->memory_use().staging, shift == 0 ? 0 : 48);
  }
}

// The sum of many numbers, each rounded, differs with the direction of rounding.
constexpr std::string_view kSum = "input A: float32[{0}]\nB[i: 4] = sum(k: {0}) A[k] * 0.1\n";

StatusOr<float> SumOf(Executor& executor, const NDArray& x) {
  alignas(64) float y[4] = {};
  const void* inputs[] = {x.bytes().data()};
  void* outputs[] = {y};
  KILN_RETURN_IF_ERROR(executor.Run(inputs, outputs));
  return y[0];
}

// Hardly any work, little work, and much work, which runs on another thread.
TEST(CpuExecutorTest, TheCallersFloatingPointChangesNothing) {
  for (int64_t count : {1000, 20'000, 400'000}) {
    SCOPED_TRACE(count);
    MadeNetwork made;
    made.Output("y", made.Call(fmt::format(kSum, count), {made.Input("x", {count})})[0]);
    made.network().kernels[0].flops = static_cast<double>(8 * count);
    ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
    NDArray x(ir::kFloat32, {count});
    x.FillRandom(3);
    ASSERT_OK_AND_ASSIGN(const float nearest, SumOf(*executor, x));
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    const StatusOr<float> upward = SumOf(*executor, x);
    // Threads begin with the rounding of the thread that starts them.
    auto other = Load(made);
    const StatusOr<float> loaded_upward =
        other.ok() ? SumOf(**other, x) : StatusOr<float>(other.status());
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
    ASSERT_OK(upward.status());
    ASSERT_OK(loaded_upward.status());
    EXPECT_EQ(*upward, nearest);
    EXPECT_EQ(*loaded_upward, nearest);
  }
}

// A thread with hardly any stack of its own can run every program.
TEST(CpuExecutorTest, ProgramsHaveTheirOwnStack) {
  MadeNetwork made;
  made.Output("y", made.Call(kDouble, {made.Input("x", {6})})[0]);
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  struct Caller {
    Executor* executor;
    Status status;
  } caller{executor.get(), OkStatus()};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* raw) -> void* {
                  auto& caller = *static_cast<Caller*>(raw);
                  alignas(64) float x[16] = {1, 2, 3}, y[16] = {};
                  const void* inputs[] = {x};
                  void* outputs[] = {y};
                  caller.status = caller.executor->Run(inputs, outputs);
                  if (y[2] != 6) caller.status = Internal("found {}", y[2]);
                  return nullptr;
                },
                &caller),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_OK(caller.status);
}

TEST(CpuExecutorTest, ThreadsTakeTurns) {
  MadeNetwork made = MakeSmallPerceptron();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  std::vector<std::thread> threads;
  std::vector<Status> results(4);
  for (size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10 && results[t].ok(); ++i) results[t] = Check(made, *executor, t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) EXPECT_OK(result);
}

TEST(CpuExecutorTest, SeveralRunBesideEachOther) {
  MadeNetwork made = MakeSmallPerceptron();
  ASSERT_OK_AND_ASSIGN(auto file, made.File());
  const ExecutorOptions options{.threads = 2, .pin = false};
  ASSERT_OK_AND_ASSIGN(auto one, Executor::Load(file, options));
  ASSERT_OK_AND_ASSIGN(auto other, Executor::Load(file, options));
  EXPECT_OK(Check(made, *one, 1));
  EXPECT_OK(Check(made, *other, 2));
  one.reset();
  EXPECT_OK(Check(made, *other, 3));
}

TEST(CpuExecutorTest, TimesRunsAndKernels) {
  MadeNetwork made = MakeSmallPerceptron();
  ASSERT_OK_AND_ASSIGN(auto executor, Load(made));
  ASSERT_OK_AND_ASSIGN(const auto seconds, executor->Bench({.repeat = 4, .min_repeat_s = 1e-3}));
  ASSERT_EQ(seconds.size(), 4u);
  for (double s : seconds) EXPECT_TRUE(s > 0 && s < 1e-3) << s;
  const std::vector<NDArray> inputs = made.RandomInputs(1);
  const void* pointers[] = {inputs[0].bytes().data()};
  ASSERT_OK_AND_ASSIGN(const auto kernels, executor->Profile(50, pointers));
  EXPECT_EQ(kernels.size(), 4u);
  EXPECT_THAT(kernels, testing::Each(testing::Gt(0)));
  ASSERT_OK_AND_ASSIGN(const auto in_network, executor->ProfileInNetwork(5, pointers));
  EXPECT_EQ(in_network.size(), 4u);
  EXPECT_THAT(in_network, testing::Each(testing::Gt(0)));
  EXPECT_THAT(executor->ProfileInNetwork(0, pointers),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("number is 0")));
  EXPECT_OK(Check(made, *executor, 1));
}

TEST(CpuExecutorTest, RefusesOtherCpus) {
  MadeNetwork made = MakeSmallPerceptron();
  made.network().target.features.push_back("flux-capacitor");
  EXPECT_THAT(Load(made), StatusIs(StatusCode::kFailedPrecondition,
                                   HasSubstr("has no flux-capacitor: compile it again")));
  made.network().target.arch = "vax";
  EXPECT_THAT(Load(made), StatusIs(StatusCode::kFailedPrecondition,
                                   HasSubstr("was compiled for a CPU of vax (llvm -mcpu=native)")));
  made.network().target.kind = "null";
  EXPECT_THAT(Load(made),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("for the null target, and networks run on cpu or cuda only")));
}

TEST(CpuExecutorTest, RefusesBinariesWithoutTheEntryPoint) {
  MadeNetwork made;
  made.Output("y", made.Call(kDouble, {made.Input("x", {6})})[0]);
  made.network().kernels[0].launches[0].symbol = "main";
  EXPECT_THAT(Load(made).status().ToString(),
              HasSubstr("kernel 'kernel0': the shared object does not export main"));
}

TEST(CpuExecutorTest, RefusesLaunchesThatNoCpuHas) {
  MadeNetwork made;
  made.Output("y", made.Call(kDouble, {made.Input("x", {6})})[0]);
  auto& launches = made.network().kernels[0].launches;
  launches.push_back(launches[0]);
  EXPECT_THAT(Load(made).status().ToString(),
              HasSubstr("kernel 'kernel0': it has 2 launches, expected the one of a CPU kernel"));
  launches.pop_back();
  std::swap(launches[0].args[0], launches[0].args[1]);
  EXPECT_THAT(Load(made).status().ToString(),
              HasSubstr("its launch takes other arguments than all of the kernel's, in order"));
}

}  // namespace
}  // namespace kiln
