#include "base/file/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/status_testing.h"

namespace kiln {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFdTest, ClosesOnce) {
  const int raw = open("/dev/null", O_RDONLY);
  {
    UniqueFd fd(raw);
    UniqueFd moved = std::move(fd);
    EXPECT_FALSE(fd.valid());
    EXPECT_EQ(moved.get(), raw);
    EXPECT_TRUE(IsOpen(raw));
  }
  EXPECT_FALSE(IsOpen(raw));
}

TEST(UniqueFdTest, AssignmentClosesTheOldOne) {
  UniqueFd a(open("/dev/null", O_RDONLY)), b(open("/dev/null", O_RDONLY));
  const int old = a.get(), kept = b.get();
  a = std::move(b);
  EXPECT_FALSE(IsOpen(old));
  EXPECT_EQ(a.get(), kept);
  EXPECT_EQ(a.Release(), kept);
  EXPECT_FALSE(a.valid());
  EXPECT_TRUE(IsOpen(kept));
  close(kept);
}

TEST(FdTest, PipesAndSocketsAreCloseOnExec) {
  ASSERT_OK_AND_ASSIGN(Pipe pipe, MakePipe());
  ASSERT_OK_AND_ASSIGN(auto sockets, MakeSocketPair());
  for (int fd : {pipe.read.get(), pipe.write.get(), sockets.first.get(), sockets.second.get()}) {
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC) << fd;
  }
  ASSERT_EQ(write(pipe.write.get(), "a", 1), 1);
  char c;
  ASSERT_EQ(read(pipe.read.get(), &c, 1), 1);
  ASSERT_EQ(write(sockets.first.get(), "b", 1), 1);
  ASSERT_EQ(read(sockets.second.get(), &c, 1), 1);
  EXPECT_EQ(c, 'b');
}

}  // namespace
}  // namespace kiln
