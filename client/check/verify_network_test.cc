#include "client/check/verify_network.h"

#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/compile/compile_network.h"
#include "client/compile/compile_operator.h"
#include "client/compile/network_arrays.h"
#include "client/compile/small_archive_testing.h"
#include "client/network.h"
#include "compiler/dag/text.h"
#include "graph/evaluate.h"
#include "graph/passes/narrow_floats.h"
#include "graph/prepare.h"
#include "graph/text_testing.h"

namespace kiln::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CompiledNetwork Compiled(const graph::Graph& network) {
  auto compiled = CompileNetwork(
      network, {.programs = {.target = *target::ParseTarget("llvm")}, .pack_constants = true},
      /*archive=*/nullptr);
  KILN_CHECK(compiled.ok(), "{}", std::string(compiled.status().message()));
  return *std::move(compiled);
}
CompiledNetwork Compiled(std::string_view text) { return Compiled(graph::ParsedGraph(text)); }

StatusOr<VerifyReport> Verified(const CompiledNetwork& compiled,
                                std::map<size_t, ir::NDArray> expected = {}) {
  KILN_ASSIGN_OR_RETURN(const TempDir folder, TempDir::Make("verify_network_test"));
  const std::string path = folder.Join("net.kiln");
  KILN_RETURN_IF_ERROR(WriteCompiled(path, compiled).status());
  KILN_ASSIGN_OR_RETURN(const auto file, runtime::NetworkFile::Open(path));
  VerifyOptions options{.expected = std::move(expected), .kernels = true};
  options.executor.threads = 2;
  KILN_ASSIGN_OR_RETURN(options.inputs, RandomInputs(file->network(), /*seed=*/7));
  return VerifyNetwork(file, options);
}

TEST(VerifyNetworkTest, AMultilayerPerceptron) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(Compiled(mlp)));
  EXPECT_TRUE(report.AllRight());
  EXPECT_EQ(report.outputs.size(), 1u);
  EXPECT_EQ(report.kernels.size(), 4u);
}

TEST(VerifyNetworkTest, ImagesWithResidualsViewsBranchesAndAConstant) {
  const CompiledNetwork compiled = Compiled(graph::kSmallImageNetwork);
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(compiled));
  EXPECT_TRUE(report.AllRight());
  ASSERT_EQ(report.outputs.size(), 4u);
  EXPECT_EQ(report.outputs[1].name, "s");
  EXPECT_LT(report.outputs[1].max_error, 1e-5);
  ASSERT_EQ(report.kernels.size(), compiled.network.kernels.size());
  for (const Verdict& kernel : report.kernels) EXPECT_LT(kernel.max_error, 1e-5) << kernel.name;
}

// The output of float32 is compared with what the network computes in float32. It is as exact as
// the kernels of float16 that have made it.
TEST(VerifyNetworkTest, ANetworkInSixteenBitsWhoseOutputIsWider) {
  const graph::Graph wide = graph::ParsedGraph(graph::kSmallImageNetwork);
  ASSERT_OK_AND_ASSIGN(const graph::NarrowedNetwork narrowed,
                       graph::NarrowFloats(wide, ir::kFloat16));
  const CompiledNetwork compiled = Compiled(narrowed.graph);
  ASSERT_OK_AND_ASSIGN(const auto inputs, RandomInputs(compiled.network, /*seed=*/7));
  ASSERT_OK_AND_ASSIGN(const auto want, graph::Evaluate(wide, inputs));
  std::map<size_t, ir::NDArray> expected = {{0, want[0]}};
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(compiled, expected));
  EXPECT_TRUE(report.AllRight()) << report.outputs[0].problem;
  EXPECT_GT(report.outputs[0].max_error, 1e-5);
  for (int64_t i = 0; i < want[0].num_elements(); ++i)
    expected[0].SetDouble(i, 1.2 * want[0].GetDouble(i));
  ASSERT_OK_AND_ASSIGN(const VerifyReport wrong, Verified(compiled, expected));
  EXPECT_FALSE(wrong.AllRight());
}

TEST(VerifyNetworkTest, KernelsOfTwoOutputs) {
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(Compiled(graph::kTwoResidualUnits)));
  EXPECT_TRUE(report.AllRight());
  EXPECT_EQ(report.outputs.size(), 2u);
  EXPECT_EQ(report.kernels.size(), 2u);
}

