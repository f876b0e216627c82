#include "search/sampling/sample_gpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/ir/program.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/recorded_layers_testing.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/rebuild.h"
#include "search/evolution/tile_moves.h"
#include "search/policies/random_policy.h"
#include "search/space/gpu_validity.h"
#include "search/space/stage_hints.h"
#include "search/space/thread_shapes.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::Stage;
using schedule::State;

struct Case {
  const char *op, *args;
  std::vector<std::string> epilogue = {};
  ir::Type dtype = ir::kFloat32;
};

Task MakeTask(const Case& c) {
  auto dag = dag::BuildOp(c.op, c.args, {.dtype = c.dtype, .epilogue = c.epilogue});
  KILN_CHECK(dag.ok(), "{} {}: {}", c.op, c.args, Message(dag.status()));
  return Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
}

// Returns the extents of the loops with this annotation.
std::vector<int64_t> ExtentsOf(const Stage& stage, Annotation annotation) {
  std::vector<int64_t> extents;
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.annotation(i) == annotation) extents.push_back(stage.loop(i).extent);
  }
  return extents;
}

TEST(SampleGpu, DefaultsOfTheTargetFillWhatTheDeviceDoesNotSay) {
  const Task task = MakeTask({"relu", "4"});
  EXPECT_EQ(task.hardware.warp_size, 32);
  EXPECT_EQ(task.hardware.max_threads_per_block, 1024);
  EXPECT_EQ(task.hardware.vector_unit_bytes, 16);
  target::HardwareParams own;
  own.max_threads_per_block = 512;
  const Task given(task.dag, task.target, own, "[]");
  EXPECT_EQ(given.hardware.max_threads_per_block, 512);
  EXPECT_EQ(given.hardware.max_shared_memory_per_block_bytes, 49152);
}

TEST(SampleGpu, ConvolutionIsBoundAndFetchesTogether) {
  const Task task = MakeTask({"conv2d_nhwc", "1,14,14,32,16,3,3,1,1", {"bias", "relu"}});
  const Parameters parameters{.reduction_splits = false};
  const auto sketches = GenerateSketches({task, parameters});
  ASSERT_EQ(sketches.size(), 1u);
  Rng rng(11);
  std::set<int64_t> widths;
  int accepted = 0;
  for (int draw = 0; draw < 1500; ++draw) {
    const StatusOr<State> sampled = SampleGpu(sketches[0], task, parameters, rng);
    if (!sampled.ok()) {
      ASSERT_THAT(sampled, StatusIs(StatusCode::kFailedPrecondition, testing::_));
      continue;
    }
    ++accepted;
    const State& state = *sampled;
    SCOPED_TRACE(schedule::PrintLoops(state));
    ASSERT_OK_AND_ASSIGN(const State replayed, schedule::Replay(task.dag, state.steps()));
    ASSERT_TRUE(replayed.concrete());

    const int root = state.num_stages() - 1;
    const Stage& output = state.stage(root);
    ASSERT_EQ(state.attach(root).kind, Attach::kRoot);
    EXPECT_EQ(output.annotation(0), Annotation::kBlockX);
    EXPECT_EQ(output.annotation(1), Annotation::kVThread);
    EXPECT_EQ(output.annotation(2), Annotation::kThreadX);
    EXPECT_LE(output.loop(1).extent, task.hardware.max_vthread_extent);
    const int64_t threads = output.loop(2).extent;
    EXPECT_GE(threads, 32);
    EXPECT_LE(threads, 1024);

    int fetches = 0;
    for (int s = 0; s < state.num_stages(); ++s) {
      const Stage& stage = state.stage(s);
      if (!stage.op->name().ends_with(".shared")) continue;
      ++fetches;
      EXPECT_EQ(ExtentsOf(stage, Annotation::kThreadX), std::vector<int64_t>{threads});
      const auto lanes = ExtentsOf(stage, Annotation::kVectorize);
      ASSERT_EQ(lanes.size(), 1u);
      widths.insert(lanes[0]);
      // The stage is attached after the outermost tiles of all three reduction axes.
      const Attach& at = state.attach(s);
      const Stage& reader = state.stage(at.stage);
      int reductions = 0;
      for (int loop = 0; loop <= at.loop; ++loop) {
        if (reader.loop(loop).kind != schedule::IterKind::kReduce) continue;
        EXPECT_EQ(schedule::LoopLevel(reader, loop), 0);
        ++reductions;
      }
      EXPECT_EQ(reductions, 3);
      EXPECT_EQ(reader.loop(at.loop).kind, schedule::IterKind::kReduce);
      // The recorded extent is that of the region.
      int64_t region = 1;
      for (size_t axis = 0; axis < stage.op->axes().size(); ++axis)
        region *= stage.iters[axis].extent;
      for (const schedule::StepPtr& step : state.steps()) {
        const auto* split = schedule::As<schedule::SplitStep>(*step);
        if (split != nullptr && split->stage_id == s) {
          EXPECT_EQ(split->extent, region);
        }
      }
    }
    EXPECT_EQ(fetches, 2);
    EXPECT_LE(UseOfKernel(state, root).shared_bytes, 49152);
    // The lowered program's buffers also have padding and all halves.
    if (accepted % 8 == 0) {
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      int64_t shared = 0;
      for (const ir::Buffer& buffer : program.buffers) {
        if (buffer.scope == ir::Scope::kShared) shared += buffer.bytes();
      }
      EXPECT_EQ(UseOfKernel(state, root).shared_bytes, shared);
    }
  }
  EXPECT_GT(accepted, 50);
  EXPECT_EQ(widths, (std::set<int64_t>{1, 2, 4}));
}

