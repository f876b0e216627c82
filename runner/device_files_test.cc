// The devices are files of a folder, since the machines that run this test have no GPU.
#include "runner/device_files.h"

#include <cstdlib>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(DeviceFilesTest, ACpuNeedsNoDevicesAndWritesNothing) {
  const FileView view = CpuFiles();
  EXPECT_THAT(view.devices, ElementsAre("/dev/null", "/dev/zero", "/dev/urandom"));
  EXPECT_THAT(view.write, IsEmpty());
  EXPECT_THAT(view.read, Contains("/usr/lib"));
  for (const char* path : {"/", "/etc", "/home", "/root", "/tmp", "/usr", "/proc", "/dev"}) {
    EXPECT_THAT(view.read, Not(Contains(path)));
  }
  EXPECT_FALSE(view.has_shared_memory);
  EXPECT_FALSE(view.has_sockets);
}

TEST(DeviceFilesTest, AGpuNeedsTheDriversDevicesAndNoOthers) {
  TempDir folder = *TempDir::Make("device-files-test");
  for (const char* path : {"dev/nvidia-caps", "sys/module/nvidia_uvm", "sys/module/kvm"}) {
    ASSERT_OK(MakeDirs(folder.Join(path)));
  }
  for (const char* path : {"dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm",
                           "dev/nvidia-caps/nvidia-cap1", "dev/sda", "dev/mem", "dev/kvm"}) {
    ASSERT_OK(WriteFile(folder.Join(path), ""));
  }
  setenv("CUDA_CACHE_PATH", "/var/cache/farm", 1);
  setenv("LD_LIBRARY_PATH", "/opt/driver/lib:relative", 1);
  const FileView view = CudaFiles(folder.path());
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("CUDA_CACHE_PATH");
  EXPECT_THAT(view.devices,
              ElementsAre("/dev/null", "/dev/zero", "/dev/urandom", folder.Join("dev/nvidia-caps"),
                          folder.Join("dev/nvidia-uvm"), folder.Join("dev/nvidia0"),
                          folder.Join("dev/nvidia1"), folder.Join("dev/nvidiactl")));
  EXPECT_THAT(view.write, ElementsAre("/var/cache/farm"));
  EXPECT_THAT(view.read, Contains(folder.Join("sys/module/nvidia_uvm")));
  EXPECT_THAT(view.read, Contains("/opt/driver/lib"));
  EXPECT_THAT(view.read, Not(Contains(folder.Join("sys/module/kvm"))));
  EXPECT_TRUE(view.has_shared_memory);
  EXPECT_TRUE(view.has_sockets);
}

}  // namespace
}  // namespace kiln::runner
