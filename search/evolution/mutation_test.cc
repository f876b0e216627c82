#include "search/evolution/mutation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/crossover.h"
#include "search/evolution/individual.h"
#include "search/evolution/rebuild.h"
#include "search/evolution/tile_moves.h"
#include "search/sampling/sample.h"
#include "search/sampling/sample_unroll.h"
#include "search/space/factorization.h"
#include "search/space/gpu_validity.h"
#include "search/space/shared_layout.h"
#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_hints.h"
#include "search/space/stage_view.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;
using schedule::State;

struct Case {
  const char *op, *args;
  std::vector<std::string> epilogue = {};
  ir::Type dtype = ir::kFloat32;
};

Task MakeTask(const Case& c, bool gpu) {
  auto dag = dag::BuildOp(c.op, c.args, {.dtype = c.dtype, .epilogue = c.epilogue});
  KILN_CHECK(dag.ok(), "{} {}: {}", c.op, c.args, Message(dag.status()));
  target::HardwareParams hardware;
  hardware.num_cores = 4;
  return gpu ? Task(*dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]")
             : Task(*dag, target::Target{}, hardware, "[]");
}

std::vector<MutationKind> KindsOn(bool gpu) {
  return MutationKinds(MakeTask({"matmul", "8,8,8"}, gpu), Parameters());
}

// The first legal draw of a sketch.
State Draw(const Task& task, const Sketch& sketch, Rng& rng) {
  for (int i = 0; i < 20000; ++i) {
    StatusOr<State> state = Sample(sketch, task, Parameters(), rng);
    if (state.ok()) return *std::move(state);
  }
  KILN_CHECK(false, "nothing legal in 20000 draws");
}

TEST(TileSizes, MovesKeepTheExtentAndTheInnermostLimitAndReachEverything) {
  std::vector<Tiles> all = {{.step = 3, .levels = {48, 1, 1}}, {.step = 5, .levels = {1, 7, 1}}};
  Rng rng(1);
  std::set<std::vector<int64_t>> seen;
  for (int i = 0; i < 20000; ++i) {
    const std::vector<Tiles> before = all;
    const std::vector<int> changed = MoveTiles(all, {.max_innermost_split_factor = 16}, rng);
    for (int t = 0; t < 2; ++t) {
      const bool listed = std::find(changed.begin(), changed.end(), t) != changed.end();
      ASSERT_EQ(listed, all[t].levels != before[t].levels);
    }
    ASSERT_EQ(all[0].covered(), 48);
    ASSERT_EQ(all[1].covered(), 7);
    ASSERT_LE(all[0].levels.back(), 16);
    seen.insert(all[0].levels);
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), CountFactorizations(48, 2, 16));
}

TEST(TileSizes, UnevenMovesWasteLittleAndReachGoodTiles) {
  std::vector<Tiles> all = {{.step = 1, .levels = {1009, 1, 1, 1}, .extent = 1009, .uneven = true},
                            {.step = 2, .levels = {1, 7, 7}, .extent = 49, .uneven = true},
                            {.step = 3, .levels = {6, 1}, .extent = 6}};
  const std::vector<int64_t> extents = {1009, 49, 6};
  Rng rng(3);
  std::set<std::vector<int64_t>> seen;
  for (int i = 0; i < 20000; ++i) {
    MoveTiles(all, Parameters(), rng);
    for (int t = 0; t < 3; ++t) {
      ASSERT_EQ(all[t].extent, extents[t]);
      ASSERT_GE(all[t].covered(), extents[t]);
      ASSERT_TRUE(IsAcceptable(all[t].covered(), extents[t])) << all[t].covered();
      // No level is longer than the extent that is left for it, and no outermost tile is all waste.
      int64_t left = extents[t];
      for (size_t level = all[t].levels.size(); level-- > 0;) {
        ASSERT_LE(all[t].levels[level], left);
        left = (left + all[t].levels[level] - 1) / all[t].levels[level];
      }
      ASSERT_LT((all[t].levels[0] - 1) * (all[t].covered() / all[t].levels[0]), extents[t]);
      seen.insert(all[t].levels);
    }
    ASSERT_EQ(all[2].covered(), 6);
    ASSERT_LE(all[0].levels.back(), 64);
  }
  EXPECT_TRUE(seen.contains({16, 2, 2, 16}));
  EXPECT_TRUE(seen.contains({4, 4, 4}));
  EXPECT_TRUE(seen.contains({1, 7, 7}));
  EXPECT_TRUE(seen.contains({1, 7, 8}));
}

