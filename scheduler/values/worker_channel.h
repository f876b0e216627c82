// A connection to a worker, and the calls over it.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>

#include "proto/builder.grpc.pb.h"
#include "proto/runner.grpc.pb.h"

namespace kiln::scheduler {

struct WorkerChannel {
  std::string address;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Builder::Stub> builder;
  std::unique_ptr<v1::Runner::Stub> runner;
};

}  // namespace kiln::scheduler
