// The flags that make a job: what is tuned, how candidates are found, and how they are measured.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/jobs/job_spec.h"
#include "proto/scheduler.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Must outlive the parse, and belongs to one command.
class JobFlags {
 public:
  JobFlags();
  ~JobFlags();
  JobFlags(const JobFlags&) = delete;
  JobFlags& operator=(const JobFlags&) = delete;

  void AddTo(CLI::App& command);
  // Single options, for commands that make their jobs themselves.
  void AddTrials(CLI::App& command, const std::string& what, uint32_t least = 1);
  void AddSeed(CLI::App& command);
  void AddMeasuring(CLI::App& command);

  // Call these functions after the parse. Target returns the target of the flags, or the kernel's
  // own; "": neither names one.
  std::string Target() const;
  // Returns the job of the flags, for the target.
  JobDescription Job(const std::string& target) const;

 private:
  struct Values;

  void AddTasks(CLI::App& command);
  void AddSearch(CLI::App& command);
  void AddStops(CLI::App& command);
  void AddRounds(CLI::App& command);
  void AddReferenceLimit(CLI::App& command);
  void SetLimits(v1::TuneOptions& options) const;

  // Values of the flags. They stand beside the flags, so that a new flag is a change of one file.
  const std::unique_ptr<Values> values_;
};

// Marks the most used flags of a command that makes a job: what is tuned, for which target, how
// long, and where the records go (`place`, a flag's name).
void MarkMostUsed(CLI::App& command, const char* place);

}  // namespace kiln::client
