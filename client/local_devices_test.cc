#include "client/local_devices.h"

#include <fmt/format.h>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::HasSubstr;

TEST(LocalDevicesTest, ByIndexUuidAndName) {
  v1::ListReply there;
  for (const char* uuid : {"GPU-aa11", "GPU-bb22"}) {
    v1::WorkerState& runner = *there.add_workers();
    runner.set_kind(v1::RUNNER);
    runner.set_device("NVIDIA H200");
    for (const char* key : {"cuda", "NVIDIA H200", uuid}) runner.add_keys(key);
  }
  ASSERT_OK_AND_ASSIGN(const std::string second, ChooseLocalDevice("1", "cuda", there));
  EXPECT_EQ(second, "GPU-bb22");
  ASSERT_OK_AND_ASSIGN(const std::string first, ChooseLocalDevice("GPU-aa", "cuda", there));
  EXPECT_EQ(first, "GPU-aa11");
  ASSERT_OK_AND_ASSIGN(const std::string model, ChooseLocalDevice("H200", "cuda", there));
  EXPECT_EQ(model, "NVIDIA H200");
  EXPECT_THAT(
      ChooseLocalDevice("2", "cuda", there),
      StatusIs(StatusCode::kInvalidArgument, HasSubstr("there are: NVIDIA H200 (GPU-aa11)")));
}

constexpr char kGpu[] =
    "cuda:GPU-{0}\tcuda -arch=sm_90\tNVIDIA H200\tname=NVIDIA H200\t"
    "0000:{0}:00.0\n";

std::string Listing(const std::vector<std::string>& gpus) {
  std::string listing;
  for (const std::string& gpu : gpus) listing += fmt::format(kGpu, gpu);
  return listing;
}

std::vector<std::string> Labels(const std::vector<LocalDevice>& devices) {
  std::vector<std::string> labels;
  for (const LocalDevice& device : devices) labels.push_back(device.label);
  return labels;
}

TEST(LocalDevicesTest, AListingIsRead) {
  ASSERT_OK_AND_ASSIGN(const auto gpus, ParseLocalDevices(Listing({"3b", "5e"})));
  EXPECT_THAT(Labels(gpus), testing::ElementsAre("cuda:0", "cuda:1"));
  EXPECT_EQ(gpus[1].device, "cuda:GPU-5e");
  EXPECT_EQ(gpus[1].name, "NVIDIA H200");
  EXPECT_EQ(gpus[1].pci_address, "0000:5e:00.0");
  EXPECT_THAT(gpus[1].runner.keys(), testing::ElementsAre("cuda", "NVIDIA H200", "GPU-5e"));
  ASSERT_OK_AND_ASSIGN(const auto one, ParseLocalDevices(Listing({"3b"})));
  EXPECT_THAT(Labels(one), testing::ElementsAre("cuda"));
  ASSERT_OK_AND_ASSIGN(const auto null, ParseLocalDevices("null\tnull\tnull\tname=null\t\n"));
  EXPECT_THAT(Labels(null), testing::ElementsAre("null"));
  EXPECT_EQ(null[0].pci_address, "");
  EXPECT_FALSE(ParseLocalDevices("cuda:GPU-3b\tcuda\n").ok());
}

TEST(LocalDevicesTest, SomeOfTheDevices) {
  const auto gpus = *ParseLocalDevices(Listing({"3b", "3c", "5e"}));
  const auto chosen = [&](const std::string& wanted) { return ChooseLocalDevices(wanted, gpus); };
  EXPECT_EQ(chosen("all")->size(), 3u);
  EXPECT_THAT(Labels(*chosen("2,0")), testing::ElementsAre("cuda:0", "cuda:2"));
  EXPECT_THAT(Labels(*chosen("GPU-5")), testing::ElementsAre("cuda:2"));
  EXPECT_THAT(chosen("0,3"), StatusIs(StatusCode::kInvalidArgument,
                                      HasSubstr("'3' of --devices 0,3 stands for 0 devices; there "
                                                "are: 0 (NVIDIA H200, GPU-3b), 1 (")));
  EXPECT_THAT(chosen("GPU-3"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("stands for 2 devices")));
  EXPECT_THAT(chosen("1,GPU-3c"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("names device 1 twice")));
  for (const char* wanted : {"", ",", "-1", "0,", "99999999999"}) {
    EXPECT_EQ(chosen(wanted).status().code(), StatusCode::kInvalidArgument) << wanted;
  }
}

}  // namespace
}  // namespace kiln::client
