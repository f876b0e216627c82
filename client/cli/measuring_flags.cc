#include "client/cli/measuring_flags.h"

#include <CLI/CLI.hpp>

#include "client/cli/command.h"

namespace kiln::client {
namespace {

// In messages 0 means "not given" and leaves the number to the scheduler.
int FinalistsOnTheWire(int finalists) {
  if (finalists == 0) return -1;
  return finalists == kDefaultFinalists ? 0 : finalists;
}

}  // namespace

CLI::Option* MeasuringFlags::AddNumber(CLI::App& command, const char* name, uint32_t& value,
                                       uint32_t least, uint32_t most, const char* what) {
  return command.add_option(name, value, what)
      ->check(CLI::Range(least, most))
      ->capture_default_str()
      ->group(kMeasuringGroup);
}

void MeasuringFlags::AddFinalists(CLI::App& command) {
  command
      .add_option("--finalists", finalists_,
                  "number of each task's best candidates that are measured again at the end, at "
                  "length; 0 = none")
      ->check(CLI::Range(0, kMaxFinalists))
      ->capture_default_str()
      ->group(kMeasuringGroup);
}

void MeasuringFlags::AddIdle(CLI::App& command) {
  command
      .add_option("--idle-ms", idle_ms_,
                  fmt::format("where no other trial waits for the device, more timings for up to "
                              "so long; {} on GPUs, 0 (none) elsewhere and with --number, "
                              "--repeat or --lock-step",
                              kDefaultIdleMs))
      ->check(CLI::Range(0, static_cast<int>(kLongestIdleMs)))
      ->group(kMeasuringGroup);
}

void MeasuringFlags::AddFault(CLI::App& command) {
  command
      .add_option("--fault", faults_,
                  "TRIAL:FAULT builds a broken program into a trial, to see what becomes of it "
                  "(null-store, infinite-loop, wrong-answer, trap, out-of-bounds, compiler-crash, "
                  "compiler-hang)")
      ->type_name("TRIAL:FAULT")
      ->group(kMeasuringGroup);
}

void MeasuringFlags::AddTo(CLI::App& command) {
  number_option_ = AddNumber(command, "--number", number_, 1, kMaxCalls,
                             "calls of the program that are timed at once");
  repeat_option_ = AddNumber(command, "--repeat", repeat_, 1, kMaxCalls,
                             "timings of each candidate; their mean counts");
  AddNumber(command, "--min-repeat-ms", min_repeat_ms_, 0, kLongestMs,
            "least time of one timing: more calls if it is shorter");
  AddFinalists(command);
  AddIdle(command);
  AddTolerance(command, tolerance_)->group(kMeasuringGroup);
  AddNumber(command, "--cooldown-ms", cooldown_ms_, 0, kLongestMs, "pause after each trial");
  AddNumber(command, "--timeout-ms", timeout_ms_, 1, kLongestMs, "limit of one trial's run");
  AddNumber(command, "--build-timeout-ms", build_timeout_ms_, 1, kLongestMs, "limit of one build");
  command
      .add_flag("--flush-cache", flush_cache_, "measure calls that find their inputs in no cache")
      ->group(kMeasuringGroup);
  command
      .add_option("--as-deployed", as_deployed_,
                  "on a GPU: launch calls as the program will be deployed, within a CUDA graph or "
                  "one by one on a stream")
      ->check(CLI::IsMember({"graph", "stream"}))
      ->type_name("graph|stream")
      ->capture_default_str()
      ->group(kMeasuringGroup);
  AddFault(command);
}

// Returns the time of idle timings. If the user gave exact numbers of timings, there are no more.
uint32_t MeasuringFlags::IdleMs(bool may_idle) const {
  if (idle_ms_.has_value()) return *idle_ms_;
  const bool exact = IsGiven(number_option_) || IsGiven(repeat_option_);
  return exact || !may_idle ? 0 : kDefaultIdleMs;
}

void MeasuringFlags::Set(bool may_idle, v1::TuneOptions& options) const {
  options.set_finalists(FinalistsOnTheWire(finalists_));
  options.set_build_timeout_ms(build_timeout_ms_);
  if (!tolerance_.empty()) *options.mutable_tolerance() = ToleranceOf(tolerance_);
  v1::MeasureOptions& measure = *options.mutable_measure();
  measure.set_number(number_);
  measure.set_repeat(repeat_);
  measure.set_min_repeat_ms(min_repeat_ms_);
  measure.set_cooldown_ms(cooldown_ms_);
  measure.set_timeout_ms(timeout_ms_);
  measure.set_flush_cache(flush_cache_);
  measure.set_single_launches(as_deployed_ == "stream");
  measure.set_idle_ms(IdleMs(may_idle));
}

CLI::Option* AddTolerance(CLI::App& command, std::vector<double>& tolerance) {
  return command
      .add_option("--tolerance", tolerance,
                  "how far results may be off the reference's: of each value, and of the largest "
                  "one; 0 = by type, 1e-3,1e-4 for float32 (docs/runner.md)")
      ->delimiter(',')
      ->expected(1, 2)
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 1e6))
      ->type_name("RELATIVE[,ABSOLUTE]");
}

v1::Tolerance ToleranceOf(const std::vector<double>& tolerance) {
  v1::Tolerance message;
  if (!tolerance.empty()) message.set_relative(tolerance[0]);
  if (tolerance.size() > 1) message.set_absolute(tolerance[1]);
  return message;
}

}  // namespace kiln::client
