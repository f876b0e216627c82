#include "client/jobs/at_place.h"

#include <cstdio>

namespace kiln::client {

Status AtPlace(const std::string& path, const Status& status) {
  const std::string message(Message(status));
  int line = 0, column = 0, end = 0;
  if (std::sscanf(message.c_str(), "line %d, column %d: %n", &line, &column, &end) == 2 &&
      end > 0) {
    return InvalidArgument("{}:{}:{}: {}", path, line, column, message.substr(end));
  }
  return InvalidArgument("{}: {}", path, message);
}

}  // namespace kiln::client
