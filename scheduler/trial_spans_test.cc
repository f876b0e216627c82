#include "scheduler/trial_spans.h"

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "base/metrics/metrics.h"
#include "base/status_testing.h"
#include "proto/scheduler.pb.h"
#include "rpc/otlp/otlp_testing.h"
#include "scheduler/values/request_trace.h"
#include "store/memory_store.h"
#include "store/wire/kept_times.h"

namespace kiln::scheduler {
namespace {

using Json = nlohmann::json;

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr int64_t kBegin_us = 1'795'972'383'000'000;

class TrialSpansTest : public testing::Test {
 protected:
  TrialSpansTest() : store_(store::NewMemoryStore()) {
    v1::JobSpec spec;
    spec.set_request_id(KeptRequest("r", kParent));
    store::JobRow job;
    job.id = "3f2a";
    job.name = "matmul";
    job.user = "ada";
    job.spec = spec.SerializeAsString();
    job.created_ms = kBegin_us / 1000;
    KILN_CHECK(store_->AddJob(job, {}).ok());
  }

  // Returns the spans that the collector got, by name.
  std::map<std::string, Json> Spans(const std::function<void(TrialSpans&)>& work) {
    std::mutex mutex;
    std::map<std::string, Json> spans;
    OtlpExporter::Options options;
    options.gather = absl::Milliseconds(1);
    {
      TrialSpans trials(*store_, options, [&](const std::string& body) -> StatusOr<int> {
        const Json sent = OtlpSpansIn(body);
        std::lock_guard lock(mutex);
        for (const Json& span : sent) spans[span["name"].get<std::string>()] = span;
        return 200;
      });
      work(trials);
    }
    return spans;
  }

  static std::string Attribute(const Json& span, const std::string& name) {
    for (const Json& attribute : span["attributes"]) {
      if (attribute["key"] == name) return attribute["value"].begin()->dump();
    }
    return "none";
  }

  static store::Record Measured() {
    store::Record record;
    record.job_id = "3f2a";
    record.trial = 17;
    record.task_index = 2;
    record.builder = "b1";
    record.runner = "r1";
    record.costs_s = {0.5};
    v1::TrialTimes times;
    times.set_compile_s(0.25);
    times.set_timing_s(0.125);
    v1::TrialInstants at;
    at.set_chosen_us(kBegin_us);
    at.set_build_sent_us(kBegin_us + 1);
    at.set_build_received_us(kBegin_us + 2);
    at.set_run_sent_us(kBegin_us + 3);
    at.set_run_received_us(kBegin_us + 4);
    at.set_committed_us(kBegin_us + 5);
    record.times = store::PrintTimes(times, at);
    return record;
  }

