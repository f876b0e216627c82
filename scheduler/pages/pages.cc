#include "scheduler/pages/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "scheduler/pages/fleet_json.h"
#include "scheduler/pages/job_json.h"
#include "scheduler/pages/record_json.h"
#include "scheduler/words/format.h"

namespace kiln::scheduler {
namespace {

// Hex digits of a workload id.
constexpr size_t kIdDigits = 64;
// Pages of trials that are looked through for a trial, on either side of where it should be.
constexpr int64_t kMostPagesOff = 20;
// A trial's page is known when all trials are read, in so many parts at most.
constexpr int kMostParts = 100;

StatusOr<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return InvalidArgument("found '{}', expected the number of a record, or JOB/TRIAL",
                           Bounded(text));
  }
  return number;
}

bool IsWorkloadId(std::string_view text) {
  return text.size() == kIdDigits && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Returns a row of a job whose status is not known yet.
Json PartialRow(const store::JobRow& job) {
  v1::JobStatus status;
  status.set_id(job.id);
  status.mutable_spec()->set_name(job.name);
  status.mutable_spec()->set_user(job.user);
  status.mutable_spec()->set_priority(job.priority);
  status.set_state(static_cast<v1::JobState>(job.state));
  status.set_message(job.message);
  status.set_created_s(job.created_ms / 1'000);
  Json row = JobRowJson(status, RoundCurve());
  row["partial"] = true;
  return row;
}

Json RowOf(const SeenJob& seen, const FarmAnswers& farm) {
  Json row = JobRowJson(seen.status, seen.curve);
  row["estimate"] = EstimateText(seen.status, farm);
  return row;
}

bool Waits(const v1::JobStatus& job) {
  return job.state() == v1::QUEUED ||
         (job.state() == v1::RUNNING && job.waiting_for_workers() != 0);
}

Json CommandsOfJob(const v1::JobStatus& job) {
  Json commands = Json::array();
  const bool goes_on = job.state() == v1::RUNNING || job.state() == v1::QUEUED;
  if (goes_on) commands.push_back("kiln watch " + job.id());
  commands.push_back("kiln jobs " + job.id());
  commands.push_back("kiln best --job " + job.id());
  return commands;
}

}  // namespace

Pages::Pages(store::Store& store, Options options)
    : store_(store),
      options_(std::move(options)),
      clock_(*options_.clock),
      statuses_(store, options_.read_status, clock_),
      trials_(options_.digests),
      programs_(options_.programs) {}

double Pages::NowS() const { return clock_.UnixSeconds(); }

Json Pages::About() const {
  Json about;
  about["now_s"] = NowS();
  about["version"] = options_.version;
  about["scheduler_port"] = scheduler_port_.load();
  return about;
}

// ---- the farm -------------------------------------------------------------------------------

StatusOr<FarmAnswers> Pages::AskFarm() {
  FarmAnswers farm;
  KILN_ASSIGN_OR_RETURN(std::vector<store::JobRow> jobs, store_.LoadUnfinishedJobs());
  std::erase_if(jobs,
                [](const store::JobRow& job) { return job.state == store::JobState::kPaused; });
  // The oldest go first: what runs, and what is next.
  if (jobs.size() > kMostUnfinished) jobs.resize(kMostUnfinished);
  for (const store::JobRow& job : jobs) {
    KILN_ASSIGN_OR_RETURN(const auto seen, statuses_.Of(job));
    farm.jobs.push_back(seen->status);
  }
  std::ranges::reverse(farm.jobs);
  tracker_error_ = OkStatus();
  if (!options_.list_workers) return farm;
  auto workers = options_.list_workers();
  if (workers.ok()) {
    farm.workers = *std::move(workers);
  } else {
    tracker_error_ = workers.status();
  }
  return farm;
}

StatusOr<std::shared_ptr<const FarmAnswers>> Pages::Farm() {
  const std::lock_guard lock(farm_mutex_);
  const double age_s = clock_.MonotonicSeconds() - farm_read_at_s_;
  if (farm_ != nullptr && age_s < absl::ToDoubleSeconds(options_.farm_age)) return farm_;
  KILN_ASSIGN_OR_RETURN(FarmAnswers farm, AskFarm());
  farm_ = std::make_shared<const FarmAnswers>(std::move(farm));
  farm_read_at_s_ = clock_.MonotonicSeconds();
  return farm_;
}

Json Pages::Fleet() {
  Json answer;
  const auto farm = Farm();
  const bool is_known = farm.ok() && (*farm)->workers.has_value();
  answer = FleetJson(is_known ? *(*farm)->workers : v1::ListReply());
  answer["now_s"] = NowS();
  answer["error"] = "";
  if (!farm.ok()) answer["error"] = Message(farm.status());
  const std::lock_guard lock(farm_mutex_);
  if (farm.ok() && !tracker_error_.ok()) answer["error"] = Message(tracker_error_);
  return answer;
}

StatusOr<Json> Pages::Queue() {
  KILN_ASSIGN_OR_RETURN(const auto farm, Farm());
  Json answer;
  answer["now_s"] = NowS();
  answer["jobs"] = Json::array();
  int running = 0;
  // The oldest first.
  for (auto job = farm->jobs.rbegin(); job != farm->jobs.rend(); ++job) {
    if (!Waits(*job)) {
      ++running;
      continue;
    }
    Json row = JobRowJson(*job, RoundCurve());
    row["why"] = WhyJsonOf(*job, *farm);
    row["estimate"] = row["why"]["estimate"];
    answer["jobs"].push_back(std::move(row));
  }
  answer["running"] = running;
  answer["more"] = farm->jobs.size() >= kMostUnfinished;
  return answer;
}

// ---- jobs -----------------------------------------------------------------------------------

StatusOr<Json> Pages::Jobs(uint32_t limit) {
  const uint32_t most = limit == 0 ? kDefaultJobs : std::min(limit, kMostJobs);
  KILN_ASSIGN_OR_RETURN(std::vector<store::JobRow> jobs, store_.ListJobs(most + 1));
  KILN_ASSIGN_OR_RETURN(const auto farm, Farm());
  Json answer;
  answer["now_s"] = NowS();
  answer["more"] = jobs.size() > most && most < kMostJobs;
  if (jobs.size() > most) jobs.resize(most);
  answer["partial"] = false;
  answer["jobs"] = Json::array();
  const double end_s = clock_.MonotonicSeconds() + absl::ToDoubleSeconds(options_.patience);
  for (const store::JobRow& job : jobs) {
    std::shared_ptr<const SeenJob> seen = statuses_.Known(job);
    if (seen == nullptr && clock_.MonotonicSeconds() < end_s) {
      KILN_ASSIGN_OR_RETURN(seen, statuses_.Of(job));
    }
    if (seen == nullptr) answer["partial"] = true;
    answer["jobs"].push_back(seen == nullptr ? PartialRow(job) : RowOf(*seen, *farm));
  }
  return answer;
}

StatusOr<std::shared_ptr<const SeenJob>> Pages::Seen(const std::string& job_id) {
  KILN_ASSIGN_OR_RETURN(const store::JobRow job, store_.GetJob(job_id));
  return statuses_.Of(job);
}

StatusOr<Json> Pages::Job(const std::string& job_id) {
  KILN_ASSIGN_OR_RETURN(const auto seen, Seen(job_id));
  KILN_ASSIGN_OR_RETURN(const auto farm, Farm());
  const v1::JobStatus& job = seen->status;
  Json answer;
  answer["now_s"] = NowS();
  answer["job"] = RowOf(*seen, *farm);
  answer["tasks"] = TasksJson(job);
  answer["tasks_more"] = std::max<int>(0, job.tasks_size() - static_cast<int>(kMostTasks));
  answer["why"] = WhyJsonOf(job, *farm);
  answer["options"] = OptionsJson(job.spec().options());
  answer["commands"] = CommandsOfJob(job);
  return answer;
}

Status Pages::LookAtTrials(const std::string& job_id, uint64_t trials, const Look& look) {
  const std::shared_ptr<Trialed> known = trials_.Get(job_id);
  const std::lock_guard lock(known->mutex);
  // Records were deleted: what is left is read anew.
  if (known->digest.trials() > trials) known->digest = TrialDigest();
  KILN_ASSIGN_OR_RETURN(const bool complete,
                        ReadTrials(store_, job_id, options_.records_at_once, known->digest));
  return look(known->digest, complete);
}

StatusOr<Json> Pages::Curve(const std::string& job_id) {
  KILN_ASSIGN_OR_RETURN(const auto seen, Seen(job_id));
  const uint64_t trials = seen->status.trials_done();
  Json answer;
  KILN_RETURN_IF_ERROR(
      LookAtTrials(job_id, trials, [&](const TrialDigest& digest, bool complete) -> Status {
        answer = CurveJson(job_id, trials, complete, seen->curve, digest);
        return OkStatus();
      }));
  answer["now_s"] = NowS();
  return answer;
}

StatusOr<std::vector<store::Record>> Pages::PageOfTrials(const std::string& job_id,
                                                         int64_t first_id) {
  return NextRecords(store_, job_id, first_id - 1, TrialDigest::kPageTrials);
}

StatusOr<std::vector<store::Record>> Pages::RecordsById(const std::vector<int64_t>& ids) {
  std::vector<store::Record> records;
  KILN_RETURN_IF_ERROR(store_.Read([&](store::Store::Snapshot& snapshot) -> Status {
    KILN_ASSIGN_OR_RETURN(records, snapshot.Records(ids));
    return OkStatus();
  }));
  return records;
}

StatusOr<Json> Pages::Trials(const std::string& job_id, std::string_view order, uint32_t page) {
  if (order != "newest" && order != "oldest" && order != "best") {
    return InvalidArgument("found the order '{}', expected newest, oldest or best", Bounded(order));
  }
  KILN_ASSIGN_OR_RETURN(const auto seen, Seen(job_id));
  std::vector<int64_t> best;
  std::optional<int64_t> first_id;
  size_t pages = 0;
  KILN_RETURN_IF_ERROR(LookAtTrials(
      job_id, seen->status.trials_done(), [&](const TrialDigest& digest, bool) -> Status {
        const std::vector<int64_t>& starts = digest.page_starts();
        pages = starts.size();
        if (page < pages) first_id = starts[order == "newest" ? pages - 1 - page : page];
        for (const auto& [index, task] : digest.tasks()) {
          for (const store::Rank& rank : task.top) {
            if (best.size() < 4 * TrialDigest::kPageTrials) best.push_back(rank.id);
          }
        }
        return OkStatus();
      }));
  std::vector<store::Record> records;
  if (order == "best") {
    KILN_ASSIGN_OR_RETURN(records, RecordsById(best));
  } else if (first_id.has_value()) {
    KILN_ASSIGN_OR_RETURN(records, PageOfTrials(job_id, *first_id));
  }
  if (order == "newest") std::ranges::reverse(records);
  Json answer;
  answer["page"] = page;
  answer["pages"] = order == "best" ? 1 : pages;
  answer["best"] = order == "best";
  answer["rows"] = Json::array();
  for (const store::Record& record : records) answer["rows"].push_back(TrialJson(record));
  return answer;
}

// ---- records --------------------------------------------------------------------------------

std::string Pages::DescriptionOf(const store::Record& record) {
  const auto tasks = store_.TasksOfJob(record.job_id);
  if (!tasks.ok()) return {};
  for (const store::TaskRow& task : *tasks) {
    if (task.index == record.task_index) return task.description;
  }
  return {};
}

StatusOr<Json> Pages::Workloads() {
  KILN_ASSIGN_OR_RETURN(const std::vector<store::JobRow> jobs, store_.ListJobs(kMostJobs));
  const double end_s = clock_.MonotonicSeconds() + absl::ToDoubleSeconds(options_.patience);
  bool more = jobs.size() == kMostJobs;
  // The best record of each computation and target, with its words.
  std::map<std::pair<std::string, std::string>, std::pair<double, int64_t>> best;
  std::map<int64_t, std::string> words;
  for (const store::JobRow& job : jobs) {
    std::shared_ptr<const SeenJob> seen = statuses_.Known(job);
    if (seen == nullptr && clock_.MonotonicSeconds() < end_s) {
      KILN_ASSIGN_OR_RETURN(seen, statuses_.Of(job));
    }
    if (seen == nullptr || best.size() >= kMostWorkloads) {
      more = true;
      continue;
    }
    for (const v1::TaskStatus& task : seen->status.tasks()) {
      if (task.best_record_id() == 0 || best.size() >= kMostWorkloads) continue;
      const std::pair cost = {task.best_cost_s(), task.best_record_id()};
      const auto [at, is_new] =
          best.try_emplace(std::pair(task.workload_id(), task.spec().target()), cost);
      if (!is_new && cost < at->second) at->second = cost;
      words[task.best_record_id()] = task.spec().description();
    }
  }
  std::vector<int64_t> ids;
  for (const auto& [workload, cost] : best) ids.push_back(cost.second);
  KILN_ASSIGN_OR_RETURN(std::vector<store::Record> records, RecordsById(ids));
  std::ranges::stable_sort(records, [](const store::Record& a, const store::Record& b) {
    return a.timestamp_s > b.timestamp_s;
  });
  Json answer;
  answer["more"] = more;
  answer["rows"] = Json::array();
  for (const store::Record& record : records) {
    answer["rows"].push_back(RecordRowJson(record, words[record.id]));
  }
  return answer;
}

StatusOr<Json> Pages::Records(const std::string& workload) {
  store::RecordFilter filter;
  if (IsWorkloadId(workload)) {
    filter.workload.id = workload;
  } else {
    filter.workload.keys = {workload};
  }
  filter.top = kMostRecords;
  Json answer;
  answer["more"] = false;
  answer["rows"] = Json::array();
  std::string description;
  KILN_RETURN_IF_ERROR(store_.ForEachRecord(filter, [&](const store::Record& record) -> Status {
    if (answer["rows"].empty()) description = DescriptionOf(record);
    answer["rows"].push_back(RecordRowJson(record, description));
    return OkStatus();
  }));
  return answer;
}

StatusOr<store::Record> Pages::FindTrial(const std::string& job_id, uint32_t trial) {
  KILN_ASSIGN_OR_RETURN(const auto seen, Seen(job_id));
  std::vector<int64_t> starts;
  bool complete = false;
  for (int part = 0; part < kMostParts && !complete; ++part) {
    KILN_RETURN_IF_ERROR(LookAtTrials(job_id, seen->status.trials_done(),
                                      [&](const TrialDigest& digest, bool all) -> Status {
                                        starts = digest.page_starts();
                                        complete = all;
                                        return OkStatus();
                                      }));
    // Results come nearly in the order of the trials.
    if (starts.size() > trial / TrialDigest::kPageTrials + 2) break;
  }
  const auto at = static_cast<int64_t>(trial / TrialDigest::kPageTrials);
  for (int64_t off = 0; off <= 2 * kMostPagesOff; ++off) {
    const int64_t page = at + (off % 2 == 0 ? off / 2 : -(off + 1) / 2);
    if (page < 0 || page >= static_cast<int64_t>(starts.size())) continue;
    KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                          PageOfTrials(job_id, starts[static_cast<size_t>(page)]));
    for (const store::Record& record : records) {
      if (record.trial == trial) return record;
    }
  }
  return NotFound("job {} has no trial {}", job_id, trial);
}

