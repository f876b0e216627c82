#include "client/view/job_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/status_testing.h"

namespace kiln::client {
namespace {

constexpr int64_t kBegin_us = 1'795'972'383'000'000;
constexpr int64_t kMs = 1'000;

// A trial with all its instants at once; times in milliseconds since the begin.
v1::Record TrialAt(uint32_t number, std::vector<int64_t> ms, const std::string& builder = "b1",
                   const std::string& runner = "r1") {
  v1::Record record;
  record.set_job_id("3f2a");
  record.set_trial(number);
  v1::TrialResult& result = *record.mutable_result();
  result.set_builder(builder);
  result.set_runner(runner);
  result.set_trace_id("0af7");
  v1::TrialInstants& at = *result.mutable_instants();
  at.set_chosen_us(kBegin_us + ms[0] * kMs);
  at.set_build_sent_us(kBegin_us + ms[1] * kMs);
  at.set_build_received_us(kBegin_us + ms[2] * kMs);
  at.set_run_sent_us(kBegin_us + ms[3] * kMs);
  at.set_run_received_us(kBegin_us + ms[4] * kMs);
  at.set_committed_us(kBegin_us + ms[5] * kMs);
  return record;
}

struct Slice {
  int64_t begin = 0, end = 0;
  std::string name;
};

// The events of a file: slices by the names of group and lane, counters by name.
struct Parsed {
  std::map<std::string, std::vector<Slice>> slices;
  std::map<std::string, std::vector<nlohmann::json>> counters;
};

class JobTraceTest : public testing::Test {
 protected:
  Parsed Trace(const std::vector<v1::Record>& records, JobTrace::Options options = {}) {
    text_.clear();
    TraceEvents events([this](std::string_view bytes) {
      text_ += bytes;
      return OkStatus();
    });
    JobTrace trace("3f2a", std::move(options), events);
    for (const v1::Record& record : records) trace.Add(record);
    trace.Finish();
    EXPECT_OK(events.Finish());
    without_instants_ = trace.without_instants();
    return Parse();
  }

  Parsed Parse() {
    Parsed parsed;
    std::map<int, std::string> groups;
    std::map<std::pair<int, int>, std::string> lanes;
    const auto file = nlohmann::json::parse(text_);
    for (const nlohmann::json& event : file["traceEvents"]) {
      const int group = event["pid"].get<int>();
      const std::string name = event["name"].get<std::string>();
      const std::string kind = event["ph"].get<std::string>();
      if (name == "process_name") groups[group] = event["args"]["name"].get<std::string>();
      if (name == "thread_name") {
        lanes[{group, event["tid"].get<int>()}] = event["args"]["name"].get<std::string>();
      }
      if (kind == "C") parsed.counters[name].push_back(event);
      if (kind != "X") continue;
      const int64_t begin = event["ts"].get<int64_t>() - kBegin_us;
      const std::string lane = groups[group] + ", " + lanes[{group, event["tid"].get<int>()}];
      parsed.slices[lane].push_back({begin, begin + event["dur"].get<int64_t>(), name});
    }
    return parsed;
  }

