#include "rpc/http/host_check.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr size_t kShownBytes = 80;

// Returns the host without its port, in lower case.
std::string HostOf(std::string_view text) {
  if (text.starts_with('[')) {
    text = text.substr(1, text.find(']') - 1);
  } else {
    text = text.substr(0, text.rfind(':'));
  }
  std::string host(text);
  std::ranges::transform(host, host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return host;
}

// Returns whether the text is the number of an address of loopback. Names are not looked up: the
// attacker's name server would answer.
bool IsLoopbackNumber(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six) != 0;
}

}  // namespace

Status CheckHost(std::string_view host, const HostPort& listening) {
  const std::string found = HostOf(host);
  if (found == "localhost" || found == listening.host || IsLoopbackNumber(found)) return OkStatus();
  if (!IsLoopback(listening)) return OkStatus();
  return MakeStatus(StatusCode::kPermissionDenied,
                    "the request is for the host '{}', and this port is for {} alone; open "
                    "http://localhost:{}/ instead",
                    OneLine(host.substr(0, kShownBytes)), listening.ToString(), listening.port);
}

}  // namespace kiln
