// A process that runs one CPU program, and the end of it that the runner's child holds.
//
// The process is forked, so it has the inputs at once (pages are copied only when the program
// writes to them). It runs nothing but the program: damage to its memory, its descriptors or itself
// ends with it. Every result is checked by a process in which the program's code has never run.
// Outputs come through shared memory. The time is what the process reports, but no less than the
// CPU time that the system counted for it. Text is cleaned.
//
// Used by one thread of a process that has no other thread, because it forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file/fd.h"
#include "base/status.h"
#include "proto/trial.pb.h"
#include "runner/arguments.h"
#include "runner/containment.h"
#include "runner/cpu_calls.h"
#include "runner/fill.h"
#include "runner/guarded_memory.h"

namespace kiln::runner {

// An argument of the program, in call order.
struct SandboxArgument {
  Argument argument;
  // Content of an input.
  GuardedMemory* input = nullptr;
  // Shared memory for the content of an output.
  std::span<std::byte> output = {};
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
  // Puts these bytes into an input, at the same address. Speed: about 3 GB/s.
  Status Refill(size_t argument, std::span<const std::byte> bytes);
  // Returns the seconds that `number` calls took together. Internal if the program returned an
  // error, or if the process says far less than what passed here meanwhile, each time that it was
  // asked: then its program has changed its clock.
  StatusOr<double> Time(int64_t number);
  // The same as CpuCalls::TimeVaried.
  StatusOr<double> TimeVaried(runner::Poison poison, int number);
  Status FlushCaches();

  struct Published {
    // For each argument: an error if something was written outside of it.
    std::vector<Status> guards;
    // For each argument: XXH3 of an input; 0 for others.
    std::vector<uint64_t> sums;
  };
  // Copies the outputs to where the caller sees them.
  StatusOr<Published> Publish();

 private:
  struct Request;
  struct Reply;
  class Inside;

  SandboxProcess() = default;
  struct Reading {
    // Time by the clock of the process.
    double inside_s;
    // Time by the clock of this process, which the program cannot reach.
    double outside_s;
  };
  StatusOr<Reading> TimeOnce(int64_t number);
  StatusOr<Reply> Ask(uint32_t what, uint32_t argument, int64_t value, const char* doing);
  bool Send(const void* packet, size_t bytes) const;
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
  size_t num_arguments_ = 0;
  int threads_ = 1;
  // Reason why there is no process any more.
  Status gone_;
};

}  // namespace kiln::runner
