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

dag::DagPtr ReduceToScalar() {
  dag::DagBuilder b;
  auto x = b.Placeholder("A", ir::kFloat32, {10});
  b.Reduce("B", {}, {{"k", 10}}, dag::Combiner::kSum, [&](dag::Vars v) { return x(v[0]); });
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
  EXPECT_EQ(CountSketches(ReduceToScalar()), 3u);
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

}  // namespace
}  // namespace kiln::search
