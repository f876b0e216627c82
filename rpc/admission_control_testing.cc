#include "rpc/admission_control_testing.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>

#include "base/server/grpc_status.h"
#include "base/status_testing.h"
#include "rpc/channel.h"

namespace kiln {
namespace {

using testing::HasSubstr;

bool Wait(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

Status CallMethod(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  Wait(queue);
  const grpc::Slice nothing;
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
  Wait(queue);
  grpc::ByteBuffer answer;
  do {
    call->Read(&answer, nullptr);
  } while (Wait(queue));
  grpc::Status status;
  call->Finish(&status, nullptr);
  Wait(queue);
  return FromGrpc(status);
}

}  // namespace

std::map<std::string, Status> CallAllMethods(const std::shared_ptr<grpc::Channel>& channel,
                                             const google::protobuf::ServiceDescriptor& service) {
  std::map<std::string, Status> ends;
  for (int i = 0; i < service.method_count(); ++i) {
    const std::string method =
        fmt::format("/{}/{}", service.full_name(), service.method(i)->name());
    ends[method] = CallMethod(channel, method);
  }
  return ends;
}

void ExpectAdmissionAtAllMethods(const std::string& address,
                                 const google::protobuf::ServiceDescriptor& service,
                                 const Secret& secret) {
  for (const auto& [method, status] : CallAllMethods(MakeChannel(address), service)) {
    EXPECT_THAT(status, StatusIs(StatusCode::kUnauthenticated,
                                 HasSubstr("asks for the secret of its farm")))
        << method;
    EXPECT_THAT(Message(status), HasSubstr("--secret-file")) << method;
  }
  for (const auto& [method, status] :
       CallAllMethods(MakeChannel(address, Secret::Random()), service)) {
    EXPECT_THAT(status, StatusIs(StatusCode::kUnauthenticated, HasSubstr("has another secret")))
        << method;
  }
  for (const auto& [method, status] : CallAllMethods(MakeChannel(address, secret), service)) {
    EXPECT_NE(status.code(), StatusCode::kUnauthenticated) << method << ": " << status;
  }
}

}  // namespace kiln
