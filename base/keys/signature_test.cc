#include "base/keys/signature.h"

#include "base/keys/keys_testing.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

TEST(SignatureTest, HoldsForItsTextAndItsKeyOnly) {
  const Authority farm = TestAuthority();
  const Certificate other = TestCertificate(farm, {"box1", Role::kWork});
  ASSERT_OK_AND_ASSIGN(std::string signature, SignText(farm.key(), "text"));
  EXPECT_TRUE(IsSignature(signature, "text", farm.certificate()));
  EXPECT_FALSE(IsSignature(signature, "text ", farm.certificate()));
  EXPECT_FALSE(IsSignature(signature, "", farm.certificate()));
  EXPECT_FALSE(IsSignature(signature, "text", other));
  EXPECT_FALSE(IsSignature("", "text", farm.certificate()));
  signature.back() ^= 1;
  EXPECT_FALSE(IsSignature(signature, "text", farm.certificate()));
}

TEST(SignatureTest, CertificatesAsBytes) {
  const Certificate certificate = TestCertificate(TestAuthority(), {"box1", Role::kWork});
  const std::string der = DerOf(certificate);
  EXPECT_LT(der.size(), 1024u);
  const std::optional<Certificate> read = CertificateFromDer(der);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->Equals(certificate));
  EXPECT_FALSE(CertificateFromDer("").has_value());
  EXPECT_FALSE(CertificateFromDer("junk").has_value());
  EXPECT_FALSE(CertificateFromDer(der.substr(0, der.size() - 1)).has_value());
  EXPECT_FALSE(CertificateFromDer(der + "x").has_value());
  EXPECT_FALSE(CertificateFromDer(der + der).has_value());
  EXPECT_FALSE(CertificateFromDer(der + std::string(20'000, 'x')).has_value());
}

}  // namespace
}  // namespace kiln
