// Tests attention as networks have it (graph/attention.h). It is one task, is recognised as a
// softmax chain, and computes what the network's nodes compute. The search's samples of its
// schedules are tested in the interpreter and as CUDA text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/status_testing.h"
#include "compiler/codegen/cuda/checks.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/cuda/emulation_testing.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/dag/evaluate.h"
#include "compiler/dag/softmax_chain.h"
#include "compiler/dag/text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "frontend/zoo/zoo.h"
#include "graph/evaluate.h"
#include "graph/prepare.h"
#include "graph/text_testing.h"
#include "search/policies/models.h"
#include "search/policies/policy.h"
#include "search/sampling/sample_gpu.h"
#include "search/space/sketch.h"
#include "tests/schedules/check_program.h"

namespace kiln::search {
namespace {

using schedule::State;
using testing::HasSubstr;
using testing::Not;

// The mask is m: a number for each key, or one for each row.
constexpr std::string_view kOfKeys = "1, 1, 1, 40", kOfRows = "1, 1, 40, 1";
constexpr std::string_view kSoftmax = "w = softmax(l)";

struct Case {
  std::string_view type;
  // The nodes that compute l, the input of the softmax, from the queries q and the keys k.
  std::string_view scores;
  std::string_view mask = kOfKeys;
  // The nodes that compute the weights w.
  std::string_view weights = kSoftmax;
};

// Returns a network with two heads over rows that one product makes.
std::string Heads(const Case& c) {
  return fmt::format(R"(
input x: {0}[40, 32]
input m: {0}[{2}]
const weights: {0}[32, 96] = random(1, -0.5, 0.5)
const bias: {0}[96] = random(2, -1, 1)
const factor: {0}[] = [0.25]
const eight: {0}[] = [8.0]
const nought: {0}[] = [0.0]
const lowest: {0}[] = [-inf]
qkv1 = matmul(x, weights)
qkv = add(qkv1, bias)
q1 = slice(qkv) {{begin: [0, 0], extents: [40, 32]}}
q2 = reshape(q1) {{shape: [1, 40, 2, 16]}}
q = transpose(q2) {{axes: [0, 2, 1, 3]}}
k1 = slice(qkv) {{begin: [0, 32], extents: [40, 32]}}
k2 = reshape(k1) {{shape: [1, 40, 2, 16]}}
k = transpose(k2) {{axes: [0, 2, 1, 3]}}
v1 = slice(qkv) {{begin: [0, 64], extents: [40, 32]}}
v2 = reshape(v1) {{shape: [1, 40, 2, 16]}}
v = transpose(v2) {{axes: [0, 2, 1, 3]}}
{1}
{3}
o = matmul(w, v)
o1 = transpose(o) {{axes: [0, 2, 1, 3]}}
o2 = reshape(o1) {{shape: [40, 32]}}
const back: {0}[32, 8] = random(3, -1, 1)
y = matmul(o2, back)
output y)",
                     c.type, c.scores, c.mask, c.weights);
}

constexpr std::string_view kScores[] = {
    "s = matmul(q, k) {transpose_b: 1}\nl = mul(s, factor)",
    "s = matmul(q, k) {transpose_b: 1}\na = div(s, eight)\nl = add(a, m)",
    "a = mul(q, factor)\nt = transpose(k) {axes: [0, 1, 3, 2]}\nl = matmul(a, t)",
};

// About half of the rows have no key at all, and the guard of PyTorch's exporter.
constexpr std::string_view kEmptyRows =
    "s = matmul(q, k) {transpose_b: 1}\na = mul(s, factor)\nc = greater(m, nought)\n"
    "l = where(c, a, lowest)";
constexpr std::string_view kGuarded = "p = softmax(l)\nn = is_nan(p)\nw = where(n, nought, p)";

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const std::string_view scores : kScores) {
    for (const std::string_view type : {"float16", "float32"}) cases.push_back({type, scores});
  }
  cases.push_back({"bfloat16", kScores[0]});
  cases.push_back({"float16", kScores[1], kOfKeys, kGuarded});
  for (const std::string_view type : {"float16", "float32"})
    cases.push_back({type, kEmptyRows, kOfRows, kGuarded});
  return cases;
}

graph::PreparedNetwork Prepared(const graph::Graph& network, bool is_gpu = true) {
  StatusOr<graph::PreparedNetwork> prepared =
      graph::PrepareNetwork(network, {.passes = {.is_gpu = is_gpu}});
  KILN_CHECK(prepared.ok(), "{}", Message(prepared.status()));
  return *std::move(prepared);
}

