#include "rpc/otlp/otlp_span.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

using Json = nlohmann::json;

OtlpSpan Build() {
  OtlpSpan span;
  span.context = TraceOfTrial("3f2a", 17, TrialSpan::kBuild);
  span.parent_span_id = TraceOfTrial("3f2a", 17).span_id;
  span.name = "build";
  span.is_call = true;
  span.begin_us = 1'795'972'383'123'456;
  span.end_us = span.begin_us + 1'000;
  span.error = "it did not \"compile\"";
  span.attributes = {{"kiln.trial", int64_t{17}}, {"kiln.builder", "b1"}, {"kiln.compile_s", 0.25}};
  span.links = {TraceOfJob("3f2a", "")};
  return span;
}

TEST(OtlpSpanTest, ASpanIsInTheJsonOfOtlp) {
  const OtlpSpan span = Build();
  const Json body = Json::parse(PrintOtlp("kiln scheduler", {&span, 1}));
  const Json& resource = body["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0].dump(),
            R"({"key":"service.name","value":{"stringValue":"kiln scheduler"}})");
  const Json& printed = resource["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(printed["traceId"].get<std::string>(), span.context.trace_id);
  EXPECT_EQ(printed["spanId"].get<std::string>(), span.context.span_id);
  EXPECT_EQ(printed["parentSpanId"].get<std::string>(), span.parent_span_id);
  EXPECT_EQ(printed["kind"].get<int>(), 3);
  EXPECT_EQ(printed["startTimeUnixNano"].get<std::string>(), "1795972383123456000");
  EXPECT_EQ(printed["endTimeUnixNano"].get<std::string>(), "1795972383124456000");
  EXPECT_EQ(printed["attributes"].dump(),
            R"([{"key":"kiln.trial","value":{"intValue":"17"}},)"
            R"({"key":"kiln.builder","value":{"stringValue":"b1"}},)"
            R"({"key":"kiln.compile_s","value":{"doubleValue":0.25}}])");
  EXPECT_EQ(printed["links"][0]["traceId"].get<std::string>(), TraceOfJob("3f2a", "").trace_id);
  EXPECT_EQ(printed["status"]["code"].get<int>(), 2);
  EXPECT_EQ(printed["status"]["message"].get<std::string>(), "it did not \"compile\"");
}

TEST(OtlpSpanTest, ARootHasNoParentAndASuccessNoStatus) {
  OtlpSpan span = Build();
  span.parent_span_id = span.error = "";
  span.attributes = {{"x", std::numeric_limits<double>::quiet_NaN()}};
  const OtlpSpan both[] = {span, span};
  const Json body = Json::parse(PrintOtlp("kiln", both));
  const Json& spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_FALSE(spans[0].contains("parentSpanId"));
  EXPECT_FALSE(spans[0].contains("status"));
  EXPECT_EQ(spans[0]["attributes"][0]["value"]["doubleValue"].get<std::string>(), "NaN");
}

}  // namespace
}  // namespace kiln
