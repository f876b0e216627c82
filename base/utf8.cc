#include "base/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kiln {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The length of the character that starts at text[0], 0 when it is no valid UTF-8.
size_t CharacterLength(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  // 0x80 to 0xC1 continue a character or spell a short one long; past 0xF4 there are none.
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  if (lead == 0xE0 && second < 0xA0) return 0;  // spelled long
  if (lead == 0xED && second > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && second < 0x90) return 0;  // spelled long
  if (lead == 0xF4 && second > 0x8F) return 0;  // past the last code point
  return length;
}

// How many characters of ASCII the text begins with, counted in eights.
size_t AsciiLength(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t length = 0;
  for (uint64_t eight = 0; length + sizeof(eight) <= text.size(); length += sizeof(eight)) {
    std::memcpy(&eight, text.data() + length, sizeof(eight));
    if ((eight & kHighBits) != 0) break;
  }
  return length;
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
  std::string printable = ValidUtf8(text);
  for (size_t i = 0; i < printable.size(); ++i) {
    const auto c = static_cast<unsigned char>(printable[i]);
    if ((c < ' ' && c != '\n') || c == 127) printable[i] = ' ';
    if (c != 0xC2 || static_cast<unsigned char>(printable[i + 1]) >= 0xA0) continue;
    printable.replace(i, 2, " ");
  }
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
