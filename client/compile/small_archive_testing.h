// An archive in memory, for tests.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "compiler/dag/text.h"
#include "compiler/target/meaning.h"
#include "graph/tasks.h"
#include "rpc/hardware_message.h"

namespace kiln::client {

// Has only the records that were added, numbered from 1. Not thread-safe.
class SmallArchive : public Archive {
 public:
  // The default `steps` are those of the unscheduled loops. `hardware` describes the device.
  void Add(const graph::NetworkTask& task, const std::string& target, double cost_s,
           const std::string& device = "", const std::string& steps = "[]",
           const HardwareRow& hardware = {}) {
    v1::TaskStatus& status = *jobs_.add_tasks();
    status.set_workload_id(task.workload_id);
    status.set_workload_key(task.workload_key);
    status.mutable_spec()->set_description(task.description);
    v1::Record record;
    record.set_id(static_cast<int64_t>(++records_));
    record.set_workload_id(task.workload_id);
    record.set_target(target);
    record.set_steps(steps);
    record.set_dag(dag::PrintDag(*task.dag));
    record.mutable_result()->add_costs_s(cost_s);
    record.mutable_result()->set_device(device);
    *record.mutable_hardware() = HardwareMessage(HardwareParamsOf(hardware));
    by_id_.emplace(task.workload_id, record);
  }

  void Set(const graph::NetworkTask& task, const std::string& target, const std::string& steps) {
    pinned_.push_back({.workload_id = task.workload_id, .target = target, .steps = steps});
  }

  std::string Name() const override { return "small"; }
  StatusOr<v1::JobStatus> Job(const std::string&) override { return jobs_; }
  StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t>) override {
    return std::vector{jobs_};
  }
  StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) override {
    std::vector<v1::Record> found;
    const auto [begin, end] = by_id_.equal_range(request.workload_id());
    for (auto it = begin; it != end; ++it) {
      const bool fits = request.target().empty() ||
                        target::MeanSame(it->second.target(), {}, request.target(), {});
      if (fits) found.push_back(it->second);
    }
    return found;
  }
  StatusOr<v1::Record> GetRecord(int64_t) override { return NotFound("none"); }
  Status VisitRecords(const v1::ListRecordsRequest& request,
                      const std::function<Status(const v1::Record&)>& visit) override {
    const auto [begin, end] = by_id_.equal_range(request.workload_id());
    for (auto it = begin; it != end; ++it) KILN_RETURN_IF_ERROR(visit(it->second));
    return OkStatus();
  }
  Status VisitAutotvmRecords(const v1::ListAutotvmRecordsRequest&,
                             const std::function<Status(const store::AutotvmRecord&)>&) override {
    return OkStatus();
  }
  StatusOr<std::vector<store::PinnedSchedule>> PinnedSchedules(
      const std::string& workload_id) override {
    std::vector<store::PinnedSchedule> found;
    for (const store::PinnedSchedule& pinned : pinned_) {
      if (pinned.workload_id == workload_id) found.push_back(pinned);
    }
    return found;
  }
  StatusOr<v1::QueryScheduleReply> QuerySchedule(const v1::QueryScheduleRequest&) override {
    return v1::QueryScheduleReply();
  }
  StatusOr<v1::QueryConfigReply> QueryConfig(const v1::QueryConfigRequest&) override {
    return v1::QueryConfigReply();
  }
  StatusOr<bool> SetSchedule(const v1::SetScheduleRequest&) override { return false; }
  StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>&) override { return 0; }
  StatusOr<uint64_t> DeleteAutotvmRecords(const std::vector<int64_t>&) override { return 0; }
  StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest&) override {
    return v1::BindKeyReply();
  }
  StatusOr<v1::ImportRecordsReply> Import(LogLines&) override { return v1::ImportRecordsReply(); }
  StatusOr<store::MergeResult> Merge(const std::string&) override { return store::MergeResult(); }

 private:
  v1::JobStatus jobs_;
  std::multimap<std::string, v1::Record> by_id_;
  std::vector<store::PinnedSchedule> pinned_;
  int records_ = 0;
};

}  // namespace kiln::client
