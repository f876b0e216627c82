// Spans, and their form in OTLP, the protocol of OpenTelemetry: the body of a POST to /v1/traces,
// in its binary encoding (opentelemetry-proto 1.x). Pure functions.
//
// A span is encoded once, as soon as it is known: some hundred bytes that are copied into the
// request. Cost: half a microsecond for a span of ten attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "rpc/trace_context.h"

namespace kiln {

// A value without texts of its own: views and spans lead into what its maker keeps.
struct OtlpSpan {
  using Value = std::variant<std::string_view, int64_t, double>;
  using Attribute = std::pair<std::string_view, Value>;

  // Hex digits, as in TraceContext.
  std::string_view trace_id = {}, span_id = {};
  // "": the span is the root of its trace.
  std::string_view parent_span_id = {};
  std::string_view name = {};
  // True: a call of another process.
  bool is_call = false;
  // Unix time.
  int64_t begin_us = 0, end_us = 0;
  // Why it failed; "": it did not.
  std::string_view error = {};
  absl::InlinedVector<Attribute, 12> attributes = {};
  // Spans of other traces that this one belongs to.
  std::span<const TraceContext> links = {};
};

// Appends the encoded span. Bytes of a text that are no UTF-8 become '?'.
void AppendOtlp(const OtlpSpan& span, std::string& out);

// Returns the request with spans that AppendOtlp has encoded, one behind the other. `service` names
// the process, for instance "kiln scheduler".
std::string OtlpRequest(std::string_view service, std::string_view encoded);

}  // namespace kiln
