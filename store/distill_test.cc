#include "store/distill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/status_testing.h"
#include "store/autotvm_log.h"
#include "store/folder_testing.h"
#include "store/record_testing.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Record Measured(uint32_t trial, std::string key, std::string target, double cost_s) {
  Record record = TestRecord("j", trial, cost_s);
  record.workload_id.clear();
  record.workload_key = std::move(key);
  record.target = std::move(target);
  return record;
}

std::vector<uint32_t> DistilledTrials(const std::vector<Record>& records) {
  const auto trials_of = [](const std::vector<Record>& best) {
    std::vector<uint32_t> trials;
    for (const Record& record : best) trials.push_back(record.trial);
    return trials;
  };
  const std::vector<uint32_t> trials = trials_of(Distill(std::span(records)));
  RecordDistiller distiller;
  for (const Record& record : records) EXPECT_OK(distiller.Add(record));
  EXPECT_EQ(trials_of(distiller.Finish()), trials) << "one at a time";
  return trials;
}

std::vector<MeasureLogLine> DistilledLines(const std::vector<MeasureLogLine>& lines) {
  LogDistiller distiller;
  for (const MeasureLogLine& line : lines) EXPECT_OK(distiller.Add(line));
  return distiller.Finish();
}

TEST(Distill, TargetKeys) {
  EXPECT_THAT(TargetKeys("cuda -keys=cuda,gpu -arch=sm_86"), ElementsAre("cuda", "gpu"));
  EXPECT_THAT(TargetKeys("cuda -arch=sm_90"), ElementsAre("cuda", "gpu"));
  EXPECT_THAT(TargetKeys("llvm"), ElementsAre("cpu"));
  EXPECT_THAT(TargetKeys("llvm -keys=arm_cpu,cpu -device=arm_cpu -mcpu=x"),
              ElementsAre("arm_cpu", "cpu"));
  EXPECT_THAT(TargetKeys("llvm -device=mine -keys=,a,,"), ElementsAre("a", "mine", "cpu"));
  EXPECT_THAT(TargetKeys("null"), ElementsAre("null"));
  EXPECT_THAT(TargetKeys(""), ElementsAre());
}

TEST(Distill, KeepsTheBestPerKeyHashAndArguments) {
  const std::string a = R"(["a", [1, 2]])";
  const std::string a_spaced = R"(["a",[1,2]])";
  const std::string a_larger = R"(["a", [1, 3]])";
  const std::string b = R"(["b", [1, 2]])";
  std::vector<Record> records = {
      Measured(0, a, "cuda", 3),        Measured(1, b, "cuda", 1),
      Measured(2, a_spaced, "cuda", 2), Measured(3, a, "llvm", 0.5),
      Measured(4, a_larger, "cuda", 9), Measured(5, "plain", "cuda", 1),
      Measured(6, a, "cuda", 2),        Measured(7, "plain", "cuda", 4),
  };
  records.push_back(FailedRecord("j", 8, 3));
  EXPECT_THAT(DistilledTrials(records), ElementsAre(2, 4, 1, 5, 3));
}

TEST(Distill, ComputationsOfOneKeyDoNotCompete) {
  const auto of = [](uint32_t trial, std::string id, double cost_s) {
    Record record = Measured(trial, R"(["a", [1]])", "llvm", cost_s);
    record.workload_id = std::move(id);
    return record;
  };
  EXPECT_THAT(DistilledTrials({of(0, "2x2", 3), of(1, "", 2)}), ElementsAre(1));
  EXPECT_THAT(DistilledTrials({of(0, "2x2", 1), of(1, "3x3", 2), of(2, "3x3", 3), of(3, "", 4)}),
              ElementsAre(0, 1, 3));
}

TEST(Distill, CostsWithRewrittenLayoutsDoNotCompeteWithOthers) {
  std::vector<Record> records = {Measured(0, R"(["a"])", "llvm", 3),
                                 Measured(1, R"(["a"])", "llvm", 1),
                                 Measured(2, R"(["a"])", "llvm", 2)};
  records[1].layout_rewrite_option = records[2].layout_rewrite_option = 2;
  EXPECT_THAT(DistilledTrials(records), ElementsAre(0, 1));
}

TEST(Distill, SharedKeysLetTargetsCompete) {
  EXPECT_THAT(DistilledTrials({Measured(0, R"(["a"])", "cuda -arch=sm_86", 3),
                               Measured(1, R"(["a"])", "opencl -keys=opencl,gpu", 1)}),
              // Trial 0 is the best of cuda; trial 1 is the best of gpu and of opencl.
              ElementsAre(0, 1));
}

TEST(Distill, MeansAndEarlyStops) {
  std::vector<Record> records = {Measured(0, "k", "t", 0.1), Measured(1, "k", "t", 1),
                                 Measured(2, "k", "t", 1)};
  records[0].stopped_early = true;
  records[1].costs_s = {0.5, 3};
  EXPECT_THAT(DistilledTrials(records), ElementsAre(2));
  records.resize(1);
  EXPECT_THAT(DistilledTrials(records), ElementsAre(0));
}

