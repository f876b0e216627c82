#include "base/keys/revocations.h"

#include <openssl/pem.h>

#include "base/keys/openssl.h"

namespace kiln {
namespace {

// Returns -1 if the list has no number.
int64_t NumberOf(const X509_CRL* list) {
  const openssl::Integer number(
      static_cast<ASN1_INTEGER*>(X509_CRL_get_ext_d2i(list, NID_crl_number, nullptr, nullptr)));
  int64_t value = -1;
  return number != nullptr && ASN1_INTEGER_get_int64(&value, number.get()) == 1 ? value : -1;
}

Revocations::Entries EntriesOf(X509_CRL* list) {
  Revocations::Entries entries;
  STACK_OF(X509_REVOKED)* const revoked = X509_CRL_get_REVOKED(list);
  // An absent list has -1 entries.
  for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
    const X509_REVOKED* const entry = sk_X509_REVOKED_value(revoked, i);
    entries.emplace(openssl::SerialText(X509_REVOKED_get0_serialNumber(entry)),
                    openssl::ToTime(X509_REVOKED_get0_revocationDate(entry)));
  }
  return entries;
}

}  // namespace

StatusOr<Revocations> Revocations::Parse(std::string_view pem, const Certificate& authority,
                                         std::string_view where) {
  const openssl::ErrorScope errors;
  const openssl::X509List list(pem.size() > openssl::kMaxPemBytes
                                   ? nullptr
                                   : PEM_read_bio_X509_CRL(openssl::Reader(pem).get(), nullptr,
                                                           openssl::NoPassPhrase, nullptr));
  if (list == nullptr) {
    return DataLoss(
        "{} holds no list of revocations that can be read: it is damaged or something else; copy "
        "the file anew from where the farm's authority is",
        where);
  }
  if (X509_CRL_verify(list.get(), X509_get0_pubkey(authority.handle())) != 1) {
    return FailedPrecondition(
        "the list of revocations in {} is not signed by the authority '{}', expected this farm's; "
        "copy the file anew from where the farm's authority is",
        where, authority.CommonName());
  }
  Revocations revocations;
  revocations.pem_ = pem;
  revocations.number_ = NumberOf(list.get());
  revocations.entries_ = EntriesOf(list.get());
  return revocations;
}

std::optional<absl::Time> Revocations::RevokedAt(std::string_view serial) const {
  const auto found = entries_.find(serial);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

}  // namespace kiln
