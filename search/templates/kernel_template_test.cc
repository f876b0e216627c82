#include "search/templates/kernel_template.h"

#include <set>

#include "base/numbers/rng.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

constexpr std::string_view kSpace = R"toml(
kernel = "matmul"
operator = "matmul"
restrictions = ["block_size_x * block_size_y <= 1024", "not fast or block_size_x > 16"]
grid = ["ceil_div(N, block_size_x)"]
shared_bytes = "1024 * block_size_x"
[constants]
N = "extent(input1, 1)"
[parameters]
block_size_x = [16, 32, 64]
block_size_y = [8, 32]
word = ["float", "float2"]
fast = [true, false]
)toml";

handwritten::KernelText Kernel(std::string_view space = kSpace) {
  auto text = handwritten::ParseSpaceFile(space, handwritten::Language::kCuda, "m.cu", "source");
  KILN_CHECK(text.ok(), "{}", Message(text.status()));
  return *std::move(text);
}

dag::DagPtr Matmul() { return *dag::BuildOp("matmul", "64,64,64"); }

TEST(KernelTemplate, ParametersAreKnobsAndRestrictionsAFilter) {
  const KernelTemplate made(Kernel());
  EXPECT_EQ(made.name(), "matmul");
  EXPECT_TRUE(made.for_gpu());
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made.Space(Matmul()));
  EXPECT_EQ(space.Print(),
            "ConfigSpace (len=16, range_length=24, space_map=\n"
            "   0 block_size_x: OtherOption([16, 32, 64]) len=3\n"
            "   1 block_size_y: OtherOption([8, 32]) len=2\n"
            "   2 word: OtherOption([float, float2]) len=2\n"
            "   3 fast: OtherOption([True, False]) len=2\n"
            ")\n");
  for (int64_t index = 0; index < space.range(); ++index) {
    ASSERT_OK_AND_ASSIGN(const Instance instance, made.Instantiate(Matmul(), space.Get(index)));
    ASSERT_TRUE(instance.kernel.has_value());
    const auto& values = instance.kernel->values;
    ASSERT_EQ(values.size(), 4u);
    const int64_t x = std::get<int64_t>(values[0].second), y = std::get<int64_t>(values[1].second);
    const bool fast = std::get<bool>(values[3].second);
    EXPECT_EQ(space.IsValid(index), x * y <= 1024 && (!fast || x > 16)) << index;
  }
}

TEST(KernelTemplate, PointsHaveHashesOfTheirOwn) {
  const KernelTemplate made(Kernel());
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made.Space(Matmul()));
  std::set<uint64_t> hashes;
  for (int64_t index = 0; index < space.range(); ++index) {
    ASSERT_OK_AND_ASSIGN(const Instance instance, made.Instantiate(Matmul(), space.Get(index)));
    EXPECT_TRUE(hashes.insert(instance.Hash()).second);
  }
  ASSERT_OK_AND_ASSIGN(const TemplatePtr again,
                       KernelTemplate::Parse(handwritten::PrintKernelText(made.text())));
  ASSERT_OK_AND_ASSIGN(const Instance instance, again->Instantiate(Matmul(), space.Get(5)));
  EXPECT_TRUE(hashes.contains(instance.Hash()));
}

TEST(KernelTemplate, WhatADeviceCannotRunIsKnown) {
  const KernelTemplate made(Kernel());
  Task task(Matmul(), *target::ParseTarget("cuda -arch=sm_90"), {}, "[]");
  ASSERT_OK_AND_ASSIGN(const ConfigSpace space, made.Space(Matmul()));
  // block_size_x is 16 or 64, block_size_y is 8 or 32.
  ASSERT_OK_AND_ASSIGN(const Instance small, made.Instantiate(Matmul(), space.Get(0)));
  ASSERT_OK_AND_ASSIGN(const Instance large, made.Instantiate(Matmul(), space.Get(5)));
  Drop drop = Drop::kIllegal;
  EXPECT_OK(made.CheckRuns(small, task, drop));
  EXPECT_THAT(made.CheckRuns(large, task, drop),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("2048 threads per block")));
  EXPECT_EQ(drop, Drop::kThreads);
  task.hardware.max_shared_memory_per_block_bytes = 8192;
  EXPECT_THAT(made.CheckRuns(small, task, drop),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("shared memory")));
  EXPECT_EQ(drop, Drop::kSharedMemory);
}

TEST(KernelTemplate, ComputationsThatItDoesNotFitAreRefused) {
  const KernelTemplate made(Kernel());
  EXPECT_THAT(made.Space(*dag::BuildOp("softmax", "8,8")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no input or output input1")));
}

}  // namespace
}  // namespace kiln::search
