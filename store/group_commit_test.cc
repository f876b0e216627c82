#include "store/group_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "base/status_testing.h"
#include "store/folder_testing.h"

namespace kiln::store {
namespace {

class GroupCommitTest : public testing::Test {
 protected:
  GroupCommitTest() {
    auto database = sqlite::Database::Open(folder_.File("test.db"), 1, {});
    KILN_CHECK(database.ok(), "no database");
    database_ = *std::move(database);
    KILN_CHECK(database_->Execute("CREATE TABLE t (x INTEGER PRIMARY KEY) STRICT").ok(),
               "no table");
    commits_ = std::make_unique<GroupCommit>(mutex_, *database_);
  }

  Status Insert(int x) {
    ++inserts_;
    return database_->Execute(("INSERT INTO t VALUES (" + std::to_string(x) + ")").c_str());
  }
  int64_t Rows() { return *database_->QueryInt("SELECT count(*) FROM t"); }

  // Commits the writes of so many threads while another commit is under way, so that they are the
  // next group.
  std::vector<Status> CommitAtOnce(int count,
                                   const std::function<GroupCommit::Write(int)>& write_of) {
    std::vector<Status> results(static_cast<size_t>(count));
    std::vector<std::thread> threads;
    std::atomic<bool> holds = false, goes_on = false;
    std::thread holder([&] {
      const GroupCommit::Write wait{.write = [&] {
        holds = true;
        while (!goes_on) std::this_thread::yield();
        return OkStatus();
      }};
      EXPECT_OK(commits_->Commit(wait));
    });
    while (!holds) std::this_thread::yield();
    for (int i = 0; i < count; ++i) {
      threads.emplace_back(
          [&, i] { results[static_cast<size_t>(i)] = commits_->Commit(write_of(i)); });
    }
    while (commits_->waiting() < static_cast<size_t>(count)) std::this_thread::yield();
    goes_on = true;
    holder.join();
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  const TestFolder folder_;
  std::unique_ptr<sqlite::Database> database_;
  std::mutex mutex_;
  std::unique_ptr<GroupCommit> commits_;
  std::atomic<int> inserts_ = 0;
};

TEST_F(GroupCommitTest, ALoneWriteIsCommittedAtOnce) {
  std::string order;
  const GroupCommit::Write write{.prepare =
                                     [&] {
                                       order += "p";
                                       return OkStatus();
                                     },
                                 .write =
                                     [&] {
                                       order += "w";
                                       EXPECT_TRUE(database_->in_transaction());
                                       return Insert(1);
                                     },
                                 .committed =
                                     [&] {
                                       order += "c";
                                       EXPECT_FALSE(database_->in_transaction());
                                     }};
  ASSERT_OK(commits_->Commit(write));
  EXPECT_EQ(order, "pwc");
  EXPECT_EQ(Rows(), 1);
  EXPECT_THAT(commits_->Commit(write), StatusIs(StatusCode::kAlreadyExists, testing::_));
  EXPECT_EQ(order, "pwcpw") << "nothing was committed";
  EXPECT_EQ(Rows(), 1);
}

TEST_F(GroupCommitTest, WritesThatWaitShareACommit) {
  std::atomic<int> prepared = 0, written = 0, committed = 0;
  const auto results = CommitAtOnce(20, [&](int i) {
    return GroupCommit::Write{.prepare =
                                  [&] {
                                    ++prepared;
                                    return OkStatus();
                                  },
                              .write =
                                  [&, i] {
                                    ++written;
                                    EXPECT_EQ(prepared, 20);
                                    EXPECT_EQ(committed, 0);
                                    return Insert(i);
                                  },
                              .committed =
                                  [&] {
                                    ++committed;
                                    EXPECT_EQ(written, 20);
                                  }};
  });
  for (const Status& result : results) EXPECT_OK(result);
  EXPECT_EQ(Rows(), 20);
  EXPECT_EQ(inserts_, 20);
  EXPECT_EQ(committed, 20);
}

TEST_F(GroupCommitTest, AWriteThatFailsFailsAlone) {
  ASSERT_OK(Insert(7));
  std::atomic<int> committed = 0;
  const auto results = CommitAtOnce(12, [&](int i) {
    return GroupCommit::Write{.write = [&, i] { return Insert(i); },
                              .committed = [&] { ++committed; }};
  });
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].code(), i == 7 ? StatusCode::kAlreadyExists : StatusCode::kOk) << i;
  }
  EXPECT_EQ(Rows(), 12);
  EXPECT_EQ(committed, 11);
}

// Threads that write again and again all get through.
TEST_F(GroupCommitTest, NoThreadIsForgotten) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_OK(commits_->Commit({.write = [&] { return Insert(100 * thread + i); }}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Rows(), 400);
}

TEST(GroupCommitPauseTest, GrowsWithTheWritersThatAreAboutToComeAgain) {
  using std::chrono::microseconds;
  EXPECT_EQ(GroupCommit::PauseAfter(0), microseconds(0));
  EXPECT_EQ(GroupCommit::PauseAfter(1), microseconds(0));
  EXPECT_EQ(GroupCommit::PauseAfter(2), microseconds(4'000));
  EXPECT_EQ(GroupCommit::PauseAfter(20), microseconds(6'000));
  EXPECT_EQ(GroupCommit::PauseAfter(63), microseconds(12'000));
}

}  // namespace
}  // namespace kiln::store
