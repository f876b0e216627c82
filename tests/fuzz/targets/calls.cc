#include "tests/fuzz/targets/calls.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/server_builder.h>

#include <string>

#include "base/log.h"
#include "base/server/grpc_server.h"
#include "base/status.h"

namespace kiln::fuzz {
namespace {

class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int, int, const std::string&) override {}
};

// Nobody looks at the log messages of services and libraries for each call.
const bool is_quiet = [] {
  SetLogLevel(LogLevel::kError);
  google::protobuf::SetLogHandler(nullptr);
  return true;
}();

}  // namespace

bool ParseCalls(std::string_view text, google::protobuf::Message& calls) {
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  return parser.ParseFromString(std::string(text), &calls);
}

void CheckAnswer(const grpc::Status& status) {
  if (status.ok()) return;
  KILN_CHECK(!status.error_message().empty(), "code {}", static_cast<int>(status.error_code()));
  KILN_CHECK(status.error_code() != grpc::StatusCode::INTERNAL &&
                 status.error_code() != grpc::StatusCode::UNKNOWN,
             "{}", status.error_message());
}

void CheckAnswerFromChannel(const grpc::Status& status) {
  const grpc::StatusCode code = status.error_code();
  const bool is_no_message =
      status.error_message().empty() &&
      (code == grpc::StatusCode::INTERNAL || code == grpc::StatusCode::UNIMPLEMENTED);
  if (!is_no_message) CheckAnswer(status);
}

grpc::Server& StartInProcess(grpc::Service& service) {
  InitGrpc();
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  grpc::Server* server = builder.BuildAndStart().release();
  KILN_CHECK(server != nullptr, "gRPC starts no server");
  return *server;
}

}  // namespace kiln::fuzz
