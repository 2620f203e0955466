#include "tls/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "tls/openssl_error.h"

namespace magpie::net {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using OwnedBio = std::unique_ptr<BIO, FreeBio>;

// An error number; 0: all of it was read. Not inlined, as all that looks at errno: a compiler may
// keep its address over a call into the runtime, after which the thread may be another.
[[gnu::noinline]] int read_whole(const std::string& path, std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return errno;
  char some[4096];
  errno = 0;
  while (std::size_t count = std::fread(some, 1, sizeof some, file)) text.append(some, count);
  int error = std::ferror(file) != 0 ? (errno != 0 ? errno : EIO) : 0;
  std::fclose(file);
  return error;
}

// The file's text; "the private key in FILE" begins what is thrown.
std::string text_of(const std::string& what, const std::string& path) {
  std::string text;
  if (int error = read_whole(path, text))
    throw std::system_error(error, std::generic_category(), "magpie: " + what + path);
  return text;
}

OwnedBio bio_of(const std::string& text) {
  ERR_clear_error();
  OwnedBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio == nullptr) throw std::bad_alloc();
  return bio;
}

// Nobody is there to type one in.
int no_password(char*, int, int, void*) { return -1; }

// A PEM file ends with "no start line"; anything else is an error.
bool is_at_end() {
  unsigned long error = ERR_peek_last_error();
  bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (end) ERR_clear_error();
  return end;
}

}  // namespace

void use_identity(SSL_CTX* context, const TlsIdentity& identity) {
  const std::string about_chain = "the certificate in ";
  std::string text = text_of(about_chain, identity.certificate_file);
  OwnedBio bio = bio_of(text);
  OwnedCertificate own(PEM_read_bio_X509_AUX(bio.get(), nullptr, no_password, nullptr));
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1)
    throw_openssl_error(about_chain + identity.certificate_file);
  SSL_CTX_clear_chain_certs(context);
  while (OwnedCertificate next{PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1)
      throw_openssl_error(about_chain + identity.certificate_file);
    (void)next.release();  // it is the context's now
  }
  if (!is_at_end()) throw_openssl_error(about_chain + identity.certificate_file);

  const std::string about_key = "the private key in ";
  std::string key_text = text_of(about_key, identity.key_file);
  bio = bio_of(key_text);
  std::unique_ptr<EVP_PKEY, FreeKey> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  OPENSSL_cleanse(key_text.data(), key_text.size());
  if (key == nullptr) throw_openssl_error(about_key + identity.key_file);
  ERR_clear_error();
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    throw_openssl_error("the key in " + identity.key_file + " is not that of the certificate in " +
                        identity.certificate_file);
}

void trust_file(SSL_CTX* context, const std::string& path) {
  const std::string about = "the certificates to trust in ";
  std::string text = text_of(about, path);
  OwnedBio bio = bio_of(text);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  int found = 0;
  while (OwnedCertificate next{PEM_read_bio_X509_AUX(bio.get(), nullptr, no_password, nullptr)}) {
    if (X509_STORE_add_cert(store, next.get()) != 1) throw_openssl_error(about + path);
    ++found;
  }
  if (found == 0 || !is_at_end()) throw_openssl_error(about + path);
}

void tell_whom_we_trust(SSL_CTX* context, const std::string& path) {
  const std::string about = "the certificates to trust in ";
  std::string text = text_of(about, path);
  OwnedBio bio = bio_of(text);
  while (OwnedCertificate next{PEM_read_bio_X509_AUX(bio.get(), nullptr, no_password, nullptr)}) {
    if (SSL_CTX_add_client_CA(context, next.get()) != 1) throw_openssl_error(about + path);
  }
  if (!is_at_end()) throw_openssl_error(about + path);
}

FileStamp FileStamp::of(const std::string& path) noexcept {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  auto ns = [](const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {found.st_dev, found.st_ino, found.st_size, ns(found.st_mtim), ns(found.st_ctim)};
}

}  // namespace magpie::net
