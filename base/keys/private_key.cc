#include "base/keys/private_key.h"

#include <openssl/ec.h>
#include <openssl/pem.h>

#include "base/keys/openssl.h"

namespace kiln {
namespace {

constexpr char kCurve[] = "P-256";
// OpenSSL's own name of the curve, which it gives back.
constexpr std::string_view kGroup = "prime256v1";

bool IsOfOurKind(EVP_PKEY* key) {
  char group[64] = "";
  size_t size = 0;
  return EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_group_name(key, group, sizeof(group), &size) == 1 &&
         std::string_view(group, size) == kGroup;
}

}  // namespace

PrivateKey::PrivateKey(evp_pkey_st* key) : key_(key, EVP_PKEY_free) {}

StatusOr<PrivateKey> PrivateKey::Make() {
  const openssl::ErrorScope errors;
  EVP_PKEY* const key = EVP_EC_gen(kCurve);
  if (key == nullptr) return errors.Failed("make a key");
  return PrivateKey(key);
}

StatusOr<PrivateKey> PrivateKey::Parse(std::string_view pem, std::string_view where) {
  const openssl::ErrorScope errors;
  openssl::Key key(pem.size() > openssl::kMaxPemBytes
                       ? nullptr
                       : PEM_read_bio_PrivateKey(openssl::Reader(pem).get(), nullptr,
                                                 openssl::NoPassPhrase, nullptr));
  if (key == nullptr) {
    return DataLoss(
        "{} holds no private key that can be read: it is damaged, encrypted or something else; "
        "copy the folder anew from where the farm's authority is",
        where);
  }
  if (!IsOfOurKind(key.get())) {
    return FailedPrecondition(
        "the private key in {} is of another kind, expected one of P-256; `kiln keys issue` makes "
        "one",
        where);
  }
  return PrivateKey(key.release());
}

std::string PrivateKey::ToPem() const {
  const openssl::ErrorScope errors;
  const openssl::Bio bio(BIO_new(BIO_s_secmem()));
  KILN_CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), handle(), nullptr, nullptr, 0, nullptr,
                                           nullptr) == 1);
  return openssl::Written(bio.get());
}

bool PrivateKey::Matches(const Certificate& certificate) const {
  const openssl::ErrorScope errors;
  return X509_check_private_key(certificate.handle(), handle()) == 1;
}

}  // namespace kiln
