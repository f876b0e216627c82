// A process that runs one CPU program, and the end of it that the runner's child holds.
//
// The process is forked, so it has the inputs at once (pages are copied only when the program
// writes to them). It runs nothing but the program: damage to its memory, its descriptors or itself
// ends with it. Every result is checked by a process in which the program's code has never run.
// Outputs lie in memory that both processes share. They are read here, while the process stands
// still, so that no code of it can still compute them. The time is what the process reports, but no
// less than the CPU time that the system counted for it. Text is cleaned.
//
// Used by one thread of a process that has no other thread, because it forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/file/fd.h"
#include "base/status.h"
#include "proto/trial.pb.h"
#include "runner/arguments.h"
#include "runner/clock_check.h"
#include "runner/containment.h"
#include "runner/cpu_calls.h"
#include "runner/device.h"
#include "runner/fill.h"
#include "runner/guarded_memory.h"

namespace kiln::runner {

// An argument of the program, in call order.
struct SandboxArgument {
  Argument argument;
  // Memory of an input, which the process gets a copy of, or of an output, which is shared; null
  // for a workspace, which only the process has.
  GuardedMemory* memory = nullptr;
};

class SandboxProcess {
 public:
  struct Options {
    CpuDeviceOptions cpu;
    ContainmentOptions containment;
    // Memory for FlushCaches, which is shared with this process. Without it each process gets its
    // own.
    std::span<std::byte> flush = {};
  };

  // Forks, and waits until the program is loaded. The inputs have the contents of this moment.
  // InvalidArgument or NotFound if the program does not load, and the errors of all calls, below.
  static StatusOr<std::unique_ptr<SandboxProcess>> Start(const Options& options,
                                                         const v1::Artifact& artifact,
                                                         std::vector<SandboxArgument> arguments);
  // Kills the process and all processes that it started.
  ~SandboxProcess();
  SandboxProcess(const SandboxProcess&) = delete;
  SandboxProcess& operator=(const SandboxProcess&) = delete;

  // Errors of all calls: ResourceExhausted if there is no memory, or Unavailable "killed by signal
  // 11 (Segmentation fault) while running: access through a null pointer". After Unavailable the
  // process is gone, and all further calls say so.

  // Fills an output or a workspace with poison.
  Status Poison(size_t argument, Poison poison);
  // Writes the bytes of all arguments anew, as they are.
  Status Rewrite();
  // Puts these bytes into an input, at the same address. Speed: about 3 GB/s.
  Status Refill(size_t argument, std::span<const std::byte> bytes);
  // Runs one call, after which the process stands still until it is asked for something else.
  // Never runs it twice. Internal if the program returned an error.
  StatusOr<CheckedTime> Run();
  // Returns the seconds that `number` calls took together. If the two clocks differ much, a reading
  // is taken again, with caches flushed again if they were flushed before it; in the end the time
  // that passed here counts. Internal if the program returned an error, or if the process says far
  // less than its threads computed meanwhile: then its program has changed its clock.
  StatusOr<double> Time(int64_t number);
  Status FlushCaches();

  struct Published {
    // For each argument: an error if something was written outside of it.
    std::vector<Status> guards;
    // For each argument: XXH3 of an input; 0 for others.
    std::vector<uint64_t> sums;
  };
  // Calls `take` while the process stands still, so that it can copy the outputs. Then asks the
  // process about the arguments.
  StatusOr<Published> Publish(absl::FunctionRef<void()> take);

 private:
  struct Request;
  struct Reply;
  class Inside;

  SandboxProcess() = default;
  struct Reading {
    // Time by the clock of the process, but no less than the system's counts allow.
    double inside_s = 0;
    // Time by the clock of this process, which the program cannot reach.
    double outside_s = 0;
    // Time that the process said.
    double told_s = 0;
    // CPU time of all threads.
    double computed_s = 0;
  };
  struct Judged {
    Reading reading = {};
    ClockVerdict verdict = ClockVerdict::kDiffers;
  };
  StatusOr<Reading> TimeOnce(int64_t number, bool stops);
  StatusOr<Judged> TimeJudged(int64_t number, bool counts);
  StatusOr<Reply> Ask(uint32_t what, uint32_t argument, int64_t value, const char* doing);
  bool Send(const void* packet, size_t bytes) const;
  // Stops all threads of the process, and lets them go on.
  Status Stop(const char* doing);
  void Continue();
  // Returns the CPU time that the process has used so far.
  double CpuSeconds() const;
  StatusOr<Reply> Receive(uint64_t nonce, const char* doing);
  Status ReceivePacket(void* into, size_t bytes, const char* doing);
  Status Ended(const char* doing);
  Status Forged(const char* doing);
  void End();

  pid_t pid_ = 0;
  UniqueFd socket_, pidfd_;
  // Output that the process prints.
  UniqueFd output_;
  // Memory of the outputs; null for other arguments.
  std::vector<GuardedMemory*> outputs_;
  int threads_ = 1;
  bool stands_still_ = false;
  // Nothing has run since the caches were flushed.
  bool is_cold_ = false;
  // Reason why there is no process any more.
  Status gone_;
};

}  // namespace kiln::runner
