#include "client/local_devices.h"

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

}  // namespace
}  // namespace kiln::client
