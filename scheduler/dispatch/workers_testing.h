// Builders and runners in the test's own process that compile and run nothing, and leases on them.
// The fakes fail when the test says so. A fake ends its calls before it goes, so objects that its
// hook refers to are declared before it.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/hash/digest.h"
#include "base/server/grpc_server.h"
#include "compiler/dag/text.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "rpc/lease_source_testing.h"
#include "scheduler/dispatch/dispatch.h"
#include "scheduler/dispatch/lease_factory.h"
#include "scheduler/dispatch/program_interface.h"

namespace kiln::scheduler {

// A service on a port of its own, which it keeps over restarts, and its announcement.
class FakeWorker {
 public:
  FakeWorker(grpc::Service& service, v1::WorkerKind kind, std::string id, uint32_t slots = 1)
      : service_(service) {
    state_.set_id(std::move(id));
    state_.set_kind(kind);
    state_.set_slots(slots);
    state_.add_keys("null");
    if (kind == v1::RUNNER) {
      state_.set_target("null");
      state_.set_device("fake device");
      state_.mutable_hardware()->set_num_cores(4);
      state_.mutable_hardware()->set_vector_unit_bytes(64);
      state_.mutable_hardware()->set_cache_line_bytes(64);
      state_.mutable_device_model()->set_name("fake device");
      state_.mutable_device_model()->set_cores(4);
    }
    Listen("127.0.0.1:0");
    state_.set_address(server_->address());
  }

  v1::WorkerState& state() { return state_; }
  void StopListening() { server_.reset(); }
  void ListenAgain() { Listen(state_.address()); }

 private:
  void Listen(const std::string& address) {
    auto server = GrpcServer::Start({.listen = address, .services = {&service_}});
    KILN_CHECK(server.ok(), "{}", server.status().ToString());
    server_ = *std::move(server);
  }

  grpc::Service& service_;
  v1::WorkerState state_;
  std::unique_ptr<GrpcServer> server_;
};

// The artifact's bytes are the steps, or the source is, if that is asked for. The artifact has the
// arguments of the computation, unless the hook gave others.
class FakeBuilder : public v1::Builder::Service {
 public:
  // Called first. An error, or a reply with an error kind, becomes the answer.
  using Hook =
      std::function<grpc::Status(grpc::ServerContext&, const v1::BuildRequest&, v1::BuildReply&)>;
  explicit FakeBuilder(Hook hook = nullptr) : hook_(std::move(hook)) {}
  ~FakeBuilder() override { workers.clear(); }

  grpc::Status Build(grpc::ServerContext* context, const v1::BuildRequest* request,
                     v1::BuildReply* reply) override {
    ++calls;
    if (hook_ != nullptr) {
      const grpc::Status status = hook_(*context, *request, *reply);
      if (!status.ok() || reply->error() != v1::NO_ERROR) return status;
    }
    reply->set_build_s(0.01);
    if (request->source_only() && makes_source) {
      reply->set_source("source of " + request->steps());
      reply->mutable_artifact();
    } else {
      reply->mutable_artifact()->set_binary(request->steps());
    }
    const auto text = dag::ParseDagText(request->dag());
    if (text.ok() && !reply->artifact().has_plan()) {
      const std::vector<v1::ArgSpec> arguments = ArgumentsOf(*text);
      reply->mutable_artifact()->mutable_plan()->mutable_args()->Assign(arguments.begin(),
                                                                        arguments.end());
    }
    reply->mutable_artifact()->set_digest(Sha256Hex(request->dag() + request->steps()));
    return grpc::Status::OK;
  }

  std::vector<std::unique_ptr<FakeWorker>> workers;  // workers that serve this builder
  std::atomic<int> calls{0};
  bool makes_source = true;  // false: as a builder of an old version, which compiles in any case

 private:
  const Hook hook_;
};

// Costs are a function of the artifact: 1 to 2 ms. The reference costs 5 ms.
class FakeRunner : public v1::Runner::Service {
 public:
  using Hook = std::function<grpc::Status(grpc::ServerContext&, const v1::MeasureRequest&,
                                          v1::MeasureReply&)>;
  explicit FakeRunner(Hook hook = nullptr) : hook_(std::move(hook)) {}
  ~FakeRunner() override { workers.clear(); }

  grpc::Status Measure(grpc::ServerContext* context, const v1::MeasureRequest* request,
                       v1::MeasureReply* reply) override {
    ++calls;
    {
      std::lock_guard lock(mutex_);
      if (request->has_reference()) {
        ++references_sent;
        known_.insert(request->reference().digest());
      }
      if (known_.count(request->reference_digest()) == 0) {
        return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the reference is not known");
      }
    }
    if (hook_ != nullptr) {
      const grpc::Status status = hook_(*context, *request, *reply);
      if (!status.ok() || reply->has_result()) return status;
    }
    reply->mutable_result()->add_costs_s(CostOf(request->artifact().binary()));
    reply->set_reference_cost_s(5e-3);
    ++measured;
    return grpc::Status::OK;
  }

