// braid-web: shows what a gateway does. docs/guide.md describes it for users.

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "gateway/log/log.h"
#include "host/linux/loop.h"
#include "web/control_client.h"
#include "web/http_server.h"
#include "web/options.h"
#include "web/site.h"

namespace {

void lookForTheDay(braid::Site& site, boost::asio::steady_timer& timer) {
  site.look();
  timer.expires_after(braid::DayStore::kLook);
  timer.async_wait([&](boost::system::error_code ended) {
    if (!ended) lookForTheDay(site, timer);
  });
}

int serve(int argc, char** argv) {
  int exitCode = EXIT_SUCCESS;
  std::optional<braid::WebOptions> options = braid::readWebOptions(argc, argv, exitCode);
  if (!options) return exitCode;
  braid::setupLogging(options->logLevel, braid::detectLogStyle());
  if (::geteuid() == 0)
    spdlog::warn("runs as root, which it does not need: the group of the control socket is enough");
  ::signal(SIGPIPE, SIG_IGN);  // must not end because a browser went away
  boost::asio::io_context loop(1);
  braid::ControlClient daemon(loop, options->socket);
  braid::Answers answers(daemon, braid::monotonicNow);
  braid::Site site(braid::Access(options->hosts, options->token), answers);
  std::shared_ptr<boost::asio::ssl::context> tls;
  if (!options->certificate.empty()) tls = braid::makeTls(options->certificate, options->key);
  braid::HttpServer server(loop, options->listen, tls, site);
  for (const braid::Endpoint& at : options->listen.tcp)
    spdlog::info("serves {}://{}/ with what {} says", tls ? "https" : "http", at.toString(),
                 options->socket);
  for (const std::string& path : options->listen.sockets)
    spdlog::info("serves http at unix:{} with what {} says", path, options->socket);
  boost::asio::steady_timer looks(loop);
  lookForTheDay(site, looks);
  boost::asio::signal_set ends(loop, SIGTERM, SIGINT);
  ends.async_wait([&](boost::system::error_code, int) { loop.stop(); });
  loop.run();
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return serve(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "braid-web: %s\n", e.what());
    return EXIT_FAILURE;
  }
}
