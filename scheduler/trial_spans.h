// The spans of trials and jobs, on their way to a collector of OpenTelemetry.
//
// A trial is a trace of three spans: the trial, and within it the calls of its builder and its
// runner, whose ids are those that the calls carried. Its attributes say what was tried and how
// long each phase took. A job is one span, in the trace of its submitter, and its trials link to
// it.
//
// Committed and JobEnded are thread-safe and do not wait for the collector. They encode the spans.
// Cost: about 2 us a trial; JobEnded and the first trial of a job read the job's row.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/metrics/metrics.h"
#include "rpc/otlp/otlp_exporter.h"
#include "rpc/trace_context.h"
#include "store/store.h"

namespace kiln::scheduler {

class TrialSpans {
 public:
  // The store outlives this object. Options and post are those of the exporter.
  TrialSpans(store::Store& store, OtlpExporter::Options options, OtlpExporter::Post post);

  // The store has this record of a trial.
  void Committed(const store::Record& record);
  // The store has the job's final state.
  void JobEnded(const std::string& job_id);

  // Adds kiln_traces_total: the trials and jobs whose spans were sent, and dropped.
  void Collect(MetricSheet& sheet) const;

 private:
  // Returns the job's span as far as others need it to link to it.
  TraceContext ContextOf(const std::string& job_id);

  store::Store& store_;
  std::mutex mutex_;
  // The newest jobs.
  std::map<std::string, TraceContext> contexts_;
  OtlpExporter exporter_;
};

}  // namespace kiln::scheduler
