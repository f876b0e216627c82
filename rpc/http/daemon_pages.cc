#include "rpc/http/daemon_pages.h"

#include <array>
#include <utility>

#include "base/keys/live_keys.h"
#include "base/log.h"
#include "base/metrics/process_metrics.h"
#include "base/server/net.h"
#include "base/version.h"
#include "rpc/reachable_address.h"

namespace kiln {
namespace {

constexpr char kRepliesName[] = "kiln_http_replies_total";
constexpr char kRepliesHelp[] = "Replies of the pages by HTTP status.";

// Returns the class of a status: "2xx".
std::string ClassOf(int http_status) { return fmt::format("{}xx", http_status / 100); }

}  // namespace

DaemonPages::DaemonPages(Options options)
    : options_(std::move(options)),
      calls_(metrics_),
      collector_(metrics_.AddCollector([this](MetricSheet& sheet) { Collect(sheet); })) {}

DaemonPages::~DaemonPages() { Stop(); }

StatusOr<std::unique_ptr<DaemonPages>> DaemonPages::Make(Options options) {
  std::unique_ptr<DaemonPages> pages(new DaemonPages(std::move(options)));
  KILN_ASSIGN_OR_RETURN(const std::optional<int> port,
                        ParseHttpPort(pages->options_.flags.http_port));
  if (!port.has_value()) return pages;
  KILN_ASSIGN_OR_RETURN(HostPort listen, ParseListenAddress(pages->options_.listen));
  listen.port = *port;
  std::array<Counter, 6> replies;
  for (size_t i = 2; i < replies.size(); ++i) {
    replies[i] = pages->metrics_.AddCounter(kRepliesName, kRepliesHelp,
                                            {{"status", ClassOf(static_cast<int>(i) * 100)}});
  }
  pages->port_ =
      std::make_unique<HttpPort>(HttpPort::Options{.listen = listen.ToString(),
                                                   // A daemon is of use without pages, too.
                                                   .or_any_port = true,
                                                   .service = pages->options_.service,
                                                   .access = pages->options_.access,
                                                   .sessions = pages->options_.sessions,
                                                   .replied =
                                                       [replies](int http_status, const Status&) {
                                                         const auto index =
                                                             static_cast<size_t>(http_status / 100);
                                                         if (index < replies.size())
                                                           replies[index].Add();
                                                       },
                                                   .clock = pages->options_.clock});
  pages->AddPages();
  return pages;
}

void DaemonPages::AddPages() {
  port_->Handle("/healthz", std::nullopt, [](const HttpRequest&) {
    HttpReply reply;
    reply.body = "ok\n";
    return reply;
  });
  port_->Handle("/metrics", Role::kRead, [this](const HttpRequest&) {
    HttpReply reply;
    reply.content_type = kMetricsContentType;
    reply.body = metrics_.Text();
    return reply;
  });
}

Status DaemonPages::Start() {
  if (port_ == nullptr) return OkStatus();
  KILN_RETURN_IF_ERROR(port_->Start());
  KILN_ASSIGN_OR_RETURN(const HostPort bound, ParseHostPort(port_->address()));
  KILN_ASSIGN_OR_RETURN(HostPort reachable, ReachableAddress(options_.advertise, bound));
  reachable.port = bound.port;
  address_ = reachable.ToString();
  LogInfo("serving pages on {}://{}/metrics", port_->has_tls() ? "https" : "http", address_);
  return OkStatus();
}

void DaemonPages::Stop() {
  if (port_ != nullptr) port_->Stop();
}

void DaemonPages::Collect(MetricSheet& sheet) const {
  CollectProcess(sheet);
  sheet.Gauge("kiln_build_info", "1 for the version of the daemon.", 1,
              {{"version", std::string(kVersion)}, {"service", options_.service}});
  if (options_.access.keys() == nullptr) return;
  sheet.Gauge(
      "kiln_certificate_end_timestamp_seconds", "Unix time at which the daemon's certificate ends.",
      absl::ToDoubleSeconds(options_.access.keys()->Now()->certificate.ends() - absl::UnixEpoch()));
}

}  // namespace kiln
