// The tree is a folder with files of the same names, since the machines that run this test need not
// delegate one.
#include "base/process/cgroup.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

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
    Write("root/farm.service/cgroup.procs", fmt::format("{}\n", getpid()));
    for (const std::string& file :
         {std::string("cgroup.subtree_control"), std::string("daemon/cgroup.procs"),
          OfChildren("cgroup.procs"), OfChildren("memory.max"), OfChildren("pids.max")}) {
      Write("root/farm.service/" + file, "");
    }
  }
  static std::string OfChildren(const std::string& file) {
    return fmt::format("children-{}-{}/{}", program_invocation_short_name, getpid(), file);
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
  Write("root/farm.service/" + OfChildren("memory.swap.max"), "max");
  ASSERT_OK_AND_ASSIGN(const std::string children, Make());
  EXPECT_EQ(children + "/", folder_.Join("root/farm.service/" + OfChildren("")));
  EXPECT_EQ(Read("daemon/cgroup.procs"), "0");
  EXPECT_EQ(Read("cgroup.subtree_control"), "+memory +pids");
  EXPECT_EQ(Read(OfChildren("memory.max")), "1048576");
  EXPECT_EQ(Read(OfChildren("memory.swap.max")).front(), '0');
  EXPECT_EQ(Read(OfChildren("pids.max")), "64");
  ASSERT_OK(JoinGroup(children));
  EXPECT_EQ(Read(OfChildren("cgroup.procs")), "0");
}

TEST_F(CgroupTest, AKernelWithoutSwapHasNoFileForIt) {
  ASSERT_OK(Make());
  EXPECT_EQ(Read(OfChildren("memory.swap.max")), "none");
}

TEST_F(CgroupTest, ADaemonThatIsInTheGroupAlreadyUsesItAgain) {
  Write("own", "0::/farm.service/daemon\n");
  ASSERT_OK_AND_ASSIGN(const std::string children, Make());
  EXPECT_EQ(children + "/", folder_.Join("root/farm.service/" + OfChildren("")));
}

// The daemon that came first has left the group, so that its controllers are on.
TEST_F(CgroupTest, ASecondDaemonSharesNoLimits) {
  const std::string first = fmt::format("children-kiln-{}", getppid());
  Write("root/farm.service/" + first + "/memory.max", "5");
  Write("root/farm.service/cgroup.subtree_control", "memory pids\n");
  ASSERT_OK(Make());
  EXPECT_EQ(Read("cgroup.subtree_control"), "memory pids\n");
  EXPECT_EQ(Read(first + "/memory.max"), "5");
  EXPECT_EQ(Read(OfChildren("memory.max")), "1048576");
}

TEST_F(CgroupTest, GroupsOfDaemonsThatAreGoneAreRemoved) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  const auto group = [&](pid_t pid) {
    return folder_.Join(fmt::format("root/farm.service/children-kiln-{}", pid));
  };
  ASSERT_OK(MakeDirs(group(gone)));
  ASSERT_OK(MakeDirs(group(getppid())));
  ASSERT_OK(Make());
  EXPECT_FALSE(FileExists(group(gone)));
  EXPECT_TRUE(FileExists(group(getppid()))) << "its daemon lives";
}

TEST_F(CgroupTest, ADaemonThatGetsNoGroupStaysWhereItIs) {
  Write("root/farm.service/cgroup.procs", fmt::format("{}\n{}\n", getppid(), getpid()));
  EXPECT_THAT(Make(), StatusIs(StatusCode::kFailedPrecondition,
                               HasSubstr(fmt::format("process {} is in the group", getppid()))));
  EXPECT_EQ(Read("daemon/cgroup.procs"), "");
  EXPECT_EQ(Read("cgroup.subtree_control"), "");
  // The kernel refuses the controllers, which a missing file does here.
  Write("root/farm.service/cgroup.procs", fmt::format("{}\n", getpid()));
  ASSERT_OK(RemoveFile(folder_.Join("root/farm.service/cgroup.subtree_control")));
  EXPECT_FALSE(Make().ok());
  EXPECT_EQ(Read("cgroup.procs").front(), '0') << "it is back";
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
