#include "base/keys/certificate.h"

#include <openssl/pem.h>

#include <optional>

#include "base/keys/openssl.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr size_t kShown = 80;

std::string NameText(X509_NAME* name) {
  std::string text(kShown, '\0');
  const int size =
      X509_NAME_get_text_by_NID(name, NID_commonName, text.data(), static_cast<int>(text.size()));
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return OneLine(text);
}

using Names = std::unique_ptr<GENERAL_NAMES, openssl::Freer<GENERAL_NAMES_free>>;

std::string_view UriOf(const GENERAL_NAME& name) {
  if (name.type != GEN_URI) return {};
  const ASN1_IA5STRING* const uri = name.d.uniformResourceIdentifier;
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
          static_cast<size_t>(ASN1_STRING_length(uri))};
}

}  // namespace

StatusOr<Certificate> Certificate::Parse(std::string_view pem, std::string_view where) {
  const openssl::ErrorScope errors;
  X509* const certificate =
      pem.size() > openssl::kMaxPemBytes
          ? nullptr
          : PEM_read_bio_X509(openssl::Reader(pem).get(), nullptr, openssl::NoPassPhrase, nullptr);
  if (certificate != nullptr) return Own(certificate);
  return DataLoss(
      "{} holds no certificate that can be read: it is damaged or something else; copy the folder "
      "anew from where the farm's authority is",
      where);
}

Certificate Certificate::Own(x509_st* certificate) {
  return Certificate(std::shared_ptr<x509_st>(certificate, X509_free));
}

std::string Certificate::ToPem() const {
  const openssl::ErrorScope errors;
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  KILN_CHECK(PEM_write_bio_X509(bio.get(), handle()) == 1);
  return openssl::Written(bio.get());
}

std::string Certificate::CommonName() const { return NameText(X509_get_subject_name(handle())); }

std::string Certificate::IssuerName() const { return NameText(X509_get_issuer_name(handle())); }

std::string Certificate::Serial() const {
  return openssl::SerialText(X509_get0_serialNumber(handle()));
}

absl::Time Certificate::begins() const { return openssl::ToTime(X509_get0_notBefore(handle())); }

absl::Time Certificate::ends() const { return openssl::ToTime(X509_get0_notAfter(handle())); }

StatusOr<Member> Certificate::GetMember() const {
  const openssl::ErrorScope errors;
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(handle(), NID_subject_alt_name, nullptr, nullptr)));
  std::optional<Member> found;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    StatusOr<Member> member = ParseMemberUri(UriOf(*sk_GENERAL_NAME_value(names.get(), i)));
    if (!member.ok()) continue;
    if (found.has_value()) {
      return InvalidArgument("the certificate names two members, {} and {}, expected one",
                             MemberUri(*found), MemberUri(*member));
    }
    found = *std::move(member);
  }
  if (!found.has_value()) {
    return InvalidArgument(
        "the certificate of '{}' names no member of a farm, expected a URI of the form "
        "kiln:ROLE/NAME; `kiln keys issue` makes one",
        CommonName());
  }
  if (CommonName() != found->name) {
    return InvalidArgument("the certificate of '{}' names {}, expected the same name", CommonName(),
                           MemberUri(*found));
  }
  return *std::move(found);
}

bool Certificate::Equals(const Certificate& other) const {
  return X509_cmp(handle(), other.handle()) == 0;
}

std::string UtcText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

}  // namespace kiln
