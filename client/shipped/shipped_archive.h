// Answers questions for best programs: first from the user's own records, then, where these have no
// program of the computation for the target, from records that were shipped (store/shipped_file.h).
// All commands that choose a program by records ask this archive, so this is the one place that
// decides who is asked first.
//
// Shipped records appear as the job "shipped", whose trials they are; they have no number of their
// own. A shipped record does not count here if another generator or another major version of NVRTC
// made its program, if it is of another CPU than this one, or if its steps do not apply to its
// computation. The records of a GPU count on all GPUs of the target.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "store/shipped_file.h"

namespace kiln::client {

// The values that a shipped record must fit.
struct ShippedKey {
  // The version of the code generator.
  int generator = 0;
  // Returns the version of the NVRTC of this machine, "12.4"; "": there is none. Called at most
  // once, and only for records that NVRTC compiled.
  std::function<std::string()> nvrtc = [] { return std::string(); };
  // The name under which runners announce the CPU of this machine.
  std::string cpu;
};

// The key of this program on this machine. Asking for the NVRTC may load it.
ShippedKey KeyOfThisMachine();

// Returns whether the record is a shipped one.
bool IsShippedRecord(const v1::Record& record);

class ShippedArchive final : public Archive {
 public:
  // `own` is an archive, or why there is none: then calls that need one return this error, and
  // queries know only shipped records. `name` names these in messages.
  ShippedArchive(StatusOr<std::unique_ptr<Archive>> own, std::vector<store::ShippedRecord> shipped,
                 ShippedKey key, std::string name);

  std::string Name() const override;
  StatusOr<v1::JobStatus> Job(const std::string& id) override;
  // The shipped records are the oldest job.
  StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t> limit) override;
  StatusOr<std::vector<v1::JobStatus>> JobsWithoutResults() override;
  StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) override;
  StatusOr<v1::Record> GetRecord(int64_t id) override;
  // Visits shipped records only for their job.
  Status VisitRecords(const v1::ListRecordsRequest& request,
                      const std::function<Status(const v1::Record&)>& visit) override;
  Status VisitAutotvmRecords(
      const v1::ListAutotvmRecordsRequest& request,
      const std::function<Status(const store::AutotvmRecord&)>& visit) override;
  StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>& ids) override;
  StatusOr<uint64_t> DeleteAutotvmRecords(const std::vector<int64_t>& ids) override;
  StatusOr<std::vector<store::PinnedSchedule>> PinnedSchedules(
      const std::string& workload_id) override;
  // A shipped record of the computation comes after its own records, and before compatible records
  // and schedules that are chosen without measuring. Its record_id is 0.
  StatusOr<v1::QueryScheduleReply> QuerySchedule(const v1::QueryScheduleRequest& request) override;
  StatusOr<v1::QueryConfigReply> QueryConfig(const v1::QueryConfigRequest& request) override;
  StatusOr<bool> SetSchedule(const v1::SetScheduleRequest& request) override;
  StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest& request) override;
  StatusOr<v1::ImportRecordsReply> Import(LogLines& lines) override;
  StatusOr<store::MergeResult> Merge(const std::string& path) override;

 private:
  bool Fits(const store::ShippedRecord& shipped);
  // Returns the records that fit here, as messages.
  std::vector<v1::Record> Shipped(const std::function<bool(const store::Record&)>& is_wanted);
  v1::JobStatus ShippedJob() const;

  const StatusOr<std::unique_ptr<Archive>> own_;
  const std::vector<store::ShippedRecord> shipped_;
  const ShippedKey key_;
  const std::string name_;
  // None: not asked yet.
  std::optional<std::string> nvrtc_;
};

}  // namespace kiln::client
