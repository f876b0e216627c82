#include "tests/fuzz/mutate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace kiln::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::string_view kNumbers[] = {"0",
                                         "-1",
                                         "1",
                                         "2147483647",
                                         "2147483648",
                                         "-2147483649",
                                         "1099511627776",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "-9223372036854775808",
                                         "18446744073709551616",
                                         "1e308",
                                         "-1e-320",
                                         "1e999",
                                         "nan",
                                         "inf",
                                         "0.5",
                                         "007",
                                         "null"};
constexpr std::string_view kBytes[] = {"\xff",
                                       "\xef\xbb\xbf",
                                       std::string_view("\0", 1),
                                       "\xed\xa0\x80",
                                       "\x1b[2J",
                                       "\r\n",
                                       "\"",
                                       "\\",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "(",
                                       "`",
                                       "\t"};
constexpr size_t kMostRepeats = 3000;

size_t Place(size_t size, Rng& rng) {
  return static_cast<size_t>(UniformInt(rng, static_cast<int64_t>(size) + 1));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number at or after a random place; an empty piece when there is none.
std::pair<size_t, size_t> FindNumber(std::string_view text, Rng& rng) {
  size_t begin = Place(text.size(), rng);
  while (begin < text.size() && !IsDigit(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && (IsDigit(text[end]) || text[end] == '.')) ++end;
  return {begin, end - begin};
}

void ChangeText(std::string& text, std::string_view other,
                std::span<const std::string_view> dictionary, Rng& rng) {
  const size_t at = Place(text.size(), rng);
  const size_t length = std::min(text.size() - at, Place(40, rng));
  switch (UniformInt(rng, 9)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << UniformInt(rng, 8)));
      return;
    case 1:
      text.erase(at, length);
      return;
    case 2:
      text.insert(at, PickFrom(rng, std::span(kBytes)));
      return;
    case 3: {
      const auto [begin, size] = FindNumber(text, rng);
      text.replace(begin, size, ExtremeNumber(rng));
      return;
    }
    case 4: {
      const std::string piece = text.substr(at, length);
      const int64_t most = Chance(rng, 0.1) ? static_cast<int64_t>(kMostRepeats) : 4;
      const int64_t times = UniformInt(rng, most);
      std::string repeated;
      for (int64_t i = 0; i < times; ++i) repeated += piece;
      text.insert(at, repeated);
      return;
    }
    case 5:
      if (!dictionary.empty()) text.insert(at, PickFrom(rng, dictionary));
      return;
    case 6: {
      const size_t from = Place(other.size(), rng);
      text.insert(at, other.substr(from, Place(other.size() - from, rng)));
      return;
    }
    case 7:
      text.resize(at);
      return;
    default: {
      const size_t to = Place(text.size(), rng);
      text.insert(to, text.substr(at, length));
      return;
    }
  }
}