StatusOr<store::Record> Pages::FindRecord(std::string_view name) {
  if (const auto trial = ParseTrialName(name); trial.has_value()) {
    return FindTrial(trial->job_id, trial->number);
  }
  KILN_ASSIGN_OR_RETURN(const int64_t id, NumberOf(name));
  return store_.GetRecord(id);
}

StatusOr<Json> Pages::Record(std::string_view name) {
  KILN_ASSIGN_OR_RETURN(const store::Record record, FindRecord(name));
  std::vector<store::Record> best;
  if (!record.workload_id.empty()) {
    const store::WorkloadRef workload = {.id = record.workload_id};
    KILN_ASSIGN_OR_RETURN(best, store_.BestRecords(workload, record.target));
  }
  return RecordJson(record, DescriptionOf(record), best.empty() ? nullptr : &best.front());
}

StatusOr<Json> Pages::RecordText(std::string_view name, std::string_view form,
                                 const std::function<bool()>& gone) {
  KILN_ASSIGN_OR_RETURN(const store::Record record, FindRecord(name));
  Json answer;
  StatusOr<std::string> text = NotFound("nothing was made");
  KILN_RETURN_IF_ERROR(programs_.Do(gone, [&](const std::stop_token& stop) {
    text = ProgramText(record, form, stop);
    return text.status().code() == StatusCode::kCancelled ? text.status() : OkStatus();
  }));
  if (text.status().code() == StatusCode::kInvalidArgument &&
      std::ranges::count(ProgramForms(), form) == 0) {
    return text.status();
  }
  answer["text"] = "";
  answer["reason"] = "";
  if (!text.ok()) {
    answer["reason"] = fmt::format("This form cannot be made: {}", Message(text.status()));
  } else if (text->size() > kMostProgramBytes) {
    answer["reason"] = "The text is longer than a page should be; the commands below print it.";
  } else {
    answer["text"] = *text;
  }
  return answer;
}

}  // namespace kiln::scheduler
