// Tests a GPU that Kiln does not know. A row for its target kind and a code generator for it, both
// in this file, are enough to parse its targets, search schedules, lower, describe, check, build
// and show programs.
#include <algorithm>
#include <set>

#include "base/status_testing.h"
#include "builder/build_with.h"
#include "client/view/render.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/features/features.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "compiler/target/meaning.h"
#include "search/policies/policy.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kMaxThreads = 256;

target::HardwareParams PretendedHardware(const target::Target&, int) {
  target::HardwareParams hardware;
  hardware.num_cores = -1;
  hardware.vector_unit_bytes = 16;
  hardware.max_shared_memory_per_block_bytes = 16384;
  hardware.max_local_memory_per_block_bytes = 1 << 20;
  hardware.max_threads_per_block = kMaxThreads;
  hardware.max_vthread_extent = 8;
  hardware.warp_size = 16;
  return hardware;
}

constexpr target::TargetOption kOptions[] = {{"chip", target::OptionEffect::kCode},
                                             {"tag", target::OptionEffect::kNone}};

constinit const target::TargetKind kPretended = {.name = "pretended",
                                                 .execution = target::ExecutionModel::kGpu,
                                                 .device = "pretended",
                                                 .unscheduled_flops_per_s = 1e12,
                                                 .processor_option = "chip",
                                                 .options = kOptions,
                                                 .default_hardware = PretendedHardware};

// A backend whose code is the program's text.
class PretendedBackend final : public codegen::Backend {
 public:
  const target::TargetKind& kind() const override { return kPretended; }
  StatusOr<std::string> Compiler() const override { return std::string("a pretended compiler"); }
  Status Check(const ir::Program& program, const target::Target&,
               const target::HardwareParams& hardware) const override {
    for (const ir::Kernel& kernel : program.kernels) {
      const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
      if (threads > hardware.max_threads_per_block)
        return InvalidArgument("kernel {} has {} threads", kernel.name, threads);
    }
    return OkStatus();
  }
  StatusOr<codegen::Compiled> Compile(const ir::Program& program, const target::Target&,
                                      const codegen::CompileOptions&,
                                      codegen::CompileTimes&) const override {
    codegen::Compiled compiled;
    compiled.binary = ir::ProgramText(program);
    return compiled;
  }
  std::span<const codegen::CodeForm> forms() const override {
    static constexpr codegen::CodeForm kForms[] = {{"pretended", "pretended code"}};
    return kForms;
  }
  StatusOr<std::string> Show(std::string_view, const ir::Program& program,
                             const target::Target& target,
                             const ir::PassInstruments*) const override {
    return "// " + target::PrintTarget(target) + "\n" + ir::ProgramText(program);
  }
};

class PretendedGpu : public testing::Test {
 protected:
  PretendedGpu() {
    const auto known = codegen::AllBackends();
    backends_.assign(known.begin(), known.end());
    backends_.push_back(&backend_);
    kinds_ = codegen::KindsOf(backends_);
  }

  target::Target Target() const { return *target::ParseTarget("pretended -chip=c1", kinds_); }

  search::Task Task() const {
    return search::Task(*dag::BuildOp("matmul", "128,128,128"), Target(), {}, "[]");
  }

  // Builds a candidate and makes up its cost from the number of blocks.
  search::Observation Measure(const search::Task& task, const search::Candidate& candidate) {
    v1::BuildRequest request;
    request.set_dag(dag::PrintDag(*task.dag));
    request.set_target(target::PrintTarget(task.target));
    request.set_steps(schedule::PrintSteps(candidate.steps));
    const auto outcome = builder::BuildWith(backends_, request);
    KILN_CHECK(outcome.ok(), "{}", Message(outcome.status()));
    EXPECT_EQ(outcome->reply.error(), v1::NO_ERROR) << outcome->reply.message();
    EXPECT_EQ(outcome->reply.artifact().device(), "pretended");
    const auto program = ir::ParseProgram(outcome->reply.artifact().binary());
    KILN_CHECK(program.ok(), "{}", Message(program.status()));
    const ir::Kernel& kernel = program->kernels[0];
    const auto blocks = static_cast<double>(kernel.grid[0] * kernel.grid[1] * kernel.grid[2]);
    return {.candidate = candidate, .valid = true, .cost_s = 1e-6 * (1 + blocks)};
  }

  const PretendedBackend backend_;
  std::vector<const codegen::Backend*> backends_;
  std::vector<const target::TargetKind*> kinds_;
};

