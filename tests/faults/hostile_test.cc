// Runs hostile clients beside an honest job: the farm survives, and the job's results are exact.
#include <arpa/inet.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "base/file/fd.h"
#include "base/numbers/rng.h"
#include "base/process/descriptor_limit.h"
#include "base/server/net.h"
#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/admission_control_testing.h"
#include "rpc/channel.h"
#include "tests/faults/farm_testing.h"

namespace kiln {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr uint32_t kTrials = 600;
constexpr int64_t kMaxGrowthMib = 300;
constexpr int64_t kMaxTrackerGrowthMib = 64;

int64_t ResidentMib(pid_t pid) {
  std::ifstream statm(fmt::format("/proc/{}/statm", pid));
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096 >> 20;
}

// Returns the largest memory that the process has had.
int64_t PeakMib(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) >> 10;
  }
  return 0;
}

std::string Noise(Rng& rng, size_t bytes) {
  std::string noise(bytes, '\0');
  for (char& c : noise) c = static_cast<char>(rng());
  return noise;
}

// Sends one request of any bytes to any method.
grpc::Status CallWith(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                      const grpc::Slice& slice, absl::Duration limit = absl::Seconds(2)) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(limit));
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  wait();
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  wait();
  grpc::ByteBuffer answer;
  do {
    call->Read(&answer, nullptr);
  } while (wait());
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  return status;
}

class HostileTest : public FarmTest {
 protected:
  v1::JobSpec HonestJob() {
    v1::JobSpec spec = MatmulJob(kTrials);
    spec.mutable_tasks(0)->set_target("null");
    spec.mutable_options()->set_policy("sketch.random");
    spec.mutable_options()->mutable_measure()->set_cooldown_ms(20);
    return spec;
  }

  // Does `harm` again and again beside the job, until the job has ended and the harm was done often
  // enough.
  void RunBeside(const std::function<void(Rng&)>& harm, int times = 10) {
    SCOPED_TRACE(fmt::format("seed {}", kSeed));
    const std::vector<pid_t> pids = {farm_->tracker().pid(), farm_->scheduler().pid(),
                                     farm_->builder().pid(), farm_->runner().pid()};
    std::vector<int64_t> before_mib;
    for (const pid_t pid : pids) before_mib.push_back(ResidentMib(pid));
    const std::string job = Submit(HonestJob());
    std::atomic<int> shots{0};
    std::jthread hostile([&](const std::stop_token& stop) {
      Rng rng(kSeed);
      for (; !stop.stop_requested(); ++shots) harm(rng);
    });
    ExpectWholeAtEnd(job, kTrials, {});
    for (int i = 0; i < 600 && shots < times; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    hostile.request_stop();
    hostile.join();
    EXPECT_GE(shots, times);
    for (size_t i = 0; i < pids.size(); ++i) {
      EXPECT_LT(ResidentMib(pids[i]) - before_mib[i], kMaxGrowthMib);
    }
    for (DaemonProcess* daemon :
         {&farm_->tracker(), &farm_->scheduler(), &farm_->builder(), &farm_->runner()}) {
      EXPECT_TRUE(daemon->Running()) << daemon->Log();
    }
  }

  std::shared_ptr<grpc::Channel> ChannelTo(DaemonProcess& daemon) {
    return MakeChannel(daemon.address());
  }
};

TEST_F(HostileTest, GarbageToEveryMethod) {
  StartFarm("null");
  struct Endpoint {
    std::shared_ptr<grpc::Channel> channel;
    std::string method;
  };
  std::vector<Endpoint> endpoints;
  const auto add = [&](DaemonProcess& daemon, const google::protobuf::Descriptor& message) {
    const auto& service = *message.file()->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      endpoints.push_back({ChannelTo(daemon),
                           fmt::format("/{}/{}", service.full_name(), service.method(i)->name())});
    }
  };
  add(farm_->tracker(), *v1::AnnounceRequest::descriptor());
  add(farm_->scheduler(), *v1::SubmitRequest::descriptor());
  add(farm_->builder(), *v1::BuildRequest::descriptor());
  add(farm_->runner(), *v1::MeasureRequest::descriptor());
  RunBeside([&](Rng& rng) {
    const Endpoint& endpoint = PickFrom(rng, endpoints);
    CallWith(endpoint.channel, endpoint.method,
             Noise(rng, static_cast<size_t>(UniformInt(rng, 200))));
  });
}