TEST(TileSizes, NothingToMoveIsNoChange) {
  std::vector<Tiles> none;
  Rng rng(1);
  EXPECT_TRUE(MoveTiles(none, Parameters(), rng).empty());
}

TEST(TileSizes, PartsOfAReductionStayManyButNotTooMany) {
  ASSERT_OK_AND_ASSIGN(const auto steps,
                       schedule::ParseSteps(R"([["SP", 2, 2, 4096, [8], 0], ["RF", 2, 2, 0]])"));
  std::vector<Tiles> all = TilesOf(steps);
  ASSERT_EQ(all.size(), 1u);
  Rng rng(1);
  std::set<int64_t> parts;
  for (int i = 0; i < 2000; ++i) {
    MoveTiles(all, Parameters(), rng);
    parts.insert(all[0].levels[0]);
  }
  EXPECT_EQ(*parts.begin(), 2);
  EXPECT_EQ(*parts.rbegin(), kMostParts);
}

TEST(TileSizes, OuterToInnerSplitsAreReadTheOtherWay) {
  ASSERT_OK_AND_ASSIGN(
      const auto steps,
      schedule::ParseSteps(R"([["SP", 2, 0, 64, [2, 4], 0], ["SP", 2, 3, 64, [2, 4], 1]])"));
  const std::vector<Tiles> tiles = TilesOf(steps);
  ASSERT_EQ(tiles.size(), 2u);
  EXPECT_EQ(tiles[0].levels, (std::vector<int64_t>{2, 4, 8}));
  EXPECT_EQ(tiles[1].levels, (std::vector<int64_t>{8, 2, 4}));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(WithTiles(steps[i], tiles[i])->ToJson(), steps[i]->ToJson());
}

// Tells whether a parallel loop is inside another one, of its stage or of a stage that it is
// attached to.
bool NestsParallelLoops(const State& state) {
  for (int s = 0; s < state.num_stages(); ++s) {
    int parallel = 0;
    for (const schedule::LoopIter& loop : state.stage(s).loops) {
      parallel += loop.annotation == schedule::Annotation::kParallel;
    }
    schedule::Attach at = state.attach(s);
    for (; at.kind == schedule::Attach::kIter; at = state.attach(at.stage)) {
      for (int i = 0; i <= at.loop; ++i) {
        const bool around = state.stage(at.stage).annotation(i) == schedule::Annotation::kParallel;
        parallel += around && parallel > 0;
      }
    }
    if (parallel > 1) return true;
  }
  return false;
}

