#include "scheduler/database_lock.h"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "base/status_testing.h"
#include "store/folder_testing.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(DatabaseLockTest, OneHolderAtATime) {
  store::TestFolder folder;
  const std::string db = folder.File("kiln.db");
  {
    ASSERT_OK_AND_ASSIGN(const DatabaseLock held, DatabaseLock::Take(db));
    EXPECT_THAT(DatabaseLock::Take(db),
                StatusIs(StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(db), HasSubstr(std::to_string(getpid())))));
    EXPECT_OK(DatabaseLock::Take(folder.File("other.db")));
  }
  EXPECT_FALSE(std::filesystem::exists(db + ".lock"));
  EXPECT_OK(DatabaseLock::Take(db));
}

TEST(DatabaseLockTest, AFolderThatIsNotThereIsNamed) {
  store::TestFolder folder;
  const std::string db = folder.File("none/kiln.db");
  EXPECT_THAT(DatabaseLock::Take(db),
              StatusIs(StatusCode::kNotFound, AllOf(HasSubstr(db), HasSubstr("mkdir -p"))));
}

TEST(DatabaseLockTest, AnotherNameOfTheFileIsTheSameDatabase) {
  store::TestFolder folder;
  const std::string db = folder.File("kiln.db"), link = folder.File("link.db");
  const auto in_use = StatusIs(StatusCode::kFailedPrecondition, HasSubstr("is in use"));
  std::filesystem::create_symlink("kiln.db", link);
  {
    ASSERT_OK_AND_ASSIGN(const DatabaseLock held, DatabaseLock::Take(db));
    EXPECT_THAT(DatabaseLock::Take(link), in_use) << "the file is not there yet";
    store::WriteFile(db, "");
    EXPECT_THAT(DatabaseLock::Take(link), in_use);
    EXPECT_THAT(DatabaseLock::Take(folder.File("../") +
                                   std::filesystem::path(db).parent_path().filename().string() +
                                   "/kiln.db"),
                in_use);
  }
  ASSERT_OK_AND_ASSIGN(const DatabaseLock held, DatabaseLock::Take(link));
  EXPECT_THAT(DatabaseLock::Take(db), in_use);
}

TEST(DatabaseLockTest, AFileThatWasLeftBehindIsHarmless) {
  store::TestFolder folder;
  store::WriteFile(folder.File("kiln.db.lock"), "123456789\n");
  EXPECT_OK(DatabaseLock::Take(folder.File("kiln.db")));
}

TEST(DatabaseLockTest, NeverTwoHoldersWhileTheFileComesAndGoes) {
  store::TestFolder folder;
  const std::string db = folder.File("kiln.db");
  std::atomic<int> holders{0}, most{0}, taken{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 500; ++n) {
          auto lock = DatabaseLock::Take(db);
          if (!lock.ok()) continue;
          const int now = ++holders;
          ++taken;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          --holders;
        }
      });
    }
  }
  EXPECT_EQ(most, 1);
  EXPECT_GT(taken, 0);
}

TEST(DatabaseLockTest, NoSuchFolder) {
  EXPECT_THAT(DatabaseLock::Take("/no-such-folder/kiln.db"),
              StatusIs(StatusCode::kNotFound, HasSubstr("/no-such-folder/kiln.db")));
}

}  // namespace
}  // namespace kiln::scheduler
