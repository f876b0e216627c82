#include "tests/fleet/workers.h"

#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "base/hash/xxh3.h"
#include "compiler/dag/text.h"
#include "scheduler/dispatch/program_interface.h"

namespace kiln::fleet {
namespace {

using std::chrono::steady_clock;

constexpr uint64_t kBuilderStream = 1'000'000;
constexpr double kReference_s = 5e-3;
// Jobs that nobody watches take no time of a build back.
constexpr size_t kMostBuildTimes = 1'000'000;
// Each artifact begins with the time when it was made, which tells how long it waited for a runner.
using Stamp = int64_t;

Stamp StampOf(steady_clock::time_point time) { return time.time_since_epoch().count(); }

// 64 digits that differ for different programs. Nobody compares them with the program.
std::string CheapDigest(const v1::BuildRequest& request) {
  const uint64_t a = Xxh3(request.dag()), b = Xxh3(request.steps());
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", a, b, MixBits(a ^ b), MixBits(a + b));
}

}  // namespace

// The answer of a call. It deletes itself when gRPC is done with it.
class Workers::Call : public grpc::ServerUnaryReactor {
 public:
  void End(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }
  void OnCancel() override { End(grpc::Status(grpc::StatusCode::CANCELLED, "cancelled")); }
  void OnDone() override {
    if (--users_ == 0) delete this;
  }
  // Keeps the call until Release.
  void Hold() { ++users_; }
  void Release() { OnDone(); }

 private:
  std::atomic<bool> ended_ = false;
  std::atomic<int> users_ = 1;
};

class Workers::BuilderService : public v1::Builder::CallbackService {
 public:
  explicit BuilderService(Workers& workers) : workers_(workers) {}
  grpc::ServerUnaryReactor* Build(grpc::CallbackServerContext* context,
                                  const v1::BuildRequest* request, v1::BuildReply* reply) override {
    return workers_.Build(*context, *request, *reply);
  }

 private:
  Workers& workers_;
};

class Workers::RunnerService : public v1::Runner::CallbackService {
 public:
  explicit RunnerService(Workers& workers) : workers_(workers) {}
  grpc::ServerUnaryReactor* Measure(grpc::CallbackServerContext* context,
                                    const v1::MeasureRequest* request,
                                    v1::MeasureReply* reply) override {
    return workers_.Measure(*context, *request, *reply);
  }

