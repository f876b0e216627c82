// Builders and runners that compile and run nothing: hundreds of them in one process, each with an
// address of its own, so that a scheduler has a connection to each.
//
// All of them are served by one gRPC server. Calls hold no thread while they wait: a call takes the
// time that was drawn for it, and a runner takes one call after the other, as a device does. What a
// worker draws depends on the seed, its number and the order of its calls alone.
//
// Thread-safe after Start.
#pragma once

#include <grpcpp/server.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "tests/fleet/figures.h"
#include "tests/fleet/latency.h"
#include "tests/fleet/timers.h"

namespace kiln::fleet {

struct WorkerOptions {
  int runners = 50, builders = 10;
  uint32_t builder_slots = 1;
  Latency build, run;
  // Shares of calls that are answered with UNAVAILABLE, that are never answered, and, of runs, that
  // are answered with an error of the program.
  double unavailable = 0, hang = 0, error = 0;
  size_t artifact_bytes = 2'048;
  uint64_t seed = 1;
};

class Workers {
 public:
  // `figures` and `timers` outlive this object.
  Workers(const WorkerOptions& options, Figures& figures, Timers& timers);
  // Cancels the calls that hang.
  ~Workers();

  // Unavailable if an address cannot be listened on.
  Status Start();
  // How the workers announce themselves, after Start.
  std::vector<v1::WorkerState> states() const;
  // When the Build of the trial JOB/NUMBER came; asked once for each trial. Zero: it is not known.
  Timers::TimePoint TakeBuildTime(const std::string& trial);

 private:
  // A worker: what its calls share.
  struct Worker {
    v1::WorkerState state;
    std::mutex mutex;
    Rng rng;
    Timers::TimePoint busy_until;      // runners
    std::set<std::string> references;  // runners: the digests that they know
  };
  // The fate of a call, which its worker drew.
  enum class Fate { kAnswer, kUnavailable, kHang, kError };
  struct Draw {
    Fate fate = Fate::kAnswer;
    Timers::TimePoint end;
    std::chrono::nanoseconds time{0};
  };
  class Call;
  class BuilderService;
  class RunnerService;

  std::unique_ptr<Worker> MakeWorker(v1::WorkerKind kind, int number) const;
  Worker* Called(grpc::CallbackServerContext& context) const;
  Draw DrawFor(Worker& worker, const Latency& latency, bool one_at_a_time);
  grpc::ServerUnaryReactor* Answer(const Draw& draw);
  static grpc::ServerUnaryReactor* Refuse(grpc::StatusCode code, const char* why);
  grpc::ServerUnaryReactor* Build(grpc::CallbackServerContext& context,
                                  const v1::BuildRequest& request, v1::BuildReply& reply);
  grpc::ServerUnaryReactor* Measure(grpc::CallbackServerContext& context,
                                    const v1::MeasureRequest& request, v1::MeasureReply& reply);
  // The plan of a computation, which is made once.
  std::shared_ptr<const v1::LaunchPlan> PlanOf(const std::string& dag);

  const WorkerOptions options_;
  Figures& figures_;
  Timers& timers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unordered_map<std::string, Worker*> by_address_;  // does not change after Start
  std::mutex plans_mutex_;
  std::unordered_map<std::string, std::shared_ptr<const v1::LaunchPlan>> plans_;
  std::mutex build_times_mutex_;
  std::unordered_map<std::string, Timers::TimePoint> build_times_;
  std::unique_ptr<BuilderService> builder_;
  std::unique_ptr<RunnerService> runner_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace kiln::fleet
