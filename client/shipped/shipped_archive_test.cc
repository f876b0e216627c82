#include "client/shipped/shipped_archive.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/file/file.h"
#include "base/status_testing.h"
#include "client/local_archive.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/dag/workload_key.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

using store::Record;
using store::ShippedRecord;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kCuda[] = "cuda -arch=sm_90";
constexpr char kTilesOf4[] = "[[\"SP\", 2, 0, 16, [4], 1]]";
constexpr char kTilesOf2[] = "[[\"SP\", 2, 0, 16, [2], 1]]";

// Returns a record of a product of 16 x 16 x k.
Record Product(int k, double cost_s, const std::string& steps, const std::string& target = kCuda) {
  const auto dag = dag::BuildOp("matmul", fmt::format("16,16,{}", k), {});
  KILN_CHECK(dag.ok());
  Record record;
  record.job_id = "job";
  record.workload_id = dag::WorkloadId(**dag);
  record.workload_key = dag::WorkloadKey(**dag);
  record.dag = dag::PrintDag(**dag);
  record.target = target;
  record.steps = steps;
  record.costs_s = {cost_s};
  record.device = "NVIDIA H200";
  record.measured_as = "graph/warm/free";
  record.timestamp_s = 1'800'000'000;
  return record;
}

// Returns the record as a file of them gives it.
std::vector<ShippedRecord> AsShipped(std::vector<ShippedRecord> records) {
  auto read = store::ReadShippedFile(store::WriteShippedFile(records));
  KILN_CHECK(read.ok());
  return *std::move(read);
}

ShippedRecord Shipped(Record record) {
  return {.record = std::move(record),
          .description = "matmul 16,16,16",
          .generator = 1,
          .nvrtc = "12.4"};
}

class ShippedArchiveTest : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<Archive>> Own(const std::vector<Record>& records) const {
    KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(db_));
    store::JobRow job;
    job.id = "job";
    job.state = store::JobState::kSucceeded;
    KILN_RETURN_IF_ERROR(store->AddJob(job));
    for (Record record : records) {
      record.trial = trial_++;
      KILN_RETURN_IF_ERROR(store->AddRecord(record).status());
    }
    return OpenLocalArchive(db_);
  }
  static StatusOr<std::unique_ptr<Archive>> None() { return NotFound("no database at kiln.db"); }
  static std::unique_ptr<ShippedArchive> Make(StatusOr<std::unique_ptr<Archive>> own,
                                              std::vector<ShippedRecord> shipped,
                                              std::string nvrtc = "12.8", int generator = 1) {
    ShippedKey key{.generator = generator,
                   .nvrtc = [nvrtc] { return nvrtc; },
                   .cpu = "AMD EPYC 9654 96-Core Processor"};
    return std::make_unique<ShippedArchive>(std::move(own), AsShipped(std::move(shipped)),
                                            std::move(key), "the records shipped with Kiln");
  }
  // Returns the steps of the best records of the product with k = 16.
  static std::vector<std::string> Best(Archive& archive, const std::string& target = "",
                                       const std::string& as_deployed = "") {
    v1::BestRequest request;
    request.set_workload_id(Product(16, 1, "[]").workload_id);
    request.set_target(target);
    request.set_as_deployed(as_deployed);
    const auto records = archive.Best(request);
    EXPECT_OK(records.status());
    std::vector<std::string> steps;
    if (records.ok()) {
      for (const v1::Record& record : *records) steps.push_back(record.steps());
    }
    return steps;
  }
  static StatusOr<v1::QueryScheduleReply> Query(Archive& archive, const std::string& target = kCuda,
                                                const std::string& as_deployed = "") {
    v1::QueryScheduleRequest request;
    request.set_dag(Product(16, 1, "[]").dag);
    request.set_target(target);
    request.set_include_compatible(true);
    request.set_as_deployed(as_deployed);
    return archive.QuerySchedule(request);
  }

  const TempDir folder_ = *TempDir::Make("shipped-archive-test");
  const std::string db_ = folder_.Join("kiln.db");
  mutable uint32_t trial_ = 0;
};

