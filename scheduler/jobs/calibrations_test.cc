#include "scheduler/jobs/calibrations.h"

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/schedule/step.h"
#include "search/policies/random_policy.h"
#include "store/memory_store.h"
#include "training/device_constants.h"

namespace kiln::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

device::DeviceModel SmallGpu() {
  device::DeviceModel model;
  model.name = "Small GPU";
  model.compute_capability = 75;
  model.multiprocessors = 20;
  return model;
}

class CalibrationsTest : public testing::Test {
 protected:
  CalibrationsTest() {
    store::JobRow job;
    job.id = "j";
    EXPECT_OK(store_->AddJob(job));
    for (const char* args : {"64,64,64", "32,128,64"}) {
      auto dag = dag::BuildOp("matmul", args, {});
      KILN_CHECK(dag.ok(), "{}", Message(dag.status()));
      tasks_.emplace_back(*dag, *target::ParseTarget("cuda -arch=sm_75"), target::HardwareParams(),
                          "[]", SmallGpu());
    }
  }

  // Adds records of `count` random candidates of each task. Their times follow from their steps.
  void Measure(int count) {
    uint32_t trial = 0;
    for (uint32_t t = 0; t < tasks_.size(); ++t) {
      search::RandomPolicy policy(tasks_[t], search::Parameters(), 7);
      const auto candidates = policy.Propose(count);
      ASSERT_OK(candidates);
      for (const search::Candidate& candidate : *candidates) {
        store::Record record;
        record.job_id = "j";
        record.task_index = t;
        record.trial = trial++;
        record.target = "cuda -arch=sm_75";
        record.steps = schedule::PrintSteps(candidate.steps);
        record.costs_s = {1e-5 * (1 + static_cast<double>(candidate.hash % 1000) / 100)};
        ASSERT_OK(store_->AddRecord(record));
      }
    }
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  std::vector<search::Task> tasks_;
};

TEST_F(CalibrationsTest, TheStoresRowIsBeforeTheBuiltInAndTheDerivedOne) {
  device::DeviceModel h200 = device::UsualGpu(90);
  h200.name = "NVIDIA H200";
  EXPECT_EQ(training::FindCalibration(*store_, h200)->source, device::CalibrationSource::kBuiltIn);
  EXPECT_EQ(training::FindCalibration(*store_, SmallGpu())->source,
            device::CalibrationSource::kDerived);
  EXPECT_THAT(DescribeCalibration(SmallGpu(), *training::FindCalibration(*store_, SmallGpu())),
              AllOf(HasSubstr("Small GPU (capability 7.5, 20 multiprocessors"),
                    HasSubstr("derived"), HasSubstr("kiln calibrate")));
  ASSERT_OK(store_->SetCalibration(
      {.device = "Small GPU", .compute_capability = 75, .constants = "launch_s=1e-3"}));
  ASSERT_OK_AND_ASSIGN(const device::KnownCalibration known,
                       training::FindCalibration(*store_, SmallGpu()));
  EXPECT_EQ(known.source, device::CalibrationSource::kMeasured);
  EXPECT_EQ(known.row.launch_s, 1e-3);
  // A device of another capability is another device; a damaged row counts as no row.
  device::DeviceModel other = SmallGpu();
  other.compute_capability = 80;
  EXPECT_EQ(training::FindCalibration(*store_, other)->source, device::CalibrationSource::kDerived);
  ASSERT_OK(store_->SetCalibration(
      {.device = "Small GPU", .compute_capability = 75, .constants = "launch_s=soon"}));
  EXPECT_EQ(training::FindCalibration(*store_, SmallGpu())->source,
            device::CalibrationSource::kDerived);
}

TEST_F(CalibrationsTest, FitsToTheJobsRecordsAndKeepsTheRow) {
  Measure(45);
  ASSERT_OK_AND_ASSIGN(const std::string report, Calibrate(*store_, "j", tasks_, 17, {}));
  EXPECT_THAT(report, AllOf(HasSubstr("Small GPU"), HasSubstr("programs; of workloads left out")));
  const auto rows = *store_->Calibrations();
  // Made-up times may be explained no better by the new constants.
  if (rows.empty()) {
    EXPECT_THAT(report, HasSubstr("no better"));
    return;
  }
  EXPECT_EQ(rows[0].device, "Small GPU");
  EXPECT_EQ(rows[0].compute_capability, 75);
  EXPECT_EQ(rows[0].fitted_s, 17);
  EXPECT_OK(device::ParseCalibration(rows[0].constants));
}

TEST_F(CalibrationsTest, RefusesTooFewRecords) {
  Measure(5);
  EXPECT_THAT(Calibrate(*store_, "j", tasks_, 0, {}).status(),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("expected at least 60")));
  EXPECT_EQ(store_->Calibrations()->size(), 0u);
}

}  // namespace
}  // namespace kiln::scheduler
