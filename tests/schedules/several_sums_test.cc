// Tests reductions of several values, as mean and variance are from two sums: on a GPU they have
// the schedules that reductions of one value have.
//
// KILN_SEED (default 1) chooses the computations. A failure prints the computation, the seed and
// the steps.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "device/calibration.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/sketch.h"
#include "tests/schedules/best_sample.h"
#include "tests/schedules/check_llvm.h"
#include "tests/schedules/environment.h"

namespace kiln::search {
namespace {

using schedule::State;

// A tensor, and which of its axes are summed.
struct Shape {
  std::vector<int64_t> extents;
  std::vector<bool> summed;

  int64_t Product(bool of_summed) const {
    int64_t product = 1;
    for (size_t i = 0; i < extents.size(); ++i) product *= summed[i] == of_summed ? extents[i] : 1;
    return product;
  }
  // "a0: 3, a2: 5", or "a0, a2".
  std::string Axes(bool of_summed, bool with_extents) const {
    std::vector<std::string> axes;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (summed[i] != of_summed) continue;
      axes.push_back(with_extents ? fmt::format("a{}: {}", i, extents[i]) : fmt::format("a{}", i));
    }
    return fmt::format("{}", fmt::join(axes, ", "));
  }
  std::string Element() const {
    std::vector<std::string> axes;
    for (size_t i = 0; i < extents.size(); ++i) axes.push_back(fmt::format("a{}", i));
    return fmt::format("x[{}]", fmt::join(axes, ", "));
  }
};

// The last axis has a row of memory.
Shape RandomShape(std::span<const int64_t> extents, std::span<const int64_t> rows, int most_axes,
                  Rng& rng) {
  Shape shape;
  const int64_t axes = UniformIn(rng, 1, most_axes);
  for (int64_t i = 0; i < axes; ++i) {
    shape.extents.push_back(PickFrom(rng, i + 1 < axes ? extents : rows));
    shape.summed.push_back(Chance(rng, 0.5));
  }
  shape.summed[static_cast<size_t>(UniformInt(rng, axes))] = true;
  return shape;
}

// Each element is combined in so many sums, or in another reduction of two values.
enum class Kind { kOneSum, kTwoSums, kThreeSums, kTwoMaxima, kArgMax, kWritten };
constexpr std::array kSums = {Kind::kOneSum, Kind::kTwoSums, Kind::kThreeSums};

std::string SumsText(Kind kind, const std::string& x, const std::string& first_axis) {
  switch (kind) {
    case Kind::kOneSum:
      return fmt::format("sum(SUMMED) {}", x);
    case Kind::kTwoSums:
      return fmt::format("sum(SUMMED) ({0}, {0} * {0})", x);
    case Kind::kThreeSums:
      return fmt::format("sum(SUMMED) ({0}, {0} * {0}, {0} * 2.0 + 1.0)", x);
    case Kind::kTwoMaxima:
      return fmt::format("max(SUMMED) ({0}, 1.0 - {0})", x);
    case Kind::kArgMax:
      return fmt::format("argmax(SUMMED) ({}, {})", first_axis, x);
    case Kind::kWritten:
      return fmt::format("both(SUMMED) ({}, 1.0)", x);
  }
  return "";
}

// The text of a reduction of x by itself, or with a reader.
std::string TextOf(Kind kind, std::string_view type, const Shape& shape, int reader) {
  const std::string element = shape.Element(),
                    x = type == "float32" ? element : fmt::format("float32({})", element);
  const std::string summed = shape.Axes(true, true), kept = shape.Axes(false, true),
                    names = shape.Axes(false, false), all = shape.Axes(true, false);
  std::string sums = SumsText(kind, x, all.substr(0, all.find(',')));
  sums.replace(sums.find("SUMMED"), 6, summed);
  std::string text;
  // A combination that reads both values, in which the second one counts.
  if (kind == Kind::kWritten) {
    text +=
        "combine both(m: float32, @range(0, 64) n: float32; p, q) from (-inf, 0.0) =\n"
        "    (max(m, p), m > p ? n : (m < p ? q : n + q))\n";
  }
  text += fmt::format("input x: {}[{}]\ns[{}] = {}\n", type, fmt::join(shape.extents, ", "), kept,
                      sums);
  const std::string value = kind == Kind::kOneSum   ? "s"
                            : kind == Kind::kArgMax ? "s.value"
                                                    : "s.v1";
  const std::string read = fmt::format("{}[{}]", value, names);
  if (reader == 1) text += fmt::format("y[{}] = {}({} * 0.5)\n", kept, type, read);
  if (reader == 2) {
    std::vector<std::string> axes;
    for (size_t i = 0; i < shape.extents.size(); ++i)
      axes.push_back(fmt::format("a{}: {}", i, shape.extents[i]));
    text += fmt::format("y[{}] = {}({} - {})\n", fmt::join(axes, ", "), type, x, read);
  }
  return text;
}

dag::DagPtr Parse(const std::string& text) {
  const auto dag = dag::ParseDag(text);
  KILN_CHECK(dag.ok(), "{}\n{}", Message(dag.status()), text);
  return *dag;
}

// Rows of a few elements are long enough for several blocks.
Parameters SmallParameters() {
  Parameters parameters;
  parameters.least_split_row = 16;
  parameters.least_part_terms = 4;
  return parameters;
}

// A small computation of one of the kinds.
struct Case {
  std::string text;
  Workload workload;
};

Case RandomCase(Kind kind, uint64_t seed) {
  constexpr int64_t kExtents[] = {1, 2, 3, 4, 7, 8, 13, 16};
  Rng rng(seed);
  Shape shape = RandomShape(kExtents, kExtents, 4, rng);
  while (shape.Product(true) < 4 || shape.Product(true) * shape.Product(false) > 2000)
    shape = RandomShape(kExtents, kExtents, 4, rng);
  const std::string text = TextOf(kind, Chance(rng, 0.5) ? "float32" : "float16", shape,
                                  static_cast<int>(UniformInt(rng, 3)));
  return {text, MakeWorkload(text, Parse(text), seed)};
}

// Warps are small, so that tiny computations use several warps and blocks.
Task SmallTask(const dag::DagPtr& dag) {
  return Task(dag, *target::ParseTarget("cuda -arch=sm_90 -thread_warp_size=4"), {}, "[]");
}

StatusOr<State> Draw(const Sketch& sketch, const Task& task, Rng& rng) {
  StatusOr<State> state = SampleGpu(sketch, task, SmallParameters(), rng);
  for (int draw = 0; draw < 40 && !state.ok(); ++draw)
    state = SampleGpu(sketch, task, SmallParameters(), rng);
  return state;
}

constexpr Kind kKinds[] = {Kind::kOneSum,    Kind::kTwoSums, Kind::kThreeSums,
                           Kind::kTwoMaxima, Kind::kArgMax,  Kind::kWritten};

class SeveralSums : public testing::TestWithParam<Kind> {};

// Whole numbers are summed, so the sums are those in float64.
TEST_P(SeveralSums, SamplesComputeWhatTheDagSays) {
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t seed = SplitSeed(first * 100 + static_cast<uint64_t>(GetParam()), i);
    const Case c = RandomCase(GetParam(), seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, c.text));
    const Task task = SmallTask(c.workload.dag);
    const Parameters parameters = SmallParameters();
    const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
    Rng rng(seed);
    for (const Sketch& sketch : sketches) {
      for (int checked = 0; checked < 3; ++checked) {
        const StatusOr<State> state = Draw(sketch, task, rng);
        if (!state.ok()) break;
        ASSERT_OK(CheckByInterpreter(c.workload, *state, /*gpu=*/true));
        ASSERT_OK(codegen::CheckCudaProgram(*lower::Lower(*state, {.gpu = true}), task.hardware));
      }
    }
  }
}

