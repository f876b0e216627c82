#include "runner/private_bytes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kiln::runner {
namespace {

TEST(PrivateBytesTest, AForkDoesNotGetThem) {
  for (const size_t size : {1, 96, 5000, 1 << 20}) {
    PrivateBytes bytes(size);
    std::memset(bytes.data(), 'x', size);
    const PrivateBytes copy = bytes;
    const pid_t pid = fork();
    if (pid == 0) {
      int ends[2];
      if (pipe(ends) != 0) _exit(1);
      // A system call reports missing memory, whereas a read would end the process.
      const bool first_gone = write(ends[1], bytes.data(), 1) < 0 && errno == EFAULT;
      const bool copy_gone = write(ends[1], &copy.back(), 1) < 0 && errno == EFAULT;
      _exit(first_gone && copy_gone ? 0 : 2);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0) << size;
    EXPECT_EQ(copy, bytes);
  }
}

}  // namespace
}  // namespace kiln::runner
