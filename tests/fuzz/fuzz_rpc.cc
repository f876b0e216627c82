#include "tests/fuzz/fuzz_rpc.h"

#include <arpa/inet.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/file/file.h"
#include "proto/tracker.grpc.pb.h"
#include "rpc/channel.h"
#include "tests/fuzz/mutate.h"

namespace kiln::fuzz {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr int kMaxAsked_ms = 1'000;

// Text of a valid request of a type. $JOB stands for a job that has ended, $ANY for any job. Types
// that are not here begin empty.
struct Example {
  std::string_view type, text;
};
constexpr Example kExamples[] = {
    {"kiln.v1.GetJobRequest", R"(job_id: "$ANY")"},
    {"kiln.v1.ListJobsRequest", "limit: 3"},
    {"kiln.v1.WatchJobRequest", R"(job_id: "$JOB")"},
    {"kiln.v1.CancelJobRequest", R"(job_id: "$ANY")"},
    {"kiln.v1.CallbackReply", R"(job_id: "$ANY" user: "fuzz" values: 1)"},
    {"kiln.v1.ResumeJobRequest", R"(job_id: "$ANY")"},
    {"kiln.v1.BestRequest", R"(job_id: "$ANY")"},
    {"kiln.v1.GetRecordRequest", "id: 2"},
    {"kiln.v1.ListRecordsRequest", R"(job_id: "$JOB" include_errors: true)"},
    {"kiln.v1.ListAutotvmRecordsRequest", R"(target: "llvm" include_errors: true)"},
    {"kiln.v1.DeleteRecordsRequest", "ids: 100000000"},
    {"kiln.v1.DeleteAutotvmRecordsRequest", "ids: 1"},
    {"kiln.v1.BindKeyRequest",
     R"(workload_key: "[\"k\", [8]]" dag: "input A: float32[8]\nB[i: 8] = A[i] + 1.0\n")"},
    {"kiln.v1.TrainModelRequest",
     R"(name: "m" replace: true records { target: "llvm" include_errors: true } programs: 50 parameters { key: "max_rounds" value: 3 })"},
    {"kiln.v1.TestModelRequest", R"(model: "m" records { job_id: "$JOB" } programs: 50)"},
    {"kiln.v1.GetModelRequest", R"(name: "m")"},
    {"kiln.v1.ModelPart", R"(name: "n" part: "kiln-cost-model 1 2 0 00\n{}")"},
    {"kiln.v1.DeleteModelRequest", R"(name: "n")"},
    {"kiln.v1.PredictRequest",
     R"(model: "m" programs { dag: "input A: float32[8]\nB[i: 8] = A[i] + 1.0\n" target: "llvm" steps: "[]" })"},
    {"kiln.v1.QueryScheduleRequest",
     R"(dag: "input A: float32[8]\nB[i: 8] = A[i] + 1.0\n" target: "llvm" include_compatible: true or_sample: true)"},
    {"kiln.v1.SetScheduleRequest",
     R"(dag: "input A: float32[8]\nB[i: 8] = A[i] + 1.0\n" target: "llvm" steps: "[]")"},
    {"kiln.v1.QueryConfigRequest", R"(target: "cuda" task: "dense.cuda" args: "[]")"},
    {"kiln.v1.AnnounceRequest",
     R"(worker { id: "fuzz" kind: BUILDER address: "127.0.0.1:1" keys: "nothing" slots: 1 target: "llvm" })"},
    {"kiln.v1.AcquireRequest",
     R"(request_id: "r" scheduler_id: "fuzz" kind: BUILDER key: "nothing" user: "fuzz" wait_ms: 50 lease_ms: 100)"},
    {"kiln.v1.RenewRequest",
     R"(scheduler_id: "fuzz" leases { id: "l" lease_ms: 100 worker { id: "fuzz" kind: BUILDER address: "127.0.0.1:1" keys: "nothing" slots: 1 } })"},
    {"kiln.v1.ReleaseRequest", R"(scheduler_id: "fuzz" lease_ids: "l")"},
};
constexpr std::string_view kJob =
    R"(spec { name: "fuzz" user: "fuzz" tasks { target: "llvm" description: "add" weight: 1 }
       options { trials: 2 policy: "sketch.random" seed: 1 measure { number: 1 repeat: 1 } finalists: -1 } })";

