#include "rpc/trace_context.h"

#include <set>
#include <string>
#include <vector>

#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::HasSubstr;

constexpr char kExample[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceContextTest, ReadsWhatItPrints) {
  ASSERT_OK_AND_ASSIGN(const TraceContext context, ParseTraceparent(kExample));
  EXPECT_EQ(context.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(context.span_id, "b7ad6b7169203331");
  EXPECT_TRUE(context.sampled);
  EXPECT_EQ(PrintTraceparent(context), kExample);
}

TEST(TraceContextTest, FlagsSayWhetherTheCallerKeepsSpans) {
  std::string text = kExample;
  text.back() = '2';
  ASSERT_OK_AND_ASSIGN(const TraceContext context, ParseTraceparent(text));
  EXPECT_FALSE(context.sampled);
}

TEST(TraceContextTest, ALaterVersionMayHaveMoreBehind) {
  std::string text = kExample;
  text[1] = '1';
  EXPECT_OK(ParseTraceparent(text));
  EXPECT_OK(ParseTraceparent(text + "-more"));
  EXPECT_FALSE(ParseTraceparent(text + "more").ok());
}

TEST(TraceContextTest, OtherTextsAreRefused) {
  const std::string example = kExample;
  for (const std::string& text : std::vector<std::string>{
           "", "00", example + "-more", example.substr(0, example.size() - 1),
           "ff" + example.substr(2), "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x"}) {
    EXPECT_THAT(ParseTraceparent(text),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("is no traceparent")))
        << text;
  }
}

TEST(TraceContextTest, ANewSpanIsInTheTraceOfItsParent) {
  const TraceContext span = NewSpan(kExample);
  EXPECT_EQ(span.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_NE(span.span_id, "b7ad6b7169203331");
  EXPECT_OK(ParseTraceparent(PrintTraceparent(span)));
  const TraceContext alone = NewSpan("nonsense");
  EXPECT_NE(alone.trace_id, span.trace_id);
  EXPECT_OK(ParseTraceparent(PrintTraceparent(alone)));
}

TEST(TraceContextTest, IdsOfATrialFollowFromItsName) {
  EXPECT_EQ(TraceOfTrial("j", 3), TraceOfTrial("j", 3));
  std::set<std::string> traces, spans;
  for (uint32_t number = 0; number < 10; ++number) {
    for (const TrialSpan span : {TrialSpan::kTrial, TrialSpan::kBuild, TrialSpan::kRun}) {
      const TraceContext context = TraceOfTrial("j", number, span);
      EXPECT_OK(ParseTraceparent(PrintTraceparent(context)));
      traces.insert(context.trace_id);
      spans.insert(context.span_id);
    }
  }
  EXPECT_EQ(traces.size(), 10u);
  EXPECT_EQ(spans.size(), 30u);
  EXPECT_NE(TraceOfTrial("j", 1).trace_id, TraceOfTrial("k", 1).trace_id);
}

TEST(TraceContextTest, AJobIsASpanOfItsSubmittersTrace) {
  const TraceContext job = TraceOfJob("j", kExample);
  EXPECT_EQ(job.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_NE(job.span_id, "b7ad6b7169203331");
  const TraceContext alone = TraceOfJob("j", "");
  EXPECT_EQ(alone.span_id, job.span_id);
  EXPECT_OK(ParseTraceparent(PrintTraceparent(alone)));
}

TEST(TraceContextTest, ALogNamesJobTrialAndTrace) {
  const std::string traceparent = PrintTraceparent(TraceOfTrial("ab12", 7));
  const LogIds ids = LogIdsOf("ab12/7", traceparent);
  EXPECT_EQ(ids.job, "ab12");
  EXPECT_EQ(ids.trial, "ab12/7");
  EXPECT_EQ(ids.trace_id, TraceOfTrial("ab12", 7).trace_id);
  EXPECT_EQ(LogIdsOf("reference", "").job, "");
  EXPECT_EQ(LogIdsOf("ab12/7", "nonsense").trace_id, "");
}

}  // namespace
}  // namespace kiln
