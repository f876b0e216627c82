#include "tests/fuzz/fuzz_rpc.h"

#include <arpa/inet.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/rng.h"
#include "proto/builder.grpc.pb.h"
#include "proto/channel.h"
#include "proto/runner.grpc.pb.h"
#include "proto/tracker.grpc.pb.h"
#include "tests/fuzz/mutate.h"

namespace kiln::fuzz {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

// What a valid request of a type is like, as text; types that are not here begin empty.
struct Example {
  std::string_view type, text;
};
constexpr Example kExamples[] = {
    {"kiln.v1.SubmitRequest",
     R"(spec { name: "fuzz" user: "fuzz" tasks { dag: "input A: float32[8]\nB[i: 8] = A[i] + 1.0\n" target: "null" description: "add" weight: 1 }
        options { trials: 2 policy: "sketch.random" seed: 1 measure { number: 1 repeat: 1 } } })"},
    {"kiln.v1.GetJobRequest", R"(job_id: "import")"},
    {"kiln.v1.BestRequest", R"(job_id: "import")"},
    {"kiln.v1.GetRecordRequest", "id: 1"},
    {"kiln.v1.ImportRecordsRequest",
     R"(line: "{\"i\": [[\"[\\\"k\\\", [8]]\", \"llvm\"], [[], [[\"SP\", 1, 0, 8, [4], 1]]]], \"r\": [[0.001], 0, 0.5, 1604912345], \"v\": \"v0.6\"}")"},
    {"kiln.v1.AnnounceRequest",
     R"(worker { id: "fuzz" kind: BUILDER address: "127.0.0.1:1" keys: "nothing" slots: 1 target: "llvm" })"},
    {"kiln.v1.AcquireRequest",
     R"(request_id: "r" scheduler_id: "fuzz" kind: BUILDER key: "nothing" user: "fuzz" wait_ms: 50 lease_ms: 100)"},
    {"kiln.v1.RenewRequest",
     R"(scheduler_id: "fuzz" leases { id: "l" lease_ms: 100 worker { id: "fuzz" kind: BUILDER address: "127.0.0.1:1" } })"},
    {"kiln.v1.ReleaseRequest", R"(scheduler_id: "fuzz" lease_ids: "l")"},
    {"kiln.v1.BuildRequest",
     R"(dag: "input A: float32[8]\nB[i: 8] = A[i] + 1.0\n" steps: "[[\"SP\", 1, 0, 8, [4], 1]]" target: "llvm")"},
};

// Calls that wait for something to happen, by design.
bool Waits(std::string_view method) { return method == "WatchJob" || method == "Acquire"; }

std::unique_ptr<Message> ExampleOf(const google::protobuf::Descriptor& type) {
  const Message* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  std::unique_ptr<Message> message(prototype->New());
  for (const Example& example : kExamples) {
    if (example.type != type.full_name()) continue;
    const bool good =
        google::protobuf::TextFormat::ParseFromString(std::string(example.text), message.get());
    KILN_CHECK(good, "{}", example.type);
  }
  return message;
}

std::string RequestBytes(const google::protobuf::Descriptor& type, Rng& rng) {
  const std::unique_ptr<Message> message = ExampleOf(type);
  const double kind = UniformReal(rng);
  if (kind > 0.15) MutateMessage(*message, rng);
  std::string bytes = message->SerializePartialAsString();
  if (kind > 0.8) bytes = MutateText(bytes, bytes, {}, 1 << 20, rng);
  if (kind < 0.03) {
    bytes.resize(static_cast<size_t>(UniformInt(rng, 5000)));
    for (char& c : bytes) c = static_cast<char>(rng());
  }
  return bytes;
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

struct Answer {
  grpc::Status status;
  std::vector<std::string> messages;
  bool abandoned = false;  // by us
};

// Sends the messages and, unless the call is to be abandoned, reads until it ends.
Answer CallMethod(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& requests, bool abandon) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(static_cast<int>(1000 * kMostSeconds)));
  const auto done = [&queue] {
    void* tag = nullptr;
    bool good = false;
    return queue.Next(&tag, &good) && good;
  };
  Answer answer;
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  bool open = done();
  for (size_t i = 0; open && i < requests.size(); ++i) {
    call->Write(Buffer(requests[i]), nullptr);
    open = done();
  }
  if (abandon) {
    context.TryCancel();
    answer.abandoned = true;
  } else if (open) {
    call->WritesDone(nullptr);
    done();
  }
  constexpr size_t kMostRead = 100'000;
  for (grpc::ByteBuffer message; answer.messages.size() < kMostRead;) {
    call->Read(&message, nullptr);
    if (!done()) break;
    answer.messages.push_back(BytesOf(message));
  }
  call->Finish(&answer.status, nullptr);
  done();
  queue.Shutdown();
  while (done()) {
  }
  return answer;
}

// A connection that says something else than a call, or nothing.
void SendGarbage(const std::string& address, Rng& rng) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) return;
  std::string bytes =
      Chance(rng, 0.7) ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "GET / HTTP/1.1\r\n\r\n";
  std::string frames(static_cast<size_t>(UniformInt(rng, 2000)), '\0');
  for (char& c : frames) c = static_cast<char>(Chance(rng, 0.5) ? 0 : rng());
  bytes += frames;
  (void)!send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (Chance(rng, 0.3)) shutdown(fd.get(), SHUT_WR);
}

