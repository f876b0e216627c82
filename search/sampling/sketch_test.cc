#include "search/space/sketch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample.h"

namespace kiln::search {
namespace {

Task MakeTask(dag::DagPtr dag) {
  target::HardwareParams hardware;
  hardware.num_cores = 4;
  return Task(std::move(dag), target::Target{}, hardware, "[]");
}

std::vector<Sketch> CpuSketches(const dag::DagPtr& dag) {
  const Task task = MakeTask(dag);
  const Parameters parameters;
  auto sketches = GenerateSketches({task, parameters}, CpuSketchRules());
  for (const Sketch& sketch : sketches) {
    // Each sketch consists of legal steps.
    EXPECT_TRUE(schedule::Replay(dag, sketch.state.steps()).ok());
  }
  return sketches;
}

size_t CountSketches(const dag::DagPtr& dag) { return CpuSketches(dag).size(); }

size_t CountSketches(std::string_view op, std::string_view args, std::string_view epilogue = "") {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  EXPECT_TRUE(dag.ok()) << dag.status();
  return CountSketches(*dag);
}

Task MakeGpuTask(dag::DagPtr dag) {
  return Task(std::move(dag), *target::ParseTarget("cuda"), {}, "[]");
}

// Returns sketches without reduction splits, which TVM does not have.
std::vector<Sketch> GpuSketches(const dag::DagPtr& dag, bool reduction_splits = false) {
  const Task task = MakeGpuTask(dag);
  const Parameters parameters{.reduction_splits = reduction_splits};
  auto sketches = GenerateSketches({task, parameters});
  for (const Sketch& sketch : sketches)
    EXPECT_TRUE(schedule::Replay(dag, sketch.state.steps()).ok());
  return sketches;
}

std::vector<Sketch> GpuSketches(std::string_view op, std::string_view args,
                                std::string_view epilogue = "", bool reduction_splits = false) {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  EXPECT_TRUE(dag.ok()) << dag.status();
  return GpuSketches(*dag, reduction_splits);
}

dag::DagPtr ChainedMatmuls() {
  dag::DagBuilder b;
  const int64_t n = 512;
  auto x = b.Placeholder("A", ir::kFloat32, {n, n});
  auto y = b.Placeholder("B", ir::kFloat32, {n, n});
  auto z = b.Placeholder("C", ir::kFloat32, {n, n});
  const auto multiply = [&](std::string name, dag::TensorRef p, dag::TensorRef q) {
    return b.Reduce(std::move(name), {{"i", n}, {"j", n}}, {{"k", n}}, dag::Combiner::kSum,
                    [&](dag::Vars v) { return p(v[0], v[2]) * q(v[2], v[1]); });
  };
  auto d = multiply("D", x, y);
  multiply("E", d, z);
  return *b.Build();
}

dag::DagPtr ReduceToScalar(int64_t n) {
  dag::DagBuilder b;
  auto x = b.Placeholder("A", ir::kFloat32, {n});
  b.Reduce("B", {}, {{"k", n}}, dag::Combiner::kSum, [&](dag::Vars v) { return x(v[0]); });
  return *b.Build();
}

// The numbers are those of TVM v0.14 for four cores.
TEST(Sketch, CountsOfTvm) {
  EXPECT_EQ(CountSketches("matmul", "512,512,512"), 3u);
  EXPECT_EQ(CountSketches("matmul", "8,8,512"), 5u) << "two with rfactor";
  EXPECT_EQ(CountSketches(ChainedMatmuls()), 9u);
  EXPECT_EQ(CountSketches("conv2d_nchw", "1,56,56,512,512,3,3,1,1", "bias,relu"), 3u)
      << "fusion at two levels, or none";
  EXPECT_EQ(CountSketches("max_pool2d_nchw", "1,56,56,512,2,2,1,1"), 1u);
  EXPECT_EQ(CountSketches("min", "10,1024,axis=1"), 3u);
  EXPECT_EQ(CountSketches("softmax", "512,512"), 9u);
  EXPECT_EQ(CountSketches(ReduceToScalar(10)), 3u);
}

TEST(Sketch, ConvolutionTilesSixLevelsAndFusesIntoTheRelu) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::BuildOp("conv2d_nhwc", "1,14,14,32,16,3,3,1,1",
                                                           {.epilogue = {"bias", "relu"}}));
  const Task task = MakeTask(dag);
  const Parameters parameters;
  const auto sketches = GenerateSketches({task, parameters}, CpuSketchRules());
  int conv = -1;
  for (int i = 0; i < dag->size(); ++i) {
    if (dag->op(i).reduce_axes().size() == 3) conv = i;
  }
  ASSERT_GE(conv, 0);
  int fused = 0;
  for (const Sketch& sketch : sketches) {
    EXPECT_EQ(sketch.state.stage(conv).loops.size(), 4u * 4 + 3 * 2);
    EXPECT_FALSE(sketch.state.concrete());
    fused += sketch.state.attach(conv).kind == schedule::Attach::kIter;
  }
  EXPECT_EQ(fused, 2);
}

