#include "client/farm/farm_places.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/status_testing.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;
using Names = std::vector<std::string>;

// A machine with so many GPUs.
ListDevices With(int gpus) {
  return [gpus](const std::string& kind) -> StatusOr<std::vector<LocalDevice>> {
    if (kind != "cuda") {
      return std::vector{LocalDevice{.device = kind, .label = kind, .name = "a " + kind}};
    }
    if (gpus == 0) return FailedPrecondition("no driver");
    std::vector<LocalDevice> devices;
    for (int i = 0; i < gpus; ++i) {
      LocalDevice& gpu = devices.emplace_back();
      gpu.device = fmt::format("cuda:GPU-{}", i);
      gpu.label = gpus == 1 ? "cuda" : fmt::format("cuda:{}", i);
      gpu.name = "NVIDIA H200";
      for (const char* const key : {"cuda", "NVIDIA H200"}) gpu.runner.add_keys(key);
      gpu.runner.add_keys(fmt::format("GPU-{}", i));
    }
    return devices;
  };
}

FarmOptions Kinds(const Names& kinds, const std::string& gpus = "all") {
  FarmOptions options;
  options.devices = kinds;
  options.gpus = gpus;
  return options;
}

// Returns for each runner its label and cores.
StatusOr<Names> Runners(const FarmOptions& options, int gpus, const std::string& cores = "0-15") {
  const HostTopology host(*ParseCoreList(cores), "/there/is/no/such/folder");
  KILN_ASSIGN_OR_RETURN(const LocalPlaces places, FindFarmPlaces(options, With(gpus), host));
  Names names;
  for (const LocalPlaces::Runner& runner : places.runners) {
    names.push_back(fmt::format("{} {}", runner.device.label, CoreListText(runner.cores)));
  }
  names.push_back("others " + CoreListText(places.others));
  return names;
}

TEST(FarmPlacesTest, WhatIsThere) {
  EXPECT_EQ(*Runners({}, 0), (Names{"cpu ", "others "}));
  EXPECT_EQ(*Runners({}, 1), (Names{"cpu ", "cuda 14-15", "others 0-13"}));
  EXPECT_EQ(*Runners({}, 2), (Names{"cpu ", "cuda:0 14-15", "cuda:1 12-13", "others 0-11"}));
  ASSERT_OK_AND_ASSIGN(const Names eight, Runners({}, 8));
  EXPECT_EQ(eight.front(), "cpu ");
  EXPECT_EQ(eight[8], "cuda:7 8");
  EXPECT_EQ(eight.back(), "others 0-7");
}

TEST(FarmPlacesTest, WhatTheUserNames) {
  EXPECT_EQ(*Runners(Kinds({"cuda"}, "1"), 2), (Names{"cuda:1 14-15", "others 0-13"}));
  EXPECT_EQ(*Runners(Kinds({}, "GPU-0"), 2), (Names{"cpu ", "cuda:0 14-15", "others 0-13"}));
  EXPECT_EQ(*Runners(Kinds({"null", "cpu", "null"}), 0),
            (Names{"null:0 ", "null:1 ", "cpu ", "others "}));
  EXPECT_THAT(Runners(Kinds({"cpu", "cpu"}), 0),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("--device cpu is given 2 times")));
  EXPECT_THAT(Runners(Kinds({}, "0,2"), 2),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'2' of --devices 0,2")));
}

TEST(FarmPlacesTest, GpusThatAreNotThere) {
  EXPECT_EQ(Runners(Kinds({"cuda"}), 0).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Runners(Kinds({}, "0"), 0).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace kiln::client
