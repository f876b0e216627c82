#include "store/record.h"

#include <cmath>

#include "base/status_testing.h"

namespace kiln::store {
namespace {

using testing::HasSubstr;

Record WithCosts(std::vector<double> costs_s) {
  Record record;
  record.job_id = "j";
  record.costs_s = std::move(costs_s);
  return record;
}

TEST(Record, MeanCostIsTheMean) {
  EXPECT_DOUBLE_EQ(MeanCost(WithCosts({1, 2, 6})), 3);
  Record failed = WithCosts({1});
  failed.error = 4;
  EXPECT_TRUE(std::isinf(MeanCost(failed)));
  EXPECT_TRUE(std::isinf(MeanCost(WithCosts({}))));
}

TEST(Record, BetterThanRanksErrorsThenEarlyStopsThenMeanThenAge) {
  std::vector<Record> ordered;
  ordered.push_back(WithCosts({1, 2}));
  ordered.push_back(WithCosts({1.4, 1.8}));
  ordered.push_back(WithCosts({1.6, 1.6}));
  ordered.push_back(WithCosts({0.1}));
  ordered.back().stopped_early = true;
  ordered.push_back(WithCosts({0.01}));
  ordered.back().error = 5;
  for (size_t i = 0; i < ordered.size(); ++i) ordered[i].id = static_cast<int64_t>(i);
  for (size_t a = 0; a < ordered.size(); ++a) {
    for (size_t b = 0; b < ordered.size(); ++b) {
      EXPECT_EQ(BetterThan(ordered[a], ordered[b]), a < b) << a << " " << b;
    }
  }
}

TEST(Record, JobStatesHaveNamesThatParse) {
  for (JobState state : {JobState::kQueued, JobState::kRunning, JobState::kSucceeded,
                         JobState::kFailed, JobState::kCancelled, JobState::kPaused}) {
    ASSERT_OK_AND_ASSIGN(const JobState parsed, ParseJobState(JobStateName(state)));
    EXPECT_EQ(parsed, state);
  }
  EXPECT_THAT(ParseJobState("done"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'done'")));
}

TEST(Record, ValidationNamesWhatIsWrong) {
  EXPECT_OK(ValidateRecord(WithCosts({1e-9})));
  auto refused = [](const Record& record, const char* message) {
    EXPECT_THAT(ValidateRecord(record), StatusIs(StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused(WithCosts({}), "no error and no costs");
  refused(WithCosts({1, 0}), "cost 0 s");
  refused(WithCosts({-1}), "cost -1 s");
  refused(WithCosts({NAN}), "cost nan s");
  refused(WithCosts({INFINITY}), "cost inf s");
  Record record = WithCosts({});
  record.error = 9;
  refused(record, "error kind 9, expected 0 to 8");
  record.error = -1;
  refused(record, "error kind -1");
  record.error = 8;
  EXPECT_OK(ValidateRecord(record));
  record.job_id.clear();
  refused(record, "needs a job id");
}

}  // namespace
}  // namespace kiln::store
