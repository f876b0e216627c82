#include "base/file/file_lock.h"

#include <optional>
#include <thread>
#include <vector>

#include "base/file/file.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

TEST(FileLockTest, OneHolderAtATime) {
  const TempDir folder = *TempDir::Make("file-lock-test");
  const std::string path = folder.Join("lock");
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 25; ++j) {
        const auto lock = FileLock::Acquire(path, absl::Minutes(1), Clock::Real());
        ASSERT_OK(lock.status());
        const int seen = count;
        std::this_thread::yield();
        count = seen + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 100);
}

TEST(FileLockTest, AFolderHasOneHolderAtATime) {
  const TempDir temporary = *TempDir::Make("file-lock-test");
  const std::string folder = temporary.Join("folder");
  ASSERT_OK(MakeDirs(folder));
  FakeClock clock;
  ASSERT_OK_AND_ASSIGN(std::optional<FileLock> held,
                       FileLock::AcquireFolder(folder, absl::ZeroDuration(), clock));
  EXPECT_THAT(FileLock::AcquireFolder(folder, absl::ZeroDuration(), clock),
              StatusIs(StatusCode::kUnavailable, HasSubstr(folder)));
  held.reset();
  EXPECT_OK(FileLock::AcquireFolder(folder, absl::ZeroDuration(), clock));
  EXPECT_THAT(FileLock::AcquireFolder(temporary.Join("none"), absl::ZeroDuration(), clock),
              StatusIs(StatusCode::kNotFound, HasSubstr("none")));
}

TEST(FileLockTest, PatienceEnds) {
  const TempDir folder = *TempDir::Make("file-lock-test");
  const std::string path = folder.Join("lock");
  ASSERT_OK_AND_ASSIGN(std::optional<FileLock> held,
                       FileLock::Acquire(path, absl::Seconds(1), Clock::Real()));
  FakeClock clock;
  std::thread waiter([&] {
    EXPECT_THAT(FileLock::Acquire(path, absl::Seconds(5), clock),
                StatusIs(StatusCode::kUnavailable, HasSubstr("has kept the lock")));
  });
  clock.WaitForSleepers(1);
  clock.Advance(absl::Seconds(5));
  waiter.join();
  held.reset();
  EXPECT_OK(FileLock::Acquire(path, absl::ZeroDuration(), clock));
}

TEST(FileLockTest, AFolderThatIsNotThere) {
  EXPECT_THAT(FileLock::Acquire("/no/such/folder/lock", absl::Seconds(1), Clock::Real()),
              StatusIs(StatusCode::kNotFound, HasSubstr("/no/such/folder/lock")));
}

}  // namespace
}  // namespace kiln
