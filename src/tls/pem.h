// pem.h: certificates and keys from files.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>

#include <magpie/net/tls.h>

namespace magpie::net {

struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using OwnedCertificate = std::unique_ptr<X509, FreeCertificate>;

// All of these throw std::system_error that names the file: as the system says for one that cannot
// be read (errc::no_such_file_or_directory, ...), else of tls_errors().
void use_identity(SSL_CTX* context, const TlsIdentity& identity);
// To verify by.
void trust_file(SSL_CTX* context, const std::string& path);
// Names them to clients that are asked for a certificate.
void tell_whom_we_trust(SSL_CTX* context, const std::string& path);

// What changes when a file is replaced or written.
struct FileStamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = -1, modified_ns = 0, changed_ns = 0;
  // Of a file that is not there: the default.
  static FileStamp of(const std::string& path) noexcept;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

}  // namespace magpie::net
