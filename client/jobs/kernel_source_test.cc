#include "client/jobs/kernel_source.h"

#include "base/file/file.h"
#include "base/status_testing.h"
#include "search/templates/kernel_template.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

class KernelSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempDir::Make("kiln-kernel-source");
    ASSERT_OK(folder.status());
    folder_.emplace(*std::move(folder));
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(folder_->path(), name);
    EXPECT_OK(WriteFile(path, text));
    return path;
  }

  std::optional<TempDir> folder_;
};

struct Example {
  const char* source;
  const char* space;
  int knobs;
  int64_t range, least_valid;
};

TEST(KernelExamples, HaveSpacesAndFitWhatTheyCompute) {
  const Example examples[] = {
      {"matmul.cu", "matmul.toml", 6, 5120, 2500},
      {"conv2d.cu", "conv2d.toml", 8, 14400, 3000},
      {"matmul.c", "matmul_c.toml", 4, 240, 150},
  };
  for (const Example& example : examples) {
    const std::string folder = "examples/kernels/";
    ASSERT_OK_AND_ASSIGN(const KernelSource kernel,
                         LoadKernelSource(folder + example.source, folder + example.space));
    const search::KernelTemplate made(kernel.text);
    ASSERT_OK_AND_ASSIGN(const search::ConfigSpace space, made.Space(kernel.workload.dag));
    EXPECT_EQ(space.knobs().size(), example.knobs);
    EXPECT_EQ(space.range(), example.range) << space.Print();
    EXPECT_GE(space.CountValid().count, example.least_valid) << space.Print();
    EXPECT_EQ(made.for_gpu(), std::string(example.source).ends_with(".cu"));
  }
}

TEST_F(KernelSourceTest, ReadsAReferenceAndAComputationBesideTheSpace) {
  const std::string source = Write("f.c", "void f(const float* x, float* y) {}\n");
  Write("g.c", "void g(const float* x, float* y) {}\n");
  Write("op.te", "input x: float32[8]\ny[i: 8] = x[i] * 2.0\n");
  const std::string space =
      Write("f.toml", "kernel = \"f\"\ncomputation = \"op.te\"\n[parameters]\na = [1]\n");
  ASSERT_OK_AND_ASSIGN(const KernelSource computed, LoadKernelSource(source, space));
  EXPECT_EQ(computed.workload.description, "f.c f, op.te");
  EXPECT_EQ(computed.workload.dag->arguments().size(), 2u);

  const std::string by_kernel = Write(
      "g.toml",
      "kernel = \"f\"\n[parameters]\na = [1]\n[tensors]\nx = \"input float32[8]\"\ny = \"output "
      "float32[8]\"\n[reference]\nfile = \"g.c\"\nkernel = \"g\"\n");
  ASSERT_OK_AND_ASSIGN(const KernelSource referred, LoadKernelSource(source, by_kernel));
  EXPECT_THAT(referred.text.reference->code.source, HasSubstr("void g("));
  EXPECT_EQ(referred.text.reference->code.file, "g.c");
  EXPECT_EQ(referred.workload.description, "f.c f");
}

TEST_F(KernelSourceTest, ErrorsNameFileAndPlace) {
  const std::string source = Write("f.c", "void f(void) {}\n");
  const std::string space = Write("f.toml", "kernel = \"f\"\nkernal = 1\n[parameters]\na = [1]\n");
  EXPECT_THAT(Message(LoadKernelSource(source, space).status()),
              HasSubstr("f.toml:2:1: unknown key 'kernal'"));
  EXPECT_THAT(Message(LoadKernelSource(source, "").status()), HasSubstr("say --space FILE.toml"));
  EXPECT_THAT(Message(LoadKernelSource("f.cpp", space).status()), HasSubstr("*.cu or *.c"));
  EXPECT_EQ(LoadKernelSource(JoinPath(folder_->path(), "no.c"), space).status().code(),
            StatusCode::kNotFound);
  const std::string wrong = Write(
      "w.toml", "kernel = \"f\"\noperator = \"matmool\"\nargs = \"1\"\n[parameters]\na = [1]\n");
  EXPECT_THAT(Message(LoadKernelSource(source, wrong).status()), HasSubstr("w.toml: operator: "));
}

TEST_F(KernelSourceTest, TheTargetFollowsFromTheLanguage) {
  EXPECT_EQ(TargetOfKernel("f.cu", "llvm", true), "cuda");
  EXPECT_EQ(TargetOfKernel("f.cu", "null", false), "null");
  EXPECT_EQ(TargetOfKernel("f.c", "llvm", true), "llvm");
  EXPECT_EQ(TargetOfKernel("matmul", "llvm", true), "llvm");
}

}  // namespace
}  // namespace kiln::client
