// Tests that reductions split over blocks and over groups of threads compute what the DAG says: as
// sampled, with tile lengths changed to anything, and as CUDA text.
#include <gtest/gtest.h>

#include <set>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/gpu_validity.h"
#include "search/space/stage_view.h"
#include "tests/schedules/check_program.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;
using schedule::State;

struct Case {
  const char *op, *args, *epilogue;
};

std::string NameOf(const Case& c) { return fmt::format("{} {} {}", c.op, c.args, c.epilogue); }

Task MakeGpuTask(const Case& c) {
  auto dag = dag::BuildOp(c.op, c.args, {.epilogue = dag::SplitEpilogue(c.epilogue)});
  KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
  // Warps are small, so that tiny workloads use several warps and blocks.
  return Task(*dag, *target::ParseTarget("cuda -arch=sm_90 -thread_warp_size=4"), {}, "[]");
}

std::vector<Sketch> SplitSketches(const Task& task) {
  const Parameters parameters;
  std::vector<Sketch> sketches = GenerateSketches({task, parameters});
  std::erase_if(sketches, [](const Sketch& sketch) {
    return std::ranges::none_of(
        sketch.steps, [](const auto& s) { return schedule::Is<schedule::RfactorStep>(*s); });
  });
  return sketches;
}

// Changes the lengths of one or two splits of the state, to divisors or not.
StatusOr<State> ChangeLengths(const Task& task, const State& state, Rng& rng) {
  std::vector<schedule::StepPtr> steps = state.steps();
  std::vector<size_t> splits;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (schedule::Is<SplitStep>(*steps[i])) splits.push_back(i);
  }
  for (int64_t changes = UniformIn(rng, 1, 2); changes > 0; --changes) {
    schedule::StepPtr& step = steps[PickFrom(rng, splits)];
    const SplitStep& split = *schedule::As<SplitStep>(*step);
    std::vector<int64_t> lengths = split.lengths;
    lengths[UniformInt(rng, static_cast<int64_t>(lengths.size()))] = UniformIn(rng, 1, 5);
    step = std::make_shared<SplitStep>(split.stage_id, split.loop, split.extent, lengths,
                                       split.inner_to_outer);
  }
  KILN_ASSIGN_OR_RETURN(State changed, schedule::Replay(task.dag, steps));
  KILN_ASSIGN_OR_RETURN(changed, lower::FillExtents(changed));
  KILN_RETURN_IF_ERROR(CheckGpuLimits(changed, task.hardware, task.device.max_cluster_blocks));
  return changed;
}

constexpr Case kCases[] = {{"matmul", "6,8,12", "relu"},
                           {"matmul", "5,7,18", ""},
                           {"matmul", "1,9,16", "bias,relu"},
                           {"dense", "2,6,20", "bias"},
                           {"batch_matmul", "2,4,6,8", ""},
                           {"conv2d_nchw", "1,4,5,8,6,3,3,1,1", "bias,relu"},
                           {"conv2d_nhwc", "1,5,4,6,4,3,3,2,1", "bias,relu"},
                           {"conv2d_nhwc", "1,6,6,3,4,3,3,1,1", ""},
                           {"conv2d_nhwc", "1,7,7,8,4,1,1,1,0", "residual,relu"}};

TEST(ReductionSplits, SamplesComputeWhatTheDagSays) {
  for (const Case& c : kCases) {
    const Task task = MakeGpuTask(c);
    const Workload workload = MakeWorkload(NameOf(c), task.dag, 3);
    const auto sketches = SplitSketches(task);
    ASSERT_GE(sketches.size(), 3u) << workload.name;
    Rng rng(7);
    for (size_t k = 0; k < sketches.size(); ++k) {
      int checked = 0;
      for (int draw = 0; draw < 60 && checked < 8; ++draw) {
        const StatusOr<State> state = SampleGpu(sketches[k], task, Parameters(), rng);
        if (!state.ok()) continue;
        ++checked;
        const Status status = CheckByInterpreter(workload, *state, /*gpu=*/true);
        ASSERT_TRUE(status.ok()) << status;
        const ir::Program program = *lower::Lower(*state, {.gpu = true});
        ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware));
      }
      EXPECT_EQ(checked, 8) << workload.name << " sketch " << k;
    }
  }
}

// A search changes lengths to ones that divide nothing, in places that sampling keeps at 1.
TEST(ReductionSplits, ChangedLengthsComputeWhatTheDagSays) {
  for (const Case& c : kCases) {
    const Task task = MakeGpuTask(c);
    const Workload workload = MakeWorkload(NameOf(c), task.dag, 3);
    const auto sketches = SplitSketches(task);
    Rng rng(8);
    int checked = 0;
    for (int draw = 0; draw < 400 && checked < 25; ++draw) {
      const StatusOr<State> state = SampleGpu(PickFrom(rng, sketches), task, Parameters(), rng);
      if (!state.ok()) continue;
      const StatusOr<State> changed = ChangeLengths(task, *state, rng);
      if (!changed.ok()) continue;
      ++checked;
      const Status status = CheckByInterpreter(workload, *changed, /*gpu=*/true);
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(checked, 25) << workload.name;
  }
}

TEST(ReductionSplits, CudaTextComputesTheSame) {
  for (const Case& c : {kCases[6]}) {
    const Task task = MakeGpuTask(c);
    Rng rng(9);
    for (const Sketch& sketch : SplitSketches(task)) {
      StatusOr<State> state = SampleGpu(sketch, task, Parameters(), rng);
      for (int draw = 0; draw < 60 && !state.ok(); ++draw)
        state = SampleGpu(sketch, task, Parameters(), rng);
      ASSERT_OK(state.status());
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(*state, {.gpu = true}));
      const Status status = codegen::CompareEmulated(program, 5, 1e-4);
      EXPECT_TRUE(status.ok()) << NameOf(c) << "\n" << status;
    }
  }
}

