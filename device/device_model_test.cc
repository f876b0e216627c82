#include "device/device_model.h"

#include <limits>

#include "base/status_testing.h"

namespace kiln::device {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DeviceModel SmallGpu() {
  DeviceModel model;
  model.name = "Small GPU = 2; x";
  model.compute_capability = 75;
  model.multiprocessors = 20;
  model.clock_mhz = 1000;
  model.memory_clock_mhz = 4000;
  model.memory_bus_bits = 128;
  model.shared_bytes_per_multiprocessor = 64 << 10;
  model.shared_bytes_per_block = 48 << 10;
  model.max_cluster_blocks = 1;
  return model;
}

TEST(DeviceModel, EveryNumberIsPrintedAndParsesBack) {
  int count = 0;
  const auto check = [&](const DeviceModel& model) {
    ++count;
    const std::string text = PrintDeviceModel(model);
    ASSERT_OK_AND_ASSIGN(const DeviceModel again, ParseDeviceModel(text));
    EXPECT_EQ(again, model) << text;
    EXPECT_EQ(PrintDeviceModel(again), text);
  };
  check(SmallGpu());
#define KILN_ONE(type, number, largest) \
  {                                     \
    DeviceModel model;                  \
    model.name = "x";                   \
    model.multiprocessors = 9;          \
    model.number = 7;                   \
    check(model);                       \
  }
  KILN_DEVICE_NUMBERS(KILN_ONE)
#undef KILN_ONE
  EXPECT_GT(count, 20);
  EXPECT_EQ(PrintDeviceModel(SmallGpu()),
            "compute_capability=75 multiprocessors=20 clock_mhz=1000 memory_clock_mhz=4000 "
            "memory_bus_bits=128 shared_bytes_per_multiprocessor=65536 "
            "shared_bytes_per_block=49152 max_cluster_blocks=1 name=Small GPU = 2; x");
}

TEST(DeviceModel, RefusesWhatNoDeviceSays) {
  const auto refused = [](auto change, std::string_view message) {
    DeviceModel model = SmallGpu();
    change(model);
    EXPECT_THAT(CheckDeviceModel(model),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(message))));
    EXPECT_FALSE(ParseDeviceModel(PrintDeviceModel(model)).ok());
  };
