// Measures replaying, copying, parsing and hashing of schedules. The search makes tens of thousands
// of states a round.
#include <benchmark/benchmark.h>

#include <fstream>

#include "compiler/schedule/dags_testing.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"

namespace kiln::schedule {
namespace {

// A recorded GPU schedule of a 3x3 convolution with bias and relu: 37 steps, 2 cache reads.
constexpr std::string_view kGpuSteps =
    R"([["CI", 5], ["SP", 3, 0, 1, [1, 1, 1, 1], 1], ["SP", 3, 5, 112, [1, 4, 2, 1], 1], ["SP", 3, 10, 112, [7, 1, 1, 1], 1], )"
    R"(["SP", 3, 15, 64, [1, 8, 2, 4], 1], ["SP", 3, 20, 7, [1, 1], 1], ["SP", 3, 23, 7, [1, 1], 1], ["SP", 3, 26, 3, [3, 1], 1], )"
    R"(["RE", 3, [0, 5, 10, 15, 1, 6, 11, 16, 2, 7, 12, 17, 20, 23, 26, 21, 24, 27, 3, 8, 13, 18, 22, 25, 28, 4, 9, 14, 19]], )"
    R"(["FSP", 6, 0, 1, 3], ["FSP", 6, 4, 2, 3], ["FSP", 6, 8, 3, 3], ["FSP", 6, 12, 4, 3], )"
    R"(["RE", 6, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]], ["CA", 3, 6, 11], ["CHR", 2, "shared", [3]], )"
    R"(["CA", 3, 4, 14], ["CHR", 1, "shared", [4]], ["CA", 2, 5, 14], ["CI", 1], ["FU", 8, [0, 1, 2, 3]], ["AN", 8, 0, 5], )"
    R"(["FU", 8, [1, 2, 3, 4]], ["AN", 8, 1, 4], ["FU", 8, [2, 3, 4, 5]], ["AN", 8, 2, 6], ["FU", 4, [0, 1, 2, 3]], )"
    R"(["SP", 4, 0, 24, [1], 1], ["AN", 4, 1, 2], ["FFSP", 4, 0, [4, 3, 2, 1], 1, 1], ["AN", 4, 1, 6], ["FU", 2, [0, 1, 2, 3]], )"
    R"(["SP", 2, 0, 9, [1], 1], ["AN", 2, 1, 2], ["FFSP", 2, 0, [4, 3, 2, 1], 1, 1], ["AN", 2, 1, 6], )"
    R"(["PR", 5, 0, "auto_unroll_max_step$1024"]])";

// SSRSRS tiles, fused into the relu, parallel and vectorized.
constexpr std::string_view kCpuSteps =
    R"([["CI", 5], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 112, [2, 4, 1], 1], ["SP", 3, 8, 112, [2, 7, 1], 1], )"
    R"(["SP", 3, 12, 64, [2, 1, 16], 1], ["SP", 3, 16, 7, [1], 1], ["SP", 3, 18, 7, [7], 1], ["SP", 3, 20, 3, [3], 1], )"
    R"(["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]], )"
    R"(["FSP", 6, 0, 1, 1], ["FSP", 6, 2, 2, 1], ["FSP", 6, 4, 3, 1], ["FSP", 6, 6, 4, 1], ["RE", 6, [0, 2, 4, 6, 1, 3, 5, 7]], )"
    R"(["CA", 3, 6, 3], ["CA", 1, 6, 2], ["FU", 6, [0, 1, 2]], ["AN", 6, 0, 3], ["AN", 6, 5, 2], ["AN", 3, 21, 2], )"
    R"(["PR", 3, 0, "auto_unroll_max_step$512"]])";

dag::DagPtr Convolution() { return Conv2d({224, 3, 64, 7, 2, 3}, true); }

std::vector<StepPtr> Steps(std::string_view text) {
  StatusOr<std::vector<StepPtr>> steps = ParseSteps(text);
  KILN_CHECK(steps.ok(), "{}", Message(steps.status()));
  return *std::move(steps);
}

void Replays(benchmark::State& bench, std::string_view text) {
  const dag::DagPtr dag = Convolution();
  const std::vector<StepPtr> steps = Steps(text);
  for (auto _ : bench) {
    StatusOr<State> state = Replay(dag, steps);
    KILN_CHECK(state.ok(), "{}", Message(state.status()));
    benchmark::DoNotOptimize(state);
  }
  bench.counters["steps"] = static_cast<double>(steps.size());
}
void BM_ReplayGpuConv2d(benchmark::State& bench) { Replays(bench, kGpuSteps); }
void BM_ReplayCpuConv2d(benchmark::State& bench) { Replays(bench, kCpuSteps); }
BENCHMARK(BM_ReplayGpuConv2d);
BENCHMARK(BM_ReplayCpuConv2d);

void BM_CopyState(benchmark::State& bench) {
  const State state = *Replay(Convolution(), Steps(kGpuSteps));
  for (auto _ : bench) {
    State copy = state;
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(BM_CopyState);

void BM_CopyAndChangeOneStage(benchmark::State& bench) {
  const State state = *Replay(Convolution(), Steps(kGpuSteps));
  const StepPtr step = Steps(R"([["FU", 5, [0, 1]]])")[0];
  for (auto _ : bench) {
    State copy = state;
    KILN_CHECK(copy.Apply(step).ok());
    benchmark::DoNotOptimize(copy);
  }
}
BENCHMARK(BM_CopyAndChangeOneStage);

void BM_ParseSteps(benchmark::State& bench) {
  for (auto _ : bench) benchmark::DoNotOptimize(ParseSteps(kGpuSteps));
}
BENCHMARK(BM_ParseSteps);

void BM_PrintSteps(benchmark::State& bench) {
  const std::vector<StepPtr> steps = Steps(kGpuSteps);
  for (auto _ : bench) benchmark::DoNotOptimize(PrintSteps(steps));
}
BENCHMARK(BM_PrintSteps);

void BM_HashSteps(benchmark::State& bench) {
  const std::vector<StepPtr> steps = Steps(kGpuSteps);
  for (auto _ : bench) benchmark::DoNotOptimize(HashSteps(steps));
}
BENCHMARK(BM_HashSteps);

void BM_NewState(benchmark::State& bench) {
  const dag::DagPtr dag = Convolution();
  for (auto _ : bench) benchmark::DoNotOptimize(State(dag));
}
BENCHMARK(BM_NewState);

}  // namespace
}  // namespace kiln::schedule