// Returns the network's one attention task, which all its attention kernels share.
const graph::NetworkTask& AttentionOf(const graph::PreparedNetwork& prepared) {
  const graph::NetworkTask* found = nullptr;
  for (const graph::NetworkTask& task : prepared.kernels.tasks) {
    if (!prepared.group(task.kernels[0]).is_attention) continue;
    KILN_CHECK(found == nullptr, "two tasks are attention");
    found = &task;
  }
  KILN_CHECK(found != nullptr, "no task is attention");
  return *found;
}

Task MakeTask(const dag::DagPtr& dag, std::string_view target = "cuda -arch=sm_90") {
  target::HardwareParams hardware;
  hardware.max_shared_memory_per_block_bytes = 227 << 10;
  return Task(dag, *target::ParseTarget(target), hardware, "[]");
}

// Computes the network's outputs by the computations of its kernels.
std::vector<ir::NDArray> EvaluateKernels(const graph::PreparedNetwork& prepared,
                                         std::span<const ir::NDArray> inputs) {
  const graph::Graph& graph = prepared.graph;
  std::vector<ir::NDArray> values(graph.values().size());
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const graph::ConstantPtr& constant = graph.value(static_cast<graph::ValueId>(i)).constant;
    if (constant != nullptr) values[i] = constant->ToArray();
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    values[static_cast<size_t>(graph.inputs()[i])] = inputs[i];
  for (size_t g = 0; g < prepared.kernels.groups.size(); ++g) {
    const graph::KernelGroup& group = prepared.kernels.groups[g];
    StatusOr<graph::NodeDag> dag = graph::MakeNodeDag(graph, group.nodes, group.outputs);
    if (prepared.kernels.dags[g]) dag = *prepared.kernels.dags[g];
    KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
    std::vector<ir::NDArray> read;
    for (const graph::ValueId id : dag->inputs) read.push_back(values[static_cast<size_t>(id)]);
    StatusOr<std::vector<ir::NDArray>> made = dag::Evaluate(*dag->dag, read);
    KILN_CHECK(made.ok(), "{}", Message(made.status()));
    for (size_t i = 0; i < made->size(); ++i)
      values[static_cast<size_t>(dag->outputs[i])] = std::move((*made)[i]);
  }
  std::vector<ir::NDArray> outputs;
  for (const graph::ValueId id : graph.outputs())
    outputs.push_back(values[static_cast<size_t>(id)]);
  return outputs;
}

TEST(NetworkAttention, TasksComputeWhatTheNetworkComputes) {
  for (const Case& c : Cases()) {
    const std::string text = Heads(c);
    SCOPED_TRACE(text);
    const graph::Graph network = graph::ParsedGraph(text);
    std::vector<ir::NDArray> inputs;
    Rng rng(3);
    for (const graph::ValueId id : network.inputs()) {
      const graph::TensorType& type = network.value(id).type;
      ir::NDArray& array = inputs.emplace_back(type.type, type.shape);
      for (int64_t i = 0; i < array.num_elements(); ++i)
        array.SetDouble(i, static_cast<double>(UniformIn(rng, -8, 8)) / 8);
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<ir::NDArray> want, graph::Evaluate(network, inputs));
    for (const bool is_gpu : {false, true}) {
      const graph::PreparedNetwork prepared = Prepared(network, is_gpu);
      const auto is_attention = [](const graph::KernelGroup& group) { return group.is_attention; };
      EXPECT_EQ(std::ranges::count_if(prepared.kernels.groups, is_attention), is_gpu ? 1 : 0);
      const std::vector<ir::NDArray> got = EvaluateKernels(prepared, inputs);
      for (int64_t i = 0; i < want[0].num_elements(); ++i)
        ASSERT_NEAR(got[0].GetDouble(i), want[0].GetDouble(i), 2e-2) << i;
    }
  }
}

const Sketch& OnlineSketch(const std::vector<Sketch>& sketches) {
  const auto found = std::ranges::find_if(
      sketches, [](const Sketch& sketch) { return sketch.state.online() != nullptr; });
  KILN_CHECK(found != sketches.end(), "no sketch of an online softmax");
  return *found;
}

std::vector<State> Samples(const Task& task, const Sketch& sketch, size_t count) {
  Rng rng(7);
  std::vector<State> states;
  for (int draw = 0; draw < 400 && states.size() < count; ++draw) {
    StatusOr<State> state = SampleGpu(sketch, task, Parameters(), rng);
    if (state.ok()) states.push_back(*std::move(state));
  }
  EXPECT_EQ(states.size(), count) << schedule::PrintSteps(sketch.steps);
  return states;
}