#define KILN_ONE(type, number, largest)                                     \
  refused([](auto& m) { m.number = -1; }, #number " is -1, expected 0 to"); \
  refused([](auto& m) { m.number = std::numeric_limits<type>::max(); }, #number " is ");
  KILN_DEVICE_NUMBERS(KILN_ONE)
#undef KILN_ONE
  refused([](auto& m) { m.name.clear(); }, "no name");
  refused([](auto& m) { m.name = std::string(300, 'x'); }, "300 bytes");
  refused([](auto& m) { m.name = "a\nb"; }, "byte 0x0a");
  refused([](auto& m) { m.multiprocessors = 0; }, "no multiprocessors");
  refused([](auto& m) { m.multiprocessors_in_clusters_of_4 = 24; }, "24 multiprocessors of 20");
  refused([](auto& m) { m.opt_in_shared_bytes_per_block = 1 << 20; }, "its multiprocessor 65536");
}

TEST(DeviceModel, RefusesTextsThatAreNone) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected name=..."},
           {"cores=2", "expected name=..."},
           {"cores=2 name=", "no name"},
           {"cores=2 cores=2 name=x", "given twice"},
           {"cores=two name=x", "'two', expected a whole number"},
           {"cores=99999999999 name=x", "expected a whole number"},
           {"cores name=x", "expected a whole number"},
           {"legs=2 name=x", "no number 'legs'"}}) {
    EXPECT_THAT(ParseDeviceModel(text).status(),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

TEST(DeviceModel, AGpuOfAnotherMakerHasNoCapability) {
  ASSERT_OK_AND_ASSIGN(const DeviceModel model,
                       ParseDeviceModel("multiprocessors=24 clock_mhz=2000 name=Pretended"));
  EXPECT_TRUE(model.is_gpu());
  EXPECT_THAT(DeviceSummary(model),
              ::testing::AllOf(HasSubstr("24 multiprocessors"), Not(HasSubstr("capability"))));
  EXPECT_EQ(FilledGpu(model, 0).multiprocessors, 24);
}

TEST(DeviceModel, WhatAGpuDoesNotSayIsUsual) {
  const DeviceModel known = FilledGpu(SmallGpu(), 90);
  EXPECT_EQ(known.multiprocessors, 20);
  // The number of the device's own capability.
  EXPECT_EQ(known.threads_per_multiprocessor, 1024);
  EXPECT_EQ(known.reserved_shared_bytes_per_block, 0);
  EXPECT_EQ(known.multiprocessors_in_clusters_of_2, 0);
  EXPECT_EQ(FilledGpu({}, 80).multiprocessors, 108);
  EXPECT_EQ(FilledGpu({}, 0), FilledGpu({}, 90));
  EXPECT_EQ(FilledGpu({}, 0).multiprocessors, 132);
  // An unknown generation is like the one before it.
  EXPECT_EQ(UsualGpu(95).multiprocessors, 132);
  EXPECT_EQ(UsualGpu(60).multiprocessors, 80);
  for (int capability = 1; capability < 200; ++capability) {
    EXPECT_OK(CheckDeviceModel(UsualGpu(capability)));
    EXPECT_EQ(FilledGpu(UsualGpu(capability), 0), UsualGpu(capability));
  }
}

TEST(DeviceModel, WhatIsFilledInContradictsNothing) {
  DeviceModel small = SmallGpu();
  small.shared_bytes_per_block = 0;
  small.shared_bytes_per_multiprocessor = 32 << 10;
  const DeviceModel filled = FilledGpu(small, 0);
  EXPECT_OK(CheckDeviceModel(filled));
  EXPECT_EQ(filled.opt_in_shared_bytes_per_block, 32 << 10);
  DeviceModel large = SmallGpu();
  large.shared_bytes_per_multiprocessor = 0;
  large.opt_in_shared_bytes_per_block = 300 << 10;
  EXPECT_OK(CheckDeviceModel(FilledGpu(large, 0)));
}

TEST(DeviceModel, ClustersFillAPartOfTheMultiprocessors) {
  DeviceModel model = UsualGpu(90);
  EXPECT_EQ(MultiprocessorsForClusters(model, 1), 132);
  EXPECT_EQ(MultiprocessorsForClusters(model, 2), 132);
  EXPECT_EQ(MultiprocessorsForClusters(model, 4), 120);
  EXPECT_EQ(MultiprocessorsForClusters(model, 7), 120);
  EXPECT_EQ(MultiprocessorsForClusters(model, 16), 112);
  // A device with fewer multiprocessors that does not report the number has the same share.
  DeviceModel half;
  half.compute_capability = 90;
  half.multiprocessors = 66;
  EXPECT_EQ(MultiprocessorsForClusters(FilledGpu(half, 0), 8), 60);
  // This device reports the numbers.
  half.max_cluster_blocks = 4;
  half.multiprocessors_in_clusters_of_2 = 64;
  half.multiprocessors_in_clusters_of_4 = 48;
  EXPECT_EQ(MultiprocessorsForClusters(FilledGpu(half, 0), 4), 48);
  EXPECT_EQ(MultiprocessorsForClusters(FilledGpu(half, 0), 8), 1);
  EXPECT_EQ(MultiprocessorsForClusters(DeviceModel(), 4), 1);
}

TEST(DeviceModel, SaysBandwidthAndMatrixUnits) {
  EXPECT_DOUBLE_EQ(MemoryBandwidth(SmallGpu()), 128e9);
  EXPECT_EQ(MemoryBandwidth(DeviceModel()), 0);
  EXPECT_THAT(MatrixUnits(DeviceModel()), IsEmpty());
  EXPECT_THAT(MatrixUnits(UsualGpu(75)), Not(Contains("tf32")));
  EXPECT_THAT(MatrixUnits(UsualGpu(90)), Contains("wgmma"));
  EXPECT_THAT(MatrixUnits(UsualGpu(120)), Not(Contains("wgmma")));
  EXPECT_EQ(DeviceSummary(SmallGpu()),
            "capability 7.5, 20 multiprocessors, 1000 MHz, memory 128 GB/s, "
            "48.00 KiB of shared memory a block, matrix units fp16 int8");
}

}  // namespace
}  // namespace kiln::device