std::unique_ptr<Message> Parsed(const google::protobuf::Descriptor& type, const std::string& text) {
  const Message* prototype =
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
  std::unique_ptr<Message> message(prototype->New());
  const bool good = google::protobuf::TextFormat::ParseFromString(text, message.get());
  KILN_CHECK(good, "{}", text);
  return message;
}

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Bounds the waits that a request asks for, because a long wait that was asked for is no hang.
void BoundWaits(Message& message) {
  const auto& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->is_map()) continue;
      if (!field->is_repeated()) {
        BoundWaits(*reflection.MutableMessage(&message, field));
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        BoundWaits(*reflection.MutableRepeatedMessage(&message, field, i));
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_UINT32 &&
               !field->is_repeated() && field->name().ends_with("_ms")) {
      const uint32_t value = reflection.GetUInt32(message, field);
      if (value > kMaxAsked_ms) reflection.SetUInt32(&message, field, kMaxAsked_ms);
    }
  }
}

// Keeps the code of a valid request: only the description of the code is spoiled, because the code
// is run as it is.
void KeepCode(const v1::MeasureRequest& valid, v1::MeasureRequest& request) {
  if (request.has_artifact()) request.mutable_artifact()->set_binary(valid.artifact().binary());
  if (request.has_reference()) request.mutable_reference()->set_binary(valid.reference().binary());
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
  // True if the fuzzer abandoned the call.
  bool abandoned = false;
};

// Sends the messages and, unless the call is to be abandoned, reads until it ends.
Answer CallMethod(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::vector<std::string>& requests, bool abandon, double most_s) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(static_cast<int>(1000 * most_s)));
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
  constexpr size_t kMaxRead = 100'000;
  for (grpc::ByteBuffer message; answer.messages.size() < kMaxRead;) {
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

// Opens a connection and sends bytes that are no call, or nothing.
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

// Returns the largest memory that the process has had.
int64_t PeakOf(pid_t pid) {
  const auto status = ReadFile(fmt::format("/proc/{}/status", pid));
  const size_t at = status.ok() ? status->find("VmHWM:") : std::string::npos;
  return at == std::string::npos ? 0 : std::atoll(status->c_str() + at + 6) * 1024;
}

}  // namespace

RpcFuzzer::RpcFuzzer(std::unique_ptr<Farm> farm, double most_s, const Corpus& corpus)
    : most_s_(most_s), corpus_(corpus), farm_(std::move(farm)) {
  // A message of each service is named here, because messages that nothing refers to are not
  // linked.
  const auto add = [&](DaemonProcess& process, const google::protobuf::Descriptor& message) {
    const auto* service = message.file()->service(0);
    daemons_.push_back({&process, service->full_name(), service, MakeChannel(process.address()),
                        PeakOf(process.pid())});
  };
  add(farm_->tracker(), *v1::ListRequest::descriptor());
  add(farm_->scheduler(), *v1::SubmitRequest::descriptor());
  add(farm_->builder(), *v1::BuildRequest::descriptor());
  add(farm_->runner(), *v1::MeasureRequest::descriptor());
  scheduler_ = farm_->Connect();
}

StatusOr<std::unique_ptr<RpcFuzzer>> RpcFuzzer::Make(double most_s, const Corpus& corpus) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Farm> farm,
                        Farm::Start(Farm::Options{.allow_faults = false}));
  std::unique_ptr<RpcFuzzer> fuzzer(new RpcFuzzer(std::move(farm), most_s, corpus));
  KILN_RETURN_IF_ERROR(fuzzer->Prepare());
  return fuzzer;
}

