// gRPC's health service, grpc.health.v1.Health, for a server as a whole.
//
// Any caller may ask it, so it takes nothing from the caller: unlike the service that comes with
// gRPC, it does not read the request, and gives the same answer for every service that a request
// names. Thread-safe.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <mutex>
#include <set>
#include <string_view>

namespace kiln {

inline constexpr std::string_view kHealthCheckMethod = "/grpc.health.v1.Health/Check";

// Object for RegisterCallbackGenericService. It gets the calls to all methods that no other service
// has, and answers UNIMPLEMENTED to methods that are not the health service's. Outlives the server.
class HealthService : public grpc::CallbackGenericService {
 public:
  // Sets the answer of Check, and tells the callers of Watch. True at first.
  void SetServing(bool serving);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

 private:
  class Watcher;

  std::mutex mutex_;
  bool serving_ = true;
  std::set<Watcher*> watchers_;
};

}  // namespace kiln
