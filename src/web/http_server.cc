#include "web/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/containers.h"
#include "host/linux/unix_listener.h"
#include "web/options.h"

namespace braid {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;  // of TCP, or a Unix socket
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
using PlainStream = beast::basic_stream<asio::generic::stream_protocol>;

constexpr int kBacklog = 64;
constexpr UnixListenerOptions kUnixSocket{.title = "--listen unix:",
                                          .setPath = "choose another path",
                                          .setGroup = "name another one with --group",
                                          .backlog = kBacklog};

constexpr auto kAcceptPause =
    std::chrono::seconds(1);  // pause in accepting when descriptors or memory ran out

std::optional<std::string> headerOf(const http::request<http::empty_body>& request,
                                    http::field name) {
  auto found = request.find(name);
  if (found == request.end()) return std::nullopt;
  return std::string(found->value());
}

using Reply = http::response<http::string_body>;

Reply replyOf(WebResponse response, const http::request<http::empty_body>& request) {
  Reply reply;
  reply.version(request.version());
  reply.result(response.status);
  reply.set(http::field::content_type, response.type);
  for (const auto& [name, value] : response.headers) reply.set(name, value);
  reply.keep_alive(request.keep_alive() &&
                   response.status < 400);  // a refused client does not keep its connection
  reply.body() = std::move(response.body);
  reply.prepare_payload();
  if (request.method() == http::verb::head) {
    auto length = std::to_string(reply.body().size());
    reply.body().clear();
    reply.set(http::field::content_length, length);
  }
  return reply;
}

/// A connection, as the server's limits see it.
struct HttpConnection {
  virtual ~HttpConnection() = default;
  /// Closes it, and frees its place at once.
  virtual void drop() = 0;
  ListLink<HttpConnection> link;
};

struct HttpConnections {
  size_t count = 0;
  IntrusiveList<HttpConnection, &HttpConnection::link>
      waiting;  ///< those that wait for the other side, the longest wait first
};

/// One connection. Stream: PlainStream, or TLS over it.
template <typename Stream>
class HttpClient : public HttpConnection, public std::enable_shared_from_this<HttpClient<Stream>> {
 public:
  static constexpr bool kIsTls = !std::is_same_v<Stream, PlainStream>;

  template <typename... Context>
  HttpClient(std::shared_ptr<HttpConnections> all, Site& site, const HttpLimits& limits,
             Socket socket, Context&... tls)
      : all_(std::move(all)), site_(site), limits_(limits), stream_(std::move(socket), tls...) {
    ++all_->count;
  }
  ~HttpClient() override { leave(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void start() {
    if constexpr (kIsTls) {
      expire(limits_.handshake);
      setWaiting(true);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](error_code error) {
                                if (!error) self->read(self->limits_.request);
                              });
    } else {
      read(limits_.request);
    }
  }

  void drop() override {
    leave();
    beast::get_lowest_layer(stream_).close();
  }

 private:
  void leave() {
    setWaiting(false);
    if (std::exchange(counts_, false)) --all_->count;
  }
  void setWaiting(bool waits) {
    if (waits_) all_->waiting.erase(*this);
    waits_ = waits && counts_;
    if (waits_) all_->waiting.pushBack(*this);
  }
  void expire(Duration time) {
    beast::get_lowest_layer(stream_).expires_after(
        std::chrono::duration_cast<std::chrono::milliseconds>(time));
  }

