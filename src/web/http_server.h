#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "web/options.h"
#include "web/site.h"

namespace braid {

/// Limits of the server: time per phase of a connection, and the number of connections.
struct HttpLimits {
  size_t clients =
      64;  ///< connections at once; a further one closes the one that has been silent for longest
  Duration handshake = 10s;  ///< TLS
  Duration request = 10s;    ///< from the first byte to the end of a request's header
  Duration idle = 60s;       ///< until the next request
  Duration response = 30s;   ///< until all of an answer is sent
  size_t header = 8192;      ///< bytes of a request's header
};

/// HTTP/1.1 over TCP, TLS or Unix sockets, by Boost.Beast. Refuses requests with a body, because no
/// request needs one.
class HttpServer {
 public:
  /// `tls`: null for none; Unix sockets have none. Throws std::runtime_error with a remedy. `loop`
  /// and `site` must outlive the server.
  HttpServer(boost::asio::io_context& loop, const HttpPlaces& places,
             std::shared_ptr<boost::asio::ssl::context> tls, Site& site,
             const HttpLimits& limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The TCP ports listened on, in the order of the addresses.
  std::vector<uint16_t> ports() const;
  size_t clients() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// TLS 1.2 or later, with these files. Throws std::runtime_error with a remedy.
std::shared_ptr<boost::asio::ssl::context> makeTls(const std::string& certificate,
                                                   const std::string& key);

}  // namespace braid
