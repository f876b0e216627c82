#include "scheduler/drift_marks.h"

#include "base/status_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"
#include "store/store_decorator.h"

namespace kiln::scheduler {
namespace {

using store::Record;
using testing::ElementsAre;
using testing::IsEmpty;

// Time of a test record's trial 0; each further trial is a second later.
constexpr double kFirst_s = 1700000000;

// Counts the calls that mark, and refuses them on demand.
class CountingStore : public store::StoreDecorator {
 public:
  using StoreDecorator::StoreDecorator;
  int marks = 0;
  bool is_away = false;

  StatusOr<int64_t> MarkRecords(const store::SlowSpan& span) override {
    ++marks;
    return StoreDecorator::MarkRecords(span);
  }

 protected:
  Status Around(Access, const std::function<Status()>& call) override {
    return is_away ? Unavailable("the disk is full") : call();
  }
};

class DriftMarksTest : public testing::Test {
 protected:
  DriftMarksTest() {
    store::JobRow job;
    job.id = "j";
    EXPECT_OK(memory_->AddJob(job));
    for (uint32_t trial = 0; trial < 5; ++trial) Add(trial);
  }
  void Add(uint32_t trial) {
    EXPECT_OK(memory_->AddRecord(store::TestRecord("j", trial)).status());
  }
  void Take(double from_s, double to_s, const std::string& worker = "runner-1") {
    google::protobuf::RepeatedPtrField<v1::DriftSpan> spans;
    v1::DriftSpan& span = *spans.Add();
    span.set_worker(worker);
    span.set_from_s(kFirst_s + from_s);
    if (to_s != 0) span.set_to_s(kFirst_s + to_s);
    span.set_reason("slow");
    marks_.Take(spans);
  }
  std::vector<uint32_t> Marked() {
    std::vector<uint32_t> trials;
    const auto records = memory_->RecordsOfJob("j", 0);
    EXPECT_OK(records.status());
    for (const Record& record : records.value_or(std::vector<Record>())) {
      if (record.mark == "slow") trials.push_back(record.trial);
    }
    return trials;
  }

  FakeClock clock_;
  const std::unique_ptr<store::Store> memory_ = store::NewMemoryStore();
  CountingStore store_{*memory_};
  DriftMarks marks_{store_, clock_};
};

TEST_F(DriftMarksTest, MarksASpanWhileItGoesOn) {
  Take(3.5, 0, "runner-2");
  EXPECT_THAT(Marked(), IsEmpty());
  // The second of the last canary that was well belongs to the span, because records have whole
  // seconds.
  Take(3.5, 0);
  EXPECT_THAT(Marked(), ElementsAre(3, 4));
  Add(5);
  clock_.Advance(absl::Hours(3));
  Take(3.5, 0);
  EXPECT_THAT(Marked(), ElementsAre(3, 4, 5));
}

TEST_F(DriftMarksTest, ASpanThatHasEndedTakesLateRecordsForSomeTime) {
  Take(1, 6.2);
  EXPECT_THAT(Marked(), ElementsAre(1, 2, 3, 4));
  Add(6);
  Add(7);
  clock_.Advance(absl::Seconds(60));
  Take(1, 6.2);
  EXPECT_THAT(Marked(), ElementsAre(1, 2, 3, 4, 6));
  EXPECT_EQ(store_.marks, 2);
  clock_.Advance(absl::Hours(1));
  Take(1, 6.2);
  Take(1, 6.2);
  EXPECT_EQ(store_.marks, 2) << "it is done";
}

// The end comes to be known: the span is marked up to it, and some time longer.
TEST_F(DriftMarksTest, ASpanThatEndsIsMarkedAnew) {
  Take(1, 0);
  clock_.Advance(absl::Hours(1));
  Take(1, 8);
  Add(8);
  Add(9);
  Take(1, 8);
  EXPECT_THAT(Marked(), ElementsAre(1, 2, 3, 4, 8));
}

TEST_F(DriftMarksTest, WhatTheStoreRefusesIsMarkedLater) {
  store_.is_away = true;
  Take(3, 4);
  EXPECT_THAT(Marked(), IsEmpty());
  store_.is_away = false;
  clock_.Advance(absl::Hours(1));
  Take(3, 4);
  EXPECT_THAT(Marked(), ElementsAre(3, 4));
}

TEST_F(DriftMarksTest, TimesOfAWrongClockAreHarmless) {
  Take(-1e300, 1e300);
  EXPECT_THAT(Marked(), ElementsAre(0, 1, 2, 3, 4));
  Take(std::nan(""), 4);
  Take(5, -1e18);
}

}  // namespace
}  // namespace kiln::scheduler
