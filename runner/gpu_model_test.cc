#include "runner/gpu_model.h"

#include "base/status_testing.h"
#include "runner/cuda_kernels_testing.h"

namespace kiln::runner {

// For the names of the CUDA driver.
using namespace runtime;

namespace {

using ::testing::HasSubstr;

class GpuModelTest : public testing::Test {
 protected:
  GpuModelTest() { ResetFakeCuda(); }

  StatusOr<device::DeviceModel> Read() {
    KILN_ASSIGN_OR_RETURN(const auto gpus, ListCudaGpus(FakeCuda::Driver()));
    return ReadGpuModel(FakeCuda::Driver(), gpus[0]);
  }

  FakeCuda& cuda_ = FakeCuda::Get();
};

TEST_F(GpuModelTest, SaysWhatTheDriverSays) {
  cuda_.gpus[0].attributes = {
      {kCuMaxRegistersPerMultiprocessor, 65536}, {kCuMaxRegistersPerBlock, 65536},
      {kCuMaxThreadsPerMultiprocessor, 2048},    {kCuMaxBlocksPerMultiprocessor, 32},
      {kCuReservedSharedMemoryPerBlock, 1024},
  };
  ASSERT_OK_AND_ASSIGN(device::DeviceModel model, Read());
  device::DeviceModel want = device::UsualGpu(90);
  want.name = "Fake GPU";
  want.memory_bytes = 1 << 30;
  want.l2_bytes = 1 << 20;
  EXPECT_EQ(PrintDeviceModel(model), PrintDeviceModel(want));
  EXPECT_EQ(cuda_.contexts, 0);
  EXPECT_EQ(cuda_.modules, 0);
}

TEST_F(GpuModelTest, ASmallGpuHasNoClustersAndLeavesNothingToGuess) {
  cuda_.gpus[0].major = 7;
  cuda_.gpus[0].attributes = {{kCuMultiprocessorCount, 20},
                              {kCuMaxSharedMemoryPerBlockOptin, 49152},
                              {kCuMaxSharedMemoryPerMultiprocessor, 65536}};
  ASSERT_OK_AND_ASSIGN(const device::DeviceModel model, Read());
  EXPECT_EQ(model.compute_capability, 70);
  EXPECT_EQ(model.multiprocessors, 20);
  EXPECT_EQ(model.max_cluster_blocks, 1);
  EXPECT_EQ(model.multiprocessors_in_clusters_of_2, 0);
}

TEST_F(GpuModelTest, TheLargestClusterIsTheLargestThatIsResident) {
  cuda_.active_clusters_of = {{2, 60}, {4, 28}};
  ASSERT_OK_AND_ASSIGN(const device::DeviceModel model, Read());
  EXPECT_EQ(model.max_cluster_blocks, 4);
  EXPECT_EQ(model.multiprocessors_in_clusters_of_2, 120);
  EXPECT_EQ(model.multiprocessors_in_clusters_of_4, 112);
  EXPECT_EQ(model.multiprocessors_in_clusters_of_8, 0);
}

TEST_F(GpuModelTest, WhereNoContextCanBeMadeClustersAreNotKnown) {
  cuda_.load_result = kCuOutOfMemory;
  ASSERT_OK_AND_ASSIGN(const device::DeviceModel model, Read());
  EXPECT_EQ(model.max_cluster_blocks, 0);
  EXPECT_EQ(cuda_.contexts, 0);
}

TEST_F(GpuModelTest, RefusesWhatNoDeviceIs) {
  cuda_.gpus[0].attributes = {{kCuMultiprocessorCount, 1 << 20}};
  EXPECT_THAT(Read().status(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("multiprocessors is 1048576")));
}

}  // namespace
}  // namespace kiln::runner
