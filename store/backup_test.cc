#include "store/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/status_testing.h"
#include "store/database_check.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'764'403'200);

// A database with job "j" and its trials.
std::unique_ptr<Store> StoreWith(const std::string& path, uint32_t trials) {
  auto store = OpenSqliteStore(path);
  EXPECT_OK(store.status());
  JobRow job;
  job.id = "j";
  (*store)->AddJob(job).IgnoreError();
  for (uint32_t trial = 0; trial < trials; ++trial) {
    EXPECT_OK((*store)->AddRecord(TestRecord("j", trial)));
  }
  return *std::move(store);
}

size_t RecordsIn(const std::string& path) {
  const auto store = OpenSqliteStore(path);
  EXPECT_OK(store.status());
  if (!store.ok()) return 0;
  const auto records = (*store)->RecordsOfJob("j", 0);
  EXPECT_OK(records.status());
  if (!records.ok()) return 0;
  for (size_t i = 0; i < records->size(); ++i) {
    EXPECT_EQ(Describe((*records)[i]), Describe(TestRecord("j", static_cast<uint32_t>(i))));
  }
  return records->size();
}

class BackupTest : public testing::Test {
 protected:
  // The names of the folder's files, without those of the database itself.
  std::vector<std::string> OtherFiles() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.File(""))) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("kiln.db-") && name != "kiln.db" && name != "copy.db")
        names.push_back(name);
    }
    return names;
  }

  const TestFolder folder_;
  const std::string db_ = folder_.File("kiln.db"), copy_ = folder_.File("copy.db");
};

TEST_F(BackupTest, OneFileHoldsEverythingThatWasCommitted) {
  const auto store = StoreWith(db_, 20);
  ASSERT_OK_AND_ASSIGN(const DatabaseSize size, BackUpDatabase(db_, copy_, false));
  EXPECT_EQ(size.records, 20);
  EXPECT_EQ(size.jobs, 1);
  EXPECT_EQ(size.bytes, static_cast<int64_t>(std::filesystem::file_size(copy_)));
  EXPECT_FALSE(std::filesystem::exists(copy_ + "-wal"));
  EXPECT_EQ(RecordsIn(copy_), 20u);
  EXPECT_THAT(OtherFiles(), IsEmpty());
}

// A writer commits a record after the other, each an index of all before. A copy has the first n,
// whatever n is, and the writer never waits for the end of a copy.
TEST_F(BackupTest, CopiesAreOfOneMomentWhileAWriterGoesOn) {
  const auto store = StoreWith(db_, 0);
  std::atomic<bool> stop = false;
  std::atomic<uint32_t> written = 0;
  std::thread writer([&] {
    while (!stop) {
      Record record = TestRecord("j", written);
      record.message = std::string(5000, 'm');
      EXPECT_OK(store->AddRecord(record));
      ++written;
    }
  });
  while (written < 100) std::this_thread::yield();
  size_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const uint32_t before = written;
    ASSERT_OK_AND_ASSIGN(const DatabaseSize size, BackUpDatabase(db_, copy_, /*replace=*/true));
    EXPECT_GE(size.records, before);
    ASSERT_OK_AND_ASSIGN(const auto copy, OpenSqliteStore(copy_));
    ASSERT_OK_AND_ASSIGN(const auto records, copy->RecordsOfJob("j", 0));
    EXPECT_EQ(records.size(), static_cast<size_t>(size.records));
    EXPECT_GE(records.size(), last);
    last = records.size();
    for (size_t trial = 0; trial < records.size(); ++trial) {
      ASSERT_EQ(records[trial].trial, trial);
    }
  }
  const uint32_t after = written;
  while (written == after) std::this_thread::yield();
  stop = true;
  writer.join();
}

TEST_F(BackupTest, AFileIsReplacedOnlyIfThatIsAskedFor) {
  const auto store = StoreWith(db_, 1);
  WriteFile(copy_, "precious");
  EXPECT_THAT(BackUpDatabase(db_, copy_, false),
              StatusIs(StatusCode::kAlreadyExists, HasSubstr("--replace")));
  EXPECT_EQ(ReadFile(copy_), "precious");
  EXPECT_THAT(BackUpDatabase(db_, db_, true),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is the database itself")));
  EXPECT_OK(BackUpDatabase(db_, copy_, true).status());
  EXPECT_EQ(RecordsIn(copy_), 1u);
}

TEST_F(BackupTest, NothingIsLeftOfABackupThatFails) {
  EXPECT_THAT(BackUpDatabase(db_, copy_, false), StatusIs(StatusCode::kNotFound, testing::_));
  WriteFile(db_, std::string(8192, 'x'));
  EXPECT_THAT(BackUpDatabase(db_, copy_, false),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("not a Kiln database")));
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_THAT(OtherFiles(), IsEmpty());
}