 private:
  Workers& workers_;
};

Workers::Workers(const WorkerOptions& options, Figures& figures, Timers& timers)
    : options_(options), figures_(figures), timers_(timers) {
  for (int i = 0; i < options_.runners; ++i) workers_.push_back(MakeWorker(v1::RUNNER, i));
  for (int i = 0; i < options_.builders; ++i) workers_.push_back(MakeWorker(v1::BUILDER, i));
}

Workers::~Workers() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::unique_ptr<Workers::Worker> Workers::MakeWorker(v1::WorkerKind kind, int number) const {
  auto worker = std::make_unique<Worker>();
  const bool runs = kind == v1::RUNNER;
  const auto stream = static_cast<uint64_t>(number) + (runs ? 0 : kBuilderStream);
  worker->rng.seed(SplitSeed(options_.seed, stream));
  v1::WorkerState& state = worker->state;
  state.set_id(fmt::format("{}-{:04}", runs ? "runner" : "builder", number));
  state.set_kind(kind);
  state.set_slots(runs ? 1 : options_.builder_slots);
  state.add_keys("null");
  state.set_version("simulated");
  if (!runs) return worker;
  state.set_target("null");
  state.set_device("null");
  state.mutable_hardware()->set_num_cores(4);
  state.mutable_hardware()->set_vector_unit_bytes(64);
  state.mutable_hardware()->set_cache_line_bytes(64);
  state.mutable_device_model()->set_name("null");
  state.mutable_device_model()->set_cores(4);
  return worker;
}

// Each worker has an address of its own within 127.0.0.0/8, which is this machine.
Status Workers::Start() {
  builder_ = std::make_unique<BuilderService>(*this);
  runner_ = std::make_unique<RunnerService>(*this);
  grpc::ServerBuilder builder;
  builder.RegisterService(builder_.get());
  builder.RegisterService(runner_.get());
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(256 << 20);
  std::vector<std::string> hosts;
  std::vector<int> ports(workers_.size(), 0);
  for (size_t i = 0; i < workers_.size(); ++i) {
    hosts.push_back(fmt::format("127.1.{}.{}", i / 250, i % 250 + 1));
    builder.AddListeningPort(hosts.back() + ":0", grpc::InsecureServerCredentials(), &ports[i]);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Unavailable("cannot listen on the addresses of the workers");
  for (size_t i = 0; i < workers_.size(); ++i) {
    const std::string address = fmt::format("{}:{}", hosts[i], ports[i]);
    workers_[i]->state.set_address(address);
    by_address_[address] = workers_[i].get();
  }
  return OkStatus();
}

std::vector<v1::WorkerState> Workers::states() const {
  std::vector<v1::WorkerState> states;
  for (const auto& worker : workers_) states.push_back(worker->state);
  return states;
}

Workers::Worker* Workers::Called(grpc::CallbackServerContext& context) const {
  const grpc::string_ref authority = context.ExperimentalGetAuthority();
  const auto found = by_address_.find(std::string(authority.data(), authority.size()));
  return found == by_address_.end() ? nullptr : found->second;
}

Workers::Draw Workers::DrawFor(Worker& worker, const Latency& latency, bool one_at_a_time) {
  std::lock_guard lock(worker.mutex);
  Draw draw;
  const double chance = UniformReal(worker.rng);
  draw.time = latency.Draw(worker.rng);
  double limit = options_.unavailable;
  if (chance < limit) {
    draw.fate = Fate::kUnavailable;
  } else if (chance < (limit += options_.hang)) {
    draw.fate = Fate::kHang;
  } else if (one_at_a_time && chance < limit + options_.error) {
    draw.fate = Fate::kError;
  }
  const auto now = steady_clock::now();
  draw.end = now + draw.time;
  if (one_at_a_time) {
    draw.end = std::max(now, worker.busy_until) + draw.time;
    worker.busy_until = draw.end;
  }
  return draw;
}

grpc::ServerUnaryReactor* Workers::Answer(const Draw& draw) {
  auto* call = new Call;
  if (draw.fate == Fate::kHang) return call;
  const grpc::Status status =
      draw.fate == Fate::kUnavailable
          ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "a fault that the simulator drew")
          : grpc::Status::OK;
  if (draw.end <= steady_clock::now()) {
    call->End(status);
    return call;
  }
  call->Hold();
  timers_.At(draw.end, [call, status] {
    call->End(status);
    call->Release();
  });
  return call;
}

grpc::ServerUnaryReactor* Workers::Refuse(grpc::StatusCode code, const char* why) {
  auto* call = new Call;
  call->End(grpc::Status(code, why));
  return call;
}

std::shared_ptr<const v1::LaunchPlan> Workers::PlanOf(const std::string& dag) {
  std::lock_guard lock(plans_mutex_);
  std::shared_ptr<const v1::LaunchPlan>& plan = plans_[dag];
  if (plan != nullptr) return plan;
  auto made = std::make_shared<v1::LaunchPlan>();
  const auto text = dag::ParseDagText(dag);
  if (text.ok()) {
    const std::vector<v1::ArgSpec> arguments = scheduler::ArgumentsOf(*text);
    made->mutable_args()->Assign(arguments.begin(), arguments.end());
  }
  plan = made;
  return plan;
}

grpc::ServerUnaryReactor* Workers::Build(grpc::CallbackServerContext& context,
                                         const v1::BuildRequest& request, v1::BuildReply& reply) {
  ++figures_.builds;
  Worker* const worker = Called(context);
  if (worker == nullptr) return Refuse(grpc::StatusCode::NOT_FOUND, "no such worker");
  const Draw draw = DrawFor(*worker, options_.build, /*one_at_a_time=*/false);
  if (draw.fate == Fate::kUnavailable) ++figures_.unavailable;
  if (draw.fate == Fate::kHang) ++figures_.hangs;
  if (draw.fate != Fate::kAnswer) return Answer(draw);
  v1::Artifact& artifact = *reply.mutable_artifact();
  artifact.set_digest(CheapDigest(request));
  artifact.set_device("null");
  std::string& binary = *artifact.mutable_binary();
  binary.resize(std::max(options_.artifact_bytes, sizeof(Stamp) + sizeof(uint64_t)), 'x');
  const Stamp stamp = StampOf(draw.end);
  const uint64_t hash = Xxh3(request.steps());
  std::memcpy(binary.data(), &stamp, sizeof(stamp));
  std::memcpy(binary.data() + sizeof(stamp), &hash, sizeof(hash));
  *artifact.mutable_plan() = *PlanOf(request.dag());
  artifact.set_trial(request.trial());
  reply.set_build_s(1e-9 * static_cast<double>(draw.time.count()));
  if (request.steps() != "[]") {
    std::lock_guard lock(build_times_mutex_);
    if (build_times_.size() < kMostBuildTimes) {
      build_times_.try_emplace(request.trial(), steady_clock::now());
    }
  }
  return Answer(draw);
}

grpc::ServerUnaryReactor* Workers::Measure(grpc::CallbackServerContext& context,
                                           const v1::MeasureRequest& request,
                                           v1::MeasureReply& reply) {
  ++figures_.measures;
  Worker* const worker = Called(context);
  if (worker == nullptr) return Refuse(grpc::StatusCode::NOT_FOUND, "no such worker");
  {
    std::lock_guard lock(worker->mutex);
    if (request.has_reference()) {
      ++figures_.references;
      worker->references.insert(request.reference().digest());
    }
    if (!worker->references.contains(request.reference_digest())) {
      return Refuse(grpc::StatusCode::FAILED_PRECONDITION, "the reference is not known");
    }
  }
  const std::string& binary = request.artifact().binary();
  Stamp stamp = 0;
  uint64_t hash = 0;
  if (binary.size() >= sizeof(stamp) + sizeof(hash)) {
    std::memcpy(&stamp, binary.data(), sizeof(stamp));
    std::memcpy(&hash, binary.data() + sizeof(stamp), sizeof(hash));
    figures_.built_to_measure.Add(std::chrono::nanoseconds(StampOf(steady_clock::now()) - stamp));
  }
  const Draw draw = DrawFor(*worker, options_.run, /*one_at_a_time=*/true);
  if (draw.fate == Fate::kUnavailable) ++figures_.unavailable;
  if (draw.fate == Fate::kHang) ++figures_.hangs;
  if (draw.fate != Fate::kAnswer && draw.fate != Fate::kError) return Answer(draw);
  ++figures_.results;
  v1::TrialResult& result = *reply.mutable_result();
  if (draw.fate == Fate::kError) {
    ++figures_.error_results;
    result.set_error(v1::RUNTIME_DEVICE_ERROR);
    result.set_message("a fault that the simulator drew");
  } else {
    result.add_costs_s(1e-3 * (1 + static_cast<double>(MixBits(hash) % 1'000) / 1'000));
  }
  result.set_run_s(1e-9 * static_cast<double>(draw.time.count()));
  reply.set_reference_cost_s(kReference_s);
  return Answer(draw);
}

Timers::TimePoint Workers::TakeBuildTime(const std::string& trial) {
  std::lock_guard lock(build_times_mutex_);
  const auto found = build_times_.find(trial);
  if (found == build_times_.end()) return {};
  const Timers::TimePoint time = found->second;
  build_times_.erase(found);
  return time;
}

}  // namespace kiln::fleet
