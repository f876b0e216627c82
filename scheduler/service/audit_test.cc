#include "scheduler/service/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/status_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class AuditTest : public testing::Test {
 protected:
  // Returns the entries, the newest first.
  std::vector<store::AuditRow> Rows() { return *store_->Audit("", 0, 100'000); }

  FakeClock clock_;
  const std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  Audit audit_{*store_, clock_};
};

TEST_F(AuditTest, WhatIsDoneIsKeptHoweverMuchItIs) {
  for (int i = 0; i < 100; ++i) audit_.Add("alice", "Scheduler.Submit", "job 1", OkStatus());
  EXPECT_THAT(Rows(), SizeIs(100));
}

TEST_F(AuditTest, OneUserFillsItWithRefusalsAsLittleAsAnother) {
  for (int i = 0; i < 1'000; ++i) {
    audit_.Add("eve", "Scheduler.CancelJob", "job 1", NotFound("no job 1"));
  }
  audit_.Add("bob", "Scheduler.CancelJob", "job 2", NotFound("no job 2"));
  EXPECT_THAT(Rows(), SizeIs(RefusalLimit::kEach + 1));
  EXPECT_EQ(Rows()[0].user, "bob");
  EXPECT_EQ(Rows()[0].refused, "no job 2");
  clock_.Advance(RefusalLimit::kWindow);
  audit_.Flush();
  ASSERT_THAT(Rows(), SizeIs(RefusalLimit::kEach + 2));
  EXPECT_EQ(Rows()[0].user, "eve");
  EXPECT_THAT(Rows()[0].refused,
              AllOf(HasSubstr("further refusals in the 10 minutes from "), HasSubstr(": 990")));
  audit_.Flush();
  EXPECT_THAT(Rows(), SizeIs(RefusalLimit::kEach + 2));
}

TEST_F(AuditTest, ANoteIsWrittenByWhoeverComesNext) {
  audit_.NoteRefused("", "Scheduler.Submit", NotFound("no certificate"));
  EXPECT_THAT(Rows(), IsEmpty());
  audit_.Add("alice", "Scheduler.Submit", "job 1", OkStatus());
  ASSERT_THAT(Rows(), SizeIs(2));
  EXPECT_EQ(Rows()[1].call, "Scheduler.Submit");
  EXPECT_EQ(Rows()[1].refused, "no certificate");
  for (int i = 0; i < 5'000; ++i) audit_.NoteRefused("", "x\ny", NotFound("a\nb"));
  audit_.Flush();
  ASSERT_THAT(Rows(), SizeIs(RefusalLimit::kEach + 1));
  EXPECT_THAT(Rows()[0].refused, testing::Not(HasSubstr("\n")));
}

// A long time in which nobody does anything else.
TEST_F(AuditTest, NotesOfALongTimeAreFew) {
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j < 100; ++j) audit_.NoteRefused("", "Scheduler.Submit", NotFound("no"));
    clock_.Advance(RefusalLimit::kWindow);
  }
  audit_.Flush();
  const auto rows = Rows();
  EXPECT_EQ(rows.size(), Audit::kMostNoted);
  // Each window has its refusals, and then the number of the others.
  EXPECT_EQ(rows[rows.size() - 10].refused, "no");
  EXPECT_THAT(rows[rows.size() - 11].refused, HasSubstr(": 90"));
  EXPECT_EQ(rows[rows.size() - 12].refused, "no");
}

// A note is in the audit once, whoever flushes.
TEST_F(AuditTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      for (int j = 0; j < 50; ++j) {
        audit_.NoteRefused(fmt::format("user{}", i), "Scheduler.Submit", NotFound("no"));
        audit_.Flush();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Rows(), SizeIs(8 * RefusalLimit::kEach));
}

}  // namespace
}  // namespace kiln::scheduler
