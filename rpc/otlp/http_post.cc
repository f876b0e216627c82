#include "rpc/otlp/http_post.h"

#include <httplib.h>

#include <chrono>
#include <memory>

#include "base/server/net.h"

namespace kiln {
namespace {

constexpr std::chrono::seconds kConnect{2}, kAnswer{5};
constexpr char kPath[] = "/v1/traces", kType[] = "application/x-protobuf";

}  // namespace

StatusOr<OtlpExporter::Post> PostTo(const std::string& address) {
  KILN_ASSIGN_OR_RETURN(const HostPort at, ParseHostPort(address));
  const auto client = std::make_shared<httplib::Client>(at.host, at.port);
  client->set_keep_alive(true);
  client->set_connection_timeout(kConnect);
  client->set_read_timeout(kAnswer);
  client->set_write_timeout(kAnswer);
  return OtlpExporter::Post([client, address](const std::string& body) -> StatusOr<int> {
    // The client would copy a body that it is given.
    const auto write = [&body](size_t offset, size_t length, httplib::DataSink& sink) {
      return sink.write(body.data() + offset, length);
    };
    const httplib::Result result = client->Post(kPath, body.size(), write, kType);
    if (!result) {
      return Unavailable("no answer from {}: {}", address, httplib::to_string(result.error()));
    }
    return result->status;
  });
}

}  // namespace kiln
