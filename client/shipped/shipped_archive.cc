#include "client/shipped/shipped_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "client/compile/archive_records.h"
#include "compiler/codegen/cuda/compile.h"
#include "compiler/codegen/generator_version.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/schedule/fit.h"
#include "compiler/target/meaning.h"
#include "compiler/target/recorded.h"
#include "compiler/target/target.h"
#include "device/measured_as.h"
#include "rpc/hardware_message.h"
#include "runner/cpu_description.h"
#include "search/choice/context.h"
#include "search/space/task.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

constexpr std::string_view kJob = store::kShippedJob;

std::string_view MajorOf(std::string_view version) { return version.substr(0, version.find('.')); }

bool IsOfCpu(const store::Record& record) {
  const auto target = target::ParseRecordedTarget(record.target);
  return target.ok() && target->target.kind == &target::kLlvm;
}

bool IsFor(const std::string& target, const store::Record& record) {
  return target.empty() ||
         target::MeanSame(record.target, HardwareParamsOf(record.hardware), target, {});
}

// Returns whether the request is for the record's computation.
bool IsOf(const store::Record& record, const v1::BestRequest& request) {
  if (!request.workload_id().empty()) return record.workload_id == request.workload_id();
  const auto& keys = request.workload_keys();
  return std::find(keys.begin(), keys.end(), record.workload_key) != keys.end();
}

bool AnswersFor(const v1::Record& own, const v1::Record& shipped) {
  return own.workload_id() == shipped.workload_id() &&
         target::MeanSame(own.target(), HardwareParamsOf(own.hardware()), shipped.target(),
                          HardwareParamsOf(shipped.hardware()));
}

}  // namespace

ShippedKey KeyOfThisMachine() {
  return {.generator = codegen::kGeneratorVersion,
          .nvrtc =
              [] {
                const auto found = codegen::FindNvrtc();
                return found.ok() ? fmt::format("{}.{}", found->major, found->minor)
                                  : std::string();
              },
          .cpu = runner::CpuModelName()};
}

bool IsShippedRecord(const v1::Record& record) { return record.job_id() == kJob; }

ShippedArchive::ShippedArchive(StatusOr<std::unique_ptr<Archive>> own,
                               std::vector<store::ShippedRecord> shipped, ShippedKey key,
                               std::string name)
    : own_(std::move(own)),
      shipped_(std::move(shipped)),
      key_(std::move(key)),
      name_(std::move(name)) {}

// ---- shipped records ------------------------------------------------------------------------

bool ShippedArchive::Fits(const store::ShippedRecord& shipped) {
  const store::Record& record = shipped.record;
  if (shipped.generator != key_.generator) return false;
  if (IsOfCpu(record) && record.device != key_.cpu) return false;
  if (!shipped.nvrtc.empty()) {
    if (!nvrtc_.has_value()) nvrtc_ = key_.nvrtc();
    if (!nvrtc_->empty() && MajorOf(*nvrtc_) != MajorOf(shipped.nvrtc)) return false;
  }
  return schedule::CheckFit(record.dag, record.steps).ok();
}

std::vector<v1::Record> ShippedArchive::Shipped(
    const std::function<bool(const store::Record&)>& is_wanted) {
  std::vector<v1::Record> records;
  for (const store::ShippedRecord& shipped : shipped_) {
    if (is_wanted(shipped.record) && Fits(shipped))
      records.push_back(store::RecordMessage(shipped.record));
  }
  return records;
}

v1::JobStatus ShippedArchive::ShippedJob() const {
  v1::JobStatus job;
  job.set_id(std::string(kJob));
  job.mutable_spec()->set_name(name_);
  job.set_state(v1::SUCCEEDED);
  job.set_trials_done(static_cast<uint32_t>(shipped_.size()));
  for (const auto& [record, description, generator, nvrtc] : shipped_) {
    v1::TaskStatus& task = *job.add_tasks();
    task.mutable_spec()->set_description(description.empty() ? record.workload_key : description);
    task.mutable_spec()->set_target(record.target);
    task.mutable_spec()->set_dag(record.dag);
    task.set_workload_id(record.workload_id);
    task.set_workload_key(record.workload_key);
    task.set_flop_count(record.flop_count);
    task.set_best_cost_s(store::Cost(record));
    task.set_trials(1);
  }
  return job;
}

// ---- queries that both answer ---------------------------------------------------------------

std::string ShippedArchive::Name() const {
  return own_.ok() ? fmt::format("{} and {}", (*own_)->Name(), name_)
                   : fmt::format("{} ({})", name_, Message(own_.status()));
}

StatusOr<v1::JobStatus> ShippedArchive::Job(const std::string& id) {
  if (id == kJob && !shipped_.empty()) return ShippedJob();
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->Job(id);
}

StatusOr<std::vector<v1::JobStatus>> ShippedArchive::Jobs(std::optional<uint32_t> limit) {
  std::vector<v1::JobStatus> jobs;
  if (own_.ok()) {
    KILN_ASSIGN_OR_RETURN(jobs, (*own_)->Jobs(limit));
  }
  const bool has_room = !limit.has_value() || jobs.size() < *limit;
  if (has_room && !shipped_.empty()) jobs.push_back(ShippedJob());
  return jobs;
}

