#include "rpc/call_metrics.h"

#include "base/status_testing.h"

namespace kiln {
namespace {

TEST(CallMetricsTest, CountsByMethodAndStatus) {
  Metrics metrics;
  CallMetrics calls(metrics);
  const CallEnded ended = calls.Hook();
  EXPECT_EQ(metrics.Text(), "");
  ended("/kiln.v1.Scheduler/Submit", grpc::StatusCode::OK);
  ended("/kiln.v1.Scheduler/Submit", grpc::StatusCode::OK);
  ended("/kiln.v1.Scheduler/Submit", grpc::StatusCode::UNAUTHENTICATED);
  // Strangers may call what they like.
  ended("/evil/1", grpc::StatusCode::UNIMPLEMENTED);
  ended("/evil/2", static_cast<grpc::StatusCode>(99));
  EXPECT_EQ(metrics.Text(),
            "# HELP kiln_grpc_calls_total Calls of gRPC that were answered or refused.\n"
            "# TYPE kiln_grpc_calls_total counter\n"
            "kiln_grpc_calls_total{code=\"OK\",method=\"Scheduler.Submit\"} 2\n"
            "kiln_grpc_calls_total{code=\"UNAUTHENTICATED\",method=\"Scheduler.Submit\"} 1\n"
            "kiln_grpc_calls_total{code=\"UNIMPLEMENTED\",method=\"other\"} 1\n"
            "kiln_grpc_calls_total{code=\"UNKNOWN\",method=\"other\"} 1\n");
}

}  // namespace
}  // namespace kiln
