#include "client/daemon_child.h"

#include <gmock/gmock.h>
#include <sched.h>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/core_list.h"

namespace kiln::client {
namespace {

std::vector<int> CoresOfThisThread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(DaemonChildTest, AChildStaysOnItsCores) {
  const std::vector<int> before = CoresOfThisThread();
  ASSERT_OK(BecomeClusterChild("-", "-"));
  EXPECT_EQ(CoresOfThisThread(), before);
  const std::vector<int> last = {before.back()};
  ASSERT_OK(BecomeClusterChild("-", CoreListText(last)));
  EXPECT_EQ(CoresOfThisThread(), last);
  // A control group may have taken the cores away since.
  testing::internal::CaptureStderr();
  ASSERT_OK(BecomeClusterChild("-", "65535"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("cannot stay on the cores 65535"));
  EXPECT_EQ(CoresOfThisThread(), last);
  ASSERT_OK(BecomeClusterChild("-", CoreListText(before)));
  EXPECT_EQ(CoresOfThisThread(), before);
}

TEST(DaemonChildTest, AChildSaysThatItsLogCannotBeWritten) {
  EXPECT_THAT(BecomeClusterChild("/there/is/no/such/folder/log", "-"),
              StatusIs(StatusCode::kNotFound, testing::HasSubstr("cannot write")));
}

}  // namespace
}  // namespace kiln::client
