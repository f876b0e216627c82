#include "client/cli/machine/mode_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kTime_s = 1'795'960'931;  // 2026-11-29T14:02:11Z

// A list of one worker with a slot.
class ModeRowsTest : public testing::Test {
 protected:
  ModeRowsTest() {
    worker_.set_address("box:9490");
    list_.add_busy_slots(1);
  }
  void SetMode(v1::WorkerMode mode, const std::string& reason) {
    worker_.set_mode(mode);
    worker_.set_mode_reason(reason);
  }
  void SetAsked(v1::WorkerMode mode, const std::string& by) {
    worker_.set_asked_mode(mode);
    worker_.set_asked_by(by);
  }

  v1::ListReply list_;
  v1::WorkerState& worker_ = *list_.add_workers();
};

TEST_F(ModeRowsTest, AWorkerThatServesHasNoRow) {
  EXPECT_THAT(ModeRows(list_), IsEmpty());
  EXPECT_EQ(ModeWord(worker_, 1), "serves");
}

TEST_F(ModeRowsTest, AnOperatorSaysWhoAndWhenAndWhy) {
  SetMode(v1::WORKER_PAUSED, "paused by ada at 2026-11-29T14:02:11Z: a new driver");
  SetAsked(v1::WORKER_PAUSED, "ada at 2026-11-29T14:02:11Z: a new driver");
  EXPECT_THAT(ModeRows(list_),
              ElementsAre(ModeRow{"box:9490", "paused", kTime_s, "ada", "a new driver"}));
  SetMode(v1::WORKER_SERVES, "");
  SetAsked(v1::WORKER_SERVES, "bob at 2026-11-29T14:02:11Z");
  EXPECT_THAT(ModeRows(list_), ElementsAre(ModeRow{"box:9490", "serves", kTime_s, "bob", ""}));
  SetMode(v1::WORKER_CORDONED, "cordoned by an operator");
  SetAsked(v1::WORKER_CORDONED, "");
  EXPECT_THAT(ModeRows(list_),
              ElementsAre(ModeRow{"box:9490", "cordoned", std::nullopt, "an operator", ""}));
}

TEST_F(ModeRowsTest, AWorkerIsDrainedWhenNoSlotIsBusy) {
  SetMode(v1::WORKER_DRAINS, "drained by ada");
  SetAsked(v1::WORKER_DRAINS, "ada");
  EXPECT_THAT(ModeRows(list_), ElementsAre(ModeRow{"box:9490", "drains", std::nullopt, "ada", ""}));
  list_.set_busy_slots(0, 0);
  EXPECT_THAT(ModeRows(list_),
              ElementsAre(ModeRow{"box:9490", "drained", std::nullopt, "ada", ""}));
}

TEST_F(ModeRowsTest, AWorkerStopsItself) {
  SetMode(v1::WORKER_QUARANTINED, "quarantined: the canary took 2 ms; 1 ms is usual");
  SetAsked(v1::WORKER_DRAINS, "ada");
  v1::DriftSpan& earlier = *worker_.add_drifts();
  earlier.set_from_s(1);
  earlier.set_to_s(2);
  worker_.add_drifts()->set_from_s(static_cast<double>(kTime_s));
  EXPECT_THAT(ModeRows(list_), ElementsAre(ModeRow{"box:9490", "quarantined", kTime_s, "itself",
                                                   "the canary took 2 ms; 1 ms is usual"}));
  SetMode(v1::WORKER_PAUSED, "outside of its hours 22:00-06:00");
  EXPECT_THAT(ModeRows(list_), ElementsAre(ModeRow{"box:9490", "paused", std::nullopt, "itself",
                                                   "outside of its hours 22:00-06:00"}));
}

TEST_F(ModeRowsTest, AWorkerThatServesInPart) {
  SetMode(v1::WORKER_SERVES, "takes at most 25% of the device's time");
  SetAsked(v1::WORKER_SERVES, "bob");
  EXPECT_THAT(ModeRows(list_), ElementsAre(ModeRow{"box:9490", "serves", std::nullopt, "itself",
                                                   "takes at most 25% of the device's time"}));
}

}  // namespace
}  // namespace kiln::client
