// For tests of conversions: fills all fields of a message, and finds the fields that are empty.
// Both go by the descriptor, so that they cover a field that is added to a message later.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace kiln {

// Gives each field, fields of messages within too, a value of its own that is not the default.
// Lists get two values, enums one of their own. `next` goes on from field to field. Maps are not
// supported.
void FillFields(google::protobuf::Message& message, int& next);

// Returns the names of the fields that are not set or have the default. Fields of messages within
// are not looked at.
std::vector<std::string> UnsetFields(const google::protobuf::Message& message);

}  // namespace kiln
