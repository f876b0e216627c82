#include "client/farm/farm_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln::client {
namespace {

TEST(FarmFolder, TheUsualOneIsWhereStateIsKept) {
  setenv("HOME", "/home/alice", 1);
  setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(*FarmFolder::DefaultPath(), "/state/kiln/farm");
  // Relative paths do not count.
  for (const char* state : {"", "state"}) {
    setenv("XDG_STATE_HOME", state, 1);
    EXPECT_EQ(*FarmFolder::DefaultPath(), "/home/alice/.local/state/kiln/farm");
  }
  unsetenv("HOME");
  EXPECT_THAT(Message(FarmFolder::DefaultPath().status()), testing::HasSubstr("--folder"));
}

TEST(FarmFolder, OneHolderOfTheLock) {
  ASSERT_OK_AND_ASSIGN(const TempDir temporary, TempDir::Make("kiln-farm-folder"));
  const FarmFolder folder(temporary.Join("farm"));
  EXPECT_FALSE(folder.IsLocked(Clock::Real()));
  EXPECT_FALSE(FileExists(folder.path())) << "looking makes nothing";
  ASSERT_OK(MakeDirs(folder.path()));
  {
    ASSERT_OK_AND_ASSIGN(const FileLock lock, folder.Lock(absl::ZeroDuration(), Clock::Real()));
    EXPECT_TRUE(folder.IsLocked(Clock::Real()));
    EXPECT_FALSE(folder.Lock(absl::ZeroDuration(), Clock::Real()).ok());
  }
  EXPECT_FALSE(folder.IsLocked(Clock::Real()));
  EXPECT_EQ(folder.LogFile("runner cpu"), folder.path() + "/runner-cpu.log");
  EXPECT_EQ(folder.PortFile("runner cuda:1"), folder.path() + "/runner-cuda-1.port");
}

}  // namespace
}  // namespace kiln::client
