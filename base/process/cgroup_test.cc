// The tree is a folder with files of the same names, since the machines that run this test need not
// delegate one.
#include "base/process/cgroup.h"

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    Write("own", "4:memory:/old\n0::/farm.service\n");
    Write("root/farm.service/cgroup.controllers", "cpu memory pids\n");
    for (const char* file : {"cgroup.subtree_control", "daemon/cgroup.procs",
                             "children/cgroup.procs", "children/memory.max", "children/pids.max"}) {
      Write(std::string("root/farm.service/") + file, "");
    }
  }
  void Write(const std::string& name, const std::string& text) {
    const std::string path = folder_.Join(name);
    ASSERT_OK(MakeDirs(path.substr(0, path.rfind('/'))));
    ASSERT_OK(WriteFile(path, text));
  }
  std::string Read(const std::string& name) {
    return ReadFile(folder_.Join("root/farm.service/" + name)).value_or("none");
  }
  StatusOr<std::string> Make() {
    return MakeChildGroup({.memory_bytes = 1 << 20, .processes = 64}, folder_.Join("root"),
                          folder_.Join("own"));
  }

  TempDir folder_ = *TempDir::Make("cgroup-test");
};

TEST_F(CgroupTest, ChildrenHaveLimitsAndTheDaemonIsBeside) {
  ASSERT_OK_AND_ASSIGN(const std::string children, Make());
  EXPECT_EQ(children, folder_.Join("root/farm.service/children"));
  EXPECT_EQ(Read("daemon/cgroup.procs"), "0");
  EXPECT_EQ(Read("cgroup.subtree_control"), "+memory +pids");
  EXPECT_EQ(Read("children/memory.max"), "1048576");
  EXPECT_EQ(Read("children/pids.max"), "64");
  ASSERT_OK(JoinGroup(children));
  EXPECT_EQ(Read("children/cgroup.procs"), "0");
}

TEST_F(CgroupTest, ADaemonThatIsInTheGroupAlreadyUsesItAgain) {
  Write("own", "0::/farm.service/daemon\n");
  ASSERT_OK_AND_ASSIGN(const std::string children, Make());
  EXPECT_EQ(children, folder_.Join("root/farm.service/children"));
}

TEST_F(CgroupTest, SaysWhatIsMissing) {
  Write("root/farm.service/cgroup.controllers", "cpu memory\n");
  EXPECT_THAT(Make(), StatusIs(StatusCode::kFailedPrecondition,
                               AllOf(HasSubstr("no controller 'pids', it has 'cpu memory'"),
                                     HasSubstr("Delegate="))));
  ASSERT_OK(RemoveFile(folder_.Join("root/farm.service/cgroup.controllers")));
  EXPECT_THAT(Make(), StatusIs(StatusCode::kFailedPrecondition,
                               HasSubstr("no version 2 of control groups")));
  Write("own", "4:memory:/old\n");
  EXPECT_THAT(Make(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("names no group of version 2")));
}

}  // namespace
}  // namespace kiln
