#include "rpc/otlp/otlp_testing.h"

#include <fmt/format.h>
#include <google/protobuf/unknown_field_set.h>

#include <bit>
#include <cstdint>
#include <map>
#include <stdexcept>

namespace kiln {
namespace {

using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using Json = nlohmann::json;

enum class Kind { kMessage, kText, kId, kNumber, kLong, kTime, kDouble };

struct Field {
  std::string name = {};
  Kind kind = Kind::kText;
  bool repeated = false;
  // A key of Messages; of other fields "".
  std::string message = {};
};

// The fields of opentelemetry-proto that kiln sends, by message and number.
const std::map<std::string, std::map<int, Field>>& Messages() {
  static const auto* const kMessages = new std::map<std::string, std::map<int, Field>>{
      {"Request", {{1, {"resourceSpans", Kind::kMessage, true, "ResourceSpans"}}}},
      {"ResourceSpans",
       {{1, {"resource", Kind::kMessage, false, "Resource"}},
        {2, {"scopeSpans", Kind::kMessage, true, "ScopeSpans"}}}},
      {"Resource", {{1, {"attributes", Kind::kMessage, true, "KeyValue"}}}},
      {"ScopeSpans",
       {{1, {"scope", Kind::kMessage, false, "Scope"}},
        {2, {"spans", Kind::kMessage, true, "Span"}}}},
      {"Scope", {{1, {"name"}}}},
      {"Span",
       {{1, {"traceId", Kind::kId}},
        {2, {"spanId", Kind::kId}},
        {4, {"parentSpanId", Kind::kId}},
        {5, {"name"}},
        {6, {"kind", Kind::kNumber}},
        {7, {"startTimeUnixNano", Kind::kTime}},
        {8, {"endTimeUnixNano", Kind::kTime}},
        {9, {"attributes", Kind::kMessage, true, "KeyValue"}},
        {13, {"links", Kind::kMessage, true, "Link"}},
        {15, {"status", Kind::kMessage, false, "Status"}}}},
      {"Link", {{1, {"traceId", Kind::kId}}, {2, {"spanId", Kind::kId}}}},
      {"Status", {{2, {"message"}}, {3, {"code", Kind::kNumber}}}},
      {"KeyValue", {{1, {"key"}}, {2, {"value", Kind::kMessage, false, "AnyValue"}}}},
      {"AnyValue",
       {{1, {"stringValue"}}, {3, {"intValue", Kind::kLong}}, {4, {"doubleValue", Kind::kDouble}}}},
  };
  return *kMessages;
}

UnknownField::Type TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kNumber:
    case Kind::kLong:
      return UnknownField::TYPE_VARINT;
    case Kind::kTime:
    case Kind::kDouble:
      return UnknownField::TYPE_FIXED64;
    default:
      return UnknownField::TYPE_LENGTH_DELIMITED;
  }
}

std::string HexOf(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return hex;
}

Json MessageJson(const std::string& bytes, const std::string& message);

Json ValueJson(const UnknownField& field, const Field& is) {
  switch (is.kind) {
    case Kind::kMessage:
      return MessageJson(field.length_delimited(), is.message);
    case Kind::kText:
      return field.length_delimited();
    case Kind::kId:
      return HexOf(field.length_delimited());
    case Kind::kNumber:
      return field.varint();
    case Kind::kLong:
      return std::to_string(static_cast<int64_t>(field.varint()));
    case Kind::kTime:
      return std::to_string(field.fixed64());
    case Kind::kDouble:
      return std::bit_cast<double>(field.fixed64());
  }
  return nullptr;
}

Json MessageJson(const std::string& bytes, const std::string& message) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) {
    throw std::runtime_error(fmt::format("{} bytes are no {}", bytes.size(), message));
  }
  const std::map<int, Field>& known = Messages().at(message);
  Json json = Json::object();
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& field = fields.field(i);
    const auto is = known.find(field.number());
    if (is == known.end() || TypeOf(is->second.kind) != field.type()) {
      throw std::runtime_error(
          fmt::format("{} has a field {} that nobody expects", message, field.number()));
    }
    Json value = ValueJson(field, is->second);
    if (is->second.repeated) {
      json[is->second.name].push_back(std::move(value));
    } else {
      json[is->second.name] = std::move(value);
    }
  }
  return json;
}

}  // namespace

Json OtlpJson(const std::string& request) { return MessageJson(request, "Request"); }

Json OtlpSpansIn(const std::string& request) {
  const Json json = OtlpJson(request);
  if (json.at("resourceSpans").size() != 1 ||
      json["resourceSpans"][0].at("scopeSpans").size() != 1) {
    throw std::runtime_error("a request has one resource and one scope");
  }
  return json["resourceSpans"][0]["scopeSpans"][0].value("spans", Json::array());
}

}  // namespace kiln