int64_t MemoryOf(pid_t pid) {
  const auto statm = ReadFile(fmt::format("/proc/{}/statm", pid));
  long total = 0, resident = 0;
  if (!statm.ok() || std::sscanf(statm->c_str(), "%ld %ld", &total, &resident) != 2) return 0;
  return int64_t{resident} * sysconf(_SC_PAGESIZE);
}

}  // namespace

RpcFuzzer::RpcFuzzer(std::unique_ptr<Farm> farm) : farm_(std::move(farm)) {
  const auto add = [&](DaemonProcess& process, std::string service) {
    daemons_.push_back(
        {&process, std::move(service), MakeChannel(process.address()), MemoryOf(process.pid())});
  };
  add(farm_->tracker(), v1::Tracker::service_full_name());
  add(farm_->scheduler(), v1::Scheduler::service_full_name());
  add(farm_->builder(), v1::Builder::service_full_name());
  add(farm_->runner(), v1::Runner::service_full_name());
  scheduler_ = farm_->Connect();
}

StatusOr<std::unique_ptr<RpcFuzzer>> RpcFuzzer::Make() {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Farm> farm, Farm::Start());
  return std::unique_ptr<RpcFuzzer>(new RpcFuzzer(std::move(farm)));
}

void RpcFuzzer::Run(uint64_t seed, Findings& findings) {
  Rng rng(seed);
  // The scheduler has the most to say.
  const double weights[] = {3, 5, 2, 1};
  const Daemon& daemon = daemons_[static_cast<size_t>(PickWeighted(rng, weights))];
  if (Chance(rng, 0.05)) {
    SendGarbage(daemon.process->address(), rng);
  } else {
    Call(daemon, rng(), findings);
  }
  if (daemon.process->Running()) return;
  findings.Add("crash", seed,
               fmt::format("{} has ended\n{}", daemon.service, daemon.process->Log()), "");
  (void)daemon.process->Start();
}

