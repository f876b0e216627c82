#include "rpc/device_message.h"

#include "base/status_testing.h"
#include "rpc/fields_testing.h"

namespace kiln {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns a model in which each number has a value of its own.
device::DeviceModel Numbered() {
  device::DeviceModel model;
  model.name = "a device";
  int next = 3;
#define KILN_NUMBER(type, number, largest) model.number = next++;
  KILN_DEVICE_NUMBERS(KILN_NUMBER)
#undef KILN_NUMBER
  model.multiprocessors = 1000;
  model.shared_bytes_per_multiprocessor = 1000;
  return model;
}

TEST(DeviceMessage, HasEachNumberOfTheTableAndNoOther) {
  const v1::DeviceModel message = DeviceMessage(Numbered());
  EXPECT_THAT(UnsetFields(message), IsEmpty());
  ASSERT_OK_AND_ASSIGN(const device::DeviceModel again, DeviceModelOf(message));
  EXPECT_EQ(again, Numbered());
}

TEST(DeviceMessage, RefusesWhatNoDeviceSays) {
  v1::WorkerState runner;
  runner.set_id("r1");
  runner.set_version("0");
  EXPECT_THAT(DeviceModelOf(runner).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'r1' (version 0) announces no device model"),
                             HasSubstr("one version"))));
  *runner.mutable_device_model() = DeviceMessage(Numbered());
  EXPECT_OK(DeviceModelOf(runner));
  runner.mutable_device_model()->set_multiprocessors(-5);
  EXPECT_THAT(DeviceModelOf(runner).status(),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("runner 'r1': device model: multiprocessors is -5")));
}

}  // namespace
}  // namespace kiln
