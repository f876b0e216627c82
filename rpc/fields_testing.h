// For tests of conversions: a message all of whose fields say something, and the fields that say
// nothing. Both go by the descriptor, so that a field that is added to a message is in them.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace kiln {

// Gives each field, those of messages within too, a value of its own that is not the default: lists
// have two, enums one of their values. `next` goes on from field to field. No maps.
void FillFields(google::protobuf::Message& message, int& next);

// Names of the fields that are not set or have the default, not of messages within.
std::vector<std::string> UnsetFields(const google::protobuf::Message& message);

}  // namespace kiln
