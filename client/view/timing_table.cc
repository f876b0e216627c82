#include "client/view/timing_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/console/terminal.h"
#include "base/text/units.h"

namespace kiln::client {
namespace {

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  return values[at];
}

}  // namespace

std::vector<double>& TimingTable::PartOf(const std::string& name, const std::string& indent) {
  for (Part& part : parts_) {
    if (part.name == name) return part.seconds;
  }
  parts_.push_back({name, indent, {}});
  return parts_.back().seconds;
}

void TimingTable::Add(const v1::TrialResult& result) {
  const v1::TrialTimes& times = result.times();
  ++trials_;
  const auto add = [&](const std::string& name, double seconds, const std::string& indent = "  ") {
    std::vector<double>& part = PartOf(name, indent);
    if (seconds > 0) part.push_back(seconds);
  };
  add("build", result.build_s(), "");
  add("instantiate", times.instantiate_s());
  add("generate", times.generate_s());
  add("compile", times.compile_s());
  add("wait for a build process", times.build_wait_s(), "");
  // A run of the reference belongs to the task and not to the trial.
  const double run_s = std::max(0.0, result.run_s() - times.reference_s());
  add("run", run_s, "");
  add("load", times.load_s());
  add("prepare", times.prepare_s());
  add("first run", times.first_run_s());
  add("check", times.check_s());
  add("timing", times.timing_s());
  add("last run", times.last_run_s());
  add("release", times.release_s());
  add("timed runs of the program", times.timed_runs_s());
  // The time of a failed trial says nothing about overhead: only trials that ended well count.
  const bool whole = result.error() == v1::NO_ERROR && times.timed_runs_s() > 0;
  add("overhead: run less timed runs", whole ? run_s - times.timed_runs_s() : 0, "");
  add("wait for the device", times.run_wait_s(), "");
  add("reference", times.reference_s(), "");
  if (result.build_s() > 0) {
    ++builds_;
    build_s_ += result.build_s();
  }
  run_s_ += run_s;
}

std::string TimingTable::ToString(double elapsed_s) const {
  Table table({{"Part"},
               {"p50", Table::kRight},
               {"p90", Table::kRight},
               {"Sum", Table::kRight},
               {"Trials", Table::kRight}});
  for (const Part& part : parts_) {
    if (part.seconds.empty()) continue;
    double sum = 0;
    for (const double s : part.seconds) sum += s;
    table.AddRow({part.indent + part.name, FormatSeconds(Quantile(part.seconds, 0.5)),
                  FormatSeconds(Quantile(part.seconds, 0.9)), FormatElapsed(sum),
                  FormatCount(static_cast<int64_t>(part.seconds.size()))});
  }
  std::string text = table.ToString();
  if (build_s_ > 0) {
    text += fmt::format("\nbuilds of one process: {:.2f} per second",
                        static_cast<double>(builds_) / build_s_);
  }
  if (elapsed_s > 0) {
    text += fmt::format("\ntrials: {:.2f} per second, the device at work {:.0f}% of the time",
                        static_cast<double>(trials_) / elapsed_s, 100 * run_s_ / elapsed_s);
  }
  return text + "\n";
}

std::string TimingTable::ToJson() const {
  std::string parts;
  for (const Part& part : parts_) {
    if (part.seconds.empty()) continue;
    parts += fmt::format("{}\"{}\":{{\"p50_s\":{},\"p90_s\":{},\"trials\":{}}}",
                         parts.empty() ? "" : ",", part.name, Quantile(part.seconds, 0.5),
                         Quantile(part.seconds, 0.9), part.seconds.size());
  }
  return fmt::format("{{\"trials\":{},\"builds\":{},\"build_s\":{},\"run_s\":{},\"parts\":{{{}}}}}",
                     trials_, builds_, build_s_, run_s_, parts);
}

}  // namespace kiln::client
