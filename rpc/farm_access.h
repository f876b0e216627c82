// Access to a farm: keys, the farm's secret, or nothing. A process shows it to the others of the
// farm, and asks it of them.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/keys/identity.h"
#include "base/keys/live_keys.h"
#include "base/server/secret.h"
#include "base/status.h"
#include "rpc/admission_control.h"
#include "rpc/server_watch.h"

namespace kiln {

// A value; copies are cheap and share the keys. Thread-safe.
class FarmAccess {
 public:
  // Shows nothing and asks for nothing.
  FarmAccess() = default;
  // A farm on one machine: the secret goes with each call, in the clear.
  // NOLINTNEXTLINE(google-explicit-constructor)
  FarmAccess(Secret secret) : secret_(std::move(secret)) {}
  // A farm with keys: TLS, and a certificate at both ends. A thread of gRPC reads the files once a
  // second, so a process makes the object once. `clock` outlives all copies.
  explicit FarmAccess(std::shared_ptr<LiveKeys> keys, Clock& clock = Clock::Real());

  // Opens the folder of keys, or reads the file of the secret. "" = the environment's KILN_KEYS or
  // KILN_SECRET_FILE, the first of which goes before the second; without any of them the access
  // is empty. Errors are those of LiveKeys::Open and Secret::Read; Unauthenticated, with the
  // command that mends it, if the folder's own certificate does not hold now; InvalidArgument if
  // both names are given.
  static StatusOr<FarmAccess> Open(const std::string& keys_folder, const std::string& secret_file);

  const Secret& secret() const { return secret_; }
  // Null: the farm has no keys.
  const std::shared_ptr<LiveKeys>& keys() const { return keys_; }
  // Returns whose keys these are. Unauthenticated if the certificate does not hold now.
  StatusOr<Identity> Self() const;

  // Returns credentials for a channel to the farm's daemon at this address, HOST:PORT. With keys,
  // the daemon is judged as long as the process is connected (ServerWatch). Those of a secret are
  // plain text: MakeChannel adds the secret.
  std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const std::string& address) const;
  // Returns the check of callers of the service with this name: "tracker".
  AdmissionControl MakeAdmission(std::string service) const;
  // Returns a text that only daemons with this secret, or with this key, know.
  std::string SealKey() const;

  // Returns the farm's list of revoked certificates for another daemon; "" without keys.
  std::string Revoked() const;
  // Takes the list of another daemon if it is newer (LiveKeys::TakeRevocations).
  void TakeRevoked(std::string_view pem) const;

 private:
  Secret secret_;
  std::shared_ptr<LiveKeys> keys_;
  Clock* clock_ = nullptr;
  std::shared_ptr<ServerWatch> servers_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
};

}  // namespace kiln