  std::string text_;
  int64_t without_instants_ = 0;
};

std::vector<std::string> Describe(const std::vector<Slice>& slices) {
  std::vector<std::string> texts;
  for (const Slice& slice : slices) {
    texts.push_back(fmt::format("{} {}-{}", slice.name, slice.begin / kMs, slice.end / kMs));
  }
  return texts;
}

TEST_F(JobTraceTest, EachSlotOfAWorkerHasALane) {
  Parsed parsed = Trace({TrialAt(0, {0, 1, 5, 6, 9, 10}), TrialAt(1, {0, 2, 7, 9, 12, 13}),
                         TrialAt(2, {4, 5, 8, 12, 14, 15}, "b1", "r2")},
                        {.with_phases = false});
  using testing::ElementsAre;
  EXPECT_THAT(Describe(parsed.slices["builder b1, slot 1"]),
              ElementsAre("trial 0 1-5", "trial 2 5-8"));
  EXPECT_THAT(Describe(parsed.slices["builder b1, slot 2"]), ElementsAre("trial 1 2-7"));
  EXPECT_THAT(Describe(parsed.slices["runner r1, slot 1"]),
              ElementsAre("trial 0 6-9", "trial 1 9-12"));
  EXPECT_THAT(Describe(parsed.slices["runner r2, slot 1"]), ElementsAre("trial 2 12-14"));
  EXPECT_EQ(parsed.slices.size(), 4u);
}

TEST_F(JobTraceTest, PhasesAreWithinTheirCall) {
  v1::Record trial = TrialAt(0, {0, 1, 5, 6, 9, 10});
  trial.mutable_result()->mutable_times()->set_compile_s(0.003);
  EXPECT_THAT(Describe(Trace({trial}).slices["builder b1, slot 1"]),
              testing::ElementsAre("trial 0 1-5", "compile 1-4", "to the builder and back 4-5"));
}

TEST_F(JobTraceTest, CountersSayWhereTheTrialsAre) {
  // Far enough apart that each change is shown.
  Parsed parsed =
      Trace({TrialAt(0, {0, 100, 200, 300, 400, 500}), TrialAt(1, {0, 100, 200, 700, 800, 900})});
  const auto& counter = parsed.counters["trials in flight"];
  const auto value = [&](int64_t ms, const char* place) {
    double last = 0;
    for (const nlohmann::json& event : counter) {
      if (event["ts"].get<int64_t>() <= kBegin_us + ms * kMs)
        last = event["args"][place].get<double>();
    }
    return last;
  };
  EXPECT_EQ(value(50, "wait for a builder"), 2);
  EXPECT_EQ(value(150, "build"), 2);
  EXPECT_EQ(value(250, "wait for a runner"), 2);
  EXPECT_EQ(value(350, "run"), 1);
  EXPECT_EQ(value(450, "wait for the commit"), 1);
  EXPECT_EQ(value(750, "run"), 1);
  for (const char* place :
       {"wait for a builder", "build", "wait for a runner", "run", "wait for the commit"}) {
    EXPECT_EQ(value(1'000, place), 0) << place;
  }
}

TEST_F(JobTraceTest, ARoundEndsWithItsLastTrial) {
  JobTrace::Options options;
  options.rounds.resize(2);
  options.rounds[0].set_trials(1);
  options.rounds[1].set_number(1);
  options.rounds[1].set_task_index(4);
  options.rounds[1].set_trials(3);
  options.rounds[1].set_search_s(0.5);
  Parsed parsed = Trace({TrialAt(0, {0, 1, 5, 6, 9, 10}), TrialAt(1, {0, 2, 7, 9, 12, 13}),
                         TrialAt(2, {4, 5, 8, 12, 14, 15})},
                        options);
  EXPECT_THAT(Describe(parsed.slices["job 3f2a, rounds of the search"]),
              testing::ElementsAre("round 0, task 0 0-10", "round 1, task 4 10-15"));
  ASSERT_EQ(parsed.counters["search and training of a round, s"].size(), 2u);
}

TEST_F(JobTraceTest, TrialsWithoutInstantsAreCounted) {
  const Parsed parsed = Trace({v1::Record(), TrialAt(1, {0, 1, 5, 6, 9, 10})});
  EXPECT_EQ(without_instants_, 1);
  EXPECT_EQ(parsed.slices.size(), 2u);
}

// However trials lie, slices of a lane do not overlap, and all are there.
TEST_F(JobTraceTest, SlicesOfALaneNeverOverlap) {
  std::mt19937 random(7);
  const auto draw = [&](int most) {
    return static_cast<int64_t>(random() % static_cast<unsigned>(most));
  };
  std::vector<v1::Record> records;
  for (uint32_t i = 0; i < 3'000; ++i) {
    std::vector<int64_t> ms = {draw(20'000)};
    for (int step = 0; step < 5; ++step) ms.push_back(ms.back() + 1 + draw(100));
    records.push_back(TrialAt(i, ms, fmt::format("b{}", draw(3)), fmt::format("r{}", draw(5))));
  }
  std::ranges::sort(records, {}, [](const v1::Record& record) {
    return record.result().instants().committed_us();
  });
  Parsed parsed = Trace(records, {.with_phases = false});
  std::set<std::string> seen;
  size_t slices = 0;
  for (auto& [lane, all] : parsed.slices) {
    std::ranges::sort(all, {}, &Slice::begin);
    for (size_t i = 0; i < all.size(); ++i) {
      if (i > 0) {
        EXPECT_GE(all[i].begin, all[i - 1].end) << lane;
      }
      seen.insert(all[i].name);
      ++slices;
    }
  }
  EXPECT_EQ(seen.size(), 3'000u);
  EXPECT_EQ(slices, 6'000u);
}

}  // namespace
}  // namespace kiln::client