// Compiles a product whose weight [8, 7] is packed by columns, 4 at a time.
CompiledNetwork WithPackedWeight() {
  const graph::Graph network = graph::ParsedGraph(
      "input x: float32[4, 8]\nconst w: float32[8, 7] = random(1, -1, 1)\ny = matmul(x, w)\n"
      "output y");
  const auto prepared = graph::PrepareNetwork(network, {.passes = {}, .pack_constants = true});
  KILN_CHECK(prepared.ok(), "{}", Message(prepared.status()));
  SmallArchive archive;
  archive.Add(prepared->kernels.tasks[0], "llvm", 1e-9, "", R"([["SP", 2, 1, 7, [4], 1]])");
  auto compiled = CompileNetwork(
      network, {.programs = {.target = *target::ParseTarget("llvm")}, .pack_constants = true},
      &archive);
  KILN_CHECK(compiled.ok(), "{}", Message(compiled.status()));
  return *std::move(compiled);
}

TEST(VerifyNetworkTest, APackedConstant) {
  const CompiledNetwork compiled = WithPackedWeight();
  ASSERT_EQ(compiled.network.constants.size(), 1u);
  ASSERT_TRUE(compiled.network.constants[0].packing.has_value());
  EXPECT_EQ(PackingText(*compiled.network.constants[0].packing), "[8, 7] by [1: 4, 1: 1, 0: 1]");
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(compiled));
  EXPECT_TRUE(report.AllRight());
  EXPECT_EQ(report.kernels.size(), 1u);
}

// Wrong bytes are found in each element and in the padding: 7 columns were padded to 8.
TEST(VerifyNetworkTest, RefusesPackedConstantsThatAreNotThoseOfTheGraph) {
  const CompiledNetwork compiled = WithPackedWeight();
  ASSERT_OK_AND_ASSIGN(const TempDir folder, TempDir::Make("verify_network_test"));
  const std::string path = folder.Join("net.kiln");
  for (const size_t wrong : {size_t{0}, size_t{55}, size_t{63}}) {
    std::vector<std::byte> packed;
    const auto spoilt = [&](int32_t buffer) -> StatusOr<std::span<const std::byte>> {
      const graph::Constant& constant = *compiled.constants.at(buffer);
      packed.resize(8 * 8 * sizeof(float));
      Pack(*compiled.network.constants[0].packing, sizeof(float), constant.bytes(), packed);
      packed[wrong * sizeof(float) + 2] ^= std::byte{0x40};
      return packed;
    };
    ASSERT_OK(runtime::WriteNetwork(path, compiled.network, spoilt));
    ASSERT_OK_AND_ASSIGN(const auto file, runtime::NetworkFile::Open(path));
    VerifyOptions options;
    ASSERT_OK_AND_ASSIGN(options.inputs, RandomInputs(file->network(), /*seed=*/7));
    EXPECT_THAT(VerifyNetwork(file, options),
                StatusIs(StatusCode::kDataLoss, HasSubstr("its constant w is not")))
        << wrong;
  }
}

TEST(VerifyNetworkTest, NamesTheKernelWhoseConstantIsPackedForAnother) {
  CompiledNetwork compiled = WithPackedWeight();
  Packing& packing = *compiled.network.constants[0].packing;
  std::swap(packing.dims[1], packing.dims[2]);
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(compiled));
  EXPECT_THAT(report.kernels[0].problem, HasSubstr("output y: element ["));
  EXPECT_THAT(report.outputs[0].problem, HasSubstr("output y: element ["));
  packing.shape = compiled.network.constants[0].shape = {7, 8};
  packing.dims = {{0, 8, 1}, {1, 8, 1}};
  EXPECT_THAT(Verified(compiled), StatusIs(StatusCode::kDataLoss, HasSubstr("constant")));
}

// The compiled operator has no graph. Input values are in the ranges that the operator accepts.
TEST(VerifyNetworkTest, AnOperatorWhoseInputsHaveRanges) {
  ASSERT_OK_AND_ASSIGN(const dag::DagText text, dag::ParseDagText(R"(
input ids: int32[50]
input table: float32[3, 8]
@range(0.5, 2) input x: float32[50, 8]
y[i: 50, j: 8] = table[ids[i], j] * log(x[i, j])
)"));
  const OperatorToCompile what{.dag = text.dag, .description = "lookup", .ranges = text.ranges};
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileOperator(what, {.target = *target::ParseTarget("llvm")},
                                       /*archive=*/nullptr));
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(compiled));
  EXPECT_TRUE(report.AllRight());
  EXPECT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.outputs[0].name, "y");
  ASSERT_OK_AND_ASSIGN(const auto inputs, RandomInputs(compiled.network, 1));
  for (size_t k = 0; k < 3; ++k) {
    const std::string& name = compiled.network.inputs[k].name;
    if (name == "table") continue;
    const double low = name == "ids" ? 0 : 0.5, high = name == "ids" ? 3 : 2;
    for (int64_t i = 0; i < inputs[k].num_elements(); ++i) {
      EXPECT_GE(inputs[k].GetDouble(i), low) << name;
      EXPECT_LT(inputs[k].GetDouble(i), high) << name;
    }
  }
}

