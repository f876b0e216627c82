#include "runner/once.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdio>

#include "base/file.h"

namespace kiln::runner {
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

StatusOr<v1::MeasureRequest> ReadMeasureRequest(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  v1::MeasureRequest request;
  if (!IsText(path)) {
    if (request.ParseFromString(content)) return request;
    return InvalidArgument("{}: not a MeasureRequest in binary form; name text *.txtpb", path);
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(content, &request)) return request;
  return InvalidArgument("{}: {}", path, error.text);
}

Status MeasureOnce(const std::string& path, DeviceSlot& slot) {
  KILN_ASSIGN_OR_RETURN(const v1::MeasureRequest request, ReadMeasureRequest(path));
  KILN_ASSIGN_OR_RETURN(const v1::MeasureReply reply, slot.Measure(request, [] { return false; }));
  std::string text;
  google::protobuf::TextFormat::PrintToString(reply, &text);
  fmt::print("{}", text);
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace kiln::runner
