#include "client/view/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kiln::client {
namespace {

using Json = nlohmann::json;

v1::JobEvent Event() {
  v1::JobEvent event;
  event.mutable_status()->set_id("4f3a");
  event.mutable_status()->set_trials_done(4);
  event.mutable_status()->set_state(v1::SUCCEEDED);
  v1::TaskStatus& task = *event.mutable_status()->add_tasks();
  task.set_best_cost_s(1e-3);
  task.set_flop_count(2e9);
  task.set_reference_cost_s(4e-3);
  v1::Record& record = *event.mutable_record();
  record.set_id(9);
  record.set_trial(3);
  record.set_flop_count(2e9);
  record.mutable_result()->add_costs_s(2e-3);
  record.mutable_result()->set_max_error(1e-6);
  return event;
}

TEST(JsonTest, ATrialIsOneLineOfJson) {
  const std::string text = TrialEvent(Event());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const Json json = Json::parse(text);
  EXPECT_EQ(json["event"], "trial");
  EXPECT_EQ(json["job"], "4f3a");
  EXPECT_EQ(json["trial"], 3);
  EXPECT_EQ(json["record"], 9);
  EXPECT_DOUBLE_EQ(json["cost_s"], 2e-3);
  EXPECT_DOUBLE_EQ(json["gflops"], 1000);
  EXPECT_DOUBLE_EQ(json["best_cost_s"], 1e-3);
  EXPECT_EQ(json["error"], "NO_ERROR");
}

TEST(JsonTest, AFailedTrialHasNoCostAndAnyBytesInItsMessage) {
  v1::JobEvent event = Event();
  event.mutable_record()->mutable_result()->set_error(v1::RUNTIME_DEVICE_ERROR);
  event.mutable_record()->mutable_result()->set_message("\xff\"quoted\"\nline");
  event.mutable_record()->set_task_index(77);
  const Json json = Json::parse(TrialEvent(event));
  EXPECT_TRUE(json["cost_s"].is_null());
  EXPECT_TRUE(json["gflops"].is_null());
  EXPECT_EQ(json["error"], "RUNTIME_DEVICE_ERROR");
}

TEST(JsonTest, TheEndHasTheBestOfEachTask) {
  const v1::JobEvent event = Event();
  v1::JobStatus job = event.status();
  (*job.mutable_error_counts())[v1::WRONG_ANSWER_ERROR] = 2;
  // A task without a result.
  job.add_tasks();
  job.mutable_tasks(0)->set_known_states(3);
  job.mutable_tasks(0)->set_tuned_by_job("aaaa");
  job.mutable_tasks(0)->set_known_record_id(4);
  job.mutable_tasks(0)->set_known_cost_s(5e-3);
  const Json json = Json::parse(EndEvent(job, {event.record()}));
  EXPECT_EQ(json["state"], "SUCCEEDED");
  EXPECT_EQ(json["errors"]["WRONG_ANSWER_ERROR"], 2);
  ASSERT_EQ(json["tasks"].size(), 2u);
  EXPECT_DOUBLE_EQ(json["tasks"][0]["speed_up"], 4);
  EXPECT_EQ(json["tasks"][0]["record"], 9);
  EXPECT_TRUE(json["tasks"][1]["best_cost_s"].is_null());
  EXPECT_FALSE(json["tasks"][1].contains("record"));
  EXPECT_EQ(json["tasks"][0]["known"], Json({{"states", 3}, {"cost_s", 5e-3}, {"record", 4}}));
  EXPECT_FALSE(json["tasks"][1].contains("known"));
  EXPECT_EQ(json["tasks"][0]["tuned_by_job"], Json("aaaa"));
  EXPECT_FALSE(json["tasks"][1].contains("tuned_by_job"));
}

TEST(JsonTest, VariantsOfOneGroup) {
  v1::JobStatus job = Event().status();
  v1::TaskSpec& spec = *job.add_tasks()->mutable_spec();
  spec.set_alternative_of(0);
  spec.set_variant("winograd F(4,3)");
  spec.set_preparation("p1 = x");
  job.mutable_tasks(1)->set_best_cost_s(0.5e-3);
  job.mutable_tasks(0)->mutable_spec()->set_weight(2);
  const Json json = Json::parse(EndEvent(job, {}));
  EXPECT_EQ(json["tasks"][0]["fastest"], false);
  EXPECT_EQ(json["tasks"][1]["fastest"], true);
  EXPECT_EQ(json["tasks"][1]["alternative_of"], 0);
  EXPECT_EQ(json["tasks"][1]["variant"], "winograd F(4,3)");
  EXPECT_EQ(json["tasks"][1]["preparation"], "p1 = x");
  // Twice the latency of the faster variant.
  EXPECT_DOUBLE_EQ(json["objective_s"], 1e-3);
}

TEST(JsonTest, MessagesKeepTheirFieldNamesAndZeros) {
  v1::KeyState key;
  key.set_key("a \"b\"");
  const Json json = Json::parse(JsonOf(key));
  EXPECT_EQ(json["key"], "a \"b\"");
  EXPECT_EQ(json["pending"], 0);
  EXPECT_EQ(Json::parse(JsonOfAll(std::vector<v1::KeyState>{key, key})).size(), 2u);
  EXPECT_EQ(JsonOfAll(std::vector<v1::KeyState>{}), "[]");
}

TEST(JsonTest, StringsAreQuoted) { EXPECT_EQ(JsonString("a\"b\n"), R"("a\"b\n")"); }

}  // namespace
}  // namespace kiln::client
