// Posts bodies to a collector of OpenTelemetry over HTTP, on one connection that is kept.
#pragma once

#include <string>

#include "base/status.h"
#include "rpc/otlp/otlp_exporter.h"

namespace kiln {

// `address` is HOST:PORT; the usual port of a collector is 4318. InvalidArgument: it is no address.
// The function belongs to one thread at a time, and gives up after some seconds.
StatusOr<OtlpExporter::Post> PostTo(const std::string& address);

}  // namespace kiln
