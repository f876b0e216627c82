// Protobuf messages as files. A request that a person writes, edits or keeps can be sent by hand
// this way.
//
// Errors carry the path, and for the text form also the line and column of the first mistake.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "base/status.h"

namespace kiln {

// Reads the text form if the name ends in .txtpb, .textproto, .pbtxt or .txt, else the binary form.
// After an error the message holds part of the file.
Status ReadMessageFile(const std::string& path, google::protobuf::Message& message);

// Prints the text form on stdout and flushes it.
void PrintMessage(const google::protobuf::Message& message);

}  // namespace kiln
