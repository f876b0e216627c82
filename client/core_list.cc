#include "client/core_list.h"

#include <algorithm>
#include <charconv>

namespace kiln::client {
namespace {

constexpr int kMaxCore = 65535;

bool ParseCore(std::string_view text, int& core) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, core);
  return error == std::errc() && at == end && core >= 0 && core <= kMaxCore;
}

std::string_view WithoutSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  const size_t end = text.find_last_not_of(kSpace);
  return end == std::string_view::npos ? "" : text.substr(begin, end + 1 - begin);
}

}  // namespace

std::string CoreListText(const std::vector<int>& cores) {
  std::string text;
  for (size_t begin = 0; begin < cores.size();) {
    size_t end = begin + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", cores[begin]);
    if (end > begin + 1) text += fmt::format("-{}", cores[end - 1]);
    begin = end;
  }
  return text;
}

StatusOr<std::vector<int>> ParseCoreList(std::string_view text) {
  std::string_view rest = WithoutSpace(text);
  std::vector<int> cores;
  for (bool more = !rest.empty(); more;) {
    const size_t comma = rest.find(',');
    const std::string_view range = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const size_t dash = range.find('-');
    int first = 0, last = 0;
    const bool first_is = ParseCore(range.substr(0, dash), first);
    const bool last_is =
        dash == std::string_view::npos ? first_is : ParseCore(range.substr(dash + 1), last);
    if (dash == std::string_view::npos) last = first;
    if (!first_is || !last_is || last < first) {
      return InvalidArgument("'{}' is no list of cores, expected for instance 0-3,8", text);
    }
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  std::ranges::sort(cores);
  const auto again = std::ranges::unique(cores);
  cores.erase(again.begin(), again.end());
  return cores;
}

}  // namespace kiln::client
