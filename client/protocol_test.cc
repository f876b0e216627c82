#include "client/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"
#include "base/version.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(CheckProtocolTest, OnlyTheSameProtocolFits) {
  v1::VersionReply told;
  told.set_version("7");
  told.set_protocol(kProtocol);
  EXPECT_OK(CheckProtocol(told, "box:9290"));
  for (const uint32_t other : {kProtocol - 1, kProtocol + 1}) {
    told.set_protocol(other);
    EXPECT_THAT(CheckProtocol(told, "box:9290"),
                StatusIs(StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("box:9290 is kiln 7 of protocol " + std::to_string(other)),
                               HasSubstr("run the same kiln at both ends"))));
  }
}

}  // namespace
}  // namespace kiln::client
