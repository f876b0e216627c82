#include "base/keys/signature.h"

#include <algorithm>
#include <memory>

#include "base/keys/openssl.h"

namespace kiln {
namespace {

constexpr size_t kMostCertificateBytes = 16 << 10;

using Context = openssl::Owned<EVP_MD_CTX, EVP_MD_CTX_free>;

const unsigned char* BytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

StatusOr<std::string> SignText(const PrivateKey& key, std::string_view text) {
  const openssl::ErrorScope errors;
  const Context context(EVP_MD_CTX_new());
  size_t size = 0;
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.handle()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, BytesOf(text), text.size()) != 1) {
    return errors.Failed("sign");
  }
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     BytesOf(text), text.size()) != 1) {
    return errors.Failed("sign");
  }
  signature.resize(size);
  return signature;
}

bool IsSignature(std::string_view signature, std::string_view text,
                 const Certificate& certificate) {
  const openssl::ErrorScope errors;
  const Context context(EVP_MD_CTX_new());
  EVP_PKEY* const key = X509_get0_pubkey(certificate.handle());
  return context != nullptr && key != nullptr &&
         EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), BytesOf(signature), signature.size(), BytesOf(text),
                          text.size()) == 1;
}

std::string DerOf(const Certificate& certificate) {
  const openssl::ErrorScope errors;
  const int size = i2d_X509(certificate.handle(), nullptr);
  std::string der(static_cast<size_t>(std::max(size, 0)), '\0');
  auto* end = reinterpret_cast<unsigned char*>(der.data());
  KILN_CHECK(size > 0 && i2d_X509(certificate.handle(), &end) == size);
  return der;
}

std::optional<Certificate> CertificateFromDer(std::string_view der) {
  const openssl::ErrorScope errors;
  if (der.size() > kMostCertificateBytes) return std::nullopt;
  const unsigned char* from = BytesOf(der);
  openssl::X509Certificate certificate(d2i_X509(nullptr, &from, static_cast<long>(der.size())));
  // A certificate has one text, so that nothing which is kept by the text is kept twice.
  if (certificate == nullptr || from != BytesOf(der) + der.size()) return std::nullopt;
  return Certificate::Own(certificate.release());
}

}  // namespace kiln
