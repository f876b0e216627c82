#include "scheduler/values/request_trace.h"

#include "base/hash/unique_id.h"
#include "rpc/trace_context.h"

namespace kiln::scheduler {

std::string KeptRequest(std::string_view request_id, std::string_view traceparent) {
  std::string kept(request_id);
  const auto parsed = ParseTraceparent(traceparent);
  if (!parsed.ok()) return kept;
  if (kept.empty()) kept = UniqueId();
  return kept + " " + PrintTraceparent(*parsed);
}

std::string_view RequestIdIn(std::string_view kept) {
  const std::string_view traceparent = TraceparentIn(kept);
  return traceparent.empty() ? kept : kept.substr(0, kept.size() - traceparent.size() - 1);
}

std::string_view TraceparentIn(std::string_view kept) {
  const size_t blank = kept.rfind(' ');
  if (blank == std::string_view::npos) return {};
  const std::string_view text = kept.substr(blank + 1);
  return ParseTraceparent(text).ok() ? text : std::string_view();
}

}  // namespace kiln::scheduler
