// certificate.h: a certificate for tests of TLS.
#pragma once

#include <gtest/gtest.h>
#include <magpie/net/tls.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace magpie::support {

// A certificate for localhost and 127.0.0.1, signed by itself, in files for as long as this lives.
class Certificate {
 public:
  Certificate() {
    static std::atomic<int> number = 0;
    std::string base = testing::TempDir() + "magpie-tls-" + std::to_string(getpid()) + '-' +
                       std::to_string(number++);
    certificate = base + ".crt";
    key = base + ".key";
    EVP_PKEY* pair = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pair);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("magpie test"), -1, -1, 0);
    X509_set_issuer_name(x509, name);
    char names[] = "DNS:localhost,IP:127.0.0.1";
    X509_EXTENSION* alternatives =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    X509_add_ext(x509, alternatives, -1);
    X509_EXTENSION_free(alternatives);
    EXPECT_NE(X509_sign(x509, pair, EVP_sha256()), 0);
    write(certificate, [&](std::FILE* file) { return PEM_write_X509(file, x509); });
    write(key, [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
    });
    X509_free(x509);
    EVP_PKEY_free(pair);
  }
  ~Certificate() {
    unlink(certificate.c_str());
    unlink(key.c_str());
  }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;

  net::TlsServerConfig server(std::vector<std::string> alpn = {}) const {
    return net::TlsServerConfig(
        {.certificate_file = certificate, .key_file = key, .alpn = std::move(alpn)});
  }
  net::TlsClientConfig client(std::vector<std::string> alpn = {}) const {
    return net::TlsClientConfig({.verify = true, .ca_file = certificate, .alpn = std::move(alpn)});
  }

  std::string certificate, key;

 private:
  template <class Write>
  static void write(const std::string& path, Write f) {
    std::FILE* file = std::fopen(path.c_str(), "we");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(f(file), 1);
    std::fclose(file);
  }
};

inline const Certificate& certificate() {
  static const Certificate one;
  return one;
}

}  // namespace magpie::support
