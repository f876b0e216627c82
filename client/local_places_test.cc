#include "client/local_places.h"

#include <fmt/format.h>

#include "base/status_testing.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

// A machine that says nothing about its nodes.
HostTopology Host(const std::string& cores) {
  return HostTopology(*ParseCoreList(cores), "/there/is/no/such/folder");
}

LocalDevice Gpu(int index) {
  return {.device = fmt::format("cuda:GPU-{}", index),
          .label = fmt::format("cuda:{}", index),
          .name = "NVIDIA H200",
          .pci_address = fmt::format("0000:{:02x}:00.0", index)};
}

TEST(LocalPlacesTest, EachGpuHasARunnerWithCoresOfItsOwn) {
  const LocalPlaces places = PlaceDevices({Gpu(0), Gpu(1)}, Host("0-15"));
  ASSERT_EQ(places.runners.size(), 2u);
  EXPECT_EQ(places.runners[1].device.device, "cuda:GPU-1");
  EXPECT_EQ(PlacesText(places),
            "cuda:0 (NVIDIA H200) on cores 14-15, cuda:1 (NVIDIA H200) on cores 12-13; builds on "
            "cores 0-11");
}

TEST(LocalPlacesTest, OnlyGpusHaveCoresOfTheirOwn) {
  const LocalDevice cpu{.device = "cpu", .label = "cpu", .name = "a CPU"};
  EXPECT_EQ(PlacesText(PlaceDevices({cpu}, Host("0-15"))),
            "cpu (a CPU) on any core; builds on any core");
  EXPECT_EQ(PlacesText(PlaceDevices({cpu, Gpu(0)}, Host("0-3"))),
            "cpu (a CPU) on any core, cuda:0 (NVIDIA H200) on core 3; builds on cores 0-2");
}

TEST(LocalPlacesTest, MoreGpusThanCoresShareThemAll) {
  std::vector<LocalDevice> gpus;
  for (int i = 0; i < 8; ++i) gpus.push_back(Gpu(i));
  const LocalPlaces places = PlaceDevices(gpus, Host("0-1"));
  ASSERT_EQ(places.runners.size(), 8u);
  for (const LocalPlaces::Runner& runner : places.runners) {
    EXPECT_EQ(CoreListText(runner.cores), "");
  }
  EXPECT_EQ(CoreListText(places.others), "");
}

}  // namespace
}  // namespace kiln::client