StatusOr<std::vector<v1::JobStatus>> ShippedArchive::JobsWithoutResults() {
  std::vector<v1::JobStatus> jobs;
  if (own_.ok()) {
    KILN_ASSIGN_OR_RETURN(jobs, (*own_)->JobsWithoutResults());
  }
  if (!shipped_.empty()) jobs.push_back(ShippedJob());
  return jobs;
}

StatusOr<std::vector<v1::Record>> ShippedArchive::Best(const v1::BestRequest& request) {
  KILN_RETURN_IF_ERROR(device::CheckDeployment(request.as_deployed()));
  if (request.job_id() == kJob) return Shipped([](const store::Record&) { return true; });
  std::vector<v1::Record> records;
  if (own_.ok()) {
    KILN_ASSIGN_OR_RETURN(records, (*own_)->Best(request));
  }
  if (!request.job_id().empty()) return records;
  std::vector<v1::Record> shipped = Shipped([&](const store::Record& record) {
    return IsOf(record, request) && IsFor(request.target(), record) &&
           device::IsAsDeployed(record.measured_as, request.as_deployed());
  });
  std::erase_if(shipped, [&](const v1::Record& record) {
    return std::ranges::any_of(records,
                               [&](const v1::Record& own) { return AnswersFor(own, record); });
  });
  std::ranges::move(shipped, std::back_inserter(records));
  return records;
}

Status ShippedArchive::VisitRecords(const v1::ListRecordsRequest& request,
                                    const std::function<Status(const v1::Record&)>& visit) {
  if (request.job_id() == kJob) {
    for (const v1::Record& record : Shipped([](const store::Record&) { return true; }))
      KILN_RETURN_IF_ERROR(visit(record));
    return OkStatus();
  }
  return own_.ok() ? (*own_)->VisitRecords(request, visit) : OkStatus();
}

StatusOr<v1::QueryScheduleReply> ShippedArchive::QuerySchedule(
    const v1::QueryScheduleRequest& request) {
  StatusOr<v1::QueryScheduleReply> own =
      own_.ok() ? (*own_)->QuerySchedule(request) : own_.status();
  const bool has_record =
      own.ok() && (own->source() == v1::SCHEDULE_SET || own->source() == v1::SCHEDULE_RECORD);
  if (has_record || (!own.ok() && own.status().code() != StatusCode::kNotFound)) return own;
  KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(request.dag()));
  KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(request.target()));
  std::string key = dag::WorkloadKey(*dag);
  const search::Task task(std::move(dag), std::move(target), HardwareParamsOf(request.hardware()),
                          std::move(key));
  search::HistoryOptions options{.as_deployed = request.as_deployed()};
  if (request.or_sample()) options.heuristic_seed = request.seed();
  ArchiveRecords records(*this);
  const auto choice = search::HistoryBest(records, options).Query(task);
  // These two say that no record was measured as the program is deployed.
  const StatusCode code = choice.status().code();
  const bool is_miss = code == StatusCode::kNotFound || code == StatusCode::kFailedPrecondition;
  if (!choice.ok() && !is_miss) return choice.status();
  if (is_miss || choice->source != search::ChoiceSource::kRecord) return own;
  v1::QueryScheduleReply reply;
  reply.set_source(v1::SCHEDULE_RECORD);
  reply.set_steps(choice->steps);
  reply.set_cost_s(choice->cost_s);
  reply.set_distance(1);
  *reply.mutable_hardware() = HardwareMessage(choice->hardware);
  reply.set_device(choice->device);
  return reply;
}

// ---- what concerns own records alone --------------------------------------------------------

StatusOr<v1::Record> ShippedArchive::GetRecord(int64_t id) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->GetRecord(id);
}

Status ShippedArchive::VisitAutotvmRecords(
    const v1::ListAutotvmRecordsRequest& request,
    const std::function<Status(const store::AutotvmRecord&)>& visit) {
  return own_.ok() ? (*own_)->VisitAutotvmRecords(request, visit) : OkStatus();
}

StatusOr<uint64_t> ShippedArchive::DeleteRecords(const std::vector<int64_t>& ids) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->DeleteRecords(ids);
}

StatusOr<uint64_t> ShippedArchive::DeleteAutotvmRecords(const std::vector<int64_t>& ids) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->DeleteAutotvmRecords(ids);
}

StatusOr<std::vector<store::PinnedSchedule>> ShippedArchive::PinnedSchedules(
    const std::string& workload_id) {
  if (!own_.ok()) return std::vector<store::PinnedSchedule>();
  return (*own_)->PinnedSchedules(workload_id);
}

StatusOr<v1::QueryConfigReply> ShippedArchive::QueryConfig(const v1::QueryConfigRequest& request) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->QueryConfig(request);
}

StatusOr<bool> ShippedArchive::SetSchedule(const v1::SetScheduleRequest& request) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->SetSchedule(request);
}

StatusOr<v1::BindKeyReply> ShippedArchive::BindKey(const v1::BindKeyRequest& request) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->BindKey(request);
}

StatusOr<v1::ImportRecordsReply> ShippedArchive::Import(LogLines& lines) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->Import(lines);
}

StatusOr<store::MergeResult> ShippedArchive::Merge(const std::string& path) {
  KILN_RETURN_IF_ERROR(own_.status());
  return (*own_)->Merge(path);
}

}  // namespace kiln::client
