#include "scheduler/trial_spans.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "proto/scheduler.pb.h"
#include "rpc/otlp/otlp_span.h"
#include "scheduler/values/request_trace.h"
#include "store/wire/kept_times.h"

namespace kiln::scheduler {
namespace {

// So many jobs are remembered.
constexpr size_t kMostContexts = 4096;

// The bytes of most trials.
constexpr size_t kTrialBytes = 1024;

struct Phase {
  std::string_view attribute;
  double (v1::TrialTimes::*seconds)() const;
};
constexpr Phase kBuildPhases[] = {
    {"kiln.build_wait_s", &v1::TrialTimes::build_wait_s},
    {"kiln.instantiate_s", &v1::TrialTimes::instantiate_s},
    {"kiln.generate_s", &v1::TrialTimes::generate_s},
    {"kiln.compile_s", &v1::TrialTimes::compile_s},
};
constexpr Phase kRunPhases[] = {
    {"kiln.run_wait_s", &v1::TrialTimes::run_wait_s},
    {"kiln.reference_s", &v1::TrialTimes::reference_s},
    {"kiln.load_s", &v1::TrialTimes::load_s},
    {"kiln.prepare_s", &v1::TrialTimes::prepare_s},
    {"kiln.first_run_s", &v1::TrialTimes::first_run_s},
    {"kiln.check_s", &v1::TrialTimes::check_s},
    {"kiln.timing_s", &v1::TrialTimes::timing_s},
    {"kiln.timed_runs_s", &v1::TrialTimes::timed_runs_s},
    {"kiln.last_run_s", &v1::TrialTimes::last_run_s},
    {"kiln.release_s", &v1::TrialTimes::release_s},
};

void AddPhases(const v1::TrialTimes& times, std::span<const Phase> phases, OtlpSpan& span) {
  for (const Phase& phase : phases) {
    const double seconds = (times.*phase.seconds)();
    if (seconds > 0) span.attributes.emplace_back(phase.attribute, seconds);
  }
}

std::string ErrorOf(const store::Record& record) {
  if (record.error == store::kNoError) return "";
  return fmt::format("{}: {}", v1::ErrorKind_Name(static_cast<v1::ErrorKind>(record.error)),
                     record.message);
}

// One call of a trial.
struct Call {
  TrialSpan which;
  std::string_view name;
  int64_t begin_us, end_us;
  std::span<const OtlpSpan::Attribute> attributes;
  std::span<const Phase> phases;
};

void AppendCall(const store::Record& record, std::string_view parent, const Call& call,
                const v1::TrialTimes& times, std::string& out) {
  const TraceContext ids = TraceOfTrial(record.job_id, record.trial, call.which);
  OtlpSpan span;
  span.trace_id = ids.trace_id;
  span.span_id = ids.span_id;
  span.parent_span_id = parent;
  span.name = call.name;
  span.is_call = true;
  span.begin_us = call.begin_us;
  span.end_us = call.end_us;
  span.attributes.assign(call.attributes.begin(), call.attributes.end());
  AddPhases(times, call.phases, span);
  AppendOtlp(span, out);
}

void AppendTrial(const store::Record& record, const TraceContext& job, std::string& out) {
  v1::TrialResult result;
  store::ReadTimes(record.times, result);
  const v1::TrialInstants& at = result.instants();
  const TraceContext ids = TraceOfTrial(record.job_id, record.trial);
  const std::string error = ErrorOf(record);
  OtlpSpan trial;
  trial.trace_id = ids.trace_id;
  trial.span_id = ids.span_id;
  trial.name = "trial";
  trial.begin_us = at.chosen_us();
  trial.end_us = at.committed_us();
  trial.error = error;
  trial.attributes = {{"kiln.job", std::string_view(record.job_id)},
                      {"kiln.trial", int64_t{record.trial}},
                      {"kiln.task", int64_t{record.task_index}},
                      {"kiln.origin", std::string_view(record.origin)}};
  const double cost_s = store::MeanCost(record);
  if (record.error == store::kNoError) trial.attributes.emplace_back("kiln.cost_s", cost_s);
  trial.links = {&job, 1};
  if (at.build_received_us() > 0) {
    const OtlpSpan::Attribute place[] = {{"kiln.builder", std::string_view(record.builder)}};
    AppendCall(record, ids.span_id,
               {TrialSpan::kBuild, "build", at.build_sent_us(), at.build_received_us(), place,
                kBuildPhases},
               result.times(), out);
  }
  if (at.run_received_us() > 0) {
    const OtlpSpan::Attribute place[] = {{"kiln.runner", std::string_view(record.runner)},
                                         {"kiln.device", std::string_view(record.device)}};
    AppendCall(record, ids.span_id,
               {TrialSpan::kRun, "run", at.run_sent_us(), at.run_received_us(), place, kRunPhases},
               result.times(), out);
  }
  AppendOtlp(trial, out);
}

// `kept` is what the job keeps of its request.
void AppendJob(const store::JobRow& job, std::string_view kept, const TraceContext& ids,
               std::string& out) {
  OtlpSpan span;
  span.trace_id = ids.trace_id;
  span.span_id = ids.span_id;
  const auto parent = ParseTraceparent(TraceparentIn(kept));
  if (parent.ok()) span.parent_span_id = parent->span_id;
  span.name = "job";
  span.begin_us = job.created_ms * 1000;
  span.end_us = std::max(job.created_ms, job.finished_ms.value_or(0)) * 1000;
  if (job.state == store::JobState::kFailed) span.error = job.message;
  span.attributes = {{"kiln.job", std::string_view(job.id)},
                     {"kiln.name", std::string_view(job.name)},
                     {"kiln.user", std::string_view(job.user)},
                     {"kiln.state", store::JobStateName(job.state)}};
  AppendOtlp(span, out);
}

}  // namespace

TrialSpans::TrialSpans(store::Store& store, OtlpExporter::Options options, OtlpExporter::Post post)
    : store_(store), exporter_(std::move(options), std::move(post)) {}

void TrialSpans::Committed(const store::Record& record) {
  std::string encoded;
  encoded.reserve(kTrialBytes);
  AppendTrial(record, ContextOf(record.job_id), encoded);
  exporter_.Add(encoded);
}

void TrialSpans::JobEnded(const std::string& job_id) {
  const auto job = store_.GetJob(job_id);
  if (!job.ok()) return;
  v1::JobSpec spec;
  if (!spec.ParseFromString(job->spec)) return;
  std::string encoded;
  AppendJob(*job, spec.request_id(), ContextOf(job_id), encoded);
  exporter_.Add(encoded);
}

void TrialSpans::Collect(MetricSheet& sheet) const {
  const OtlpExporter::Counts counts = exporter_.counts();
  const auto add = [&](const std::string& fate, uint64_t count) {
    sheet.Counter("kiln_traces_total", "Trials and jobs whose spans were sent, and dropped.",
                  static_cast<double>(count), {{"fate", fate}});
  };
  add("sent", counts.sent);
  add("dropped", counts.dropped);
}

TraceContext TrialSpans::ContextOf(const std::string& job_id) {
  {
    std::lock_guard lock(mutex_);
    const auto found = contexts_.find(job_id);
    if (found != contexts_.end()) return found->second;
  }
  v1::JobSpec spec;
  const auto job = store_.GetJob(job_id);
  if (job.ok() && !spec.ParseFromString(job->spec)) spec.Clear();
  const TraceContext context = TraceOfJob(job_id, TraceparentIn(spec.request_id()));
  std::lock_guard lock(mutex_);
  if (contexts_.size() >= kMostContexts) contexts_.clear();
  contexts_.emplace(job_id, context);
  return context;
}

}  // namespace kiln::scheduler
