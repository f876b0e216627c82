// Signatures of artifacts: what a runner runs was made by a builder of its own farm, for the trial
// that it is measured in.
//
// A builder signs the digest of the artifact, the target that it compiled for, and the id of the
// trial, with the key of its folder of keys (base/keys/key_folder.h): ECDSA over P-256 with
// SHA-256. The certificate goes along. The digest covers the code and the launch plan
// (rpc/artifact_digest.h).
//
// Trial ids: "JOB/NUMBER" of a trial, "JOB/record ID" of a finalist that is built again,
// kReferenceTrial of a reference program. An artifact that is measured again keeps the id of its
// trial. A reference belongs to no trial, because jobs share it; a request names it by its digest,
// and a runner compares a few of its outputs with the interpreter's.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/keys/certificate.h"
#include "base/keys/key_folder.h"
#include "base/keys/live_keys.h"
#include "base/status.h"
#include "proto/trial.pb.h"
#include "rpc/member_check.h"

namespace kiln {

// Trial id of programs that answers are compared with.
inline constexpr std::string_view kReferenceTrial = "reference";

// Signs the artifact, whose digest is that of its content. Sets target, trial, certificate and
// signature. Costs some 30 us. Internal if OpenSSL fails.
Status SignArtifact(const KeyFolder& builder, std::string_view target, std::string_view trial,
                    v1::Artifact& artifact);

// A runner's check of signatures. Thread-safe.
class ArtifactCheck {
 public:
  // `keys` has the authority of the farm and its revocations. `served` are the kinds of targets
  // that the runner announces as keys ("llvm"); others among its keys do no harm. `clock` outlives
  // the object.
  ArtifactCheck(std::shared_ptr<LiveKeys> keys, std::vector<std::string> served, Clock& clock)
      : members_(std::move(keys), clock), served_(std::move(served)) {}

  // OK if a member of the farm with the role `work` signed the artifact for this trial and for a
  // kind of target that the runner serves, and its certificate holds now. Every runner serves
  // "null". The caller has checked that the digest is that of the content.
  // PermissionDenied otherwise, in one sentence with what was found, what is expected and what to
  // do. `what` names the artifact there: "artifact". Costs some 80 us, the check of a signature;
  // 400 us more for a certificate that is not remembered.
  Status Check(const v1::Artifact& artifact, std::string_view trial, std::string_view what);

 private:
  // Most certificates that are remembered. A farm has fewer builders.
  static constexpr size_t kMostRead = 1'000;

  // A certificate that was read. Whether its holder is a member is asked anew each time.
  struct Read {
    Certificate certificate;
    std::string pem;
  };

  std::shared_ptr<const Read> Find(const std::string& der);
  void Remember(const std::string& der, const std::shared_ptr<const Read>& read);
  Status CheckTarget(const v1::Artifact& artifact, std::string_view what) const;

  MemberCheck members_;
  const std::vector<std::string> served_;
  std::mutex mutex_;
  // The certificates of members, by their DER form. Guarded by mutex_.
  std::map<std::string, std::shared_ptr<const Read>> read_;
};

}  // namespace kiln
