// certificate.h: certificates for tests of TLS.
#pragma once

#include <gtest/gtest.h>
#include <magpie/net/tls.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace magpie::support {

// A certificate in files for as long as this lives. By default for localhost and 127.0.0.1, signed
// by itself.
class Certificate {
 public:
  struct Options {
    std::string common_name = "magpie test";
    std::string names = "DNS:localhost,IP:127.0.0.1";  // empty: none
    const Certificate* signer = nullptr;               // null: itself
    bool rsa = false;
    bool signs = false;  // others
  };

  Certificate() : Certificate(Options()) {}
  explicit Certificate(const Options& options) {
    static std::atomic<int> number = 0;
    int serial = number++;
    std::string base = testing::TempDir() + "magpie-tls-" + std::to_string(getpid()) + '-' +
                       std::to_string(serial);
    certificate = base + ".crt";
    key = base + ".key";
    pair_.reset(options.rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"));
    x509_.reset(X509_new());
    X509* x509 = x509_.get();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), serial + 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pair_.get());
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(options.common_name.c_str()),
                               -1, -1, 0);
    const Certificate& signer = options.signer == nullptr ? *this : *options.signer;
    X509_set_issuer_name(x509, X509_get_subject_name(signer.x509_.get()));
    if (!options.names.empty()) add(NID_subject_alt_name, options.names);
    if (options.signs) add(NID_basic_constraints, "critical,CA:TRUE");
    EXPECT_NE(X509_sign(x509, signer.pair_.get(), EVP_sha256()), 0);
    write_files();
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
  net::TlsIdentity identity() const { return {certificate, key}; }

  // Writes both to the files of another, as somebody who renews a certificate does.
  void replace(const Certificate& other) const {
    write_to(other.certificate, other.key, ".new");
    EXPECT_EQ(std::rename((other.certificate + ".new").c_str(), other.certificate.c_str()), 0);
    EXPECT_EQ(std::rename((other.key + ".new").c_str(), other.key.c_str()), 0);
  }
  // So many more times, for a chain that takes long to send.
  void append_to_chain(int times) const {
    write(certificate, "ae", [&](std::FILE* file) {
      for (int i = 0; i < times; ++i) EXPECT_EQ(PEM_write_X509(file, x509_.get()), 1);
      return 1;
    });
  }

  std::string certificate, key;

 private:
  struct Free {
    void operator()(X509* x509) const { X509_free(x509); }
    void operator()(EVP_PKEY* pair) const { EVP_PKEY_free(pair); }
  };

  void add(int what, const std::string& text) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, text.c_str());
    X509_add_ext(x509_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  void write_files() const { write_to(certificate, key, ""); }
  void write_to(const std::string& to_certificate, const std::string& to_key,
                const std::string& ending) const {
    write(to_certificate + ending, "we",
          [&](std::FILE* file) { return PEM_write_X509(file, x509_.get()); });
    write(to_key + ending, "we", [&](std::FILE* file) {
      return PEM_write_PrivateKey(file, pair_.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  template <class Write>
  static void write(const std::string& path, const char* mode, Write f) {
    std::FILE* file = std::fopen(path.c_str(), mode);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(f(file), 1);
    std::fclose(file);
  }

  std::unique_ptr<EVP_PKEY, Free> pair_;
  std::unique_ptr<X509, Free> x509_;
};

inline const Certificate& certificate() {
  static const Certificate one;
  return one;
}

}  // namespace magpie::support
