// The workbench of a runner's child: a device with the inputs and reference outputs of recent
// workloads.
//
// A trial fills the inputs, loads the artifact, poisons outputs and workspaces, runs the program
// once, checks, and times. Then it puts other values into the inputs, poisons again, runs and
// checks. (If the program takes a tenth of a second, other values and poison come before the
// timing, and the check after it.) A check requires that nothing was written outside of any
// argument, that the inputs are unchanged, and that the outputs are within the tolerance. Failures
// of the program are in the result; a fault may end the process instead (device.h).
//
// A program that keeps its answers is fast when it is timed, but not on other values. If calls on
// new values take far longer than the timed calls, the time of those calls is the program's cost.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "proto/trial.pb.h"
#include "runner/buffer_cache.h"
#include "runner/child.pb.h"
#include "runner/device.h"
#include "runner/input_values.h"
#include "runner/private_bytes.h"

namespace kiln::runner {

// Replaces zeros by their defaults (proto/trial.proto).
v1::MeasureOptions WithDefaults(v1::MeasureOptions options);

// Returns the time from which a program need not be timed well; none if no cost is known to compare
// with, or nothing may be stopped early.
std::optional<double> HopelessSeconds(const v1::MeasureOptions& options);

// Used by one thread.
class Workbench {
 public:
  // Called as each phase begins.
  using OnPhase = std::function<void(wire::Phase)>;

  // `device` outlives the workbench. `cache_bytes` bounds the inputs and reference outputs that are
  // kept. `is_wanted` says whether another trial waits for the device; null: always.
  Workbench(Device& device, int64_t cache_bytes, std::function<bool()> is_wanted = nullptr)
      : device_(device), cache_(cache_bytes), is_wanted_(std::move(is_wanted)) {}

  // `outputs` has the reference's outputs, as RunReference wrote them.
  v1::TrialResult RunTrial(const wire::TrialRun& trial, UniqueFd outputs, const OnPhase& on_phase);

  struct ReferenceResult {
    // Time of the last run on the first content.
    double cost_s = 0;
    // Reason why the outputs prove little (unchecked.h); empty: they prove enough.
    std::string unchecked;
  };
  // Runs the reference twice on differently poisoned outputs, which must agree. Then runs it once
  // on the other content of the inputs, and writes the outputs for both contents to the file
  // `outputs`, one behind the other. The second run is left out if the first took 0.05 s or more.
  StatusOr<ReferenceResult> RunReference(const wire::ReferenceRun& reference,
                                         const UniqueFd& outputs, const OnPhase& on_phase);

 private:
  struct Job;
  struct Input;
  class OtherInputs;
  // `copies` is the number of copies of the outputs, beside the arguments.
  Status Prepare(Job& job, const std::vector<Argument>& arguments, uint64_t seed, int copies);
  // Loads the expected outputs for both contents of the inputs.
  Status LoadWanted(Job& job, const wire::TrialRun& trial, const UniqueFd& outputs);
  Status LoadSampled(Job& job, const UniqueFd& outputs);
  Status LoadWhole(Job& job, const wire::TrialRun& trial, const UniqueFd& outputs, Content content);
  Status CheckSamples(const Job& job, const v1::Tolerance& tolerance, Poison poison,
                      double& max_error);
  UnsetBytes BytesOf(const Input& input, Content content) const;
  StatusOr<std::shared_ptr<CachedBuffer>> InputBuffer(const Input& input, Content content);
  Status PoisonAll(Job& job, Poison poison);
  StatusOr<Findings> Inspect(const Job& job, const v1::Tolerance& tolerance);
  Status CheckMemory(const Job& job, const Findings& findings);
  Status CheckOutputs(const Job& job, const Findings& findings, double& max_error);
  StatusOr<double> CheckedRun(Job& job, Poison poison);
  StatusOr<double> FreshSeconds(Job& job, OtherInputs& other, double fresh_s, double cost_s);
  // Appends the outputs to the file. `first` are the outputs for the usual content.
  Status RunOnOtherInputs(Job& job, const OnPhase& on_phase, std::span<const PrivateBytes> first,
                          const UniqueFd& outputs, ReferenceResult& result);
  Status RunPhases(const wire::TrialRun& trial, UniqueFd outputs, const OnPhase& on_phase,
                   v1::TrialResult& result);

  Device& device_;
  BufferCache cache_;
  const std::function<bool()> is_wanted_;
};

}  // namespace kiln::runner