// Walks at random from schedules of many operators. A state that Rebuild accepts replays to itself,
// lowers, and keeps the device's limits.
void Walk(bool gpu, std::span<const Case> cases, int mutations_per_case) {
  const Parameters parameters;
  std::map<MutationKind, int> accepted;
  int refused = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    const Task task = MakeTask(c, gpu);
    const auto sketches = GenerateSketches({task, parameters});
    Rng rng(23);
    int number = 0;
    State state = Draw(task, sketches[0], rng);
    for (int i = 0; i < mutations_per_case; ++i) {
      if (i % 50 == 0) {
        number = static_cast<int>(UniformInt(rng, static_cast<int64_t>(sketches.size())));
        state = Draw(task, sketches[number], rng);
      }
      ASSERT_EQ(SketchOf(state.steps(), sketches), number);
      const Genome genome{state.steps(), sketches[number].steps};
      const auto mutation = Mutate(task, parameters, genome, rng);
      if (!mutation.ok()) continue;
      Drop why = Drop::kIllegal;
      const StatusOr<State> next = Rebuild(task, mutation->steps, why);
      if (!next.ok()) {
        ++refused;
        ASSERT_TRUE(gpu || mutation->kind != MutationKind::kTileSize) << next.status();
        continue;
      }
      ++accepted[mutation->kind];
      ASSERT_NE(schedule::HashSteps(next->steps()), schedule::HashSteps({}));
      ASSERT_FALSE(NestsParallelLoops(*next)) << schedule::PrintSteps(next->steps());
      if (i % 4 == 0) {
        const auto replayed = schedule::Replay(task.dag, next->steps());
        ASSERT_OK(replayed.status());
        ASSERT_EQ(schedule::PrintLoops(*replayed), schedule::PrintLoops(*next));
        const auto program = lower::Lower(*next, {.gpu = gpu});
        ASSERT_TRUE(program.ok()) << program.status() << "\n" << schedule::PrintLoops(*next);
        ASSERT_OK_AND_ASSIGN(const State filled, lower::FillExtents(*next));
        if (gpu) ASSERT_OK(CheckGpuLimits(filled, task.hardware, task.device.max_cluster_blocks));
        // Layouts are in their simplest form: otherwise equal programs would be tried again.
        std::vector<schedule::StepPtr> simple = next->steps();
        ASSERT_FALSE(SimplifyLayouts(filled, simple)) << schedule::PrintSteps(next->steps());
        // Each recorded extent is the current one.
        for (int number = 0; number < static_cast<int>(next->steps().size()); ++number) {
          const schedule::StepPtr& step = next->steps()[number];
          if (!schedule::Is<SplitStep>(*step) || !IsFetchSplit(next->steps(), number)) continue;
          int64_t region = 1;
          if (!ClusterStageIn(filled, step->stage())) {
            const schedule::Stage& stage = filled.stage(step->stage());
            for (size_t axis = 0; axis < stage.op->axes().size(); ++axis)
              region *= stage.iters[axis].extent;
          } else {  // the loop that the blocks of a cluster share out
            const std::span<const schedule::StepPtr> before(next->steps().data(), number);
            ASSERT_OK_AND_ASSIGN(const State tile, schedule::Replay(task.dag, before));
            region = tile.stage(step->stage()).loop(schedule::As<SplitStep>(*step)->loop).extent;
          }
          ASSERT_EQ(schedule::As<SplitStep>(*step)->extent, region)
              << "step " << number << " after " << MutationName(mutation->kind) << " of "
              << schedule::PrintSteps(state.steps()) << "\nto "
              << schedule::PrintSteps(next->steps());
        }
      }
      state = *next;
    }
  }
  // Every kind of the target was accepted at least once.
  EXPECT_EQ(accepted.size(), KindsOn(gpu).size());
  EXPECT_GT(accepted[MutationKind::kTileSize], refused);
}

TEST(Mutation, CpuWalksStayLegal) {
  const Case cases[] = {{"matmul", "64,48,96", {"relu"}},
                        {"matmul", "8,8,512"},
                        {"conv2d_nchw", "1,14,14,16,8,3,3,1,1", {"bias", "relu"}},
                        {"conv2d_nhwc", "1,13,13,8,8,3,3,2,1"},
                        {"depthwise_conv2d_nchw", "1,14,14,8,3,3,1,1", {"relu"}},
                        {"conv2d_winograd_nhwc", "1,14,14,8,8"},
                        {"max_pool2d_nchw", "1,16,16,8,3,3,2,1"},
                        {"softmax", "64,100"}};
  Walk(false, cases, 600);
}

// The outer loops have one iteration each, so the search for parallelism goes further inside.
TEST(Mutation, NoCpuScheduleNestsParallelLoops) {
  const Case cases[] = {{"matmul", "4,4,64", {"relu"}},
                        {"conv2d_nhwc", "1,4,4,4,8,3,3,1,1", {"bias", "relu"}},
                        {"conv2d_nchw", "1,6,6,2,4,3,3,1,1", {"relu"}},
                        {"depthwise_conv2d_nhwc", "1,4,4,4,3,3,1,1", {"relu"}},
                        {"softmax", "1,100"},
                        {"layer_norm", "2,64"}};
  const Parameters parameters;
  for (const Case& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    const Task task = MakeTask(c, /*gpu=*/false);
    Rng rng(7);
    for (const Sketch& sketch : GenerateSketches({task, parameters})) {
      for (int draw = 0; draw < 100; ++draw) {
        State state = Draw(task, sketch, rng);
        ASSERT_FALSE(NestsParallelLoops(state)) << schedule::PrintLoops(state);
        for (int i = 0; i < 3; ++i) {
          const auto mutation = Mutate(task, parameters, {state.steps(), sketch.steps}, rng);
          if (!mutation.ok()) continue;
          Drop why = Drop::kIllegal;
          StatusOr<State> next = Rebuild(task, mutation->steps, why);
          if (!next.ok()) continue;
          state = *std::move(next);
          ASSERT_FALSE(NestsParallelLoops(state)) << schedule::PrintLoops(state);
        }
      }
    }
  }
}

