#include "client/view/printable.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <string>
#include <vector>

#include "base/text/utf8.h"

namespace kiln::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using ProtoMessage = google::protobuf::Message;

void MakeListPrintable(ProtoMessage& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      MakePrintable(*reflection.MutableRepeatedMessage(&message, &field, i));
    } else {
      const std::string text = reflection.GetRepeatedString(message, &field, i);
      reflection.SetRepeatedString(&message, &field, i, Printable(text));
    }
  }
}

}  // namespace

void MakePrintable(ProtoMessage& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool of_messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!of_messages && field->type() != FieldDescriptor::TYPE_STRING) continue;
    if (field->is_repeated()) {
      MakeListPrintable(message, *field);
    } else if (of_messages) {
      MakePrintable(*reflection.MutableMessage(&message, field));
    } else {
      reflection.SetString(&message, field, Printable(reflection.GetString(message, field)));
    }
  }
}

}  // namespace kiln::client
