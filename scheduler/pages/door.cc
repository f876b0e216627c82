#include "scheduler/pages/door.h"

#include "absl/time/time.h"

namespace kiln::scheduler {

std::function<StatusOr<v1::OpenDashboardReply>(const std::optional<Identity>& caller)> DoorOf(
    const HttpPort& port, BrowserSessions& sessions) {
  return [&port,
          &sessions](const std::optional<Identity>& caller) -> StatusOr<v1::OpenDashboardReply> {
    BrowserSessions::Holder holder;
    if (caller.has_value()) {
      holder = {.name = caller->name, .serial = caller->serial, .expires = caller->expires};
    }
    v1::OpenDashboardReply reply;
    reply.set_port(static_cast<uint32_t>(port.port()));
    reply.set_tls(port.has_tls());
    reply.set_token(sessions.MakeToken(holder));
    reply.set_token_s(static_cast<uint32_t>(absl::ToInt64Seconds(sessions.token_time())));
    return reply;
  };
}

}  // namespace kiln::scheduler