dag::TensorRef Product(dag::DagBuilder& b, const std::string& name, int64_t n) {
  const auto x = b.Placeholder(name + "_x", ir::kFloat32, {n, n});
  const auto w = b.Placeholder(name + "_w", ir::kFloat32, {n, n});
  return b.Reduce(name, {{"i", n}, {"j", n}}, {{"k", n}}, dag::Combiner::kSum,
                  [&](dag::Vars v) { return x(v[0], v[2]) * w(v[2], v[1]); });
}

// Returns the kinds of a sketch's steps, without the numbers that say where they apply.
std::string TagsOf(const Sketch& sketch) {
  std::string tags;
  for (const schedule::StepPtr& step : sketch.steps) tags += std::string(step->tag()) + " ";
  return tags;
}

// Returns the sketches of a reduction s with a residual, and those of the same reduction with
// relu(y * scale + shift) as a second output.
std::pair<std::vector<std::string>, std::vector<std::string>> SketchesOfOneAndTwoOutputs(
    std::string_view sums, bool gpu) {
  const auto tags = [&](std::string_view inputs, std::string_view body) {
    const auto parsed = dag::ParseDagText(fmt::format(R"(
{}
input residual: float32[1, 14, 14, 32]
{}
y[n: 1, h: 14, w: 14, c: 32] = {}
)",
                                                      sums, inputs, body));
    KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
    const Task task = gpu ? Task(parsed->dag, *target::ParseTarget("cuda -arch=sm_90"), {}, "[]")
                          : MakeTask(parsed->dag);
    std::vector<std::string> all;
    for (const Sketch& sketch : GenerateSketches({task, Parameters()})) {
      EXPECT_TRUE(schedule::Replay(parsed->dag, sketch.state.steps()).ok());
      all.push_back(TagsOf(sketch));
    }
    return all;
  };
  constexpr std::string_view kSum = "s[n, h, w, c] + residual[n, h, w, c]";
  return {tags("", kSum),
          tags("input scale: float32[32]\ninput shift: float32[32]",
               fmt::format("({}, max(({})*scale[c] + shift[c], 0.0))", kSum, kSum))};
}

constexpr std::string_view kConvolution = R"(
input x: float32[1, 14, 14, 64]
input k: float32[3, 3, 64, 32]
pad[n: 1, h: 16, w: 16, c: 64] =
    if(h >= 1 && h < 15 && w >= 1 && w < 15, x[n, h - 1, w - 1, c], 0.0)
s[n: 1, h: 14, w: 14, c: 32] =
    sum(rh: 3, rw: 3, rc: 64) pad[n, h + rh, w + rw, rc] * k[rh, rw, rc, c])";
constexpr std::string_view kPool = R"(
input x: float32[1, 28, 28, 32]
s[n: 1, h: 14, w: 14, c: 32] = max(rh: 2, rw: 2) x[n, 2 * h + rh, 2 * w + rw, c])";

TEST(Sketch, ASecondOutputTakesNoSketchAway) {
  for (const bool gpu : {false, true}) {
    for (const std::string_view sums : {kConvolution, kPool}) {
      SCOPED_TRACE(fmt::format("gpu {}: {}", gpu, sums));
      const auto [one, two] = SketchesOfOneAndTwoOutputs(sums, gpu);
      EXPECT_GT(one.size(), 0u);
      EXPECT_EQ(one, two);
    }
  }
}