// The file is sound, but one kernel has the code of another function.
TEST(VerifyNetworkTest, NamesTheKernelWhoseCodeIsWrong) {
  const char* const text = R"(
input x: float32[4, 8]
a = {}(x)
s = softmax(a)
output s, a)";
  CompiledNetwork network = Compiled(fmt::format(fmt::runtime(text), "tanh"));
  const CompiledNetwork other = Compiled(fmt::format(fmt::runtime(text), "relu"));
  ASSERT_EQ(network.network.kernels[0].name, "a");
  const auto binary = static_cast<size_t>(network.network.kernels[0].binary);
  network.network.binaries[binary] =
      other.network.binaries[static_cast<size_t>(other.network.kernels[0].binary)];
  ASSERT_OK_AND_ASSIGN(const VerifyReport report, Verified(network));
  EXPECT_FALSE(report.AllRight());
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_THAT(report.kernels[0].problem, AllOf(HasSubstr("output a: element ["), HasSubstr("32")));
  EXPECT_GT(report.kernels[0].max_error, 0.01);
  EXPECT_THAT(report.kernels[1].problem, IsEmpty()) << "it gets what the reference makes of a";
  EXPECT_THAT(report.outputs[0].problem, HasSubstr("output s: element ["));
  EXPECT_THAT(report.outputs[1].problem, HasSubstr("output a: element ["));
}

// The graph's text gives a constant by its seed, by its elements, and by its digest.
TEST(VerifyNetworkTest, RefusesConstantsThatAreNotThoseOfTheGraph) {
  for (const char* elements : {"random(4, -1, 1)", "[1, 2, 3]"}) {
    const std::string shape = elements[0] == '[' ? "3" : "200";
    CompiledNetwork compiled = Compiled(
        fmt::format("input x: float32[{0}]\nconst w: float32[{0}] = {1}\ny = add(x, w)\noutput y",
                    shape, elements));
    ASSERT_EQ(compiled.constants.size(), 1u);
    auto& [buffer, constant] = *compiled.constants.begin();
    constant = graph::Constant::Random(constant->type(), {.seed = 5});
    EXPECT_THAT(Verified(compiled),
                StatusIs(StatusCode::kDataLoss, HasSubstr("its constant w is not the one")));
  }
  const char* const text = R"(
input x: float32[20, 30]
const w: float32[30, 20] = random(1, -1, 1)
const v: float32[30, 20] = random(2, -1, 1)
u = add(w, v)
y = matmul(x, u)
output y)";
  CompiledNetwork folded = Compiled(text);
  ASSERT_EQ(folded.constants.size(), 1u);
  folded.constants.begin()->second =
      graph::Constant::Random(folded.constants.begin()->second->type(), {.seed = 5});
  EXPECT_THAT(Verified(folded),
              StatusIs(StatusCode::kDataLoss, HasSubstr("of u are not given beside the text")));
}

TEST(VerifyNetworkTest, ComparesWithWhatIsExpected) {
  const CompiledNetwork compiled =
      Compiled("input x: float32[4]\ny = relu(x)\nz = tanh(x)\noutput y, z");
  ASSERT_OK_AND_ASSIGN(const VerifyReport report,
                       Verified(compiled, {{1, ir::NDArray(ir::kFloat32, {4})}}));
  ASSERT_EQ(report.outputs.size(), 1u);
  EXPECT_EQ(report.outputs[0].name, "z");
  EXPECT_THAT(report.outputs[0].problem, HasSubstr("expected 0; 4 of 4 elements differ"));
}

TEST(VerifyNetworkTest, RefusesComputationsThatAreNotThoseOfTheirKernels) {
  CompiledNetwork compiled = Compiled("input x: float32[4]\ny = relu(x)\noutput y");
  compiled.network.kernels[0].computation = "input x: float32[5]\ny[i: 5] = x[i]\n";
  EXPECT_THAT(Verified(compiled),
              StatusIs(StatusCode::kDataLoss,
                       HasSubstr("argument 0 of kernel y is not that of its computation")));
}

}  // namespace
}  // namespace kiln::client