TEST_P(SeveralSums, CudaTextComputesTheSame) {
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  for (uint64_t i = 0; i < 3; ++i) {
    const uint64_t seed = SplitSeed(first * 1000 + static_cast<uint64_t>(GetParam()), i);
    const Case c = RandomCase(GetParam(), seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, c.text));
    const Task task = SmallTask(c.workload.dag);
    const Parameters parameters = SmallParameters();
    const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
    Rng rng(seed);
    for (int checked = 0; checked < 2; ++checked) {
      const StatusOr<State> state = Draw(PickFrom(rng, sketches), task, rng);
      if (!state.ok()) continue;
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(*state, {.gpu = true}));
      SCOPED_TRACE(schedule::PrintSteps(state->steps()));
      EXPECT_OK(codegen::CompareEmulated(program, seed, 1e-2));
    }
  }
}

std::string NameOf(const testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"OneSum",    "TwoSums", "ThreeSums",
                                    "TwoMaxima", "ArgMax",  "Written"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(All, SeveralSums, testing::ValuesIn(kKinds), NameOf);

// The reader's threads are those of its rows, of which a block reduces one after the other.
TEST(SeveralSumsOnAGpu, RowsOfTheThreadsOfTheirReader) {
  const std::string text =
      TextOf(Kind::kOneSum, "float16", {.extents = {4, 7, 16}, .summed = {true, false, true}}, 1);
  const Workload workload = MakeWorkload(text, Parse(text), 3);
  const Task task = SmallTask(workload.dag);
  const Parameters parameters = SmallParameters();
  Rng rng(5);
  for (const Sketch& sketch : GenerateSketches({task, parameters})) {
    for (int draw = 0; draw < 40; ++draw) {
      const StatusOr<State> state = Draw(sketch, task, rng);
      if (!state.ok()) continue;
      ASSERT_OK(CheckByInterpreter(workload, *state, /*gpu=*/true));
    }
  }
}

// On a CPU parts of an argmax, and copies of several values, are steps that a person may write.
TEST(SeveralSumsOnACpu, StepsComputeTheSame) {
  constexpr const char* kSteps[] = {
      R"([["RF", 1, 1, 0]])", R"([["SP", 1, 1, 24, [4], 1], ["RF", 1, 2, 1], ["AN", 1, 0, 3]])",
      R"([["CHW", 1, "local"], ["SP", 2, 0, 6, [2], 1], ["CA", 1, 2, 0]])"};
  for (const Kind kind : kKinds) {
    const std::string text =
        TextOf(kind, "float32", {.extents = {6, 24}, .summed = {false, true}}, 0);
    const Workload workload = MakeWorkload(text, Parse(text), 3);
    for (const char* steps : kSteps) {
      SCOPED_TRACE(fmt::format("{}\n{}", text, steps));
      ASSERT_OK_AND_ASSIGN(const auto parsed, schedule::ParseSteps(steps));
      ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(workload.dag, parsed));
      EXPECT_OK(CheckByLlvm(workload, state));
    }
  }
}