TEST(Sketch, OuterProductsWithTwoOutputs) {
  const auto parsed = dag::ParseDagText(R"(
input x: float32[64]
input y: float32[64]
z[i: 64, j: 64] = (x[i] * y[j], x[i] + y[j])
)");
  ASSERT_OK(parsed.status());
  EXPECT_GT(CountSketches(parsed->dag), 0u);
  EXPECT_FALSE(GpuSketches(parsed->dag).empty());
}

using Names = std::set<std::string>;

// Returns the stages that are computed inside the loops of stage `reader`.
Names FusedInto(std::string_view reader, const Sketch& sketch) {
  Names fused;
  const schedule::State& state = sketch.state;
  for (int s = 0; s < state.num_stages(); ++s) {
    const schedule::Attach& place = state.attach(s);
    if (place.kind == schedule::Attach::kIter && state.stage(place.stage).op->name() == reader)
      fused.insert(state.stage(s).op->name());
  }
  return fused;
}

bool IsFused(std::string_view name, const Sketch& sketch) {
  const schedule::State& state = sketch.state;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).op->name() == name && state.attach(s).kind == schedule::Attach::kIter)
      return true;
  }
  return false;
}

// Returns the number of loops of the stage, 0 if there is no such stage.
size_t LoopsOf(const Sketch& sketch, std::string_view name) {
  for (int s = 0; s < sketch.state.num_stages(); ++s) {
    if (sketch.state.stage(s).op->name() == name) return sketch.state.stage(s).loops.size();
  }
  return 0;
}

// A stage that broadcasts two vectors is tiled on its own.
TEST(Sketch, ProductsDoNotFuseIntoTiledReaders) {
  dag::DagBuilder b;
  const int64_t n = 64;
  const auto rows = b.Placeholder("rows", ir::kFloat32, {n});
  const auto columns = b.Placeholder("columns", ir::kFloat32, {n});
  const auto product = Product(b, "P", n);
  b.Compute("y", {{"i", n}, {"j", n}},
            [&](dag::Vars v) { return product(v[0], v[1]) + rows(v[0]) + columns(v[1]); });
  const dag::DagPtr dag = *b.Build();
  int fused = 0, tiled = 0;
  for (const Sketch& sketch : CpuSketches(dag)) {
    const bool is_tiled = LoopsOf(sketch, "y") == 4u * 2;
    tiled += is_tiled;
    fused += FusedInto("y", sketch) == Names{"P"};
    EXPECT_TRUE(!is_tiled || FusedInto("y", sketch).empty()) << schedule::PrintLoops(sketch.state);
  }
  EXPECT_EQ(tiled, 1);
  EXPECT_EQ(fused, 2) << "at two levels, where the loops of y follow those of P";
  for (const Sketch& sketch : GpuSketches(dag)) EXPECT_EQ(FusedInto("y", sketch), Names{"P"});
}

TEST(Sketch, OneOfTwoProductsFusesIntoTheirSum) {
  dag::DagBuilder b;
  const int64_t n = 64;
  const auto p = Product(b, "P", n), q = Product(b, "Q", n);
  b.Compute("y", {{"i", n}, {"j", n}}, [&](dag::Vars v) { return p(v[0], v[1]) + q(v[0], v[1]); });
  const dag::DagPtr dag = *b.Build();
  std::map<Names, int> counts;
  for (const Sketch& sketch : CpuSketches(dag)) ++counts[FusedInto("y", sketch)];
  EXPECT_EQ(counts, (std::map<Names, int>{{{"P"}, 2}, {{"Q"}, 2}, {{}, 1}})) << "at two levels";
  for (const Sketch& sketch : GpuSketches(dag)) {
    EXPECT_EQ(FusedInto("y", sketch), Names{"Q"});
    // The sums of the other one are in registers as well: P has a copy of its own for them.
    EXPECT_EQ(FusedInto("P", sketch), Names{"P.local"}) << schedule::PrintLoops(sketch.state);
  }
}

