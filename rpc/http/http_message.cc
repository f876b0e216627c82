#include "rpc/http/http_message.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace kiln {
namespace {

int HttpStatus(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
    case StatusCode::kOutOfRange:
      return 400;
    case StatusCode::kUnauthenticated:
      return 401;
    case StatusCode::kPermissionDenied:
      return 403;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kUnimplemented:
      return 405;
    case StatusCode::kResourceExhausted:
    case StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

std::string WithoutLineBreaks(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
  return text;
}

}  // namespace

HttpReply ErrorReply(const Status& status) {
  HttpReply reply;
  reply.status = HttpStatus(status.code());
  reply.body = OneLine(Message(status)) + "\n";
  return reply;
}

std::string EventText(const ServerEvent& event) {
  std::string text;
  if (!event.id.empty()) text += "id: " + WithoutLineBreaks(event.id) + "\n";
  if (!event.name.empty()) text += "event: " + WithoutLineBreaks(event.name) + "\n";
  text += "data: ";
  for (size_t i = 0; i < event.data.size(); ++i) {
    const char c = event.data[i];
    // A browser takes "\r", "\n" and "\r\n" for the end of a line.
    if (c == '\r' && i + 1 < event.data.size() && event.data[i + 1] == '\n') continue;
    if (c == '\r' || c == '\n') {
      text += "\ndata: ";
    } else {
      text += c;
    }
  }
  text += "\n\n";
  return text;
}

}  // namespace kiln
