#include "runner/runner_metrics.h"

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunnerMetricsTest, CountsTrialsAndTheTimeOfTheDevice) {
  Metrics metrics;
  const RunnerMetrics runner("cuda:0", metrics);
  v1::MeasureReply reply;
  reply.mutable_result()->set_run_s(0.25);
  reply.mutable_result()->mutable_times()->set_run_wait_s(2);
  runner.Note(reply);
  reply.mutable_result()->set_error(v1::WRONG_ANSWER_ERROR);
  runner.Note(reply);
  const std::string text = metrics.Text();
  for (const char* line :
       {"kiln_runner_trials_total{device=\"cuda:0\",error=\"NO_ERROR\"} 1\n",
        "kiln_runner_trials_total{device=\"cuda:0\",error=\"WRONG_ANSWER_ERROR\"} 1\n",
        "kiln_runner_busy_seconds_total{device=\"cuda:0\"} 0.5\n",
        "kiln_runner_run_seconds_bucket{device=\"cuda:0\",le=\"0.25\"} 2\n",
        "kiln_runner_wait_seconds_bucket{device=\"cuda:0\",le=\"1\"} 0\n",
        "kiln_runner_wait_seconds_sum{device=\"cuda:0\"} 4\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(RunnerMetricsTest, TheDefaultCountsNothing) { RunnerMetrics().Note({}); }

std::string TextOf(const v1::WorkerState& state) {
  Metrics metrics;
  const auto collector = metrics.AddCollector([&](MetricSheet& sheet) {
    CollectDevice("cuda:1", state, {.children_started = 3, .children_lost = 1}, sheet);
  });
  return metrics.Text();
}

TEST(RunnerMetricsTest, ShowsTheDevice) {
  v1::WorkerState state;
  state.set_device("NVIDIA H200");
  state.set_mode(v1::WORKER_QUARANTINED);
  state.set_canary_s(0.001);
  state.add_drifts()->set_to_s(7);
  state.mutable_device_state()->set_temperature_c(60);
  state.mutable_device_state()->set_sm_clock_mhz(1980);
  std::string text = TextOf(state);
  for (const char* line : {"kiln_runner_device_info{device=\"cuda:1\",name=\"NVIDIA H200\"} 1\n",
                           "kiln_runner_mode{device=\"cuda:1\",mode=\"quarantined\"} 1\n",
                           "kiln_runner_mode{device=\"cuda:1\",mode=\"serves\"} 0\n",
                           "kiln_runner_canary_seconds{device=\"cuda:1\"} 0.001\n",
                           "kiln_runner_drifts{device=\"cuda:1\"} 0\n",
                           "kiln_runner_temperature_celsius{device=\"cuda:1\"} 60\n",
                           "kiln_runner_sm_clock_hertz{device=\"cuda:1\"} 1980000000\n",
                           "kiln_runner_children_started_total{device=\"cuda:1\"} 3\n",
                           "kiln_runner_children_lost_total{device=\"cuda:1\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("kiln_runner_power_watts")));
  state.add_drifts()->set_from_s(8);
  text = TextOf(state);
  EXPECT_THAT(text, HasSubstr("kiln_runner_drifts{device=\"cuda:1\"} 1\n"));
}

}  // namespace
}  // namespace kiln::runner
