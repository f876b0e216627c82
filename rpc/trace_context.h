// Ids of traces in the form of W3C Trace Context, "00-TRACE-SPAN-FLAGS", by which a tool puts the
// spans of several processes together.
//
// Each trial is a trace of its own. Its ids are digests of the job's id and the trial's number, so
// nobody has to keep them, and a scheduler that was restarted gives the same ones. A job is one
// span of the trace of its submitter, and the trials of the job link to it.
//
// Pure functions. Cost: a digest for each trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log_scope.h"
#include "base/status.h"

namespace kiln {

struct TraceContext {
  // 32 lower-case hex digits, not all 0.
  std::string trace_id = {};
  // 16 lower-case hex digits, not all 0.
  std::string span_id = {};
  // False: the caller keeps no spans.
  bool sampled = true;
  bool operator==(const TraceContext&) const = default;
};

// InvalidArgument: the text is no traceparent of version 00, nor of a later version with the same
// beginning.
StatusOr<TraceContext> ParseTraceparent(std::string_view text);
std::string PrintTraceparent(const TraceContext& context);

// Returns a span with random ids, in the trace of `parent` if that is a valid traceparent, and
// otherwise in a trace of its own.
TraceContext NewSpan(std::string_view parent);

// The spans of one trial: the whole trial, and the two calls in it.
enum class TrialSpan { kTrial, kBuild, kRun };
TraceContext TraceOfTrial(std::string_view job_id, uint32_t number,
                          TrialSpan span = TrialSpan::kTrial);

// Returns the job's own span. It is in the trace of `parent`, the traceparent of the submitter, if
// that is valid.
TraceContext TraceOfJob(std::string_view job_id, std::string_view parent);

// Returns the ids for the log of a call that names its trial "JOB/NUMBER" and carries the
// traceparent, or "". The views lead into the arguments.
LogIds LogIdsOf(std::string_view trial, std::string_view traceparent);

// Returns the trace id of a traceparent that a process of the farm has made; "" if it has none.
std::string_view TraceIdIn(std::string_view traceparent);

}  // namespace kiln
