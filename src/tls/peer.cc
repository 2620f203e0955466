#include "tls/peer.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace magpie::net {
namespace {

// With its zero bytes, if it has any: a name that only begins like another is another.
std::string text_of(const ASN1_STRING* text) {
  unsigned char* bytes = nullptr;
  int size = text == nullptr ? -1 : ASN1_STRING_to_UTF8(&bytes, text);
  if (size < 0) return {};
  std::string result(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return result;
}

std::string raw_text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_of(const ASN1_STRING* bytes) {
  char text[INET6_ADDRSTRLEN];
  int family = ASN1_STRING_length(bytes) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(bytes) != 16) return {};
  const char* written = inet_ntop(family, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return written == nullptr ? "" : written;
}

std::string text_of(const X509_NAME* name) {
  std::unique_ptr<BIO, int (*)(BIO*)> out(BIO_new(BIO_s_mem()), BIO_free);
  if (out == nullptr || X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253) < 0) return {};
  char* bytes = nullptr;
  long size = BIO_get_mem_data(out.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string common_name_of(const X509_NAME* name) {
  int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  return at < 0 ? std::string() : text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
}

std::string hexadecimal(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::chrono::system_clock::time_point time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

void add_names(const GENERAL_NAMES* names, TlsCertificate& to) {
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    switch (name->type) {
      case GEN_DNS:
        to.dns_names.push_back(raw_text_of(name->d.dNSName));
        break;
      case GEN_EMAIL:
        to.emails.push_back(raw_text_of(name->d.rfc822Name));
        break;
      case GEN_URI:
        to.uris.push_back(raw_text_of(name->d.uniformResourceIdentifier));
        break;
      case GEN_IPADD:
        to.ip_addresses.push_back(address_of(name->d.iPAddress));
        break;
      default:
        break;
    }
  }
}

}  // namespace

TlsCertificate describe(X509* certificate) {
  TlsCertificate result;
  result.subject = text_of(X509_get_subject_name(certificate));
  result.issuer = text_of(X509_get_issuer_name(certificate));
  result.common_name = common_name_of(X509_get_subject_name(certificate));
  std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  if (names != nullptr) add_names(names.get(), result);
  const ASN1_INTEGER* serial = X509_get0_serialNumber(certificate);
  result.serial = hexadecimal(ASN1_STRING_get0_data(serial),
                              static_cast<std::size_t>(ASN1_STRING_length(serial)));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) == 1)
    result.sha256 = hexadecimal(digest, size);
  result.not_before = time_of(X509_get0_notBefore(certificate));
  result.not_after = time_of(X509_get0_notAfter(certificate));
  return result;
}

}  // namespace magpie::net
