#include "client/view/render.h"

#include "base/status_testing.h"
#include "client/view/render_kernel.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/handwritten/kernel_point.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using testing::Not;

// Steps that run rows of eight in parallel.
constexpr char kSteps[] = R"([["SP", 2, 0, 64, [8], 1], ["AN", 2, 0, 3]])";

class RenderTest : public testing::Test {
 protected:
  std::string Text(const Rendered& what, std::string_view form) {
    auto text = Render(what, form);
    EXPECT_OK(text.status());
    return text.ok() ? *text : std::string();
  }
  dag::DagPtr dag_ = *dag::BuildOp("matmul", "64,64,64");
};

TEST_F(RenderTest, EveryFormEndsWithANewline) {
  for (const std::string& form : RenderForms()) {
    // Only kernels have this form.
    if (form == kCForm) continue;
    for (const char* steps : {"[]", kSteps}) {
      const bool gpu = form == "cuda";
      // The steps are a CPU schedule.
      if (gpu && steps == kSteps) continue;
      const std::string text =
          Text({dag_, steps, gpu ? "cuda -arch=sm_90" : "llvm -mcpu=x86-64-v3"}, form);
      ASSERT_FALSE(text.empty()) << form;
      EXPECT_EQ(text.back(), '\n') << form;
    }
  }
}

TEST_F(RenderTest, KernelsHaveFormsOfTheirOwn) {
  const auto kernel = handwritten::ParseSpaceFile(
      "kernel = \"f\"\noperator = \"matmul\"\ngrid = [\"64 // tile\"]\n[parameters]\ntile = [8]\n",
      handwritten::Language::kC, "f.c", "void f();\n");
  ASSERT_OK(kernel.status());
  Rendered what = {
      .dag = dag_,
      .steps = handwritten::PrintKernelPoint({.kernel = handwritten::KernelDigest(*kernel),
                                              .function = "f",
                                              .values = {{"tile", int64_t{8}}}}),
      .target = "llvm",
      .kernel = handwritten::PrintKernelText(*kernel)};
  EXPECT_EQ(Text(what, "schedule"), "# kernel f\ntile = 8\n# called for 8 blocks (8 x 1 x 1)\n");
  EXPECT_THAT(Text(what, "c"), HasSubstr("#define tile 8\n#line 1 \"f.c\"\nvoid f();\n"));
  EXPECT_EQ(Text(what, "steps"), what.steps + "\n");
  EXPECT_THAT(Render(what, "llvm").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has no llvm form")));
  what.kernel.clear();
  EXPECT_THAT(Render(what, "c").status(),
              StatusIs(StatusCode::kNotFound, HasSubstr("is not there")));
  EXPECT_THAT(Render({dag_, "[]", "llvm"}, "c").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("kernels that people wrote in C")));
}

TEST_F(RenderTest, TheFormsAreWhatTheySay) {
  const Rendered what = {dag_, kSteps, "llvm -mcpu=x86-64-v3"};
  EXPECT_OK(dag::ParseDag(Text(what, "dag")).status());
  EXPECT_EQ(Text(what, "steps"), "[[\"SP\", 2, 0, 64, [8], 1],\n [\"AN\", 2, 0, 3]]\n");
  EXPECT_THAT(Text(what, "schedule"), HasSubstr(".parallel("));
  EXPECT_THAT(Text(what, "loops"), HasSubstr("parallel"));
  EXPECT_THAT(Text(what, "program"), HasSubstr("program("));
  EXPECT_THAT(Text(what, "llvm"), HasSubstr("define "));
  EXPECT_THAT(Text(what, "asm"), HasSubstr(".text"));
}

TEST_F(RenderTest, PassesSayWhatTheyChange) {
  Rendered what = {dag_, R"([["SP", 2, 0, 64, [8], 1], ["AN", 2, 0, 3], ["AN", 2, 1, 3]])",
                   "llvm -mcpu=x86-64-v3"};
  EXPECT_THAT(Text(what, "passes"),
              testing::AllOf(
                  HasSubstr("# infer-bounds: "), HasSubstr("# build-nests: "),
                  testing::ContainsRegex("# legalize-loops: .* us, changed the program:\nprogram"),
                  testing::ContainsRegex("# auto-unroll: .* us, changed nothing\n$")));
  what.leave_out = {"legalize-loops"};
  EXPECT_THAT(Render(what, "program").status(),
              StatusIs(StatusCode::kInternal, HasSubstr("broken after legalize-loops: ")));
}

TEST_F(RenderTest, PassesAreLeftOutByName) {
  Rendered what = {dag_, R"([["SP", 2, 1, 64, [4], 1], ["PR", 2, 0, "auto_unroll_max_step$64"]])",
                   "llvm -mcpu=x86-64-v3"};
  EXPECT_THAT(Text(what, "program"), HasSubstr("unroll k in"));
  what.leave_out = {"auto-unroll"};
  EXPECT_THAT(Text(what, "program"), Not(HasSubstr("unroll k in")));
  EXPECT_THAT(Text(what, "passes"), HasSubstr(", left out\n"));
  EXPECT_THAT(Text(what, "llvm"), HasSubstr("define "));
  what.leave_out = {"auto-unrol"};
  EXPECT_THAT(Render(what, "program").status(),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("no pass is called 'auto-unrol' here, expected one of: "
                                 "legalize-loops, auto-unroll")));
  EXPECT_THAT(Render(what, "dag").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("--leave-out is for passes, ")));
}

TEST_F(RenderTest, PassesOfTheGeneratorOfAGpuToo) {
  EXPECT_THAT(Text({dag_, "[]", "cuda -arch=sm_90"}, "passes"),
              testing::AllOf(HasSubstr("# inject-vthreads: "), HasSubstr("# sink-register-loops: "),
                             HasSubstr("# double-buffer-operands: ")));
}

TEST_F(RenderTest, TheUnscheduledLoopsHaveNoPrimitives) {
  EXPECT_THAT(Text({dag_, "[]", "null"}, "schedule"), HasSubstr("unscheduled"));
  EXPECT_THAT(Text({dag_, "[]", "null"}, "program"), Not(HasSubstr("parallel")));
  EXPECT_THAT(Text({dag_, "[]", "cuda -arch=sm_90"}, "cuda"), HasSubstr("__global__"));
  if (codegen::FindNvrtc().ok()) {
    EXPECT_THAT(
        Text({dag_, "[]", "cuda -arch=sm_90"}, "cuda"),
        testing::AllOf(testing::StartsWith("// For sm_90, per thread:\n//   "),
                       HasSubstr(" registers, 0 bytes spilled, 0 bytes of stack; 0 bytes of")));
  }
}

TEST_F(RenderTest, Refusals) {
  EXPECT_THAT(Render({dag_, "[]", "null"}, "llvm").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("target 'null' has no llvm form")));
  EXPECT_THAT(Render({dag_, "[]", "llvm"}, "cuda").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("target 'llvm' has no cuda form")));
  EXPECT_THAT(Render({dag_, "[]", "llvm"}, "ptx").status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected one of: dag, steps")));
  EXPECT_FALSE(Render({dag_, R"([["SP", 9, 0, 64, [8], 1]])", "llvm"}, "loops").ok());
  EXPECT_FALSE(Render({dag_, "no JSON", "llvm"}, "steps").ok());
  EXPECT_FALSE(Render({dag_, "[]", "llvm -mcpu=8086"}, "asm").ok());
}

}  // namespace
}  // namespace kiln::client
