#include "rpc/otlp/otlp_span.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/text/utf8.h"
#include "base/version.h"

namespace kiln {
namespace {

using google::protobuf::io::CodedOutputStream;

// Numbers of opentelemetry-proto: the fields of its messages, and the values of its enums.
// ExportTraceServiceRequest and ResourceSpans.
constexpr uint32_t kResourceSpans = 1;
constexpr uint32_t kResource = 1, kScopeSpans = 2;
// Resource.
constexpr uint32_t kResourceAttributes = 1;
// ScopeSpans and InstrumentationScope.
constexpr uint32_t kScope = 1, kSpans = 2;
constexpr uint32_t kScopeName = 1;
// Span.
constexpr uint32_t kTraceId = 1, kSpanId = 2, kParentSpanId = 4, kName = 5, kKind = 6, kBegin = 7,
                   kEnd = 8, kAttributes = 9, kLinks = 13, kStatus = 15;
// Span.Link.
constexpr uint32_t kLinkTraceId = 1, kLinkSpanId = 2;
// Status.
constexpr uint32_t kStatusMessage = 2, kStatusCode = 3;
// KeyValue and AnyValue.
constexpr uint32_t kKey = 1, kValue = 2;
constexpr uint32_t kText = 1, kInt = 3, kDouble = 4;

constexpr uint32_t kInternalSpan = 1, kClientSpan = 3;
constexpr uint32_t kStatusError = 2;

// The wire types of Protocol Buffers.
constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2;
constexpr size_t kMostVarintBytes = 10;

void AppendVarint(uint64_t value, std::string& out) {
  uint8_t bytes[kMostVarintBytes];
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

// All fields are below 16, so that a tag is one byte.
void AppendTag(uint32_t field, uint32_t type, std::string& out) {
  out.push_back(static_cast<char>(field << 3 | type));
}

void AppendNumber(uint32_t field, uint64_t value, std::string& out) {
  AppendTag(field, kVarint, out);
  AppendVarint(value, out);
}

void AppendFixed(uint32_t field, uint64_t value, std::string& out) {
  AppendTag(field, kFixed64, out);
  uint8_t bytes[sizeof(value)];
  const uint8_t* end = CodedOutputStream::WriteLittleEndian64ToArray(value, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

void AppendBytes(uint32_t field, std::string_view bytes, std::string& out) {
  AppendTag(field, kBytes, out);
  AppendVarint(bytes.size(), out);
  out += bytes;
}

void AppendText(uint32_t field, std::string_view text, std::string& out) {
  if (IsUtf8(text)) return AppendBytes(field, text, out);
  AppendBytes(field, ValidUtf8(text), out);
}

// Appends what `append` appends as a message. Its size stands before it, in one byte of most
// messages; the bytes of a longer one move.
template <typename Append>
void AppendMessage(uint32_t field, std::string& out, const Append& append) {
  AppendTag(field, kBytes, out);
  const size_t at = out.size();
  out.push_back('\0');
  append();
  const size_t size = out.size() - at - 1;
  if (size < 0x80) {
    out[at] = static_cast<char>(size);
    return;
  }
  std::string varint;
  AppendVarint(size, varint);
  out.replace(at, 1, varint);
}

int ValueOf(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

// Appends an id, of which there are the hex digits, at most 32.
void AppendId(uint32_t field, std::string_view digits, std::string& out) {
  char bytes[16];
  const size_t size = std::min(digits.size() / 2, sizeof(bytes));
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(ValueOf(digits[2 * i]) << 4 | ValueOf(digits[2 * i + 1]));
  }
  AppendBytes(field, {bytes, size}, out);
}

struct AppendValue {
  std::string& out;

  void operator()(std::string_view text) const { AppendText(kText, text, out); }
  void operator()(int64_t number) const { AppendNumber(kInt, static_cast<uint64_t>(number), out); }
  void operator()(double number) const {
    AppendFixed(kDouble, std::bit_cast<uint64_t>(number), out);
  }
};

void AppendAttribute(uint32_t field, const OtlpSpan::Attribute& attribute, std::string& out) {
  AppendMessage(field, out, [&] {
    AppendBytes(kKey, attribute.first, out);
    AppendMessage(kValue, out, [&] { std::visit(AppendValue{out}, attribute.second); });
  });
}

void AppendFields(const OtlpSpan& span, std::string& out) {
  AppendId(kTraceId, span.trace_id, out);
  AppendId(kSpanId, span.span_id, out);
  if (!span.parent_span_id.empty()) {
    AppendId(kParentSpanId, span.parent_span_id, out);
  }
  AppendText(kName, span.name, out);
  AppendNumber(kKind, span.is_call ? kClientSpan : kInternalSpan, out);
  // Nanoseconds.
  AppendFixed(kBegin, static_cast<uint64_t>(span.begin_us) * 1000, out);
  AppendFixed(kEnd, static_cast<uint64_t>(span.end_us) * 1000, out);
  for (const OtlpSpan::Attribute& attribute : span.attributes) {
    AppendAttribute(kAttributes, attribute, out);
  }
  for (const TraceContext& to : span.links) {
    AppendMessage(kLinks, out, [&] {
      AppendId(kLinkTraceId, to.trace_id, out);
      AppendId(kLinkSpanId, to.span_id, out);
    });
  }
  if (span.error.empty()) return;
  AppendMessage(kStatus, out, [&] {
    AppendText(kStatusMessage, span.error, out);
    AppendNumber(kStatusCode, kStatusError, out);
  });
}

}  // namespace

void AppendOtlp(const OtlpSpan& span, std::string& out) {
  AppendMessage(kSpans, out, [&] { AppendFields(span, out); });
}

std::string OtlpRequest(std::string_view service, std::string_view encoded) {
  std::string scope;
  AppendMessage(kScope, scope, [&] { AppendText(kScopeName, "kiln", scope); });
  std::string head;
  AppendMessage(kResource, head, [&] {
    AppendAttribute(kResourceAttributes, {"service.name", service}, head);
    AppendAttribute(kResourceAttributes, {"service.version", std::string_view(kVersion)}, head);
  });
  AppendTag(kScopeSpans, kBytes, head);
  AppendVarint(scope.size() + encoded.size(), head);
  head += scope;
  std::string out;
  out.reserve(head.size() + encoded.size() + 16);
  AppendTag(kResourceSpans, kBytes, out);
  AppendVarint(head.size() + encoded.size(), out);
  out += head;
  return out += encoded;
}

}  // namespace kiln