  static double CostOf(const std::string& steps) {
    return 1e-3 * (1 + static_cast<double>(Xxh3(steps) % 1'000) / 1'000);
  }

  std::vector<std::unique_ptr<FakeWorker>> workers;  // workers that serve this runner
  std::atomic<int> calls{0};
  std::atomic<int> measured{0};
  std::atomic<int> references_sent{0};

 private:
  const Hook hook_;
  std::mutex mutex_;
  std::set<std::string> known_;
};

// A device as a runner has it: it takes one call at a time, in order of arrival. With idle time it
// takes one reading after another until another call waits, a hundred at most. A trial's cost is
// known after five readings; the cost of a candidate that is read again is never known well enough.
class FakeDevice {
 public:
  explicit FakeDevice(int reading_ms) : reading_(reading_ms) {}

  void Measure(grpc::ServerContext& context, const v1::MeasureRequest& request,
               v1::MeasureReply& reply) {
    const absl::Time asked = absl::Now();
    const int ticket = tickets_++;
    while (serving_ != ticket) absl::SleepFor(absl::Microseconds(200));
    const absl::Time begin = absl::Now();
    const absl::Duration idle = absl::Milliseconds(request.options().idle_ms());
    const int most = request.options().early_stop_ratio() > 0 ? 5 : 100;
    v1::TrialResult& result = *reply.mutable_result();
    const int least = std::max<int>(1, static_cast<int>(request.options().repeat()));
    const auto goes_on = [&] {
      if (context.IsCancelled()) return false;
      if (result.costs_s_size() < least) return true;
      return absl::Now() < begin + idle && result.costs_s_size() < most && tickets_ == ticket + 1;
    };
    do {
      absl::SleepFor(absl::Milliseconds(reading_));
      result.add_costs_s(FakeRunner::CostOf(request.artifact().binary()));
    } while (goes_on());
    ++serving_;
    result.set_run_s(absl::ToDoubleSeconds(absl::Now() - begin));
    result.mutable_times()->set_run_wait_s(absl::ToDoubleSeconds(begin - asked));
    reply.set_reference_cost_s(5e-3);
  }

 private:
  const int reading_;
  std::atomic<int> tickets_{0}, serving_{0};
};

// The two sources of leases that all jobs of a test share.
class FakeCluster {
 public:
  FakeLeaseSource builders, runners;

  // Returns the lease specs that the jobs have asked for so far.
  std::vector<LeaseSpec> specs() {
    std::lock_guard lock(mutex_);
    return specs_;
  }
  void AddBuilder(FakeBuilder& builder, const std::string& id, uint32_t slots) {
    builder.workers.push_back(std::make_unique<FakeWorker>(builder, v1::BUILDER, id, slots));
    builders.AddWorker(builder.workers.back()->state());
  }
  void AddRunner(FakeRunner& runner, const std::string& id, const std::string& target = "null") {
    runner.workers.push_back(std::make_unique<FakeWorker>(runner, v1::RUNNER, id));
    runner.workers.back()->state().set_target(target);
    runners.AddWorker(runner.workers.back()->state());
  }

  LeaseFactory factory() {
    return [this](const LeaseSpec& spec) {
      {
        std::lock_guard lock(mutex_);
        specs_.push_back(spec);
      }
      Leases leases;
      leases.source = std::make_unique<Borrowed>(spec.kind == v1::BUILDER ? builders : runners);
      return leases;
    };
  }

 private:
  class Borrowed : public LeaseSource {
   public:
    explicit Borrowed(LeaseSource& source) : source_(source) {}
    StatusOr<LeasedWorker> Acquire(absl::Duration timeout, std::stop_token stop,
                                   const std::vector<std::string>& avoid) override {
      return source_.Acquire(timeout, std::move(stop), avoid);
    }

   private:
    LeaseSource& source_;
  };

  std::mutex mutex_;
  std::vector<LeaseSpec> specs_;
};

// Asks `done` every few milliseconds until it returns true. Returns false after ten seconds.
template <typename Done>
bool Eventually(const Done& done) {
  for (int i = 0; i < 2'000; ++i) {
    if (done()) return true;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return false;
}

// Pauses short enough for tests.
inline DispatchOptions QuickDispatch() {
  DispatchOptions options;
  options.max_builders = 4;
  options.max_runners = 4;
  options.connect = std::chrono::milliseconds(300);
  options.build_slack = options.measure_slack = std::chrono::milliseconds(500);
  options.reference_slack = std::chrono::milliseconds(500);
  options.idle_release = std::chrono::milliseconds(100);
  options.first_backoff = std::chrono::milliseconds(20);
  options.longest_backoff = std::chrono::milliseconds(100);
  return options;
}

}  // namespace kiln::scheduler