  std::unique_ptr<store::Store> store_;
};

TEST_F(TrialSpansTest, ATrialIsATraceThatLinksToItsJob) {
  auto spans = Spans([](TrialSpans& trials) { trials.Committed(Measured()); });
  ASSERT_EQ(spans.size(), 3u);
  const Json& trial = spans["trial"];
  EXPECT_EQ(trial["traceId"].get<std::string>(), TraceOfTrial("3f2a", 17).trace_id);
  EXPECT_FALSE(trial.contains("parentSpanId"));
  EXPECT_EQ(trial["startTimeUnixNano"].get<std::string>(), "1795972383000000000");
  EXPECT_EQ(trial["endTimeUnixNano"].get<std::string>(), "1795972383000005000");
  EXPECT_EQ(Attribute(trial, "kiln.task"), "\"2\"");
  EXPECT_EQ(Attribute(trial, "kiln.cost_s"), "0.5");
  EXPECT_EQ(trial["links"][0]["traceId"].get<std::string>(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trial["links"][0]["spanId"].get<std::string>(), TraceOfJob("3f2a", kParent).span_id);
  for (const auto& [name, which] :
       {std::pair{"build", TrialSpan::kBuild}, std::pair{"run", TrialSpan::kRun}}) {
    const Json& call = spans[name];
    EXPECT_EQ(call["parentSpanId"], trial["spanId"]);
    EXPECT_EQ(call["spanId"].get<std::string>(), TraceOfTrial("3f2a", 17, which).span_id);
  }
  EXPECT_EQ(Attribute(spans["build"], "kiln.compile_s"), "0.25");
  EXPECT_EQ(Attribute(spans["build"], "kiln.builder"), "\"b1\"");
  EXPECT_EQ(Attribute(spans["run"], "kiln.timing_s"), "0.125");
  EXPECT_EQ(Attribute(spans["run"], "kiln.compile_s"), "none");
}

// A new phase needs an attribute.
TEST_F(TrialSpansTest, EachPhaseIsAnAttribute) {
  v1::TrialTimes times;
  const google::protobuf::Descriptor& fields = *v1::TrialTimes::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    times.GetReflection()->SetDouble(&times, fields.field(i), i + 1);
  }
  store::Record record = Measured();
  v1::TrialResult result;
  store::ReadTimes(record.times, result);
  record.times = store::PrintTimes(times, result.instants());
  auto spans = Spans([&](TrialSpans& trials) { trials.Committed(record); });
  for (int i = 0; i < fields.field_count(); ++i) {
    const std::string name = "kiln." + fields.field(i)->name();
    const std::string in_build = Attribute(spans["build"], name);
    EXPECT_EQ(in_build == "none" ? Attribute(spans["run"], name) : in_build,
              fmt::format("{}.0", i + 1))
        << name;
  }
}

TEST_F(TrialSpansTest, ATrialThatFailedSaysWhy) {
  store::Record record = Measured();
  record.error = v1::WRONG_ANSWER_ERROR;
  record.message = "outputs differ";
  record.costs_s = {};
  auto spans = Spans([&](TrialSpans& trials) { trials.Committed(record); });
  EXPECT_EQ(spans["trial"]["status"]["message"].get<std::string>(),
            "WRONG_ANSWER_ERROR: outputs differ");
  EXPECT_EQ(Attribute(spans["trial"], "kiln.cost_s"), "none");
}

TEST_F(TrialSpansTest, AJobIsASpanOfItsSubmittersTrace) {
  auto spans = Spans([](TrialSpans& trials) {
    trials.JobEnded("3f2a");
    trials.JobEnded("unknown");
  });
  ASSERT_EQ(spans.size(), 1u);
  const Json& job = spans["job"];
  EXPECT_EQ(job["traceId"].get<std::string>(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(job["parentSpanId"].get<std::string>(), "b7ad6b7169203331");
  EXPECT_EQ(Attribute(job, "kiln.user"), "\"ada\"");
}

TEST_F(TrialSpansTest, WhatIsSentAndDroppedIsCounted) {
  Metrics metrics;
  OtlpExporter::Options options;
  options.most_waiting = 1;
  options.gather = absl::Milliseconds(1);
  std::promise<void> first_sent, may_answer;
  TrialSpans trials(*store_, options, [&, posts = 0](const std::string&) mutable -> StatusOr<int> {
    if (++posts == 1) {
      first_sent.set_value();
      may_answer.get_future().wait();
    }
    return 200;
  });
  const auto shown = metrics.AddCollector([&](MetricSheet& sheet) { trials.Collect(sheet); });
  trials.Committed(Measured());
  first_sent.get_future().wait();
  for (int i = 0; i < 3; ++i) trials.Committed(Measured());
  may_answer.set_value();
  for (int i = 0; i < 2'000; ++i) {
    if (metrics.Text().find("kiln_traces_total{fate=\"sent\"} 2") != std::string::npos) break;
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_THAT(metrics.Text(), testing::HasSubstr("kiln_traces_total{fate=\"sent\"} 2\n"));
  EXPECT_THAT(metrics.Text(), testing::HasSubstr("kiln_traces_total{fate=\"dropped\"} 2\n"));
}

}  // namespace
}  // namespace kiln::scheduler
