#include "builder/handwritten_build.h"

#include <cstdlib>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "builder/build.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/handwritten/kernel_text.h"
#include "rpc/artifact_digest.h"

namespace kiln::builder {
namespace {

using testing::HasSubstr;

constexpr char kDag[] =
    "input x: float32[256]\n@range(0.5, 2)\ninput z: float32[256]\ny[i: 256] = x[i] * z[i]\n";
constexpr char kSource[] =
    "#if STEP == 3\n#error steps of three do not work\n#endif\n"
    "void f(const float* x, const float* z, float* y, int n) {\n"
    "  for (int i = 0; i < n; i += STEP)\n"
    "    for (int j = i; j < i + STEP; ++j) y[j] = x[j] * z[j];\n}\n";
constexpr char kSpace[] =
    "kernel = \"f\"\noperator = \"multiply\"\narguments = [\"x\", \"z\", \"y\", { int32 = 256 }]\n"
    "[parameters]\nSTEP = [1, 2, 3, 4]\n";

handwritten::KernelText Kernel(std::string_view more = "") {
  auto text = handwritten::ParseSpaceFile(std::string(more) + kSpace, handwritten::Language::kC,
                                          "f.c", kSource);
  KILN_CHECK(text.ok(), "{}", Message(text.status()));
  return *std::move(text);
}

v1::BuildRequest RequestOf(const handwritten::KernelText& kernel, int64_t step,
                           const std::string& target = "llvm -mcpu=native") {
  v1::BuildRequest request;
  request.set_dag(kDag);
  request.set_target(target);
  request.set_kernel(handwritten::PrintKernelText(kernel));
  request.set_steps(handwritten::PrintKernelPoint({.kernel = handwritten::KernelDigest(kernel),
                                                   .function = kernel.code.function,
                                                   .values = {{"STEP", step}}}));
  return request;
}

v1::BuildReply BuildOrDie(const v1::BuildRequest& request) {
  auto outcome = Build(request);
  KILN_CHECK(outcome.ok(), "{}", Message(outcome.status()));
  return outcome->reply;
}

TEST(HandwrittenBuild, MakesAnArtifactAsThatOfLoops) {
  v1::BuildRequest request = RequestOf(Kernel(), 4);
  const v1::BuildReply kernel = BuildOrDie(request);
  ASSERT_EQ(kernel.error(), v1::NO_ERROR) << kernel.message();
  EXPECT_EQ(kernel.artifact().device(), "cpu");
  EXPECT_EQ(kernel.artifact().digest(), DigestOf(kernel.artifact()));
  EXPECT_EQ(kernel.artifact().plan().args(1).range().low(), 0.5);
  // The program that the kernel is compared with takes the same arguments.
  request.set_steps("[]");
  const v1::BuildReply loops = BuildOrDie(request);
  ASSERT_EQ(loops.error(), v1::NO_ERROR) << loops.message();
  ASSERT_EQ(loops.artifact().plan().args_size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(loops.artifact().plan().args(i).DebugString(),
              kernel.artifact().plan().args(i).DebugString());
  }
}

TEST(HandwrittenBuild, EachSetOfValuesIsAProgram) {
  const std::string two = BuildOrDie(RequestOf(Kernel(), 2, "null")).artifact().digest();
  const std::string four = BuildOrDie(RequestOf(Kernel(), 4, "null")).artifact().digest();
  EXPECT_NE(two, four);
  EXPECT_EQ(BuildOrDie(RequestOf(Kernel(), 2, "null")).artifact().digest(), two);
}

TEST(HandwrittenBuild, WhatTheCompilerRefusesIsItsMessage) {
  const v1::BuildReply reply = BuildOrDie(RequestOf(Kernel(), 3));
  EXPECT_EQ(reply.error(), v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(reply.message(), HasSubstr("f.c:2:2: error: #error steps of three do not work"));
}

TEST(HandwrittenBuild, ValuesOfAnotherKernelAreRefused) {
  handwritten::KernelText kernel = Kernel();
  v1::BuildRequest request = RequestOf(kernel, 2);
  kernel.code.source += "\n";
  request.set_kernel(handwritten::PrintKernelText(kernel));
  const v1::BuildReply other = BuildOrDie(request);
  EXPECT_EQ(other.error(), v1::INSTANTIATION_ERROR);
  EXPECT_THAT(other.message(), HasSubstr("the parameters are of kernel"));

  request.clear_kernel();
  EXPECT_THAT(Build(request),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("`kernel` is empty")));
  request.set_kernel("kernel =");
  EXPECT_THAT(Message(Build(request).status()), HasSubstr("kernel: line 1, column"));
}

TEST(HandwrittenBuild, AReferenceKernelStandsForTheLoops) {
  std::string space =
      "kernel = \"f\"\narguments = [\"x\", \"z\", \"y\", { int32 = 256 }]\n[parameters]\nSTEP = "
      "[1, 2]\n"
      "[tensors]\nx = \"input float32[256]\"\nz = \"input float32[256]\"\ny = \"output "
      "float32[256]\"\n"
      "[reference.parameters]\nSTEP = 1\n";
  ASSERT_OK_AND_ASSIGN(const auto kernel, handwritten::ParseSpaceFile(
                                              space, handwritten::Language::kC, "f.c", kSource));
  v1::BuildRequest request = RequestOf(kernel, 1, "null");
  const v1::BuildReply point = BuildOrDie(request);
  request.set_steps("[]");
  const v1::BuildReply reference = BuildOrDie(request);
  ASSERT_EQ(reference.error(), v1::NO_ERROR) << reference.message();
  EXPECT_EQ(reference.artifact().digest(), point.artifact().digest()) << "the same values";
}

TEST(HandwrittenBuild, AMissingCompilerIsNamed) {
  ASSERT_OK_AND_ASSIGN(const TempDir empty, TempDir::Make("kiln-no-compiler"));
  const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  setenv("PATH", empty.path().c_str(), 1);
  const auto outcome = Build(RequestOf(Kernel(), 2));
  setenv("PATH", path.c_str(), 1);
  ASSERT_OK(outcome.status());
  EXPECT_EQ(outcome->reply.error(), v1::COMPILE_HOST_ERROR);
  EXPECT_THAT(outcome->reply.message(), HasSubstr("there is no cc, gcc or clang in PATH"));
  EXPECT_FALSE(outcome->repeatable);
}

}  // namespace
}  // namespace kiln::builder
