#include "tests/fuzz/mutate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <memory>
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
constexpr size_t kMaxRepeats = 3000;

// Groups of words that may replace each other.
const std::vector<std::vector<std::string_view>> kAlike = {
    {"float32", "float16", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16",
     "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"},
    {"sum(", "max(", "min(", "prod(", "any(", "all("},
    {"exp(", "tanh(", "sqrt(", "abs(", "log(", "erf(", "floor(", "sigmoid(", "log2(", "exp2("},
    {" + ", " - ", " * ", " / ", " // ", " % ", " & ", " | ", " ^ ", " << ", " >> "},
    {"param ", "let ", "combine ", "input "},
    {" < ", " <= ", " == ", " && ", " || "}};

size_t Place(size_t size, Rng& rng) {
  return static_cast<size_t>(UniformInt(rng, static_cast<int64_t>(size) + 1));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the begin and the length of the number at or after a random place; the length is 0 if
// there is none.
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
      const int64_t most = Chance(rng, 0.1) ? static_cast<int64_t>(kMaxRepeats) : 4;
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

std::vector<std::string> PiecesOf(std::string_view text, std::string_view separator) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    const size_t size = std::min(end + separator.size(), text.size());
    pieces.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return pieces;
}

std::string OtherNumber(std::string_view number, Rng& rng) {
  int64_t value = 0;
  std::from_chars(number.data(), number.data() + number.size(), value);
  value = std::min(value, int64_t{1} << 40);
  const int64_t others[] = {0, 1, 2, value - 1, value + 1, 2 * value, value / 2, -value};
  return std::to_string(PickFrom(rng, std::span(others)));
}

// Replaces all occurrences of a word, but none within a longer number or word.
std::string Replaced(std::string_view text, std::string_view word, std::string_view by) {
  const auto joins = [](char a, char b) {
    return std::isalnum(static_cast<unsigned char>(a)) &&
           std::isalnum(static_cast<unsigned char>(b));
  };
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i + word.size();
    const bool here = text.substr(i, word.size()) == word &&
                      (i == 0 || !joins(text[i - 1], word.front())) &&
                      (end >= text.size() || !joins(word.back(), text[end]));
    result += here ? by : text.substr(i, 1);
    i += here ? word.size() : 1;
  }
  return result;
}

void ChangePieces(std::vector<std::string>& pieces, const std::vector<std::string>& others,
                  Rng& rng) {
  if (pieces.empty()) return;
  const auto at = pieces.begin() + UniformInt(rng, std::ssize(pieces));
  switch (UniformInt(rng, 6)) {
    case 0:
      pieces.erase(at);
      return;
    case 1: {
      const std::string piece = *at;
      const int64_t times = Chance(rng, 0.1) ? UniformInt(rng, 200) : 1;
      pieces.insert(at, static_cast<size_t>(times), piece);
      return;
    }
    case 2:
      std::swap(*at, pieces[Place(pieces.size() - 1, rng)]);
      return;
    case 3:
      if (!others.empty()) pieces.insert(at, PickFrom(rng, others));
      return;
    default: {
      const auto [begin, size] = FindNumber(*at, rng);
      if (size > 0) at->replace(begin, size, OtherNumber(at->substr(begin, size), rng));
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

// Returns a text in UTF-8, because protobuf requires that of strings of messages.
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

int SomeElement(const Message& message, const FieldDescriptor& field, Rng& rng) {
  return static_cast<int>(UniformInt(rng, message.GetReflection()->FieldSize(message, &field)));
}

// Removes an element, swaps it with another, or repeats a message. The list is not empty.
void ChangeList(Message& message, const FieldDescriptor& field, Rng& rng) {
  const Reflection& reflection = *message.GetReflection();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && Chance(rng, 0.4)) {
    const Message& one =
        reflection.GetRepeatedMessage(message, &field, SomeElement(message, field, rng));
    const std::unique_ptr<Message> copy(one.New());
    copy->CopyFrom(one);
    reflection.AddMessage(&message, &field)->CopyFrom(*copy);
  }
  const int last = reflection.FieldSize(message, &field) - 1;
  reflection.SwapElements(&message, &field, last, SomeElement(message, field, rng));
  if (Chance(rng, 0.5)) reflection.RemoveLast(&message, &field);
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
      if (reflection.FieldSize(message, &field) > 0 && Chance(rng, 0.9)) {
        const int some = SomeElement(message, field, rng);
        return MutateMessage(*reflection.MutableRepeatedMessage(&message, &field, some), rng);
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

std::string MutatePieces(std::string_view text, std::string_view other, std::string_view separator,
                         Rng& rng) {
  std::vector<std::string> pieces = PiecesOf(text, separator);
  const std::vector<std::string> others = PiecesOf(other, separator);
  for (int64_t changes = Chance(rng, 0.7) ? 1 : 3; changes > 0; --changes) {
    ChangePieces(pieces, others, rng);
  }
  std::string result;
  for (const std::string& piece : pieces) result += piece;
  return result;
}

std::string ReplaceEverywhere(std::string_view text, Rng& rng) {
  if (Chance(rng, 0.5)) {
    const auto [begin, size] = FindNumber(text, rng);
    const std::string_view number = text.substr(begin, size);
    return size == 0 ? std::string(text) : Replaced(text, number, OtherNumber(number, rng));
  }
  std::vector<std::pair<std::string_view, std::string_view>> choices;
  for (const auto& alike : kAlike) {
    for (const std::string_view word : alike) {
      if (text.find(word) != std::string_view::npos)
        choices.emplace_back(word, PickFrom(rng, alike));
    }
  }
  if (choices.empty()) return std::string(text);
  const auto& [word, by] = PickFrom(rng, choices);
  return Replaced(text, word, by);
}

std::string ChangeListHead(std::string_view text, Rng& rng) {
  std::vector<size_t> heads;
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i - 1] == '[' && IsDigit(text[i])) heads.push_back(i);
  }
  std::string result(text);
  if (heads.empty()) return result;
  const size_t begin = PickFrom(rng, heads);
  const size_t size = std::min(text.find_first_not_of("0123456789", begin), text.size()) - begin;
  return result.replace(begin, size, OtherNumber(text.substr(begin, size), rng));
}

void MutateMessage(Message& message, Rng& rng) {
  const auto& descriptor = *message.GetDescriptor();
  if (descriptor.field_count() == 0) return;
  for (int64_t changes = UniformIn(rng, 1, 3); changes > 0; --changes) {
    const FieldDescriptor& field =
        *descriptor.field(static_cast<int>(UniformInt(rng, descriptor.field_count())));
    const bool is_list =
        field.is_repeated() && message.GetReflection()->FieldSize(message, &field) > 0;
    if (is_list && Chance(rng, 0.3)) {
      ChangeList(message, field, rng);
    } else if (Chance(rng, is_list ? 0.02 : 0.15)) {
      message.GetReflection()->ClearField(&message, &field);
    } else {
      SetField(message, field, rng);
    }
  }
}

}  // namespace kiln::fuzz
