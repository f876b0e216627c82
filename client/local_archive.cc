#include "client/local_archive.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>

#include "absl/time/clock.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "compiler/dag/text.h"
#include "compiler/schedule/fit.h"
#include "compiler/schedule/step.h"
#include "device/measured_as.h"
#include "scheduler/service/choice_calls.h"
#include "scheduler/values/computations.h"
#include "store/import_log.h"
#include "store/lock_path.h"
#include "store/merge.h"
#include "store/plausible_cost.h"
#include "store/sqlite_store.h"
#include "store/task_results.h"
#include "store/wire/import_message.h"
#include "store/wire/job_message.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

using store::sqlite::OpenOptions;

int64_t NowMs() { return absl::ToUnixMillis(absl::Now()); }

// A scheduler that works on the file holds this lock (scheduler/database_lock.h).
bool SchedulerAtWork(const std::string& path) {
  const UniqueFd lock(open(store::LockPath(path).c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

// Returns the id of the process that holds the lock.
std::string HolderOf(const std::string& path) {
  const auto text = ReadFile(path + ".lock", 64);
  return text.ok() && !text->empty() ? text->substr(0, text->find('\n')) : "unknown";
}

// Returns the --listen address in the process's command line. Returns "" if there is none, as for
// the scheduler of kiln tune, whose secret nobody else has, or if the command line cannot be read.
std::string ListensAt(const std::string& pid) {
  constexpr size_t kMaxBytes = 1 << 16;
  const auto text = ReadFile("/proc/" + pid + "/cmdline", kMaxBytes);
  if (!text.ok()) return {};
  std::vector<std::string_view> words;
  for (std::string_view rest = *text; !rest.empty();) {
    words.push_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  if (words.size() < 2 || words[1] != "scheduler") return {};
  for (size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--listen" && i + 1 < words.size()) return std::string(words[i + 1]);
    if (words[i].starts_with("--listen=")) return std::string(words[i].substr(9));
  }
  return {};
}

class LocalArchive : public Archive {
 public:
  LocalArchive(std::string path, std::unique_ptr<store::Store> store)
      : path_(std::move(path)), store_(std::move(store)) {}

  std::string Name() const override { return path_; }

  StatusOr<v1::JobStatus> Job(const std::string& id) override {
    const auto job = store_->GetJob(id);
    if (job.status().code() == StatusCode::kNotFound) {
      return NotFound("there is no job {} in {}", id, path_);
    }
    KILN_RETURN_IF_ERROR(job.status());
    return StatusOf(*job);
  }

  StatusOr<std::vector<v1::JobStatus>> Jobs(std::optional<uint32_t> limit) override {
    KILN_ASSIGN_OR_RETURN(const auto rows, store_->ListJobs(limit));
    std::vector<v1::JobStatus> jobs;
    for (const store::JobRow& row : rows) {
      KILN_ASSIGN_OR_RETURN(jobs.emplace_back(), StatusOf(row));
    }
    return jobs;
  }

  StatusOr<std::vector<v1::JobStatus>> JobsWithoutResults() override {
    KILN_ASSIGN_OR_RETURN(const auto rows, store_->ListJobs(std::nullopt));
    std::vector<v1::JobStatus> jobs;
    for (const store::JobRow& row : rows) {
      KILN_ASSIGN_OR_RETURN(jobs.emplace_back(),
                            store::JobWithoutResultsMessage(*store_, row, SpecOf(row)));
    }
    return jobs;
  }

  StatusOr<std::vector<v1::Record>> Best(const v1::BestRequest& request) override {
    KILN_RETURN_IF_ERROR(device::CheckDeployment(request.as_deployed()));
    if (!request.job_id().empty()) return BestOfJob(request);
    KILN_ASSIGN_OR_RETURN(const auto found, store_->BestRecords(store::WorkloadOf(request), ""));
    std::vector<v1::Record> records;
    for (const store::Record& record : found) {
      if (scheduler::IsFor(request.target(), record) &&
          device::IsAsDeployed(record.measured_as, request.as_deployed())) {
        records.push_back(store::RecordMessage(record));
      }
    }
    return records;
  }

  StatusOr<v1::Record> GetRecord(int64_t id) override {
    const auto record = store_->GetRecord(id);
    if (record.status().code() == StatusCode::kNotFound) {
      return NotFound("there is no record {} in {}", id, path_);
    }
    KILN_RETURN_IF_ERROR(record.status());
    return store::RecordMessage(*record);
  }

  Status VisitRecords(const v1::ListRecordsRequest& request,
                      const std::function<Status(const v1::Record&)>& visit) override {
    return store_->ForEachRecord(store::FilterOf(request), [&](const store::Record& record) {
      return visit(store::RecordMessage(record));
    });
  }

  Status VisitAutotvmRecords(
      const v1::ListAutotvmRecordsRequest& request,
      const std::function<Status(const store::AutotvmRecord&)>& visit) override {
    return store_->ForEachAutotvmRecord(store::FilterOf(request), visit);
  }

  StatusOr<uint64_t> DeleteRecords(const std::vector<int64_t>& ids) override {
    KILN_ASSIGN_OR_RETURN(const int64_t deleted, store::DeleteRecordsOfEndedJobs(*store_, ids));
    return static_cast<uint64_t>(deleted);
  }

  StatusOr<uint64_t> DeleteAutotvmRecords(const std::vector<int64_t>& ids) override {
    KILN_ASSIGN_OR_RETURN(const int64_t deleted, store_->DeleteAutotvmRecords(ids));
    return static_cast<uint64_t>(deleted);
  }

  StatusOr<std::vector<store::PinnedSchedule>> PinnedSchedules(
      const std::string& workload_id) override {
    return store_->PinnedSchedules(workload_id);
  }

  StatusOr<v1::QueryScheduleReply> QuerySchedule(const v1::QueryScheduleRequest& request) override {
    return scheduler::QuerySchedule(*store_, request, {});
  }

  StatusOr<v1::QueryConfigReply> QueryConfig(const v1::QueryConfigRequest& request) override {
    return scheduler::QueryConfig(*store_, request);
  }

  StatusOr<bool> SetSchedule(const v1::SetScheduleRequest& request) override {
    KILN_ASSIGN_OR_RETURN(const v1::SetScheduleReply reply,
                          scheduler::SetSchedule(*store_, request, NowMs() / 1000, {}));
    return reply.was_set();
  }

  StatusOr<v1::BindKeyReply> BindKey(const v1::BindKeyRequest& request) override {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(request.dag()));
    const std::vector<store::Computation> all = scheduler::UnderAllKeys(*dag);
    KILN_RETURN_IF_ERROR(store_->AddComputations(all));
    store::Computation bound = all.front();
    bound.key = request.workload_key();
    KILN_ASSIGN_OR_RETURN(const store::BindResult result,
                          store::BindImported(*store_, bound, schedule::CheckFit));
    return store::ReplyOf(result, bound);
  }

  StatusOr<v1::ImportRecordsReply> Import(LogLines& lines) override {
    KILN_RETURN_IF_ERROR(store_->AddComputations(scheduler::LibraryComputations()));
    KILN_ASSIGN_OR_RETURN(
        auto importer,
        store::LogImporter::Begin(*store_, NowMs(),
                                  {.steps = schedule::CheckStepsText, .fits = schedule::CheckFit}));
    std::string line;
    while (true) {
      KILN_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
      if (!more) break;
      KILN_RETURN_IF_ERROR(importer.AddLine(line));
    }
    KILN_ASSIGN_OR_RETURN(const store::ImportResult result, importer.Finish());
    return store::ReplyOf(result);
  }

  StatusOr<store::MergeResult> Merge(const std::string& path) override {
    std::error_code error;
    if (std::filesystem::equivalent(path, path_, error)) {
      return InvalidArgument("{} is the database itself", path);
    }
    // An older database is brought up to date.
    auto from = store::OpenSqliteStore(path, {.mode = OpenOptions::Mode::kReadWrite});
    if (!from.ok()) from = store::OpenSqliteStore(path, {.mode = OpenOptions::Mode::kReadOnly});
    KILN_RETURN_IF_ERROR(from.status());
    return store::MergeStore(**from, *store_, NowMs());
  }

 private:
  // Returns the job's specification. If its bytes are damaged, the job is shown without it.
  static v1::JobSpec SpecOf(const store::JobRow& job) {
    v1::JobSpec spec;
    if (!spec.ParseFromString(job.spec)) spec.Clear();
    return spec;
  }

  StatusOr<v1::JobStatus> StatusOf(const store::JobRow& job) {
    return store::JobStatusMessage(*store_, job, SpecOf(job), NowMs());
  }

  StatusOr<std::vector<v1::Record>> BestOfJob(const v1::BestRequest& request) {
    KILN_ASSIGN_OR_RETURN(const auto tasks, store_->TasksOfJob(request.job_id()));
    std::vector<v1::Record> records;
    store::TaskResults results(*store_);
    for (const store::TaskRow& task : tasks) {
      KILN_ASSIGN_OR_RETURN(const auto best, results.Best(task));
      if (best.has_value() && device::IsAsDeployed(best->measured_as, request.as_deployed())) {
        records.push_back(store::RecordMessage(*best));
      }
    }
    return records;
  }

  std::string path_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace

StatusOr<std::unique_ptr<Archive>> OpenLocalArchive(const std::string& path, bool write) {
  if (!write && !FileExists(path)) {
    return NotFound(
        "no database at {}: nothing was tuned here yet; name another file with --db, or a "
        "scheduler with --scheduler",
        path);
  }
  OpenOptions options;
  options.mode = write ? OpenOptions::Mode::kCreate : OpenOptions::Mode::kReadWrite;
  auto store = store::OpenSqliteStore(path, options);
  if (!store.ok() && !write) {
    // The file may belong to somebody else or stand on a read-only disk.
    options.mode = OpenOptions::Mode::kReadOnly;
    auto readable = store::OpenSqliteStore(path, options);
    if (readable.ok()) store = std::move(readable);
  }
  KILN_RETURN_IF_ERROR(store.status());
  return std::make_unique<LocalArchive>(path, *std::move(store));
}

StatusOr<v1::Record> KeepTrial(const std::string& path, const v1::Record& message) {
  // Other processes may add trials to the job at the same time.
  constexpr int kTries = 20;
  store::Record record = store::RecordOf(message);
  KILN_RETURN_IF_ERROR(store::CheckPlausible(record, record.flop_count));
  KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, dag::ParseDag(record.dag));
  KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(path));
  store::JobRow job;
  job.id = record.job_id = kScheduleJob;
  job.name = "schedules that people wrote";
  job.state = store::JobState::kSucceeded;
  job.created_ms = NowMs();
  job.started_ms = job.finished_ms = job.created_ms;
  const Status added = store->AddJob(job);
  if (added.code() != StatusCode::kAlreadyExists) KILN_RETURN_IF_ERROR(added);
  KILN_RETURN_IF_ERROR(store->AddComputations(scheduler::UnderAllKeys(*dag)));
  StatusOr<int64_t> id = AlreadyExists("no number for the trial in job {}", kScheduleJob);
  for (int i = 0; i < kTries && id.status().code() == StatusCode::kAlreadyExists; ++i) {
    KILN_ASSIGN_OR_RETURN(const store::TrialCounts counts, store->CountTrials(kScheduleJob));
    record.trial = counts.next_trial;
    id = store->AddRecord(record);
  }
  KILN_RETURN_IF_ERROR(id.status());
  KILN_ASSIGN_OR_RETURN(record, store->GetRecord(*id));
  return store::RecordMessage(record);
}

StatusOr<int64_t> PruneAudit(const std::string& path, int64_t before_ms, bool only_count) {
  if (!FileExists(path)) return NotFound("no database at {}", path);
  KILN_ASSIGN_OR_RETURN(const auto store,
                        store::OpenSqliteStore(path, {.mode = OpenOptions::Mode::kReadWrite}));
  if (!only_count) return store->PruneAudit(before_ms);
  KILN_ASSIGN_OR_RETURN(const std::vector<store::AuditRow> entries,
                        store->Audit("", 0, std::numeric_limits<uint32_t>::max()));
  return static_cast<int64_t>(std::ranges::count_if(
      entries, [&](const store::AuditRow& entry) { return entry.at_ms < before_ms; }));
}

Status CheckDatabase(const std::string& path) {
  if (SchedulerAtWork(path)) {
    const std::string holder = HolderOf(path);
    if (const std::string address = ListensAt(holder); !address.empty()) {
      return FailedPrecondition(
          "{} is in use by a kiln scheduler, process {}, which was started with --listen {}: use "
          "it with --scheduler HOST:PORT and your --keys or its --secret-file, or give another "
          "file "
          "with --db",
          path, holder, address);
    }
    return FailedPrecondition(
        "{} is in use by another kiln, process {}; wait until it has ended, or give another file "
        "with --db. Several clients share a database through a scheduler: start kiln tracker, kiln "
        "scheduler --db {}, kiln builder and kiln runner (README.md, \"A farm\"), and give each "
        "client --scheduler HOST:PORT",
        path, holder, path);
  }
  return store::OpenSqliteStore(path).status();
}

Status CancelInDatabase(const std::string& path, const std::string& job_id) {
  if (!FileExists(path)) return NotFound("no database at {}", path);
  if (SchedulerAtWork(path)) {
    return FailedPrecondition("a scheduler works on {}: cancel through it, with --scheduler", path);
  }
  KILN_ASSIGN_OR_RETURN(const auto store,
                        store::OpenSqliteStore(path, {.mode = OpenOptions::Mode::kReadWrite}));
  const auto job = store->GetJob(job_id);
  if (job.status().code() == StatusCode::kNotFound) {
    return NotFound("there is no job {} in {}", job_id, path);
  }
  KILN_RETURN_IF_ERROR(job.status());
  return store->UpdateJobState(job_id, store::JobState::kCancelled, "", NowMs());
}

}  // namespace kiln::client