// The order of the records does not matter, and the first readings of finalists do not either.
TEST(Distill, OfFinalistsThatDoNotDifferTheSmallestIdIsKept) {
  std::vector<Record> records;
  for (uint32_t trial = 0; trial < 4; ++trial) {
    records.push_back(Measured(trial, "k", "t", 1e-3 * (9 - trial)));
    records.back().id = 10 + trial;
    records.back().confidence_s = 1e-5;
  }
  records[0].remeasured_costs_s = {1.2e-3};
  records[1].remeasured_costs_s = {1.012e-3};
  records[2].remeasured_costs_s = {1.005e-3};
  records[3].remeasured_costs_s = {1.000e-3};
  const auto by_id = [](const Record& a, const Record& b) { return a.id < b.id; };
  do {
    RecordDistiller distiller;
    for (const Record& record : records) ASSERT_OK(distiller.Add(record));
    const std::vector<Record> kept = distiller.Finish();
    ASSERT_EQ(kept.size(), 1u);
    ASSERT_EQ(kept[0].trial, 1u);
  } while (std::next_permutation(records.begin(), records.end(), by_id));
}

TEST(Distill, ALogOfBestRecordsStaysAsItIs) {
  std::ifstream file("store/testdata/resnet-18-NHWC-B1-cuda.json");
  std::ostringstream text;
  text << file.rdbuf();
  MeasureLog log = ParseMeasureLog(text.str());
  ASSERT_EQ(log.lines.size(), 24u);
  auto sorted = [](const std::vector<MeasureLogLine>& lines) {
    std::vector<std::string> texts;
    for (const MeasureLogLine& line : lines) texts.push_back(PrintMeasureLogLine(line));
    std::sort(texts.begin(), texts.end());
    return texts;
  };
  const std::vector<std::string> best = sorted(log.lines);
  EXPECT_EQ(sorted(DistilledLines(log.lines)), best);
  // Worse, failed and empty records change nothing.
  for (size_t i = 0; i < 24; ++i) {
    MeasureLogLine other = log.lines[i];
    other.costs_s = {other.costs_s[0] * 1.5};
    log.lines.insert(log.lines.begin(), other);
    ++i;
    other.costs_s = {1e-9};
    other.error_no = 4;
    log.lines.push_back(other);
    other.error_no = 0;
    other.costs_s.clear();
    log.lines.push_back(other);
  }
  EXPECT_EQ(sorted(DistilledLines(log.lines)), best);
}

TEST(Distill, HoldsTheBestLinesAndBoundsThem) {
  constexpr size_t kMaxBytes = 100'000;
  LogDistiller distiller;
  MeasureLogLine line;
  line.target = "llvm";
  line.workload_key = "k";
  line.steps_json = std::string(10'000, ' ');
  // One workload may have any number of lines.
  for (int i = 0; i < 1000; ++i) {
    line.costs_s = {1.0 / (i + 1)};
    ASSERT_OK(distiller.Add(line, kMaxBytes));
  }
  Status status;
  for (int i = 0; i < 20 && status.ok(); ++i) {
    line.workload_key = std::string(1, static_cast<char>('a' + i));
    status = distiller.Add(line, kMaxBytes);
  }
  EXPECT_THAT(status, StatusIs(StatusCode::kResourceExhausted, HasSubstr("in parts")));
}

// The expected records are those that autotvm's own tool picks: the rules of ApplyHistoryBest over
// all pairs.
TEST(Distill, OfAutotvmIsWhatItsPickModePicks) {
  const auto record = [](int64_t index, std::string target, std::string args, double cost_s) {
    return AutotvmRecord{.target = std::move(target),
                         .task = "t",
                         .args = std::move(args),
                         .config_index = index,
                         .costs_s = {cost_s}};
  };
  const std::string t4 = "cuda -keys=cuda,gpu -model=t4", v100 = "cuda -keys=cuda,gpu -model=v100";
  std::vector<AutotvmRecord> records = {
      record(0, t4, "[1]", 3),     record(1, t4, "[1]", 2),
      record(2, v100, "[1]", 1),   record(3, t4, "[2]", 5),
      record(4, v100, "[2]", 7),   record(5, t4, "[2]", 5),
      record(6, "llvm", "[1]", 4), record(7, "cuda -model=unknown", "[2]", 6)};
  records.push_back(record(8, t4, "[1]", 0.5));
  records.back().error = 4;
  AutotvmDistiller distiller;
  for (const AutotvmRecord& r : records) ASSERT_OK(distiller.Add(r));
  std::vector<int64_t> picked;
  for (const AutotvmRecord& r : distiller.Finish()) picked.push_back(r.config_index);
  // 1 is the best of the model t4; 2 of the key cuda and of v100; 3 of cuda, the first of two equal
  // ones; 4 of v100; 6 of cpu.
  EXPECT_THAT(picked, ElementsAre(1, 2, 3, 4, 6));
}

TEST(Distill, OfARealAutotvmLogKeepsTheBestOfEachWorkload) {
  std::istringstream log(ReadFile("store/testdata/autotvm.log"));
  AutotvmDistiller distiller;
  for (std::string line; std::getline(log, line);) {
    const auto record = ParseAutotvmLine(line);
    if (record.ok()) ASSERT_OK(distiller.Add(*record));
  }
  std::vector<int64_t> picked;
  for (const AutotvmRecord& r : distiller.Finish()) picked.push_back(r.config_index);
  EXPECT_THAT(picked, ElementsAre(9, 95, 284));
}

}  // namespace
}  // namespace kiln::store
