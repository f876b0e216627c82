#include "rpc/fields_testing.h"

#include <fmt/format.h>

#include <cstdlib>

namespace kiln {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const EnumValueDescriptor* SomeValue(const FieldDescriptor& field, int number) {
  const auto* type = field.enum_type();
  return type->value(1 + number % (type->value_count() - 1));
}

void SetField(Message& message, const FieldDescriptor& field, int& next) {
  const Reflection& to = *message.GetReflection();
  const int value = ++next;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return to.SetInt32(&message, &field, value);
    case FieldDescriptor::CPPTYPE_INT64:
      return to.SetInt64(&message, &field, (int64_t{1} << 40) + value);
    case FieldDescriptor::CPPTYPE_UINT32:
      return to.SetUInt32(&message, &field, static_cast<uint32_t>(value));
    case FieldDescriptor::CPPTYPE_UINT64:
      return to.SetUInt64(&message, &field, (uint64_t{1} << 40) + static_cast<uint64_t>(value));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return to.SetDouble(&message, &field, value + 0.1);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return to.SetFloat(&message, &field, static_cast<float>(value) + 0.5f);
    case FieldDescriptor::CPPTYPE_BOOL:
      return to.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return to.SetEnum(&message, &field, SomeValue(field, value));
    case FieldDescriptor::CPPTYPE_STRING:
      return to.SetString(&message, &field, fmt::format("{} {}", field.name(), value));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return FillFields(*to.MutableMessage(&message, &field), next);
  }
  std::abort();
}

void AddToField(Message& message, const FieldDescriptor& field, int& next) {
  const Reflection& to = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return to.AddDouble(&message, &field, ++next + 0.1);
    case FieldDescriptor::CPPTYPE_INT64:
      return to.AddInt64(&message, &field, (int64_t{1} << 40) + ++next);
    case FieldDescriptor::CPPTYPE_STRING:
      return to.AddString(&message, &field, fmt::format("{} {}", field.name(), ++next));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return FillFields(*to.AddMessage(&message, &field), next);
    default:
      fmt::print(stderr, "FillFields: a list of type {} is not known\n", field.cpp_type_name());
      std::abort();
  }
}

bool IsUnset(const Message& message, const FieldDescriptor& field) {
  const Reflection& from = *message.GetReflection();
  return field.is_repeated() ? from.FieldSize(message, &field) == 0
                             : !from.HasField(message, &field);
}

}  // namespace

void FillFields(Message& message, int& next) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (!field.is_repeated()) {
      SetField(message, field, next);
    } else {
      AddToField(message, field, next);
      AddToField(message, field, next);
    }
  }
}

std::vector<std::string> UnsetFields(const Message& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (IsUnset(message, field)) names.push_back(field.name());
  }
  return names;
}

}  // namespace kiln
