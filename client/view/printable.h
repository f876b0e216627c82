// Makes texts of others printable for people: names and messages may hold commands to the terminal.
// JSON and logs escape such texts by themselves and get them unchanged.
#pragma once

#include <google/protobuf/message.h>

namespace kiln::client {

// Applies Printable (base/text/utf8.h) to each string of the message, at any depth.
void MakePrintable(google::protobuf::Message& message);

template <typename Message>
Message PrintableCopy(Message message) {
  MakePrintable(message);
  return message;
}

}  // namespace kiln::client
