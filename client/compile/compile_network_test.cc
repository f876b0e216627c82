#include "client/compile/compile_network.h"

#include <map>
#include <numeric>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "base/thread_pool.h"
#include "client/compile/compile_operator.h"
#include "client/compile/small_archive_testing.h"
#include "client/network.h"
#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "device/calibration.h"
#include "graph/evaluate.h"
#include "graph/prepare.h"
#include "graph/text_testing.h"
#include "runtime/cpu_features.h"
#include "runtime/executor.h"
#include "search/choice/heuristic_choice.h"

namespace kiln::client {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::Truly;
using ::testing::UnorderedElementsAre;

CompileOptions Cpu() { return {.programs = {.target = *target::ParseTarget("llvm")}}; }

CompileOptions CpuPacked() {
  CompileOptions options = Cpu();
  options.pack_constants = true;
  return options;
}

// Compiles, writes, reads and runs the network, and expects the outputs of the reference
// evaluation.
void ExpectSame(const graph::Graph& network, const CompileOptions& options,
                Archive* archive = nullptr) {
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled, CompileNetwork(network, options, archive));
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

void ExpectSame(const graph::Graph& network) {
  ExpectSame(network, Cpu());
  ExpectSame(network, CpuPacked());
}

TEST(CompileNetworkTest, AMultilayerPerceptron) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  ExpectSame(mlp);
}

TEST(CompileNetworkTest, ImagesWithResidualsViewsAndBranches) {
  ExpectSame(graph::ParsedGraph(graph::kSmallImageNetwork));
}

TEST(CompileNetworkTest, KernelsOfTwoOutputs) {
  const graph::Graph network = graph::ParsedGraph(graph::kTwoResidualUnits);
  ExpectSame(network);
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled, CompileNetwork(network, Cpu(), nullptr));
  std::vector<std::string> kernels;
  for (const KernelCoverage& kernel : compiled.coverage) kernels.push_back(kernel.description);
  EXPECT_THAT(kernels, ElementsAre("conv add (stored) mul add relu", "conv add"));
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
  // Code for this machine has the machine's features and its name.
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork here, CompileNetwork(network, Cpu(), nullptr));
  EXPECT_THAT(runtime::MissingCpuFeatures(here.network.target.features), IsEmpty());
  EXPECT_EQ(here.network.target.device, runtime::HostCpuName());
}

// Returns the layout of each copy of the constant in the file.
std::vector<std::string> LayoutsOf(const CompiledNetwork& compiled, std::string_view name) {
  std::vector<std::string> layouts;
  for (const runtime::NetworkTensor& constant : compiled.network.constants) {
    if (constant.name == name)
      layouts.push_back(constant.packing ? PackingText(*constant.packing) : "plain");
  }
  return layouts;
}

// p and r are one task, s is another one.
constexpr std::string_view kOneWeightThrice = R"(
input x: float32[4, 8]
input z: float32[6, 8]
const w: float32[8, 8] = random(1, -1, 1)
p = matmul(x, w)
q = softmax(p)
r = matmul(q, w)
s = matmul(z, w)
output r, s{})";
graph::Graph OneWeightThrice(std::string_view more_outputs = "") {
  return graph::ParsedGraph(fmt::format(kOneWeightThrice, more_outputs));
}

// Schedules of the loops i, j, k. The first splits j and the second k, and each packs the weights
// [k, j] in its own order.
constexpr char kSplitColumns[] = R"([["SP", 2, 1, 8, [4], 1]])";
constexpr char kSplitRows[] = R"([["SP", 2, 2, 8, [2], 1]])";

// Tests with chosen records for the products of the network.
class PackedNetworkTest : public testing::Test {
 protected:
  // Adds a record. Task 0 is that of p and r, task 1 that of s.
  void AddRecord(size_t task, double cost_s, const std::string& steps, bool packed = true) {
    const auto prepared =
        graph::PrepareNetwork(OneWeightThrice(), {.passes = {}, .pack_constants = packed});
    KILN_CHECK(prepared.ok(), "{}", Message(prepared.status()));
    std::vector<graph::NetworkTask> products;
    for (const graph::NetworkTask& of : prepared->kernels.tasks) {
      if (of.description == "matmul") products.push_back(of);
    }
    KILN_CHECK(products.size() == 2);
    archive_.Add(products[task], "llvm", cost_s, "", steps);
  }

  SmallArchive archive_;
};

