#include "graph/tasks.h"

#include "base/status_testing.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "graph/text_testing.h"

namespace kiln::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(TasksTest, EqualComputationsAreOneTask) {
  const Graph graph = ParsedGraph(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
const v: float32[8, 8] = random(2, -1, 1)
p = matmul(x, w)
a = relu(p)
q = matmul(a, v)
b = relu(q)
r = matmul(b, v)
output r)");
  ASSERT_OK_AND_ASSIGN(const NetworkKernels network, ExtractTasks(graph));
  ASSERT_EQ(network.tasks.size(), 2u);
  EXPECT_EQ(network.tasks[0].description, "matmul relu");
  EXPECT_THAT(network.tasks[0].kernels, ElementsAre(0, 1));
  EXPECT_FALSE(network.tasks[0].is_simple);
  EXPECT_THAT(network.tasks[1].kernels, ElementsAre(2));
}

// The first kernel makes s and, in the same loops, r.
TEST(TasksTest, TwoOutputsAreOneOperator) {
  const Graph graph = ParsedGraph(kTwoResidualUnits);
  ASSERT_OK_AND_ASSIGN(const NetworkKernels network,
                       ExtractTasks(graph, {.partition = {.second_outputs = true}}));
  ASSERT_EQ(network.tasks.size(), 2u);
  EXPECT_EQ(network.tasks[0].description, "conv add (stored) mul add relu");
  EXPECT_THAT(dag::PrintDag(*network.tasks[0].dag),
              HasSubstr("T_relu[ax0: 1, ax1: 6, ax2: 5, ax3: 8] = ("
                        "conv2d_nhwc[ax0, ax1, ax2, ax3] + p0[ax0, ax1, ax2, ax3], "
                        "max((conv2d_nhwc[ax0, ax1, ax2, ax3] + p0[ax0, ax1, ax2, ax3])*p2[ax3] + "
                        "p3[ax3], 0.0))"));
  std::vector<std::string> outputs;
  for (ValueId id : network.dags[0]->outputs) outputs.push_back(graph.value(id).name);
  EXPECT_THAT(outputs, ElementsAre("s", "r"));
  ASSERT_OK_AND_ASSIGN(const NetworkKernels one_each, ExtractTasks(graph));
  EXPECT_EQ(one_each.tasks.size(), 3u);
}

NetworkKernels Packed(std::string_view text) {
  const auto kernels = ExtractTasks(ParsedGraph(text), {.pack_constants = true});
  KILN_CHECK(kernels.ok(), "{}", Message(kernels.status()));
  return *kernels;
}

// Returns the shapes of the inputs that the task takes packed.
std::vector<std::vector<int64_t>> PackedShapes(const NetworkTask& task) {
  std::vector<std::vector<int64_t>> shapes;
  for (int input : dag::PackedInputs(*task.dag)) shapes.push_back(task.dag->op(input).shape());
  return shapes;
}

TEST(PackedTasksTest, OnlyIfAskedFor) {
  ASSERT_OK_AND_ASSIGN(const NetworkKernels kernels, ExtractTasks(ParsedGraph(kSmallImageNetwork)));
  for (const NetworkTask& task : kernels.tasks) EXPECT_THAT(PackedShapes(task), IsEmpty());
}

TEST(PackedTasksTest, ConstantsOfSumsWhateverTheOperator) {
  const NetworkKernels kernels = Packed(kSmallImageNetwork);
  std::vector<std::vector<int64_t>> shapes;
  for (const NetworkTask& task : kernels.tasks) {
    for (std::vector<int64_t>& shape : PackedShapes(task)) shapes.push_back(std::move(shape));
  }
  // The bias is not packed, since no sum reads it.
  EXPECT_THAT(shapes, UnorderedElementsAre(ElementsAre(6, 4, 3, 3), ElementsAre(6, 6, 1, 1),
                                           ElementsAre(12, 5)));
}

TEST(PackedTasksTest, NotInputsNorWhatKernelsMake) {
  const NetworkKernels kernels = Packed(R"(
input x: float32[8, 8]
input w: float32[8, 8]
const v: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
q = softmax(p)
r = matmul(x, q)
s = matmul(r, v)
output s)");
  // The products have equal shapes. Two of them have weights that are an input or made by a kernel,
  // and one has a constant weight.
  ASSERT_EQ(kernels.tasks.size(), 3u);
  EXPECT_THAT(PackedShapes(kernels.tasks[0]), IsEmpty());
  EXPECT_THAT(kernels.tasks[0].kernels, ElementsAre(0, 2));
  EXPECT_THAT(PackedShapes(kernels.tasks[2]), ElementsAre(ElementsAre(8, 8)));
  EXPECT_THAT(kernels.tasks[2].workload_key, HasSubstr("\"packed\"]"));
  EXPECT_EQ(dag::PrintDag(*dag::PlainInputs(kernels.tasks[2].dag)),
            dag::PrintDag(*kernels.tasks[0].dag));
  EXPECT_EQ(kernels.dags[3]->dag, kernels.tasks[2].dag);
}

TEST(PackedTasksTest, AConstantThatSeveralKernelsReadIsPackedForEach) {
  const NetworkKernels kernels = Packed(R"(
input x: float32[4, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
q = softmax(p)
r = matmul(q, w)
output r)");
  EXPECT_THAT(kernels.tasks[0].kernels, ElementsAre(0, 2));
  EXPECT_THAT(PackedShapes(kernels.tasks[0]), ElementsAre(ElementsAre(8, 8)));
}

TEST(PackedTasksTest, NotWhatOneKernelReadsInTwoPlaces) {
  const NetworkKernels kernels = Packed(R"(
input x: float32[8, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
s = add(p, w)
output s)");
  ASSERT_EQ(kernels.tasks.size(), 1u);
  EXPECT_THAT(PackedShapes(kernels.tasks[0]), IsEmpty());
}

}  // namespace
}  // namespace kiln::graph