// The rows broadcast two vectors; a reduction sums them.
TEST(Sketch, TiledStagesDoNotFuseIntoReductions) {
  dag::DagBuilder b;
  const int64_t n = 64;
  const auto rows = b.Placeholder("rows", ir::kFloat32, {n});
  const auto columns = b.Placeholder("columns", ir::kFloat32, {n});
  const auto w = b.Placeholder("w", ir::kFloat32, {n});
  const auto outer = b.Compute("outer", {{"i", n}, {"j", n}},
                               [&](dag::Vars v) { return Exp(rows(v[0])) * Exp(columns(v[1])); });
  b.Reduce("y", {{"i", n}, {"j", n}}, {{"k", n}}, dag::Combiner::kSum,
           [&](dag::Vars v) { return outer(v[0], v[1]) * w(v[2]); });
  const dag::DagPtr dag = *b.Build();
  const std::vector<Sketch> cpu = CpuSketches(dag), gpu = GpuSketches(dag);
  ASSERT_FALSE(cpu.empty());
  ASSERT_FALSE(gpu.empty());
  for (const Sketch& sketch : cpu) {
    EXPECT_EQ(LoopsOf(sketch, "outer"), 4u * 2) << schedule::PrintLoops(sketch.state);
    EXPECT_FALSE(IsFused("outer", sketch)) << schedule::PrintLoops(sketch.state);
  }
  for (const Sketch& sketch : gpu)
    EXPECT_FALSE(IsFused("outer", sketch)) << schedule::PrintLoops(sketch.state);
}

// The sum reads no element twice, so it is not tiled for itself, and has the axes of what it reads.
// Tiles of `outer` have no place for its reduction.
TEST(Sketch, TiledStagesDoNotFuseIntoReductionsThatAreNotTiled) {
  dag::DagBuilder b;
  const int64_t n = 16;
  const auto rows = b.Placeholder("rows", ir::kFloat32, {n});
  const auto columns = b.Placeholder("columns", ir::kFloat32, {n});
  const auto c = b.Placeholder("c", ir::kFloat32, {n, n, n});
  const auto outer = b.Compute("outer", {{"i", n}, {"j", n}},
                               [&](dag::Vars v) { return Exp(rows(v[0])) * Exp(columns(v[1])); });
  b.Reduce("y", {{"i", n}, {"j", n}}, {{"k", n}}, dag::Combiner::kSum,
           [&](dag::Vars v) { return outer(v[0], v[1]) * c(v[0], v[1], v[2]); });
  const std::vector<Sketch> sketches = CpuSketches(*b.Build());
  ASSERT_FALSE(sketches.empty());
  for (const Sketch& sketch : sketches) {
    EXPECT_FALSE(IsFused("outer", sketch)) << schedule::PrintLoops(sketch.state);
  }
}

TEST(GpuSketch, CountsOfTvm) {
  EXPECT_EQ(GpuSketches("matmul", "512,512,512").size(), 1u);
  EXPECT_EQ(GpuSketches("matmul", "8,8,1024").size(), 2u) << "one reduces across threads";
  EXPECT_EQ(GpuSketches(ChainedMatmuls()).size(), 1u);
  EXPECT_EQ(GpuSketches("conv2d_nchw", "1,56,56,512,512,3,3,1,1", "bias,relu").size(), 1u);
  EXPECT_EQ(GpuSketches("min", "10,1024,axis=1").size(), 2u);
  EXPECT_EQ(GpuSketches("softmax", "512,512").size(), 4u);
  EXPECT_EQ(GpuSketches("conv2d_winograd_nhwc", "1,14,14,256,256").size(), 1u);
  EXPECT_EQ(GpuSketches(ReduceToScalar(128)).size(), 2u);
}

TEST(GpuSketch, PoolingIsTiledOrLeftAsItIs) {
  for (const char* op : {"max_pool2d_nchw", "max_pool2d_nhwc"}) {
    const auto sketches = GpuSketches(op, "1,56,56,512,2,2,1,0");
    ASSERT_EQ(sketches.size(), 2u) << op;
    const bool first = sketches[0].steps.empty();
    EXPECT_TRUE(sketches[first ? 0 : 1].steps.empty());
    const schedule::State& tiled = sketches[first ? 1 : 0].state;
    EXPECT_EQ(tiled.attach(tiled.num_stages() - 2).kind, schedule::Attach::kIter);
  }
}

