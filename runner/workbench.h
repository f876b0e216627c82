// A device with the inputs and reference outputs of recent workloads: what a runner's child works
// at.
//
// A trial: fill the inputs, load the artifact, poison outputs and workspaces, run once, check,
// time, put other values into the inputs, poison again, run, check (of a program that takes a tenth
// of a second: other values and poison before it is timed, check after). "Check" is: nothing written
// outside of any argument, inputs unchanged, outputs within the tolerance. What goes wrong with the
// program is in the result; a fault may end the process instead (device.h).
//
// A program that keeps its answers is fast where it is timed, and not on other values. Where calls
// on values that it has not seen take far longer than those that were timed, their time is its cost.
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

// Zeros replaced by their defaults (proto/trial.proto).
v1::MeasureOptions WithDefaults(v1::MeasureOptions options);

// A program that takes longer need not be timed well; none where no cost is known to compare with,
// or nothing is to be stopped early.
std::optional<double> HopelessSeconds(const v1::MeasureOptions& options);

// Used by one thread.
class Workbench {
 public:
  // Called as each phase begins.
  using OnPhase = std::function<void(wire::Phase)>;

  // `device` outlives this. cache_bytes: inputs and reference outputs that are kept. is_wanted:
  // whether another trial waits for the device; null: always.
  Workbench(Device& device, int64_t cache_bytes, std::function<bool()> is_wanted = nullptr)
      : device_(device), cache_(cache_bytes), is_wanted_(std::move(is_wanted)) {}

  // `outputs`: of the reference, as RunReference wrote them.
  v1::TrialResult RunTrial(const wire::TrialRun& trial, UniqueFd outputs, const OnPhase& on_phase);

  struct ReferenceResult {
    double cost_s = 0;      // of its last run
    std::string unchecked;  // why its outputs prove little (unchecked.h); empty: they do
  };
  // Runs the reference twice on differently poisoned outputs, which must agree, then once on the
  // other content of the inputs, and writes the outputs of both contents to `outputs`, a file, one behind the
  // other. The second run is left out when the first took more than a second.
  StatusOr<ReferenceResult> RunReference(const wire::ReferenceRun& reference,
                                         const UniqueFd& outputs, const OnPhase& on_phase);

 private:
  struct Job;
  struct Input;
  class OtherInputs;
  // `copies`: of the outputs, beside the arguments.
  Status Prepare(Job& job, const std::vector<Argument>& arguments, uint64_t seed, int copies);
  // What the outputs should be, for both contents of the inputs.
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
  // Appends the outputs to the file. `first`: those on the usual content.
  Status RunOnOtherInputs(Job& job, const OnPhase& on_phase, std::span<const PrivateBytes> first,
                          const UniqueFd& outputs, ReferenceResult& result);
  Status RunPhases(const wire::TrialRun& trial, UniqueFd outputs, const OnPhase& on_phase,
                   v1::TrialResult& result);

  Device& device_;
  BufferCache cache_;
  const std::function<bool()> is_wanted_;
};

}  // namespace kiln::runner