void RpcFuzzer::Call(const Daemon& daemon, uint64_t seed, Findings& findings) {
  Rng rng(seed);
  // A message of each service: what nothing refers to is not linked.
  const google::protobuf::FileDescriptor* const files[] = {
      v1::ListRequest::descriptor()->file(), v1::SubmitRequest::descriptor()->file(),
      v1::BuildRequest::descriptor()->file(), v1::MeasureRequest::descriptor()->file()};
  const google::protobuf::ServiceDescriptor* service = nullptr;
  for (const auto* file : files) {
    if (file->service(0)->full_name() == daemon.service) service = file->service(0);
  }
  const MethodDescriptor& method =
      *service->method(static_cast<int>(UniformInt(rng, service->method_count())));
  std::vector<std::string> requests;
  for (int64_t n = method.client_streaming() ? UniformInt(rng, 8) : 1; n > 0; --n)
    requests.push_back(RequestBytes(*method.input_type(), rng));
  const bool abandon = Waits(method.name()) || Chance(rng, 0.05);
  const bool counted = method.name() == "Submit" || method.name() == "ImportRecords";
  const double start_s = Clock::Real().MonotonicSeconds();
  const Answer answer =
      CallMethod(daemon.channel, fmt::format("/{}/{}", daemon.service, method.name()), requests,
                 abandon && !counted);
  const double took_s = Clock::Real().MonotonicSeconds() - start_s;
  if (!answer.abandoned && took_s >= kMostSeconds) {
    std::string input;
    for (const std::string& request : requests) input += request;
    findings.Add("hang", seed,
                 fmt::format("{}.{} took {:.1f} s", daemon.service, method.name(), took_s), input);
  }
  if (!answer.status.ok() || answer.messages.empty()) return;
  if (method.name() == "Submit") NoteSubmitted(answer.messages[0]);
  if (method.name() == "ImportRecords") NoteImported(answer.messages[0]);
}

void RpcFuzzer::NoteSubmitted(const std::string& reply) {
  v1::SubmitReply submitted;
  if (!submitted.ParseFromString(reply)) return;
  ++submitted_;
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_job_id(submitted.job_id());
  v1::CancelJobReply ignored;
  scheduler_->CancelJob(&context, request, &ignored);
}

void RpcFuzzer::NoteImported(const std::string& reply) {
  v1::ImportRecordsReply imported;
  if (imported.ParseFromString(reply)) imported_ += static_cast<int64_t>(imported.imported());
}

void RpcFuzzer::CheckFarm(uint64_t seed, Findings& findings) {
  for (const Daemon& daemon : daemons_) {
    const int64_t grown = MemoryOf(daemon.process->pid()) - daemon.bytes;
    if (grown > kMostBytes)
      findings.Add("growth", seed, fmt::format("{} grew by {} bytes", daemon.service, grown), "");
  }
  const auto within = [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(static_cast<int>(kMostSeconds)));
  };
  grpc::ClientContext list;
  within(list);
  v1::ListJobsReply jobs;
  const grpc::Status listed = scheduler_->ListJobs(&list, {}, &jobs);
  int64_t made = 0;
  for (const v1::JobStatus& job : jobs.jobs()) made += job.id() != "import";
  if (!listed.ok() || made != submitted_) {
    findings.Add("counts", seed,
                 fmt::format("the scheduler lists {} jobs, {} were taken; {}", made, submitted_,
                             listed.error_message()),
                 "");
  }
  grpc::ClientContext stream;
  within(stream);
  v1::ListRecordsRequest of_import;
  of_import.set_job_id("import");
  of_import.set_include_errors(true);
  const auto reader = scheduler_->ListRecords(&stream, of_import);
  int64_t records = 0;
  for (v1::Record record; reader->Read(&record);) ++records;
  const grpc::Status read = reader->Finish();
  if (records != imported_ || (!read.ok() && imported_ > 0)) {
    findings.Add("counts", seed,
                 fmt::format("the scheduler lists {} imported records, {} were taken; {}", records,
                             imported_, read.error_message()),
                 "");
  }
  const auto tracker = v1::Tracker::NewStub(daemons_[0].channel);
  grpc::ClientContext workers;
  within(workers);
  v1::ListReply known;
  const grpc::Status answered = tracker->List(&workers, {}, &known);
  if (!answered.ok())
    findings.Add("counts", seed, "the tracker does not answer: " + answered.error_message(), "");
}

}  // namespace kiln::fuzz
