// Measures how many states per second one core replays and lowers. Run: bazel run
// //compiler/lower:lower_bench
#include <benchmark/benchmark.h>

#include "compiler/dag/builder.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"

namespace kiln {
namespace {

// conv2d NHWC + bias + relu on a padded input. The stages are data, pad, weight, conv, bias, add,
// relu.
dag::DagPtr ConvBiasRelu() {
  dag::DagBuilder b;
  const int64_t h = 56, ci = 64, co = 64;
  auto data = b.Placeholder("data", ir::kFloat32, {1, h, h, ci});
  auto weight = b.Placeholder("weight", ir::kFloat32, {3, 3, ci, co});
  auto bias = b.Placeholder("bias", ir::kFloat32, {1, 1, 1, co});
  auto pad = b.Compute("pad_temp", {{"i0", 1}, {"i1", h + 2}, {"i2", h + 2}, {"i3", ci}},
                       [&](dag::Vars v) {
                         return dag::If(v[1] >= 1 && v[1] < h + 1 && v[2] >= 1 && v[2] < h + 1,
                                        data(v[0], v[1] - 1, v[2] - 1, v[3]), 0.0);
                       });
  auto conv =
      b.Reduce("conv2d_nhwc", {{"nn", 1}, {"yy", h}, {"xx", h}, {"ff", co}},
               {{"ry", 3}, {"rx", 3}, {"rc", ci}}, dag::Combiner::kSum, [&](dag::Vars v) {
                 return pad(v[0], v[1] + v[4], v[2] + v[5], v[6]) * weight(v[4], v[5], v[6], v[3]);
               });
  auto add =
      b.Compute("T_add", {{"ax0", 1}, {"ax1", h}, {"ax2", h}, {"ax3", co}},
                [&](dag::Vars v) { return conv(v[0], v[1], v[2], v[3]) + bias(v[0], 0, 0, v[3]); });
  b.Compute("T_relu", {{"ax0", 1}, {"ax1", h}, {"ax2", h}, {"ax3", co}},
            [&](dag::Vars v) { return dag::Max(add(v[0], v[1], v[2], v[3]), 0.0); });
  StatusOr<dag::DagPtr> dag = b.Build();
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  return *dag;
}

// SSRSRS with the convolution computed at the second tile of the relu.
constexpr std::string_view kSteps = R"([
  ["CI", 5], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 56, [2, 2, 7], 1], ["SP", 3, 8, 56, [4, 1, 7], 1],
  ["SP", 3, 12, 64, [1, 2, 32], 1], ["SP", 3, 16, 3, [1], 1], ["SP", 3, 18, 3, [3], 1], ["SP", 3, 20, 64, [16], 1],
  ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]],
  ["FSP", 6, 0, 1, 2], ["FSP", 6, 3, 2, 2], ["FSP", 6, 6, 3, 2], ["FSP", 6, 9, 4, 2],
  ["RE", 6, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]], ["CA", 3, 6, 7], ["CI", 1],
  ["FU", 6, [0, 1, 2, 3, 4, 5]], ["AN", 6, 0, 3], ["PR", 3, 0, "auto_unroll_max_step$64"], ["AN", 3, 21, 2]])";

struct Fixture {
  dag::DagPtr dag = ConvBiasRelu();
  std::vector<schedule::StepPtr> steps;
  Fixture() {
    auto parsed = schedule::ParseSteps(kSteps);
    KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
    steps = *parsed;
  }
};

void BM_Replay(benchmark::State& state) {
  const Fixture fixture;
  for (auto _ : state) {
    auto replayed = schedule::Replay(fixture.dag, fixture.steps);
    KILN_CHECK(replayed.ok(), "{}", Message(replayed.status()));
    benchmark::DoNotOptimize(replayed);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Replay);

void BM_ReplayAndLower(benchmark::State& state) {
  const Fixture fixture;
  for (auto _ : state) {
    auto replayed = schedule::Replay(fixture.dag, fixture.steps);
    KILN_CHECK(replayed.ok(), "{}", Message(replayed.status()));
    auto program = lower::Lower(*replayed, {});
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    benchmark::DoNotOptimize(program);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ReplayAndLower);

}  // namespace
}  // namespace kiln

BENCHMARK_MAIN();
