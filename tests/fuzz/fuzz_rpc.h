// Calls of every method of every service: valid messages with spoiled fields, spoiled bytes,
// garbage, streams that are not ended; and bytes that are no calls at all.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tests/faults/farm.h"
#include "tests/fuzz/findings.h"

namespace kiln::fuzz {

class RpcFuzzer {
 public:
  // Starts a farm of its own.
  static StatusOr<std::unique_ptr<RpcFuzzer>> Make();

  // One call, or one connection.
  void Run(uint64_t seed, Findings& findings);

  // All daemons answer as before: the scheduler has the jobs that it took, and the records. In
  // between and at the end.
  void CheckFarm(uint64_t seed, Findings& findings);

 private:
  struct Daemon {
    DaemonProcess* process;
    std::string service;  // "kiln.v1.Scheduler"
    std::shared_ptr<grpc::Channel> channel;
    int64_t bytes = 0;  // of memory, before
  };
  explicit RpcFuzzer(std::unique_ptr<Farm> farm);

  void Call(const Daemon& daemon, uint64_t seed, Findings& findings);
  // A job whose like has few trials on target null.
  void NoteSubmitted(const std::string& reply);
  void NoteImported(const std::string& reply);

  std::unique_ptr<Farm> farm_;
  std::vector<Daemon> daemons_;
  std::unique_ptr<v1::Scheduler::Stub> scheduler_;
  int64_t submitted_ = 0, imported_ = 0;
};

}  // namespace kiln::fuzz
