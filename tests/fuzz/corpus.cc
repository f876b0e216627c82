#include "tests/fuzz/corpus.h"

#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/schedule/random_schedule_testing.h"
#include "store/measure_log.h"

namespace kiln::fuzz {
namespace {

constexpr int kSchedulesOfEach = 3;

// Computations for which the library has no operator.
constexpr const char* kTexts[] = {
    "input table: float32[50, 4]\ninput ids: int32[6]\n"
    "out[i: 6, j: 4] = table[max(min(ids[i], 49), 0), j]\n"
    "M[i: 6] = argmax(k: 4) (int32(k), out[i, k])\nlast[i: 6] = M.index[i] + 1\n",
    "input A: float32[8, 64]\nm[i: 8] = max(k: 64) A[i, k]\n"
    "e[i: 8, j: 64] = exp(A[i, j] - m[i])\ns[i: 8] = sum(k: 64) e[i, k]\n"
    "@flop(100)\nR[i: 8, j: 64] = e[i, j] / s[i]\n",
    "let N = 16\ninput A: float32[N, 24]\ninput B: float32[24, 8]\ninput bias: float32[8]\n"
    "C[i: N, j: 8] = sum(k: 24) A[i, k] * B[k, j]\n"
    "D[i: N, j: 8] = max(C[i, j] + bias[j], 0.0)\n",
    "input X: float32[8]\nX1[i: 8] = X[i] * X[i]\nX2[i: 8] = X1[i] * X1[i]\n"
    "X3[i: 8] = X2[i] * X2[i]\nX4[i: 8] = X3[i] * X3[i]\n",
    "input A: int64[7]\nB[i: 7] = (A[i] // 3) % 5 + select(i < 3, 1, 2)\nC[] = sum(i: 7) B[i]\n"};

Seed MakeSeed(const std::string& op, const dag::DagPtr& dag, uint64_t number) {
  Seed seed{.op = op, .text = dag::PrintDag(*dag), .steps = {}, .line = {}};
  const auto state = schedule::RandomSchedule(dag, number, 1 + static_cast<int>(number % 12));
  seed.steps = schedule::PrintSteps(state.steps());
  store::MeasureLogLine line;
  line.workload_key = dag::WorkloadKey(*dag);
  line.target = "llvm -keys=cpu -mcpu=core-avx2";
  line.hardware = HardwareRow{8, 64, 64, 0, 0, 0, 0, 0};
  line.target_host = "";
  line.layout_rewrite_option = 1;
  line.task_input_names.emplace();
  line.steps_json = seed.steps;
  line.costs_s = {1e-3 / static_cast<double>(number + 1), 2e-3};
  line.all_cost_s = 0.5;
  line.timestamp_s = 1604912345;
  line.version = "v0.6";
  seed.line = store::PrintMeasureLogLine(line) + "\n";
  return seed;
}

}  // namespace

Corpus::Corpus() {
  for (const dag::OpCase& one : dag::SmallOpCases()) {
    for (int i = 0; i < kSchedulesOfEach; ++i) {
      seeds_.push_back(
          MakeSeed(fmt::format("{} {}", one.op, one.args), one.Build(), seeds_.size()));
    }
  }
  for (const char* text : kTexts) {
    const auto parsed = dag::ParseDagText(text);
    KILN_CHECK(parsed.ok(), "{}: {}", text, Message(parsed.status()));
    seeds_.push_back(MakeSeed("matmul 8,8,8", parsed->dag, seeds_.size()));
  }
}

}  // namespace kiln::fuzz
