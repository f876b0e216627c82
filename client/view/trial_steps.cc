#include "client/view/trial_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/console/terminal.h"
#include "base/text/json_string.h"
#include "base/text/units.h"
#include "scheduler/words/format.h"

namespace kiln::client {
namespace {

constexpr int kUsualColumns = 80;
// 9999-12-31. What is later is no time.
constexpr int64_t kLatest_us = 253'402'214'400'000'000;

// Collects the phases of one call, each within what is left of the call.
class Phases {
 public:
  Phases(int64_t begin_us, int64_t end_us, std::vector<TrialStep>& steps)
      : at_us_(begin_us), end_us_(end_us), steps_(steps) {}

  void Add(std::string_view name, double seconds) {
    if (!(seconds > 0)) return;
    const double left_us = static_cast<double>(end_us_ - at_us_);
    const auto us = static_cast<int64_t>(std::llround(std::min(1e6 * seconds, left_us)));
    if (us > 0) steps_.push_back({name, StepKind::kPhase, at_us_, at_us_ + us});
    at_us_ += us;
  }
  // Adds what is left of the call.
  void End(std::string_view name) {
    if (at_us_ < end_us_) steps_.push_back({name, StepKind::kPhase, at_us_, end_us_});
  }

 private:
  int64_t at_us_;
  const int64_t end_us_;
  std::vector<TrialStep>& steps_;
};

void AddBuild(const v1::TrialResult& result, int64_t begin_us, int64_t end_us,
              std::vector<TrialStep>& steps) {
  const v1::TrialTimes& times = result.times();
  steps.push_back({"build", StepKind::kBuild, begin_us, end_us});
  Phases phases(begin_us, end_us, steps);
  phases.Add("wait for a build process", times.build_wait_s());
  phases.Add("instantiate", times.instantiate_s());
  phases.Add("generate", times.generate_s());
  phases.Add("compile", times.compile_s());
  phases.Add("rest of the build",
             result.build_s() - times.instantiate_s() - times.generate_s() - times.compile_s());
  phases.End("to the builder and back");
}

void AddRun(const v1::TrialResult& result, int64_t begin_us, int64_t end_us,
            std::vector<TrialStep>& steps) {
  const v1::TrialTimes& times = result.times();
  steps.push_back({"run", StepKind::kRun, begin_us, end_us});
  const std::pair<std::string_view, double> within_run[] = {
      {"reference", times.reference_s()}, {"load", times.load_s()},
      {"prepare", times.prepare_s()},     {"first run", times.first_run_s()},
      {"check", times.check_s()},         {"timing", times.timing_s()},
      {"last run", times.last_run_s()},   {"release", times.release_s()}};
  Phases phases(begin_us, end_us, steps);
  phases.Add("wait for the device", times.run_wait_s());
  double rest_s = result.run_s();
  for (const auto& [name, seconds] : within_run) {
    phases.Add(name, seconds);
    rest_s -= seconds;
  }
  phases.Add("rest of the run", rest_s);
  phases.End("to the runner and back");
}

std::string Bar(const TrialStep& step, int64_t begin_us, double total_us, int width) {
  const auto column = [&](int64_t at_us) {
    return std::clamp(static_cast<int>(static_cast<double>(at_us - begin_us) / total_us * width), 0,
                      width - 1);
  };
  const int from = column(step.begin_us), to = std::max(from + 1, column(step.end_us));
  const char mark = step.kind == StepKind::kWait ? '.' : step.kind == StepKind::kPhase ? '-' : '#';
  return std::string(static_cast<size_t>(from), ' ') +
         std::string(static_cast<size_t>(to - from), mark);
}

std::string Workers(const v1::TrialResult& result) {
  std::string text;
  if (!result.builder().empty()) text += ", built by " + result.builder();
  if (!result.runner().empty()) text += ", run by " + result.runner();
  return text;
}

}  // namespace

std::vector<TrialStep> StepsOf(const v1::TrialResult& result) {
  const v1::TrialInstants& at = result.instants();
  std::vector<TrialStep> steps;
  int64_t last_us = 0;
  // Takes an instant, if it is one; clocks may be set back between two of them.
  const auto take = [&](int64_t us) {
    if (us <= 0 || us > kLatest_us) return false;
    last_us = std::max(last_us, us);
    return true;
  };
  const auto wait = [&](std::string_view name, int64_t from_us) {
    if (from_us > 0) steps.push_back({name, StepKind::kWait, from_us, last_us});
  };
  take(at.chosen_us());
  int64_t begin_us = last_us;
  if (take(at.build_sent_us())) {
    wait("wait for a builder", begin_us);
    begin_us = last_us;
    if (take(at.build_received_us())) AddBuild(result, begin_us, last_us, steps);
  }
  begin_us = last_us;
  if (take(at.run_sent_us())) {
    wait("wait for a runner", begin_us);
    begin_us = last_us;
    if (take(at.run_received_us())) AddRun(result, begin_us, last_us, steps);
  }
  begin_us = last_us;
  if (take(at.committed_us())) wait("wait for the commit", begin_us);
  return steps;
}

std::string StepsText(const v1::Record& record, const std::vector<TrialStep>& steps, int columns) {
  if (steps.empty()) return "";
  const int64_t begin_us = steps.front().begin_us, end_us = steps.back().end_us;
  const auto total_us = static_cast<double>(std::max<int64_t>(1, end_us - begin_us));
  constexpr int kOtherColumns = 52;
  const int width = std::max(10, (columns > 0 ? columns : kUsualColumns) - kOtherColumns);
  Table table({{"Step"}, {"At", Table::kRight}, {"Took", Table::kRight}, {""}});
  for (const TrialStep& step : steps) {
    const double at_s = static_cast<double>(step.begin_us - begin_us) / 1e6;
    table.AddRow({(step.kind == StepKind::kPhase ? "  " : "") + std::string(step.name),
                  FormatSeconds(at_s), FormatSeconds(step.seconds()),
                  Bar(step, begin_us, total_us, width)});
  }
  return fmt::format("trial {}{}\n{} from its choice at {} to its commit, trace {}\n\n{}",
                     TrialName(record), Workers(record.result()), FormatSeconds(total_us / 1e6),
                     TimeText(begin_us / 1'000'000), record.result().trace_id(), table.ToString());
}

std::string StepsJson(const v1::Record& record, const std::vector<TrialStep>& steps) {
  std::string json = "{\"trial\":";
  AppendJsonString(TrialName(record), json);
  const auto add = [&](std::string_view name, std::string_view value) {
    fmt::format_to(std::back_inserter(json), ",\"{}\":", name);
    AppendJsonString(value, json);
  };
  add("trace_id", record.result().trace_id());
  add("builder", record.result().builder());
  add("runner", record.result().runner());
  const int64_t begin_us = steps.empty() ? 0 : steps.front().begin_us;
  const int64_t end_us = steps.empty() ? 0 : steps.back().end_us;
  json += fmt::format(",\"seconds\":{},\"steps\":[", static_cast<double>(end_us - begin_us) / 1e6);
  std::string_view within;
  for (const TrialStep& step : steps) {
    if (step.kind != StepKind::kPhase) within = step.name;
    json += fmt::format("{}{{\"step\":\"{}\",\"within\":\"{}\",\"at_s\":{},\"seconds\":{}}}",
                        &step == &steps.front() ? "" : ",", step.name,
                        step.kind == StepKind::kPhase ? within : "",
                        static_cast<double>(step.begin_us - begin_us) / 1e6, step.seconds());
  }
  return json + "]}";
}

}  // namespace kiln::client
