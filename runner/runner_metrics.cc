#include "runner/runner_metrics.h"

#include "rpc/worker_modes.h"

namespace kiln::runner {
namespace {

void CollectMode(const MetricLabels& device, v1::WorkerMode mode, MetricSheet& sheet) {
  for (int other = v1::WorkerMode_MIN; other <= v1::WorkerMode_MAX; ++other) {
    MetricLabels labels = device;
    labels["mode"] = ModeName(static_cast<v1::WorkerMode>(other));
    sheet.Gauge("kiln_runner_mode", "1 for the mode that the device is in.", other == mode ? 1 : 0,
                labels);
  }
}

void CollectCanary(const MetricLabels& device, const v1::WorkerState& state, MetricSheet& sheet) {
  if (state.canary_s() > 0) {
    sheet.Gauge("kiln_runner_canary_seconds", "The newest time of the canary program.",
                state.canary_s(), device);
  }
  bool drifts = false;
  for (const v1::DriftSpan& span : state.drifts()) drifts |= span.to_s() == 0;
  sheet.Gauge("kiln_runner_drifts", "1 while the canary is slower than usual.", drifts ? 1 : 0,
              device);
}

void CollectState(const MetricLabels& device, const v1::DeviceState& state, MetricSheet& sheet) {
  if (state.has_temperature_c()) {
    sheet.Gauge("kiln_runner_temperature_celsius", "Temperature of the device.",
                state.temperature_c(), device);
  }
  if (state.has_power_w()) {
    sheet.Gauge("kiln_runner_power_watts", "Power that the device takes.", state.power_w(), device);
  }
  if (state.has_sm_clock_mhz()) {
    sheet.Gauge("kiln_runner_sm_clock_hertz", "Clock of the multiprocessors.",
                1e6 * state.sm_clock_mhz(), device);
  }
}

}  // namespace

RunnerMetrics::RunnerMetrics(const std::string& device, Metrics& metrics)
    : busy_s_(metrics.AddCounter("kiln_runner_busy_seconds_total",
                                 "Time that the device spent on trials. Its rate is the share of "
                                 "time in which the device is busy.",
                                 {{"device", device}})),
      run_s_(metrics.AddHistogram("kiln_runner_run_seconds", "Time of a trial on the device.",
                                  SecondsBounds(), {{"device", device}})),
      wait_s_(metrics.AddHistogram("kiln_runner_wait_seconds",
                                   "Time that a trial waited for the device.", SecondsBounds(),
                                   {{"device", device}})) {
  for (int error = 0; error < v1::ErrorKind_ARRAYSIZE; ++error) {
    trials_[static_cast<size_t>(error)] = metrics.AddCounter(
        "kiln_runner_trials_total", "Trials that were answered, by result.",
        {{"device", device}, {"error", v1::ErrorKind_Name(static_cast<v1::ErrorKind>(error))}});
  }
}

void RunnerMetrics::Note(const v1::MeasureReply& reply) const {
  const auto error = static_cast<size_t>(reply.result().error());
  if (error < trials_.size()) trials_[error].Add();
  busy_s_.Add(reply.result().run_s());
  run_s_.Add(reply.result().run_s());
  wait_s_.Add(reply.result().times().run_wait_s());
}

void CollectDevice(const std::string& device, const v1::WorkerState& state,
                   const DeviceSlot::Stats& stats, MetricSheet& sheet) {
  const MetricLabels labels = {{"device", device}};
  sheet.Gauge("kiln_runner_device_info", "1 for each device, with its own name.", 1,
              {{"device", device}, {"name", state.device()}});
  CollectMode(labels, state.mode(), sheet);
  CollectCanary(labels, state, sheet);
  CollectState(labels, state.device_state(), sheet);
  sheet.Counter("kiln_runner_children_started_total", "Child processes that were started.",
                static_cast<double>(stats.children_started), labels);
  sheet.Counter("kiln_runner_children_lost_total", "Child processes that died by themselves.",
                static_cast<double>(stats.children_lost), labels);
  sheet.Counter("kiln_runner_references_total", "References that were run.",
                static_cast<double>(stats.references_run), labels);
}

}  // namespace kiln::runner
