// A device to measure on: the interface behind which CPUs and GPUs look the same to a trial
// (trial_run.h).
//
// A device lives in a runner's child process and is used by one thread. Programs and buffers must
// be gone before their device, and a program before its arguments. A fault may end the process
// instead of returning an error. After an error of Run or Time the device may be unusable, and the
// process must be replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/trial.pb.h"
#include "runner/arguments.h"
#include "runner/changed_calls.h"
#include "runner/compare.h"
#include "runner/fill.h"
#include "runner/private_bytes.h"

namespace kiln::runner {

// A loaded artifact, which is unloaded when destroyed.
class Program {
 public:
  virtual ~Program() = default;
};

// The memory of one argument, between guards that show stray writes.
class Buffer {
 public:
  explicit Buffer(Argument argument) : argument_(std::move(argument)) {}
  virtual ~Buffer() = default;
  const Argument& argument() const { return argument_; }

 private:
  Argument argument_;
};

// The questions of a trial's check, asked all at once. On a GPU each separate question costs a
// round trip, and a wait for a core if the host's cores compile.
struct Inspection {
  struct Pair {
    const Buffer* got;
    const Buffer* want;
  };
  std::vector<const Buffer*> guards = {};
  std::vector<const Buffer*> sums = {};
  std::vector<Pair> pairs = {};
  // Tolerance for all pairs.
  v1::Tolerance tolerance = {};
};
// Answers in the order of the questions.
struct Findings {
  std::vector<Status> guards;
  std::vector<uint64_t> sums;
  std::vector<Comparison> comparisons;
};

// Seconds of one call by two clocks.
struct CheckedTime {
  // Time by the clock that is nearest to the program, which the program may have changed.
  double own_s = 0;
  // Time by a clock that the program cannot reach, from the request until nothing of the program
  // runs any more. It has the overhead of that, so only such times are compared with each other.
  double outside_s = 0;
  // CPU time that the system counted for all threads of the program meanwhile, if it is known. It
  // has no waits in it, and the time in which threads look for work.
  std::optional<double> computed_s = {};
};

// The time of calls with changed arguments, and the answer of one of them.
struct ChangedResult {
  // Seconds of one call, on average.
  double call_s = 0;
  // For each output: an error if elements of the checked call's are wrong.
  std::vector<Status> outputs;
};

// Calls of a program that use copies of its inputs in turns, so many that none finds its own in a
// cache.
class RotatedCalls {
 public:
  virtual ~RotatedCalls() = default;

  // Device::Time. The first call takes the copy behind that of the last call before.
  virtual StatusOr<double> Time(int64_t number) = 0;
  // Device::CallsPerReading.
  virtual int64_t PerReading(int64_t wanted, double call_s) const = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // Returns the device's own name: "AMD EPYC 9654 96-Core Processor".
  virtual std::string Name() const = 0;
  // Returns the bytes that buffers may use together now.
  virtual int64_t FreeMemoryBytes() const = 0;
  // Returns whether the device's memory is the memory of the process.
  virtual bool is_host() const { return false; }

  // InvalidArgument if the artifact is not for this device or does not load.
  virtual StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) = 0;
  // Loads a program that will be run only with these arguments, in the order of the plan, whose
  // inputs are filled already. Some devices need to know the arguments. Otherwise the same as Load.
  virtual StatusOr<std::unique_ptr<Program>> LoadFor(const v1::Artifact& artifact,
                                                     std::span<Buffer* const> args) {
    (void)args;
    return Load(artifact);
  }