int64_t ExtremeInteger(Rng& rng) {
  constexpr int64_t kPicks[] = {0,
                                1,
                                -1,
                                255,
                                65536,
                                std::numeric_limits<int32_t>::max(),
                                std::numeric_limits<int32_t>::min(),
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
  return Chance(rng, 0.2) ? static_cast<int64_t>(rng()) : PickFrom(rng, std::span(kPicks));
}

double ExtremeDouble(Rng& rng) {
  constexpr double kPicks[] = {0.0,
                               -0.0,
                               -1.0,
                               1e308,
                               1e-320,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};
  return PickFrom(rng, std::span(kPicks));
}

// Strings of messages are UTF-8 on the wire, as protobuf checks.
std::string SomeText(const std::string& now, Rng& rng) {
  constexpr std::string_view kDictionary[] = {"import", "llvm",     "cuda",          "null",
                                              "\u20ac", "\x1b[31m", "sketch.random", "kiln"};
  if (Chance(rng, 0.05)) return std::string(static_cast<size_t>(UniformInt(rng, 200'000)), 'x');
  std::string text = MutateText(now, "127.0.0.1:1", kDictionary, 1 << 18, rng);
  if (Chance(rng, 0.9))
    std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return text;
}

template <typename Add>
void SpoilNumber(const FieldDescriptor& field, Rng& rng, const Add& set) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return set(ExtremeDouble(rng));
    default:
      return set(ExtremeInteger(rng));
  }
}

void SetField(Message& message, const FieldDescriptor& field, Rng& rng) {
  const Reflection& reflection = *message.GetReflection();
  const bool add = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      const int size = add ? reflection.FieldSize(message, &field) : 0;
      const std::string now = !add       ? reflection.GetString(message, &field)
                              : size > 0 ? reflection.GetRepeatedString(message, &field, size - 1)
                                         : std::string();
      const std::string text = SomeText(now, rng);
      return add ? reflection.AddString(&message, &field, text)
                 : reflection.SetString(&message, &field, text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (!add) return MutateMessage(*reflection.MutableMessage(&message, &field), rng);
      if (reflection.FieldSize(message, &field) > 0 && Chance(rng, 0.7)) {
        const int last = reflection.FieldSize(message, &field) - 1;
        return MutateMessage(*reflection.MutableRepeatedMessage(&message, &field, last), rng);
      }
      return MutateMessage(*reflection.AddMessage(&message, &field), rng);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int value = static_cast<int>(UniformIn(rng, -1, 20));
      return add ? reflection.AddEnumValue(&message, &field, value)
                 : reflection.SetEnumValue(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return add ? reflection.AddBool(&message, &field, Chance(rng, 0.5))
                 : reflection.SetBool(&message, &field, Chance(rng, 0.5));
    default:
      break;
  }
  SpoilNumber(field, rng, [&](auto value) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return add ? reflection.AddInt32(&message, &field, static_cast<int32_t>(value))
                   : reflection.SetInt32(&message, &field, static_cast<int32_t>(value));
      case FieldDescriptor::CPPTYPE_UINT32:
        return add ? reflection.AddUInt32(&message, &field, static_cast<uint32_t>(value))
                   : reflection.SetUInt32(&message, &field, static_cast<uint32_t>(value));
      case FieldDescriptor::CPPTYPE_INT64:
        return add ? reflection.AddInt64(&message, &field, static_cast<int64_t>(value))
                   : reflection.SetInt64(&message, &field, static_cast<int64_t>(value));
      case FieldDescriptor::CPPTYPE_UINT64:
        return add ? reflection.AddUInt64(&message, &field, static_cast<uint64_t>(value))
                   : reflection.SetUInt64(&message, &field, static_cast<uint64_t>(value));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return add ? reflection.AddDouble(&message, &field, static_cast<double>(value))
                   : reflection.SetDouble(&message, &field, static_cast<double>(value));
      default:
        return add ? reflection.AddFloat(&message, &field, static_cast<float>(value))
                   : reflection.SetFloat(&message, &field, static_cast<float>(value));
    }
  });
}

}  // namespace

std::string ExtremeNumber(Rng& rng) { return std::string(PickFrom(rng, std::span(kNumbers))); }

std::string MutateText(std::string_view text, std::string_view other,
                       std::span<const std::string_view> dictionary, size_t most_bytes, Rng& rng) {
  std::string result(text);
  for (int64_t changes = UniformIn(rng, 1, 4); changes > 0; --changes) {
    ChangeText(result, other, dictionary, rng);
    if (result.size() > most_bytes) result.resize(most_bytes);
  }
  return result;
}

void MutateMessage(Message& message, Rng& rng) {
  const auto& descriptor = *message.GetDescriptor();
  if (descriptor.field_count() == 0) return;
  for (int64_t changes = UniformIn(rng, 1, 3); changes > 0; --changes) {
    const FieldDescriptor& field =
        *descriptor.field(static_cast<int>(UniformInt(rng, descriptor.field_count())));
    if (Chance(rng, 0.15)) {
      message.GetReflection()->ClearField(&message, &field);
    } else {
      SetField(message, field, rng);
    }
  }
}

}  // namespace kiln::fuzz
