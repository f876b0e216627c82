// Fuzzes every method of every service: valid messages with spoiled fields, spoiled bytes, garbage,
// streams that are not ended, and bytes that are no calls at all.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "tests/faults/farm.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/report.h"

namespace kiln::fuzz {

class RpcFuzzer {
 public:
  // Starts a farm of its own, with a job and records. A call hangs if it takes `most_s`. The corpus
  // outlives this object.
  static StatusOr<std::unique_ptr<RpcFuzzer>> Make(double most_s, const Corpus& corpus);

  // Makes one call, or one connection.
  void Run(uint64_t seed, Report& report);

  // Checks that all daemons answer, and that the scheduler lists exactly the jobs and records that
  // it took. Called in between and at the end.
  void CheckFarm(Report& report);

  // Returns the largest memory that each daemon has had.
  std::string Peaks() const;

 private:
  struct Daemon {
    DaemonProcess* process;
    // "kiln.v1.Scheduler"
    std::string service;
    const google::protobuf::ServiceDescriptor* methods;
    std::shared_ptr<grpc::Channel> channel;
    // Bytes of memory at the start.
    int64_t bytes = 0;
    int64_t peak_bytes = 0;
  };
  RpcFuzzer(std::unique_ptr<Farm> farm, double most_s, const Corpus& corpus);

  Status Prepare();
  StatusOr<v1::Artifact> Build(const std::string& dag, const std::string& steps);
  std::unique_ptr<google::protobuf::Message> ExampleOf(const google::protobuf::Descriptor& type,
                                                       Rng& rng) const;
  std::string RequestBytes(const google::protobuf::Descriptor& type, Rng& rng) const;

  // Returns a context with the longest time that a call may take.
  std::unique_ptr<grpc::ClientContext> Context() const;
  void Call(const Daemon& daemon, Rng& rng, Report& report);
  void CheckMemory(Daemon& daemon, Report& report);
  void NoteSubmitted(const std::string& reply, Rng& rng);
  void NoteImported(const std::string& reply);
  void NoteDeleted(const std::string& reply);
  void CheckJobs(Report& report);
  void CheckImported(Report& report);
  void Cancel(const std::string& job);

  const double most_s_;
  const Corpus& corpus_;
  std::unique_ptr<Farm> farm_;
  std::vector<Daemon> daemons_;
  std::unique_ptr<v1::Scheduler::Stub> scheduler_;
  // Valid requests.
  std::vector<v1::MeasureRequest> measures_;
  // Ids of all jobs. The first job has succeeded.
  std::vector<std::string> jobs_;
  int64_t imported_ = 0, deleted_ = 0;
};

}  // namespace kiln::fuzz
