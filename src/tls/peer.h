// peer.h: what stands in a certificate.
#pragma once

#include <openssl/x509.h>

#include <magpie/net/tls.h>

namespace magpie::net {

TlsCertificate describe(X509* certificate);

}  // namespace magpie::net
