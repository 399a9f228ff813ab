#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace braid {

/// Owners of OpenSSL objects.
template <auto free>
struct OpensslFree {
  template <typename T>
  void operator()(T* p) const {
    free(p);
  }
};
using BioHandle = std::unique_ptr<BIO, OpensslFree<BIO_free_all>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using CertificateHandle = std::unique_ptr<X509, OpensslFree<X509_free>>;
using SslHandle = std::unique_ptr<SSL, OpensslFree<SSL_free>>;
using SslContextHandle = std::unique_ptr<SSL_CTX, OpensslFree<SSL_CTX_free>>;

/// The latest entry of this thread's OpenSSL error queue in OpenSSL's words; empties the queue.
std::string takeOpensslError();

}  // namespace braid
