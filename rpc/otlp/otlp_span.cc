#include "rpc/otlp/otlp_span.h"

#include <cmath>
#include <iterator>

#include "base/text/json_string.h"
#include "base/version.h"

namespace kiln {
namespace {

// Numbers of opentelemetry-proto.
constexpr int kInternalSpan = 1, kClientSpan = 3;
constexpr int kStatusError = 2;

void AppendText(std::string_view name, std::string_view text, std::string& out) {
  fmt::format_to(std::back_inserter(out), "\"{}\":", name);
  AppendJsonString(text, out);
}

struct AppendValue {
  std::string& out;

  void operator()(const std::string& text) const { AppendText("stringValue", text, out); }
  // 64-bit numbers are strings in the JSON of Protocol Buffers.
  void operator()(int64_t number) const {
    fmt::format_to(std::back_inserter(out), "\"intValue\":\"{}\"", number);
  }
  void operator()(double number) const {
    if (std::isfinite(number)) {
      fmt::format_to(std::back_inserter(out), "\"doubleValue\":{}", number);
    } else {
      fmt::format_to(std::back_inserter(out), "\"doubleValue\":\"{}\"",
                     std::isnan(number) ? "NaN"
                     : number > 0       ? "Infinity"
                                        : "-Infinity");
    }
  }
};

void AppendAttribute(std::string_view name, const OtlpSpan::Value& value, std::string& out) {
  out += '{';
  AppendText("key", name, out);
  out += ",\"value\":{";
  std::visit(AppendValue{out}, value);
  out += "}}";
}

void AppendTime(std::string_view name, int64_t us, std::string& out) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":\"{}000\"", name, us);
}

void AppendSpan(const OtlpSpan& span, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{{\"traceId\":\"{}\",\"spanId\":\"{}\"",
                 span.context.trace_id, span.context.span_id);
  if (!span.parent_span_id.empty()) {
    fmt::format_to(std::back_inserter(out), ",\"parentSpanId\":\"{}\"", span.parent_span_id);
  }
  out += ',';
  AppendText("name", span.name, out);
  fmt::format_to(std::back_inserter(out), ",\"kind\":{}",
                 span.is_call ? kClientSpan : kInternalSpan);
  AppendTime("startTimeUnixNano", span.begin_us, out);
  AppendTime("endTimeUnixNano", span.end_us, out);
  out += ",\"attributes\":[";
  for (size_t i = 0; i < span.attributes.size(); ++i) {
    if (i > 0) out += ',';
    AppendAttribute(span.attributes[i].first, span.attributes[i].second, out);
  }
  out += "],\"links\":[";
  for (size_t i = 0; i < span.links.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{}{{\"traceId\":\"{}\",\"spanId\":\"{}\"}}",
                   i > 0 ? "," : "", span.links[i].trace_id, span.links[i].span_id);
  }
  out += ']';
  if (!span.error.empty()) {
    fmt::format_to(std::back_inserter(out), ",\"status\":{{\"code\":{},", kStatusError);
    AppendText("message", span.error, out);
    out += '}';
  }
  out += '}';
}

}  // namespace

std::string PrintOtlp(std::string_view service, std::span<const OtlpSpan> spans) {
  std::string out = "{\"resourceSpans\":[{\"resource\":{\"attributes\":[";
  AppendAttribute("service.name", std::string(service), out);
  out += ',';
  AppendAttribute("service.version", std::string(kVersion), out);
  out += "]},\"scopeSpans\":[{\"scope\":{\"name\":\"kiln\"},\"spans\":[";
  for (size_t i = 0; i < spans.size(); ++i) {
    if (i > 0) out += ',';
    AppendSpan(spans[i], out);
  }
  return out + "]}]}]}";
}

}  // namespace kiln