// Windows that overlap read the padded input once for a thread's tile, or once for each window.
TEST(GpuSketch, PaddingIsComputedForAThreadsTile) {
  size_t attached = 0;
  const auto sketches = GpuSketches("avg_pool2d_nchw", "1,56,56,64,3,3,1,1");
  for (const Sketch& sketch : sketches) {
    const schedule::State& state = sketch.state;
    for (int s = 0; s < state.num_stages(); ++s) {
      attached += state.stage(s).op->name() == "pad_temp" &&
                  state.attach(s).kind == schedule::Attach::kIter;
    }
  }
  EXPECT_EQ(attached, 1u);
  EXPECT_EQ(sketches.size(), 3u);
}

// Two vectors that are broadcast do not make a stage tiled: mean, squares and result share their
// rows.
TEST(GpuSketch, NormalizationsFuseIntoOneKernel) {
  for (const char* op : {"layer_norm", "rms_norm"}) {
    bool one = false;
    for (const Sketch& sketch : GpuSketches(op, "64,512")) {
      int roots = 0;
      for (int s = 0; s < sketch.state.num_stages(); ++s) {
        roots += !sketch.state.stage(s).is_placeholder() &&
                 sketch.state.attach(s).kind == schedule::Attach::kRoot;
      }
      one = one || roots == 1;
    }
    EXPECT_TRUE(one) << op;
  }
}

// A tensor that is read by a tiled stage and by another one is cached for the tiled stage alone.
TEST(GpuSketch, OnlyTiledReadersCacheTheirInputs) {
  dag::DagBuilder b;
  auto x = b.Placeholder("A", ir::kFloat32, {128, 128});
  auto y = b.Placeholder("B", ir::kFloat32, {128, 128});
  auto product = b.Reduce("C", {{"i", 128}, {"j", 128}}, {{"k", 128}}, dag::Combiner::kSum,
                          [&](dag::Vars v) { return x(v[0], v[2]) * y(v[2], v[1]); });
  b.Compute("D", {{"i", 128}, {"j", 128}},
            [&](dag::Vars v) { return product(v[0], v[1]) + x(v[0], v[1]); });
  const auto sketches = GpuSketches(*b.Build());
  ASSERT_EQ(sketches.size(), 1u);
  const schedule::State& state = sketches[0].state;
  int shared = 0;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).op->name() != "A.shared") continue;
    ++shared;
    ASSERT_EQ(state.dag()->consumers(s).size(), 1u);
    EXPECT_EQ(state.dag()->op(state.dag()->consumers(s)[0]).name(), "C");
  }
  EXPECT_EQ(shared, 1);
}

// The maximum and sum of a softmax are reduced by the threads that then scale the row, or in
// kernels of their own.
TEST(GpuSketch, ReductionsFuseIntoTheirReader) {
  const auto sketches = GpuSketches("softmax", "64,512");
  int attached = 0;
  for (const Sketch& sketch : sketches) {
    for (int s = 0; s < sketch.state.num_stages(); ++s)
      attached += sketch.state.attach(s).kind == schedule::Attach::kIter;
  }
  EXPECT_EQ(attached, 0 + 0 + 1 + 2) << "neither, the maximum alone, the sum alone, both";
}

// The ways in which a sketch shares out its reduction.
struct Parts {
  bool blocks = false, groups = false;
  auto operator<=>(const Parts&) const = default;
};

Parts PartsOf(const Sketch& sketch) {
  Parts parts;
  for (size_t i = 1; i < sketch.steps.size(); ++i) {
    if (!schedule::Is<schedule::RfactorStep>(*sketch.steps[i])) continue;
    const schedule::SplitStep& split = *schedule::As<schedule::SplitStep>(*sketch.steps[i - 1]);
    EXPECT_FALSE(split.inner_to_outer);
    (split.lengths.size() == 1 ? parts.blocks : parts.groups) = true;
    for (int64_t length : split.lengths) EXPECT_EQ(length, 0) << "sampling chooses it";
  }
  return parts;
}

