#include "client/compile/compiled_form.h"

#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/compile/compile_network.h"
#include "graph/text_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

class CompiledFormTest : public testing::Test {
 protected:
  CompiledFormTest() : folder_(*TempDir::Make("compiled_form_test")) {}

  static StatusOr<CompiledNetwork> Compiled() {
    const graph::Graph network = graph::ParsedGraph(
        "input x: float32[4, 8]\nconst w: float32[8, 8] = random(1, -1, 1)\n"
        "y = matmul(x, w)\noutput y");
    return CompileNetwork(
        network, {.programs = {.target = *target::ParseTarget("llvm")}, .pack_constants = true},
        nullptr);
  }

  const TempDir folder_;
};

TEST_F(CompiledFormTest, ALibraryHasTheBytesOfTheFileAtTheirAlignment) {
  constexpr size_t kAlignment = 4096;
  const std::string path = folder_.Join("net.kiln"), library_path = folder_.Join("net.so");
  ASSERT_OK_AND_ASSIGN(const CompiledNetwork compiled, Compiled());
  ASSERT_OK(WriteCompiledAs(CompiledForm::kKiln, path, compiled).status());
  ASSERT_OK_AND_ASSIGN(const int64_t bytes,
                       WriteCompiledAs(CompiledForm::kTvmFfi, library_path, compiled));
  ASSERT_OK_AND_ASSIGN(const std::string file, ReadFile(path));
  ASSERT_OK_AND_ASSIGN(const std::string library, ReadFile(library_path));
  EXPECT_EQ(static_cast<size_t>(bytes), library.size());
  const size_t at = library.find(file);
  ASSERT_NE(at, std::string::npos);
  EXPECT_EQ(at % kAlignment, 0u);
}

TEST_F(CompiledFormTest, LibrariesAreOfThisProcessor) {
  ASSERT_OK_AND_ASSIGN(CompiledNetwork compiled, Compiled());
  compiled.network.target.arch = "pdp11";
  const std::string path = folder_.Join("net.so");
  EXPECT_THAT(WriteCompiledAs(CompiledForm::kTvmFfi, path, compiled),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("for CUDA or for a CPU of")));
  EXPECT_FALSE(FileExists(path));
}

}  // namespace
}  // namespace kiln::client
