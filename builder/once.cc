#include "builder/once.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdio>

#include "base/file.h"
#include "builder/build.h"

namespace kiln::builder {
namespace {

bool IsText(const std::string& path) {
  for (const char* ending : {".txtpb", ".textproto", ".pbtxt", ".txt"}) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

// The first error of the text parser, with its place.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = fmt::format("line {}, column {}: {}", line + 1, column + 1, message);
  }
  std::string text;
};

}  // namespace

StatusOr<v1::BuildRequest> ReadBuildRequest(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  v1::BuildRequest request;
  if (!IsText(path)) {
    if (request.ParseFromString(content)) return request;
    return InvalidArgument("{}: not a BuildRequest in binary form; name text *.txtpb", path);
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(content, &request)) return request;
  return InvalidArgument("{}: {}", path, error.text);
}

Status BuildOnce(const std::string& path, const std::string& output_path) {
  KILN_ASSIGN_OR_RETURN(const v1::BuildRequest request, ReadBuildRequest(path));
  KILN_ASSIGN_OR_RETURN(BuildOutcome outcome, Build(request));
  v1::BuildReply& reply = outcome.reply;
  const bool built = reply.error() == v1::NO_ERROR;
  if (built && !output_path.empty()) {
    KILN_RETURN_IF_ERROR(WriteFileAtomically(output_path, reply.artifact().binary()));
  }
  if (built) {
    fmt::print("# binary: {} bytes\n", reply.artifact().binary().size());
    reply.mutable_artifact()->clear_binary();
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(reply, &text);
  fmt::print("{}", text);
  std::fflush(stdout);
  if (built || output_path.empty()) return OkStatus();
  return FailedPrecondition("{} was not written: the build failed", output_path);
}

}  // namespace kiln::builder
