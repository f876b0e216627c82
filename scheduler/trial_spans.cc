#include "scheduler/trial_spans.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "proto/scheduler.pb.h"
#include "scheduler/values/request_trace.h"
#include "store/wire/kept_times.h"

namespace kiln::scheduler {
namespace {

// So many jobs are remembered.
constexpr size_t kMostContexts = 256;

// Returns the fields of a record that its spans have, without its texts, which are long.
store::Record Slim(const store::Record& record) {
  store::Record slim;
  slim.job_id = record.job_id;
  slim.trial = record.trial;
  slim.task_index = record.task_index;
  slim.error = record.error;
  slim.message = record.message;
  slim.build_s = record.build_s;
  slim.run_s = record.run_s;
  slim.builder = record.builder;
  slim.runner = record.runner;
  slim.device = record.device;
  slim.origin = record.origin;
  slim.times = record.times;
  slim.costs_s = record.costs_s;
  return slim;
}

void AddNumbers(const google::protobuf::Message& message, std::vector<int> fields, OtlpSpan& span) {
  for (const int number : fields) {
    const google::protobuf::FieldDescriptor* field =
        message.GetDescriptor()->FindFieldByNumber(number);
    const double value = message.GetReflection()->GetDouble(message, field);
    if (value > 0) span.attributes.emplace_back("kiln." + field->name(), value);
  }
}

std::string ErrorOf(const store::Record& record) {
  if (record.error == store::kNoError) return "";
  return fmt::format("{}: {}", v1::ErrorKind_Name(static_cast<v1::ErrorKind>(record.error)),
                     record.message);
}

}  // namespace

TrialSpans::TrialSpans(store::Store& store, OtlpExporter::Options options, OtlpExporter::Post post)
    : store_(store), exporter_(std::move(options), std::move(post)) {}

void TrialSpans::Committed(const store::Record& record) {
  exporter_.Add([this, slim = std::make_shared<const store::Record>(Slim(record))](
                    std::vector<OtlpSpan>& spans) { MakeTrial(*slim, spans); });
}

void TrialSpans::JobEnded(const std::string& job_id) {
  exporter_.Add([this, job_id](std::vector<OtlpSpan>& spans) { MakeJob(job_id, spans); });
}

TraceContext TrialSpans::ContextOf(const std::string& job_id) {
  const auto found = contexts_.find(job_id);
  if (found != contexts_.end()) return found->second;
  v1::JobSpec spec;
  const auto job = store_.GetJob(job_id);
  if (job.ok() && !spec.ParseFromString(job->spec)) spec.Clear();
  if (contexts_.size() >= kMostContexts) contexts_.clear();
  const TraceContext context = TraceOfJob(job_id, TraceparentIn(spec.request_id()));
  contexts_.emplace(job_id, context);
  return context;
}

void TrialSpans::MakeTrial(const store::Record& record, std::vector<OtlpSpan>& spans) {
  v1::TrialResult result;
  store::ReadTimes(record.times, result);
  const v1::TrialInstants& at = result.instants();
  OtlpSpan trial;
  trial.context = TraceOfTrial(record.job_id, record.trial);
  trial.name = "trial";
  trial.begin_us = at.chosen_us();
  trial.end_us = at.committed_us();
  trial.error = ErrorOf(record);
  trial.attributes = {{"kiln.job", record.job_id},
                      {"kiln.trial", int64_t{record.trial}},
                      {"kiln.task", int64_t{record.task_index}},
                      {"kiln.origin", record.origin}};
  const double cost_s = store::MeanCost(record);
  if (record.error == store::kNoError) trial.attributes.emplace_back("kiln.cost_s", cost_s);
  trial.links = {ContextOf(record.job_id)};
  const auto call = [&](TrialSpan which, std::string name, int64_t begin_us, int64_t end_us) {
    OtlpSpan span;
    span.context = TraceOfTrial(record.job_id, record.trial, which);
    span.parent_span_id = trial.context.span_id;
    span.name = std::move(name);
    span.is_call = true;
    span.begin_us = begin_us;
    span.end_us = end_us;
    return span;
  };
  if (at.build_received_us() > 0) {
    OtlpSpan build = call(TrialSpan::kBuild, "build", at.build_sent_us(), at.build_received_us());
    build.attributes.emplace_back("kiln.builder", record.builder);
    AddNumbers(result.times(), {1, 2, 3, 4}, build);
    spans.push_back(std::move(build));
  }
  if (at.run_received_us() > 0) {
    OtlpSpan run = call(TrialSpan::kRun, "run", at.run_sent_us(), at.run_received_us());
    run.attributes = {{"kiln.runner", record.runner}, {"kiln.device", record.device}};
    AddNumbers(result.times(), {5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, run);
    spans.push_back(std::move(run));
  }
  spans.push_back(std::move(trial));
}

void TrialSpans::MakeJob(const std::string& job_id, std::vector<OtlpSpan>& spans) {
  const auto job = store_.GetJob(job_id);
  if (!job.ok()) return;
  v1::JobSpec spec;
  if (!spec.ParseFromString(job->spec)) return;
  OtlpSpan span;
  span.context = ContextOf(job_id);
  const auto parent = ParseTraceparent(TraceparentIn(spec.request_id()));
  if (parent.ok()) span.parent_span_id = parent->span_id;
  span.name = "job";
  span.begin_us = job->created_ms * 1000;
  span.end_us = std::max(job->created_ms, job->finished_ms.value_or(0)) * 1000;
  if (job->state == store::JobState::kFailed) span.error = job->message;
  span.attributes = {{"kiln.job", job_id},
                     {"kiln.name", job->name},
                     {"kiln.user", job->user},
                     {"kiln.state", std::string(store::JobStateName(job->state))}};
  spans.push_back(std::move(span));
}

}  // namespace kiln::scheduler