TEST_F(PretendedGpu, ItsTargetsAreParsedByTheTable) {
  const target::Target target = Target();
  EXPECT_EQ(target::PrintTarget(target), "pretended -chip=c1");
  EXPECT_TRUE(target.is_gpu());
  EXPECT_TRUE(MeanSame(target, *target::ParseTarget("pretended -chip=c1 -tag=x", kinds_)));
  EXPECT_FALSE(MeanSame(target, *target::ParseTarget("pretended -chip=c2", kinds_)));
  EXPECT_THAT(target::ParseTarget("pretended -arch=sm_90", kinds_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("it has: chip, tag")));
  EXPECT_THAT(target::ParseTarget("pretended"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected llvm, cuda or null")));
}

TEST_F(PretendedGpu, CandidatesAreForGridsWithinItsLimits) {
  const search::Task task = Task();
  ASSERT_OK_AND_ASSIGN(const auto policy, search::MakePolicy("sketch.random", task, 1));
  ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(32));
  ASSERT_EQ(candidates.size(), 32u);
  for (const search::Candidate& candidate : candidates) {
    ASSERT_OK_AND_ASSIGN(const schedule::State state, schedule::Replay(task.dag, candidate.steps));
    ASSERT_OK_AND_ASSIGN(const ir::Program program,
                         lower::Lower(state, {.gpu = task.target.is_gpu()}));
    EXPECT_OK(backend_.Check(program, task.target, task.hardware));
    for (const ir::Kernel& kernel : program.kernels) EXPECT_EQ(kernel.cluster, 1);
    for (const schedule::StepPtr& step : candidate.steps) {
      const auto* const buffering = schedule::As<schedule::BufferingStep>(*step);
      EXPECT_FALSE(buffering != nullptr && buffering->asynchronous) << "only CUDA has these";
    }
    const FloatMatrix rows =
        features::ExtractFeatures(program, task.target, task.hardware, task.device);
    ASSERT_GT(rows.rows(), 0);
    const auto names = features::FeatureNames();
    const auto column = std::ranges::find(names, "is_gpu") - names.begin();
    EXPECT_EQ(rows.row(0)[column], 1);
  }
}

TEST_F(PretendedGpu, ASearchGoesOnFromWhatIsMeasured) {
  const search::Task task = Task();
  ASSERT_OK_AND_ASSIGN(const search::Models models, search::MakeModels("sketch.analytic", 1));
  ASSERT_OK_AND_ASSIGN(const auto policy,
                       search::MakePolicy("sketch.analytic", task, 1,
                                          {.parameters = {{"evolutionary_search_population", 64},
                                                          {"sample_init_population", 64}},
                                           .models = models}));
  std::set<uint64_t> seen;
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK_AND_ASSIGN(const auto candidates, policy->Propose(8));
    ASSERT_EQ(candidates.size(), 8u);
    std::vector<search::Observation> observations;
    for (const search::Candidate& candidate : candidates) {
      EXPECT_TRUE(seen.insert(candidate.hash).second);
      observations.push_back(Measure(task, candidate));
    }
    policy->Observe(observations);
  }
}

TEST_F(PretendedGpu, ItsLimitsRefuseBeforeItsCompilerIsAsked) {
  v1::BuildRequest request;
  request.set_dag("input A: float32[1024]\nB[i: 1024] = A[i] * 2\n");
  request.set_target("pretended -chip=c1");
  request.set_steps(R"([["SP", 1, 0, 1024, [512], 1], ["AN", 1, 0, 5], ["AN", 1, 1, 6]])");
  ASSERT_OK_AND_ASSIGN(const builder::BuildOutcome outcome, builder::BuildWith(backends_, request));
  EXPECT_EQ(outcome.reply.error(), v1::INSTANTIATION_ERROR);
  EXPECT_THAT(outcome.reply.message(), HasSubstr("512 threads"));
  EXPECT_THAT(builder::Build(request),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("unknown target 'pretended'")));
}

TEST_F(PretendedGpu, ItsCodeIsShown) {
  const client::Rendered what = {*dag::BuildOp("matmul", "16,16,16"), "[]", "pretended -chip=c1"};
  ASSERT_OK_AND_ASSIGN(const std::string text, client::Render(what, "pretended", backends_));
  EXPECT_THAT(text, AllOf(HasSubstr("// pretended -chip=c1\n"), HasSubstr("threadIdx.x")));
  EXPECT_THAT(client::RenderForms(backends_), testing::Contains("pretended"));
  EXPECT_THAT(client::Render(what, "cuda", backends_),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("has no cuda form, only cuda targets do; say --target cuda")));
}

}  // namespace
}  // namespace kiln
