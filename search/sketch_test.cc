#include "search/sketch.h"

#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "compiler/dag/builder.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/step.h"

namespace kiln::search {
namespace {

Task MakeTask(dag::DagPtr dag) {
  target::HardwareParams hardware;
  hardware.num_cores = 4;
  return Task(std::move(dag), target::Target{}, hardware, "[]");
}

size_t CountSketches(const dag::DagPtr& dag) {
  const Task task = MakeTask(dag);
  const Parameters parameters;
  const auto sketches = GenerateSketches({task, parameters}, CpuSketchRules());
  for (const Sketch& sketch : sketches) {
    // Sketches are made of legal steps.
    EXPECT_TRUE(schedule::Replay(dag, sketch.state.steps()).ok());
  }
  return sketches.size();
}

size_t CountSketches(std::string_view op, std::string_view args, std::string_view epilogue = "") {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  EXPECT_TRUE(dag.ok()) << dag.status();
  return CountSketches(*dag);
}

Task MakeGpuTask(dag::DagPtr dag) {
  return Task(std::move(dag), *target::ParseTarget("cuda"), {}, "[]");
}

std::vector<Sketch> GpuSketches(const dag::DagPtr& dag) {
  const Task task = MakeGpuTask(dag);
  const Parameters parameters;
  auto sketches = GenerateSketches({task, parameters});
  for (const Sketch& sketch : sketches)
    EXPECT_TRUE(schedule::Replay(dag, sketch.state.steps()).ok());
  return sketches;
}

std::vector<Sketch> GpuSketches(std::string_view op, std::string_view args,
                                std::string_view epilogue = "") {
  auto dag = dag::BuildOp(op, args, {.epilogue = dag::SplitEpilogue(epilogue)});
  EXPECT_TRUE(dag.ok()) << dag.status();
  return GpuSketches(*dag);
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

// The counts of facts §3.2 for four cores.
TEST(Sketch, CountsOfTheFacts) {
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

TEST(GpuSketch, CountsOfTheFacts) {
  EXPECT_EQ(GpuSketches("matmul", "512,512,512").size(), 1u);
  EXPECT_EQ(GpuSketches("matmul", "8,8,1024").size(), 2u) << "one reduces across threads";
  EXPECT_EQ(GpuSketches(ChainedMatmuls()).size(), 1u);
  EXPECT_EQ(GpuSketches("conv2d_nchw", "1,56,56,512,512,3,3,1,1", "bias,relu").size(), 1u);
  EXPECT_EQ(GpuSketches("min", "10,1024,axis=1").size(), 2u);
  EXPECT_EQ(GpuSketches("softmax", "512,512").size(), 4u);
  EXPECT_EQ(GpuSketches("conv2d_winograd_nhwc", "1,14,14,256,256").size(), 1u);
  EXPECT_EQ(GpuSketches(ReduceToScalar(128)).size(), 2u);
}

TEST(GpuSketch, PoolingIsLeftAsItIs) {
  const auto sketches = GpuSketches("max_pool2d_nchw", "1,56,56,512,2,2,1,0");
  ASSERT_EQ(sketches.size(), 1u);
  EXPECT_TRUE(sketches[0].steps.empty());
}

// A tensor read by a tiled stage and by another one is cached for the first alone.
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

// Softmax: maximum and sum are reduced by the threads that then scale the row, or in kernels of
// their own.
TEST(GpuSketch, ReductionsFuseIntoTheirReader) {
  const auto sketches = GpuSketches("softmax", "64,512");
  int attached = 0;
  for (const Sketch& sketch : sketches) {
    for (int s = 0; s < sketch.state.num_stages(); ++s)
      attached += sketch.state.attach(s).kind == schedule::Attach::kIter;
  }
  EXPECT_EQ(attached, 0 + 0 + 1 + 2) << "neither, the maximum alone, the sum alone, both";
}

}  // namespace
}  // namespace kiln::search
