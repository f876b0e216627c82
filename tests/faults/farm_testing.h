// The common parts of the tests of faults: a farm, a job on it, and checks of the job when it has
// ended.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/server/grpc_server.h"
#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "tests/faults/farm.h"

namespace kiln {

inline v1::JobSpec MatmulJob(uint32_t trials) {
  v1::JobSpec spec;
  spec.set_name("faults");
  spec.set_user("test");
  v1::TaskSpec& task = *spec.add_tasks();
  task.set_dag(dag::PrintDag(**dag::BuildOp("matmul", "48,32,40", {.epilogue = {"relu"}})));
  task.set_target("llvm");
  spec.mutable_options()->set_trials(trials);
  spec.mutable_options()->set_seed(11);
  spec.mutable_options()->mutable_measure()->set_timeout_ms(5000);
  return spec;
}

class FarmTest : public testing::Test {
 protected:
  void StartFarm(const std::string& device) { StartFarm(Farm::Options{.device = device}); }
  void StartFarm(const Farm::Options& options) {
    auto farm = Farm::Start(options);
    ASSERT_TRUE(farm.ok()) << farm.status();
    farm_ = *std::move(farm);
  }

  std::string Submit(const v1::JobSpec& spec) {
    v1::SubmitRequest request;
    *request.mutable_spec() = spec;
    v1::SubmitReply reply;
    grpc::ClientContext context;
    const grpc::Status status = farm_->Connect()->Submit(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job_id();
  }

  // Returns false if the scheduler does not answer.
  bool Get(const std::string& job, v1::JobStatus* status) {
    v1::GetJobRequest request;
    request.set_job_id(job);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return farm_->Connect()->GetJob(&context, request, status).ok();
  }

  static bool Final(const v1::JobStatus& status) {
    return status.state() == v1::SUCCEEDED || status.state() == v1::FAILED ||
           status.state() == v1::CANCELLED;
  }

  // Waits until `trials` are done or the job has ended.
  v1::JobStatus WaitFor(const std::string& job, uint32_t trials) {
    v1::JobStatus status;
    for (int i = 0; i < 3000; ++i) {
      if (Get(job, &status) && (status.trials_done() >= trials || Final(status))) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "job " << job << " hangs at " << status.trials_done() << " trials\n"
                  << farm_->Logs();
    return status;
  }

  std::map<uint32_t, v1::Record> Records(const std::string& job) {
    v1::ListRecordsRequest request;
    request.set_job_id(job);
    request.set_include_errors(true);
    grpc::ClientContext context;
    auto stub = farm_->Connect();
    auto stream = stub->ListRecords(&context, request);
    std::map<uint32_t, v1::Record> records;
    for (v1::Record record; stream->Read(&record);) {
      EXPECT_TRUE(records.emplace(record.trial(), record).second)
          << "trial " << record.trial() << " twice";
    }
    EXPECT_TRUE(stream->Finish().ok());
    return records;
  }

  // Returns the record as the trial left it, because finalists get further readings.
  static std::string AsMeasured(v1::Record record) {
    record.mutable_result()->clear_remeasured_costs_s();
    record.mutable_result()->clear_confidence_s();
    record.mutable_result()->clear_remeasurements();
    record.mutable_result()->clear_remeasured_run_s();
    record.mutable_result()->clear_remeasured_device();
    // Further readings bring their own remark on a busy machine.
    if (record.result().error() == v1::NO_ERROR) record.mutable_result()->clear_message();
    return record.SerializeAsString();
  }

  // Runs a job of `trials`, calls `fault` each time another `every` trials are done, and checks the
  // end.
  void RunWithFaults(uint32_t trials, uint32_t every, const std::function<void()>& fault,
                     uint32_t idle_ms = 0) {
    v1::JobSpec spec = MatmulJob(trials);
    spec.mutable_options()->mutable_measure()->set_idle_ms(idle_ms);
    const std::string job = Submit(spec);
    std::map<uint32_t, v1::Record> seen;
    for (uint32_t at = every; at < trials; at += every) {
      if (Final(WaitFor(job, at))) break;
      for (const auto& [trial, record] : Records(job)) seen.emplace(trial, record);
      fault();
    }
    ExpectWholeAtEnd(job, trials, seen);
    const std::map<uint32_t, v1::Record> records = Records(job);
    EXPECT_TRUE(std::any_of(records.begin(), records.end(), [](const auto& entry) {
      return !entry.second.result().remeasured_costs_s().empty();
    })) << "the best ones are measured again at the end";
  }

  // Waits for the end of the job. It must have all its trials, the `seen` ones as they were before,
  // and no candidate twice.
  void ExpectWholeAtEnd(const std::string& job, uint32_t trials,
                        const std::map<uint32_t, v1::Record>& seen) {
    const v1::JobStatus status = WaitFor(job, trials + 1);
    EXPECT_EQ(status.state(), v1::SUCCEEDED) << status.ShortDebugString() << farm_->Logs();
    const std::map<uint32_t, v1::Record> records = Records(job);
    EXPECT_EQ(records.size(), trials);
    for (uint32_t trial = 0; trial < trials; ++trial) EXPECT_TRUE(records.contains(trial)) << trial;
    for (const auto& [trial, record] : seen) {
      const auto now = records.find(trial);
      ASSERT_NE(now, records.end()) << "record of trial " << trial << " was lost";
      EXPECT_EQ(AsMeasured(now->second), AsMeasured(record)) << "trial " << trial;
    }
    std::set<std::string> candidates;
    for (const auto& [trial, record] : records) candidates.insert(record.steps());
    EXPECT_EQ(candidates.size(), trials) << "no candidate is measured twice";
    uint32_t failed = 0;
    for (const auto& [trial, record] : records) failed += record.result().error() != v1::NO_ERROR;
    EXPECT_LE(failed, trials / 4) << "a kill costs at most the trials in flight\n" << farm_->Logs();
  }

  // Returns the rounds of a job that has ended.
  std::vector<v1::Round> Rounds(const std::string& job) {
    v1::WatchJobRequest request;
    request.set_job_id(job);
    grpc::ClientContext context;
    auto stub = farm_->Connect();
    auto stream = stub->WatchJob(&context, request);
    std::vector<v1::Round> rounds;
    for (v1::JobEvent event; stream->Read(&event);) {
      if (event.has_round()) rounds.push_back(event.round());
    }
    EXPECT_TRUE(stream->Finish().ok());
    return rounds;
  }

  std::unique_ptr<Farm> farm_;
};

}  // namespace kiln