// ---- valid requests -------------------------------------------------------------------------

StatusOr<v1::Artifact> RpcFuzzer::Build(const std::string& dag, const std::string& steps) {
  v1::BuildRequest request;
  request.set_dag(dag);
  request.set_steps(steps);
  request.set_target("llvm");
  request.set_timeout_ms(60'000);
  v1::BuildReply reply;
  grpc::ClientContext context;
  const grpc::Status status =
      v1::Builder::NewStub(daemons_[2].channel)->Build(&context, request, &reply);
  if (!status.ok()) return Internal("{}", status.error_message());
  if (reply.error() != v1::NO_ERROR) return Internal("{}", reply.message());
  return reply.artifact();
}

// Makes some programs to measure, and a job that has ended.
Status RpcFuzzer::Prepare() {
  for (const size_t at : {size_t{1}, corpus_.seeds().size() - 1}) {
    const Seed& seed = corpus_.seeds()[at];
    v1::MeasureRequest& request = measures_.emplace_back();
    KILN_ASSIGN_OR_RETURN(*request.mutable_artifact(), Build(seed.text, seed.steps));
    KILN_ASSIGN_OR_RETURN(*request.mutable_reference(), Build(seed.text, "[]"));
    request.set_reference_digest(request.reference().digest());
    request.mutable_options()->set_number(1);
    request.mutable_options()->set_timeout_ms(kMaxAsked_ms);
  }
  Rng rng(1);
  const auto submit = ExampleOf(*v1::SubmitRequest::descriptor(), rng);
  v1::SubmitReply reply;
  grpc::ClientContext context;
  const grpc::Status status =
      scheduler_->Submit(&context, static_cast<const v1::SubmitRequest&>(*submit), &reply);
  if (!status.ok()) return Internal("{}", status.error_message());
  jobs_.push_back(reply.job_id());
  for (int i = 0; i < 6000; ++i) {
    grpc::ClientContext get;
    v1::GetJobRequest request;
    request.set_job_id(jobs_[0]);
    v1::JobStatus job;
    if (scheduler_->GetJob(&get, request, &job).ok() && job.state() == v1::SUCCEEDED)
      return OkStatus();
    Clock::Real().SleepFor(absl::Milliseconds(100));
  }
  return DeadlineExceeded("job {} does not end:\n{}", jobs_[0], farm_->Logs());
}

std::unique_ptr<Message> RpcFuzzer::ExampleOf(const google::protobuf::Descriptor& type,
                                              Rng& rng) const {
  const Seed& seed = corpus_.Pick(rng);
  if (&type == v1::SubmitRequest::descriptor()) {
    auto message = Parsed(type, std::string(kJob));
    static_cast<v1::SubmitRequest&>(*message).mutable_spec()->mutable_tasks(0)->set_dag(seed.text);
    return message;
  }
  if (&type == v1::ImportRecordsRequest::descriptor()) {
    auto message = Parsed(type, "");
    static_cast<v1::ImportRecordsRequest&>(*message).set_line(seed.line);
    return message;
  }
  if (&type == v1::BuildRequest::descriptor()) {
    auto message = std::make_unique<v1::BuildRequest>();
    message->set_dag(seed.text);
    message->set_steps(seed.steps);
    message->set_target(Chance(rng, 0.7) ? "llvm" : "null");
    message->set_timeout_ms(kMaxAsked_ms);
    return message;
  }
  if (&type == v1::MeasureRequest::descriptor())
    return std::make_unique<v1::MeasureRequest>(PickFrom(rng, measures_));
  for (const Example& example : kExamples) {
    if (example.type != type.full_name()) continue;
    std::string text = Replaced(std::string(example.text), "$ANY", PickFrom(rng, jobs_));
    return Parsed(type, Replaced(std::move(text), "$JOB", jobs_[0]));
  }
  return Parsed(type, "");
}

std::string RpcFuzzer::RequestBytes(const google::protobuf::Descriptor& type, Rng& rng) const {
  const std::unique_ptr<Message> message = ExampleOf(type, rng);
  const bool code = &type == v1::MeasureRequest::descriptor();
  const double kind = UniformReal(rng);
  if (kind < 0.03) {
    std::string noise(static_cast<size_t>(UniformInt(rng, 5000)), '\0');
    for (char& c : noise) c = static_cast<char>(rng());
    return noise;
  }
  if (kind > 0.15) {
    MutateMessage(*message, rng);
    BoundWaits(*message);
    if (code) {
      const v1::MeasureRequest& valid = measures_[UniformInt(rng, std::ssize(measures_))];
      KeepCode(valid, static_cast<v1::MeasureRequest&>(*message));
    }
  }
  const std::string bytes = message->SerializePartialAsString();
  if (kind > 0.9 && !code) return MutateText(bytes, bytes, {}, 1 << 20, rng);
  return bytes;
}

// ---- calls ----------------------------------------------------------------------------------

void RpcFuzzer::Run(uint64_t seed, Report& report) {
  Rng rng(seed);
  // The scheduler has the largest interface, so it gets the most calls.
  const double weights[] = {3, 5, 2, 1};
  Daemon& daemon = daemons_[static_cast<size_t>(PickWeighted(rng, weights))];
  if (Chance(rng, 0.05)) {
    SendGarbage(daemon.process->address(), rng);
    report.Count("no call", false, 0);
  } else {
    Call(daemon, rng, report);
  }
  if (daemon.process->Running()) return CheckMemory(daemon, report);
  report.Find("crash", fmt::format("{} has ended\n{}", daemon.service, daemon.process->Log()), "");
  (void)daemon.process->Start();
}

void RpcFuzzer::CheckMemory(Daemon& daemon, Report& report) {
  const int64_t before = daemon.peak_bytes;
  daemon.peak_bytes = std::max(before, PeakOf(daemon.process->pid()));
  const int64_t most = daemon.bytes + kMaxBytes;
  if (before > most || daemon.peak_bytes <= most) return;
  report.Find("growth", fmt::format("{} takes {} MiB", daemon.service, daemon.peak_bytes >> 20),
              "");
}

std::string RpcFuzzer::Peaks() const {
  std::string peaks;
  for (const Daemon& daemon : daemons_) {
    peaks += fmt::format("{}{}: {} MiB, at its start {}", peaks.empty() ? "" : "; ", daemon.service,
                         daemon.peak_bytes >> 20, daemon.bytes >> 20);
  }
  return peaks;
}

void RpcFuzzer::Call(const Daemon& daemon, Rng& rng, Report& report) {
  const MethodDescriptor& method =
      *daemon.methods->method(static_cast<int>(UniformInt(rng, daemon.methods->method_count())));
  std::vector<std::string> requests;
  for (int64_t n = method.client_streaming() ? UniformInt(rng, 8) : 1; n > 0; --n)
    requests.push_back(RequestBytes(*method.input_type(), rng));
  const bool counted = method.name() == "Submit" || method.name() == "ImportRecords" ||
                       method.name() == "DeleteRecords";
  // A process that serves a job stays until the job's end, which may be never.
  const bool serves = method.name() == "ServeCallbacks";
  const bool abandon = serves || (Chance(rng, 0.05) && !counted);
  const double start_s = Clock::Real().MonotonicSeconds();
  const Answer answer =
      CallMethod(daemon.channel, fmt::format("/{}/{}", daemon.service, method.name()), requests,
                 abandon, most_s_);
  const double took_s = Clock::Real().MonotonicSeconds() - start_s;
  report.Count(fmt::format("call {}", method.full_name().substr(8)), answer.status.ok(), took_s);
  if (!answer.abandoned && took_s >= most_s_) {
    std::string input;
    for (const std::string& request : requests) input += request;
    report.Find("hang", fmt::format("{}.{} took {:.1f} s", daemon.service, method.name(), took_s),
                input);
  }
  if (!answer.status.ok() || answer.messages.empty()) return;
  if (method.name() == "Submit") NoteSubmitted(answer.messages[0], rng);
  if (method.name() == "ImportRecords") NoteImported(answer.messages[0]);
  if (method.name() == "DeleteRecords") NoteDeleted(answer.messages[0]);
}

// Most jobs are cancelled at once, others run for a while.
void RpcFuzzer::NoteSubmitted(const std::string& reply, Rng& rng) {
  v1::SubmitReply submitted;
  if (!submitted.ParseFromString(reply)) return;
  // A request whose id was there already is answered with the job of the first one.
  if (std::ranges::find(jobs_, submitted.job_id()) == jobs_.end())
    jobs_.push_back(submitted.job_id());
  if (Chance(rng, 0.8)) Cancel(submitted.job_id());
}

void RpcFuzzer::Cancel(const std::string& job) {
  grpc::ClientContext context;
  v1::CancelJobRequest request;
  request.set_job_id(job);
  v1::CancelJobReply ignored;
  scheduler_->CancelJob(&context, request, &ignored);
}

void RpcFuzzer::NoteImported(const std::string& reply) {
  v1::ImportRecordsReply imported;
  if (imported.ParseFromString(reply)) imported_ += static_cast<int64_t>(imported.imported());
}

void RpcFuzzer::NoteDeleted(const std::string& reply) {
  v1::DeleteRecordsReply deleted;
  if (deleted.ParseFromString(reply)) deleted_ += static_cast<int64_t>(deleted.deleted());
}

std::unique_ptr<grpc::ClientContext> RpcFuzzer::Context() const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::milliseconds(static_cast<int>(1000 * most_s_)));
  return context;
}

