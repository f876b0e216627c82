#include "client/default_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void Add(v1::ListReply& workers, v1::WorkerKind kind, const char* device, const char* target) {
  v1::WorkerState& worker = *workers.add_workers();
  worker.set_kind(kind);
  worker.set_device(device);
  worker.set_target(target);
}

TEST(DefaultTarget, IsTheOneKindThatWorkersHave) {
  v1::ListReply workers;
  Add(workers, v1::BUILDER, "", "");
  Add(workers, v1::RUNNER, "NVIDIA H200", "cuda -arch=sm_90");
  Add(workers, v1::RUNNER, "NVIDIA H100", "cuda -arch=sm_90");
  ASSERT_OK_AND_ASSIGN(const DefaultTarget found, TargetOfWorkers(workers));
  EXPECT_EQ(found.target, "cuda");
  EXPECT_THAT(found.because, HasSubstr("NVIDIA H100, NVIDIA H200"));
}

TEST(DefaultTarget, IsAskedForWhereThereAreSeveralKinds) {
  v1::ListReply workers;
  Add(workers, v1::RUNNER, "NVIDIA H200", "cuda -arch=sm_90");
  Add(workers, v1::RUNNER, "AMD EPYC", "llvm -mcpu=znver4 -num-cores=2");
  EXPECT_THAT(TargetOfWorkers(workers), StatusIs(StatusCode::kFailedPrecondition,
                                                 AllOf(HasSubstr("--target cuda  NVIDIA H200"),
                                                       HasSubstr("--target llvm  AMD EPYC"))));
}

TEST(DefaultTarget, IsAskedForWhereThereIsNoDevice) {
  v1::ListReply workers;
  Add(workers, v1::BUILDER, "", "");
  EXPECT_THAT(TargetOfWorkers(workers),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("give --target")));
}

constexpr char kZen[] = "llvm -mattr=-pku -mcpu=znver4 -num-cores=2";

std::string Completed(const char* text, const v1::ListReply& workers) {
  return target::PrintTarget(CompletedByWorkers(*target::ParseTarget(text), workers));
}

TEST(CompletedByWorkers, IsTheTargetThatAllRunnersOfTheKindAnnounce) {
  v1::ListReply workers;
  Add(workers, v1::RUNNER, "NVIDIA H200", "cuda -arch=sm_90");
  Add(workers, v1::RUNNER, "AMD EPYC", kZen);
  Add(workers, v1::RUNNER, "AMD EPYC", kZen);
  EXPECT_EQ(Completed("llvm", workers), kZen);
  EXPECT_EQ(Completed("llvm -num-cores=1", workers), "llvm -mattr=-pku -mcpu=znver4 -num-cores=1");
  EXPECT_EQ(Completed("cuda -math=tf32", workers), "cuda -arch=sm_90 -math=tf32");
  EXPECT_EQ(Completed("null", workers), "null");
}

TEST(CompletedByWorkers, LeavesWhatNamesAProcessorAndWhatIsAmbiguous) {
  v1::ListReply workers;
  Add(workers, v1::RUNNER, "NVIDIA H200", "cuda -arch=sm_90");
  Add(workers, v1::RUNNER, "AMD EPYC", kZen);
  EXPECT_EQ(Completed("llvm -mcpu=znver3", workers), "llvm -mcpu=znver3");
  EXPECT_EQ(Completed("cuda -arch=sm_80", workers), "cuda -arch=sm_80");
  Add(workers, v1::RUNNER, "Intel Xeon", "llvm -mcpu=skylake-avx512 -num-cores=2");
  EXPECT_EQ(Completed("llvm", workers), "llvm");
}

TEST(DefaultTarget, IsThisMachinesWithoutAScheduler) {
  ASSERT_OK_AND_ASSIGN(const DefaultTarget found, FindDefaultTarget({}));
  EXPECT_EQ(found.target == "llvm", found.because == "this machine has no GPU");
}

}  // namespace
}  // namespace kiln::client
