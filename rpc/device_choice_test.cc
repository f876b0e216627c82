#include "rpc/device_choice.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void AddRunner(v1::ListReply& list, const std::string& device,
               const std::vector<std::string>& keys) {
  v1::WorkerState& worker = *list.add_workers();
  worker.set_kind(v1::RUNNER);
  worker.set_device(device);
  for (const std::string& key : keys) worker.add_keys(key);
}

v1::ListReply Farm() {
  v1::ListReply list;
  AddRunner(list, "NVIDIA H200", {"cuda", "cuda/sm_90", "NVIDIA H200", "GPU-1f0caa"});
  AddRunner(list, "NVIDIA H200", {"cuda", "cuda/sm_90", "NVIDIA H200", "GPU-1f0cbb"});
  AddRunner(list, "NVIDIA A100", {"cuda", "cuda/sm_80", "NVIDIA A100", "GPU-2200"});
  AddRunner(list, "AMD EPYC", {"llvm", "cpu", "llvm/x86-64-v4"});
  v1::WorkerState& builder = *list.add_workers();
  builder.set_kind(v1::BUILDER);
  builder.add_keys("cuda");
  builder.add_keys("builder-key");
  return list;
}

TEST(DeviceChoiceTest, ByNameKeyAndUuid) {
  const v1::ListReply farm = Farm();
  const auto chosen = [&](std::string_view wanted, std::string_view kind) {
    const auto key = ChooseDevice(wanted, kind, farm);
    return key.ok() ? *key : std::string(Message(key.status()));
  };
  EXPECT_EQ(chosen("NVIDIA H200", "cuda"), "NVIDIA H200");
  EXPECT_EQ(chosen("nvidia h200", "cuda"), "NVIDIA H200");
  EXPECT_EQ(chosen("h200", "cuda"), "NVIDIA H200");
  EXPECT_EQ(chosen("cuda/sm_80", "cuda"), "cuda/sm_80");
  EXPECT_EQ(chosen("GPU-1f0cbb", "cuda"), "GPU-1f0cbb");
  EXPECT_EQ(chosen("gpu-22", "cuda"), "GPU-2200");
  EXPECT_EQ(chosen("cpu", "llvm"), "cpu");
}

TEST(DeviceChoiceTest, UnknownDevicesAreRefusedWithAListOfTheDevices) {
  EXPECT_THAT(ChooseDevice("H300", "cuda", Farm()),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("device 'H300' is not there for target cuda; there are: "),
                             HasSubstr("NVIDIA A100 (cuda/sm_80, GPU-2200); NVIDIA H200 ("),
                             Not(HasSubstr("EPYC")))));
  // Names of another target, of a builder, from the middle of a UUID, and of several models.
  for (const char* wanted : {"cpu", "builder-key", "f0cbb", "nvidia", "GPU-", "200", ""}) {
    EXPECT_THAT(ChooseDevice(wanted, "cuda", Farm()),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("there are: ")))
        << wanted;
  }
  EXPECT_THAT(ChooseDevice("nvidia", "cuda", Farm()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is not clear")));
  EXPECT_THAT(ChooseDevice("0", "null", Farm()),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no runner is there")));
  EXPECT_TRUE(HasRunnerFor("cuda", Farm()));
  EXPECT_FALSE(HasRunnerFor("null", Farm()));
}

}  // namespace
}  // namespace kiln
