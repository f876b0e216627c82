#include "base/text/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace kiln {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns the length of the character that starts at text[0], or 0 if it is no valid UTF-8.
size_t CharacterLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // Bytes 0x80 to 0xC1 continue a character, or begin an overlong one; no character begins with a
  // byte past 0xF4.
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  // An overlong character.
  if (lead == 0xE0 && second < 0xA0) return 0;
  // Surrogates.
  if (lead == 0xED && second > 0x9F) return 0;
  // An overlong character.
  if (lead == 0xF0 && second < 0x90) return 0;
  // Past the last code point.
  if (lead == 0xF4 && second > 0x8F) return 0;
  return length;
}

// Returns how many ASCII characters the text begins with, counted in eights.
size_t AsciiLength(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t length = 0;
  for (uint64_t eight = 0; length + sizeof(eight) <= text.size(); length += sizeof(eight)) {
    std::memcpy(&eight, text.data() + length, sizeof(eight));
    if ((eight & kHighBits) != 0) break;
  }
  return length;
}

// Returns the code point of a valid character.
uint32_t NumberOf(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead;
  uint32_t number = lead & (0x7Fu >> character.size());
  for (const char c : character.substr(1)) number = number << 6 | (static_cast<uint8_t>(c) & 0x3F);
  return number;
}

// Calls visit(bytes, number) for each character; `bytes` is empty for a byte that is no UTF-8.
template <typename Visit>
void ForEachCharacter(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    visit(text.substr(0, length), length == 0 ? 0u : NumberOf(text.substr(0, length)));
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

bool IsControl(uint32_t number) { return number < 0x20 || (number >= 0x7F && number <= 0x9F); }

// First and last code point.
struct Range {
  uint32_t first, last;
};

// Unicode's Default_Ignorable_Code_Point, the separators of lines and paragraphs, and the marks of
// annotations.
constexpr Range kUnseen[] = {
    {0xAD, 0xAD},       {0x34F, 0x34F},     {0x61C, 0x61C},   {0x115F, 0x1160}, {0x17B4, 0x17B5},
    {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool IsUnseen(uint32_t number) {
  return number >= 0x80 && std::ranges::any_of(kUnseen, [number](const Range& range) {
           return number >= range.first && number <= range.last;
         });
}

void AppendNumber(const char* format, uint32_t number, std::string& text) {
  char escaped[16];
  std::snprintf(escaped, sizeof(escaped), format, number);
  text += escaped;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (true) {
    text.remove_prefix(AsciiLength(text));
    if (text.empty()) return true;
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      valid += '?';
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return valid;
}

std::string Printable(std::string_view text) {
  std::string printable;
  ForEachCharacter(text, [&](std::string_view bytes, uint32_t number) {
    if (bytes.empty()) {
      printable += '?';
    } else if (number != '\n' && IsControl(number)) {
      printable += ' ';
    } else if (IsUnseen(number)) {
      AppendNumber("\\u{%04X}", number, printable);
    } else {
      printable += bytes;
    }
  });
  return printable;
}

std::string PrintableJson(std::string_view json) {
  std::string printable;
  ForEachCharacter(json, [&](std::string_view bytes, uint32_t number) {
    // Characters below 0x20 stand between the values, or are escaped already.
    if (number < 0x7F || (!IsControl(number) && !IsUnseen(number))) {
      printable += bytes;
    } else if (number < 0x10000) {
      AppendNumber("\\u%04x", number, printable);
    } else {
      AppendNumber("\\u%04x", 0xD800 + ((number - 0x10000) >> 10), printable);
      AppendNumber("\\u%04x", 0xDC00 + (number & 0x3FF), printable);
    }
  });
  return printable;
}

std::string OneLine(std::string_view text) {
  std::string line = Printable(text);
  std::ranges::replace(line, '\n', ' ');
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(' ') - begin + 1);
}

}  // namespace kiln