TEST_F(PackedNetworkTest, KernelsOfOneOrderShareAConstant) {
  AddRecord(0, 1e-9, kSplitColumns);
  AddRecord(1, 1e-9, kSplitColumns);
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileNetwork(OneWeightThrice(), CpuPacked(), &archive_));
  EXPECT_THAT(LayoutsOf(compiled, "w"), ElementsAre("[8, 8] by [1: 4, 1: 1, 0: 1]"));
  EXPECT_EQ(compiled.network.constants_bytes, 8 * 8 * 4);
  for (const KernelCoverage& kernel : compiled.coverage) {
    if (!kernel.is_simple && kernel.description == "matmul") {
      EXPECT_EQ(kernel.source, runtime::KernelSource::kTuned);
    }
  }
  ExpectSame(OneWeightThrice(), CpuPacked(), &archive_);
}

TEST_F(PackedNetworkTest, KernelsOfOtherOrdersHaveTheirOwn) {
  AddRecord(0, 1e-9, kSplitColumns);
  AddRecord(1, 1e-9, kSplitRows);
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileNetwork(OneWeightThrice(), CpuPacked(), &archive_));
  EXPECT_THAT(LayoutsOf(compiled, "w"),
              UnorderedElementsAre("[8, 8] by [1: 4, 1: 1, 0: 1]", "[8, 8] by [1: 1, 0: 2, 0: 1]"));
  ExpectSame(OneWeightThrice(), CpuPacked(), &archive_);
}

TEST_F(PackedNetworkTest, AConstantStaysPlainForKernelsThatReadItPlain) {
  AddRecord(0, 1e-9, kSplitColumns);
  AddRecord(1, 2e-9, kSplitColumns);
  AddRecord(1, 1e-9, "[]");
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileNetwork(OneWeightThrice(), CpuPacked(), &archive_));
  EXPECT_THAT(LayoutsOf(compiled, "w"),
              UnorderedElementsAre("[8, 8] by [1: 4, 1: 1, 0: 1]", "plain"));
  ExpectSame(OneWeightThrice(), CpuPacked(), &archive_);

  AddRecord(1, 1e-10, kSplitColumns);
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork output,
                       CompileNetwork(OneWeightThrice(", w"), CpuPacked(), &archive_));
  EXPECT_THAT(LayoutsOf(output, "w"),
              UnorderedElementsAre("[8, 8] by [1: 4, 1: 1, 0: 1]", "plain"));
  ExpectSame(OneWeightThrice(", w"), CpuPacked(), &archive_);
}

TEST_F(PackedNetworkTest, RecordsWithPlainConstantsAreTakenWhereTheyAreFaster) {
  AddRecord(0, 2e-9, kSplitColumns);
  AddRecord(0, 1e-9, kSplitRows, /*packed=*/false);
  AddRecord(1, 1e-9, kSplitColumns, /*packed=*/false);
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileNetwork(OneWeightThrice(), CpuPacked(), &archive_));
  EXPECT_THAT(LayoutsOf(compiled, "w"), ElementsAre("plain"));
  for (const runtime::NetworkKernel& kernel : compiled.network.kernels) {
    EXPECT_THAT(kernel.workload_key, Not(HasSubstr("packed")));
    EXPECT_THAT(kernel.computation, Not(HasSubstr("packed")));
  }
  ExpectSame(OneWeightThrice(), CpuPacked(), &archive_);
  // A compilation that asks for plain constants never gets packed ones.
  AddRecord(1, 1e-10, kSplitColumns);
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork plain,
                       CompileNetwork(OneWeightThrice(), Cpu(), &archive_));
  EXPECT_THAT(LayoutsOf(plain, "w"), ElementsAre("plain"));
}

TEST(CompileNetworkTest, UntunedKernelsTakeWeightsPacked) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled, CompileNetwork(mlp, CpuPacked(), nullptr));
  int packed = 0;
  for (const runtime::NetworkTensor& constant : compiled.network.constants) {
    packed += constant.packing.has_value();
    EXPECT_EQ(LayoutsOf(compiled, constant.name).size(), 1u) << constant.name;
  }
  EXPECT_GE(packed, 3) << "of 4 layers";
}

constexpr char kPackedProduct[] =
    "input x: float32[4, 8]\ninput w: float32[8, 8]\n"
    "@layout_free_placeholders(w)\n@packed_placeholders(w)\n"
    "y[i: 4, j: 8] = sum(k: 8) x[i, k]*w[k, j]\n";