TEST(SampleGpu, EveryAcceptedDrawReplaysAndLowers) {
  const Case cases[] = {{"conv2d_nchw", "1,56,56,64,64,3,3,1,1", {"bias", "relu"}},
                        {"conv2d_nhwc", "2,13,11,24,12,3,3,2,1"},
                        {"depthwise_conv2d_nchw", "1,28,28,32,3,3,1,1", {"relu"}},
                        {"matmul", "1024,1024,1024"},
                        {"matmul", "8,8,1024"},
                        {"matmul", "127,61,33"},
                        {"dense", "1,1000,512", {"bias"}},
                        {"conv2d_winograd_nhwc", "1,14,14,64,64", {"bias", "relu"}},
                        {"max_pool2d_nchw", "1,56,56,64,3,3,2,1"},
                        {"global_avg_pool2d_nhwc", "1,7,7,512"},
                        {"softmax", "64,1000"},
                        {"min", "10,1024,axis=1"},
                        {"sum", "512,1000,axis=0"},
                        {"sum", "1000003"},
                        {"sum", "4,16,100,100,axis=0,axis=2,axis=3"},
                        {"layer_norm", "2,33,256"},
                        {"transpose", "512,300"},
                        {"transpose", "127,1009"},
                        {"transpose", "2,48,14,14,axis=0,axis=2,axis=3,axis=1", {"bias", "relu"}},
                        {"relu", "1000"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    const Task task = MakeTask(c);
    const Parameters parameters;
    const auto sketches = GenerateSketches({task, parameters});
    Rng rng(5);
    int accepted = 0, lowered = 0, draws = 0;
    for (; draws < 4000 && accepted < 40; ++draws) {
      const StatusOr<State> state = SampleGpu(PickFrom(rng, sketches), task, parameters, rng);
      if (!state.ok()) continue;
      ++accepted;
      EXPECT_OK(CheckGpuLimits(*state, task.hardware, task.device.max_cluster_blocks));
      ASSERT_OK(schedule::Replay(task.dag, state->steps()).status());
      const auto program = lower::Lower(*state, {.gpu = true});
      if (!program.ok()) {
        ADD_FAILURE() << program.status() << "\n" << schedule::PrintLoops(*state);
        continue;
      }
      const Status verified = ir::Verify(*program);
      EXPECT_TRUE(verified.ok()) << verified;
      lowered += verified.ok();
    }
    EXPECT_EQ(accepted, 40) << "of " << draws << " draws";
    EXPECT_EQ(lowered, accepted);
    RecordProperty(fmt::format("draws_{}", c.op), draws);
  }
}

TEST(SampleGpu, ThreadCountsVaryWhenAsked) {
  const Parameters vary{.vary_thread_counts = true};
  for (const Case& c : {Case{"relu", "100000"}, Case{"softmax", "64,1000"}}) {
    SCOPED_TRACE(c.op);
    const Task task = MakeTask(c);
    const auto sketches = GenerateSketches({task, vary});
    for (const bool varied : {false, true}) {
      const Parameters parameters{.vary_thread_counts = varied};
      Rng rng(3);
      std::set<int64_t> threads;
      for (int draw = 0; draw < 200; ++draw) {
        ASSERT_OK_AND_ASSIGN(const State state,
                             SampleGpu(PickFrom(rng, sketches), task, parameters, rng));
        threads.insert(UseOfKernel(state, state.num_stages() - 1).threads);
        ASSERT_OK(lower::Lower(state, {.gpu = true}).status());
      }
      const std::set<int64_t> all = {32, 64, 128, 256, 512, 1024};
      EXPECT_EQ(threads, varied ? all : std::set<int64_t>{32});
    }
  }
}

// All lengths of a shape are drawn, and none that leaves a part of a warp, or of a vector, idle.
TEST(SampleGpu, ShapesOfMovesAndRowsVary) {
  const struct {
    Case c;
    LengthRole role;
    std::set<int64_t> lengths;
  } cases[] = {
      {{"relu", "4096,4096"}, LengthRole::kSerial, {1, 2, 4, 8, 16}},
      {{"relu", "4096,4096"}, LengthRole::kLanes, {1, 2, 4}},
      {{"relu", "1009,1013"}, LengthRole::kLanes, {1, 2, 4}},
      {{"softmax", "512,1000"}, LengthRole::kLanes, {1, 2, 4}},
      {{"softmax", "512,1002"}, LengthRole::kLanes, {1, 2}},
      {{"softmax", "512,1000"}, LengthRole::kRows, {1, 2, 4, 8, 16, 32}},
      {{"sum", "512,96,axis=1", {"relu"}}, LengthRole::kRows, {1, 2, 4, 8, 16, 32}},
      {{"sum", "512,14,96,axis=2", {"relu"}}, LengthRole::kRows, {1, 2, 4, 7, 8, 14}},
      {{"sum", "512,96,axis=1", {"relu"}}, LengthRole::kThreads, {4, 8, 16, 32, 64, 128, 256, 512}},
      {{"transpose", "2048,4096"}, LengthRole::kTile, {16, 32, 64, 128}},
      {{"transpose", "2048,4096"}, LengthRole::kLanes, {1, 2, 4}},
      {{"transpose", "2049,4095"}, LengthRole::kLanes, {1}}};
  for (const auto& [c, role, lengths] : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    const Task task = MakeTask(c);
    const Parameters parameters;
    const auto sketches = GenerateSketches({task, parameters});
    Rng rng(7);
    std::set<int64_t> found;
    for (int draw = 0; draw < 600; ++draw) {
      const StatusOr<State> state = SampleGpu(PickFrom(rng, sketches), task, parameters, rng);
      if (!state.ok()) continue;
      for (size_t i = 0; i < state->steps().size(); ++i) {
        const std::vector<LengthRole> roles = LengthRoles(state->steps(), i);
        if (IsFetchSplit(state->steps(), i) ||
            (c.op != std::string_view("relu") && roles.size() == 3))
          continue;
        for (size_t k = 0; k < roles.size(); ++k) {
          if (roles[k] == role)
            found.insert(schedule::As<schedule::SplitStep>(*state->steps()[i])->lengths[k]);
        }
      }
    }
    EXPECT_EQ(found, lengths);
  }
}

TEST(SampleGpu, HintsAreDrawnUnlessAParameterLeavesThemOut) {
  const Task conv = MakeTask({"conv2d_nhwc", "1,28,28,32,16,3,3,1,1", {"bias", "relu"}});
  const Task half = MakeTask({"matmul", "256,256,256", {}, ir::kFloat16});
  // The number of tiles is larger than that of multiprocessors.
  Task large = MakeTask({"matmul", "4096,4096,256", {}, ir::kFloat16});
  large.device.multiprocessors = 132;
  // The number of tiles is no multiple of the multiprocessors.
  Task uneven = MakeTask({"matmul", "1536,1536,1536", {}, ir::kFloat16});
  uneven.device.multiprocessors = 132;
  const auto values = [&](ir::Hint hint, const Parameters& parameters) {
    const bool is_of_matrix_units = hint == ir::Hint::kMatrixUnit || hint == ir::Hint::kSwizzle ||
                                    hint == ir::Hint::kBulkCopies ||
                                    hint == ir::Hint::kPersistentBlocks ||
                                    hint == ir::Hint::kStreamK;
    const Task& task = hint == ir::Hint::kStreamK            ? uneven
                       : hint == ir::Hint::kPersistentBlocks ? large
                       : is_of_matrix_units                  ? half
                                                             : conv;
    std::set<int32_t> drawn;
    Rng rng(11);
    const std::vector<Sketch> sketches = GenerateSketches({task, parameters});
    for (size_t draw = 0; draw < 600; ++draw) {
      const Sketch& sketch = sketches[is_of_matrix_units ? draw % sketches.size() : 0];
      const auto state = SampleGpu(sketch, task, parameters, rng);
      if (!state.ok()) continue;
      for (const schedule::StepPtr& step : state->steps()) {
        if (const auto value = schedule::HintOf(*step, hint)) drawn.insert(*value);
      }
    }
    return drawn;
  };
  for (const HintChoice& choice : HintChoices()) {
    if (choice.gpu_weight == 0) continue;
    SCOPED_TRACE(choice.mutation);
    EXPECT_GT(values(choice.hint, {}).size(), 1u);
    if (choice.parameter.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const Parameters without,
                         MakeParameters({{std::string(choice.parameter), 0}}));
    EXPECT_THAT(values(choice.hint, without), testing::IsEmpty());
  }
}

// No divisor of 1031 but 1 is a number of threads that a block can have.
TEST(SampleGpu, PrimeExtentsBeyondABlockStillHaveCandidates) {
  const Task task = MakeTask({"dense", "1,1031,64"});
  const Parameters parameters;
  RandomPolicy policy(task, parameters, 1);
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy.Propose(4));
  EXPECT_EQ(candidates.size(), 4u);
}

