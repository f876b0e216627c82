#include "base/file/message_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdio>

#include "base/file/file.h"

namespace kiln {
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

Status ReadMessageFile(const std::string& path, google::protobuf::Message& message) {
  KILN_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  if (!IsText(path)) {
    if (message.ParseFromString(content)) return OkStatus();
    return InvalidArgument("{}: not a {} in binary form; name text *.txtpb", path,
                           message.GetDescriptor()->name());
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(content, &message)) return OkStatus();
  return InvalidArgument("{}: {}", path, error.text);
}

void PrintMessage(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  fmt::print("{}", text);
  std::fflush(stdout);
}

}  // namespace kiln
