// Targets whose inputs are calls of a service: messages of calls.proto, as text. They are changed
// as messages (mutate_calls.cc), so that what is called is mostly a request.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string_view>

namespace kiln::fuzz {

// Of the target: an empty message of the type that its inputs are.
std::unique_ptr<google::protobuf::Message> NewCalls();

// False: the text is no such message.
bool ParseCalls(std::string_view text, google::protobuf::Message& calls);

// A refusal says something, and blames the request or what it finds.
void CheckAnswer(const grpc::Status& status);

// The same of a call that went through a channel: gRPC itself refuses, without a word, what is no
// message, for instance for a string that is no UTF-8.
void CheckAnswerFromChannel(const grpc::Status& status);

// A server of the service that has no port: calls come through its channel, in this process. It
// stays up until the process ends, for gRPC comes down slowly.
grpc::Server& StartInProcess(grpc::Service& service);

}  // namespace kiln::fuzz
