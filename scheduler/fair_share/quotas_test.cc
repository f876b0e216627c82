#include "scheduler/fair_share/quotas.h"

#include "base/status_testing.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

TEST(Quotas, WithoutLimitsEverythingFits) {
  EXPECT_FALSE(HasQuotas({.weight = 2, .devices = 3}));
  EXPECT_OK(CheckQuotas("ann", {},
                        {.unfinished_jobs = 1'000,
                         .trials_to_come = UINT64_MAX / 4,
                         .trials_since = UINT64_MAX / 4,
                         .stored_bytes = UINT64_MAX},
                        UINT64_MAX));
}

TEST(Quotas, JobsUpToTheLimit) {
  EXPECT_TRUE(HasQuotas({.jobs = 2}));
  EXPECT_OK(CheckQuotas("ann", {.jobs = 2}, {.unfinished_jobs = 1}, 5));
  EXPECT_THAT(
      CheckQuotas("ann", {.jobs = 2}, {.unfinished_jobs = 2}, 5),
      StatusIs(StatusCode::kResourceExhausted,
               "'ann' has 2 unfinished jobs, and his limit is 2; an admin changes the limit "
               "by `kiln users set ann --jobs N`"));
}

TEST(Quotas, TrialsOfADayCountThoseToCome) {
  EXPECT_TRUE(HasQuotas({.trials_per_day = 1}));
  for (uint64_t since = 0; since <= 12; ++since) {
    for (uint64_t to_come = 0; to_come <= 12; ++to_come) {
      for (uint64_t trials = 0; trials <= 12; ++trials) {
        const Status status =
            CheckQuotas("ann", {.trials_per_day = 10},
                        {.trials_to_come = to_come, .trials_since = since}, trials);
        EXPECT_EQ(status.ok(), since + to_come + trials <= 10)
            << since << " " << to_come << " " << trials;
      }
    }
  }
  EXPECT_THAT(
      CheckQuotas("ann", {.trials_per_day = 10}, {.trials_to_come = 3, .trials_since = 4}, 4),
      StatusIs(StatusCode::kResourceExhausted,
               HasSubstr("asks for 4 trials, 'ann' took 4 in the last 24 hours and has 3 to "
                         "come in unfinished jobs, and his limit is 10 a day")));
  EXPECT_FALSE(CheckQuotas("ann", {.trials_per_day = 10}, {}, UINT64_MAX).ok());
}

TEST(Quotas, BytesUpToTheLimit) {
  EXPECT_TRUE(HasQuotas({.stored_bytes = 1}));
  EXPECT_OK(CheckQuotas("ann", {.stored_bytes = 10}, {.stored_bytes = 9}, 1));
  EXPECT_THAT(CheckQuotas("ann", {.stored_bytes = 10}, {.stored_bytes = 10}, 1),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("take 10 bytes")));
}

}  // namespace
}  // namespace kiln::scheduler