// Sends workers that do not exist, leases that were never given, and releases of all sorts.
TEST_F(HostileTest, AnnouncementsRenewalsAndReleases) {
  StartFarm("null");
  const auto stub = v1::Tracker::NewStub(ChannelTo(farm_->tracker()));
  const auto worker = [](Rng& rng) {
    v1::WorkerState state;
    state.set_id(fmt::format("w{}", UniformInt(rng, 50)));
    state.set_kind(static_cast<v1::WorkerKind>(UniformInt(rng, 4)));
    state.set_address(fmt::format("127.0.0.1:{}", UniformInt(rng, 3)));
    state.add_keys("made-up");
    state.set_slots(static_cast<uint32_t>(UniformInt(rng, 5000)));
    v1::DeviceModel& model = *state.mutable_device_model();
    // The name has ASCII only, because other bytes do not get through the parser.
    for (int64_t i = UniformInt(rng, 10); i > 0; --i)
      model.mutable_name()->push_back(static_cast<char>(UniformInt(rng, 128)));
    model.set_compute_capability(static_cast<int32_t>(UniformIn(rng, -1, 100)));
    model.set_multiprocessors(static_cast<int32_t>(UniformIn(rng, -1000, 100'000)));
    model.set_multiprocessors_in_clusters_of_8(static_cast<int32_t>(UniformInt(rng, 1 << 20)));
    model.set_l2_bytes(static_cast<int64_t>(UniformInt(rng, int64_t{1} << 60)));
    return state;
  };
  RunBeside([&](Rng& rng) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
    switch (UniformInt(rng, 4)) {
      case 0: {
        v1::AnnounceRequest request;
        *request.mutable_worker() = worker(rng);
        request.set_rejoining(Chance(rng, 0.5));
        v1::AnnounceReply reply;
        stub->Announce(&context, request, &reply);
        break;
      }
      case 1: {
        v1::RenewRequest request;
        request.set_scheduler_id("eve");
        for (int i = 0; i < 20; ++i) {
          v1::Lease& lease = *request.add_leases();
          lease.set_id(fmt::format("lease-{}", UniformInt(rng, 1000)));
          *lease.mutable_worker() = worker(rng);
        }
        v1::RenewReply reply;
        stub->Renew(&context, request, &reply);
        break;
      }
      case 2: {
        v1::ReleaseRequest request;
        request.set_scheduler_id("eve");
        for (int i = 0; i < 1000; ++i) request.add_lease_ids(fmt::format("{}", rng()));
        v1::ReleaseReply reply;
        stub->Release(&context, request, &reply);
        break;
      }
      default: {
        // The request has 3 MB of keys.
        v1::AnnounceRequest request;
        *request.mutable_worker() = worker(rng);
        for (int i = 0; i < 3; ++i) request.mutable_worker()->add_keys(std::string(1 << 20, 'k'));
        v1::AnnounceReply reply;
        const grpc::Status status = stub->Announce(&context, request, &reply);
        if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
            << status.error_message();
        EXPECT_EQ(status.error_message(),
                  "WorkerState.keys has 1048576 bytes, at most 256 are accepted");
      }
    }
  });
}

TEST_F(HostileTest, LargeMessages) {
  StartFarm("null");
  const auto tracker = v1::Tracker::NewStub(ChannelTo(farm_->tracker()));
  const auto scheduler = v1::Scheduler::NewStub(ChannelTo(farm_->scheduler()));
  const auto runner = v1::Runner::NewStub(ChannelTo(farm_->runner()));
  const std::string large(48 << 20, 'x');
  const int64_t before_mib = PeakMib(farm_->tracker().pid());
  RunBeside([&](Rng& rng) {
    grpc::ClientContext context;
    switch (UniformInt(rng, 3)) {
      case 0: {
        v1::AnnounceRequest request;
        request.mutable_worker()->set_device(large);
        v1::AnnounceReply reply;
        const grpc::Status status = tracker->Announce(&context, request, &reply);
        EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
            << status.error_message();
        break;
      }
      case 1: {
        v1::SubmitRequest request;
        request.mutable_spec()->set_name(large);
        v1::SubmitReply reply;
        const grpc::Status status = scheduler->Submit(&context, request, &reply);
        EXPECT_EQ(status.error_message(),
                  "JobSpec.name has 50331648 bytes, at most 1024 are accepted");
        break;
      }
      default: {
        v1::MeasureRequest request;
        request.set_reference_digest(large);
        v1::MeasureReply reply;
        const grpc::Status status = runner->Measure(&context, request, &reply);
        EXPECT_EQ(status.error_message(),
                  "MeasureRequest.reference_digest has 50331648 bytes, at most 256 are accepted");
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  // Requests that are refused for their size are not all in memory at once.
  EXPECT_LT(PeakMib(farm_->tracker().pid()) - before_mib, kMaxTrackerGrowthMib);
}

// Opens streams and leaves them, as clients do that neither send nor read.
TEST_F(HostileTest, IdleStreams) {
  StartFarm("null");
  struct Idle {
    grpc::ClientContext context;
    v1::ImportRecordsReply reply;
    std::unique_ptr<grpc::ClientWriter<v1::ImportRecordsRequest>> stream;
  };
  const auto stub = v1::Scheduler::NewStub(ChannelTo(farm_->scheduler()));
  std::vector<std::unique_ptr<Idle>> idle;
  const auto leave_open = [&](Rng&) {
    if (idle.size() < 100) {
      idle.push_back(std::make_unique<Idle>());
      idle.back()->stream = stub->ImportRecords(&idle.back()->context, &idle.back()->reply);
      v1::ImportRecordsRequest request;
      request.set_line("# nothing");
      idle.back()->stream->Write(request);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  RunBeside(leave_open, 100);
  ASSERT_EQ(idle.size(), 100u);
  // Idle streams hold up no other call.
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::ImportRecordsReply reply;
  const auto stream = stub->ImportRecords(&context, &reply);
  v1::ImportRecordsRequest request;
  request.set_line(R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.2"})");
  EXPECT_TRUE(stream->Write(request));
  stream->WritesDone();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  for (const auto& one : idle) {
    one->context.TryCancel();
    one->stream->Finish();
  }
}

std::string Squares(int count) {
  std::string text = "input X0: float32[8]\n";
  for (int i = 0; i < count; ++i) text += fmt::format("X{}[i: 8] = X{}[i] * X{}[i]\n", i + 1, i, i);
  return text;
}

std::string Chain(int count) {
  std::string text = "input X0: float32[8]\n";
  for (int i = 0; i < count; ++i) text += fmt::format("X{}[i: 8] = X{}[i] + 1.0\n", i + 1, i);
  return text;
}

// The computations are valid and small. The first two double in size with each line when they are
// inlined; the third is long.
TEST_F(HostileTest, CostlyComputationsEndWhenAskedTo) {
  StartFarm("null");
  const auto scheduler = farm_->Connect();
  // The first two have few candidates, so their jobs may end by themselves before they are asked
  // to, within a second on an idle machine.
  for (const auto& [text, until_asked_ms] :
       {std::pair(Squares(16), 100), {Squares(60), 1000}, {Chain(4'000), 1000}}) {
    v1::JobSpec spec = HonestJob();
    spec.mutable_tasks(0)->set_dag(text);
    spec.mutable_options()->set_policy("sketch.xgb");
    spec.mutable_options()->set_trials(100'000);
    const std::string job = Submit(spec);
    v1::JobStatus status;
    for (int i = 0; i < 600 && !(Get(job, &status) && status.state() == v1::RUNNING); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(until_asked_ms));
    v1::CancelJobRequest request;
    request.set_job_id(job);
    v1::CancelJobReply reply;
    grpc::ClientContext context;
    const grpc::Status cancelled = scheduler->CancelJob(&context, request, &reply);
    const bool has_ended = Get(job, &status) && status.state() == v1::SUCCEEDED;
    EXPECT_TRUE(cancelled.ok() || has_ended) << cancelled.error_message();
    // This job runs when the scheduler is told to stop.
    Submit(spec);
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  // The time-out of Stop is 20 s.
  ASSERT_OK_AND_ASSIGN(const ExitStatus exit, farm_->scheduler().Stop());
  EXPECT_TRUE(exit.ok()) << exit.ToString();
}

TEST_F(HostileTest, EveryMethodOfEveryServiceAsksForTheSecret) {
  const Secret secret = Secret::Random();
  StartFarm(Farm::Options{.device = "null", .secret = secret});
  const auto expect_door = [&](DaemonProcess& daemon, const google::protobuf::Descriptor& message) {
    ExpectAdmissionAtAllMethods(daemon.address(), *message.file()->service(0), secret);
  };
  expect_door(farm_->tracker(), *v1::AnnounceRequest::descriptor());
  expect_door(farm_->scheduler(), *v1::SubmitRequest::descriptor());
  expect_door(farm_->builder(), *v1::BuildRequest::descriptor());
  expect_door(farm_->runner(), *v1::MeasureRequest::descriptor());
}

// Clients without the secret get nowhere, and clients with the secret work as usual.
TEST_F(HostileTest, WithoutTheSecret) {
  const Secret secret = Secret::Random();
  StartFarm(Farm::Options{.device = "null", .secret = secret});
  const auto tracker = v1::Tracker::NewStub(ChannelTo(farm_->tracker()));
  const auto wrong =
      v1::Scheduler::NewStub(MakeChannel(farm_->scheduler().address(), Secret::Random()));
  RunBeside([&](Rng& rng) {
    grpc::ClientContext context;
    grpc::Status status;
    if (Chance(rng, 0.5)) {
      v1::AnnounceRequest request;
      request.mutable_worker()->set_id("eve");
      request.mutable_worker()->set_kind(v1::BUILDER);
      request.mutable_worker()->set_address("127.0.0.1:9");
      request.mutable_worker()->add_keys("null");
      request.mutable_worker()->set_slots(1000);
      v1::AnnounceReply reply;
      status = tracker->Announce(&context, request, &reply);
    } else {
      v1::ListJobsReply reply;
      status = wrong->ListJobs(&context, {}, &reply);
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
}

// Attacks of strangers on the runner of a farm with a secret, and an honest call beside them.
class UnauthenticatedCallerTest : public HostileTest {
 protected:
  void SetUp() override {
    RaiseDescriptorLimit();
    StartFarm(Farm::Options{.device = "null", .secret = secret_});
  }

  // Opens a connection of its own, with a wrong secret.
  std::shared_ptr<grpc::Channel> UnauthenticatedChannel() {
    return MakeChannel(farm_->runner().address(), Secret::Random());
  }

  int64_t Descriptors() const {
    const std::filesystem::directory_iterator all(
        fmt::format("/proc/{}/fd", farm_->runner().pid()));
    return std::distance(begin(all), end(all));
  }

  // The runner answers clients that know the secret.
  void ExpectAnswer() {
    const auto stub = v1::Runner::NewStub(MakeChannel(farm_->runner().address(), secret_));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::MeasureReply reply;
    EXPECT_EQ(stub->Measure(&context, {}, &reply).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }

  const Secret secret_ = Secret::Random();
};

TEST_F(UnauthenticatedCallerTest, LargeRequestsTakeNoMemory) {
  constexpr int kCallers = 16;
  constexpr int64_t kMaxMib = 64;
  const grpc::Slice large(std::string(100 << 20, 'x'));
  const int64_t before_mib = PeakMib(farm_->runner().pid());
  std::vector<std::jthread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 3; ++j) {
        const grpc::Status status =
            CallWith(UnauthenticatedChannel(), "/kiln.v1.Runner/Measure", large, absl::Seconds(20));
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
      }
    });
  }
  for (int i = 0; i < 10; ++i) ExpectAnswer();
  callers.clear();
  EXPECT_LT(PeakMib(farm_->runner().pid()) - before_mib, kMaxMib);
  ExpectAnswer();
}

TEST_F(UnauthenticatedCallerTest, SilentConnectionsTakeFewDescriptors) {
  constexpr int kConnections = 1'500;
  ASSERT_GT(DescriptorLimit(), kConnections + 200);
  ASSERT_OK_AND_ASSIGN(const HostPort runner, ParseHostPort(farm_->runner().address()));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(runner.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int64_t before = Descriptors();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < kConnections; ++i) {
    silent.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
              0);
    if (i % 300 == 0) ExpectAnswer();
  }
  ExpectAnswer();
  EXPECT_LT(Descriptors() - before, 700);
}

TEST_F(UnauthenticatedCallerTest, SilentStreamsTakeNoThreads) {
  constexpr int kStreams = 2'500;
  constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  const auto channel =
      grpc::CreateChannel(farm_->runner().address(), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
    grpc::Status status;
  };
  std::vector<std::unique_ptr<Stream>> streams;
  const auto wait = [&] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Stream>());
    Stream& stream = *streams.back();
    stream.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream.call = stub.PrepareCall(&stream.context, kReflection, &queue);
    stream.call->StartCall(nullptr);
    wait();
    if (i % 500 == 0) ExpectAnswer();
  }
  ExpectAnswer();
  for (const auto& stream : streams) {
    stream->call->Finish(&stream->status, nullptr);
    wait();
    EXPECT_EQ(stream->status.error_code(), grpc::StatusCode::UNAUTHENTICATED)
        << stream->status.error_message();
  }
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  kiln::InitGrpc();
  return RUN_ALL_TESTS();
}
