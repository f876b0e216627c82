#include "client/compile/compile_network.h"

#include <numeric>

#include "base/file.h"
#include "base/status_testing.h"
#include "client/compile/kernel_program.h"
#include "client/network.h"
#include "compiler/dag/text.h"
#include "graph/evaluate.h"
#include "graph/text_testing.h"
#include "runtime/cpu_features.h"
#include "runtime/executor.h"

namespace kiln::client {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Truly;

CompileOptions Cpu() { return {.programs = {.target = *target::ParseTarget("llvm")}}; }

// Compiled without records, written, read and run: the same as the reference evaluation.
void ExpectSame(const graph::Graph& network, const CompileOptions& options = Cpu()) {
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileNetwork(network, options, /*archive=*/nullptr));
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("compile_network_test"));
  const std::string path = folder.Join("net.kiln");
  ASSERT_OK(WriteCompiled(path, compiled).status());
  ASSERT_OK_AND_ASSIGN(const auto executor, runtime::Executor::Load(path, {.threads = 2}));

  std::vector<ir::NDArray> inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (graph::ValueId id : network.inputs()) {
    const graph::TensorType& type = network.value(id).type;
    inputs.emplace_back(type.type, type.shape);
    inputs.back().FillRandom(static_cast<uint64_t>(id) + 3);
  }
  for (graph::ValueId id : network.outputs()) {
    outputs.emplace_back(network.value(id).type.type, network.value(id).type.shape);
    outputs.back().Poison();
  }
  for (const ir::NDArray& array : inputs) in.push_back(array.bytes().data());
  for (ir::NDArray& array : outputs) out.push_back(array.mutable_bytes().data());
  ASSERT_OK(executor->Run(in, out));
  ASSERT_OK_AND_ASSIGN(const auto want, graph::Evaluate(network, inputs));
  for (size_t i = 0; i < want.size(); ++i) {
    const Status same =
        ir::Compare(outputs[i], want[i], {.relative = 1e-3, .absolute = 1e-4}, "output");
    EXPECT_TRUE(same.ok()) << std::string(same.message());
  }
}

TEST(CompileNetworkTest, AMultilayerPerceptron) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  ExpectSame(mlp);
}

TEST(CompileNetworkTest, ImagesWithResidualsViewsAndBranches) {
  ExpectSame(graph::ParsedGraph(graph::kSmallImageNetwork));
}

TEST(CompileNetworkTest, OutputsThatAreInputsConstantsAndTwice) {
  ExpectSame(graph::ParsedGraph(R"(
input x: float32[4, 8]
const c: float32[3] = [1, 2, 3]
y = tanh(x)
z = reshape(x) {shape: [8, 4]}
output y, x, c, y, z)"));
}

TEST(CompileNetworkTest, IndicesAndSoftmax) {
  ExpectSame(graph::ParsedGraph(R"(
input ids: int64[5]
const table: float32[16, 8] = random(1, -1, 1)
e = gather(table, ids)
s = softmax(e)
output s)"));
}

TEST(CompileNetworkTest, FilesSayWhatACpuMustHave) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  const auto features = [&](std::string_view target) {
    const auto compiled =
        CompileNetwork(mlp, {.programs = {.target = *target::ParseTarget(target)}}, nullptr);
    KILN_CHECK(compiled.ok(), "{}", Message(compiled.status()));
    return compiled->network.target.features;
  };
  EXPECT_THAT(features("llvm"), Each(Truly(runtime::HasCpuFeature)));
  EXPECT_THAT(features("llvm -mcpu=x86-64"), IsEmpty());
  EXPECT_THAT(features("llvm -mcpu=x86-64-v3"), AllOf(Contains("avx2"), Not(Contains("avx512f"))));
  EXPECT_THAT(features("llvm -mcpu=x86-64-v4"), Contains("avx512f"));
}

TEST(CompileNetworkTest, SaysWhatTheFileNeeds) {
  const graph::Graph network = graph::ParsedGraph("input x: float32[64]\ny = relu(x)\noutput y");
  CompileOptions options = Cpu();
  options.programs.target = *target::ParseTarget("llvm -mcpu=znver4");
  options.device = "a model";
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork avx512, CompileNetwork(network, options, nullptr));
  EXPECT_THAT(avx512.network.target.features, IsSupersetOf({"avx2", "fma", "avx512f", "avx512vl"}));
  EXPECT_EQ(avx512.network.target.device, "a model");
  EXPECT_EQ(avx512.network.target.text, "llvm -mcpu=znver4");
  options.programs.target = *target::ParseTarget("llvm -mcpu=haswell");
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork avx2, CompileNetwork(network, options, nullptr));
  EXPECT_THAT(avx2.network.target.features, AllOf(Contains("avx2"), Not(Contains("avx512f"))));
  // Of code for this machine: what it has, and its name.
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork here, CompileNetwork(network, Cpu(), nullptr));
  EXPECT_THAT(runtime::MissingCpuFeatures(here.network.target.features), IsEmpty());
  EXPECT_EQ(here.network.target.device, runtime::HostCpuName());
}

TEST(CompileNetworkTest, ComputationsThatTakeInputsPackedAreRefused) {
  ASSERT_OK_AND_ASSIGN(const dag::DagText text,
                       dag::ParseDagText("input x: float32[4, 8]\ninput w: float32[8, 8]\n"
                                         "@layout_free_placeholders(w)\n@packed_placeholders(w)\n"
                                         "y[i: 4, j: 8] = sum(k: 8) x[i, k]*w[k, j]\n"));
  EXPECT_THAT(CompileKernel(text.dag, "[]", Cpu().programs.target, {}),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("leave @packed_placeholders out")));
}

TEST(CompileNetworkTest, StrictNamesWhatWasNeverTuned) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  CompileOptions options = Cpu();
  options.programs.strict = true;
  EXPECT_THAT(CompileNetwork(mlp, options, nullptr),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("4 of 4 tasks were never tuned for llvm")));
}

}  // namespace
}  // namespace kiln::client
