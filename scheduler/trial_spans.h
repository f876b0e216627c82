// The spans of trials and jobs, on their way to a collector of OpenTelemetry.
//
// A trial is a trace of three spans: the trial, and within it the calls of its builder and its
// runner, whose ids are those that the calls carried. Its attributes say what was tried and how
// long each phase took. A job is one span, in the trace of its submitter, and its trials link to
// it.
//
// Committed and JobEnded are thread-safe and wait for nobody.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "rpc/otlp/otlp_exporter.h"
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

  OtlpExporter::Counts counts() const { return exporter_.counts(); }

 private:
  // Returns the job's span as far as others need it to link to it.
  TraceContext ContextOf(const std::string& job_id);
  void MakeTrial(const store::Record& record, std::vector<OtlpSpan>& spans);
  void MakeJob(const std::string& job_id, std::vector<OtlpSpan>& spans);

  store::Store& store_;
  // The newest jobs. Belongs to the exporter's thread.
  std::map<std::string, TraceContext> contexts_;
  OtlpExporter exporter_;  // last: its thread uses the other members
};

}  // namespace kiln::scheduler
