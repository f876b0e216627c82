#include "rpc/artifact_signature.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/keys/role.h"
#include "base/keys/signature.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

// Returns what is signed. Each part has its length in front of it, so that no two artifacts have
// the same text.
std::string SignedText(std::string_view digest, std::string_view target, std::string_view trial) {
  std::string text = "kiln artifact\n";
  for (const std::string_view part : {digest, target, trial}) {
    text += fmt::format("{}:{}\n", part.size(), part);
  }
  return text;
}

template <typename... Args>
Status Refused(fmt::format_string<Args...> format, Args&&... args) {
  return MakeStatus(StatusCode::kPermissionDenied, format, std::forward<Args>(args)...);
}

// Checks what the artifact says of its trial.
Status CheckTrial(const v1::Artifact& artifact, std::string_view trial, std::string_view what) {
  if (artifact.signature().empty()) {
    return Refused(
        "the {} has no signature, expected that of a builder of this farm for trial '{}': start "
        "each builder with the farm's keys (`kiln builder --keys FOLDER`)",
        what, OneLine(trial));
  }
  if (trial.empty()) {
    return Refused(
        "the request names no trial for its {}, expected the id of the trial that a builder of "
        "this farm signed it for: send requests through the farm's scheduler",
        what);
  }
  if (artifact.trial() == trial) return OkStatus();
  return Refused(
      "the {} is signed for trial '{}', expected one that is signed for trial '{}': a signature "
      "holds for one trial, so have a builder of this farm build the program for this one",
      what, OneLine(artifact.trial()), OneLine(trial));
}

}  // namespace

Status SignArtifact(const KeyFolder& builder, std::string_view target, std::string_view trial,
                    v1::Artifact& artifact) {
  const std::string text = SignedText(artifact.digest(), target, trial);
  KILN_ASSIGN_OR_RETURN(std::string signature, SignText(builder.key, text));
  artifact.set_target(std::string(target));
  artifact.set_trial(std::string(trial));
  artifact.set_certificate(DerOf(builder.certificate));
  artifact.set_signature(std::move(signature));
  return OkStatus();
}

// A signed target is a text of the compiler's, which begins with its kind.
Status ArtifactCheck::CheckTarget(const v1::Artifact& artifact, std::string_view what) const {
  const std::string_view target = artifact.target();
  const std::string_view kind = target.substr(0, target.find(' '));
  if (kind == "null" || std::ranges::find(served_, kind) != served_.end()) return OkStatus();
  return Refused(
      "the {} is signed for target '{}', expected one for a target that this runner serves ({}): "
      "send it to a runner of that target's devices",
      what, OneLine(target), fmt::join(served_, ", "));
}

// Returns null for bytes that are no certificate.
std::shared_ptr<const ArtifactCheck::Read> ArtifactCheck::Find(const std::string& der) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = read_.find(der);
    if (found != read_.end()) return found->second;
  }
  const std::optional<Certificate> certificate = CertificateFromDer(der);
  if (!certificate.has_value()) return nullptr;
  return std::make_shared<const Read>(Read{*certificate, certificate->ToPem()});
}

void ArtifactCheck::Remember(const std::string& der, const std::shared_ptr<const Read>& read) {
  const std::lock_guard lock(mutex_);
  if (read_.contains(der)) return;
  if (read_.size() >= kMostRead) read_.clear();
  read_.emplace(der, read);
}

Status ArtifactCheck::Check(const v1::Artifact& artifact, std::string_view trial,
                            std::string_view what) {
  KILN_RETURN_IF_ERROR(CheckTrial(artifact, trial, what));
  const std::shared_ptr<const Read> read = Find(artifact.certificate());
  if (read == nullptr) {
    return Refused(
        "the {} came with {} bytes that are no certificate, expected that of the builder which "
        "signed it: have a builder of this farm build the program anew",
        what, artifact.certificate().size());
  }
  const StatusOr<Identity> builder = members_.Check(read->pem);
  if (!builder.ok()) return Refused("who signed the {}: {}", what, Message(builder.status()));
  Remember(artifact.certificate(), read);
  if (builder->role != Role::kWork) {
    return Refused(
        "the {} is signed by {}, whose role is {}, expected a builder, whose role is {}: `kiln "
        "keys issue NAME --role {}` where the farm's authority is, and give the builder that "
        "folder",
        what, builder->name, RoleName(builder->role), RoleName(Role::kWork), RoleName(Role::kWork));
  }
  const std::string text = SignedText(artifact.digest(), artifact.target(), artifact.trial());
  if (IsSignature(artifact.signature(), text, read->certificate)) {
    return CheckTarget(artifact, what);
  }
  return Refused(
      "the signature of the {} is not that of {} over digest '{}', target '{}' and trial '{}', "
      "expected an artifact as its builder made it: it was changed on the way, or the signature is "
      "made up; have a builder of this farm build the program anew",
      what, builder->name, OneLine(artifact.digest().substr(0, 12)), OneLine(artifact.target()),
      OneLine(artifact.trial()));
}

}  // namespace kiln
