#include "web/control_client.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <utility>

namespace braid {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

double wallNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// One request in progress.
class Question : public std::enable_shared_from_this<Question> {
 public:
  Question(asio::io_context& loop, std::string path, std::string request, DaemonLink::Done done)
      : path_(std::move(path)),
        request_(std::move(request)),
        done_(std::move(done)),
        socket_(loop),
        timer_(loop) {}

  void start() {
    timer_.expires_after(std::chrono::seconds(ControlClient::kTimeoutSeconds));
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->fail("the daemon does not answer");
    });
    if (path_.size() >= 108) return later("the path of its control socket is too long");
    socket_.async_connect(
        asio::local::stream_protocol::endpoint(path_),
        [self = shared_from_this()](error_code error) { self->onConnected(error); });
  }

 private:
  void later(const std::string& problem) {
    asio::post(socket_.get_executor(),
               [self = shared_from_this(), problem] { self->fail(problem); });
  }
  void onConnected(error_code error) {
    if (error == asio::error::access_denied)
      return fail("no permission for its control socket " + path_ + ": join the socket's group");
    if (error) return fail("no daemon answers at " + path_);
    // A busy daemon refuses without reading. So a failed write does not matter; the answer counts.
    asio::async_write(
        socket_, asio::buffer(request_), [self = shared_from_this()](error_code, size_t) {
          asio::async_read_until(
              self->socket_, asio::dynamic_buffer(self->answer_, ControlClient::kMaxAnswer), '\n',
              [self](error_code failed, size_t) { self->onAnswer(failed); });
        });
  }
  void onAnswer(error_code error) {
    if (error) return fail("the daemon ended the connection");
    DaemonAnswer out;
    out.value = nlohmann::json::parse(answer_, nullptr, false);
    if (!out.value.is_object()) return fail("the answer is no JSON; is this a braidd?");
    auto ok = out.value.find("ok");
    if (ok == out.value.end() || *ok != true) {
      auto why = out.value.find("error");
      return fail(why != out.value.end() && why->is_string() ? why->get<std::string>()
                                                             : "refused without a reason");
    }
    out.text = std::move(answer_);
    finish(std::move(out));
  }
  void fail(const std::string& problem) {
    finish({.text = {}, .value = {}, .problem = problem, .at = 0});
  }
  void finish(DaemonAnswer answer) {
    if (!done_) return;
    error_code ignored;
    timer_.cancel(ignored);
    socket_.close(ignored);
    answer.at = wallNow();
    std::exchange(done_, nullptr)(std::move(answer));
  }

  std::string path_, request_, answer_;
  DaemonLink::Done done_;  ///< null: it was called
  asio::local::stream_protocol::socket socket_;
  asio::steady_timer timer_;
};

}  // namespace

void ControlClient::ask(const nlohmann::json& request, Done done) {
  std::make_shared<Question>(loop_, socket_, request.dump() + "\n", std::move(done))->start();
}

}  // namespace braid