TEST(GpuSketch, ReductionsOfTiledStagesAreSharedOut) {
  const struct {
    const char *op, *args, *epilogue;
    size_t others;  // sketches without splits
  } cases[] = {{"matmul", "512,512,512", "", 1},
               {"matmul", "8,8,1024", "relu", 2},
               {"dense", "1,1000,512", "bias", 1},
               {"batch_matmul", "4,64,64,64", "", 1},
               {"conv2d_nchw", "1,7,7,512,512,3,3,1,1", "bias,relu", 1},
               {"conv2d_nhwc", "1,7,7,512,512,3,3,1,1", "bias,relu", 1},
               {"conv2d_nhwc", "1,224,224,64,3,7,7,2,3", "bias,relu", 1}};
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.op, c.args));
    const auto sketches = GpuSketches(c.op, c.args, c.epilogue, true);
    std::map<Parts, size_t> found;
    for (const Sketch& sketch : sketches) {
      ++found[PartsOf(sketch)];
      int roots = 0, fetches = 0;
      for (int s = 0; s < sketch.state.num_stages(); ++s) {
        const schedule::Stage& stage = sketch.state.stage(s);
        roots += !stage.is_placeholder() && sketch.state.attach(s).kind == schedule::Attach::kRoot;
        fetches += stage.op->name().ends_with(".shared");
      }
      if (PartsOf(sketch) == Parts{}) continue;
      EXPECT_EQ(roots, 1 + PartsOf(sketch).blocks) << "a kernel of partial sums, one for the rest";
      EXPECT_EQ(fetches, 2);
    }
    EXPECT_EQ(sketches.size(), c.others + 3);
    EXPECT_EQ((found[{false, false}]), c.others);
    EXPECT_EQ((found[{true, false}]), 1u);
    EXPECT_EQ((found[{false, true}]), 1u);
    EXPECT_EQ((found[{true, true}]), 1u) << "the filter's rows and columns where nothing is longer";
  }
}

TEST(GpuSketch, ShortOrPrimeReductionsAreNotSharedOut) {
  EXPECT_EQ(GpuSketches("matmul", "64,64,16", "", true).size(), 1u);
  EXPECT_EQ(GpuSketches("matmul", "64,64,61", "", true).size(), 1u);
}

// Threads go along the columns; groups of threads and blocks go along the terms of the sums.
TEST(GpuSketch, SumsOfColumnsAreTiledAndSharedOut) {
  for (const auto& [op, args] :
       {std::pair{"sum", "4096,4096,axis=0"}, std::pair{"global_avg_pool2d_nhwc", "8,14,14,256"}}) {
    std::map<Parts, size_t> found;
    const auto sketches = GpuSketches(op, args, "", true);
    for (const Sketch& sketch : sketches) {
      ++found[PartsOf(sketch)];
      for (int s = 0; s < sketch.state.num_stages(); ++s) {
        EXPECT_FALSE(sketch.state.stage(s).op->name().ends_with(".shared"))
            << "no term is read twice";
      }
    }
    EXPECT_EQ((found[{false, false}]), 2u) << "tiled, and one loop over all results";
    EXPECT_EQ((found[{true, false}]), 1u);
    EXPECT_EQ((found[{false, true}]), 1u);
    EXPECT_EQ((found[{true, true}]), 1u);
  }
}

TEST(GpuSketch, FewLongRowsAreSharedOutOverBlocks) {
  const auto parts = [](const char* args) {
    size_t blocks = 0;
    for (const Sketch& sketch : GpuSketches("sum", args, "", true))
      blocks += PartsOf(sketch).blocks;
    return blocks;
  };
  EXPECT_EQ(parts("16777216"), 1u);
  EXPECT_EQ(parts("32,64,56,56,axis=0,axis=2,axis=3"), 1u);
  EXPECT_EQ(parts("4096,4096,axis=1"), 0u) << "rows enough";
  EXPECT_EQ(parts("8,512,axis=1"), 0u) << "short";
}

