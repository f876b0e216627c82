#include "rpc/hardware_message.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rpc/fields_testing.h"

namespace kiln {
namespace {

TEST(HardwareMessageTest, TheMessageHasTheParametersAndNoOthers) {
  std::vector<std::string> names;
#define KILN_NAME(type, name, value) names.push_back(#name);
  KILN_HARDWARE_PARAMS(KILN_NAME)
#undef KILN_NAME
  const auto* message = v1::HardwareParams::descriptor();
  ASSERT_EQ(static_cast<size_t>(message->field_count()), names.size());
  for (int i = 0; i < message->field_count(); ++i) EXPECT_EQ(message->field(i)->name(), names[i]);
}

TEST(HardwareMessageTest, ThereAndBack) {
  v1::HardwareParams message;
  int next = 0;
  FillFields(message, next);
  const v1::HardwareParams back = HardwareMessage(HardwareParamsOf(message));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(message, back))
      << back.ShortDebugString();
  EXPECT_EQ(HardwareParamsOf(v1::HardwareParams()), HardwareParamsOf(HardwareRow{}));
}

}  // namespace
}  // namespace kiln