// ---- how fast they are, by the analytic model with the constants of an H200

// A sum may have two kernels, each of which waits for the memory and for a barrier or two.
constexpr double kLeastSeconds = 3e-6;

// The limit is the bytes of inputs and outputs over the rate at which the model's device reads.
double LimitOf(const Task& task, int64_t bytes) {
  const device::Calibration row = device::CalibrationOf(task.device).row;
  return static_cast<double>(bytes) / (row.l2_bytes_per_cycle * row.clock_hz) + kLeastSeconds;
}

// Rows of less than a warp, of terms or of results, are left out: a warp would read parts of lines.
TEST(SeveralSumsInTime, AreAsFastAsTheirBytes) {
  constexpr int64_t kExtents[] = {2, 3, 8, 32, 56, 64, 100, 256, 1024, 4096, 50257},
                    kRows[] = {32, 56, 64, 100, 256, 1024, 4096, 50257};
  const uint64_t first = EnvironmentOr("KILN_SEED", 1);
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t seed = SplitSeed(first, i);
    Rng rng(seed);
    Shape shape = RandomShape(kExtents, kRows, 4, rng);
    while (shape.Product(true) < 4 || shape.Product(true) * shape.Product(false) > 40'000'000)
      shape = RandomShape(kExtents, kRows, 4, rng);
    const Kind kind = PickFrom(rng, kSums);
    const bool narrow = Chance(rng, 0.5);
    const std::string text =
        TextOf(kind, narrow ? "float16" : "float32", shape, static_cast<int>(UniformInt(rng, 2)));
    const Task task(Parse(text), *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
    const int64_t read = shape.Product(true) * shape.Product(false) * (narrow ? 2 : 4);
    const double best = BestSampleSeconds(task, 256, rng),
                 limit = LimitOf(task, read + shape.Product(false) * 4);
    EXPECT_LE(best, 2 * limit) << "seed " << seed << ", " << best / limit << " times the limit\n"
                               << text;
  }
}

}  // namespace
}  // namespace kiln::search