// Returns the schedule of the product with plain inputs if nothing is measured.
std::string ChosenSteps(const target::Target& target) {
  const auto plain = dag::ParseDag(
      "input x: float32[4, 8]\ninput w: float32[8, 8]\n"
      "y[i: 4, j: 8] = sum(k: 8) x[i, k]*w[k, j]\n");
  KILN_CHECK(plain.ok(), "{}", Message(plain.status()));
  const search::Task task(*plain, target, target::DefaultHardware(target, AvailableCpus()), "");
  const auto choice = search::ChooseHeuristic(task, device::CalibrationOf(task.device).row, 1);
  KILN_CHECK(choice.ok(), "{}", Message(choice.status()));
  return choice->steps;
}

TEST(CompileOperatorTest, InputsAreThoseOfTheCallerAsTheyAre) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(kPackedProduct));
  const OperatorToCompile what{.dag = dag, .description = "product"};
  const ProgramOptions options{.target = *target::ParseTarget("llvm")};
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork untuned, CompileOperator(what, options, nullptr));
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork of_record,
                       CompileOperator(what, options,
                                       search::Choice{.source = search::ChoiceSource::kRecord,
                                                      .steps = kSplitColumns,
                                                      .record = "7",
                                                      .cost_s = 1e-6}));
  EXPECT_EQ(of_record.coverage[0].source, runtime::KernelSource::kReused);
  EXPECT_EQ(of_record.coverage[0].reused_from, "product with packed inputs");
  EXPECT_EQ(of_record.coverage[0].expected_s, 0);
  SmallArchive archive;
  archive.Add(graph::MakeTask(dag, "packed product"), "llvm", 1e-6, "",
              ChosenSteps(options.target));
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork reused, CompileOperator(what, options, &archive));
  EXPECT_EQ(reused.coverage[0].reused_from, "product with packed inputs");
  EXPECT_EQ(reused.coverage[0].record, "1");
  for (const CompiledNetwork* compiled : {&untuned, &of_record, &reused}) {
    EXPECT_THAT(compiled->network.constants, IsEmpty());
    EXPECT_THAT(compiled->network.kernels[0].computation, Not(HasSubstr("packed")));
  }
}

// Counts the times that the records of a computation are read.
class CountingArchive : public SmallArchive {
 public:
  StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) override {
    ++reads[request.workload_id()];
    return SmallArchive::Best(request);
  }
  std::map<std::string, int> reads;
};

TEST(CompileOperatorTest, RecordsAreReadOncePackedAndOnceUnpacked) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(kPackedProduct));
  CountingArchive archive;
  ASSERT_OK(CompileOperator({.dag = dag, .description = "product"},
                            {.target = *target::ParseTarget("llvm")}, &archive)
                .status());
  EXPECT_THAT(archive.reads, SizeIs(2));
  EXPECT_THAT(archive.reads, Each(Pair(_, 1)));
}

TEST(CompileOperatorTest, SaysOfBothSchedulesWhyTheyAreNotUsed) {
  ASSERT_OK_AND_ASSIGN(const dag::DagPtr dag, dag::ParseDag(kPackedProduct));
  const graph::NetworkTask packed = graph::MakeTask(dag, "packed product");
  const graph::NetworkTask plain = graph::MakeTask(dag::PlainInputs(dag), "product");
  SmallArchive archive;
  archive.Set(packed, "llvm", "[[\"SP\", 2, 7, 8, [4], 1]]");
  archive.Set(plain, "llvm", "[[\"SP\", 2, 9, 8, [4], 1]]");
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled,
                       CompileOperator({.dag = dag, .description = "product"},
                                       {.target = *target::ParseTarget("llvm")}, &archive));
  EXPECT_THAT(compiled.coverage[0].remark,
              AllOf(HasSubstr("the schedule can't be compiled for llvm: "),
                    HasSubstr("; the schedule that is set can't be compiled here: ")));
}

TEST(CompileNetworkTest, StrictNamesWhatWasNeverTuned) {
  ASSERT_OK_AND_ASSIGN(const graph::Graph mlp, LoadNetwork({.what = "network:mlp"}));
  CompileOptions options = Cpu();
  options.programs.strict = true;
  EXPECT_THAT(
      CompileNetwork(mlp, options, nullptr),
      StatusIs(StatusCode::kFailedPrecondition, HasSubstr("4 of 4 tasks never tuned for llvm")));
}

}  // namespace
}  // namespace kiln::client
