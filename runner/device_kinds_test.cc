#include "runner/device_kinds.h"

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;

TEST(DeviceKinds, AreFoundByName) {
  for (const DeviceKind& kind : AllDeviceKinds()) {
    ASSERT_OK_AND_ASSIGN(const DeviceKind* const found, FindDeviceKind(kind.name));
    EXPECT_EQ(found->name, kind.name);
    const std::string one = std::string(kind.name) + ":0";
    EXPECT_EQ(FindDeviceKind(one).ok(), kind.is_numbered) << one;
  }
  for (const char* device : {"", "gpu", "cudax", "CPU", ":0"}) {
    EXPECT_THAT(FindDeviceKind(device),
                StatusIs(StatusCode::kInvalidArgument,
                         testing::AllOf(HasSubstr(std::string("'") + device + "' is no device"),
                                        HasSubstr("expected one of cpu, cuda, cuda:..., null"))));
  }
}

TEST(DeviceKinds, WhatIsAlwaysThereIsDescribed) {
  for (const char* name : {"cpu", "null"}) {
    ASSERT_OK_AND_ASSIGN(const DeviceKind* const kind, FindDeviceKind(name));
    ASSERT_OK_AND_ASSIGN(const auto devices, kind->describe(name, {.threads = 2}));
    ASSERT_EQ(devices.size(), 1);
    EXPECT_EQ(devices[0].device, name);
    EXPECT_THAT(devices[0].state.keys(), testing::Contains(name));
    EXPECT_EQ(devices[0].state.hardware().num_cores(), 2);
    EXPECT_NE(devices[0].state.device_model().name(), "");
  }
}

TEST(DeviceKinds, OnlyNullRunsNothing) {
  for (const DeviceKind& kind : AllDeviceKinds())
    EXPECT_EQ(kind.open == nullptr, kind.name == "null") << kind.name;
}

// Another kind of device is one more row.
TEST(DeviceKinds, ATableMayHaveOthers) {
  const DeviceKind pretended[] = {{.name = "pretend",
                                   .help = "pretend",
                                   .describe = [](std::string_view device, const DeviceSettings&)
                                       -> StatusOr<std::vector<DeviceDescription>> {
                                     return std::vector{DeviceDescription{std::string(device), {}}};
                                   }}};
  ASSERT_OK_AND_ASSIGN(const DeviceKind* const kind, FindDeviceKind("pretend", pretended));
  ASSERT_OK_AND_ASSIGN(const auto devices, kind->describe("pretend", {}));
  EXPECT_EQ(devices[0].device, "pretend");
  EXPECT_THAT(FindDeviceKind("cpu", pretended),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("expected one of pretend")));
}

}  // namespace
}  // namespace kiln::runner
