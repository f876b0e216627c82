#include "builder/message_text.h"

#include "base/text/utf8.h"

namespace kiln::builder {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string CutMessage(std::string_view text) {
  constexpr std::string_view kGap = " ... ";
  std::string valid = ValidUtf8(text);
  if (valid.size() <= kMaxMessageBytes) return valid;
  size_t head = kMaxMessageBytes / 2 - kGap.size();
  size_t tail = valid.size() - kMaxMessageBytes / 2;
  while (IsContinuation(valid[head])) --head;
  while (tail < valid.size() && IsContinuation(valid[tail])) ++tail;
  return valid.substr(0, head).append(kGap).append(valid, tail);
}

}  // namespace kiln::builder