TEST(Mutation, GpuWalksStayLegal) {
  const Case cases[] = {{"matmul", "256,256,256"},
                        {"matmul", "8,8,1024"},
                        {"conv2d_nchw", "1,28,28,64,32,3,3,1,1", {"bias", "relu"}},
                        {"conv2d_nhwc", "1,7,7,64,64,3,3,1,1", {"bias", "relu"}},
                        {"conv2d_winograd_nhwc", "1,14,14,32,32"},
                        {"max_pool2d_nchw", "1,56,56,16,3,3,2,1"},
                        {"sum", "512,512,axis=0"},
                        {"sum", "8,100000,axis=1"},
                        {"transpose", "300,512"},
                        {"softmax", "64,1000"},
                        {"matmul", "256,256,256", {}, ir::kFloat16},
                        {"attention", "2,64,32", {}, ir::kFloat16}};
  Walk(true, cases, 800);
}

// Tells whether the kind is a hint that only some draws of some sketches have.
bool IsOfMatrixUnits(MutationKind kind) {
  return std::ranges::any_of(
      std::array{ir::Hint::kMatrixUnit, ir::Hint::kSwizzle, ir::Hint::kBulkCopies,
                 ir::Hint::kPersistentBlocks, ir::Hint::kStreamK},
      [&](ir::Hint hint) { return kind == MutationKind(hint); });
}

TEST(Mutation, EachKindChangesWhatItSays) {
  const Case conv = {"conv2d_nhwc", "1,28,28,32,16,3,3,1,1", {"bias", "relu"}};
  const Case half = {"matmul", "256,256,256", {}, ir::kFloat16};
  // The number of its tiles is no multiple of the multiprocessors, and each of these has several
  // tiles.
  const Case large = {"matmul", "1536,1536,1536", {}, ir::kFloat16};
  const Case pool = {"max_pool2d_nchw", "1,56,56,16,3,3,2,1"};
  const Case relu = {"relu", "1000,1000"};
  struct Change {
    MutationKind kind;
    bool gpu;
    Case c;
  };
  std::vector<Change> cases = {
      {MutationKind::kFetchWidth, true, conv},       {MutationKind::kBuffering, true, conv},
      {MutationKind::kLayout, true, conv},           {MutationKind::kThreads, true, relu},
      {MutationKind::kComputeLocation, false, conv}, {MutationKind::kParallel, false, conv},
      {MutationKind::kVectorize, false, pool}};
  for (const HintChoice& choice : HintChoices()) {
    if (choice.gpu_weight > 0)
      cases.push_back({choice.hint, true,
                       choice.hint == ir::Hint::kStreamK ? large
                       : IsOfMatrixUnits(choice.hint)    ? half
                                                         : conv});
    if (choice.cpu_weight > 0) cases.push_back({choice.hint, false, conv});
  }
  for (const auto& [kind, gpu, c] : cases) {
    SCOPED_TRACE(fmt::format("{} gpu {}", MutationName(kind), gpu));
    Task task = MakeTask(c, gpu);
    task.device.multiprocessors = gpu ? 132 : 0;
    const Parameters parameters;
    const auto sketches = GenerateSketches({task, parameters});
    Rng rng(7);
    std::set<std::string> forms;
    for (int i = 0; i < 60; ++i) {
      const bool is_rare = IsOfMatrixUnits(kind);
      const Sketch& sketch = sketches[is_rare ? static_cast<size_t>(i) % sketches.size() : 0];
      const State state = Draw(task, sketch, rng);
      const auto mutation = MutateAs(kind, task, parameters, {state.steps(), sketch.steps}, rng);
      if (!mutation.ok()) {
        if (is_rare && mutation.status().code() == absl::StatusCode::kNotFound) continue;
        ASSERT_EQ(mutation.status().code(), absl::StatusCode::kFailedPrecondition)
            << mutation.status();
        continue;
      }
      ASSERT_EQ(mutation->kind, kind);
      // The steps of the sketch keep their tiles.
      for (size_t s = 0; s < sketch.steps.size(); ++s)
        ASSERT_EQ(mutation->steps[s]->Hash(), state.steps()[s]->Hash());
      ASSERT_NE(schedule::HashSteps(mutation->steps), schedule::HashSteps(state.steps()));
      forms.insert(schedule::PrintSteps(mutation->steps));
    }
    EXPECT_GT(forms.size(), 5u);
  }
}