// These are the odd shapes of `kiln conformance`.
TEST(SampleGpu, AxesWithPoorDivisorsAreTiledUnevenly) {
  const Case cases[] = {{"matmul", "127,255,63", {"relu"}},
                        {"dense", "1,1000,512", {"bias"}},
                        {"conv2d_nhwc", "3,7,13,17,5,3,3,1,1", {"bias", "relu"}},
                        {"conv2d_nchw", "3,17,11,23,7,3,3,2,1"},
                        {"depthwise_conv2d_nhwc", "1,31,29,37,3,3,1,1"},
                        {"matmul", "1009,1009,1009"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    const Task task = MakeTask(c);
    std::map<bool, int> uneven[2];
    for (const bool wanted : {false, true}) {
      const Parameters parameters{.uneven_tiles = wanted};
      Rng rng(5);
      for (const Sketch& sketch : GenerateSketches({task, parameters})) {
        for (int draw = 0; draw < 40; ++draw) {
          const StatusOr<State> state = SampleGpu(sketch, task, parameters, rng);
          if (!state.ok()) continue;
          bool any = false;
          for (const Tiles& tiles : TilesOf(state->steps())) {
            ASSERT_TRUE(IsAcceptable(tiles.covered(), tiles.extent));
            any = any || tiles.covered() != tiles.extent;
          }
          ++uneven[wanted][any];
        }
      }
    }
    EXPECT_EQ(uneven[0][true], 0);
    EXPECT_GT(uneven[0][false], 0);
    EXPECT_GT(uneven[1][true], 5);
  }
}

TEST(GpuValidity, LimitsAreNamed) {
  const Task task = MakeTask({"matmul", "512,512,512"});
  ASSERT_OK_AND_ASSIGN(
      const auto steps,
      schedule::ParseSteps(
          R"([["CHW", 2, "local"], ["SP", 2, 0, 512, [1, 16, 1, 4], 1],)"
          R"( ["SP", 2, 5, 512, [1, 16, 1, 4], 1], ["SP", 2, 10, 512, [4, 4], 1],)"
          R"( ["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]],)"
          R"( ["FSP", 3, 0, 1, 3], ["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]],)"
          R"( ["CA", 2, 3, 5], ["CHR", 1, "shared", [2]], ["CA", 2, 3, 6],)"
          R"( ["FU", 4, [0, 1]], ["AN", 4, 0, 5], ["FU", 4, [1, 2]], ["AN", 4, 1, 4],)"
          R"( ["FU", 4, [2, 3]], ["AN", 4, 2, 6]])"));
  ASSERT_OK_AND_ASSIGN(State state, schedule::Replay(task.dag, steps));
  ASSERT_OK_AND_ASSIGN(state, lower::FillExtents(state));
  const BlockUse use = UseOfKernel(state, state.num_stages() - 1);
  EXPECT_EQ(use.threads, 256);
  EXPECT_EQ(use.vthreads, 1);
  EXPECT_EQ(use.shared_bytes, 64 * 16 * 4) << "64 columns, 16 of the reduction";
  EXPECT_OK(CheckGpuLimits(state, task.hardware, task.device.max_cluster_blocks));

  target::HardwareParams small = task.hardware;
  small.max_shared_memory_per_block_bytes = 64 * 16 * 4 - 1;
  EXPECT_THAT(CheckGpuLimits(state, small, task.device.max_cluster_blocks),
              StatusIs(StatusCode::kFailedPrecondition,
                       testing::HasSubstr("4096 bytes of shared memory per block")));
  small = task.hardware;
  small.max_threads_per_block = 255;
  EXPECT_THAT(
      CheckGpuLimits(state, small, task.device.max_cluster_blocks),
      StatusIs(StatusCode::kFailedPrecondition, testing::HasSubstr("256 threads per block")));
}