TEST_F(ShippedArchiveTest, OwnRecordsGoFirstEvenIfTheyAreSlower) {
  const auto archive =
      Make(Own({Product(16, 9e-3, kTilesOf2)}), {Shipped(Product(16, 1e-3, kTilesOf4))});
  EXPECT_THAT(Best(*archive), ElementsAre(kTilesOf2));
  ASSERT_OK_AND_ASSIGN(const v1::QueryScheduleReply reply, Query(*archive));
  EXPECT_EQ(reply.source(), v1::SCHEDULE_RECORD);
  EXPECT_NE(reply.record_id(), 0);
  EXPECT_EQ(reply.steps(), kTilesOf2);
}

TEST_F(ShippedArchiveTest, ShippedOnesAreAskedWhereOwnOnesAreOfAnotherTargetOrComputation) {
  const auto archive =
      Make(Own({Product(16, 1e-6, kTilesOf2, "cuda -arch=sm_80"), Product(32, 1e-6, kTilesOf2)}),
           {Shipped(Product(16, 1e-3, kTilesOf4))});
  EXPECT_THAT(Best(*archive), ElementsAre(kTilesOf2, kTilesOf4));
  EXPECT_THAT(Best(*archive, kCuda), ElementsAre(kTilesOf4));
  EXPECT_THAT(Best(*archive, "cuda -arch=sm_80"), ElementsAre(kTilesOf2));
  // An own compatible record comes after the shipped one.
  ASSERT_OK_AND_ASSIGN(const v1::QueryScheduleReply reply, Query(*archive));
  EXPECT_EQ(reply.source(), v1::SCHEDULE_RECORD);
  EXPECT_EQ(reply.record_id(), 0);
  EXPECT_EQ(reply.steps(), kTilesOf4);
  EXPECT_EQ(reply.cost_s(), 1e-3);
  EXPECT_EQ(reply.device(), "NVIDIA H200");
}

TEST_F(ShippedArchiveTest, AScheduleThatIsSetGoesFirst) {
  auto own = Own({});
  ASSERT_OK(own.status());
  own = OpenLocalArchive(db_, /*write=*/true);
  ASSERT_OK(own.status());
  v1::SetScheduleRequest request;
  request.set_dag(Product(16, 1, "[]").dag);
  request.set_target(kCuda);
  request.set_steps(kTilesOf2);
  ASSERT_OK((*own)->SetSchedule(request).status());
  const auto archive = Make(std::move(own), {Shipped(Product(16, 1e-3, kTilesOf4))});
  ASSERT_OK_AND_ASSIGN(const v1::QueryScheduleReply reply, Query(*archive));
  EXPECT_EQ(reply.source(), v1::SCHEDULE_SET);
  EXPECT_EQ(reply.steps(), kTilesOf2);
}

TEST_F(ShippedArchiveTest, WithoutOwnRecordsTheShippedOnesAreThere) {
  const auto archive = Make(None(), {Shipped(Product(16, 1e-3, kTilesOf4))});
  EXPECT_THAT(Best(*archive), ElementsAre(kTilesOf4));
  ASSERT_OK_AND_ASSIGN(const v1::QueryScheduleReply reply, Query(*archive));
  EXPECT_EQ(reply.steps(), kTilesOf4);
  EXPECT_THAT(archive->Name(), HasSubstr("no database at kiln.db"));
  EXPECT_THAT(archive->GetRecord(1), StatusIs(StatusCode::kNotFound, HasSubstr("no database")));
  EXPECT_THAT(archive->Job("other"), StatusIs(StatusCode::kNotFound, HasSubstr("no database")));
  EXPECT_THAT(Query(*archive, "cuda -arch=sm_80"),
              StatusIs(StatusCode::kNotFound, HasSubstr("no database")));
}

TEST_F(ShippedArchiveTest, AForeignCpuIsAMiss) {
  Record here = Product(16, 1e-3, kTilesOf4, "llvm -mcpu=znver4");
  here.device = "AMD EPYC 9654 96-Core Processor";
  Record there = Product(16, 1e-3, kTilesOf2, "llvm -mcpu=znver4 -num-cores=2");
  there.device = "AMD EPYC 9354 32-Core Processor";
  ShippedRecord of_here = Shipped(here), of_there = Shipped(there);
  of_here.nvrtc = of_there.nvrtc = "";
  EXPECT_THAT(Best(*Make(None(), {of_there, of_here})), ElementsAre(kTilesOf4));
}