// Changes of tiles lead from one group of four warps to several, whose block takes all registers,
// and from units of one warp to the copy engine.
TEST(Mutation, TilesOfAnOnlineSoftmaxChangeWithTheirHints) {
  const auto dag = *dag::BuildOp("attention", "4,512,64", {.dtype = ir::kFloat16});
  const Task task(dag, *target::ParseTarget("cuda -arch=sm_90 -max_shared_memory_per_block=232448"),
                  {}, "[]");
  const int last = dag->size() - 1;
  // Returns the tiles and the values of both hints that a change leads to.
  const auto next_to = [&](std::string_view tile, std::string_view hints) {
    const auto steps =
        *schedule::ParseSteps(fmt::format(R"([["OS", {}, {}]{}])", last, tile, hints));
    std::set<std::array<int, 5>> found;
    Rng rng(1);
    for (int i = 0; i < 300; ++i) {
      const auto mutation = MutateAs(MutationKind::kTileSize, task, Parameters(), {steps, {}}, rng);
      if (!mutation.ok()) continue;
      Drop why = Drop::kIllegal;
      const auto state = Rebuild(task, mutation->steps, why);
      if (!state.ok()) continue;
      const schedule::OnlineTile& made = *state->online();
      const ir::Hints& of = state->stage(last).hints;
      found.insert({static_cast<int>(made.matrix_unit), made.warps, made.keys,
                    of[ir::Hint::kMinBlocks], of[ir::Hint::kBulkCopies]});
    }
    return found;
  };
  const auto hints = [&](int blocks, int bulk) {
    return fmt::format(R"(, ["PR", {}, 0, "min_blocks${}"], ["PR", {}, 0, "bulk_copies${}"])", last,
                       blocks, last, bulk);
  };
  const auto from_one = next_to("16, 64, 4, 2, 2", hints(2, 1));
  EXPECT_TRUE(from_one.contains({2, 8, 64, 1, 1}));
  EXPECT_TRUE(from_one.contains({2, 4, 96, 2, 1}));
  const auto from_two = next_to("16, 128, 8, 2, 2", hints(0, 1));
  EXPECT_TRUE(from_two.contains({2, 8, 96, 0, 1}));
  EXPECT_TRUE(from_two.contains({2, 8, 160, 0, 1}));
  EXPECT_TRUE(from_two.contains({2, 4, 128, 0, 1}));
  const auto from_warp =
      next_to("16, 64, 4, 2, 1", fmt::format(R"(, ["PR", {}, 0, "min_blocks$0"])", last));
  EXPECT_TRUE(from_warp.contains({2, 4, 64, 0, 1}));
  EXPECT_TRUE(from_warp.contains({2, 4, 64, 0, 0}));
}

TEST(Mutation, EachKindHasItsName) {
  std::set<std::string_view> names;
  std::set<MutationKind> kinds;
  for (const bool gpu : {false, true}) {
    for (const MutationKind kind : KindsOn(gpu)) {
      kinds.insert(kind);
      names.insert(MutationName(kind));
    }
  }
  const auto is_changed = [](const HintChoice& choice) {
    return choice.cpu_weight > 0 || choice.gpu_weight > 0;
  };
  const auto hints = static_cast<size_t>(std::ranges::count_if(HintChoices(), is_changed));
  EXPECT_EQ(kinds.size(), 8 + hints);
  EXPECT_EQ(names.size(), kinds.size());
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(MutationName(ir::Hint::kUnroll), "unroll depth");
  EXPECT_EQ(MutationName(MutationKind::kVectorize), "vector loops");
}

