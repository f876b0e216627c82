// Spans, and their form in OTLP, the protocol of OpenTelemetry: the body of a POST to /v1/traces,
// in its JSON encoding (opentelemetry-proto 1.x). Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rpc/trace_context.h"

namespace kiln {

struct OtlpSpan {
  using Value = std::variant<std::string, int64_t, double>;

  TraceContext context = {};
  // "": the span is the root of its trace.
  std::string parent_span_id = {};
  std::string name = {};
  // True: a call of another process.
  bool is_call = false;
  // Unix time.
  int64_t begin_us = 0, end_us = 0;
  // Why it failed; "": it did not.
  std::string error = {};
  std::vector<std::pair<std::string, Value>> attributes = {};
  // Spans of other traces that this one belongs to.
  std::vector<TraceContext> links = {};
};

// `service` names the process, for instance "kiln scheduler".
std::string PrintOtlp(std::string_view service, std::span<const OtlpSpan> spans);

}  // namespace kiln