device::DeviceModel SmallGpu() {
  device::DeviceModel model;
  model.name = "Small GPU";
  model.compute_capability = 75;
  model.multiprocessors = 20;
  model.max_cluster_blocks = 1;
  return model;
}

// 132 multiprocessors need more blocks than 20 do.
TEST(SampleGpu, TilesAreOfTheDevicesSize) {
  const auto dag = dag::BuildOp("conv2d_nhwc", "1,56,56,16,64,3,3,1,1", {});
  ASSERT_OK(dag);
  const auto mean_blocks = [&](const Task& task) {
    const Parameters parameters{.reduction_splits = false};
    const auto sketches = GenerateSketches({task, parameters});
    Rng rng(5);
    double blocks = 0;
    int count = 0;
    for (int draw = 0; draw < 300; ++draw) {
      const StatusOr<State> sampled = SampleGpu(sketches[0], task, parameters, rng);
      if (!sampled.ok()) continue;
      const auto program = lower::Lower(*sampled, {.gpu = true});
      if (!program.ok()) continue;
      const ir::Kernel& kernel = program->kernels.back();
      blocks += std::log2(static_cast<double>(kernel.grid[0] * kernel.grid[1] * kernel.grid[2]));
      ++count;
    }
    EXPECT_GT(count, 50);
    return blocks / count;
  };
  const target::Target target = *target::ParseTarget("cuda -arch=sm_75");
  const double small = mean_blocks(Task(*dag, target, {}, "[]", SmallGpu()));
  device::DeviceModel large = SmallGpu();
  large.multiprocessors = 132;
  EXPECT_LT(small + 0.3, mean_blocks(Task(*dag, target, {}, "[]", large)));
}

