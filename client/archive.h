// Where jobs and records are looked up: a scheduler (client.h) or, without one, the database file
// (local_archive.h). Commands that only read know this and nothing else.
//
// One thread at a time.
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

  // For messages: "kiln.db", "the scheduler at 127.0.0.1:9290".
  virtual std::string Name() const = 0;

  virtual StatusOr<v1::JobStatus> Job(const std::string& id) = 0;
  // Newest first. No limit: all.
  virtual StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t> limit) = 0;
  // As the RPC Best: one record per target of a workload, or per task of a job. Empty: none yet.
  virtual StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) = 0;
  virtual StatusOr<v1::Record> GetRecord(int64_t id) = 0;
  // In the order of commit, until `visit` returns an error, which is then returned.
  virtual Status VisitRecords(const v1::ListRecordsRequest& request,
                              const std::function<Status(const v1::Record&)>& visit) = 0;
  // Likewise, of autotvm's records.
  virtual Status VisitAutotvmRecords(
      const v1::ListAutotvmRecordsRequest& request,
      const std::function<Status(const store::AutotvmRecord&)>& visit) = 0;
  // Returns how many were there. FailedPrecondition where one is of a job that has not ended.
  virtual StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>& ids) = 0;
  // Likewise, of autotvm's records: they are of no job.
  virtual StatusOr<uint64_t> DeleteAutotvmRecords(const std::vector<int64_t>& ids) = 0;
  // As the RPC ListPinned: schedules that somebody has set. "": of all computations.
  virtual StatusOr<std::vector<store::PinnedSchedule>> PinnedSchedules(
      const std::string& workload_id) = 0;
  // As the RPC QuerySchedule: which schedule a computation gets where nothing is searched.
  virtual StatusOr<v1::QueryScheduleReply> QuerySchedule(
      const v1::QueryScheduleRequest& request) = 0;
  // As the RPC QueryConfig: which configuration a template of autotvm gets.
  virtual StatusOr<v1::QueryConfigReply> QueryConfig(const v1::QueryConfigRequest& request) = 0;
  // As the RPC SetSchedule. Returns whether one was set before.
  virtual StatusOr<bool> SetSchedule(const v1::SetScheduleRequest& request) = 0;
  // As the RPC BindKey: for which computation a key of imported records stands.
  virtual StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest& request) = 0;
  // The lines of a measure-record log.
  virtual StatusOr<v1::ImportRecordsReply> Import(LogLines& lines) = 0;
  // All of another database file (store/merge.h). A scheduler takes logs alone: FailedPrecondition.
  virtual StatusOr<store::MergeResult> Merge(const std::string& path) = 0;
};

}  // namespace kiln::client
