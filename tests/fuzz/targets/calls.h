// Targets whose inputs are calls of a service: messages of calls.proto, as text. They are changed
// as messages (mutate_calls.cc), so that most inputs are valid requests.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string_view>

namespace kiln::fuzz {

// The target defines this: it returns an empty message of the type of its inputs.
std::unique_ptr<google::protobuf::Message> NewCalls();

// Returns false if the text is no such message.
bool ParseCalls(std::string_view text, google::protobuf::Message& calls);

// Checks that a refusal has a message, and blames the request or what it finds.
void CheckAnswer(const grpc::Status& status);

// Checks the same for a call that went through a channel. gRPC itself refuses without a message
// what is no message, for instance a string that is no UTF-8.
void CheckAnswerFromChannel(const grpc::Status& status);

// Returns a server of the service that has no port: calls come through its channel, in this
// process. It stays up until the process ends, because gRPC shuts down slowly.
grpc::Server& StartInProcess(grpc::Service& service);

}  // namespace kiln::fuzz