TEST(SampleGpu, WithoutClustersNothingIsSharedOutOverThem) {
  const auto dag = dag::BuildOp("matmul", "64,64,2048", {});
  ASSERT_OK(dag);
  const auto clusters = [&](int most) {
    device::DeviceModel model = device::UsualGpu(90);
    model.max_cluster_blocks = most;
    const Task task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]", model);
    const Parameters parameters;
    std::set<int64_t> sizes;
    Rng rng(6);
    for (const Sketch& sketch : GenerateSketches({task, parameters})) {
      for (int draw = 0; draw < 40; ++draw) {
        const StatusOr<State> sampled = SampleGpu(sketch, task, parameters, rng);
        if (!sampled.ok()) continue;
        const auto program = lower::Lower(*sampled, {.gpu = true});
        if (!program.ok()) continue;
        for (const ir::Kernel& kernel : program->kernels) sizes.insert(kernel.cluster);
      }
    }
    return sizes;
  };
  EXPECT_THAT(clusters(1), testing::ElementsAre(1));
  EXPECT_THAT(clusters(4), testing::ElementsAre(1, 2, 4));
  EXPECT_THAT(clusters(16), testing::ElementsAre(1, 2, 4, 8));
}

TEST(GpuValidity, FetchingAheadLeavesRegisters) {
  const Task task = MakeTask({"matmul", "512,512,512"});
  const struct {
    int k;  // elements of the reduction in one step
    int row_threads;
    const char* buffering;
    int64_t ahead_words, buffers;
  } cases[] = {{16, 16, "2", 4, 2},    {256, 16, "2", 64, 2},   {256, 8, "2", 128, 2},
               {512, 16, "2", 0, 1},   {16, 16, "2, 1", 0, 2},  {64, 16, "4, 1", 0, 4},
               {128, 8, "3, 1", 0, 3}, {128, 16, "7, 1", 0, 4}, {512, 16, "2, 1", 0, 1}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {} {}", c.k, c.row_threads, c.buffering));
    ASSERT_OK_AND_ASSIGN(
        const auto steps,
        schedule::ParseSteps(fmt::format(
            R"([["CHW", 2, "local"], ["SP", 2, 0, 512, [1, {}, 1, 4], 1],)"
            R"( ["SP", 2, 5, 512, [1, 16, 1, 4], 1], ["SP", 2, 10, 512, [{}, 4], 1],)"
            R"( ["RE", 2, [0, 5, 1, 6, 2, 7, 10, 11, 3, 8, 12, 4, 9]],)"
            R"( ["FSP", 3, 0, 1, 3], ["FSP", 3, 4, 2, 3], ["RE", 3, [0, 4, 1, 5, 2, 6, 3, 7]],)"
            R"( ["CA", 2, 3, 5], ["CHR", 1, "shared", [2]], ["CA", 2, 3, 6],)"
            R"( ["FU", 4, [0, 1]], ["AN", 4, 0, 5], ["FU", 4, [1, 2]], ["AN", 4, 1, 4],)"
            R"( ["FU", 4, [2, 3]], ["AN", 4, 2, 6], ["BF", 3, {}]])",
            c.row_threads, c.k / 4, c.buffering)));
    ASSERT_OK_AND_ASSIGN(State state, schedule::Replay(task.dag, steps));
    ASSERT_OK_AND_ASSIGN(state, lower::FillExtents(state));
    const BlockUse use = UseOfKernel(state, state.num_stages() - 1);
    // The block has 64 columns. A step that covers all of the reduction leaves nothing to fetch
    // ahead. Copies need no registers, and no more buffers than there are fetches.
    EXPECT_EQ(use.ahead_words, c.ahead_words);
    EXPECT_EQ(use.shared_bytes, 64 * c.k * 4 * c.buffers);
    target::HardwareParams hopper = task.hardware;
    hopper.max_shared_memory_per_block_bytes = 232448;
    const Status status = CheckGpuLimits(state, hopper, task.device.max_cluster_blocks);
    if (c.ahead_words <= kMaxAheadWords) {
      EXPECT_OK(status);
    } else {
      EXPECT_THAT(status, StatusIs(StatusCode::kFailedPrecondition,
                                   testing::HasSubstr("128 words fetched ahead by each thread")));
    }
  }
}

