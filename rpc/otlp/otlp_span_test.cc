#include "rpc/otlp/otlp_span.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "rpc/otlp/otlp_testing.h"

namespace kiln {
namespace {

using Json = nlohmann::json;

// Ids and texts outlive the spans that lead to them.
const TraceContext kTrial = TraceOfTrial("3f2a", 17);
const TraceContext kBuild = TraceOfTrial("3f2a", 17, TrialSpan::kBuild);
const TraceContext kJob[] = {TraceOfJob("3f2a", "")};

OtlpSpan Build() {
  OtlpSpan span;
  span.trace_id = kBuild.trace_id;
  span.span_id = kBuild.span_id;
  span.parent_span_id = kTrial.span_id;
  span.name = "build";
  span.is_call = true;
  span.begin_us = 1'795'972'383'123'456;
  span.end_us = span.begin_us + 1'000;
  span.error = "it did not \"compile\"";
  span.attributes = {{"kiln.trial", int64_t{17}},
                     {"kiln.change", int64_t{-1}},
                     {"kiln.builder", std::string_view("b1")},
                     {"kiln.compile_s", 0.25}};
  span.links = kJob;
  return span;
}

Json Spans(std::initializer_list<OtlpSpan> spans) {
  std::string encoded;
  for (const OtlpSpan& span : spans) AppendOtlp(span, encoded);
  return OtlpSpansIn(OtlpRequest("kiln scheduler", encoded));
}

TEST(OtlpSpanTest, ASpanIsInTheEncodingOfOtlp) {
  std::string encoded;
  AppendOtlp(Build(), encoded);
  const Json body = OtlpJson(OtlpRequest("kiln scheduler", encoded));
  const Json& resource = body["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0].dump(),
            R"({"key":"service.name","value":{"stringValue":"kiln scheduler"}})");
  EXPECT_EQ(resource["scopeSpans"][0]["scope"]["name"].get<std::string>(), "kiln");
  const Json& printed = resource["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(printed["traceId"].get<std::string>(), kBuild.trace_id);
  EXPECT_EQ(printed["spanId"].get<std::string>(), kBuild.span_id);
  EXPECT_EQ(printed["parentSpanId"].get<std::string>(), kTrial.span_id);
  EXPECT_EQ(printed["name"].get<std::string>(), "build");
  EXPECT_EQ(printed["kind"].get<int>(), 3);
  EXPECT_EQ(printed["startTimeUnixNano"].get<std::string>(), "1795972383123456000");
  EXPECT_EQ(printed["endTimeUnixNano"].get<std::string>(), "1795972383124456000");
  EXPECT_EQ(printed["attributes"].dump(),
            R"([{"key":"kiln.trial","value":{"intValue":"17"}},)"
            R"({"key":"kiln.change","value":{"intValue":"-1"}},)"
            R"({"key":"kiln.builder","value":{"stringValue":"b1"}},)"
            R"({"key":"kiln.compile_s","value":{"doubleValue":0.25}}])");
  EXPECT_EQ(printed["links"][0]["traceId"].get<std::string>(), kJob[0].trace_id);
  EXPECT_EQ(printed["links"][0]["spanId"].get<std::string>(), kJob[0].span_id);
  EXPECT_EQ(printed["status"]["code"].get<int>(), 2);
  EXPECT_EQ(printed["status"]["message"].get<std::string>(), "it did not \"compile\"");
}

TEST(OtlpSpanTest, ARootHasNoParentAndASuccessNoStatus) {
  OtlpSpan span = Build();
  span.parent_span_id = span.error = "";
  span.attributes = {{"x", std::numeric_limits<double>::infinity()}};
  const Json spans = Spans({span, span});
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_FALSE(spans[0].contains("parentSpanId"));
  EXPECT_FALSE(spans[0].contains("status"));
  EXPECT_EQ(spans[0]["attributes"][0]["value"]["doubleValue"].get<double>(),
            std::numeric_limits<double>::infinity());
}

// The size before a message takes one byte up to 127, two up to 16,383, and so on.
TEST(OtlpSpanTest, TextsOfAllLengthsArrive) {
  for (const size_t size : {0u, 1u, 100u, 126u, 127u, 128u, 16'382u, 16'384u, 3'000'000u}) {
    const std::string text(size, 'x');
    OtlpSpan span = Build();
    span.error = text;
    span.attributes = {{"text", std::string_view(text)}};
    const Json spans = Spans({span, Build()});
    ASSERT_EQ(spans.size(), 2u) << size;
    EXPECT_EQ(spans[0]["attributes"][0]["value"]["stringValue"].get<std::string>(), text);
    EXPECT_EQ(spans[1]["name"].get<std::string>(), "build");
  }
}

// Receivers refuse a whole request for one bad byte.
TEST(OtlpSpanTest, BytesThatAreNoUtf8AreReplaced) {
  OtlpSpan span = Build();
  span.error = "bad \xff, good \xc3\xa4";
  span.attributes = {{"text", std::string_view("\xc3(")}};
  const Json spans = Spans({span});
  EXPECT_EQ(spans[0]["status"]["message"].get<std::string>(), "bad ?, good \xc3\xa4");
  EXPECT_EQ(spans[0]["attributes"][0]["value"]["stringValue"].get<std::string>(), "?(");
}

}  // namespace
}  // namespace kiln