  // Waits at most `time` for the first byte of a request, and then at most limits_.request for its
  // end.
  void read(Duration time) {
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(limits_.header));
    parser_->body_limit(0);
    expire(time);
    setWaiting(true);
    http::async_read_some(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](error_code error, size_t) { self->onFirst(error); });
  }
  void onFirst(error_code error) {
    if (error || parser_->is_done()) return onRequest(error);
    expire(limits_.request);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](error_code failed, size_t) { self->onRequest(failed); });
  }

  void onRequest(error_code error) {
    setWaiting(false);
    if (error == http::error::end_of_stream) return close();
    if (error == http::error::header_limit)
      return refuse(431, "the head of the request is too long");
    if (error == http::error::body_limit) return refuse(413, "a request has no body here");
    if (error && error.category() == http::make_error_code(http::error::bad_target).category())
      return refuse(400, "no request of HTTP/1.1");
    if (error) return;  // the other side is gone, or took too long
    const auto& head = parser_->get();
    WebRequest request{std::string(head.method_string()), std::string(head.target()),
                       headerOf(head, http::field::host),
                       headerOf(head, http::field::authorization),
                       headerOf(head, http::field::accept_encoding)};
    expire(limits_.response);
    site_.handle(request, [self = this->shared_from_this()](WebResponse response) {
      self->reply(std::move(response));
    });
  }

  void refuse(unsigned status, const char* why) {
    reply({.status = status, .body = std::string(why) + "\n"});
  }
  void reply(WebResponse response) {
    reply_ = replyOf(std::move(response), parser_->get());
    write();
  }
  void write() {
    expire(limits_.response);
    http::async_write(stream_, reply_, [self = this->shared_from_this()](error_code error, size_t) {
      if (error) return;
      if (self->reply_.need_eof()) return self->close();
      self->reply_ = Reply();
      self->read(self->limits_.idle);
    });
  }
  void close() {
    if constexpr (kIsTls) {
      expire(limits_.handshake);
      setWaiting(true);
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      stream_.socket().shutdown(Socket::shutdown_send, ignored);
    }
  }

  std::shared_ptr<HttpConnections> all_;
  bool counts_ = true, waits_ = false;
  Site& site_;
  HttpLimits limits_;
  Stream stream_;
  beast::flat_buffer buffer_{16384};  // a longer header is refused before the buffer is full
  std::optional<http::request_parser<http::empty_body>> parser_;
  Reply reply_;
};

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<Impl> {
  struct Listener {
    explicit Listener(asio::io_context& loop) : acceptor(loop), pause(loop) {}
    Acceptor acceptor;
    asio::steady_timer pause;
    std::optional<UnixListener> unixSocket;  ///< nullopt: TCP
  };

  Impl(asio::io_context& eventLoop, std::shared_ptr<asio::ssl::context> context, Site& served,
       const HttpLimits& bounds)
      : loop(eventLoop), tls(std::move(context)), site(served), limits(bounds) {}

  void listen(const Endpoint& at) {
    tcp::endpoint endpoint(asio::ip::make_address(at.address.toString()), at.port);
    error_code error;
    Acceptor& acceptor = listeners.emplace_back(loop).acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
    if (!error && at.address.isV6()) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kBacklog, error);
    if (error)
      throw std::runtime_error("cannot listen at " + at.toString() + ": " + error.message() +
                               "; choose another address or port with --listen");
  }

  void listen(const std::string& path, const std::string& group) {
    removeStaleSocket(path, kUnixSocket);
    Listener& made = listeners.emplace_back(loop);
    made.unixSocket.emplace(path, group, kUnixSocket);
    // The acceptor closes its own descriptor.
    const int copy = ::fcntl(made.unixSocket->get(), F_DUPFD_CLOEXEC, 0);
    error_code error;
    if (copy >= 0) made.acceptor.assign(asio::generic::stream_protocol(AF_UNIX, 0), copy, error);
    if (copy < 0 || error)
      throw std::runtime_error("cannot listen at unix:" + path +
                               ": no descriptor is left; raise the limit of open files");
  }

  void accept(Listener& listener) {
    listener.acceptor.async_accept(
        [self = shared_from_this(), &listener](error_code error, Socket socket) {
          if (self->isClosed || error == asio::error::operation_aborted) return;
          if (!error) self->welcome(std::move(socket), !listener.unixSocket);
          if (!error || error == asio::error::connection_aborted) return self->accept(listener);
          // Descriptors or memory ran out, of this process or of the host: the connection stays in
          // the queue, and the next call would fail at once.
          listener.pause.expires_after(kAcceptPause);
          listener.pause.async_wait([self, &listener](error_code ended) {
            if (!ended) self->accept(listener);
          });
        });
  }

  void welcome(Socket socket, bool isTcp) {
    if (all->count >= limits.clients) {
      if (all->waiting.empty()) return;  // closes the new one
      all->waiting.front()->drop();
    }
    error_code ignored;
    if (isTcp) socket.set_option(tcp::no_delay(true), ignored);
    if (isTcp && tls) {
      using Client = HttpClient<beast::ssl_stream<PlainStream>>;
      std::make_shared<Client>(all, site, limits, std::move(socket), *tls)->start();
    } else {
      std::make_shared<HttpClient<PlainStream>>(all, site, limits, std::move(socket))->start();
    }
  }

  void close() {
    isClosed = true;
    error_code ignored;
    for (Listener& listener : listeners) {
      listener.acceptor.close(ignored);
      listener.pause.cancel(ignored);
      listener.unixSocket.reset();  // removes its file
    }
  }

  asio::io_context& loop;
  std::shared_ptr<asio::ssl::context> tls;
  Site& site;
  HttpLimits limits;
  std::list<Listener> listeners;
  std::shared_ptr<HttpConnections> all = std::make_shared<HttpConnections>();
  bool isClosed = false;
};

HttpServer::HttpServer(asio::io_context& loop, const HttpPlaces& places,
                       std::shared_ptr<asio::ssl::context> tls, Site& site,
                       const HttpLimits& limits)
    : impl_(std::make_shared<Impl>(loop, std::move(tls), site, limits)) {
  for (const Endpoint& endpoint : places.tcp) impl_->listen(endpoint);
  for (const std::string& path : places.sockets) impl_->listen(path, places.group);
  for (Impl::Listener& listener : impl_->listeners) impl_->accept(listener);
}

HttpServer::~HttpServer() {
  impl_->close();
}

std::vector<uint16_t> HttpServer::ports() const {
  std::vector<uint16_t> out;
  for (const Impl::Listener& listener : impl_->listeners) {
    if (listener.unixSocket) continue;
    tcp::endpoint at;
    const auto own = listener.acceptor.local_endpoint();
    std::memcpy(at.data(), own.data(), own.size());
    out.push_back(at.port());
  }
  return out;
}

size_t HttpServer::clients() const {
  return impl_->all->count;
}

std::shared_ptr<asio::ssl::context> makeTls(const std::string& certificate,
                                            const std::string& key) {
  auto tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
  error_code error;
  tls->use_certificate_chain_file(certificate, error);
  if (error)
    throw std::runtime_error("--certificate " + certificate + ": " + error.message() +
                             "; it must be PEM");
  tls->use_private_key(asio::buffer(readSecretFile("--key", key)), asio::ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(tls->native_handle()) != 1)
    throw std::runtime_error("--key " + key + ": " +
                             (error ? error.message() : "it is another certificate's") +
                             "; it must be the certificate's key in PEM");
  return tls;
}

}  // namespace braid