// ---- compared with recorded schedules of a network's layers: same sketches, same binding

// Prints a step without the choices of a search: tile lengths, unroll depths, extents that may be
// stale.
std::string Shape(const schedule::Step& step) {
  nlohmann::json json = nlohmann::json::parse(step.ToJson());
  if (schedule::Is<schedule::SplitStep>(step)) {
    json[3] = 0;
    for (auto& length : json[4]) length = 0;
  }
  if (schedule::Is<schedule::PragmaStep>(step)) json[3] = "";
  return json.dump();
}

std::vector<std::string> Shapes(std::span<const schedule::StepPtr> steps) {
  std::vector<std::string> shapes;
  for (const schedule::StepPtr& step : steps) shapes.push_back(Shape(*step));
  return shapes;
}

TEST(SampleGpu, MakesTheStructureOfRecordedSchedules) {
  for (const schedule::RecordedLayer& layer : schedule::RecordedLayers()) {
    SCOPED_TRACE(fmt::format("line {}: {}", layer.line, layer.Name()));
    const std::vector<schedule::StepPtr>& recorded = layer.steps;
    const Task task(layer.dag, *target::ParseTarget("cuda"), {}, "[]");
    const Parameters parameters{.vary_thread_counts = false};
    bool found = false;
    for (const Sketch& sketch : GenerateSketches({task, parameters})) {
      const size_t n = sketch.steps.size();
      const std::vector<schedule::StepPtr> prefix(recorded.begin(),
                                                  recorded.begin() + std::min(n, recorded.size()));
      if (Shapes(prefix) != Shapes(sketch.steps)) continue;
      ASSERT_OK_AND_ASSIGN(State state, schedule::Replay(task.dag, prefix));
      Rng rng(layer.line);
      if (!BindThreads(state, task.hardware, false, rng).ok()) continue;
      ASSERT_OK(AnnotateGpuUnroll(state, rng));
      found = found || Shapes(state.steps()) == Shapes(recorded);
    }
    EXPECT_TRUE(found) << schedule::PrintSteps(recorded);
  }
}

}  // namespace
}  // namespace kiln::search
