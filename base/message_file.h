// Protobuf messages as files: a request that a person writes, edits or keeps, to do it by hand.
//
// Errors carry the path; of a text form also the line and column of the first thing that is wrong.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "base/status.h"

namespace kiln {

// Text form when the name ends in .txtpb, .textproto, .pbtxt or .txt, else binary. After an error
// the message holds part of the file.
Status ReadMessageFile(const std::string& path, google::protobuf::Message& message);

// The text form on stdout, flushed.
void PrintMessage(const google::protobuf::Message& message);

}  // namespace kiln
