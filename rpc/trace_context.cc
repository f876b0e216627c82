#include "rpc/trace_context.h"

#include <algorithm>

#include "base/hash/unique_id.h"
#include "base/hash/xxh3.h"

namespace kiln {
namespace {

constexpr size_t kTraceDigits = 32, kSpanDigits = 16;
// "00-" TRACE "-" SPAN "-" FLAGS
constexpr size_t kTraceAt = 3, kSpanAt = kTraceAt + kTraceDigits + 1,
                 kFlagsAt = kSpanAt + kSpanDigits + 1, kTextSize = kFlagsAt + 2;

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(std::string_view text) {
  return IsHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

int ValueOf(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

bool IsTraceparent(std::string_view text) {
  if (text.size() < kTextSize) return false;
  const std::string_view version = text.substr(0, 2);
  if (!IsHex(version) || version == "ff") return false;
  // A later version may have more behind the flags.
  const bool ends = text.size() == kTextSize;
  if (!ends && (version == "00" || text[kTextSize] != '-')) return false;
  return text[2] == '-' && text[kSpanAt - 1] == '-' && text[kFlagsAt - 1] == '-' &&
         IsId(text.substr(kTraceAt, kTraceDigits)) && IsId(text.substr(kSpanAt, kSpanDigits)) &&
         IsHex(text.substr(kFlagsAt, 2));
}

void AppendHex(uint64_t number, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  char hex[16];
  for (char& digit : hex) {
    digit = kDigits[number >> 60];
    number <<= 4;
  }
  out.append(hex, sizeof(hex));
}

// Both halves of 0 would be no id. Ids need not be secret, and a farm makes thousands a second.
std::string TraceId(std::string of) {
  std::string id;
  id.reserve(kTraceDigits);
  AppendHex(std::max<uint64_t>(1, Xxh3(of)), id);
  AppendHex(Xxh3(of += ", second half"), id);
  return id;
}

// A digest of 0 is no id.
std::string SpanId(std::string_view of) {
  std::string id;
  id.reserve(kSpanDigits);
  AppendHex(std::max<uint64_t>(1, Xxh3(of)), id);
  return id;
}

}  // namespace

StatusOr<TraceContext> ParseTraceparent(std::string_view text) {
  if (!IsTraceparent(text)) {
    return InvalidArgument(
        "'{}' is no traceparent; expected 00-TRACE-SPAN-FLAGS with 32, 16 and 2 lower-case hex "
        "digits",
        text.substr(0, 2 * kTextSize));
  }
  return TraceContext{.trace_id = std::string(text.substr(kTraceAt, kTraceDigits)),
                      .span_id = std::string(text.substr(kSpanAt, kSpanDigits)),
                      .sampled = (ValueOf(text[kFlagsAt + 1]) & 1) != 0};
}

std::string PrintTraceparent(const TraceContext& context) {
  return fmt::format("00-{}-{}-{}", context.trace_id, context.span_id,
                     context.sampled ? "01" : "00");
}

TraceContext NewSpan(std::string_view parent) {
  const auto parsed = ParseTraceparent(parent);
  TraceContext span = parsed.ok() ? *parsed : TraceContext{UniqueId(kTraceDigits), {}, true};
  span.span_id = UniqueId(kSpanDigits);
  return span;
}

TraceContext TraceOfTrial(std::string_view job_id, uint32_t number, TrialSpan span) {
  TraceContext context;
  context.trace_id = TraceId(fmt::format("trial {}/{}", job_id, number));
  context.span_id = SpanId(fmt::format("{} {}", context.trace_id, static_cast<int>(span)));
  return context;
}

TraceContext TraceOfJob(std::string_view job_id, std::string_view parent) {
  const std::string job = fmt::format("job {}", job_id);
  const auto parsed = ParseTraceparent(parent);
  TraceContext context = parsed.ok() ? *parsed : TraceContext{};
  if (!parsed.ok()) context.trace_id = TraceId(job);
  context.span_id = SpanId(job);
  return context;
}

LogIds LogIdsOf(std::string_view trial, std::string_view traceparent) {
  const size_t slash = trial.find('/');
  if (slash == std::string_view::npos) return {.trace_id = TraceIdIn(traceparent)};
  return {.job = trial.substr(0, slash), .trial = trial, .trace_id = TraceIdIn(traceparent)};
}

std::string_view TraceIdIn(std::string_view traceparent) {
  return IsTraceparent(traceparent) ? traceparent.substr(kTraceAt, kTraceDigits)
                                    : std::string_view();
}

}  // namespace kiln
