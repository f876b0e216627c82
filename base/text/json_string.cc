#include "base/text/json_string.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace kiln {
namespace {

bool IsPlain(char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; }

void AppendEscaped(char c, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else if (c == '\n') {
    out += "\\n";
  } else if (c >= 0 && c < ' ') {
    out += {'\\',
            'u',
            '0',
            '0',
            kDigits[static_cast<size_t>(c >> 4)],
            kDigits[static_cast<size_t>(c & 15)]};
  } else {
    out += c;
  }
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& out) {
  out += '"';
  if (std::ranges::all_of(text, IsPlain)) {
    out += text;
  } else {
    std::string escaped;
    for (const char c : ValidUtf8(text)) AppendEscaped(c, escaped);
    out += PrintableJson(escaped);
  }
  out += '"';
}

}  // namespace kiln