TEST(NetworkAttention, SamplesOfTheOneKernelComputeWhatTheTaskComputes) {
  for (const Case& c : Cases()) {
    const graph::PreparedNetwork prepared = Prepared(graph::ParsedGraph(Heads(c)));
    const Task task = MakeTask(AttentionOf(prepared).dag);
    SCOPED_TRACE(dag::PrintDag(*task.dag));
    const Workload workload = MakeWorkload(std::string(c.type), task.dag, 3);
    const std::vector<Sketch> sketches = GenerateSketches({task, Parameters()});
    for (const State& state : Samples(task, OnlineSketch(sketches), 3)) {
      SCOPED_TRACE(schedule::PrintSteps(state.steps()));
      ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK(codegen::CheckCudaProgram(program, task.hardware, task.target));
      ASSERT_OK(codegen::CompareEmulated(program, 5, 1e-2));
      if (!codegen::FindNvrtc().ok()) continue;
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_OK(codegen::CompileSource(source, "sm_90").status());
    }
  }
}

// Schedules that compute the stages one by one compete with the single kernel.
TEST(NetworkAttention, OtherSchedulesComputeWhatTheTaskComputes) {
  const graph::PreparedNetwork prepared =
      Prepared(graph::ParsedGraph(Heads({"float16", kScores[0]})));
  const Task task = MakeTask(AttentionOf(prepared).dag);
  const Workload workload = MakeWorkload("heads", task.dag, 3);
  ASSERT_OK_AND_ASSIGN(const auto policy, MakePolicy("sketch.random", task, 17));
  ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> candidates, policy->Propose(24));
  int others = 0;
  for (const Candidate& candidate : candidates) {
    ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(task.dag, candidate.steps));
    others += state.online() == nullptr;
    if (state.online() == nullptr) ASSERT_OK(CheckByInterpreter(workload, state, /*gpu=*/true));
  }
  EXPECT_GE(others, 3);
}

struct ZooCase {
  std::string_view network;
  ir::Type type;
  std::string_view target;
};

constexpr ZooCase kZoo[] = {
    {"bert-base", ir::kFloat16, "cuda -arch=sm_90"},
    {"bert-base", ir::kFloat32, "cuda -arch=sm_90"},
    {"bert-base", ir::kFloat32, "cuda -arch=sm_90 -math=tf32"},
    {"vit-b-16", ir::kFloat16, "cuda -arch=sm_90"},
    {"vit-b-16", ir::kFloat32, "cuda -arch=sm_90 -math=tf32"},
    {"gpt2-small-prefill", ir::kFloat16, "cuda -arch=sm_90"},
};

// There is one task for the twelve layers, and its rows are copied in pieces of 16 bytes. The
// policy that measures nothing computes it by the single kernel if matrix units can.
TEST(NetworkAttention, NetworksHaveOneTask) {
  for (const ZooCase& c : kZoo) {
    SCOPED_TRACE(fmt::format("{} {} {}", c.network, ir::TypeName(c.type), c.target));
    ASSERT_OK_AND_ASSIGN(const graph::Graph network,
                         frontend::MakeZooNetwork(c.network, {.dtype = c.type}));
    const graph::PreparedNetwork prepared = Prepared(network);
    const graph::NetworkTask& attention = AttentionOf(prepared);
    EXPECT_EQ(attention.kernels.size(), 12u);
    SCOPED_TRACE(dag::PrintDag(*attention.dag));
    ASSERT_OK(dag::FindSoftmaxChain(*attention.dag).status());
    const Task task = MakeTask(attention.dag, c.target);
    const std::vector<Sketch> sketches = GenerateSketches({task, Parameters()});
    const Sketch& sketch = OnlineSketch(sketches);
    const bool has_units = sketch.state.online()->matrix_unit != ir::MatrixUnitScope::kNone;
    EXPECT_EQ(has_units, c.type == ir::kFloat16 || c.target.ends_with("tf32"));
    for (const State& state : Samples(task, sketch, 2)) {
      ASSERT_OK_AND_ASSIGN(const ir::Program program, lower::Lower(state, {.gpu = true}));
      ASSERT_OK_AND_ASSIGN(const codegen::CudaSource source, codegen::GenerateCuda(program));
      EXPECT_THAT(source.text, HasSubstr("<16>("));
      for (const char* narrow : {"<2>(", "<4>(", "<8>("})
        EXPECT_THAT(source.text, Not(HasSubstr(fmt::format("copy_async{}", narrow))));
    }
    ASSERT_OK_AND_ASSIGN(const Models models, MakeModels("heuristic", 1));
    ASSERT_OK_AND_ASSIGN(const auto policy, MakePolicy("heuristic", task, 1, {.models = models}));
    ASSERT_OK_AND_ASSIGN(const std::vector<Candidate> best, policy->Propose(1));
    ASSERT_OK_AND_ASSIGN(const State state, schedule::Replay(task.dag, best[0].steps));
    EXPECT_TRUE(state.online() != nullptr || !has_units) << schedule::PrintSteps(best[0].steps);
  }
}

}  // namespace
}  // namespace kiln::search
