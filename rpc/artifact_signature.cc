#include "rpc/artifact_signature.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/keys/certificate.h"
#include "base/keys/role.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

// Longest certificate that is looked at. Ours have less than 1 KiB.
constexpr size_t kMostCertificateBytes = 16 << 10;

struct ContextFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, ContextFree>;

const unsigned char* BytesOf(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Returns what is signed. Each part has its length in front of it, so that no two artifacts have
// the same text.
std::string SignedText(std::string_view digest, std::string_view target, std::string_view trial) {
  std::string text = "kiln artifact\n";
  for (const std::string_view part : {digest, target, trial}) {
    text += fmt::format("{}:{}\n", part.size(), part);
  }
  return text;
}

std::string DerOf(const Certificate& certificate) {
  const int size = i2d_X509(certificate.handle(), nullptr);
  std::string der(static_cast<size_t>(std::max(size, 0)), '\0');
  auto* end = reinterpret_cast<unsigned char*>(der.data());
  KILN_CHECK(size > 0 && i2d_X509(certificate.handle(), &end) == size);
  return der;
}

std::optional<Certificate> CertificateOf(const std::string& der) {
  if (der.empty() || der.size() > kMostCertificateBytes) return std::nullopt;
  const unsigned char* from = BytesOf(der);
  X509* const certificate = d2i_X509(nullptr, &from, static_cast<long>(der.size()));
  ERR_clear_error();
  if (certificate == nullptr) return std::nullopt;
  return Certificate::Own(certificate);
}

bool IsSignature(const std::string& signature, const std::string& text,
                 const Certificate& certificate) {
  const Context context(EVP_MD_CTX_new());
  EVP_PKEY* const key = X509_get0_pubkey(certificate.handle());
  const bool is_right =
      context != nullptr && key != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestVerify(context.get(), BytesOf(signature), signature.size(), BytesOf(text),
                       text.size()) == 1;
  ERR_clear_error();
  return is_right;
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
  const Context context(EVP_MD_CTX_new());
  size_t size = 0;
  std::string signature;
  bool is_signed = context != nullptr &&
                   EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr,
                                      builder.key.handle()) == 1 &&
                   EVP_DigestSign(context.get(), nullptr, &size, BytesOf(text), text.size()) == 1;
  if (is_signed) {
    signature.resize(size);
    is_signed = EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()),
                               &size, BytesOf(text), text.size()) == 1;
  }
  ERR_clear_error();
  if (!is_signed) return Internal("OpenSSL cannot sign an artifact");
  signature.resize(size);
  artifact.set_target(std::string(target));
  artifact.set_trial(std::string(trial));
  artifact.set_certificate(DerOf(builder.certificate));
  artifact.set_signature(std::move(signature));
  return OkStatus();
}

Status ArtifactCheck::Check(const v1::Artifact& artifact, std::string_view trial,
                            std::string_view what) {
  KILN_RETURN_IF_ERROR(CheckTrial(artifact, trial, what));
  const std::optional<Certificate> certificate = CertificateOf(artifact.certificate());
  if (!certificate.has_value()) {
    return Refused(
        "the {} came with {} bytes that are no certificate, expected that of the builder which "
        "signed it: have a builder of this farm build the program anew",
        what, artifact.certificate().size());
  }
  const StatusOr<Identity> builder = members_.Check(certificate->ToPem());
  if (!builder.ok()) return Refused("who signed the {}: {}", what, Message(builder.status()));
  if (builder->role != Role::kWork) {
    return Refused(
        "the {} is signed by {}, whose role is {}, expected a builder, whose role is {}: `kiln "
        "keys issue NAME --role {}` where the farm's authority is, and give the builder that "
        "folder",
        what, builder->name, RoleName(builder->role), RoleName(Role::kWork), RoleName(Role::kWork));
  }
  const std::string text = SignedText(artifact.digest(), artifact.target(), artifact.trial());
  if (IsSignature(artifact.signature(), text, *certificate)) return OkStatus();
  return Refused(
      "the signature of the {} is not that of {} over digest '{}', target '{}' and trial '{}', "
      "expected an artifact as its builder made it: it was changed on the way, or the signature is "
      "made up; have a builder of this farm build the program anew",
      what, builder->name, OneLine(artifact.digest().substr(0, 12)), OneLine(artifact.target()),
      OneLine(artifact.trial()));
}

}  // namespace kiln