TEST_F(BackupTest, ADamagedDatabaseMakesNoBackup) {
  StoreWith(db_, 200);
  std::string bytes = ReadFile(db_);
  // A page in the middle, behind the schema.
  const size_t page = bytes.size() / 8192 * 4096;
  bytes.replace(page, 4096, std::string(4096, '\x7f'));
  WriteFile(db_, bytes);
  EXPECT_THAT(BackUpDatabase(db_, copy_, false), StatusIs(StatusCode::kDataLoss, testing::_));
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_THAT(OtherFiles(), IsEmpty());
}

TEST_F(BackupTest, ARestoreKeepsTheFileBefore) {
  StoreWith(db_, 3);
  ASSERT_OK(BackUpDatabase(db_, copy_, false).status());
  StoreWith(folder_.File("newer.db"), 7);
  std::filesystem::rename(folder_.File("newer.db"), db_);
  ASSERT_OK_AND_ASSIGN(const Restored restored, RestoreDatabase(copy_, db_, kNow));
  EXPECT_THAT(restored.kept, testing::EndsWith("/kiln.db.before-20251129T080000.000"));
  EXPECT_EQ(RecordsIn(db_), 3u);
  EXPECT_EQ(RecordsIn(restored.kept), 7u);
  EXPECT_EQ(RecordsIn(copy_), 3u) << "the backup stays";
}

// After a kill the last commits are in the log. They belong to the file that is kept, and never to
// the one that is put in its place.
TEST_F(BackupTest, TheLogGoesWithTheFileBefore) {
  StoreWith(copy_, 3);
  {
    const auto store = StoreWith(db_, 7);
    for (const char* const suffix : {"", "-wal"}) {
      std::filesystem::copy(db_ + suffix, folder_.File("killed.db") + suffix);
    }
  }
  const std::string killed = folder_.File("killed.db");
  ASSERT_GT(std::filesystem::file_size(killed + "-wal"), 0u);
  ASSERT_OK_AND_ASSIGN(const Restored restored, RestoreDatabase(copy_, killed, kNow));
  EXPECT_EQ(RecordsIn(killed), 3u);
  EXPECT_EQ(RecordsIn(restored.kept), 7u);
}

// The file may be lost, and its log not.
TEST_F(BackupTest, ALogWithoutItsFileIsKeptAsideToo) {
  StoreWith(copy_, 3);
  const std::string killed = folder_.File("killed.db");
  {
    const auto store = StoreWith(db_, 7);
    std::filesystem::copy(db_ + "-wal", killed + "-wal");
  }
  ASSERT_GT(std::filesystem::file_size(killed + "-wal"), 0u);
  EXPECT_THAT(
      BackUpDatabase(copy_, killed, false),
      StatusIs(StatusCode::kFailedPrecondition, testing::HasSubstr("killed.db-wal is the")));
  ASSERT_OK_AND_ASSIGN(const Restored restored, RestoreDatabase(copy_, killed, kNow));
  EXPECT_EQ(restored.kept, "");
  EXPECT_EQ(RecordsIn(killed), 3u);
  EXPECT_OK(BackUpDatabase(copy_, folder_.File("other.db"), false).status());
}

TEST_F(BackupTest, ARestoreReplacesEvenADamagedFileAndFollowsALink) {
  StoreWith(copy_, 3);
  WriteFile(folder_.File("real.db"), "no database");
  std::filesystem::create_symlink("real.db", db_);
  ASSERT_OK_AND_ASSIGN(const Restored restored, RestoreDatabase(copy_, db_, kNow));
  EXPECT_EQ(ReadFile(restored.kept), "no database");
  EXPECT_TRUE(std::filesystem::is_symlink(db_));
  EXPECT_EQ(RecordsIn(folder_.File("real.db")), 3u);
}

TEST_F(BackupTest, ARestoreThatFailsChangesNothing) {
  StoreWith(db_, 3);
  WriteFile(copy_, "no database");
  EXPECT_THAT(RestoreDatabase(copy_, db_, kNow),
              StatusIs(StatusCode::kFailedPrecondition, testing::_));
  EXPECT_THAT(RestoreDatabase(db_, db_, kNow), StatusIs(StatusCode::kInvalidArgument, testing::_));
  EXPECT_EQ(RecordsIn(db_), 3u);
  EXPECT_THAT(OtherFiles(), IsEmpty());
}

}  // namespace
}  // namespace kiln::store