TEST_F(ShippedArchiveTest, AnotherGeneratorOrMajorVersionOfNvrtcIsAMiss) {
  const std::vector<ShippedRecord> shipped = {Shipped(Product(16, 1e-3, kTilesOf4))};
  EXPECT_THAT(Best(*Make(None(), shipped, "12.8", /*generator=*/2)), IsEmpty());
  EXPECT_THAT(Best(*Make(None(), shipped, "13.0")), IsEmpty());
  EXPECT_THAT(Best(*Make(None(), shipped, "12.0")), SizeIs(1));
  // Without an NVRTC nothing is compiled here, and what is known is shown.
  EXPECT_THAT(Best(*Make(None(), shipped, "")), SizeIs(1));
}

TEST_F(ShippedArchiveTest, StepsThatDoNotApplyAreAMiss) {
  const auto archive = Make(None(), {Shipped(Product(16, 1e-3, "[[\"SP\", 99, 0, 16, [4], 1]]")),
                                     Shipped(Product(16, 2e-3, "no steps"))});
  EXPECT_THAT(Best(*archive), IsEmpty());
  EXPECT_THAT(Query(*archive), StatusIs(StatusCode::kNotFound, HasSubstr("no database")));
}

TEST_F(ShippedArchiveTest, RecordsOfAnotherDeploymentAreAMiss) {
  const auto archive = Make(Own({}), {Shipped(Product(16, 1e-3, kTilesOf4))});
  EXPECT_THAT(Best(*archive, "", "graph"), SizeIs(1));
  EXPECT_THAT(Best(*archive, "", "stream"), IsEmpty());
  ASSERT_OK_AND_ASSIGN(const v1::QueryScheduleReply reply, Query(*archive, kCuda, "graph"));
  EXPECT_EQ(reply.steps(), kTilesOf4);
  EXPECT_EQ(Query(*archive, kCuda, "stream").status().code(), StatusCode::kNotFound);
}

TEST_F(ShippedArchiveTest, AComputationIsFoundByItsKeyToo) {
  const auto archive = Make(None(), {Shipped(Product(16, 1e-3, kTilesOf4))});
  v1::BestRequest request;
  request.add_workload_keys(Product(16, 1, "[]").workload_key);
  ASSERT_OK_AND_ASSIGN(const auto records, archive->Best(request));
  EXPECT_THAT(records, SizeIs(1));
}

TEST_F(ShippedArchiveTest, TheyAreTheOldestJobWhoseTrialsHaveNames) {
  const auto archive =
      Make(Own({Product(16, 1e-3, kTilesOf2)}),
           {Shipped(Product(16, 1e-3, kTilesOf4)), Shipped(Product(32, 1e-3, kTilesOf4))});
  ASSERT_OK_AND_ASSIGN(const auto jobs, archive->Jobs(std::nullopt));
  ASSERT_THAT(jobs, SizeIs(2));
  EXPECT_EQ(jobs[1].id(), "shipped");
  EXPECT_EQ(jobs[1].tasks(0).spec().description(), "matmul 16,16,16");
  ASSERT_OK_AND_ASSIGN(const auto without_results, archive->JobsWithoutResults());
  ASSERT_THAT(without_results, SizeIs(2));
  EXPECT_EQ(without_results[1].tasks(0).spec().description(), "matmul 16,16,16");
  ASSERT_OK_AND_ASSIGN(const auto newest, archive->Jobs(1));
  EXPECT_THAT(newest, SizeIs(1));
  EXPECT_EQ(newest[0].id(), "job");
  std::vector<std::string> names;
  v1::ListRecordsRequest request;
  request.set_job_id("shipped");
  ASSERT_OK(archive->VisitRecords(request, [&](const v1::Record& record) {
    EXPECT_TRUE(IsShippedRecord(record));
    names.push_back(fmt::format("{}/{}", record.job_id(), record.trial()));
    return OkStatus();
  }));
  EXPECT_THAT(names, ElementsAre("shipped/0", "shipped/1"));
  // The records of everybody are one's own alone.
  int own = 0;
  ASSERT_OK(archive->VisitRecords({}, [&](const v1::Record&) {
    ++own;
    return OkStatus();
  }));
  EXPECT_EQ(own, 1);
}

}  // namespace
}  // namespace kiln::client
