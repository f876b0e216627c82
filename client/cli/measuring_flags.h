// Flags of measuring, for all commands that measure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/job_defaults.h"
#include "proto/scheduler.pb.h"
#include "proto/trial.pb.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kiln::client {

// The group of these flags in the help.
inline constexpr char kMeasuringGroup[] = "Measuring";

// Must outlive the parse, and belongs to one command.
class MeasuringFlags {
 public:
  MeasuringFlags() = default;
  MeasuringFlags(const MeasuringFlags&) = delete;
  MeasuringFlags& operator=(const MeasuringFlags&) = delete;

  void AddTo(CLI::App& command);

  // `may_idle`: further timings while no other trial waits are useful here, unless the flags set
  // their number.
  void Set(bool may_idle, v1::TuneOptions& options) const;
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  CLI::Option* AddNumber(CLI::App& command, const char* name, uint32_t& value, uint32_t least,
                         uint32_t most, const char* what);
  void AddFinalists(CLI::App& command);
  void AddIdle(CLI::App& command);
  void AddFault(CLI::App& command);
  uint32_t IdleMs(bool may_idle) const;

  const CLI::Option* number_option_ = nullptr;
  const CLI::Option* repeat_option_ = nullptr;
  uint32_t number_ = kDefaultNumber, repeat_ = kDefaultRepeat;
  uint32_t min_repeat_ms_ = kDefaultMinRepeatMs, cooldown_ms_ = 0;
  uint32_t timeout_ms_ = kDefaultRunTimeoutMs, build_timeout_ms_ = kDefaultBuildTimeoutMs;
  int finalists_ = kDefaultFinalists;
  std::optional<uint32_t> idle_ms_;
  // Relative, absolute.
  std::vector<double> tolerance_;
  bool flush_cache_ = false;
  std::string as_deployed_ = "graph";
  std::vector<std::string> faults_;
};

// Adds the tolerance of results: relative, absolute; empty: by type.
CLI::Option* AddTolerance(CLI::App& command, std::vector<double>& tolerance);
v1::Tolerance ToleranceOf(const std::vector<double>& tolerance);

}  // namespace kiln::client
