// A device to measure on: the interface behind which CPUs and GPUs look the same to a trial
// (trial.h).
//
// Lives in a runner's child process and is used by one thread. Programs and buffers must be gone
// before their device, and a program before its arguments. A fault may end the process instead of
// returning an error; after an error of Run or Time the device may be unusable, and the process is
// to be replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/trial.pb.h"
#include "runner/arguments.h"
#include "runner/compare.h"
#include "runner/fill.h"
#include "runner/private_bytes.h"

namespace kiln::runner {

// A loaded artifact; unloaded when destroyed.
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

// What a check of a trial asks of a device, all at once: on a GPU each question by itself costs a
// round trip, and on a host whose cores compile, a wait for one of them.
struct Inspection {
  struct Pair {
    const Buffer* got;
    const Buffer* want;
  };
  std::vector<const Buffer*> guards = {};
  std::vector<const Buffer*> sums = {};
  std::vector<Pair> pairs = {};
  v1::Tolerance tolerance = {};  // of all pairs
};
// In the order of the questions.
struct Findings {
  std::vector<Status> guards;
  std::vector<uint64_t> sums;
  std::vector<Comparison> comparisons;
};

class Device {
 public:
  virtual ~Device() = default;

  // As the device names itself: "AMD EPYC 9654 96-Core Processor".
  virtual std::string Name() const = 0;
  // What buffers may use together now.
  virtual int64_t FreeMemoryBytes() const = 0;
  // Is it the memory of the process, too?
  virtual bool is_host() const { return false; }

  // InvalidArgument when the artifact is not for this device or does not load.
  virtual StatusOr<std::unique_ptr<Program>> Load(const v1::Artifact& artifact) = 0;
  // As Load, of a program that will be run with these arguments only, in the order of the plan, and
  // with inputs that are filled already. What some devices need to know.
  virtual StatusOr<std::unique_ptr<Program>> LoadFor(const v1::Artifact& artifact,
                                                     std::span<Buffer* const> args) {
    (void)args;
    return Load(artifact);
  }

  // ResourceExhausted when there is no memory for it. Contents undefined.
  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(const Argument& argument) = 0;
  virtual Status Fill(Buffer& buffer, std::span<const std::byte> bytes) = 0;
  // The program that is loaded finds the content of `other` in its argument `input` from now on, at
  // the same address. Both have the same type; `other` is not to be used until Restore has put
  // back what was there.
  virtual Status Substitute(Buffer& input, Buffer& other) = 0;
  virtual Status Restore(Buffer& input, Buffer& other) = 0;
  virtual Status Poison(Buffer& buffer, Poison poison) = 0;
  virtual StatusOr<PrivateBytes> Fetch(const Buffer& buffer) = 0;
  virtual StatusOr<uint64_t> Checksum(const Buffer& buffer) = 0;
  virtual StatusOr<Comparison> Compare(const Buffer& got, const Buffer& want,
                                       const v1::Tolerance& tolerance) = 0;
  // An error that names the argument when something outside of it was written.
  virtual Status CheckGuards(const Buffer& buffer) = 0;
  // The three of them for many buffers. An error: a question could not be answered.
  virtual StatusOr<Findings> Inspect(const Inspection& inspection);

  // One call, and its end. `args` in the order of the plan.
  virtual Status Run(Program& program, std::span<Buffer* const> args) = 0;
  // Seconds that `number` calls back to back took together.
  virtual StatusOr<double> Time(Program& program, std::span<Buffer* const> args,
                                int64_t number) = 0;
  virtual void FlushCaches() = 0;
  // Before a program that is timed with flushed caches is loaded: what that needs is got now rather
  // than in the time of the program.
  virtual void ExpectFlushes() {}
  // How many calls of about call_s a reading should have, `wanted` or more, so that what a reading
  // costs besides them does not count.
  virtual int64_t CallsPerReading(int64_t wanted, double call_s) const {
    (void)call_s;
    return wanted;
  }

  // False once nothing can run here any more, whatever it is: the process is to be replaced.
  virtual bool Usable() { return true; }
};

}  // namespace kiln::runner
