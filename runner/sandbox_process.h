// A process that runs one CPU program, and the end of it that the runner's child holds.
//
// It is forked, so it has the inputs at once (copied only where the program writes to them), and
// runs nothing but the program: what the program does to its memory, its descriptors or itself ends
// with it. All that comes back is looked at by a process that the program's code has never been in:
// outputs, through shared memory; the time, which is what the process says but no less than what it
// has computed meanwhile as the system counts it; words, which are cleaned.
//
// Used by one thread, of a process that has no other: it forks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
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
  GuardedMemory* input = nullptr;    // of an input: its content
  std::span<std::byte> output = {};  // of an output: shared memory where its content goes
};

class SandboxProcess {
 public:
  struct Options {
    CpuDeviceOptions cpu;
    ContainmentOptions containment;
    // For FlushCaches, shared with this process: else each would get its own.
    std::span<std::byte> flush = {};
  };

  // Forks, and waits until the program is loaded. Inputs are those of now. InvalidArgument,
  // NotFound: it does not load; what else may come of a call, below.
  static StatusOr<std::unique_ptr<SandboxProcess>> Start(const Options& options,
                                                         const v1::Artifact& artifact,
                                                         std::vector<SandboxArgument> arguments);
  // Kills it and all that it started.
  ~SandboxProcess();
  SandboxProcess(const SandboxProcess&) = delete;
  SandboxProcess& operator=(const SandboxProcess&) = delete;

  // Errors of all calls: ResourceExhausted when there is no memory, Unavailable "killed by signal
  // 11 (Segmentation fault) while running: access through a null pointer": then it is gone, and all
  // further calls say so.

  // Of an output or a workspace.
  Status Poison(size_t argument, Poison poison);
  // Of an input: it has these bytes from now on, at the same address. About 3 GB/s.
  Status Refill(size_t argument, std::span<const std::byte> bytes);
  // Seconds that `number` calls took together. Internal when the program returned an error.
  StatusOr<double> Time(int64_t number);
  Status FlushCaches();

  struct Published {
    std::vector<Status> guards;  // of each argument: what was written outside of it
    std::vector<uint64_t> sums;  // of each argument: XXH3 of an input; else 0
  };
  // Copies the outputs to where the caller sees them.
  StatusOr<Published> Publish();

 private:
  struct Request;
  struct Reply;
  class Inside;

  SandboxProcess() = default;
  StatusOr<Reply> Ask(uint32_t what, uint32_t argument, int64_t value, const char* doing);
  bool Send(const void* packet, size_t bytes) const;
  double CpuSeconds() const;  // that it has used so far
  StatusOr<Reply> Receive(uint64_t nonce, const char* doing);
  Status ReceivePacket(void* into, size_t bytes, const char* doing);
  Status Ended(const char* doing);
  Status Forged(const char* doing);
  void End();

  pid_t pid_ = 0;
  UniqueFd socket_, pidfd_;
  UniqueFd output_;  // what it prints
  size_t num_arguments_ = 0;
  int threads_ = 1;
  Status gone_;  // why there is no process any more
};

}  // namespace kiln::runner
