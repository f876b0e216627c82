// An archive looks jobs and records up: in a scheduler (client.h) or, without one, in the database
// file (local_archive.h). Commands that only read need no other interface.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/log_lines.h"
#include "proto/scheduler.pb.h"
#include "store/autotvm_record.h"
#include "store/merge.h"
#include "store/record.h"

namespace kiln::client {

class Archive {
 public:
  virtual ~Archive() = default;

  // Name for messages: "kiln.db", "the scheduler at 127.0.0.1:9290".
  virtual std::string Name() const = 0;

  virtual StatusOr<v1::JobStatus> Job(const std::string& id) = 0;
  // Returns the newest jobs first. No limit: all jobs.
  virtual StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t> limit) = 0;
  // Returns all jobs, the newest first, and what their tasks compute. Counts and costs may be left
  // out. Cost: that of Jobs, but a database file is asked for no records.
  virtual StatusOr<std::vector<v1::JobStatus>> JobsWithoutResults() { return Jobs(std::nullopt); }
  // Like the RPC Best: one record per target of a workload, or per task of a job. Empty: no record
  // yet.
  virtual StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) = 0;
  virtual StatusOr<v1::Record> GetRecord(int64_t id) = 0;
  // Calls `visit` in the order of commit until it returns an error, which is then returned.
  virtual Status VisitRecords(const v1::ListRecordsRequest& request,
                              const std::function<Status(const v1::Record&)>& visit) = 0;
  // Does the same for autotvm's records.
  virtual Status VisitAutotvmRecords(
      const v1::ListAutotvmRecordsRequest& request,
      const std::function<Status(const store::AutotvmRecord&)>& visit) = 0;
  // Returns how many of the records existed. FailedPrecondition if one belongs to a job that has
  // not ended.
  virtual StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>& ids) = 0;
  // Does the same for autotvm's records, which belong to no job.
  virtual StatusOr<uint64_t> DeleteAutotvmRecords(const std::vector<int64_t>& ids) = 0;
  // Like the RPC ListPinned: schedules that somebody has set. "" means all computations.
  virtual StatusOr<std::vector<store::PinnedSchedule>> PinnedSchedules(
      const std::string& workload_id) = 0;
  // Like the RPC QuerySchedule: the schedule that a computation gets if nothing is searched.
  virtual StatusOr<v1::QueryScheduleReply> QuerySchedule(
      const v1::QueryScheduleRequest& request) = 0;
  // Like the RPC QueryConfig: the configuration that a template of autotvm gets.
  virtual StatusOr<v1::QueryConfigReply> QueryConfig(const v1::QueryConfigRequest& request) = 0;
  // Like the RPC SetSchedule. Returns whether a schedule was set before.
  virtual StatusOr<bool> SetSchedule(const v1::SetScheduleRequest& request) = 0;
  // Like the RPC BindKey: says for which computation a key of imported records stands.
  virtual StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest& request) = 0;
  // Imports the lines of a measure-record log.
  virtual StatusOr<v1::ImportRecordsReply> Import(LogLines& lines) = 0;
  // Copies another database file (store/merge.h). A scheduler takes only logs: FailedPrecondition.
  virtual StatusOr<store::MergeResult> Merge(const std::string& path) = 0;
};

}  // namespace kiln::client