std::map<Parts, size_t> PartsOfText(std::string_view text) {
  const auto parsed = dag::ParseDagText(text);
  KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
  std::map<Parts, size_t> found;
  for (const Sketch& sketch : GpuSketches(parsed->dag, true)) ++found[PartsOf(sketch)];
  return found;
}

// Sums of several values, and of an argmax, have the sketches that a sum of one value has.
TEST(GpuSketch, ReductionsOfSeveralValuesAreSharedOut) {
  for (const char* values : {"sum({}) x[i, j]", "sum({}) (x[i, j], x[i, j] * x[i, j])",
                             "max({}) (x[i, j], -x[i, j], x[i, j] + 1.0)"}) {
    const auto found = [&](std::string_view kept, std::string_view summed) {
      return PartsOfText(fmt::format("input x: float32[8192, 256]\ns[{}] = {}\n", kept,
                                     fmt::format(fmt::runtime(values), summed)));
    };
    EXPECT_EQ(found("j: 256", "i: 8192"),
              (std::map<Parts, size_t>{
                  {{false, false}, 2}, {{true, false}, 1}, {{false, true}, 1}, {{true, true}, 1}}))
        << values;
    EXPECT_EQ(found("", "i: 8192, j: 256"),
              (std::map<Parts, size_t>{{{false, false}, 2}, {{true, false}, 1}}))
        << values;
  }
  EXPECT_EQ(PartsOfText("input x: float32[8, 50257]\ns[i: 8] = argmax(k: 50257) (k, x[i, k])\n"),
            (std::map<Parts, size_t>{{{false, false}, 2}, {{true, false}, 1}}));
}

// A reader that has one element for each row is computed by the block that reduces the row. Rows
// are also reduced in kernels of their own where there are few of them.
TEST(GpuSketch, RowsAreReducedWhereTheyAreRead) {
  const auto blocks_of_rows = [](std::string_view text) {
    const auto parsed = dag::ParseDagText(text);
    KILN_CHECK(parsed.ok(), "{}", Message(parsed.status()));
    size_t whole = 0, shared = 0;
    for (const Sketch& sketch : GpuSketches(parsed->dag, true)) {
      const schedule::State& state = sketch.state;
      const int reader = state.num_stages() - 1;
      const bool has_threads = state.stage(reader).loops.size() > 1;
      whole += !has_threads && state.NumAttached(reader) > 0;
      shared += PartsOf(sketch).blocks;
    }
    return std::pair(whole, shared);
  };
  constexpr std::string_view kMoments =
      "input x: float32[{0}, 8192]\ns[i: {0}] = sum(k: 8192) (x[i, k], x[i, k] * x[i, k])\n"
      "y[i: {0}] = s.v1[i] - s.v0[i] * s.v0[i]\n";
  EXPECT_EQ(blocks_of_rows(fmt::format(kMoments, 4096)), std::pair(size_t{1}, size_t{0}));
  EXPECT_EQ(blocks_of_rows(fmt::format(kMoments, 8)), std::pair(size_t{2}, size_t{1}))
      << "whole rows, and the parts of a row";
  constexpr std::string_view kLogSoftmax =
      "input x: float32[8, 50257]\nm[i: 8] = max(k: 50257) x[i, k]\n"
      "s[i: 8] = sum(k: 50257) exp(x[i, k] - m[i])\n"
      "y[i: 8, k: 50257] = x[i, k] - m[i] - log(s[i])\n";
  EXPECT_GT(blocks_of_rows(kLogSoftmax).second, 0u);
}