  // ResourceExhausted if there is no memory for the buffer. The contents are undefined.
  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) = 0;
  virtual Status Fill(Buffer& buffer, std::span<const std::byte> bytes) = 0;
  // Substitute makes the loaded program find the content of `other` in its argument `input`, at the
  // same address. Both have the same type. `other` must not be used until Restore has put the old
  // content back.
  virtual Status Substitute(Buffer& input, Buffer& other) = 0;
  virtual Status Restore(Buffer& input, Buffer& other) = 0;
  virtual Status Poison(Buffer& buffer, Poison poison) = 0;
  // Poisons one element of an output. Only for a host.
  virtual Status PoisonElement(Buffer& output, runner::Poison poison, int64_t element) {
    return Internal("element {} of {} is in no memory of the host, nor is poison {}", element,
                    output.argument().name, static_cast<int>(poison));
  }
  // Writes the bytes of all arguments of the loaded program anew, as they are, so that the caches
  // hold them as after Poison and Substitute. Only a host does so.
  virtual Status Rewrite() { return OkStatus(); }
  virtual StatusOr<PrivateBytes> Fetch(const Buffer& buffer) = 0;
  virtual StatusOr<uint64_t> Checksum(const Buffer& buffer) = 0;
  virtual StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                                       const v1::Tolerance& tolerance) = 0;
  // Returns an error that names the argument if something outside of it was written.
  virtual Status CheckGuards(const Buffer& buffer) = 0;
  // Answers the three kinds of questions for many buffers. An error means that a question could not
  // be answered.
  virtual StatusOr<Findings> Inspect(const Inspection& inspection);

  // Runs one call to its end. `args` are in the order of the plan.
  virtual Status Run(Program& program, std::span<Buffer* const> args) = 0;
  // Runs one call whose outputs are looked at next. It runs once, whatever the clocks say, and
  // nothing of the program runs between the call's end and the look.
  virtual StatusOr<CheckedTime> RunChecked(Program& program, std::span<Buffer* const> args) {
    KILN_ASSIGN_OR_RETURN(const double seconds, Time(program, args, 1));
    return CheckedTime{seconds, seconds};
  }
  // Returns the seconds that `number` calls back to back took together.
  virtual StatusOr<double> Time(Program& program, std::span<Buffer* const> args,
                                int64_t number) = 0;
  // Times calls between which the arguments change (changed_calls.h). Each pair of `expected` has
  // an output of the program, and what the checked call must put there, within `tolerance`. Leaves
  // the inputs as they were. Nothing: the device does not do so.
  virtual StatusOr<std::optional<ChangedResult>> TimeChanged(
      Program& program, std::span<Buffer* const> args, const ChangedCalls& calls,
      std::span<const Inspection::Pair> expected, const v1::Tolerance& tolerance) {
    (void)program, (void)args, (void)calls, (void)expected, (void)tolerance;
    return std::nullopt;
  }
  // Copies the inputs as they are now. The result must not outlive the device, the program and
  // the arguments, and it writes their outputs. Null: the device does not rotate these arguments,
  // so that only the first call after FlushCaches has cold caches. ResourceExhausted if there is no
  // memory for the copies.
  virtual StatusOr<std::unique_ptr<RotatedCalls>> Rotate(Program& program,
                                                         std::span<Buffer* const> args) {
    (void)program, (void)args;
    return nullptr;
  }
  virtual void FlushCaches() = 0;
  // Called before a program that is timed with flushed caches is loaded, so that the device gets
  // what flushing needs now and not in the program's time.
  virtual void ExpectFlushes() {}
  // Says whether the calls of a batch are launched one by one, and not as a graph. Devices without
  // graphs ignore it.
  virtual void LaunchSingly(bool singly) { (void)singly; }
  // Returns how many calls of about call_s a reading should have, `wanted` or more, so that the
  // fixed cost of a reading does not count.
  virtual int64_t CallsPerReading(int64_t wanted, double call_s) const {
    (void)call_s;
    return wanted;
  }

  // Returns the seconds of the device's canary program (docs/device-state.md). No program is
  // loaded.
  virtual StatusOr<double> TimeCanary() = 0;

  // Returns false once nothing can run here any more for any reason: the process must be replaced.
  virtual bool Usable() { return true; }
};

}  // namespace kiln::runner