// Checks the list of jobs. Jobs that still run are cancelled, because they may have many trials.
void RpcFuzzer::CheckJobs(Report& report) {
  v1::ListJobsReply jobs;
  const grpc::Status listed = scheduler_->ListJobs(Context().get(), {}, &jobs);
  size_t made = 0;
  for (const v1::JobStatus& job : jobs.jobs()) {
    made += job.id() != "import";
    if (job.state() == v1::QUEUED || job.state() == v1::RUNNING) Cancel(job.id());
  }
  if (listed.ok() && made == jobs_.size()) return;
  report.Find("counts",
              fmt::format("the scheduler lists {} jobs, {} were taken; {}", made, jobs_.size(),
                          listed.error_message()),
              "");
}

// Checks the imported records. It is not known which of the deleted records were imported.
void RpcFuzzer::CheckImported(Report& report) {
  v1::ListRecordsRequest request;
  request.set_job_id("import");
  request.set_include_errors(true);
  const auto context = Context();
  const auto reader = scheduler_->ListRecords(context.get(), request);
  int64_t records = 0;
  for (v1::Record record; reader->Read(&record);) ++records;
  const grpc::Status read = reader->Finish();
  const bool whole = records <= imported_ && records + deleted_ >= imported_;
  if (whole && (read.ok() || imported_ == 0)) return;
  report.Find("counts",
              fmt::format("the scheduler lists {} imported records, {} were taken, {} deleted; {}",
                          records, imported_, deleted_, read.error_message()),
              "");
}

void RpcFuzzer::CheckFarm(Report& report) {
  CheckJobs(report);
  CheckImported(report);
  v1::ListReply known;
  const grpc::Status answered =
      v1::Tracker::NewStub(daemons_[0].channel)->List(Context().get(), {}, &known);
  if (answered.ok()) return;
  report.Find("counts", "the tracker does not answer: " + answered.error_message(), "");
}

}  // namespace kiln::fuzz
