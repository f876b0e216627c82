#include "client/fleet/scheduler_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(SchedulerQueue, ASchedulerThatIsNotThereIsNamedAsOne) {
  Session session;
  session.scheduler = "127.0.0.1:1";
  EXPECT_THAT(SchedulerQueue(session).List(),
              StatusIs(StatusCode::kUnavailable,
                       AllOf(HasSubstr("cannot reach a scheduler at " + session.scheduler),
                             HasSubstr("start one with `kiln scheduler`"))));
}

}  // namespace
}  // namespace kiln::client