bool IsOfClusters(const State& state) {
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.attach(s).kind == schedule::Attach::kRoot && ClusterStageIn(state, s) >= 0)
      return true;
  }
  return false;
}

// Tests samples as they are, and with lengths that divide nothing.
TEST(ReductionSplits, ClustersComputeTheSame) {
  const target::Target hopper = *target::ParseTarget("cuda -arch=sm_90");
  for (const Case& c : {kCases[1], kCases[6]}) {
    const Task task = MakeGpuTask(c);
    Rng rng(11);
    std::set<int64_t> sizes;
    int sketches = 0, uneven = 0;
    for (const Sketch& sketch : SplitSketches(task)) {
      if (!IsOfClusters(sketch.state)) continue;
      ++sketches;
      for (int draw = 0, checked = 0; draw < 200 && checked < 2; ++draw) {
        StatusOr<State> state = SampleGpu(sketch, task, Parameters(), rng);
        if (state.ok() && draw % 2 == 1) state = ChangeLengths(task, *state, rng);
        if (!state.ok()) continue;
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(*state, {.gpu = true}));
        if (!codegen::CheckCudaProgram(program, task.hardware, hopper).ok()) continue;
        ++checked;
        uneven += draw % 2;
        sizes.insert(program.kernels.back().cluster);
        const Status status = codegen::CompareEmulated(program, 5, 1e-4);
        EXPECT_TRUE(status.ok()) << NameOf(c) << "\n" << status;
        const std::string text = codegen::GenerateCuda(program)->text;
        EXPECT_NE(text.find("\n  cluster_barrier();\n"), text.npos) << text;
        EXPECT_NE(text.find("\n  leave_cluster();\n}"), text.npos) << text;
      }
    }
    EXPECT_EQ(sketches, 2) << NameOf(c) << ": alone and with groups";
    EXPECT_GT(uneven, 0) << NameOf(c);
    EXPECT_TRUE(sizes.contains(2)) << NameOf(c);
  }
}

// A block stores to no part but its own, also if tiles overhang, because nvcc refuses such text.
TEST(ReductionSplits, ClustersStoreToTheirOwnPart) {
  for (const Case& c : kCases) {
    const Task task = MakeGpuTask(c);
    Rng rng(13);
    for (const Sketch& sketch : SplitSketches(task)) {
      if (!IsOfClusters(sketch.state)) continue;
      for (int draw = 0, checked = 0; draw < 300 && checked < 30; ++draw) {
        StatusOr<State> state = SampleGpu(sketch, task, Parameters(), rng);
        if (state.ok()) state = ChangeLengths(task, *state, rng);
        if (!state.ok()) continue;
        ++checked;
        ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(*state, {.gpu = true}));
        ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
        const std::string& text = source.text;
        for (size_t at = text.find("__global__"); (at = text.find("in_block(", at)) != text.npos;
             ++at) {
          const size_t line = text.rfind('\n', at);
          EXPECT_LT(text.find("= ", line), at) << text.substr(line, text.find('\n', at) - line);
        }
      }
    }
  }
}

// There are no clusters if the hardware has none, or if they are not wanted.
TEST(ReductionSplits, ClustersAreLeftOut) {
  const auto clusters = [](std::string_view target, double wanted) {
    const Task task(MakeGpuTask(kCases[0]).dag, *target::ParseTarget(target), {}, "[]");
    const Parameters parameters = *MakeParameters({{"cluster_splits", wanted}});
    return std::ranges::count_if(GenerateSketches({task, parameters}),
                                 [](const Sketch& sketch) { return IsOfClusters(sketch.state); });
  };
  EXPECT_EQ(clusters("cuda -arch=sm_90 -thread_warp_size=4", 1), 2);
  EXPECT_EQ(clusters("cuda -arch=sm_90 -thread_warp_size=4", 0), 0);
  EXPECT_EQ(clusters("cuda -arch=sm_89 -thread_warp_size=4", 1), 0);
  EXPECT_EQ(clusters("cuda -thread_warp_size=4", 1), 0);
}

// The region that partial sums cover is the tile of the block, even if the number of threads that
// add them up does not divide its elements.
TEST(ReductionSplits, SharedPartialSumsCoverTheTileAlone) {
  const Case c{"matmul", "64,64,64", ""};
  const Task task(MakeGpuTask(c).dag, *target::ParseTarget("cuda"), {}, "[]");
  const auto sketches = SplitSketches(task);
  Rng rng(2);
  std::set<bool> divides;
  for (int draw = 0; draw < 200; ++draw) {
    const StatusOr<State> sampled = SampleGpu(sketches[0], task, Parameters(), rng);
    if (!sampled.ok()) continue;
    const int root = sampled->num_stages() - 1;
    int64_t tile = 1, threads = UseOfKernel(*sampled, root).threads;
    for (const schedule::StepPtr& step : sampled->steps()) {
      const auto* split = schedule::As<SplitStep>(*step);
      if (split == nullptr || split->lengths.size() != 4) continue;
      for (int64_t length : split->lengths) tile *= length;
    }
    for (int s = 0; s < root; ++s) {
      const schedule::Stage& stage = sampled->stage(s);
      if (!stage.op->name().ends_with(".rf")) continue;
      int64_t region = 1;
      for (size_t axis = 1; axis < stage.op->axes().size(); ++axis)
        region *= stage.iters[axis].extent;
      EXPECT_EQ(region, tile) << schedule::PrintLoops(*sampled);
      divides.insert(tile % threads == 0);
    }
  }
  EXPECT_EQ(divides.size(), 2u) << "both cases were seen";
}

}  // namespace
}  // namespace kiln::search