TEST(Mutation, WithoutAnythingToChangeSaysSo) {
  const Task task = MakeTask({"relu", "1"}, true);
  const Parameters parameters;
  const State state(task.dag);
  Rng rng(1);
  EXPECT_THAT(Mutate(task, parameters, {state.steps()}, rng),
              StatusIs(StatusCode::kNotFound, testing::_));
}

TEST(Mutation, SubjectsAreNamed) {
  const Task task = MakeTask({"matmul", "64,64,64"}, false);
  ASSERT_OK_AND_ASSIGN(
      const auto steps,
      schedule::ParseSteps(R"([["SP", 2, 2, 64, [4], 1], ["SP", 2, 0, 64, [4], 1]])"));
  EXPECT_EQ(SubjectOfStep(task.dag, steps, 0), "T_matmul_NN.k");
  EXPECT_EQ(SubjectOfStep(task.dag, steps, static_cast<int>(steps.size())), "");
}

TEST(Rebuild, SplitsBehindAChangedRfactorStayExact) {
  const Task task = MakeTask({"matmul", "8,8,512"}, false);
  // The reduction has 64 parts of 8 elements. The stage of the parts splits its 8 elements again.
  ASSERT_OK_AND_ASSIGN(auto steps,
                       schedule::ParseSteps(R"([["SP", 2, 2, 512, [8], 1], ["RF", 2, 2, 2],)"
                                            R"( ["SP", 2, 3, 8, [4], 1]])"));
  Drop why = Drop::kIllegal;
  ASSERT_OK_AND_ASSIGN(const State state, Rebuild(task, steps, why));
  steps[0] = std::make_shared<SplitStep>(2, 2, 512, std::vector<int64_t>{2}, true);
  ASSERT_OK_AND_ASSIGN(const State changed, Rebuild(task, steps, why));
  const auto& split = *schedule::As<SplitStep>(*changed.steps()[2]);
  EXPECT_EQ(split.extent, 2);
  EXPECT_EQ(split.lengths, std::vector<int64_t>{2});
}

TEST(Crossover, TakesEveryChoiceFromOneOfTheParents) {
  for (const bool gpu : {false, true}) {
    SCOPED_TRACE(gpu);
    const Task task = MakeTask({"conv2d_nhwc", "1,28,28,32,16,3,3,1,1", {"bias", "relu"}}, gpu);
    const Parameters parameters;
    const auto sketches = GenerateSketches({task, parameters});
    Rng rng(3);
    int children = 0, legal = 0;
    for (int i = 0; i < 300; ++i) {
      const State a = Draw(task, sketches[0], rng), b = Draw(task, sketches[0], rng);
      const auto child = Cross(a.steps(), b.steps(), parameters, rng);
      if (!child.ok()) continue;
      ++children;
      ASSERT_EQ(child->size(), a.steps().size());
      int from_a = 0, from_b = 0;
      for (size_t s = 0; s < child->size(); ++s) {
        const uint64_t hash = (*child)[s]->Hash();
        const bool in_a = hash == a.steps()[s]->Hash();
        const bool in_b = s < b.steps().size() && hash == b.steps()[s]->Hash();
        ASSERT_TRUE(in_a || in_b);
        from_a += in_a && !in_b;
        from_b += in_b && !in_a;
      }
      EXPECT_GT(from_a, 0);
      EXPECT_GT(from_b, 0);
      Drop why = Drop::kIllegal;
      const StatusOr<State> state = Rebuild(task, *child, why);
      if (!state.ok()) {
        ASSERT_TRUE(gpu) << state.status();
        continue;
      }
      ++legal;
      ASSERT_OK(lower::Lower(*state, {.gpu = gpu}).status());
    }
    EXPECT_GT(children, 100);
    EXPECT_GT(legal, 20);
  }
}

}  // namespace
}  // namespace kiln::search