TEST(GpuSketch, WhatIsReadAcrossRowsIsCopiedThroughSharedMemory) {
  const auto copies = [](const char* op, const char* args, const char* epilogue = "") {
    size_t found = 0;
    const auto sketches = GpuSketches(op, args, epilogue);
    for (const Sketch& sketch : sketches)
      found += !sketch.steps.empty() && schedule::Is<schedule::CacheReadStep>(*sketch.steps[0]);
    return std::pair(found, sketches.size());
  };
  EXPECT_EQ(copies("transpose", "2048,4096"), std::pair(size_t{1}, size_t{2}));
  EXPECT_EQ(copies("transpose", "8,64,56,56,axis=0,axis=2,axis=3,axis=1"),
            std::pair(size_t{1}, size_t{2}));
  EXPECT_EQ(copies("transpose", "8,64,56,56,axis=0,axis=2,axis=1,axis=3").first, 0u)
      << "rows are copied whole";
  EXPECT_EQ(copies("transpose", "32,32").first, 0u) << "too small to matter";
  EXPECT_EQ(copies("relu", "4096,4096").first, 0u);
  EXPECT_EQ(copies("bias_add", "64,4096,axis=0").first, 0u);
}

// Returns a chain of `count` operators, each of which reads the one before it twice.
dag::DagPtr Squares(int count) {
  dag::DagBuilder b;
  dag::TensorRef x = b.Placeholder("X0", ir::kFloat32, {8});
  for (int k = 1; k <= count; ++k) {
    x = b.Compute(fmt::format("X{}", k), {{"i", 8}},
                  [&](dag::Vars v) { return x(v[0]) * x(v[0]); });
  }
  return *b.Build();
}

TEST(Sketch, WhatWouldGrowExponentiallyIsNotInlined) {
  for (const Task& task : {MakeTask(Squares(60)), MakeGpuTask(Squares(60))}) {
    const Parameters parameters;
    const auto sketches = GenerateSketches({task, parameters});
    ASSERT_EQ(sketches.size(), 1u);
    int roots = 0;
    for (int s = 1; s < sketches[0].state.num_stages(); ++s)
      roots += sketches[0].state.attach(s).kind == schedule::Attach::kRoot;
    EXPECT_GT(roots, 5);
    EXPECT_LT(roots, 10);
    Rng rng(1);
    ASSERT_OK_AND_ASSIGN(const schedule::State state, Sample(sketches[0], task, parameters, rng));
    EXPECT_OK(lower::Lower(state, {.gpu = task.target.is_gpu()}));
  }
}

// Each stage has two choices or more.
TEST(Sketch, ChoicesAreBounded) {
  dag::DagBuilder b;
  const int64_t n = 64;
  dag::TensorRef x = b.Placeholder("A", ir::kFloat32, {n, n});
  for (int k = 0; k < 12; ++k) {
    const auto w = b.Placeholder(fmt::format("W{}", k), ir::kFloat32, {n, n});
    x = b.Reduce(fmt::format("C{}", k), {{"i", n}, {"j", n}}, {{"k", n}}, dag::Combiner::kSum,
                 [&](dag::Vars v) { return x(v[0], v[2]) * w(v[2], v[1]); });
  }
  const size_t count = CountSketches(*b.Build());
  EXPECT_GT(count, 200u);
  EXPECT_LE(count, static_cast<size_t>(Parameters().max_sketches));
}

// The chain has as many steps as stages, and each step renumbers all stages, so the bound on
// sketches falls with the square of the stages.
TEST(Sketch, LongChainsHaveFewSketches) {
  dag::DagBuilder b;
  const int64_t n = 64;
  dag::TensorRef x = b.Placeholder("A", ir::kFloat32, {n, n});
  const dag::TensorRef w = b.Placeholder("W", ir::kFloat32, {n, n});
  for (int k = 0; k < 126; ++k) {
    x = b.Reduce(fmt::format("C{}", k), {{"i", n}, {"j", n}}, {{"k", n}}, dag::Combiner::kSum,
                 [&](dag::Vars v) { return x(v[0], v[2]) * w(v[2], v[1]); });
  }
  EXPECT_EQ(CountSketches(*b.Build()), 16u);
}

TEST(Sketch, NoneWhenTheTaskIsStopped) {
  Task task = MakeTask(ChainedMatmuls());
  std::stop_source stop;
  task.stop = stop.get_token();
  const Parameters parameters;
  EXPECT_FALSE(GenerateSketches({task, parameters}).empty());
  stop.request_stop();
  EXPECT_TRUE(GenerateSketches({task, parameters}).empty());
}

}  // namespace
}  // namespace kiln::search
