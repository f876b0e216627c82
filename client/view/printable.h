// What others have written, before it is printed for people: their names and messages may hold
// commands to the terminal. JSON and logs escape them by themselves and get them as they are.
#pragma once

#include <google/protobuf/message.h>

namespace kiln::client {

// Printable (base/utf8.h) for each string of the message, at any depth.
void MakePrintable(google::protobuf::Message& message);

template <typename Message>
Message PrintableCopy(Message message) {
  MakePrintable(message);
  return message;
}

}  // namespace kiln::client
